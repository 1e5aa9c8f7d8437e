package consumer

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// died is an entry of x-death as RabbitMQ writes it.
func died(queue, reason, exchange, key string, count any) map[string]any {
	return map[string]any{
		"queue": queue, "reason": reason, "exchange": exchange, "routing-keys": []any{key}, "count": count, "time": time.Unix(1700000000, 0),
	}
}

func TestParseDead(t *testing.T) {
	t.Parallel()
	rejected, expired := died("orders", "rejected", "shop", "order.7", int64(1)), died("orders-hold-5s", "expired", "orders-retry", "orders-hold-5s", int64(3))
	type want struct {
		reason, lastError, queue, exchange, key string
		count                                   int64
		attempts, deaths                        int
	}
	for name, tt := range map[string]struct {
		convention topology.Convention
		headers    map[string]any
		want       want
	}{
		"no headers": {topology.Redeliver, nil, want{}},
		"rejected in place": {
			topology.Redeliver,
			map[string]any{"x-death": []any{rejected}, "x-first-death-queue": "orders", "x-first-death-reason": "rejected", "x-first-death-exchange": "shop"},
			want{"rejected", "", "orders", "shop", "order.7", 1, 0, 1},
		},
		"delivery limit": {
			topology.Redeliver,
			map[string]any{"x-death": []any{died("orders", "delivery_limit", "", "orders", int64(1))}, "x-delivery-count": int64(51)},
			want{"delivery_limit", "", "orders", "", "orders", 1, 0, 1},
		},
		"published by the consumer": {
			topology.Redeliver,
			map[string]any{"x-redeliver-error": "retries exhausted: boom", "x-redeliver-retry-count": int32(10)},
			want{"retries exhausted: boom", "retries exhausted: boom", "", "", "", 0, 11, 0},
		},
		"hybrid: rejected after hops": {
			topology.Redeliver,
			map[string]any{"x-death": []any{rejected, expired}, "x-redeliver-error": "boom", "x-redeliver-retry-count": int32(3)},
			want{"rejected", "boom", "orders", "shop", "order.7", 4, 4, 2},
		},
		"a library that keeps the history": {
			topology.RabbitKit,
			map[string]any{
				"x-death": []any{expired}, "x-rabbitkit-error-message": "boom", "x-rabbitkit-retry-count": "2", "x-rabbitkit-original-queue": "orders",
				"x-rabbitkit-original-exchange": "shop", "x-rabbitkit-original-routing-key": []byte("order.7"),
			},
			want{"boom", "boom", "orders", "shop", "order.7", 3, 3, 1},
		},
		"expired in the work queue": {
			topology.Redeliver,
			map[string]any{"x-death": []any{died("orders", "expired", "shop", "order.7", int64(1))}},
			want{"expired", "", "orders", "shop", "order.7", 1, 0, 1},
		},
		"acemq counts from one": {
			topology.AceMQ,
			map[string]any{"x-acemq-attempt": int32(3), "x-acemq-error": "boom"},
			want{"boom", "boom", "", "", "", 0, 3, 0},
		},
		"shove's older header": {topology.Shove, map[string]any{"x-shove-retry-count": uint32(4)}, want{attempts: 5}},
		"queuey": {
			topology.Queuey,
			map[string]any{"x-death-reason": "boom", "x-original-queue": "orders", "x-attempts": int64(3)},
			want{"boom", "boom", "orders", "", "", 0, 3, 0},
		},
		"only the last death, 4.x": {
			topology.Redeliver,
			map[string]any{
				"x-last-death-queue": "orders", "x-last-death-reason": "rejected", "x-last-death-exchange": "shop",
				"x-first-death-queue": "orders-hold-5s", "x-first-death-reason": "expired", "x-first-death-exchange": "orders-retry",
			},
			want{"rejected", "", "orders", "shop", "", 1, 0, 1},
		},
		"only the first death, 3.10": {
			topology.Redeliver,
			map[string]any{"x-first-death-queue": "orders", "x-first-death-reason": "rejected", "x-first-death-exchange": "shop"},
			want{"rejected", "", "orders", "shop", "", 1, 0, 1},
		},
		"counts of every width": {
			topology.Redeliver,
			map[string]any{"x-death": []any{
				died("orders", "rejected", "", "orders", int32(2)), died("orders", "maxlen", "", "orders", uint8(3)), died("a", "expired", "", "a", "4"),
			}},
			want{"rejected", "", "orders", "", "orders", 9, 0, 3},
		},
		"counts that make no sense": {
			topology.Redeliver,
			map[string]any{"x-death": []any{
				died("orders", "rejected", "", "orders", int64(-5)), died("orders", "maxlen", "", "orders", nil), died("a", "expired", "", "a", int64(math.MaxInt64)),
			}},
			want{"rejected", "", "orders", "", "orders", math.MaxInt64, 0, 3},
		},
		"forged": {
			topology.Redeliver,
			map[string]any{"x-death": "often", "x-redeliver-error": int64(7), "x-redeliver-retry-count": int64(-9), "x-first-death-reason": []any{}, "": "x"},
			want{attempts: 1},
		},
		"forged, half": {
			topology.Redeliver,
			map[string]any{"x-death": []any{"x", nil, map[string]any{"queue": 7, "routing-keys": "all", "time": "now"}, rejected}, "x-redeliver-retry-count": []any{}},
			want{"rejected", "", "orders", "shop", "order.7", 1, 0, 1},
		},
	} {
		m := redeliver.Message{ID: "m1", Headers: tt.headers, RetryCount: 99}
		d := ParseDead(m, tt.convention.Headers())
		got := want{d.Reason, d.LastError, d.OriginalQueue, d.OriginalExchange, d.OriginalRoutingKey, d.DeathCount, d.Attempts, len(d.Deaths)}
		if got != tt.want || d.ID != "m1" {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, tt.want)
		}
		if d.Attempts > 0 && d.RetryCount != d.Attempts-1 || d.Attempts == 0 && d.RetryCount != 99 {
			t.Errorf("%s: %d attempts, retry count %d", name, d.Attempts, d.RetryCount)
		}
	}
}

func TestParseDeadHistory(t *testing.T) {
	t.Parallel()
	entry := died("orders", "rejected", "shop", "order.7", int64(2))
	entry["routing-keys"] = []any{"order.7", []byte("copy")}
	got := ParseDead(redeliver.Message{Headers: map[string]any{"x-death": []any{entry}}}, topology.Redeliver.Headers()).Deaths
	want := []redeliver.Death{{
		Queue: "orders", Reason: "rejected", Exchange: "shop", RoutingKeys: []string{"order.7", "copy"}, Count: 2, Time: time.Unix(1700000000, 0),
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// FuzzParseDead: whatever a publisher sends, nothing panics, and the numbers hold together.
func FuzzParseDead(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"x-death": [{"count": 3, "queue": "orders", "reason": "rejected", "exchange": "", "routing-keys": ["orders"], "time": 1}]}`,
		`{"x-death": [1, null, [], {"count": -9223372036854775808}, {"routing-keys": [null, {}]}], "x-redeliver-retry-count": 1e300}`,
		`{"x-death": {}, "x-first-death-reason": "expired", "x-last-death-reason": 4, "x-acemq-attempt": "9223372036854775807", "x-attempts": true}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var headers map[string]any
		if json.Unmarshal(data, &headers) != nil {
			return
		}
		headers, _ = amqpLike(headers).(map[string]any)
		for _, c := range topology.Conventions() {
			d := ParseDead(redeliver.Message{Headers: headers}, c.Headers())
			if d.DeathCount < int64(len(d.Deaths)) || d.Attempts < 0 || d.RetryCount < 0 {
				t.Errorf("%s: %+v", c, d)
			}
			if slices.ContainsFunc(d.Deaths, func(death redeliver.Death) bool { return death.Count < 1 }) {
				t.Errorf("%s: %+v", c, d.Deaths)
			}
		}
	})
}

// amqpLike gives JSON values the types that a broker's have.
func amqpLike(value any) any {
	switch v := value.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < math.MaxInt64 {
			return int64(v)
		}
	case map[string]any:
		for key, inner := range v {
			v[key] = amqpLike(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = amqpLike(inner)
		}
	}
	return value
}
