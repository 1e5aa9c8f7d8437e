package consumer

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// lanes keep the messages of a sequenced topic in order: one message per key is
// on its way through the engine at a time, and its successors wait in the key's
// lane. A key whose message waits for a retry, or whose handler does not return,
// keeps its lane; others go on.
type lanes struct {
	key func(*redeliver.Message) string
	// failAll dead-letters what follows on a message that failed for good.
	failAll bool

	mu    sync.Mutex
	lanes map[string]*lane
}

// lane is the line of one key. Its fields belong to lanes.mu.
type lane struct {
	key string
	// busy: a task of this key is on its way through the engine.
	busy bool
	// waiting are the next ones, in the order in which they came.
	waiting []*task
	// failed: a message failed for good, and the ones that follow do too.
	failed bool
}

func newLanes(s *redeliver.Sequence) *lanes {
	return &lanes{key: s.Key, failAll: s.OnFailure == redeliver.FailAll, lanes: make(map[string]*lane)}
}

// keyOf asks the application for a message's key. A key function that panics
// has no key to give, and one message must not end the process.
func (l *lanes) keyOf(m *redeliver.Message) (key string, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("the key function panicked: %v", value)
		}
	}()
	return l.key(m), nil
}

// enter puts a task in its key's lane. It returns true when the task may go on
// at once, and false when it waits for [lanes.leave].
func (l *lanes) enter(t *task, key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.lanes[key]
	if in == nil {
		in = &lane{key: key}
		l.lanes[key] = in
	}
	t.lane = in
	if in.busy {
		in.waiting = append(in.waiting, t)
		return false
	}
	in.busy = true
	return true
}

// leave takes a task that is settled, or whose session has ended, out of its
// lane, and returns the one that may go on now, if there is any.
func (l *lanes) leave(t *task) (next *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := t.lane
	for len(in.waiting) > 0 {
		next, in.waiting = in.waiting[0], in.waiting[1:]
		if !next.session.dead.Load() {
			return next
		}
	}
	in.busy, in.waiting = false, nil
	if !in.failed {
		delete(l.lanes, in.key)
	}
	return nil
}

// fail marks a task's key after a message that failed for good, where its
// successors are to fail too.
func (l *lanes) fail(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.lane.failed = l.failAll
}

// failed says whether a task follows on one that failed for good.
func (l *lanes) failed(t *task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return t.lane.failed
}

// reset forgets that a message of a key failed. It returns false when none did.
func (l *lanes) reset(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.lanes[key]
	if in == nil || !in.failed {
		return false
	}
	in.failed = false
	if !in.busy {
		delete(l.lanes, key)
	}
	return true
}

// forget takes a session's tasks out of the lanes in which they wait, and
// forgets which keys failed: after a failover somebody else may have gone on
// with them.
func (l *lanes) forget(s *session) (waited int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, in := range l.lanes {
		kept := in.waiting[:0]
		for _, t := range in.waiting {
			if t.session != s {
				kept = append(kept, t)
			}
		}
		waited += len(in.waiting) - len(kept)
		clear(in.waiting[len(kept):])
		in.waiting, in.failed = kept, false
		if !in.busy {
			delete(l.lanes, key)
		}
	}
	return waited
}

// hasOlder says whether a task waits behind another that was received before a
// time.
func (l *lanes) hasOlder(before time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range l.lanes {
		if len(in.waiting) > 0 && in.waiting[0].Received.Before(before) {
			return true
		}
	}
	return false
}

// waiting counts the tasks that wait behind others of their keys.
func (l *lanes) waiting() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range l.lanes {
		n += len(in.waiting)
	}
	return n
}

// failedKeys counts the keys whose messages are dead-lettered.
func (l *lanes) failedKeys() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, in := range l.lanes {
		if in.failed {
			n++
		}
	}
	return n
}

// errNoKey is the reason of a message that has no place in any order.
var errNoKey = errors.New("the message's key is not known")
