package rabbitmq_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

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
			headers := amqp091.Table{
				"text": "é", "int": int64(-7), "small": int8(3), "byte": byte(200), "short": int16(-300), "int32": int32(70000), "float": 2.5, "bool": true, "null": nil,
				"bytes": []byte{0, 1, 255}, "time": time.Unix(1700000000, 0), "decimal": amqp091.Decimal{Scale: 2, Value: 314},
				"table":            amqp091.Table{"list": []any{int32(1), "two", amqp091.Table{"deep": "er"}}},
				"x-delivery-count": int64(3), "x-acquired-count": int64(4), "CC": []any{"elsewhere"}, "BCC": []any{"nowhere"},
				"x-death":             []any{amqp091.Table{"count": int64(7), "reason": "expired", "queue": "x", "exchange": "y", "routing-keys": []any{"z"}}},
				"x-first-death-queue": "x", "x-first-death-reason": "expired", "x-last-death-queue": "x",
			}
			want := 0
			if count := foreign[convention]; count != nil {
				maps.Copy(headers, count(2))
				want = 2
			}
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
			if count := foreign[convention]; count != nil {
				for name, value := range count(want + 1) {
					if fmt.Sprint(second.Headers[name]) != fmt.Sprint(value) {
						t.Errorf("header %s is %v (%T), want %v (%T)", name, second.Headers[name], second.Headers[name], value, value)
					}
				}
			}
			dead := w.drained(w.spec.DeadLetterQueue, "id")[0]
			for where, have := range map[string]redeliver.Message{
				"after a hop": second,
				"in the dead-letter queue": {
					Headers: dead.Headers, ContentType: dead.ContentType, ContentEncoding: dead.ContentEncoding, Priority: dead.Priority, CorrelationID: dead.CorrelationId,
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
				for name, value := range headers {
					switch _, counted := foreign[convention]; {
					case strings.HasPrefix(name, "x-") && (counted || strings.Contains(name, "-death") || strings.HasSuffix(name, "-count")):
					case name == "CC", name == "BCC":
						if _, kept := have.Headers[name]; kept {
							t.Errorf("%s it has the header %s", where, name)
						}
					case fmt.Sprint(have.Headers[name]) != fmt.Sprint(first.Headers[name]):
						t.Errorf("%s header %s is %v, want %v (sent as %v)", where, name, have.Headers[name], first.Headers[name], value)
					}
				}
				if strings.Contains(fmt.Sprint(have.Headers["x-death"]), "queue:x ") {
					t.Errorf("%s it has the forged deaths: %v", where, have.Headers["x-death"])
				}
			}
		})
	}
}

// TestDeferredCopiesComeFirst: in a queue that has priorities a deferred copy has the highest, and a retried one its own.
func TestDeferredCopiesComeFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, onClassic, func(s *topology.Spec) {
		top := 7
		s.MaxPriority, s.HoldDelays = &top, []time.Duration{50 * time.Millisecond}
		s.Retry = topology.RetryPolicy{Strategy: topology.Republish, MaxRetries: 5, Delays: s.HoldDelays, LastDelayRepeats: true}
	})
	var c calls
	var priorities []int
	l := w.consume(redeliver.Config{Workers: 1}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		priorities = append(priorities, int(m.Priority))
		switch c.note(m) {
		case 0:
			return redeliver.Retry(errBoom)
		case 1:
			return redeliver.Defer()
		default:
			return redeliver.Ack()
		}
	})
	w.send(amqp091.Publishing{MessageId: "a", Priority: 2, DeliveryMode: amqp091.Persistent})
	l.await(redeliver.EventAcked, 1)
	l.mustStop()
	if want := []int{2, 2, 7}; !slices.Equal(priorities, want) {
		t.Errorf("handled with the priorities %v", priorities)
	}
}
