package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func sequenced(s *topology.Spec) { s.Sequenced = true }

// byKey is the key of a message whose id is "key/number".
func byKey(m *redeliver.Message) string {
	key, _, _ := strings.Cut(m.ID, "/")
	return key
}

// journal is what handlers did, per key: each message once, in the order in
// which they were first handled to the end.
type journal struct {
	mu      sync.Mutex
	running map[string]bool
	done    map[string][]string
	wrong   []string
}

func newJournal() *journal {
	return &journal{running: make(map[string]bool), done: make(map[string][]string)}
}

func (j *journal) begin(m *redeliver.Message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	key := byKey(m)
	if j.running[key] {
		j.wrong = append(j.wrong, fmt.Sprintf("%s began while another message of its key was handled", m.ID))
	}
	j.running[key] = true
}

func (j *journal) end(m *redeliver.Message, done bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	key := byKey(m)
	j.running[key] = false
	if !done {
		return
	}
	if n := len(j.done[key]); n > 0 && j.done[key][n-1] > m.ID { // the same one again was done and not acknowledged in time
		j.wrong = append(j.wrong, fmt.Sprintf("%s was done after %s", m.ID, j.done[key][n-1]))
	}
	j.done[key] = append(j.done[key], m.ID)
}

// TestSequencedOrder: whatever fails, and however often the session is lost, the
// messages of a key are handled in order and one at a time.
func TestSequencedOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const keys, each = 7, 30
		j, r := newJournal(), rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		chance := func() float64 { mu.Lock(); defer mu.Unlock(); return r.Float64() }
		s := setup{
			spec:   sequenced,
			config: redeliver.Config{Workers: 4, Prefetch: 40, Sequence: &redeliver.Sequence{Key: byKey}},
			handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
				j.begin(m)
				time.Sleep(time.Duration(chance() * float64(time.Second)))
				o, done := redeliver.Ack(), true
				if m.RetryCount < 5 && chance() < 0.4 { // the budget is never spent: a session that is lost counts too
					o, done = redeliver.Retry(errBoom), false
					if chance() < 0.3 {
						o = redeliver.Defer()
					}
				}
				j.end(m, done)
				return o
			},
		}
		s.broker = newFakeBroker()
		for n := range each {
			for key := range keys {
				s.broker.publish(message(fmt.Sprintf("k%d/%03d", key, n)))
			}
		}
		c := run(t, s)
		for range 10 {
			pass(time.Duration(1+chance()*20) * time.Second)
			s.broker.lose()
		}
		pass(3 * time.Hour)
		if err := c.wait(); err != nil {
			t.Error(err)
		}
		for _, wrong := range j.wrong {
			t.Error(wrong)
		}
		for _, m := range s.broker.settled {
			if m.verb != VerbAck {
				t.Errorf("%s was settled with %s: a message of a sequenced topic never goes back", m.id, m.verb)
			}
		}
		if len(s.broker.ready) > 0 || len(c.lanes.lanes) > 0 {
			t.Errorf("%d messages and %d lanes are left", len(s.broker.ready), len(c.lanes.lanes))
		}
	})
}

// TestSequenceFailure: after a message that failed for good, its successors are
// handled, or fail too until the key is reset.
func TestSequenceFailure(t *testing.T) {
	t.Parallel()
	for mode, want := range map[redeliver.SequenceFailure]int{redeliver.SkipFailed: 2, redeliver.FailAll: 0} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				handled := make(map[string]int)
				var mu sync.Mutex
				s := setup{
					spec:   sequenced,
					broker: newFakeBroker(message("a/1"), message("a/2"), message("a/3"), message("b/1"), message("b/2")),
					config: redeliver.Config{Sequence: &redeliver.Sequence{Key: byKey, OnFailure: mode}},
					handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
						mu.Lock()
						handled[m.ID]++
						mu.Unlock()
						if m.ID == "a/1" {
							return redeliver.Reject(errBoom)
						}
						return redeliver.Ack()
					},
				}
				c := run(t, s)
				pass(time.Second)
				if got := handled["a/2"] + handled["a/3"]; got != want {
					t.Errorf("%d successors were handled, want %d", got, want)
				}
				if handled["b/1"] != 1 || handled["b/2"] != 1 {
					t.Errorf("another key was held up: %v", handled)
				}
				for _, e := range c.events.of(redeliver.EventDeadLettered) {
					if e.Message.ID != "a/1" && !errors.Is(e.Err, redeliver.ErrSequenceFailed) {
						t.Errorf("%s was dead-lettered because %v", e.Message.ID, e.Err)
					}
				}
				if mode == redeliver.FailAll {
					if h := c.Health(); h.Status != redeliver.HealthDegraded {
						t.Errorf("health %+v", h)
					}
					if !c.ResetSequence("a") || c.ResetSequence("a") || c.ResetSequence("b") {
						t.Error("a reset answers wrongly")
					}
					s.broker.publish(message("a/4"))
					pass(time.Second)
					if handled["a/4"] != 1 {
						t.Error("after the reset the key's messages still fail")
					}
				}
				if err := c.wait(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestSequenceFailureIsForgotten: a key that failed is handled again after the session was lost, also when that happens
// while its backlog is being dead-lettered.
func TestSequenceFailureIsForgotten(t *testing.T) {
	t.Parallel()
	for name, lostAt := range map[string]string{"afterwards": "", "amid the backlog": "a/2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var handled []string
				s := setup{
					spec:   sequenced,
					broker: newFakeBroker(message("a/1"), message("a/2"), message("a/3"), message("a/4")),
					handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
						mu.Lock()
						handled = append(handled, m.ID)
						mu.Unlock()
						if m.ID == "a/1" {
							return redeliver.Reject(errBoom)
						}
						return redeliver.Ack()
					},
				}
				s.config = redeliver.Config{
					Sequence: &redeliver.Sequence{Key: byKey, OnFailure: redeliver.FailAll},
					OnEvent: func(e redeliver.Event) {
						if e.Kind == redeliver.EventDeadLettered && e.Message.ID == lostAt {
							s.broker.lose()
						}
					},
				}
				c := run(t, s)
				pass(time.Minute)
				want := []string{"a/1", "a/3", "a/4", "a/5"} // what came again after the loss, and what came then
				if lostAt == "" {
					if h := c.Health(); !strings.Contains(strings.Join(h.Reasons, "\n"), "1 keys failed") {
						t.Errorf("health %+v", h)
					}
					s.broker.lose()
					want = []string{"a/1", "a/5"}
				}
				pass(time.Minute)
				s.broker.publish(message("a/5"))
				pass(time.Minute)
				if !slices.Equal(handled, want) {
					t.Errorf("handled %q, want %q", handled, want)
				}
				if h := c.Health(); h.Status != redeliver.HealthOK {
					t.Errorf("health %+v", h)
				}
				if err := c.wait(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestSequenceKeepsItsLane: a handler that does not return keeps its key, also
// across a lost session, and no other.
func TestSequenceKeepsItsLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release, calls := make(chan struct{}), make(chan string, 10)
		s := setup{
			spec:   sequenced,
			broker: newFakeBroker(message("a/1"), message("a/2"), message("b/1")),
			config: redeliver.Config{HandlerTimeout: time.Second, Sequence: &redeliver.Sequence{Key: byKey}},
			handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
				calls <- m.ID
				if m.ID == "a/1" {
					<-release
				}
				return redeliver.Ack()
			},
		}
		c := run(t, s)
		pass(time.Minute)
		s.broker.lose()
		pass(time.Minute)
		if got := []string{<-calls, <-calls}; got[0] == got[1] || len(calls) > 0 {
			t.Errorf("called with %v and %d more, want a/1 and b/1", got, len(calls))
		}
		close(release)
		pass(time.Minute)
		if got := []string{<-calls, <-calls}; got[0] != "a/1" || got[1] != "a/2" {
			t.Errorf("then called with %v, want a/1 again and a/2", got)
		}
		if err := c.wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestSequenceKeyThatPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup{
			spec: sequenced, broker: newFakeBroker(message("a/1"), message("b/1")),
			config: redeliver.Config{Sequence: &redeliver.Sequence{Key: func(m *redeliver.Message) string {
				if m.ID == "a/1" {
					panic("no key")
				}
				return m.ID
			}}},
			handler: func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() },
		}
		c := run(t, s)
		pass(time.Second)
		if got := c.Stats(); got.Acked != 1 || got.DeadLettered != 1 {
			t.Errorf("%+v", got)
		}
		if err := c.wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestSequenceResetWhileItFails: a key that is reset while its backlog is being
// dead-lettered stays reset.
func TestSequenceResetWhileItFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c *running
		var handled []string
		var resets int
		s := setup{
			spec:   sequenced,
			broker: newFakeBroker(message("a/1"), message("a/2"), message("a/3"), message("a/4")),
			handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
				if m.ID == "a/1" {
					return redeliver.Reject(errBoom)
				}
				handled = append(handled, m.ID)
				return redeliver.Ack()
			},
		}
		s.config = redeliver.Config{
			Sequence: &redeliver.Sequence{Key: byKey, OnFailure: redeliver.FailAll},
			OnEvent: func(e redeliver.Event) { // in the middle of the rejection of a/2
				if e.Kind == redeliver.EventDeadLettered && e.Message.ID == "a/2" && c.ResetSequence("a") {
					resets++
				}
			},
		}
		ready := make(chan struct{})
		answer := s.handler
		s.handler = func(ctx context.Context, m *redeliver.Message) redeliver.Outcome {
			<-ready
			return answer(ctx, m)
		}
		c = run(t, s)
		close(ready)
		pass(time.Second)
		if resets != 1 || len(handled) != 2 || handled[0] != "a/3" || handled[1] != "a/4" {
			t.Errorf("after %d resets %v were handled, want a/3 and a/4 after one", resets, handled)
		}
		if err := c.wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestSequenceOutlivesTheConsumerTimeout: an outage that is longer than a
// delivery may be held costs no message of the key its retries, and no order.
func TestSequenceOutlivesTheConsumerTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 12
		over := time.Now().Add(2 * time.Hour)
		calls := make(map[string]int)
		var done []string
		s := setup{
			spec: func(s *topology.Spec) {
				sequenced(s)
				s.Retry.Delays, s.Retry.MaxRetries = []time.Duration{time.Minute, 4 * time.Minute}, 5 // 17 minutes in all
			},
			broker: newFakeBroker(),
			config: redeliver.Config{Sequence: &redeliver.Sequence{Key: byKey}},
			handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
				calls[m.ID]++
				if time.Now().Before(over) {
					return redeliver.Retry(errBoom)
				}
				done = append(done, m.ID)
				return redeliver.Ack()
			},
		}
		for i := range n {
			s.broker.publish(message(fmt.Sprintf("a/%03d", i)))
		}
		c := run(t, s)
		pass(6 * time.Hour)
		stats := c.Stats()
		if stats.DelayTooLong != 0 || stats.SessionsLost == 0 {
			t.Errorf("%+v: want sessions that were renewed, and no message given up for lack of time", stats)
		}
		for _, e := range c.events.of(redeliver.EventDeadLettered) {
			if calls[e.Message.ID] < 2 {
				t.Errorf("%s was dead-lettered after %d calls", e.Message.ID, calls[e.Message.ID])
			}
		}
		if len(done) == 0 || !slices.IsSorted(done) || len(done)+int(stats.DeadLettered) != n {
			t.Errorf("done %v and %d dead-lettered, want all %d in order", done, stats.DeadLettered, n)
		}
		if err := c.wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestSequenceBehindASlowHandler: a message that waits behind another of its key,
// whose handler runs, reaches the consumer timeout too: the session is renewed
// before that, although no worker could take what waits.
func TestSequenceBehindASlowHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var done []string
		s := setup{
			spec: sequenced, broker: newFakeBroker(message("a/1"), message("a/2"), message("b/1")),
			config: redeliver.Config{Sequence: &redeliver.Sequence{Key: byKey}},
		}
		begun := time.Now()
		s.handler = func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			if m.ID == "a/1" && time.Since(begun) < time.Minute {
				time.Sleep(40 * time.Minute)
			}
			mu.Lock()
			defer mu.Unlock()
			done = append(done, m.ID)
			return redeliver.Ack()
		}
		c := run(t, s)
		pass(29 * time.Minute) // the consumer timeout is half an hour
		lost := c.events.of(redeliver.EventDisconnected)
		var why *LostError
		if len(lost) != 1 || !errors.As(lost[0].Err, &why) || why.Reason != LostRenewed || lost[0].Time.Sub(begun) < 22*time.Minute {
			t.Fatalf("the session ended %d times: %+v; want it renewed once, after three quarters of the consumer timeout", len(lost), lost)
		}
		pass(time.Hour)
		if want := []string{"b/1", "a/1", "a/1", "a/2"}; !slices.Equal(done, want) { // the first outcome of a/1 came too late
			t.Errorf("done %q, want %q", done, want)
		}
		if stats := c.Stats(); stats.Acked != 3 || stats.Dropped != 1 {
			t.Errorf("%+v", stats)
		}
		if err := c.wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestSequenceBacklogDegrades: health says when messages that wait behind others
// of their keys take up more than half of what is prefetched.
func TestSequenceBacklogDegrades(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := setup{
			spec: sequenced, broker: newFakeBroker(),
			config: redeliver.Config{Workers: 2, Prefetch: 10, Sequence: &redeliver.Sequence{Key: byKey}},
			handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
				if m.RetryCount == 0 {
					return redeliver.RetryAfter(time.Minute, errBoom)
				}
				return redeliver.Ack()
			},
		}
		c := run(t, s)
		for i := range 6 {
			s.broker.publish(message(fmt.Sprintf("a/%d", i)))
		}
		pass(time.Second)
		if h, n := c.Health(), c.Stats().Waiting; h.Status != redeliver.HealthOK || n != 5 {
			t.Errorf("while %d messages wait behind another, of 10 prefetched: health %+v", n, h)
		}
		s.broker.publish(message("a/6"))
		pass(time.Second)
		if h := c.Health(); h.Status != redeliver.HealthDegraded || len(h.Reasons) != 1 || !strings.Contains(h.Reasons[0], "6 of 10 prefetched messages wait behind others of their keys") {
			t.Errorf("while 6 messages wait behind another, of 10 prefetched: health %+v", h)
		}
		pass(time.Hour)
		if h := c.Health(); h.Status != redeliver.HealthOK {
			t.Errorf("at the end: health %+v", h)
		}
		if err := c.wait(); err != nil {
			t.Error(err)
		}
	})
}

// TestSequencedDeferWarns: a deferral that is carried out as a retry is not what
// the application asked for, so that the log warns of it and of no retry.
func TestSequencedDeferWarns(t *testing.T) {
	t.Parallel()
	for level, outcome := range map[string]redeliver.Outcome{"WARN": redeliver.Defer(), "INFO": redeliver.Retry(errBoom)} {
		synctest.Test(t, func(t *testing.T) {
			var log logBuffer
			s := setup{
				spec: sequenced, broker: newFakeBroker(message("a/1")),
				config: redeliver.Config{Logger: slog.New(slog.NewTextHandler(&log, nil)), Sequence: &redeliver.Sequence{Key: byKey}},
				handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
					if m.RetryCount == 0 {
						return outcome
					}
					return redeliver.Ack()
				},
			}
			c := run(t, s)
			pass(time.Minute)
			if want := fmt.Sprintf(`level=%s msg="message will be retried"`, level); strings.Count(log.String(), "message will be retried") != 1 || !strings.Contains(log.String(), want) {
				t.Errorf("the log of %s is not %s:\n%s", outcome, want, log.String())
			}
			if stats := c.Stats(); stats.Retried != 1 || stats.Deferred != 0 {
				t.Errorf("%+v", stats)
			}
			if err := c.wait(); err != nil {
				t.Error(err)
			}
		})
	}
}
