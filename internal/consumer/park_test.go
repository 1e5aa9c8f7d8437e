package consumer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func TestParkPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := []error{errors.New("returned"), errors.New("refused")}
		p := &fakePublisher{fail: func(n int) error {
			if n < len(failures) {
				return failures[n]
			}
			return nil
		}}
		b := newFakeBroker(message("unreadable"))
		start := time.Now()
		r := run(t, setup{broker: b, publisher: p, spec: parks, handler: redeliver.JSON(func(context.Context, struct{}, *redeliver.Message) redeliver.Outcome {
			t.Error("the handler saw an undecodable body")
			return redeliver.Ack()
		}).(redeliver.HandlerFunc)})
		pass(time.Hour)
		if want := []Verb{VerbAck}; !slices.Equal(b.verbs("unreadable"), want) {
			t.Errorf("settled with %v, want %v", b.verbs("unreadable"), want)
		}
		if took := b.settled[0].at.Sub(start); took != 2*time.Second {
			t.Errorf("settled after %s, want two waits of the first tier, 1s each", took)
		}
		if len(p.copies) != 1 || p.copies[0].Target.Name != "orders-parked" {
			t.Fatalf("copies: %+v", p.copies)
		}
		if reason, _ := p.copies[0].Set["x-redeliver-error"].(string); !strings.Contains(reason, "does not decode as JSON") {
			t.Errorf("reason header: %q", reason)
		}
		if s := r.Stats(); s.Parked != 1 || s.SetAsideFailed != 2 || s.Undecodable != 1 || s.DeadLettered != 0 {
			t.Errorf("%+v", s)
		}
		if got := r.events.of(redeliver.EventSetAsideFailed); len(got) != 2 || got[0].Delay != time.Second {
			t.Errorf("events: %+v", got)
		}
		if err := r.wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestParkedQueueMissing: a copy that is never taken keeps its message, which
// goes back to the broker before the consumer timeout, again and again.
func TestParkedQueueMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakePublisher{fail: func(int) error { return errors.New("returned") }}
		b := newFakeBroker(message("a"))
		start := time.Now()
		r := run(t, setup{broker: b, publisher: p, spec: parks, handler: func(context.Context, *redeliver.Message) redeliver.Outcome {
			return redeliver.Park(errBoom)
		}})
		pass(23 * time.Minute)
		if want := []Verb{VerbHandBack}; !slices.Equal(b.verbs("a"), want) {
			t.Errorf("settled with %v, want %v", b.verbs("a"), want)
		}
		if held := b.settled[0].at.Sub(start); held != 22*time.Minute+30*time.Second {
			t.Errorf("handed back after %s, want three quarters of the half hour", held)
		}
		if s := r.Stats(); s.HandedBack != 1 || s.SetAsideFailed == 0 || s.Parked+s.DeadLettered+s.Acked != 0 {
			t.Errorf("%+v", s)
		}
		if err := r.wait(); err != nil {
			t.Error(err)
		}
		if len(b.ready) != 1 {
			t.Errorf("%d messages in the queue, want the one", len(b.ready))
		}
	})
}
