package rabbitmq_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// foreign are the count headers as the conventions' own libraries write them after n retries.
var foreign = map[topology.Convention]func(n int) amqp091.Table{
	topology.Shove:     func(n int) amqp091.Table { return amqp091.Table{"x-retry-count": uint32(n)} },          //nolint:gosec // a few
	topology.AceMQ:     func(n int) amqp091.Table { return amqp091.Table{"x-acemq-attempt": int32(n + 1)} },     //nolint:gosec // a few
	topology.RabbitKit: func(n int) amqp091.Table { return amqp091.Table{"x-rabbitkit-retry-count": int32(n)} }, //nolint:gosec // a few
}

// TestCopiesUnderEveryConvention: a message with every property and every kind of header comes back from a hold queue
// as it was, less what belonged to its delivery, and so does its copy in the dead-letter queue. The count that another
// library wrote is read, and the one that it would write comes next.
func TestCopiesUnderEveryConvention(t *testing.T) {
	t.Parallel()
	for _, convention := range []topology.Convention{topology.Redeliver, topology.Shove, topology.AceMQ, topology.RabbitKit} {
		t.Run(string(convention), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(s *topology.Spec) {
				s.Convention, s.HoldDelays = convention, []time.Duration{time.Second}
				s.Retry = topology.RetryPolicy{Strategy: topology.Republish, MaxRetries: 5, Delays: s.HoldDelays, LastDelayRepeats: true}
			})
			// What belongs to one delivery goes; what the broker writes there anew is not what was sent.
			forged := amqp091.Table{
				"x-delivery-count": int64(3), "x-acquired-count": int64(4),
				"x-first-death-queue": "x", "x-first-death-reason": "maxlen", "x-first-death-exchange": "y",
				"x-last-death-queue": "x", "x-last-death-reason": "maxlen", "x-last-death-exchange": "y",
			}
			gone := amqp091.Table{"CC": []any{"elsewhere"}, "BCC": []any{"nowhere"}}
			kept := amqp091.Table{
				"text": "é", "int": int64(-7), "small": int8(3), "byte": byte(200), "short": int16(-300), "int32": int32(70000), "float": 2.5, "bool": true, "null": nil,
				"bytes": []byte{0, 1, 255}, "time": time.Unix(1700000000, 0), "decimal": amqp091.Decimal{Scale: 2, Value: 314},
				"table": amqp091.Table{"list": []any{int32(1), "two", amqp091.Table{"deep": "er"}}},
			}
			if name := w.doc.Headers.FirstSeen; name != "" {
				kept[name] = time.Now().Add(-time.Hour).UnixMilli() // an earlier consumer's, and not the timestamp
			}
			headers := amqp091.Table{"x-death": []any{amqp091.Table{"count": int64(7), "reason": "maxlen", "queue": "x", "exchange": "y", "routing-keys": []any{"z"}}}}
			maps.Copy(headers, forged)
			maps.Copy(headers, kept)
			ch := brokertest.Channel(t, w.broker, w.vhost) // where copies would go that kept CC: the broker takes it away after that
			if _, err := ch.QueueDeclare("elsewhere", true, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
			if exchange := w.doc.RetryExchange; exchange != "" {
				if err := ch.QueueBind("elsewhere", "elsewhere", exchange, false, nil); err != nil {
					t.Fatal(err)
				}
			}
			want := 0
			if count := foreign[convention]; count != nil {
				maps.Copy(headers, count(2))
				want = 2
			}
			maps.Copy(headers, gone)
			w.send(amqp091.Publishing{
				Headers: headers, ContentType: "application/x-thing", ContentEncoding: "identity", Priority: 3, CorrelationId: "corr", ReplyTo: "reply",
				Expiration: "600000", MessageId: "id", Timestamp: time.Now().Truncate(time.Second), Type: "thing", UserId: w.broker.Username(), AppId: "app", Body: []byte{0, 'b', 255},
			})
			got := make(chan redeliver.Message, 2)
			l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
				got <- *m
				if m.RetryCount == want {
					return redeliver.Retry(errBoom)
				}
				return redeliver.Reject(errBoom)
			})
			l.await(redeliver.EventDeadLettered, 1)
			l.mustStop()
			first, second := <-got, <-got
			if first.RetryCount != want || second.RetryCount != want+1 {
				t.Errorf("handled with the retry counts %d and %d, want %d and one more", first.RetryCount, second.RetryCount, want)
			}
			counts := amqp091.Table{w.doc.Headers.RetryCount: int32(want + 1)} //nolint:gosec // a few
			if count := foreign[convention]; count != nil {
				counts = count(want + 1)
			}
			for name, value := range counts {
				if n := wholeNumber(value); second.Headers[name] != int32(n) { //nolint:gosec // what the libraries write, whatever they read
					t.Errorf("header %s is %v (%T), want %d as 32 bits", name, second.Headers[name], second.Headers[name], n)
				}
			}
			dead := w.drained(w.spec.DeadLetterQueue, "id")[0]
			w.drained("elsewhere", "id") // the publisher's own
			for where, have := range map[string]redeliver.Message{
				"after a hop": second,
				"in the dead-letter queue": {
					Headers: plain(dead.Headers).(map[string]any), ContentType: dead.ContentType, ContentEncoding: dead.ContentEncoding, Priority: dead.Priority, CorrelationID: dead.CorrelationId,
					ReplyTo: dead.ReplyTo, Timestamp: dead.Timestamp, Type: dead.Type, AppID: dead.AppId, UserID: dead.UserId, Expiration: dead.Expiration, ID: dead.MessageId, Body: dead.Body,
				},
			} {
				if have.ContentType != first.ContentType || have.ContentEncoding != first.ContentEncoding || have.Priority != first.Priority || have.CorrelationID != first.CorrelationID ||
					have.ReplyTo != first.ReplyTo || !have.Timestamp.Equal(first.Timestamp) || have.Type != first.Type || have.AppID != first.AppID || have.ID != first.ID ||
					string(have.Body) != string(first.Body) || have.UserID != "" || have.Expiration != "" {
					t.Errorf("%s\n got %+v\nwant %+v", where, have, first)
				}
				if have.Headers["x-redeliver-expiration"] != "600000" || have.Headers["x-redeliver-user-id"] != w.broker.Username() {
					t.Errorf("%s the expiration and the user are not kept: %v", where, have.Headers)
				}
				for name, value := range plain(kept).(map[string]any) {
					if got := have.Headers[name]; !reflect.DeepEqual(got, value) {
						t.Errorf("%s header %s is %#v, want %#v", where, name, got, value)
					}
				}
				for name := range gone {
					if value, there := have.Headers[name]; there {
						t.Errorf("%s it has the header %s: %v", where, name, value)
					}
				}
				for name, value := range forged {
					if got := have.Headers[name]; got == value {
						t.Errorf("%s it has the forged header %s: %v", where, name, got)
					}
				}
				deaths, _ := have.Headers["x-death"].([]any)
				for _, death := range deaths {
					if table, ok := death.(map[string]any); !ok || table["queue"] == "x" || table["reason"] == "maxlen" {
						t.Errorf("%s it has the forged deaths: %v", where, deaths)
					}
				}
			}
		})
	}
}

// TestDeferredCopiesComeFirst: in a queue that has priorities a deferred copy has the highest, and a retried one its own, so
// that only the former comes back ahead of the backlog.
func TestDeferredCopiesComeFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, onClassic, func(s *topology.Spec) {
		top := 7
		s.MaxPriority, s.HoldDelays = &top, []time.Duration{300 * time.Millisecond}
		s.Retry = topology.RetryPolicy{Strategy: topology.Republish, MaxRetries: 5, Delays: s.HoldDelays, LastDelayRepeats: true}
	})
	const backlog = 10
	var mu sync.Mutex
	var order []string
	priorities := make(map[string][]int)
	g := newGate()
	l := w.consume(redeliver.Config{Workers: 1, Prefetch: 2}, func(ctx context.Context, m *redeliver.Message) redeliver.Outcome {
		mu.Lock()
		order = append(order, m.ID)
		priorities[m.ID] = append(priorities[m.ID], int(m.Priority))
		calls := len(priorities[m.ID])
		mu.Unlock()
		switch {
		case m.ID == "deferred" && calls == 1:
			return redeliver.Defer()
		case m.ID == "retried" && calls == 1:
			return redeliver.Retry(errBoom)
		case m.ID == "m00000":
			return g.handle(ctx, m)
		default:
			return redeliver.Ack()
		}
	})
	var msgs []amqp091.Publishing
	for _, id := range append([]string{"deferred", "retried"}, ids(backlog)...) {
		msgs = append(msgs, amqp091.Publishing{MessageId: id, Priority: 2, DeliveryMode: amqp091.Persistent})
	}
	w.send(msgs...)
	first := g.next(t)
	brokertest.WaitFor(t, func() (bool, string) { // and so the next message of the backlog is prefetched
		n := l.Stats().Republished
		return n == 2, fmt.Sprintf("%d copies were taken", n)
	})
	w.waitDepth("orders", backlog-2+2)
	first.answer <- redeliver.Ack()
	l.await(redeliver.EventAcked, backlog+2)
	l.mustStop()
	all := ids(backlog)
	want := slices.Concat([]string{"deferred", "retried"}, all[:2], []string{"deferred"}, all[2:], []string{"retried"})
	if !slices.Equal(order, want) {
		t.Errorf("handled in the order %q, want %q", order, want)
	}
	if d, r := priorities["deferred"], priorities["retried"]; !slices.Equal(d, []int{2, 7}) || !slices.Equal(r, []int{2, 2}) {
		t.Errorf("handled with the priorities %v after a deferral and %v after a retry", d, r)
	}
}
