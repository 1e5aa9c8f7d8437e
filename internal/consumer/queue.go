package consumer

import "sync"

// readyQueue is where tasks wait for a worker. Its length is bounded by the
// prefetch of the one session that is alive: the tasks of a session that ended
// are taken out.
type readyQueue struct {
	mu     sync.Mutex
	filled sync.Cond
	// tasks[head:] wait, the first one first.
	tasks []*task
	head  int
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
	q.mu.Unlock()
	q.filled.Signal()
}

// pop waits for a task. It returns false once the queue was stopped.
func (q *readyQueue) pop() (*task, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.head == len(q.tasks) && !q.stopped {
		q.filled.Wait()
	}
	if q.stopped {
		return nil, false
	}
	t := q.tasks[q.head]
	q.tasks[q.head] = nil
	if q.head++; q.head == len(q.tasks) {
		q.tasks, q.head = q.tasks[:0], 0
	}
	return t, true
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
	q.mu.Lock()
	defer q.mu.Unlock()
	var taken []*task
	kept := q.tasks[:0]
	for _, t := range q.tasks[q.head:] {
		if t.session == s {
			taken = append(taken, t)
		} else {
			kept = append(kept, t)
		}
	}
	clear(q.tasks[len(kept):])
	q.tasks, q.head = kept, 0
	return taken
}
