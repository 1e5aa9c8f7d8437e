package rabbitmqadmin

import (
	"context"
	"sync"
	"time"
)

// joinWithin is how much later than it asked for a caller may be served, so that others can share its read.
const joinWithin = 500 * time.Millisecond

const (
	// A read that took agedAfter is given by [sharedRead.recent] to who asks for it within agedTimes as long, agedMax at most: a
	// run that deletes thousands of queues would do nothing else than read lists of them. agedMax is the statistics interval,
	// which is how long a deletion looks away anyhow between its first look and its last.
	agedAfter = 250 * time.Millisecond
	agedTimes = 5
	agedMax   = DefaultStatisticsInterval
)

// sharedRead lets callers of one run share reads that are costly: one read serves everybody who wants one that starts at
// their time or later. There is at most one at a time per vhost. What was read before somebody asked is only given to
// them by [sharedRead.recent].
type sharedRead[T any] struct {
	read func(ctx context.Context, vhost string) (T, error)

	mu      sync.Mutex
	planned map[string][]*plannedRead[T]
	busy    map[string]chan struct{}
	last    map[string]agedRead[T]
}

// agedRead is what a read gave that took long.
type agedRead[T any] struct {
	value T
	until time.Time // when it is too old
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
	// outdated: something was written after it started.
	outdated bool
}

func newSharedRead[T any](read func(ctx context.Context, vhost string) (T, error)) *sharedRead[T] {
	return &sharedRead[T]{read: read, planned: map[string][]*plannedRead[T]{}, busy: map[string]chan struct{}{}, last: map[string]agedRead[T]{}}
}

// recent returns what a read gave a moment ago, if reads take long, and what one gives that starts now otherwise. aged says
// which.
func (s *sharedRead[T]) recent(ctx context.Context, vhost string) (value T, aged bool, err error) {
	s.mu.Lock()
	last, ok := s.last[vhost]
	s.mu.Unlock()
	now := time.Now()
	if ok && now.Before(last.until) {
		return last.value, true, nil
	}
	value, err = s.notBefore(ctx, vhost, now)
	return value, false, err
}

// outdated forgets what reads gave so far: this client has written something that is not in it.
func (s *sharedRead[T]) outdated(vhost string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, vhost)
	for _, r := range s.planned[vhost] {
		r.outdated = r.outdated || !r.started.IsZero()
	}
}

// keep remembers what a read gave, for recent. s.mu is held.
func (s *sharedRead[T]) keep(vhost string, r *plannedRead[T], now time.Time) {
	if took := now.Sub(r.started); r.err == nil && !r.outdated && took >= agedAfter {
		s.last[vhost] = agedRead[T]{value: r.value, until: r.started.Add(min(agedTimes*took, agedMax))}
	}
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
	s.mu.Lock()
	s.keep(vhost, r, time.Now())
	s.mu.Unlock()
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
