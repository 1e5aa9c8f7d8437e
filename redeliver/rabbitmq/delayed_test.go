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

// The broker's delays in these tests: 300 ms for each retry, 700 ms at most.
const (
	delayStep = 300 * time.Millisecond
	delayMost = 700 * time.Millisecond
)

func delayed(s *topology.Spec) {
	s.Retry = topology.RetryPolicy{Strategy: topology.BrokerDelayed, MaxRetries: 4, DelayMin: delayStep, DelayMax: delayMost}
}

// TestBrokerDelayed: RabbitMQ 4.3 delays what comes back, by min(300 ms * retries, 700 ms), and never less.
func TestBrokerDelayed(t *testing.T) {
	t.Parallel()
	b := brokertest.AtLeast(t, "4.3")
	gaps := func(t *testing.T, c *calls, want ...time.Duration) {
		t.Helper()
		if len(c.at) != len(want)+1 {
			t.Fatalf("called %d times with the retry counts %v, want %d", len(c.at), c.counts, len(want)+1)
		}
		for i, least := range want {
			if gap := c.at[i+1].Sub(c.at[i]); gap < least || gap > least+10*time.Second {
				t.Errorf("call %d came after %s, want %s", i+2, gap, least)
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
			if m.ID == "other" {
				return redeliver.Ack()
			}
			c.note(m)
			return redeliver.Retry(errBoom)
		})
		w.publish("a")
		l.await(redeliver.EventRetried, 1)
		w.publish("other")
		l.await(redeliver.EventAcked, 1)
		if n := len(l.of(redeliver.EventRetried)); n > 3 {
			t.Errorf("a delayed message held up another one: it was retried %d times before", n)
		}
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
