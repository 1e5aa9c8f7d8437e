package consumer

import (
	"slices"
	"sync"
	"time"
)

// readyQueue is where tasks wait for a worker. Its length is bounded by the
// prefetch of the one session that is alive: the tasks of a session that ended
// are taken out.
type readyQueue struct {
	motion motion

	mu     sync.Mutex
	filled sync.Cond
	// tasks[head:] wait, the first one first.
	tasks []*task
	head  int
	// idle is how many workers wait for a task. waking says that one of them was woken and has not got its task yet: it
	// wakes the next one if there is more to do, so that a burst of short tasks does not wake every worker.
	idle   int
	waking bool
	// lent says that the receiver handles a message in the place of a worker: one of them stays idle.
	lent bool
	// stopped: no worker gets another task.
	stopped bool
}

func newReadyQueue() *readyQueue {
	q := &readyQueue{}
	q.filled.L = &q.mu
	return q
}

// push adds a task at the end. The queue keeps taking tasks after stop: the
// drain gives them back.
func (q *readyQueue) push(t *task) {
	q.mu.Lock()
	if q.head > len(q.tasks)/2 && q.head > 64 { // amortised: every task is moved once at most for each one taken out
		n := copy(q.tasks, q.tasks[q.head:])
		clear(q.tasks[n:])
		q.tasks, q.head = q.tasks[:n], 0
	}
	q.tasks = append(q.tasks, t)
	wake := q.wakes()
	q.mu.Unlock()
	if wake {
		q.filled.Signal()
	}
}

// wakes says whether a worker is to be woken, by the caller. q.mu is held.
func (q *readyQueue) wakes() bool {
	if q.waking || q.idle <= q.absent() || q.head == len(q.tasks) {
		return false
	}
	q.waking = true
	q.motion.add(1)
	return true
}

// pop waits for a task. It returns false once the queue was stopped.
func (q *readyQueue) pop() (*task, bool) {
	q.mu.Lock()
	for (q.head == len(q.tasks) || q.idle < q.absent()) && !q.stopped {
		q.idle++
		q.motion.add(-1)
		q.filled.Wait()
		q.idle--
		q.waking = false
	}
	if q.stopped {
		q.mu.Unlock()
		return nil, false
	}
	t := q.tasks[q.head]
	q.tasks[q.head] = nil
	if q.head++; q.head == len(q.tasks) {
		q.tasks, q.head = q.tasks[:0], 0
	}
	wake := q.wakes()
	q.mu.Unlock()
	if wake {
		q.filled.Signal()
	}
	return t, true
}

// absent is how many workers have to stay idle. q.mu is held.
func (q *readyQueue) absent() int {
	if q.lent {
		return 1
	}
	return 0
}

// lend gives the receiver the place of a worker, and adds it to the workers that
// a shutdown waits for. It returns false when no worker is idle, or a task waits
// that comes first.
func (q *readyQueue) lend(workers *sync.WaitGroup) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.stopped || q.lent || q.idle == 0 || q.head < len(q.tasks) {
		return false
	}
	q.lent = true
	workers.Add(1) // under the lock that stop takes: a worker that is idle has not ended, so nobody waits in vain
	return true
}

// restore takes the place back.
func (q *readyQueue) restore() {
	q.mu.Lock()
	q.lent = false
	wake := q.wakes()
	q.mu.Unlock()
	if wake {
		q.filled.Signal()
	}
}

// stop lets no worker get another task.
func (q *readyQueue) stop() {
	q.mu.Lock()
	q.stopped = true
	q.mu.Unlock()
	q.filled.Broadcast()
}

// take takes out the tasks of a session.
func (q *readyQueue) take(s *session) []*task {
	return q.takeWhere(func(t *task) bool { return t.session == s })
}

func (q *readyQueue) takeWhere(wanted func(*task) bool) []*task {
	q.mu.Lock()
	defer q.mu.Unlock()
	var taken []*task
	kept := q.tasks[:0]
	for _, t := range q.tasks[q.head:] {
		if wanted(t) {
			taken = append(taken, t)
		} else {
			kept = append(kept, t)
		}
	}
	clear(q.tasks[len(kept):])
	q.tasks, q.head = kept, 0
	return taken
}

// hasOlder says whether a task waits that was received before a time. The first
// one need not be the oldest: one that is handed out again was received earlier
// than where it stands.
func (q *readyQueue) hasOlder(before time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.tasks[q.head:], func(t *task) bool { return t.Received.Before(before) })
}

// takeOlder takes out the tasks that were received before a time.
func (q *readyQueue) takeOlder(before time.Time) []*task {
	return q.takeWhere(func(t *task) bool { return t.Received.Before(before) })
}
