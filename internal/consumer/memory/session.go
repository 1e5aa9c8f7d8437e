package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
)

// session implements consumer.Session. All of it is guarded by the broker's lock.
type session struct {
	client   *Client
	queue    *queue
	prefetch int
	// changed tells of a message in the inbox, and of the end.
	changed sync.Cond

	// inbox are the tags of what was delivered and not received yet; each is activity.
	inbox []uint64
	// received: what Receive returned last is being dealt with, which is activity until it is called again.
	received  bool
	tags      uint64
	unsettled map[uint64]*message

	// stopped: no more is sent. lost is why the session has ended, nil before that; until Close, that is activity.
	stopped bool
	lost    error
	closed  bool
}

func newSession(c *Client, q *queue, prefetch int) *session {
	s := &session{client: c, queue: q, prefetch: prefetch, unsettled: make(map[uint64]*message)}
	s.changed.L = &c.broker.mu
	return s
}

// ifRoom is the session where it can be sent another message, else nil.
func (s *session) ifRoom() *session {
	if s.stopped || len(s.unsettled) >= s.prefetch {
		return nil
	}
	return s
}

// deliver sends a message.
func (s *session) deliver(m *message) {
	s.client.share.add(1)
	s.tags++
	s.unsettled[s.tags] = m
	s.inbox = append(s.inbox, s.tags)
	s.changed.Signal()
}

// Receive implements consumer.Session.
func (s *session) Receive(d *consumer.Delivery) error {
	s.lock()
	defer s.unlock()
	if s.received {
		s.received = false
		s.client.share.add(-1)
	}
	for {
		switch {
		case len(s.inbox) > 0:
			tag := s.inbox[0]
			s.inbox = s.inbox[1:]
			s.received = true // the inbox's activity is the receiver's now
			m := s.unsettled[tag]
			*d = consumer.Delivery{Message: m.show(s.queue), Tag: tag, Received: s.client.broker.clock.Now()}
			if s.queue.sqs != nil {
				d.Count, d.Message.Redelivered = m.count-1, m.count > 1
			} else {
				d.Count = consumer.DeliveryCount(d.Message.Headers)
			}
			return nil
		case s.lost != nil:
			return s.lost
		case s.stopped:
			return io.EOF
		}
		s.changed.Wait()
	}
}

// Settle implements consumer.Session.
func (s *session) Settle(d *consumer.Delivery, verb consumer.Verb, after time.Duration) error {
	s.lock()
	defer s.unlock()
	if s.lost != nil {
		return s.lost
	}
	m, ok := s.unsettled[d.Tag]
	if !ok { // as a real broker does
		s.end(&consumer.LostError{Reason: consumer.LostChannel, Err: fmt.Errorf("unknown delivery tag %d", d.Tag)})
		return s.lost
	}
	delete(s.unsettled, d.Tag)
	if s.queue.sqs != nil {
		s.client.broker.settleHere(s, m, verb, after)
	} else {
		s.client.broker.settle(s.queue, m, verb)
	}
	return nil
}

// Unsent implements consumer.Session.
func (s *session) Unsent() int { return 0 }

// Hold implements consumer.Session: nothing waits for anything here.
func (s *session) Hold(*consumer.Delivery) {}

// Diagnose implements consumer.Session.
func (s *session) Diagnose(lost error) error { return lost }

// Stop implements consumer.Session.
func (s *session) Stop(context.Context) error {
	s.lock()
	defer s.unlock()
	s.stopped = true
	s.changed.Signal()
	s.client.broker.dispatch(s.queue) // another consumer may be the active one now
	return nil
}

// errClosed is why a session has ended that its consumer closed.
var errClosed = errors.New("the session is closed")

// Close implements consumer.Session.
func (s *session) Close(context.Context) error {
	s.lock()
	defer s.unlock()
	s.end(errClosed)
	if !s.closed {
		s.closed = true
		s.client.share.add(-1)
	}
	return nil
}

// end ends the session, and puts back what was not settled.
func (s *session) end(why error) {
	for _, m := range s.lose(why) {
		s.client.broker.giveBack(s.queue, m, byLoss)
	}
	s.client.broker.dispatch(s.queue)
}

// lose ends the session, and returns what was not settled, in the order in which
// it was delivered.
func (s *session) lose(why error) []*message {
	if s.lost != nil {
		return nil
	}
	s.client.share.add(1 - len(s.inbox))
	s.lost, s.inbox = why, nil
	s.queue.sessions = slices.DeleteFunc(s.queue.sessions, func(x *session) bool { return x == s })
	back := make([]*message, 0, len(s.unsettled))
	for _, tag := range slices.Sorted(maps.Keys(s.unsettled)) {
		back = append(back, s.unsettled[tag])
	}
	s.unsettled = nil
	s.changed.Signal()
	return back
}

func (s *session) lock()   { s.client.broker.mu.Lock() }
func (s *session) unlock() { s.client.broker.mu.Unlock() }
