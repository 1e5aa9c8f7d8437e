package rabbitmq_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func sequenced(s *topology.Spec) {
	s.Sequenced = true
	s.Retry.Delays = []time.Duration{5 * time.Millisecond, 20 * time.Millisecond}
}

// sequence publishes so many messages of each key; the keys take turns, but for an exchange that spreads them by
// their routing key, which is the key.
func (w *world) sequence(exchange string, keys, each int) {
	w.t.Helper()
	var all []amqp091.Publishing
	byKey := make(map[string][]amqp091.Publishing)
	for n := range each {
		for k := range keys {
			key := fmt.Sprintf("k%d", k)
			msg := amqp091.Publishing{MessageId: fmt.Sprintf("%s/%d", key, n), Headers: amqp091.Table{"key": key}, DeliveryMode: amqp091.Persistent}
			all, byKey[key] = append(all, msg), append(byKey[key], msg)
		}
	}
	if exchange == "" {
		w.send(all...)
		return
	}
	for key, msgs := range byKey {
		brokertest.Publish(w.t, w.broker, w.vhost, exchange, key, msgs...)
	}
}

// TestSequenceOverFailovers: with two consumers of which one is active, the order of every key holds through random
// failures, lost connections and shutdowns.
func TestSequenceOverFailovers(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, w *world, keys, each int) {
		w.sequence(w.spec.SequenceExchangeName(), keys, each)
		o := newKeyOrder()
		consume := func(by string) *live {
			return w.consume(redeliver.Config{Sequence: &redeliver.Sequence{Key: redeliver.KeyFromHeader("key")}, Workers: 4, OnEvent: o.told(by)}, o.handler(by))
		}
		first, second := consume("first"), consume("second")
		o.awaitEnded(t, keys*each/4)
		w.closeConnections()
		o.awaitEnded(t, keys*each/2)
		first.mustStop()
		o.awaitEnded(t, keys*each*3/4)
		third := consume("third")
		second.mustStop()
		o.awaitEnded(t, keys*each)
		third.mustStop()
		o.report(t)
		lost := first.Stats().SessionsLost + second.Stats().SessionsLost
		t.Logf("%d sessions lost", lost)
		if most := 2 * 4 * int(lost+3) * (4 + redeliver.DefaultMaxHeld); o.again > most {
			t.Errorf("%d messages were handled again after they had ended", o.again)
		}
		for _, q := range w.doc.WorkQueues() {
			if depth := brokertest.Depth(t, w.broker, w.vhost, q.Name); depth != 0 {
				t.Errorf("%d messages are left in queue %q", depth, q.Name)
			}
		}
	}
	t.Run("quorum", func(t *testing.T) { t.Parallel(); run(t, newWorld(t, sequenced), 10, 150) })
	t.Run("shards", func(t *testing.T) {
		t.Parallel()
		b := brokertest.Dedicated(t, brokertest.Options{Plugins: []string{topology.ConsistentHashPlugin}})
		run(t, newWorldOn(t, b, sequenced, func(s *topology.Spec) {
			s.Convention, s.SequenceShards, s.Retry.Delays = topology.Shove, 3, []time.Duration{time.Second} // its shortest
		}), 12, 16)
	})
}

// TestSequenceFailures: after a message that failed for good the next one of its key is handled, or all of them are
// dead-lettered until the key is reset.
func TestSequenceFailures(t *testing.T) {
	t.Parallel()
	handle := func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		if m.ID == "k0/1" {
			return redeliver.Reject(errBoom)
		}
		return redeliver.Ack()
	}
	t.Run("skip", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, sequenced)
		l := w.consume(redeliver.Config{Sequence: &redeliver.Sequence{Key: redeliver.KeyFromHeader("key")}}, handle)
		w.sequence("", 2, 4)
		l.await(redeliver.EventAcked, 7)
		l.mustStop()
		w.drained("orders-dlq", "k0/1")
	})
	t.Run("fail_all", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, sequenced)
		l := w.consume(redeliver.Config{Sequence: &redeliver.Sequence{Key: redeliver.KeyFromHeader("key"), OnFailure: redeliver.FailAll}}, handle)
		w.sequence("", 2, 4)
		l.await(redeliver.EventAcked, 5)
		l.await(redeliver.EventDeadLettered, 3)
		if h := l.Health(); h.Status != redeliver.HealthDegraded || !strings.Contains(fmt.Sprint(h.Reasons), "1 keys failed") {
			t.Errorf("health %+v", h)
		}
		if l.ResetSequence("k1") || !l.ResetSequence("k0") || l.ResetSequence("k0") {
			t.Error("the reset of a key does not say whether it had failed")
		}
		w.drained("orders-dlq", "k0/1", "k0/2", "k0/3")
		w.sequence("", 2, 1)
		l.await(redeliver.EventAcked, 7)
		l.mustStop()
		w.drained("orders-dlq")
	})
	t.Run("fail_all until a failover", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, sequenced)
		cfg := redeliver.Config{Sequence: &redeliver.Sequence{Key: redeliver.KeyFromHeader("key"), OnFailure: redeliver.FailAll}}
		active, standby := w.consume(cfg, handle), w.consume(cfg, handle)
		failing := func(l *live) {
			t.Helper()
			w.sequence("", 2, 4) // k0/1 fails, and with it what follows
			l.await(redeliver.EventAcked, 5)
			l.await(redeliver.EventDeadLettered, 3)
			w.sequence("", 1, 1)
			l.await(redeliver.EventDeadLettered, 4)
			w.drained("orders-dlq", "k0/0", "k0/1", "k0/2", "k0/3")
			if h := l.Health(); !strings.Contains(fmt.Sprint(h.Reasons), "1 keys failed") {
				t.Errorf("health %+v", h)
			}
		}
		failing(active)
		active.mustStop() // and another consumer goes on
		failing(standby)
		w.closeConnections() // and the same consumer goes on
		standby.await(redeliver.EventConnected, 2)
		w.sequence("", 2, 1)
		standby.await(redeliver.EventAcked, 7)
		if h := standby.Health(); h.Status != redeliver.HealthOK {
			t.Errorf("health %+v", h)
		}
		standby.mustStop()
		w.drained("orders-dlq")
	})
}
