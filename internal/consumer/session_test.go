package consumer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// TestLostSession: what was held or not started is forgotten, a handler's
// outcome and acknowledgements on their way are dropped, and every message is
// handled again.
func TestLostSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(message("held"), message("running"), message("waiting"))
		b.refusals = nil
		release := make(chan struct{})
		var mu sync.Mutex
		seen := make(map[string][]int)
		r := run(t, setup{broker: b, config: redeliver.Config{Workers: 1}, handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			mu.Lock()
			seen[m.ID] = append(seen[m.ID], m.RetryCount)
			first := len(seen[m.ID]) == 1
			mu.Unlock()
			switch {
			case m.ID == "held" && first:
				return redeliver.Defer()
			case m.ID == "running" && first:
				<-release
			}
			return redeliver.Ack()
		}})
		synctest.Wait() // one is held, one runs, one waits for the worker
		b.mu.Lock()
		b.refusals = []error{errors.New("down"), errors.New("down")}
		b.session.unsent = 5 // of acknowledgements that waited for one another
		b.mu.Unlock()
		b.lose()
		pass(time.Minute)
		if b.opened != 2 {
			t.Fatalf("%d sessions, want 2", b.opened)
		}
		if s := r.Stats(); s.Dropped != 1+5 || s.SessionsLost != 1 || s.Reconnects != 1 || s.Held != 0 {
			t.Errorf("while a handler of the lost session runs: %+v", s)
		}
		close(release)
		pass(time.Minute)
		for _, id := range []string{"held", "running", "waiting"} {
			if want := []Verb{VerbAck}; !slices.Equal(b.verbs(id), want) {
				t.Errorf("%s settled with %v, want %v", id, b.verbs(id), want)
			}
		}
		if want := map[string][]int{"held": {0, 1}, "running": {0, 1}, "waiting": {1}}; fmt.Sprint(seen) != fmt.Sprint(want) {
			t.Errorf("handled with the retry counts %v, want %v", seen, want)
		}
		b.mu.Lock()
		b.session.unsent = 3
		b.mu.Unlock()
		if err := r.wait(); err != nil {
			t.Error(err)
		}
		if s := r.Stats(); s.Dropped != 2+5+3 || s.Acked != 3 {
			t.Errorf("at the end: %+v", s)
		}
	})
}

func TestGivesUpReconnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker()
		down := &redeliver.BindError{Kind: redeliver.ErrUnreachable}
		r := run(t, setup{broker: b, config: redeliver.Config{MaxReconnectAttempts: 3}, handler: func(context.Context, *redeliver.Message) redeliver.Outcome {
			return redeliver.Ack()
		}})
		b.mu.Lock()
		b.refusals = slices.Repeat([]error{down}, 10)
		b.mu.Unlock()
		b.lose()
		if err := <-r.done; !errors.Is(err, redeliver.ErrUnreachable) || len(b.refusals) != 7 {
			t.Errorf("after %d attempts: %v", 10-len(b.refusals), err)
		}
		if err := r.Close(); !errors.Is(err, redeliver.ErrUnreachable) {
			t.Errorf("Close: %v", err)
		}
	})
}

// TestReconnectPauses: the pauses between attempts to connect grow from a tenth
// of a second to half a minute and no further, no two consumers keep the same
// ones, and they begin again after a session that lasted.
func TestReconnectPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker()
		r := run(t, setup{broker: b, handler: func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() }})
		pass(time.Minute)
		// pauses loses the session, has so many attempts refused, and returns what was before each of them and the one that is not.
		pauses := func(refused int) (list []time.Duration) {
			b.mu.Lock()
			b.tried, b.refusals = []time.Time{time.Now()}, slices.Repeat([]error{errors.New("down")}, refused)
			b.mu.Unlock()
			b.lose()
			tried := func() []time.Time {
				b.mu.Lock()
				defer b.mu.Unlock()
				return slices.Clone(b.tried)
			}
			for last := time.Now(); r.Health().Status != redeliver.HealthOK || len(tried()) < refused+2; {
				if time.Since(last) > time.Hour {
					t.Fatalf("not connected again after %d attempts", len(tried())-1)
				}
				pass(10 * time.Millisecond)
			}
			at := tried()
			for i := range at[1:] {
				list = append(list, at[i+1].Sub(at[i]))
			}
			return list
		}
		first := pauses(60)
		distinct := make(map[time.Duration]bool)
		for i, pause := range first {
			most := 30 * time.Second
			if i < 9 {
				most = min(most, 100*time.Millisecond<<i)
			}
			if pause < most/2 || pause > most {
				t.Errorf("pause %d is %s, want %s to %s", i+1, pause, most/2, most)
			}
			distinct[pause.Truncate(time.Millisecond)] = true
		}
		if longest := first[9:]; len(distinct) < 50 || slices.Max(longest)-slices.Min(longest) < 5*time.Second {
			t.Errorf("consumers would come back at the same time: the pauses are %v", first)
		}
		if again := pauses(0); again[0] < 15*time.Second {
			t.Errorf("after a session that did not last the pause is %s", again[0])
		}
		pass(10 * time.Second)
		if again := pauses(1); again[0] > 100*time.Millisecond || again[1] > 200*time.Millisecond {
			t.Errorf("after a session that lasted the pauses are %s", again)
		}
		if err := r.wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestNothingIsLost lets random things happen: every message ends in exactly
// one place, and no message is with two handlers at a time unless its session
// was lost.
func TestNothingIsLost(t *testing.T) {
	for _, queue := range []string{"quorum", "classic"} {
		t.Run(queue, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 5000
				b := newFakeBroker()
				var all []*fakeMessage
				for i := range n {
					b.publish(message(fmt.Sprint(i)))
				}
				all = append(all, b.ready...)
				p := &fakePublisher{fail: func(n int) error {
					if n%3 == 0 {
						return errors.New("returned")
					}
					return nil
				}}
				handler := func(context.Context, *redeliver.Message) redeliver.Outcome {
					time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
					switch rand.IntN(12) {
					case 0:
						panic("boom")
					case 1, 2:
						return redeliver.Retry(errBoom)
					case 3:
						return redeliver.RetryAfter(time.Duration(rand.IntN(3000))*time.Millisecond, errBoom)
					case 4:
						return redeliver.Defer()
					case 5:
						return redeliver.Reject(errBoom)
					case 6:
						return redeliver.Park(errBoom)
					case 7:
						return redeliver.Outcome{}
					default:
						return redeliver.Ack()
					}
				}
				spec := func(s *topology.Spec) {
					if queue == "classic" {
						classic(s)
					} else {
						parks(s)
					}
				}
				finished := func() bool {
					b.mu.Lock()
					defer b.mu.Unlock()
					for _, m := range all {
						if !m.done {
							return false
						}
					}
					return true
				}
				runs := 0
				for !finished() && runs < 1000 {
					runs++
					r := run(t, setup{broker: b, publisher: p, handler: handler, spec: spec, config: redeliver.Config{Workers: 8, MaxHeld: 20}})
					for range 3 {
						pass(time.Duration(rand.IntN(20_000)) * time.Millisecond)
						b.lose()
					}
					pass(time.Duration(rand.IntN(60_000)) * time.Millisecond)
					if err := r.wait(); err != nil {
						t.Fatal(err)
					}
					if r.Stats().Running != 0 || len(b.session.unacked) != 0 && b.session.lost == nil {
						t.Fatalf("after a clean shutdown: %+v", r.Stats())
					}
				}
				if !finished() {
					t.Fatal("not finished")
				}
				ends := make(map[string]int)
				for _, s := range b.settled {
					if s.verb == VerbAck || s.verb == VerbDeadLetter {
						ends[s.id]++
					}
				}
				for id, times := range ends {
					if times != 1 {
						t.Errorf("message %s ended %d times", id, times)
					}
				}
				if len(ends) != n {
					t.Errorf("%d messages ended, want %d", len(ends), n)
				}
				t.Logf("%d runs, %d settlements", runs, len(b.settled))
			})
		})
	}
}
