package consumer

import (
	"sync"
	"sync/atomic"
	"time"
)

// task is one delivery on its way through the engine. It is in one place at a
// time, and only its owner touches it; see the package documentation.
type task struct {
	Delivery
	session *session
	// retryCount is the count with which the handler is called next.
	retryCount int

	// next is what happens at due, while the task is held.
	next Action
	due  time.Time
	// index is the task's place in the heap of the held.
	index int
}

// session is a transport's session with its state in the engine.
type session struct {
	Session
	// number tells sessions apart in logs, from 1; since is when it began.
	number int
	since  time.Time

	// received is closed when nothing more is received from it; lost then says why, and is nil after Stop.
	received chan struct{}
	lost     error

	// ended is closed, and dead is true, when the session has ended: nothing can be settled then.
	ended   chan struct{}
	dead    atomic.Bool
	endOnce sync.Once
}

func newSession(s Session, number int, now time.Time) *session {
	return &session{Session: s, number: number, since: now, received: make(chan struct{}), ended: make(chan struct{})}
}

// end marks the session as ended.
func (s *session) end() {
	s.endOnce.Do(func() {
		s.dead.Store(true)
		close(s.ended)
	})
}
