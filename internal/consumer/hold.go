package consumer

import (
	"container/heap"
	"sync"
	"time"
)

// holds are the deliveries that wait, the one that is due first in front. One
// goroutine and one timer serve all of them.
type holds struct {
	clock Clock
	limit int
	// wake tells the goroutine that the first due time may have changed.
	wake chan struct{}

	mu    sync.Mutex
	tasks taskHeap
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

// add holds a task until t.due, unless the limit is reached; beyond says that
// the limit does not apply.
func (h *holds) add(t *task, beyond bool) holdResult {
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
	heap.Push(&h.tasks, t)
	first := t.index == 0
	h.mu.Unlock()
	if first {
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
	return holdTaken
}

// run calls fire with each task when it is due, until stop is closed. fire
// must not block.
func (h *holds) run(stop <-chan struct{}, fire func(*task)) {
	for {
		due, wait, any := h.next()
		for _, t := range due {
			fire(t)
		}
		if len(due) > 0 {
			continue // firing took time: look again
		}
		var timer Timer
		var expired <-chan time.Time // nil, which never delivers, while nothing is held
		if any {
			timer = h.clock.NewTimer(wait)
			expired = timer.C()
		}
		select {
		case <-expired:
		case <-h.wake:
		case <-stop:
		}
		if timer != nil {
			timer.Stop()
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// next takes out the tasks that are due, and says how long the first of the
// others still waits, if there is any.
func (h *holds) next() (due []*task, wait time.Duration, any bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.Now()
	for len(h.tasks) > 0 && !h.tasks[0].due.After(now) {
		due = append(due, heap.Pop(&h.tasks).(*task))
	}
	if len(h.tasks) == 0 {
		return due, 0, false
	}
	return due, h.tasks[0].due.Sub(now), true
}

// take takes out the tasks of a session.
func (h *holds) take(s *session) []*task {
	h.mu.Lock()
	defer h.mu.Unlock()
	var taken []*task
	kept := h.tasks[:0]
	for _, t := range h.tasks {
		if t.session == s {
			taken = append(taken, t)
		} else {
			kept = append(kept, t)
		}
	}
	clear(h.tasks[len(kept):])
	h.tasks = kept
	for i, t := range h.tasks {
		t.index = i
	}
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

// taskHeap orders tasks by due time; it implements heap.Interface.
type taskHeap []*task

func (h taskHeap) Len() int           { return len(h) }
func (h taskHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h taskHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *taskHeap) Push(x any) {
	t := x.(*task)
	t.index = len(*h)
	*h = append(*h, t)
}

// Pop implements heap.Interface.
func (h *taskHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}
