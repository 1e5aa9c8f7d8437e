package rabbitmqadmin

import (
	"context"
	"sync"
	"time"
)

// joinWithin is how much later than it asked for a caller may be served, so that others can share its read.
const joinWithin = 500 * time.Millisecond

// sharedRead lets callers of one run share reads that are costly: one read serves everybody who wants one that starts at
// their time or later. There is at most one at a time per vhost, and nothing is kept: what was read before somebody
// asked is never given to them.
type sharedRead[T any] struct {
	read func(ctx context.Context, vhost string) (T, error)

	mu      sync.Mutex
	planned map[string][]*plannedRead[T]
	busy    map[string]chan struct{}
}

// plannedRead is a read that has not started yet, or is running. done is closed when value and err are set, or when the
// caller that was to read gave up, which leaves it to the others.
type plannedRead[T any] struct {
	at        time.Time // when it is to start
	started   time.Time // when it did; zero before
	done      chan struct{}
	value     T
	err       error
	abandoned bool
}

func newSharedRead[T any](read func(ctx context.Context, vhost string) (T, error)) *sharedRead[T] {
	return &sharedRead[T]{read: read, planned: map[string][]*plannedRead[T]{}, busy: map[string]chan struct{}{}}
}

// notBefore returns what a read gives that starts at due or later.
func (s *sharedRead[T]) notBefore(ctx context.Context, vhost string, due time.Time) (T, error) {
	for {
		r, mine := s.join(vhost, due)
		if mine {
			return s.carryOut(ctx, vhost, r)
		}
		select {
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		case <-r.done:
			if !r.abandoned {
				return r.value, r.err
			}
		}
	}
}

// join finds a read that starts late enough and soon enough, or plans one that is the caller's to carry out.
func (s *sharedRead[T]) join(vhost string, due time.Time) (r *plannedRead[T], mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, r := range s.planned[vhost] {
		if !r.started.IsZero() {
			if !r.started.Before(due) {
				return r, false
			}
			continue
		}
		if at := later(r.at, now); !at.Before(due) && at.Sub(later(due, now)) <= joinWithin {
			return r, false
		}
	}
	r = &plannedRead[T]{at: later(due, now), done: make(chan struct{})}
	if due.After(now) {
		// Whoever comes a little later can still share it.
		r.at = due.Add(joinWithin)
	}
	s.planned[vhost] = append(s.planned[vhost], r)
	return r, true
}

func (s *sharedRead[T]) carryOut(ctx context.Context, vhost string, r *plannedRead[T]) (T, error) {
	defer close(r.done)
	defer s.forget(vhost, r)
	busy, err := s.begin(ctx, vhost, r)
	if err != nil {
		r.abandoned = true
		return r.value, err
	}
	defer release(busy, 1)
	r.value, r.err = s.read(ctx, vhost)
	// The end of this caller's context is nobody else's failure.
	r.abandoned = r.err != nil && ctx.Err() != nil
	return r.value, r.err
}

// begin waits for the read's time, and for the vhost's running read to end. Until then anybody may join.
func (s *sharedRead[T]) begin(ctx context.Context, vhost string, r *plannedRead[T]) (chan struct{}, error) {
	if err := pause(ctx, time.Until(r.at)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	busy := s.busy[vhost]
	if busy == nil {
		busy = make(chan struct{}, 1)
		s.busy[vhost] = busy
	}
	s.mu.Unlock()
	select {
	case busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.started = time.Now()
	return busy, nil
}

// forget takes a read off the plan: from here on nobody can join it.
func (s *sharedRead[T]) forget(vhost string, r *plannedRead[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	planned := s.planned[vhost]
	for i := range planned {
		if planned[i] == r {
			s.planned[vhost] = append(planned[:i:i], planned[i+1:]...)
			return
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
