package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// TestDrain: what was not started, what was deferred and what waits for a
// retry goes back at once; handlers are waited for; what they settle then is
// settled.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := []string{"retried", "deferred", "acks", "retries", "not started"}
		b := newFakeBroker()
		for _, id := range ids {
			b.publish(message(id))
		}
		r := run(t, setup{broker: b, config: redeliver.Config{Workers: 2}, handler: func(ctx context.Context, m *redeliver.Message) redeliver.Outcome {
			switch m.ID {
			case "retried":
				return redeliver.RetryAfter(10*time.Minute, errBoom)
			case "deferred":
				return redeliver.DeferFor(10 * time.Minute)
			case "acks":
				time.Sleep(5 * time.Second)
				return redeliver.Ack()
			case "retries":
				time.Sleep(6 * time.Second)
				if err := ctx.Err(); err != nil {
					t.Errorf("cancelled within a quarter of the drain timeout: %v", err)
				}
				return redeliver.Retry(errBoom)
			default:
				t.Errorf("%q was started", m.ID)
				return redeliver.Ack()
			}
		}})
		synctest.Wait()
		start := time.Now()
		if err := r.wait(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("drained in %s, want the 6s of the slowest handler", took)
		}
		want := map[string]Verb{"retried": VerbRequeue, "deferred": VerbHandBack, "not started": VerbHandBack, "acks": VerbAck, "retries": VerbRequeue}
		for id, verb := range want {
			if got := b.verbs(id); !slices.Equal(got, []Verb{verb}) {
				t.Errorf("%s settled with %v, want %v", id, got, verb)
			}
		}
		for _, s := range b.settled[:3] {
			if !s.at.Equal(start) {
				t.Errorf("%s was given back after %s, want at once", s.id, s.at.Sub(start))
			}
		}
		if s := r.Stats(); s.HandedBack != 4 || s.Held != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestDrainDeadline: a consumer closes on time whatever its handlers do, and
// names what it left.
func TestDrainDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(message("stubborn"), message("obedient"))
		release := make(chan struct{})
		var cancelled time.Time
		r := run(t, setup{broker: b, handler: func(ctx context.Context, m *redeliver.Message) redeliver.Outcome {
			if m.ID == "obedient" {
				<-ctx.Done()
				cancelled = time.Now()
				if !errors.Is(context.Cause(ctx), redeliver.ErrDraining) {
					t.Errorf("cancelled because %v", context.Cause(ctx))
				}
				return redeliver.Retry(ctx.Err())
			}
			<-release
			return redeliver.Ack()
		}})
		synctest.Wait()
		start := time.Now()
		err := r.wait()
		if took := time.Since(start); took > redeliver.DefaultDrainTimeout || took < redeliver.DefaultDrainTimeout-2*time.Second {
			t.Errorf("closed after %s", took)
		}
		if got := cancelled.Sub(start); got != 15*time.Second {
			t.Errorf("handlers were cancelled after %s, want three quarters of 20s", got)
		}
		var left *redeliver.DrainError
		if !errors.As(err, &left) || left.Topic != "orders" || len(left.Stranded) != 1 || left.Stranded[0].MessageID != "stubborn" ||
			left.Stranded[0].State != "handler" || !strings.Contains(err.Error(), `"stubborn"`) {
			t.Fatalf("error %v", err)
		}
		if !errors.Is(r.Close(), err) {
			t.Error("Close returns something else than Run")
		}
		if len(b.ready) != 2 {
			t.Errorf("%d messages in the queue, want both", len(b.ready))
		}
		close(release)
		synctest.Wait()
		if s := r.Stats(); s.Dropped != 1 || len(b.verbs("stubborn")) != 0 {
			t.Errorf("the late outcome was not dropped: %+v %v", s, b.verbs("stubborn"))
		}
	})
}

// TestDrainOfAHungConnection: writing to the broker blocks, and the consumer
// closes on time all the same.
func TestDrainOfAHungConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(message("a"), message("b"))
		b.hang = true
		r := run(t, setup{broker: b, handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			if m.ID == "a" {
				return redeliver.Ack()
			}
			return redeliver.DeferFor(time.Minute)
		}})
		synctest.Wait()
		start := time.Now()
		err := r.wait()
		if took := time.Since(start); took > redeliver.DefaultDrainTimeout {
			t.Errorf("closed after %s", took)
		}
		var left *redeliver.DrainError
		if !errors.As(err, &left) || len(left.Stranded) != 2 {
			t.Errorf("error %v, want one that names both messages", err)
		}
	})
}

func TestDrainWaitsForConfirms(t *testing.T) {
	for _, confirmed := range []bool{true, false} {
		t.Run(fmt.Sprintf("confirmed=%v", confirmed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &fakePublisher{hang: !confirmed, fail: func(int) error { time.Sleep(3 * time.Second); return nil }}
				b := newFakeBroker(message("a"))
				r := run(t, setup{broker: b, publisher: p, spec: parks, handler: func(context.Context, *redeliver.Message) redeliver.Outcome {
					return redeliver.Park(errBoom)
				}})
				synctest.Wait()
				err := r.wait()
				var left *redeliver.DrainError
				switch {
				case confirmed && (err != nil || !slices.Equal(b.verbs("a"), []Verb{VerbAck})):
					t.Errorf("%v, settled with %v", err, b.verbs("a"))
				case !confirmed && (!errors.As(err, &left) || left.Stranded[0].State != "confirm" || len(b.ready) != 1):
					t.Errorf("%v, settled with %v", err, b.verbs("a"))
				}
			})
		})
	}
}

func TestDrainWithoutAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(message("a"))
		r := run(t, setup{broker: b, handler: func(context.Context, *redeliver.Message) redeliver.Outcome {
			time.Sleep(10 * time.Second)
			return redeliver.Ack()
		}})
		synctest.Wait()
		b.mu.Lock()
		b.refusals = slices.Repeat([]error{errBoom}, 1000)
		b.mu.Unlock()
		b.lose()
		pass(time.Second)
		if err := r.wait(); err != nil {
			t.Error(err)
		}
		if s := r.Stats(); s.Dropped != 1 || s.Running != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestCloseWithoutRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(message("a"), message("b"))
		c, _ := newConsumer(t, setup{broker: b, handler: func(context.Context, *redeliver.Message) redeliver.Outcome {
			t.Error("handled")
			return redeliver.Ack()
		}})
		synctest.Wait()
		for range 2 {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if len(b.settled) != 2 || b.settled[0].verb != VerbHandBack || b.settled[1].verb != VerbHandBack {
			t.Errorf("settled: %v", b.settled)
		}
		if err := c.Run(t.Context()); !errors.Is(err, errClosed) {
			t.Errorf("Run after Close: %v", err)
		}
	})
}

func TestRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker()
		r := run(t, setup{broker: b, handler: func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() }})
		synctest.Wait()
		if err := r.Run(t.Context()); !errors.Is(err, errRunTwice) {
			t.Errorf("a second Run: %v", err)
		}
		closed := make(chan error, 1)
		go func() { closed <- r.Close() }()
		if err := <-r.done; err != nil {
			t.Error(err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := testManifest(t, nil)
	handler := redeliver.HandlerFunc(func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() })
	connect := func(topology.Manifest, topology.ManifestQueue, []*topology.ManifestTarget) (Transport, Publisher, error) {
		return newFakeBroker(), nil, nil
	}
	for name, o := range map[string]Options{
		"no manifest": {Handler: handler, Connect: connect},
		"no handler":  {Manifest: good, Connect: connect},
		"bad config":  {Manifest: good, Handler: handler, Connect: connect, Config: redeliver.Config{Workers: -1}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestNotStartedInTime: what no worker starts goes back before the broker's
// consumer timeout, and is delivered again.
func TestNotStartedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup{
			broker: newFakeBroker(message("slow"), message("a"), message("b")),
			config: redeliver.Config{Workers: 1},
			handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
				if m.ID == "slow" {
					time.Sleep(28 * time.Minute) // of 30, and 22.5 that a delivery may be held
				}
				return redeliver.Ack()
			},
		}
		c := run(t, s)
		pass(25 * time.Minute)
		back := c.events.of(redeliver.EventHandedBack)
		if len(back) != 2 || !errors.Is(back[0].Err, errNotStarted) {
			t.Errorf("handed back: %+v", back)
		}
		pass(time.Hour)
		if got := c.Stats(); got.Acked != 3 || got.HandedBack != 2 || got.SessionsLost != 0 {
			t.Errorf("%+v", got)
		}
		if err := c.wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestDrainCancelsFirst: what waits goes back after the cancel, so that it does
// not come again.
func TestDrainCancelsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup{
			broker: newFakeBroker(),
			config: redeliver.Config{Workers: 4, MaxHeld: 2},
			handler: func(context.Context, *redeliver.Message) redeliver.Outcome {
				return redeliver.RetryAfter(time.Minute, errBoom)
			},
		}
		s.broker.slowStop = 10 * time.Second
		for i := range 6 { // two are held, four workers wait with theirs
			s.broker.publish(message(fmt.Sprint(i)))
		}
		c := run(t, s)
		pass(time.Second)
		if err := c.wait(); err != nil {
			t.Error(err)
		}
		for i := range 6 {
			if verbs := s.broker.verbs(fmt.Sprint(i)); len(verbs) != 1 {
				t.Errorf("message %d was settled with %v, want once", i, verbs)
			}
		}
	})
}
