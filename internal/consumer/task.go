package consumer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// task is one delivery on its way through the engine. It is in one place at a
// time, and only its owner touches it; see the package documentation.
type task struct {
	Delivery
	session *session
	// retryCount is the count with which the handler is called next. It is atomic because a shutdown names tasks that it
	// does not own.
	retryCount atomic.Int32
	// lane is where the task stands in line with the others of its key; nil where the topic is not sequenced.
	lane *lane
	// ctx is what telemetry made of the handler's context; nil without telemetry.
	ctx context.Context //nolint:containedctx // it belongs to this one message, and goes with it
}

// hand is the message for the next call of the handler: the handler's own, to change and to keep.
func (t *task) hand() *redeliver.Message {
	msg := new(redeliver.Message)
	*msg = t.Message
	msg.RetryCount = t.retries()
	return msg
}

// lost says that the broker may have given the message to another consumer.
func (t *task) lost() bool {
	return t.session.leaser != nil && t.session.leaser.Lost(&t.Delivery)
}

func (t *task) retries() int     { return int(t.retryCount.Load()) }
func (t *task) setRetries(n int) { t.retryCount.Store(int32(n)) } //nolint:gosec // bounded by max_retries
func (t *task) context() context.Context {
	if t.ctx == nil {
		return context.Background()
	}
	return t.ctx
}

// freeTasks are tasks that are done, to be used again. Only acknowledged ones get here: most are, and nothing else knows
// them then but their worker.
type freeTasks struct {
	pool sync.Pool
	// ended: a shutdown looks at tasks that it does not own, which are not to be used for something else meanwhile.
	ended atomic.Bool
}

func (f *freeTasks) get(s *session) *task {
	t, _ := f.pool.Get().(*task)
	if t == nil {
		t = new(task)
	}
	t.session = s
	return t
}

// put takes a task from a worker whose slot does not name it any more.
func (f *freeTasks) put(t *task) {
	if f.ended.Load() {
		return
	}
	*t = task{}
	f.pool.Put(t)
}

// session is a transport's session with its state in the engine.
type session struct {
	Session
	// leaser is the session where it can lose single deliveries, else nil.
	leaser Leaser
	// number tells sessions apart in logs, from 1; since is when it began.
	number int
	since  time.Time

	// received is closed when nothing more is received from it; lost then says why, and is nil after Stop.
	received chan struct{}
	lost     error

	// renewed says that the consumer itself ended it, and renewing is closed then.
	renewed  atomic.Bool
	renewing chan struct{}
	// retireOnce closes it once only.
	retireOnce sync.Once

	// ended is closed, and dead is true, when the session has ended: nothing can be settled then.
	ended   chan struct{}
	dead    atomic.Bool
	endOnce sync.Once

	// resting is how many workers wait for the clock with a task of this session: its end wakes them. It is guarded by mu,
	// and dead is set under it.
	mu      sync.Mutex
	resting int
	motion  motion

	// place is where the goroutine that receives may handle messages.
	place place
}

func newSession(s Session, number int, now time.Time) *session {
	leaser, _ := s.(Leaser)
	return &session{
		Session: s, leaser: leaser, number: number, since: now,
		received: make(chan struct{}), renewing: make(chan struct{}), ended: make(chan struct{}),
	}
}

// end marks the session as ended.
func (s *session) end() {
	s.endOnce.Do(func() {
		s.mu.Lock()
		s.dead.Store(true)
		s.motion.add(s.resting)
		s.mu.Unlock()
		close(s.ended)
	})
}
