package consumer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// The tests in this file run in a bubble with a clock of its own (see
// testing/synctest): time passes only when every goroutine waits, so that an
// hour takes no time and delays can be compared exactly.

func classic(s *topology.Spec) { s.Convention, s.DeadLetterQueue = topology.Shove, "orders-dlq" }

func parks(s *topology.Spec) { s.ParkedQueue, s.Park = "orders-parked", topology.ParkPublish }

// attempts is a handler that notes when it was called with which retry count.
type attempts struct {
	mu     sync.Mutex
	at     []time.Duration
	counts []int
	start  time.Time
	answer func(n int, m *redeliver.Message) redeliver.Outcome // n calls came before
}

func (a *attempts) handle(_ context.Context, m *redeliver.Message) redeliver.Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.start.IsZero() {
		a.start = time.Now()
	}
	n := len(a.at)
	a.at, a.counts = append(a.at, time.Since(a.start)), append(a.counts, m.RetryCount)
	return a.answer(n, m)
}

func TestTiersAreWaited(t *testing.T) {
	ladder := func(s *topology.Spec) {
		s.Retry.Delays = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}
	}
	fail := func(int, *redeliver.Message) redeliver.Outcome { return redeliver.Retry(errBoom) }
	tests := map[string]struct {
		spec    func(*topology.Spec)
		answer  func(int, *redeliver.Message) redeliver.Outcome
		counts  []int
		at      []int // when it was called, in seconds
		verbs   []Verb
		classic []Verb // where it differs
		stats   redeliver.Stats
	}{
		"always fails": {
			answer: fail,
			counts: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
			at:     []int{0, 5, 35, 155, 275, 395, 515, 635, 755, 875, 995},
			verbs:  append(slices.Repeat([]Verb{VerbRequeue}, 10), VerbDeadLetter), classic: []Verb{VerbDeadLetter},
			stats: redeliver.Stats{Retried: 10, DeadLettered: 1, Exhausted: 1, Handled: 11},
		},
		"succeeds on attempt 4": {
			answer: func(n int, _ *redeliver.Message) redeliver.Outcome {
				if n < 3 {
					return redeliver.Retry(errBoom)
				}
				return redeliver.Ack()
			},
			counts: []int{0, 1, 2, 3}, at: []int{0, 5, 35, 155},
			verbs: []Verb{VerbRequeue, VerbRequeue, VerbRequeue, VerbAck}, classic: []Verb{VerbAck},
			stats: redeliver.Stats{Retried: 3, Acked: 1, Handled: 4},
		},
		"defers twice": {
			answer: func(n int, _ *redeliver.Message) redeliver.Outcome {
				if n < 2 {
					return redeliver.Defer()
				}
				return redeliver.Ack()
			},
			counts: []int{0, 0, 0}, at: []int{0, 5, 10}, verbs: []Verb{VerbAck}, classic: []Verb{VerbAck},
			stats: redeliver.Stats{Deferred: 2, Acked: 1, Handled: 3},
		},
		"defers between retries": {
			answer: func(n int, _ *redeliver.Message) redeliver.Outcome {
				return []redeliver.Outcome{redeliver.Retry(errBoom), redeliver.Defer(), redeliver.Retry(errBoom), redeliver.Ack()}[n]
			},
			counts: []int{0, 1, 1, 2}, at: []int{0, 5, 10, 40}, verbs: []Verb{VerbRequeue, VerbRequeue, VerbAck}, classic: []Verb{VerbAck},
			stats: redeliver.Stats{Retried: 2, Deferred: 1, Acked: 1, Handled: 4},
		},
		"asks for delays": {
			answer: func(n int, _ *redeliver.Message) redeliver.Outcome {
				return []redeliver.Outcome{redeliver.RetryAfter(7*time.Second, errBoom), redeliver.DeferFor(20 * time.Minute), redeliver.Ack()}[n]
			},
			counts: []int{0, 1, 1}, at: []int{0, 7, 1207}, verbs: []Verb{VerbRequeue, VerbAck}, classic: []Verb{VerbAck},
			stats: redeliver.Stats{Retried: 1, Deferred: 1, Acked: 1, Handled: 3},
		},
		"asks for more than can be waited": {
			answer: func(int, *redeliver.Message) redeliver.Outcome { return redeliver.RetryAfter(23*time.Minute, errBoom) },
			counts: []int{0}, at: []int{0}, verbs: []Verb{VerbDeadLetter}, classic: []Verb{VerbDeadLetter},
			stats: redeliver.Stats{DeadLettered: 1, DelayTooLong: 1, Handled: 1},
		},
		"returns no outcome": {
			answer: func(n int, _ *redeliver.Message) redeliver.Outcome {
				if n == 0 {
					return redeliver.Outcome{}
				}
				return redeliver.Reject(errBoom)
			},
			counts: []int{0, 1}, at: []int{0, 5}, verbs: []Verb{VerbRequeue, VerbDeadLetter}, classic: []Verb{VerbDeadLetter},
			stats: redeliver.Stats{Retried: 1, DeadLettered: 1, Handled: 2},
		},
		"parks without a parked queue": {
			answer: func(int, *redeliver.Message) redeliver.Outcome { return redeliver.Park(errBoom) },
			counts: []int{0}, at: []int{0}, verbs: []Verb{VerbDeadLetter}, classic: []Verb{VerbDeadLetter},
			stats: redeliver.Stats{DeadLettered: 1, Handled: 1},
		},
		"has no dead-letter queue": {
			spec:   func(s *topology.Spec) { s.DeadLetterQueue, s.AllowMessageLoss, s.Retry.MaxRetries = "", true, 1 },
			answer: fail,
			counts: []int{0, 1}, at: []int{0, 5}, verbs: []Verb{VerbRequeue, VerbDeadLetter}, classic: []Verb{VerbDeadLetter},
			stats: redeliver.Stats{Retried: 1, Discarded: 1, Exhausted: 1, Handled: 2},
		},
	}
	for _, queue := range []string{"quorum", "classic"} {
		for name, tt := range tests {
			t.Run(queue+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := &attempts{answer: tt.answer}
					b := newFakeBroker(message("a"))
					r := run(t, setup{broker: b, handler: a.handle, spec: func(s *topology.Spec) {
						if queue == "classic" {
							classic(s)
						}
						ladder(s)
						if tt.spec != nil {
							tt.spec(s)
						}
					}})
					pass(time.Hour)
					want := tt.verbs
					if queue == "classic" {
						want = tt.classic
					}
					if got := b.verbs("a"); !slices.Equal(got, want) {
						t.Errorf("settled with %v, want %v", got, want)
					}
					if !slices.Equal(a.counts, tt.counts) {
						t.Errorf("retry counts %v, want %v", a.counts, tt.counts)
					}
					seconds := make([]int, len(a.at))
					for i, at := range a.at {
						seconds[i] = int(at / time.Second)
					}
					if !slices.Equal(seconds, tt.at) {
						t.Errorf("called after %v seconds, want %v", seconds, tt.at)
					}
					stats := r.Stats()
					stats.Delivered = 0
					if stats != tt.stats {
						t.Errorf("stats %+v\nwant  %+v", stats, tt.stats)
					}
					if err := r.wait(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// TestLongWaitsAreHandedBack: a wait that does not fit under the consumer
// timeout ends early, a deferred message's without being counted.
func TestLongWaitsAreHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(message("a"))
		a := &attempts{answer: func(n int, _ *redeliver.Message) redeliver.Outcome {
			if n < 2 {
				return redeliver.Defer()
			}
			return redeliver.Ack()
		}}
		r := run(t, setup{broker: b, handler: a.handle, spec: func(s *topology.Spec) { s.Retry.Delays = []time.Duration{15 * time.Minute} }})
		pass(24 * time.Hour)
		// 15 minutes held, then 7.5 of 15, which is three quarters of the half hour.
		if want := []time.Duration{0, 15 * time.Minute, 22*time.Minute + 30*time.Second}; !slices.Equal(a.at, want) {
			t.Errorf("called after %v, want %v", a.at, want)
		}
		if want := []Verb{VerbHandBack, VerbAck}; !slices.Equal(b.verbs("a"), want) {
			t.Errorf("settled with %v, want %v", b.verbs("a"), want)
		}
		if s := r.Stats(); s.HandedBack != 1 || s.Deferred != 2 {
			t.Errorf("%+v", s)
		}
		if err := r.wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestTimeInTheBufferCounts: a message that waited for a worker has less time
// left to be held.
func TestTimeInTheBufferCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(message("slow"), message("next"))
		var reason error
		r := run(t, setup{broker: b, config: redeliver.Config{Workers: 1}, handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			if m.ID == "slow" {
				time.Sleep(20 * time.Minute)
				return redeliver.Ack()
			}
			return redeliver.RetryAfter(3*time.Minute, errBoom)
		}})
		pass(time.Hour)
		for _, e := range r.events.of(redeliver.EventDeadLettered) {
			reason = e.Err
		}
		var delay *redeliver.DelayError
		if !errors.As(reason, &delay) || delay.Possible != 2*time.Minute+30*time.Second {
			t.Errorf("dead-lettered because: %v", reason)
		}
		if err := r.wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestMaxHeld: past the bound a retry keeps its worker, and nothing is lost or
// handled more often for it.
func TestMaxHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20
		b := newFakeBroker()
		for i := range n {
			b.publish(message(fmt.Sprint(i)))
		}
		var handled atomic.Int64
		r := run(t, setup{broker: b, config: redeliver.Config{Workers: 3, MaxHeld: 5}, handler: func(context.Context, *redeliver.Message) redeliver.Outcome {
			handled.Add(1)
			return redeliver.RetryAfter(time.Minute, errBoom)
		}})
		pass(time.Second)
		if handled.Load() != 8 || r.Stats().Held != 5 {
			t.Errorf("%d handled and %d held; want 8 (5 held, 3 with their workers) and 5", handled.Load(), r.Stats().Held)
		}
		pass(24 * time.Hour)
		if s := r.Stats(); s.DeadLettered != n || handled.Load() != n*11 {
			t.Errorf("%d handled, %+v", handled.Load(), s)
		}
		if err := r.wait(); err != nil {
			t.Error(err)
		}
	})
}

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

func TestOversizeIsParkedUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(redeliver.Message{ID: "a", Body: make([]byte, 11)}, redeliver.Message{ID: "b", Body: make([]byte, 10)})
		r := run(t, setup{broker: b, config: redeliver.Config{MaxMessageSize: 10}, handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			if m.ID != "b" {
				t.Errorf("handled %q", m.ID)
			}
			return redeliver.Ack()
		}})
		synctest.Wait()
		if !slices.Equal(b.verbs("a"), []Verb{VerbDeadLetter}) || !slices.Equal(b.verbs("b"), []Verb{VerbAck}) {
			t.Errorf("settled: %v", b.settled)
		}
		if s := r.Stats(); s.Oversized != 1 || s.Handled != 1 {
			t.Errorf("%+v", s)
		}
		if err := r.wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestPanicAndGoexitAreRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(message("a"), message("b"), message("c"))
		r := run(t, setup{broker: b, config: redeliver.Config{Workers: 1}, handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			if m.RetryCount == 0 {
				switch m.ID {
				case "a":
					panic(errBoom)
				case "b":
					runtime.Goexit()
				case "c":
					panic(nil) //nolint:govet // a panic all the same
				}
			}
			return redeliver.Ack()
		}})
		pass(time.Minute)
		for _, id := range []string{"a", "b", "c"} {
			if want := []Verb{VerbRequeue, VerbAck}; !slices.Equal(b.verbs(id), want) {
				t.Errorf("%s settled with %v, want %v", id, b.verbs(id), want)
			}
		}
		if s := r.Stats(); s.Panicked != 3 || s.Running != 0 {
			t.Errorf("%+v", s)
		}
		var panicked *redeliver.PanicError
		first := r.events.of(redeliver.EventRetried)[0]
		if !errors.As(first.Err, &panicked) || !errors.Is(first.Err, errBoom) || !strings.Contains(string(panicked.Stack), "engine_test.go") {
			t.Errorf("reason of the retry: %v", first.Err)
		}
		if err := r.wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestHandlerTimeout(t *testing.T) {
	obey := func(ctx context.Context) redeliver.Outcome {
		<-ctx.Done()
		return redeliver.Retry(context.Cause(ctx))
	}
	tests := map[string]struct {
		config  redeliver.Outcome
		handler func(context.Context) redeliver.Outcome
		verbs   []Verb
		settled time.Duration
	}{
		"retried by default": {redeliver.Outcome{}, obey, []Verb{VerbRequeue}, 6 * time.Second},
		"rejected":           {redeliver.Reject(nil), obey, []Verb{VerbDeadLetter}, 5 * time.Second},
		"parked":             {redeliver.Park(nil), obey, []Verb{VerbDeadLetter}, 5 * time.Second},
		"retried later":      {redeliver.RetryAfter(30*time.Second, nil), obey, []Verb{VerbRequeue}, 35 * time.Second},
		"no outcome": {redeliver.Reject(nil), func(ctx context.Context) redeliver.Outcome {
			<-ctx.Done()
			return redeliver.Outcome{}
		}, []Verb{VerbDeadLetter}, 5 * time.Second},
		"late work is done work": {redeliver.Reject(nil), func(ctx context.Context) redeliver.Outcome {
			<-ctx.Done()
			return redeliver.Ack()
		}, []Verb{VerbAck}, 5 * time.Second},
		"ignored context": {redeliver.Reject(nil), func(context.Context) redeliver.Outcome {
			time.Sleep(10 * time.Second)
			return redeliver.Retry(errBoom)
		}, []Verb{VerbDeadLetter}, 10 * time.Second},
		"in time": {redeliver.Reject(nil), func(context.Context) redeliver.Outcome {
			time.Sleep(4 * time.Second)
			return redeliver.Retry(errBoom)
		}, []Verb{VerbRequeue}, 5 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFakeBroker(message("a"))
				start := time.Now()
				var cause error
				r := run(t, setup{
					broker: b, config: redeliver.Config{HandlerTimeout: 5 * time.Second, TimeoutOutcome: tt.config},
					handler: func(ctx context.Context, m *redeliver.Message) redeliver.Outcome {
						if m.RetryCount > 0 {
							return redeliver.Ack()
						}
						o := tt.handler(ctx)
						cause = context.Cause(ctx)
						return o
					},
				})
				pass(time.Minute)
				verbs := b.verbs("a")
				if tt.verbs[0] == VerbRequeue {
					tt.verbs = append(slices.Clone(tt.verbs), VerbAck)
				}
				if !slices.Equal(verbs, tt.verbs) {
					t.Fatalf("settled with %v, want %v", verbs, tt.verbs)
				}
				if got := b.settled[0].at.Sub(start); got != tt.settled {
					t.Errorf("settled after %s, want %s", got, tt.settled)
				}
				var timedOut *redeliver.TimeoutError
				if want := name != "in time"; errors.As(cause, &timedOut) != want || errors.Is(cause, context.DeadlineExceeded) != want || (r.Stats().TimedOut == 1) != want {
					t.Errorf("cause %v, stats %+v", cause, r.Stats())
				}
				if err := r.wait(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestLostSession: what was held or not started is forgotten, a handler's
// outcome is dropped, and every message is handled again.
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
		b.mu.Unlock()
		b.lose()
		pass(time.Minute)
		if b.opened != 2 {
			t.Fatalf("%d sessions, want 2", b.opened)
		}
		if s := r.Stats(); s.Dropped != 1 || s.SessionsLost != 1 || s.Reconnects != 1 || s.Held != 0 {
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
		if s := r.Stats(); s.Dropped != 2 || s.Acked != 3 {
			t.Errorf("at the end: %+v", s)
		}
		if err := r.wait(); err != nil {
			t.Error(err)
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
