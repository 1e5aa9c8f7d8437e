package redelivertest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redelivertest"
)

var errBoom = errors.New("boom")

// warehouse is what an application's test would have in the place of the real
// one.
type warehouse struct {
	mu      sync.Mutex
	closed  bool
	shipped []string
}

func (w *warehouse) handle(_ context.Context, msg *redeliver.Message) redeliver.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return redeliver.Retry(errors.New("the warehouse is closed"))
	}
	w.shipped = append(w.shipped, msg.ID)
	return redeliver.Ack()
}

func (w *warehouse) open(open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = !open
}

// always is a handler that says the same of every message.
func always(o redeliver.Outcome) redeliver.Handler {
	return redeliver.HandlerFunc(func(context.Context, *redeliver.Message) redeliver.Outcome { return o })
}

// TestRetry: a message that fails twice is handled for the third time after the
// policy's first two delays, whatever the strategy.
func TestRetry(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"in_place", "republish", "hybrid"} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			b := redelivertest.New(t, redelivertest.Manifest(t, redelivertest.Topic{Strategy: strategy})) // 5s, 30s, 2m
			w := &warehouse{closed: true}
			c := b.Consume(redeliver.Config{}, redeliver.HandlerFunc(w.handle))

			b.Publish(redeliver.Message{ID: "1"})
			b.Advance(5 * time.Second)
			w.open(true)
			b.Advance(30*time.Second - time.Millisecond)
			if len(w.shipped) > 0 {
				t.Error("shipped before the second delay was over")
			}
			b.Advance(time.Millisecond)
			if !slices.Equal(w.shipped, []string{"1"}) {
				t.Errorf("shipped %q", w.shipped)
			}
			if s := c.Stats(); s.Handled != 3 || s.Retried != 2 || s.Acked != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestDeadLetters: a message that always fails is in the dead-letter queue after
// the last retry, with its history.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	b := redelivertest.New(t, redelivertest.Manifest(t, redelivertest.Topic{MaxRetries: 3}))
	b.Consume(redeliver.Config{}, always(redeliver.Retry(errBoom)))
	b.Publish(redeliver.Message{ID: "1", Body: []byte("one")})
	if took := b.Finish(); took != 5*time.Second+30*time.Second+2*time.Minute {
		t.Errorf("given up after %s", took)
	}
	dead := b.Dead()
	if len(dead) != 1 || dead[0].Reason != "rejected" || dead[0].OriginalQueue != "orders" || string(dead[0].Body) != "one" {
		t.Fatalf("%+v", dead)
	}
	if deaths := dead[0].Headers["x-death"].([]any); deaths[0].(map[string]any)["count"] != int64(1) {
		t.Errorf("x-death %v", deaths)
	}
}

// TestParked: a body that does not decode never reaches the handler.
func TestParked(t *testing.T) {
	t.Parallel()
	b := redelivertest.New(t, redelivertest.Manifest(t, redelivertest.Topic{ParkedQueue: true}))
	type order struct{ N int }
	b.Consume(redeliver.Config{}, redeliver.JSON(func(context.Context, order, *redeliver.Message) redeliver.Outcome {
		t.Error("the handler was called")
		return redeliver.Ack()
	}))
	b.Publish(redeliver.Message{ID: "1", Body: []byte("{")})
	if parked := b.Parked(); len(parked) != 1 || !strings.Contains(parked[0].LastError, "does not decode") {
		t.Errorf("%+v", parked)
	}
}

// TestAge: a message that is too old is not retried. Its age is told by the
// broker's clock.
func TestAge(t *testing.T) {
	t.Parallel()
	b := redelivertest.New(t, redelivertest.Manifest(t, redelivertest.Topic{GiveUpAfter: time.Minute, Delays: []time.Duration{25 * time.Second}}),
		redelivertest.Start(time.Date(2024, time.February, 29, 12, 0, 0, 0, time.UTC)))
	c := b.Consume(redeliver.Config{}, always(redeliver.Retry(errBoom)))
	b.Publish(redeliver.Message{ID: "1", Timestamp: b.Now()})
	if b.Finish(); len(b.Dead()) != 1 || c.Stats().Handled != 4 || c.Stats().TooOld != 1 {
		t.Errorf("%+v", c.Stats())
	}
	if want := time.Date(2024, time.February, 29, 12, 1, 15, 0, time.UTC); !b.Now().Equal(want) {
		t.Errorf("it is %s, want %s", b.Now(), want)
	}
}

// TestDisconnect: a lost connection hands messages out again, and on a quorum
// queue that counts as a retry.
func TestDisconnect(t *testing.T) {
	t.Parallel()
	b := redelivertest.New(t, redelivertest.Manifest(t, redelivertest.Topic{}))
	var counts []int
	c := b.Consume(redeliver.Config{}, redeliver.HandlerFunc(func(_ context.Context, msg *redeliver.Message) redeliver.Outcome {
		if counts = append(counts, msg.RetryCount); len(counts) == 1 {
			return redeliver.Defer()
		}
		return redeliver.Ack()
	}))
	b.Publish(redeliver.Message{ID: "1"})
	b.Wait()
	b.Disconnect()
	if h := c.Health(); h.Status != redeliver.HealthDown {
		t.Errorf("%+v", h)
	}
	b.Advance(time.Second) // the consumer connects again
	if s := c.Stats(); !slices.Equal(counts, []int{0, 1}) || s.Dropped != 1 || s.Reconnects != 1 {
		t.Errorf("handled with %v; %+v", counts, s)
	}
}

// TestHoldQueueMissing: under hybrid a wait happens in the consumer where its
// hold queue is missing. It is looked for again a minute later.
func TestHoldQueueMissing(t *testing.T) {
	t.Parallel()
	b := redelivertest.New(t, redelivertest.Manifest(t, redelivertest.Topic{Strategy: "hybrid", Delays: []time.Duration{time.Minute}}))
	c := b.Consume(redeliver.Config{}, always(redeliver.Retry(errBoom)))
	b.Remove("orders-hold-60s")
	b.Publish(redeliver.Message{ID: "1"})
	if h := c.Health(); h.Status != redeliver.HealthDegraded || !strings.Contains(h.Reasons[0], `"orders-hold-60s" is missing`) {
		t.Errorf("%+v", h)
	}
	b.Restore("orders-hold-60s")
	b.Advance(time.Minute)
	if s := c.Stats(); s.Handled != 2 || s.HoldQueueMissing != 1 || s.Republished != 1 || len(b.Messages("orders-hold-60s")) != 1 {
		t.Errorf("%+v", s)
	}
	if h := c.Health(); h.Status != redeliver.HealthOK {
		t.Errorf("%+v", h)
	}
}

// TestHandleDead: dead letters are handled like messages, and what is repaired
// is published again.
func TestHandleDead(t *testing.T) {
	t.Parallel()
	b := redelivertest.New(t, redelivertest.Manifest(t, redelivertest.Topic{}))
	w := &warehouse{}
	b.Consume(redeliver.Config{}, redeliver.HandlerFunc(func(ctx context.Context, msg *redeliver.Message) redeliver.Outcome {
		if len(msg.Body) == 0 {
			return redeliver.Reject(errors.New("there is no address"))
		}
		return w.handle(ctx, msg)
	}))
	tries := 0
	dead := b.HandleDead(func(_ context.Context, msg *redeliver.DeadMessage) error {
		if tries++; tries == 1 {
			return errors.New("the address book is away")
		}
		b.Publish(redeliver.Message{ID: msg.ID, Body: []byte("an address")})
		return nil
	})
	b.Publish(redeliver.Message{ID: "1"})
	b.Finish()
	if s := dead.Stats(); !slices.Equal(w.shipped, []string{"1"}) || len(b.Dead()) != 0 || s.Handled != 2 || s.Acked != 1 {
		t.Errorf("shipped %q, dead %d, %+v", w.shipped, len(b.Dead()), s)
	}
}

// TestSequence: the messages of a key stay in order while one of them is
// retried.
func TestSequence(t *testing.T) {
	t.Parallel()
	for _, topic := range []redelivertest.Topic{{Sequenced: true}, {Sequenced: true, Convention: "shove", Shards: 4}} {
		b := redelivertest.New(t, redelivertest.Manifest(t, topic))
		var mu sync.Mutex
		handled := make(map[string][]string)
		cfg := redeliver.Config{Sequence: &redeliver.Sequence{Key: redeliver.KeyFromRoutingKey, OnFailure: redeliver.FailAll}}
		c := b.Consume(cfg, redeliver.HandlerFunc(func(_ context.Context, msg *redeliver.Message) redeliver.Outcome {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case msg.ID == "a1" && msg.RetryCount < 2:
				return redeliver.Retry(errBoom)
			case msg.ID == "b1":
				return redeliver.Reject(errBoom)
			}
			handled[msg.RoutingKey] = append(handled[msg.RoutingKey], msg.ID)
			return redeliver.Ack()
		}))
		for _, id := range []string{"a1", "b1", "c1", "a2", "b2", "c2"} {
			b.Publish(redeliver.Message{ID: id, RoutingKey: id[:1]})
		}
		b.Finish()
		if got := fmt.Sprint(handled); got != "map[a:[a1 a2] c:[c1 c2]]" {
			t.Errorf("handled %s", got)
		}
		if n := len(b.Dead()); n != 2 || c.Health().Status != redeliver.HealthDegraded {
			t.Errorf("%d dead letters, want b1 and b2; %+v", n, c.Health())
		}
		if !c.ResetSequence("b") || c.ResetSequence("a") {
			t.Error("the key b had failed, and a had not")
		}
		b.Publish(redeliver.Message{ID: "b3", RoutingKey: "b"})
		if b.Wait(); !slices.Equal(handled["b"], []string{"b3"}) {
			t.Errorf("after the reset %q was handled", handled["b"])
		}
	}
}

// TestTwoTopics: handlers of one topic publish to another on the same broker.
func TestTwoTopics(t *testing.T) {
	t.Parallel()
	orders := redelivertest.New(t, redelivertest.Manifest(t, redelivertest.Topic{}))
	bills := orders.With(redelivertest.Manifest(t, redelivertest.Topic{Name: "bills"}))
	orders.Consume(redeliver.Config{}, redeliver.HandlerFunc(func(_ context.Context, msg *redeliver.Message) redeliver.Outcome {
		bills.Publish(redeliver.Message{ID: "bill of " + msg.ID})
		return redeliver.Ack()
	}))
	bills.Consume(redeliver.Config{}, always(redeliver.Reject(errBoom)))
	orders.Publish(redeliver.Message{ID: "1"})
	if dead := bills.Dead(); len(dead) != 1 || dead[0].ID != "bill of 1" || dead[0].Topic != "bills" {
		t.Errorf("%+v", dead)
	}
}

// TestClose: a consumer that is closed gives back what waits, and the next one
// gets it.
func TestClose(t *testing.T) {
	t.Parallel()
	b := redelivertest.New(t, redelivertest.Manifest(t, redelivertest.Topic{}))
	first := b.Consume(redeliver.Config{}, always(redeliver.Retry(errBoom)))
	b.Publish(redeliver.Message{ID: "1"})
	b.Wait()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if s := first.Stats(); s.HandedBack != 1 || len(b.Messages("orders")) != 1 {
		t.Errorf("%+v", s)
	}
	w := &warehouse{}
	b.Consume(redeliver.Config{}, redeliver.HandlerFunc(w.handle))
	if b.Wait(); !slices.Equal(w.shipped, []string{"1"}) {
		t.Errorf("shipped %q", w.shipped)
	}
}

// TestTimeout: HandlerTimeout is measured by the machine's clock.
func TestTimeout(t *testing.T) {
	t.Parallel()
	b := redelivertest.New(t, redelivertest.Manifest(t, redelivertest.Topic{}))
	c := b.Consume(redeliver.Config{HandlerTimeout: time.Millisecond}, redeliver.HandlerFunc(func(ctx context.Context, _ *redeliver.Message) redeliver.Outcome {
		<-ctx.Done()
		return redeliver.Retry(ctx.Err())
	}))
	b.Publish(redeliver.Message{ID: "1"})
	if s := c.Stats(); s.TimedOut != 1 || s.Retried != 1 {
		t.Errorf("%+v", s)
	}
}
