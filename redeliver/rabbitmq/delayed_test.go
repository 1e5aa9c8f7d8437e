package rabbitmq_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// The broker's delays in these tests: 2 s for each retry, 5 s at most. A message may come late by less than a step, so that
// the next delay is told from this one, and one that is capped from one that is not.
const (
	delayStep  = 2 * time.Second
	delayMost  = 5 * time.Second
	delaySlack = delayStep * 3 / 4
)

func delayed(s *topology.Spec) {
	s.Retry = topology.RetryPolicy{Strategy: topology.BrokerDelayed, MaxRetries: 4, DelayMin: delayStep, DelayMax: delayMost}
}

// TestBrokerDelayed: RabbitMQ 4.3 delays what comes back, by min(2 s * retries, 5 s), and never less.
func TestBrokerDelayed(t *testing.T) {
	t.Parallel()
	b := brokertest.AtLeast(t, "4.3")
	gaps := func(t *testing.T, c *calls, want ...time.Duration) {
		t.Helper()
		if len(c.at) != len(want)+1 {
			t.Fatalf("called %d times with the retry counts %v, want %d", len(c.at), c.counts, len(want)+1)
		}
		for i, least := range want {
			if gap := c.at[i+1].Sub(c.at[i]); gap < least || gap > least+delaySlack {
				t.Errorf("call %d came after %s, want %s and at most %s more", i+2, gap, least, delaySlack)
			} else {
				t.Logf("call %d after %s, for %s", i+2, gap, least)
			}
		}
	}
	t.Run("retries", func(t *testing.T) {
		t.Parallel()
		w := newWorldOn(t, b, delayed)
		var c calls
		l := w.consume(redeliver.Config{Workers: 1}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			c.note(m)
			return redeliver.Retry(errBoom)
		})
		w.publish("a")
		l.await(redeliver.EventDeadLettered, 1)
		l.mustStop()
		gaps(t, &c, delayStep, 2*delayStep, delayMost, delayMost)
		if want := []int{0, 1, 2, 3, 4}; !slices.Equal(c.counts, want) {
			t.Errorf("called with the retry counts %v, want %v", c.counts, want)
		}
		if reason := deathReason(w.drained("orders-dlq", "a")[0]); reason != "rejected" {
			t.Errorf("x-death says %q: the broker's delivery limit, not the budget, ended it", reason)
		}
	})
	t.Run("a delayed message blocks nobody", func(t *testing.T) {
		t.Parallel()
		w := newWorldOn(t, b, delayed, func(s *topology.Spec) { s.Retry.DelayMin, s.Retry.DelayMax = 10*time.Minute, 20*time.Minute })
		var c calls
		l := w.consume(redeliver.Config{Workers: 1}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			switch m.ID {
			case "retried":
				c.note(m)
				return redeliver.Retry(errBoom)
			case "deferred":
				c.note(m)
				return redeliver.Defer()
			default:
				return redeliver.Ack()
			}
		})
		behind, later := ids(50), []string{"later 1", "later 2", "later 3"}
		w.publish(append([]string{"retried", "deferred"}, behind...)...)
		l.await(redeliver.EventAcked, len(behind))
		w.publish(later...)
		l.await(redeliver.EventAcked, len(behind)+len(later))
		l.mustStop()
		if len(c.at) != 2 {
			t.Errorf("the messages that wait for ten minutes were handed out %d times, want each once", len(c.at))
		}
		if s := l.Stats(); s.Retried != 1 || s.Deferred != 1 || s.Held != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("the delivery limit holds for what is delayed", func(t *testing.T) {
		t.Parallel()
		const limit = 3
		w := newWorldOn(t, b, delayed, func(s *topology.Spec) { s.Retry.MaxRetries, s.DeliveryLimit = 1, limit })
		w.publish("a")
		// No consumer of ours gets so far: this one stands for a process that dies of the message.
		deliveries, err := brokertest.Channel(t, b, w.vhost).Consume("orders", "", false, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		var c calls
		for n := range limit + 1 {
			select {
			case d := <-deliveries:
				c.note(&redeliver.Message{RetryCount: n})
				if err := d.Reject(true); err != nil {
					t.Fatal(err)
				}
			case <-time.After(waitTimeout):
				t.Fatalf("delivery %d did not come", n+1)
			}
		}
		gaps(t, &c, delayStep, 2*delayStep, delayMost)
		if reason := deathReason(w.drained("orders-dlq", "a")[0]); reason != "delivery_limit" {
			t.Errorf("x-death says %q", reason)
		}
	})
	t.Run("deferrals", func(t *testing.T) {
		t.Parallel()
		w := newWorldOn(t, b, delayed)
		var c calls
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			switch c.note(m) {
			case 0, 1, 4:
				return redeliver.Defer()
			case 2, 3:
				return redeliver.Retry(errBoom)
			default:
				return redeliver.Ack()
			}
		})
		w.publish("a")
		l.await(redeliver.EventAcked, 1)
		l.mustStop()
		if want := []int{0, 0, 0, 1, 2, 2}; !slices.Equal(c.counts, want) {
			t.Errorf("called with the retry counts %v, want %v", c.counts, want)
		}
		gaps(t, &c, delayStep, delayStep, delayStep, 2*delayStep, 2*delayStep)
		for i, e := range l.of(redeliver.EventDeferred) {
			if want := []time.Duration{delayStep, delayStep, 2 * delayStep}[i]; e.Delay != want {
				t.Errorf("deferral %d says %s, want %s", i+1, e.Delay, want)
			}
		}
	})
	t.Run("a lost connection delays what was prefetched", func(t *testing.T) {
		t.Parallel()
		w := newWorldOn(t, b, delayed)
		g := newGate()
		l := w.consume(redeliver.Config{Workers: 2}, g.handle)
		w.publish(ids(5)...)
		first, second := g.next(t), g.next(t)
		w.waitDepth("orders", 3) // prefetch is the number of workers
		lost := time.Now()
		w.closeConnections()
		l.await(redeliver.EventConnected, 2)
		first.answer <- redeliver.Ack()
		second.answer <- redeliver.Ack()
		l.await(redeliver.EventDropped, 2)
		for range 5 {
			call := g.next(t)
			again := call.msg.ID == first.msg.ID || call.msg.ID == second.msg.ID
			if again != (call.msg.RetryCount == 1) || again && time.Since(lost) < delayStep {
				t.Errorf("%s came after %s with the retry count %d", call.msg.ID, time.Since(lost), call.msg.RetryCount)
			}
			call.answer <- redeliver.Ack()
		}
		l.await(redeliver.EventAcked, 5)
		l.mustStop()
	})
}
