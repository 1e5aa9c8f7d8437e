package consumer

import (
	"sync"
	"testing"
	"time"
)

func TestReadyQueueIsInOrder(t *testing.T) {
	t.Parallel()
	q := newReadyQueue()
	next, last := uint64(0), uint64(0)
	for round := range 500 { // grows and shrinks, so that the tasks are moved to the front now and then
		for range round % 7 * 10 {
			next++
			q.push(&task{Delivery: Delivery{Tag: next}})
		}
		for range min(int(next-last), round%5*12) {
			x, ok := q.pop()
			if last++; !ok || x.Tag != last {
				t.Fatalf("got %v %v, want tag %d", x, ok, last)
			}
		}
	}
	if got := uint64(len(q.take(nil))); got != next-last {
		t.Errorf("%d left, want %d", got, next-last)
	}
}

func TestReadyQueueTakesASessionOut(t *testing.T) {
	t.Parallel()
	q := newReadyQueue()
	a, b := newSession(nil, 1, time.Now()), newSession(nil, 2, time.Now())
	for i := range uint64(10) {
		s := a
		if i%2 == 0 {
			s = b
		}
		q.push(&task{session: s, Delivery: Delivery{Tag: i}})
	}
	q.pop()
	if got := len(q.take(b)); got != 4 {
		t.Errorf("took %d, want 4", got)
	}
	for want := uint64(1); want < 10; want += 2 {
		if x, ok := q.pop(); !ok || x.Tag != want || x.session != a {
			t.Errorf("got %+v, want tag %d", x, want)
		}
	}
}

func TestReadyQueueStops(t *testing.T) {
	t.Parallel()
	q := newReadyQueue()
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			if x, ok := q.pop(); ok {
				t.Errorf("got %v after stop", x)
			}
		})
	}
	q.stop()
	waiting.Wait()
	q.push(&task{})
	if _, ok := q.pop(); ok {
		t.Error("got a task after stop")
	}
	if got := len(q.take(nil)); got != 1 {
		t.Errorf("%d tasks left for the drain, want 1", got)
	}
}
