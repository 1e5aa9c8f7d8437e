package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

var errBoom = errors.New("boom")

// onBothQueues runs a test on a quorum and on a classic work queue.
func onBothQueues(t *testing.T, test func(t *testing.T, change func(*topology.Spec))) {
	t.Run("quorum", func(t *testing.T) { t.Parallel(); test(t, func(*topology.Spec) {}) })
	t.Run("classic", func(t *testing.T) { t.Parallel(); test(t, onClassic) })
}

// calls notes when a handler was called with which retry count.
type calls struct {
	mu     sync.Mutex
	at     []time.Time
	counts []int
}

// note returns how many calls came before.
func (c *calls) note(m *redeliver.Message) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.counts = append(c.at, time.Now()), append(c.counts, m.RetryCount)
	return len(c.at) - 1
}

// TestStandardExample is the standard example of the field: delays of 5s, 30s
// and 2m, scaled to milliseconds, and a handler that always retries.
func TestStandardExample(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, change func(*topology.Spec)) {
		w := newWorld(t, standard, change)
		var c calls
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			c.note(m)
			return redeliver.Retry(errBoom)
		})
		w.publish("a")
		dead := l.await(redeliver.EventDeadLettered, 1)
		if !errors.Is(dead[0].Err, errBoom) {
			t.Errorf("dead-lettered because %v", dead[0].Err)
		}
		got := w.drained(w.spec.DeadLetterQueue, "a")
		if reason := deathReason(got[0]); reason != "rejected" {
			t.Errorf("x-death says %q: the broker's delivery limit, not the budget, ended it", reason)
		}
		l.mustStop()
		if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(c.counts, want) {
			t.Errorf("called with the retry counts %v, want %v", c.counts, want)
		}
		if s := l.Stats(); s.Retried != 10 || s.DeadLettered != 1 || s.Exhausted != 1 || s.Handled != 11 {
			t.Errorf("%+v", s)
		}
		if depth := brokertest.Depth(t, w.broker, w.vhost, "orders"); depth != 0 {
			t.Errorf("%d messages left in the work queue", depth)
		}
	})
}

func deathReason(d amqp091.Delivery) string {
	deaths, _ := d.Headers["x-death"].([]any)
	if len(deaths) == 0 {
		return ""
	}
	death, _ := deaths[0].(amqp091.Table)
	reason, _ := death["reason"].(string)
	return reason
}

// TestTiers: a message that succeeds on attempt 4 has waited tiers 0, 1 and 2.
func TestTiers(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, change func(*topology.Spec)) {
		w := newWorld(t, func(s *topology.Spec) {
			s.Retry.Delays = []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, 1200 * time.Millisecond}
		}, change)
		var c calls
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			if c.note(m) < 3 {
				return redeliver.Retry(errBoom)
			}
			return redeliver.Ack()
		})
		w.publish("a")
		l.await(redeliver.EventAcked, 1)
		l.mustStop()
		if want := []int{0, 1, 2, 3}; !slices.Equal(c.counts, want) {
			t.Fatalf("called with the retry counts %v, want %v", c.counts, want)
		}
		for i, e := range l.of(redeliver.EventRetried) {
			delay := time.Duration(w.doc.Retry.Delays[i])
			low, high := delay*8/10, delay*12/10
			if e.Delay < low || e.Delay > high {
				t.Errorf("retry %d: the wait was set to %s, want %s to %s", i+1, e.Delay, low, high)
			}
			if waited := c.at[i+1].Sub(c.at[i]); waited < e.Delay {
				t.Errorf("retry %d came after %s, before its %s", i+1, waited, e.Delay)
			}
		}
		if n := brokertest.Depth(t, w.broker, w.vhost, w.spec.DeadLetterQueue); n != 0 {
			t.Errorf("%d messages in the dead-letter queue", n)
		}
	})
}

// TestDeferIsNotCounted: Defer twice, then Ack, leaves the count at 0.
func TestDeferIsNotCounted(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, change func(*topology.Spec)) {
		w := newWorld(t, standard, change)
		var c calls
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			if c.note(m) < 2 {
				return redeliver.Defer()
			}
			return redeliver.Ack()
		})
		w.publish("a")
		l.await(redeliver.EventAcked, 1)
		l.mustStop()
		if want := []int{0, 0, 0}; !slices.Equal(c.counts, want) {
			t.Errorf("called with the retry counts %v, want %v", c.counts, want)
		}
		if s := l.Stats(); s.Deferred != 2 || s.Retried != 0 || s.Delivered != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestEveryOutcome: each message ends where its outcome says.
func TestEveryOutcome(t *testing.T) {
	t.Parallel()
	handler := func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		switch m.ID {
		case "ack":
			return redeliver.Ack()
		case "retry once":
			if m.RetryCount == 0 {
				return redeliver.Retry(errBoom)
			}
			return redeliver.Ack()
		case "retry after":
			if m.RetryCount == 0 {
				return redeliver.RetryAfter(50*time.Millisecond, errBoom)
			}
			return redeliver.Ack()
		case "panic once":
			if m.RetryCount == 0 {
				panic("at the disco")
			}
			return redeliver.Ack()
		case "reject":
			return redeliver.Reject(errBoom)
		case "permanent":
			return redeliver.FromError(redeliver.Permanent(errBoom))
		case "retry permanent":
			return redeliver.Retry(fmt.Errorf("wrapped: %w", redeliver.Permanent(errBoom)))
		case "exhausted":
			return redeliver.FromError(errBoom)
		case "too old":
			return redeliver.Retry(errBoom)
		case "delay too long":
			return redeliver.RetryAfter(time.Hour, errBoom)
		case "park":
			return redeliver.Park(errBoom)
		default:
			return redeliver.Reject(fmt.Errorf("what is %q?", m.ID))
		}
	}
	acked := []string{"ack", "retry once", "retry after", "panic once"}
	dead := []string{"reject", "permanent", "retry permanent", "exhausted", "too old", "delay too long"}
	run := func(t *testing.T, w *world, parked []string, dead []string) *live {
		t.Helper()
		l := w.consume(redeliver.Config{}, handler)
		w.publish(slices.DeleteFunc(slices.Concat(acked, dead, parked), func(id string) bool { return id == "too old" })...)
		w.send(amqp091.Publishing{MessageId: "too old", Timestamp: time.Now().Add(-25 * time.Hour)})
		l.await(redeliver.EventAcked, len(acked))
		l.await(redeliver.EventDeadLettered, len(dead))
		l.await(redeliver.EventParked, len(parked))
		l.mustStop()
		w.drained(w.spec.DeadLetterQueue, dead...)
		w.waitDepth("orders", 0)
		s := l.Stats()
		if s.Acked != uint64(len(acked)) || s.DeadLettered != uint64(len(dead)) || s.Parked != uint64(len(parked)) ||
			s.TooOld != 1 || s.Exhausted != 1 || s.DelayTooLong != 1 || s.Panicked != 1 || s.Retried != 13 {
			t.Errorf("%+v", s)
		}
		return l
	}
	policy := func(s *topology.Spec) {
		standard(s)
		s.Retry.GiveUpAfter = 24 * time.Hour
	}
	onBothQueues(t, func(t *testing.T, change func(*topology.Spec)) {
		l := run(t, newWorld(t, policy, change), nil, append(slices.Clone(dead), "park"))
		for _, secret := range []string{"outcome_test.go"} {
			if !strings.Contains(l.log.String(), secret) {
				t.Errorf("the log has no %q: the stack of a panic belongs there", secret)
			}
		}
	})
	t.Run("parked queue", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, policy, parking)
		run(t, w, []string{"park"}, slices.Clone(dead))
		got := w.drained("orders-parked", "park")
		if reason := got[0].Headers["x-redeliver-error"]; reason != "unreadable: boom" {
			t.Errorf("reason header %q", reason)
		}
	})
	t.Run("queuey publishes what failed for good", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, policy, func(s *topology.Spec) { s.Convention = topology.Queuey })
		run(t, w, nil, append(slices.Clone(dead), "park"))
	})
}

func TestQueueyHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, func(s *topology.Spec) { s.Convention = topology.Queuey })
	l := w.consume(redeliver.Config{MaxRetries: 2}, func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Retry(errBoom) })
	w.publish("a")
	l.await(redeliver.EventDeadLettered, 1)
	l.mustStop()
	h := w.drained("orders.dead", "a")[0].Headers
	if h["x-death-reason"] != "retries exhausted: boom" || h["x-original-queue"] != "orders" || h["x-attempts"] != int64(3) {
		t.Errorf("headers %v", h)
	}
}

// TestMaxRetriesIsOnlyLowered: the configuration may ask for fewer retries than
// the manifest and not for more.
func TestMaxRetriesIsOnlyLowered(t *testing.T) {
	t.Parallel()
	for ask, want := range map[int]int{redeliver.NoRetries: 1, 1: 2, 3: 4, 100: 4, 0: 4} {
		t.Run(fmt.Sprint(ask), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(s *topology.Spec) { s.Retry.MaxRetries = 3 })
			var c calls
			l := w.consume(redeliver.Config{MaxRetries: ask}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
				c.note(m)
				return redeliver.Retry(errBoom)
			})
			w.publish("a")
			l.await(redeliver.EventDeadLettered, 1)
			l.mustStop()
			if len(c.counts) != want {
				t.Errorf("asked for %d of 3 retries: handled %d times, want %d", ask, len(c.counts), want)
			}
		})
	}
}

// TestDiscard: without a dead-letter queue a message that failed for good is
// gone, and not silently.
func TestDiscard(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, change func(*topology.Spec)) {
		w := newWorld(t, change, func(s *topology.Spec) { s.AllowMessageLoss = true })
		l := w.consume(redeliver.Config{}, func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Reject(errBoom) })
		w.publish("a")
		l.await(redeliver.EventDiscarded, 1)
		l.mustStop()
		w.waitDepth("orders", 0)
		if s := l.Stats(); s.Discarded != 1 || s.DeadLettered != 0 {
			t.Errorf("%+v", s)
		}
		if log := l.log.String(); !strings.Contains(log, "level=WARN msg=\"message discarded") || !strings.Contains(log, "message_id=a") {
			t.Errorf("log:\n%s", log)
		}
	})
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	type order struct{ N int }
	handler := redeliver.JSON(func(_ context.Context, o order, m *redeliver.Message) redeliver.Outcome {
		if m.ID != "good" || o.N != 7 {
			t.Errorf("handled %q with %+v", m.ID, o)
		}
		return redeliver.Ack()
	})
	test := func(t *testing.T, w *world, ends string) {
		l := w.open(redeliver.Config{MaxMessageSize: 1000}, handler)
		l.run()
		w.send(amqp091.Publishing{MessageId: "good", Body: []byte(`{"N": 7, "unknown": 1}`)},
			amqp091.Publishing{MessageId: "cut", Body: []byte(`{"N": 7`)}, amqp091.Publishing{MessageId: "empty"},
			amqp091.Publishing{MessageId: "other", Body: []byte(`{"N": "seven"}`)}, amqp091.Publishing{MessageId: "more", Body: []byte(`{"N": 7} {"N": 8}`)},
			amqp091.Publishing{MessageId: "large", Body: fmt.Appendf(nil, `{"N": 7, "pad": "%s"}`, strings.Repeat("x", 1000))})
		l.await(redeliver.EventAcked, 1)
		w.drained(ends, "cut", "empty", "other", "more", "large")
		l.mustStop()
		if s := l.Stats(); s.Undecodable != 4 || s.Oversized != 1 || s.Handled != 5 || s.Retried != 0 {
			t.Errorf("%+v", s)
		}
	}
	t.Run("rejected", func(t *testing.T) { t.Parallel(); test(t, newWorld(t), "orders-dlq") })
	t.Run("parked", func(t *testing.T) { t.Parallel(); test(t, newWorld(t, parking), "orders-parked") })
}
