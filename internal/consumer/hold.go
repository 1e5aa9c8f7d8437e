package consumer

import (
	"container/heap"
	"sync"
	"time"
)

// holds are the deliveries that wait, the one that is due first in front. One
// goroutine and one timer serve all of them.
type holds struct {
	clock  Clock
	limit  int
	motion motion
	// wake tells the goroutine that the first due time may have changed.
	wake chan struct{}

	mu    sync.Mutex
	tasks heldHeap
	// deferred is how many of tasks were deferred.
	deferred int
	// closed: a shutdown has begun and nothing is held any more.
	closed bool
}

func newHolds(clock Clock, limit int) *holds {
	return &holds{clock: clock, limit: limit, wake: make(chan struct{}, 1)}
}

// holdResult says what became of an attempt to hold a task.
type holdResult uint8

const (
	// holdTaken: the task is held and belongs to holds.
	holdTaken holdResult = iota
	// holdFull: as many tasks are held as may be.
	holdFull
	// holdClosed: a shutdown has begun.
	holdClosed
	// holdEnded: the task's session has ended.
	holdEnded
)

// held is a task that waits, and what happens to it when it is due.
type held struct {
	*task
	next Action
	due  time.Time
}

// add holds a task until due, unless the limit is reached; beyond says that
// the limit does not apply.
func (h *holds) add(t *task, next Action, due time.Time, beyond bool) holdResult {
	h.mu.Lock()
	switch {
	case h.closed:
		h.mu.Unlock()
		return holdClosed
	case t.session.dead.Load(): // set before the session's tasks are taken out, so none slips in after that
		h.mu.Unlock()
		return holdEnded
	case len(h.tasks) >= h.limit && !beyond:
		h.mu.Unlock()
		return holdFull
	}
	x := &held{t, next, due}
	heap.Push(&h.tasks, x)
	h.count(x, 1)
	first := h.tasks[0] == x
	h.mu.Unlock()
	if first {
		h.motion.add(1)
		select {
		case h.wake <- struct{}{}:
		default:
			h.motion.add(-1)
		}
	}
	return holdTaken
}

// run calls fire with each task when it is due, until stop is closed. fire
// must not block.
func (h *holds) run(stop <-chan struct{}, fire func(*task, Action)) {
	var timer Timer
	woken := false
	for {
		due, wait, any := h.next()
		for _, x := range due {
			fire(x.task, x.next)
		}
		if len(due) > 0 {
			continue // firing took time: look again
		}
		last := timer
		timer = nil
		var expired <-chan time.Time // nil, which never delivers, while nothing is held
		if any {
			timer = h.clock.NewTimer(wait)
			expired = timer.C()
		}
		if last != nil {
			last.Stop() // only now that the next one is set: see motion
		}
		if woken {
			h.motion.add(-1)
			woken = false
		}
		select {
		case <-expired:
		case <-h.wake:
			woken = true
		case <-stop:
		}
		select {
		case <-stop:
			if timer != nil {
				timer.Stop()
			}
			return
		default:
		}
	}
}

// next takes out the tasks that are due, and says how long the first of the
// others still waits, if there is any.
func (h *holds) next() (due []*held, wait time.Duration, any bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	for len(h.tasks) > 0 && !h.tasks[0].due.After(now) {
		x := heap.Pop(&h.tasks).(*held)
		h.count(x, -1)
		due = append(due, x)
	}
	if len(h.tasks) == 0 {
		return due, 0, false
	}
	return due, h.tasks[0].due.Sub(now), true
}

// take takes out the tasks of a session.
func (h *holds) take(s *session) []*held {
	h.mu.Lock()
	defer h.mu.Unlock()
	var taken []*held
	kept := h.tasks[:0]
	for _, x := range h.tasks {
		if x.session == s {
			h.count(x, -1)
			taken = append(taken, x)
		} else {
			kept = append(kept, x)
		}
	}
	clear(h.tasks[len(kept):])
	h.tasks = kept
	heap.Init(&h.tasks)
	return taken
}

// close holds nothing any more.
func (h *holds) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
}

func (h *holds) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.tasks)
}

// count keeps the number of deferred tasks. h.mu is held.
func (h *holds) count(x *held, by int) {
	if x.next.Fate == FateDeferred {
		h.deferred += by
	}
}

// full says whether as many tasks are held as may be, and how many of them were deferred.
func (h *holds) full() (full bool, deferred int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.limit > 0 && len(h.tasks) >= h.limit, h.deferred
}

// heldHeap orders tasks by due time; it implements heap.Interface.
type heldHeap []*held

func (h heldHeap) Len() int           { return len(h) }
func (h heldHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h heldHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *heldHeap) Push(x any) { *h = append(*h, x.(*held)) }

// Pop implements heap.Interface.
func (h *heldHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return x
}
