package memory

import (
	"container/heap"
	"sync"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
)

// clock is the broker's time. It moves only in step.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	events eventHeap
	// number is that of the latest event: of two that are due at the same time the older one happens first.
	number uint64
}

// event is something that happens at a time.
type event struct {
	at     time.Time
	number uint64
	// fire is called with the clock locked, where locked; else after it was unlocked.
	fire   func()
	locked bool
	// index is the event's place in the heap, -1 when it is no longer there.
	index int
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// at lets fire happen at a time.
func (c *clock) at(at time.Time, fire func()) *event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.schedule(&event{at: at, fire: fire})
}

// schedule adds an event. c.mu is held.
func (c *clock) schedule(e *event) *event {
	c.number++
	e.number = c.number
	heap.Push(&c.events, e)
	return e
}

// cancel takes an event out that has not happened. nil is none.
func (c *clock) cancel(e *event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(e)
}

// remove is cancel. c.mu is held.
func (c *clock) remove(e *event) {
	if e != nil && e.index >= 0 {
		heap.Remove(&c.events, e.index)
	}
}

// step moves the clock to the next event, and lets it happen. Where that is
// after limit, or there is none, it moves the clock to limit and returns false.
func (c *clock) step(limit time.Time) bool {
	c.mu.Lock()
	if len(c.events) == 0 || c.events[0].at.After(limit) {
		if limit.After(c.now) {
			c.now = limit
		}
		c.mu.Unlock()
		return false
	}
	e := heap.Pop(&c.events).(*event)
	if e.at.After(c.now) {
		c.now = e.at
	}
	if e.locked {
		e.fire()
		c.mu.Unlock()
		return true
	}
	c.mu.Unlock()
	e.fire()
	return true
}

// next is when the next event happens.
func (c *clock) next() (at time.Time, any bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) == 0 {
		return time.Time{}, false
	}
	return c.events[0].at, true
}

// clientClock is the clock as one client sees it: a timer of its that has fired
// is the client's activity until it is stopped.
type clientClock struct {
	*clock
	share *share
}

// NewTimer implements consumer.Clock.
func (c clientClock) NewTimer(d time.Duration) consumer.Timer {
	t := &timer{clock: c, fired: make(chan time.Time, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.event = c.schedule(&event{at: c.now.Add(d), fire: t.fire, locked: true})
	return t
}

// timer implements consumer.Timer.
type timer struct {
	clock clientClock
	event *event
	fired chan time.Time
	// moves: it has fired and was not stopped since. It is guarded by the clock.
	moves bool
}

func (t *timer) C() <-chan time.Time { return t.fired }

func (t *timer) fire() {
	t.moves = true
	t.clock.share.add(1)
	t.fired <- t.clock.now
}

func (t *timer) Stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.clock.remove(t.event)
	if t.moves {
		t.moves = false
		t.clock.share.add(-1)
	}
}

// eventHeap orders events; it implements heap.Interface.
type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].number < h[j].number
	}
	return h[i].at.Before(h[j].at)
}

func (h eventHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *eventHeap) Push(x any) {
	e := x.(*event)
	e.index = len(*h)
	*h = append(*h, e)
}

// Pop implements heap.Interface.
func (h *eventHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.index = -1
	return e
}
