package sqs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest/fake"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// orderly is a handler that watches the order of the groups: a message is done
// when its handler acknowledged or rejected it.
type orderly struct {
	t    *testing.T
	mu   sync.Mutex
	next map[string]int // of each group
	with map[string]bool
	done int
	// rejects are what handlers gave up; counts are the retry counts of the first calls.
	rejects []string
	counts  map[string]int
}

func newOrderly(t *testing.T) *orderly {
	return &orderly{t: t, next: make(map[string]int), with: make(map[string]bool), counts: make(map[string]int)}
}

// member is a message's group, and its place there.
func member(body string) (group string, number int) {
	group, rest, _ := strings.Cut(body, "/")
	_, _ = fmt.Sscanf(rest, "%d", &number)
	return group, number
}

func (o *orderly) handle(decide func(m *redeliver.Message) redeliver.Outcome) redeliver.HandlerFunc {
	return func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		group, number := member(string(m.Body))
		o.mu.Lock()
		if m.RoutingKey != group {
			o.t.Errorf("%s is of group %q", m.Body, m.RoutingKey)
		}
		if o.with[group] {
			o.t.Errorf("two messages of group %s at a time", group)
		}
		if number != o.next[group] {
			o.t.Errorf("%s was handled, and the next one is %d", m.Body, o.next[group])
		}
		if _, seen := o.counts[string(m.Body)]; !seen {
			o.counts[string(m.Body)] = m.RetryCount
		}
		o.with[group] = true
		o.mu.Unlock()
		outcome := decide(m)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.with[group] = false
		switch outcome.Kind() {
		case redeliver.OutcomeReject:
			o.rejects = append(o.rejects, string(m.Body))
			fallthrough
		case redeliver.OutcomeAck:
			o.next[group]++
			o.done++
		}
		return outcome
	}
}

// grouped are n messages of each of so many groups.
func grouped(groups, n int) (list []string) {
	for i := range n {
		for g := range groups {
			list = append(list, fmt.Sprintf("g%d/%d", g, i))
		}
	}
	return list
}

// TestOrder: the order of every group is kept under random failures, and groups
// go on side by side.
func TestOrder(t *testing.T) {
	t.Parallel()
	w := onFaux(t, fifo)
	const groups, n = 8, 40
	w.publish(grouped(groups, n)...)
	o := newOrderly(t)
	decide := func(m *redeliver.Message) redeliver.Outcome {
		switch k := rand.IntN(20); {
		case k < 3 && m.RetryCount < worldRetries:
			return redeliver.RetryAfter(50*time.Millisecond, errBoom)
		case k < 4 && m.RetryCount < worldRetries:
			return redeliver.Defer()
		default:
			return redeliver.Ack()
		}
	}
	for restart := range 3 {
		l := w.consume(redeliver.Config{}, o.handle(decide))
		l.until(func() bool { o.mu.Lock(); defer o.mu.Unlock(); return o.done >= groups*n*(restart+1)/3 }, "all are done")
		l.mustStop()
	}
	if left := w.drained(w.doc.WorkQueue); len(left) > 0 {
		t.Errorf("left: %q", bodies(left))
	}
}

// TestGroupWaits: while a message waits for its retry, its group waits, and
// another one goes on; no message behind it spends a receive.
func TestGroupWaits(t *testing.T) {
	inFake(t, func(w *world) {
		o := newOrderly(t)
		w.publish(grouped(2, 15)...)
		l := w.consume(redeliver.Config{}, o.handle(func(m *redeliver.Message) redeliver.Outcome {
			if string(m.Body) == "g0/0" && m.RetryCount < 5 {
				return redeliver.RetryAfter(10*time.Minute, errBoom)
			}
			return redeliver.Ack()
		}))
		pass(5 * time.Minute)
		if o.next["g0"] != 0 || o.next["g1"] != 15 {
			t.Errorf("%v", o.next)
		}
		pass(time.Hour)
		if o.next["g0"] != 15 {
			t.Errorf("%v", o.next)
		}
		for body, count := range o.counts {
			if count != 0 {
				t.Errorf("%s had a retry count of %d when it was handled for the first time", body, count)
			}
		}
		l.mustStop()
	}, fifo)
}

// TestGroupAfterAFinalFailure: the messages behind one that is rejected are
// handled, in order, and were received once; none is moved to the dead-letter
// queue that no handler saw.
func TestGroupAfterAFinalFailure(t *testing.T) {
	inFake(t, func(w *world) {
		o := newOrderly(t)
		w.publish(grouped(2, 60)...)
		l := w.consume(redeliver.Config{}, o.handle(func(m *redeliver.Message) redeliver.Outcome {
			if _, n := member(string(m.Body)); n%20 == 0 {
				return redeliver.Reject(errBoom)
			}
			time.Sleep(100 * time.Millisecond)
			return redeliver.Ack()
		}))
		pass(10 * time.Minute)
		for body, count := range o.counts {
			if count != 0 {
				t.Errorf("%s was received %d times before it was handled", body, count)
			}
		}
		var dead []string
		for _, m := range w.fake.Messages("orders-dlq.fifo") {
			dead = append(dead, m.Body)
		}
		slices.Sort(dead)
		slices.Sort(o.rejects)
		if o.done != 120 || !slices.Equal(dead, o.rejects) || len(dead) != 6 {
			t.Errorf("%d done, dead letters %q", o.done, dead)
		}
		if left := w.fake.Messages("orders.fifo"); len(left) > 0 {
			t.Errorf("left: %+v", left)
		}
		l.mustStop()
	}, fifo)
}

// TestGroupWaitsTooLong: a wait that does not end within 12 hours gives all that
// is here back, in order, and it is received again.
func TestGroupWaitsTooLong(t *testing.T) {
	inFake(t, func(w *world) {
		o := newOrderly(t)
		w.publish(grouped(1, 4)...)
		var counts []int
		l := w.consume(redeliver.Config{}, o.handle(func(m *redeliver.Message) redeliver.Outcome {
			if string(m.Body) != "g0/0" {
				return redeliver.Ack()
			}
			if counts = append(counts, m.RetryCount); len(counts) > 1 {
				return redeliver.Ack()
			}
			time.Sleep(8 * time.Hour)
			return redeliver.Retry(errBoom)
		}))
		pass(13 * time.Hour)
		if s := l.Stats(); !slices.Equal(counts, []int{0, 1}) || o.done != 4 || s.Acked != 4 || s.SessionsLost != 1 || s.LeasesLost != 0 {
			t.Errorf("counts %v, done %d, %+v", counts, o.done, s)
		}
		l.mustStop()
	}, fifo, func(s *topology.SQSSpec) {
		s.Retry.Jitter, s.Retry.Delays, s.Retry.MaxRetries, s.Retention = 0, []time.Duration{6 * time.Hour}, 1, topology.MaxRetention
	})
}

// TestGroupFails: under FailAll the messages behind one that failed fail too.
func TestGroupFails(t *testing.T) {
	inFake(t, func(w *world) {
		book := newNotebook()
		w.publish(grouped(2, 5)...)
		l := w.consume(redeliver.Config{Sequence: &redeliver.Sequence{OnFailure: redeliver.FailAll}}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			book.note(m)
			if string(m.Body) == "g0/1" {
				return redeliver.Reject(errBoom)
			}
			return redeliver.Ack()
		})
		pass(10 * time.Minute)
		if got := book.all(); len(got) != 7 || len(w.fake.Messages("orders-dlq.fifo")) != 4 {
			t.Errorf("handled: %q, dead: %d", got, len(w.fake.Messages("orders-dlq.fifo")))
		}
		if !l.ResetSequence("g0") {
			t.Error("the group had not failed")
		}
		w.publish("g0/9")
		pass(time.Minute)
		if len(book.of("g0/9")) != 1 {
			t.Error("the group was reset, and its next message is not handled")
		}
		l.mustStop()
	}, fifo)
}

// TestGroupLosesItsLease: when the first message of a group is lost, those behind
// it are not handled here either.
func TestGroupLosesItsLease(t *testing.T) {
	inFake(t, func(w *world) {
		book := newNotebook()
		w.publish(grouped(1, 5)...)
		l := w.consume(redeliver.Config{}, func(ctx context.Context, m *redeliver.Message) redeliver.Outcome {
			if book.note(m) == 1 && string(m.Body) == "g0/0" {
				<-ctx.Done()
			}
			return redeliver.Ack()
		})
		w.fake.FailEntries("ChangeMessageVisibilityBatch", func(body string) *fake.Error {
			if body == "g0/0" {
				return &fake.Error{Query: "InvalidParameterValue", Message: "gone"}
			}
			return nil
		})
		pass(20 * time.Second)
		w.fake.Mend()
		if got := book.all(); len(got) != 1 {
			t.Errorf("handled: %q", got)
		}
		pass(time.Minute)
		if got, want := book.all(), []string{"g0/0", "g0/0", "g0/1", "g0/2", "g0/3", "g0/4"}; !slices.Equal(got, want) {
			t.Errorf("handled: %q, want %q", got, want)
		}
		if s := l.Stats(); s.LeasesLost != 5 || s.Acked != 5 {
			t.Errorf("%+v", s)
		}
		l.mustStop()
	}, fifo)
}

// TestLostAnswer: a receive whose answer was lost is asked for again, and a FIFO
// queue answers the same: the group does not wait for a visibility timeout.
func TestLostAnswer(t *testing.T) {
	inFake(t, func(w *world) {
		book := newNotebook()
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			book.note(m)
			return redeliver.Ack()
		})
		pass(2 * time.Second)
		w.fake.Lose("ReceiveMessage", 1)
		w.publish(grouped(1, 3)...)
		pass(5 * time.Second)
		if got, want := book.all(), []string{"g0/0", "g0/1", "g0/2"}; !slices.Equal(got, want) {
			t.Errorf("handled: %q, want %q", got, want)
		}
		l.mustStop()
	}, fifo)
}

// TestSequenceKey: the group is the key, and no other.
func TestSequenceKey(t *testing.T) {
	inFake(t, func(w *world) {
		cfg := redeliver.Config{Sequence: &redeliver.Sequence{Key: redeliver.KeyFromRoutingKey}}
		if _, err := open(w, cfg); err == nil || !strings.Contains(err.Error(), "message groups") {
			t.Errorf("%v", err)
		}
	}, fifo)
}
