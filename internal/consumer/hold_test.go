package consumer

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// TestHoldsFireInOrder: whatever order tasks are added in, each fires when it
// is due, to the nanosecond on the test's clock.
func TestHoldsFireInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		h := newHolds(SystemClock{}, n)
		fired := make(chan *held, n)
		stop, stopped := make(chan struct{}), make(chan struct{})
		late, start := 0, time.Now()
		go func() {
			defer close(stopped)
			h.run(stop, func(t *task, next Action) {
				x := &held{t, next, start.Add(next.Delay)}
				if !x.due.Equal(time.Now()) {
					late++
				}
				fired <- x
			})
		}()
		s := newSession(nil, 1, start)
		for i := range n {
			delay := time.Duration(1+rand.IntN(10_000)) * time.Millisecond
			if got := h.add(&task{session: s}, Action{Delay: delay}, start.Add(delay), false); got != holdTaken {
				t.Fatalf("task %d: %v", i, got)
			}
		}
		if h.len() != n {
			t.Errorf("%d held, want %d", h.len(), n)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		close(stop)
		<-stopped
		if len(fired) != n || late != 0 {
			t.Fatalf("%d fired, %d of them not when due; want %d and 0", len(fired), late, n)
		}
		last := start
		for range n {
			x := <-fired
			if x.due.Before(last) {
				t.Fatalf("due %s fired after %s", x.due, last)
			}
			last = x.due
		}
	})
}

// TestHoldsWakeForAnEarlierTask: one that is due before the one waited for does
// not wait for it.
func TestHoldsWakeForAnEarlierTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHolds(SystemClock{}, 10)
		fired := make(chan time.Duration, 2)
		start := time.Now()
		stop := make(chan struct{})
		go h.run(stop, func(*task, Action) { fired <- time.Since(start) })
		s := newSession(nil, 1, start)
		h.add(&task{session: s}, Action{}, start.Add(time.Hour), false)
		synctest.Wait()
		h.add(&task{session: s}, Action{}, start.Add(time.Second), false)
		if got := <-fired; got != time.Second {
			t.Errorf("the earlier task fired after %s", got)
		}
		if got := <-fired; got != time.Hour {
			t.Errorf("the later task fired after %s", got)
		}
		close(stop)
	})
}

func TestHoldsRefuse(t *testing.T) {
	t.Parallel()
	now := time.Now()
	h := newHolds(SystemClock{}, 2)
	alive, ended := newSession(nil, 1, now), newSession(nil, 2, now)
	ended.end()
	for i, step := range []struct {
		session *session
		beyond  bool
		want    holdResult
	}{{alive, false, holdTaken}, {ended, false, holdEnded}, {alive, false, holdTaken}, {alive, false, holdFull}, {alive, true, holdTaken}} {
		if got := h.add(&task{session: step.session}, Action{}, now, step.beyond); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
	h.close()
	if got := h.add(&task{session: alive}, Action{}, now, true); got != holdClosed {
		t.Errorf("after close: %v", got)
	}
	if h.len() != 3 {
		t.Errorf("%d held, want 3", h.len())
	}
}

// TestHoldsTake: a session's tasks are taken out and the others still fire in
// order.
func TestHoldsTake(t *testing.T) {
	t.Parallel()
	now := time.Now()
	h := newHolds(SystemClock{}, 1000)
	a, b := newSession(nil, 1, now), newSession(nil, 2, now)
	for i := range 500 {
		s := a
		if i%3 == 0 {
			s = b
		}
		h.add(&task{session: s}, Action{}, now.Add(-time.Duration(rand.IntN(1000))*time.Second), false)
	}
	if got := len(h.take(b)); got != 167 {
		t.Errorf("took %d, want 167", got)
	}
	due, _, any := h.next()
	if len(due) != 333 || any {
		t.Fatalf("%d due, more: %v", len(due), any)
	}
	for i, x := range due {
		if x.session != a {
			t.Fatal("a task of the other session is still held")
		}
		if i > 0 && x.due.Before(due[i-1].due) {
			t.Fatal("out of order")
		}
	}
}
