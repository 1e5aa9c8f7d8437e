package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
)

// firstPause is how long a dead letter waits at least before it is handed out again.
const firstPause = 800 * time.Millisecond // a second, less the jitter

// handleDead runs a consumer of the dead-letter queue as a user that may read it and nothing else, until the test
// ends.
func (w *world) handleDead(cfg redeliver.Config, handler redeliver.DeadHandler) *live {
	w.t.Helper()
	w.user, w.pass = brokertest.User(w.t, w.broker, w.vhost, "^$", "^$", "^"+regexp.QuoteMeta(w.spec.DeadLetterQueue)+"$")
	l := &live{t: w.t, done: make(chan error, 1), more: make(chan struct{}), log: &lockedBuffer{}}
	cfg.OnEvent, cfg.Logger = l.record, slog.New(slog.NewTextHandler(l.log, nil))
	var err error
	if l.Consumer, err = rabbitmq.HandleDead(w.t.Context(), w.config(nil, cfg), handler); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = l.Close() // a test that cares has stopped it
		if w.t.Failed() {
			w.t.Logf("--- end of a consumer's log ---\n%s", l.log.tail())
		}
	})
	l.run()
	return l
}

// corpses are dead letters by id, as their handler got them.
type corpses struct {
	mu  sync.Mutex
	got map[string][]redeliver.DeadMessage
	at  map[string][]time.Time
}

// note returns how often the message came before.
func (c *corpses) note(m *redeliver.DeadMessage) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.got == nil {
		c.got, c.at = make(map[string][]redeliver.DeadMessage), make(map[string][]time.Time)
	}
	c.got[m.ID], c.at[m.ID] = append(c.got[m.ID], *m), append(c.at[m.ID], time.Now())
	return len(c.got[m.ID]) - 1
}

func (c *corpses) ids() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.got))
}

// TestHandleDeadKnowsWhy: the handler learns why and where a message failed, whoever set it aside and whatever the
// broker's version writes down.
func TestHandleDeadKnowsWhy(t *testing.T) {
	t.Parallel()
	held := func(strategy topology.Strategy) func(*topology.Spec) {
		return func(s *topology.Spec) {
			delays := []time.Duration{50 * time.Millisecond}
			s.Retry.Strategy, s.Retry.Delays, s.HoldDelays, s.Retry.Jitter = strategy, delays, delays, 0
			if strategy == topology.Hybrid {
				s.Retry.HoldFrom = time.Millisecond
			}
		}
	}
	twice := func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		if m.RetryCount == 0 {
			return redeliver.Retry(errBoom)
		}
		return redeliver.Reject(errBoom)
	}
	for name, tt := range map[string]struct {
		change  func(*topology.Spec)
		handler redeliver.HandlerFunc // nil: the message is given back until the broker gives it up
		want    redeliver.DeadMessage
	}{
		"rejected in place": {
			func(*topology.Spec) {}, twice,
			redeliver.DeadMessage{Reason: "rejected", OriginalQueue: "orders", OriginalRoutingKey: "orders", DeathCount: 1},
		},
		"rejected in a classic queue": {
			onClassic, twice,
			redeliver.DeadMessage{Reason: "rejected", OriginalQueue: "orders", OriginalRoutingKey: "orders", DeathCount: 1},
		},
		"given up by the broker": {
			func(*topology.Spec) {}, nil,
			redeliver.DeadMessage{Reason: "delivery_limit", OriginalQueue: "orders", OriginalRoutingKey: "orders", DeathCount: 1},
		},
		"published": {
			held(topology.Republish), twice,
			redeliver.DeadMessage{Reason: "rejected: boom", LastError: "rejected: boom", OriginalQueue: "orders", Attempts: 2},
		},
		"rejected after a hop": {
			held(topology.Hybrid), twice,
			redeliver.DeadMessage{Reason: "rejected", LastError: "boom", OriginalQueue: "orders", OriginalRoutingKey: "orders", DeathCount: 2, Attempts: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.change)
			w.publish("m1")
			if tt.handler != nil {
				l := w.consume(redeliver.Config{}, tt.handler)
				l.await(redeliver.EventDeadLettered, 1)
				l.mustStop()
			} else {
				w.exhaust("orders")
			}
			w.waitDepth(w.spec.DeadLetterQueue, 1)
			var c corpses
			l := w.handleDead(redeliver.Config{}, func(_ context.Context, m *redeliver.DeadMessage) error {
				c.note(m)
				return nil
			})
			l.await(redeliver.EventAcked, 1)
			l.mustStop()
			w.drained(w.spec.DeadLetterQueue)
			got := c.got["m1"][0]
			if got.Reason != tt.want.Reason || got.LastError != tt.want.LastError || got.DeathCount != tt.want.DeathCount || got.Attempts != tt.want.Attempts ||
				got.OriginalQueue != tt.want.OriginalQueue || got.OriginalExchange != "" || got.OriginalRoutingKey != tt.want.OriginalRoutingKey {
				t.Errorf("%+v", got)
			}
			if string(got.Body) != "m1" || got.Topic != "orders" {
				t.Errorf("body %q, topic %q", got.Body, got.Topic)
			}
			if len(got.Deaths) > 0 {
				if died := got.Deaths[0]; died.Queue != "orders" || died.Count != 1 || time.Since(died.Time).Abs() > waitTimeout || len(died.RoutingKeys) != 1 {
					t.Errorf("newest death: %+v", died)
				}
				if _, last := got.Headers["x-last-death-reason"]; last != brokertest.HasVersion(w.broker, "4.0") {
					t.Errorf("headers of RabbitMQ %s: %v", w.broker.Version(), got.Headers)
				}
			}
		})
	}
}

// exhaust gives the first message of a queue back until the broker dead-letters it.
func (w *world) exhaust(queue string) {
	w.t.Helper()
	ch := brokertest.Channel(w.t, w.broker, w.vhost)
	brokertest.WaitFor(w.t, func() (bool, string) {
		for {
			d, ok, err := ch.Get(queue, false)
			if err != nil {
				w.t.Fatal(err)
			}
			if !ok {
				depth := brokertest.Depth(w.t, w.broker, w.vhost, w.spec.DeadLetterQueue)
				return depth > 0, "the broker has not given it up"
			}
			if err := d.Reject(true); err != nil {
				w.t.Fatal(err)
			}
		}
	})
}

// dead publishes messages straight to the dead-letter queue.
func (w *world) dead(ids ...string) {
	w.t.Helper()
	msgs := make([]amqp091.Publishing, len(ids))
	for i, id := range ids {
		msgs[i] = amqp091.Publishing{MessageId: id, Body: []byte(id), DeliveryMode: amqp091.Persistent}
	}
	brokertest.Publish(w.t, w.broker, w.vhost, "", w.spec.DeadLetterQueue, msgs...)
	w.waitDepth(w.spec.DeadLetterQueue, len(ids))
}

// TestHandleDeadFailures: a message that was not dealt with comes again after a pause, whatever its handler's error
// says, and holds up no other.
func TestHandleDeadFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var c corpses
	w.dead("error", "permanent", "undecodable", "panic", "good")
	l := w.handleDead(redeliver.Config{Workers: 1, MaxRetries: redeliver.NoRetries}, func(_ context.Context, m *redeliver.DeadMessage) error {
		if c.note(m) > 0 {
			return nil
		}
		switch m.ID {
		case "error":
			return errBoom
		case "permanent":
			return redeliver.Permanent(errBoom)
		case "undecodable":
			return &redeliver.DecodeError{Into: "JSON", Err: errBoom}
		case "panic":
			panic(errBoom)
		default:
			return nil
		}
	})
	l.await(redeliver.EventAcked, 5)
	l.mustStop()
	w.drained(w.spec.DeadLetterQueue)
	for id, at := range c.at {
		switch {
		case id == "good" && len(at) == 1:
		case id != "good" && len(at) == 2 && at[1].Sub(at[0]) >= firstPause:
			if at[1].Before(c.at["good"][0]) {
				t.Errorf("%q held up another one", id)
			}
		default:
			t.Errorf("%q came at %v", id, at)
		}
	}
	if s := l.Stats(); s.DeadLettered+s.Discarded+s.Parked+s.HandedBack+s.SessionsLost != 0 || s.Retried != 4 {
		t.Errorf("%+v", s)
	}
}

// TestHandleDeadShutdown: what waits, what was not started, and what is being handled: a shutdown loses nothing of it.
func TestHandleDeadShutdown(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*topology.Spec){func(*topology.Spec) {}, onClassic} {
		w := newWorld(t, change)
		all := ids(60)
		w.dead(all...)
		var c corpses
		l := w.handleDead(redeliver.Config{Workers: 2, Prefetch: 20}, func(_ context.Context, m *redeliver.DeadMessage) error {
			c.note(m)
			if strings.HasSuffix(m.ID, "5") {
				return nil
			}
			return errBoom
		})
		l.await(redeliver.EventRetried, 18) // all that may wait, and workers wait with two more
		l.mustStop()
		acked := l.Stats().Acked
		left := slices.DeleteFunc(slices.Clone(all), func(id string) bool {
			return len(c.got[id]) > 0 && strings.HasSuffix(id, "5")
		})
		if int(acked) != len(all)-len(left) {
			t.Errorf("acked %d, handled %d", acked, len(all)-len(left))
		}
		w.drained(w.spec.DeadLetterQueue, left...)
	}
}

// TestHandleDeadLostConnection: after an operator closed the connection, every message is handled, and none is left.
func TestHandleDeadLostConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := ids(40)
	w.dead(all...)
	var c corpses
	hold := make(chan struct{})
	l := w.handleDead(redeliver.Config{Workers: 4}, func(_ context.Context, m *redeliver.DeadMessage) error {
		if n := c.note(m); n == 0 && strings.HasSuffix(m.ID, "3") {
			return errBoom // it waits when the connection is lost
		} else if n == 0 && strings.HasSuffix(m.ID, "7") {
			<-hold // it is being handled
		}
		return nil
	})
	l.await(redeliver.EventRetried, 3)
	w.closeConnections()
	l.await(redeliver.EventDisconnected, 1)
	close(hold)
	l.await(redeliver.EventConnected, 2)
	l.await(redeliver.EventAcked, len(all))
	w.waitDepth(w.spec.DeadLetterQueue, 0)
	l.mustStop()
	w.drained(w.spec.DeadLetterQueue)
	if got := c.ids(); !slices.Equal(got, all) {
		t.Errorf("handled %d of %d", len(got), len(all))
	}
}

// TestHandleDeadBrokerKilled: a broker that is killed while dead letters are handled, wait and are prefetched costs
// duplicates and nothing else.
func TestHandleDeadBrokerKilled(t *testing.T) {
	t.Parallel()
	w := newWorldOn(t, brokertest.Dedicated(t, brokertest.Options{}))
	if err := w.broker.Restart(t.Context()); err != nil { // as in TestBrokerKilled
		t.Fatal(err)
	}
	all := ids(300)
	w.dead(all...)
	var c corpses
	l := w.handleDead(redeliver.Config{Workers: 4}, func(_ context.Context, m *redeliver.DeadMessage) error {
		if n := c.note(m); n == 0 && strings.HasSuffix(m.ID, "3") {
			return errBoom
		}
		return nil
	})
	l.await(redeliver.EventAcked, 50)
	if err := w.broker.Kill(); err != nil {
		t.Fatal(err)
	}
	l.await(redeliver.EventDisconnected, 1)
	if err := w.broker.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.await(redeliver.EventConnected, 2)
	brokertest.WaitFor(t, func() (bool, string) {
		s := l.Stats()
		depth := brokertest.Depth(t, w.broker, w.vhost, w.spec.DeadLetterQueue)
		return depth == 0 && s.Held == 0 && s.Running == 0 && len(c.ids()) == len(all), fmt.Sprintf("%d left, %d handled; %+v", depth, len(c.ids()), s)
	})
	l.mustStop()
	w.drained(w.spec.DeadLetterQueue)
}

func TestHandleDeadErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	handler := func(context.Context, *redeliver.DeadMessage) error { return nil }
	refused := func(name string, cfg rabbitmq.Config, handler redeliver.DeadHandler, kind error, says ...string) {
		t.Helper()
		c, err := rabbitmq.HandleDead(t.Context(), cfg, handler)
		if err == nil {
			_ = c.Close()
			t.Errorf("%s: no error", name)
			return
		}
		if kind != nil && !errors.Is(err, kind) {
			t.Errorf("%s: %v, want %v", name, err, kind)
		}
		for _, text := range says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q does not say %q", name, err, text)
			}
		}
	}
	cfg := w.config(nil, redeliver.Config{})
	refused("no handler", cfg, nil, nil, "handler")
	refused("no manifest", rabbitmq.Config{URL: cfg.URL}, handler, redeliver.ErrNoManifest)
	refused("config", w.config(nil, redeliver.Config{Workers: -1}), handler, nil, "Workers")
	lossy := newWorld(t, func(s *topology.Spec) { s.AllowMessageLoss = true })
	refused("no dead-letter queue", lossy.config(nil, redeliver.Config{}), handler, nil, "orders", "no dead-letter queue")
	w.user, w.pass = brokertest.User(t, w.broker, w.vhost, "^$", "^$", "^orders$")
	refused("no permission", w.config(nil, redeliver.Config{}), handler, redeliver.ErrPermission, "orders-dlq", "read")
	w.user, w.pass = brokertest.User(t, w.broker, w.vhost, "^$", "^$", "^orders-dlq$")
	if _, err := brokertest.Channel(t, w.broker, w.vhost).QueueDelete(w.spec.DeadLetterQueue, false, false, false); err != nil {
		t.Fatal(err)
	}
	refused("no queue", w.config(nil, redeliver.Config{}), handler, redeliver.ErrQueueNotFound, "orders-dlq")
}
