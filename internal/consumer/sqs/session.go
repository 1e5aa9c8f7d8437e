package sqs

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// session is one subscription: messages that are received and lent.
type session struct {
	b *Broker
	// prefetch is how many messages it may have, and batch how many it asks for at a time.
	prefetch, batch int

	deletes *batcher[*lease]
	changes *batcher[*change]
	// unsent counts the settlements that did not get through.
	unsent atomic.Int64

	// pausing ends when the subscription is to end, polling with it, kept with the extending of leases, and settles when nothing is settled any more.
	pausing, polling, kept, settles              context.Context //nolint:containedctx // they end with the session
	stopPausing, stopPolling, stopKept, stopSent context.CancelFunc

	inbox   chan *lease // closed when nothing more comes
	ended   chan struct{}
	endOnce sync.Once

	mu     sync.Mutex
	room   sync.Cond
	leases map[uint64]*lease
	// settled are those that are to be deleted, and are extended until they are.
	settled map[uint64]*lease
	tags    uint64
	// reserved is how many messages polls have asked for, and polls are those that are on their way.
	reserved int
	polls    map[*poll]bool
	pollers  int
	// renewals are the requests to extend leases that are on their way.
	renewals int
	stopped  bool
	closed   bool
	lost     error
}

var (
	_ consumer.Session = (*session)(nil)
	_ consumer.Leaser  = (*session)(nil)
)

func newSession(b *Broker, prefetch int) *session {
	s := &session{
		b: b, prefetch: prefetch, batch: min(prefetch, sqsapi.BatchMax),
		inbox: make(chan *lease, prefetch), ended: make(chan struct{}),
		leases: make(map[uint64]*lease), settled: make(map[uint64]*lease), polls: make(map[*poll]bool),
	}
	s.room.L = &s.mu
	s.pausing, s.stopPausing = context.WithCancel(context.Background())
	s.polling, s.stopPolling = context.WithCancel(context.Background())
	s.kept, s.stopKept = context.WithCancel(context.Background())
	s.settles, s.stopSent = context.WithCancel(context.Background())
	after := flushAfter
	if b.fifo {
		after = flushGroupAfter
	}
	if b.cfg.AckEach {
		after = 0
	}
	s.deletes, s.changes = newBatcher(after, s.remove), newBatcher(after, s.release)
	return s
}

// Receive implements consumer.Session.
func (s *session) Receive(d *consumer.Delivery) error {
	for {
		select {
		case <-s.ended:
			return s.why()
		default:
		}
		select {
		case <-s.ended:
			return s.why()
		case l, more := <-s.inbox:
			if !more {
				return io.EOF
			}
			*d = consumer.Delivery{Message: MessageOf(l.message), Count: l.receives - 1, Tag: l.tag, Received: l.received}
			if !s.Lost(d) {
				return nil
			}
			s.wake() // it has left room
		}
	}
}

func (s *session) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// end ends the subscription because of an error.
func (s *session) end(why error) {
	s.endOnce.Do(func() {
		s.mu.Lock()
		s.lost = why
		s.mu.Unlock()
		close(s.ended)
		s.cease(true)
	})
}

// errOver is returned for settlements that would reach nothing.
var errOver = errors.New("the session is closed")

// Settle implements consumer.Session.
func (s *session) Settle(d *consumer.Delivery, verb consumer.Verb, after time.Duration) error {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[d.Tag]
	switch {
	case s.closed:
		return errOver
	case l == nil:
		return redeliver.ErrLeaseLost
	case !l.usable(now):
		s.lose(l)
		return redeliver.ErrLeaseLost
	}
	if verb == consumer.VerbDeadLetter {
		s.bury(l, now)
		return nil
	}
	s.take(l)
	// In a FIFO queue the next messages of a group wait for this one. Where no other is here, none will share its request.
	alone := s.b.fifo && len(s.leases) == 0
	switch verb {
	case consumer.VerbAck:
		s.settled[l.tag] = l
		s.deletes.add(l, alone)
	default:
		s.change(&change{lease: l, after: after}, alone)
	}
	if alone {
		s.deletes.flush()
		s.changes.flush()
	}
	return nil
}

// Unsent implements consumer.Session.
func (s *session) Unsent() int { return int(s.unsent.Load()) }

// Hold implements consumer.Session: nothing waits for it.
func (s *session) Hold(*consumer.Delivery) {}

// Diagnose implements consumer.Session.
func (s *session) Diagnose(lost error) error { return lost }

// Stop implements consumer.Session.
func (s *session) Stop(ctx context.Context) error {
	s.cease(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer context.AfterFunc(ctx, s.wake)()
	for s.pollers > 0 && ctx.Err() == nil {
		s.room.Wait()
	}
	return ctx.Err()
}

// Close implements consumer.Session. What was not settled goes back, in an order
// that keeps the groups of a FIFO queue: the first message of each last, so that
// none is delivered before it.
func (s *session) Close(ctx context.Context) error {
	err := s.Stop(ctx)
	s.mu.Lock()
	back := make([]*lease, 0, len(s.leases))
	if !s.closed {
		s.closed = true
		for _, l := range s.leases {
			back = append(back, l)
		}
	}
	defer context.AfterFunc(ctx, s.wake)()
	for s.renewals > 0 && ctx.Err() == nil { // those would be undone by one that is on its way
		s.room.Wait()
	}
	slices.SortFunc(back, func(a, b *lease) int { return cmp.Compare(b.tag, a.tag) })
	for _, l := range back {
		s.drop(l)
		s.change(&change{lease: l}, false)
		if l.cancel != nil {
			l.cancel(redeliver.ErrLeaseLost)
		}
	}
	s.mu.Unlock()
	defer context.AfterFunc(ctx, s.stopSent)()
	s.deletes.drain(ctx)
	s.changes.drain(ctx)
	s.stopKept()
	s.stopSent()
	return err
}

func (s *session) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.Broadcast()
}
