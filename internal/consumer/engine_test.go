package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
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

// The tests of the engine run in a bubble with a clock of its own (see
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
					if !reflect.DeepEqual(stats, tt.stats) {
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

// TestMaxHeld: past the bound a message that waits keeps its worker, and nothing
// is lost or handled more often for it. Health says so, and why it matters where
// messages were deferred, and so does the log, once a minute.
func TestMaxHeld(t *testing.T) {
	for name, tt := range map[string]struct {
		outcome redeliver.Outcome
		reason  string
		logged  string
	}{
		"retried": {
			redeliver.RetryAfter(time.Minute, errBoom),
			"as many messages wait as may (max_held 5): workers wait with theirs, and take in no more", "max_held=5 deferred=0",
		},
		"deferred": {
			redeliver.DeferFor(time.Minute),
			"as many messages wait as may (max_held 5), 5 of them deferred: what they wait for may be behind them in the queue; " +
				"raise MaxHeld, or Reject what waits too long", "max_held=5 deferred=5",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n, calls = 20, 11
				b := newFakeBroker()
				for i := range n {
					b.publish(message(fmt.Sprint(i)))
				}
				var log logBuffer
				var handled atomic.Int64
				var mu sync.Mutex
				times := make(map[string]int)
				r := run(t, setup{
					broker: b, config: redeliver.Config{Workers: 3, MaxHeld: 5, Logger: slog.New(slog.NewTextHandler(&log, nil))},
					handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
						handled.Add(1)
						mu.Lock()
						defer mu.Unlock()
						if times[m.ID]++; times[m.ID] == calls {
							return redeliver.Reject(errBoom)
						}
						return tt.outcome
					},
				})
				pass(time.Second)
				if handled.Load() != 8 || r.Stats().Held != 5 {
					t.Errorf("%d handled and %d held; want 8 (5 held, 3 with their workers) and 5", handled.Load(), r.Stats().Held)
				}
				if h := r.Health(); h.Status != redeliver.HealthDegraded || !slices.Equal(h.Reasons, []string{tt.reason}) {
					t.Errorf("health %+v, want the reason %q", h, tt.reason)
				}
				told := func() int {
					return strings.Count(log.String(), `level=WARN msg="as many messages wait as may`)
				}
				if told() != 1 || !strings.Contains(log.String(), tt.logged) {
					t.Errorf("the log says it %d times, want once with %q:\n%s", told(), tt.logged, log.String())
				}
				pass(2 * time.Minute)
				if n := told(); n < 2 || n > 3 {
					t.Errorf("after two minutes more the log has said it %d times", n)
				}
				pass(24 * time.Hour)
				if s := r.Stats(); s.DeadLettered != n || handled.Load() != n*calls {
					t.Errorf("%d handled, %+v", handled.Load(), s)
				}
				if h := r.Health(); h.Status != redeliver.HealthOK {
					t.Errorf("at the end: health %+v", h)
				}
				if err := r.wait(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
