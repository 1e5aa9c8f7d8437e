package rabbitmqadmin

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
)

// never is an allowance of single reads that a list comes after never.
const never = math.MaxInt

// shelf keeps what was read of one kind of object. The first few objects are read by themselves; then all are, in one
// list; where that fails they are read by themselves after all. Everything is read once, whoever asks at the same time,
// failures included: each of them took all its retries. Only a read that ended with its caller is done again, by whoever
// asks next.
//
// What is written meanwhile is not believed any more, nor is what began to be read before: it is read again, by itself.
type shelf[T any] struct {
	one func(ctx context.Context, name string) (T, error)
	all func(ctx context.Context) (map[string]T, error)
	// speaksOf are the other names whose writes change a value; nil where there are none.
	speaksOf func(T) []string

	mu sync.Mutex
	// alone is how many more objects are read by themselves.
	alone int
	known map[string]*reading[T]
	// listing is the list, on its way or done; nil before.
	listing *reading[map[string]T]
	// writes is how many there were, and written which was an object's last.
	writes  int
	written map[string]int
}

// reading is a read on its way, or what came of it once done is closed.
type reading[T any] struct {
	// began is how many writes there were before.
	began int
	done  chan struct{}
	value T
	err   error
}

func (r *reading[T]) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// failed: it is done, and nobody knows whether the object is there.
func (r *reading[T]) failed() bool {
	return r.isDone() && r.err != nil && !errors.Is(r.err, ErrNotFound)
}

func newShelf[T any](alone int, one func(context.Context, string) (T, error), all func(context.Context) (map[string]T, error)) *shelf[T] {
	return &shelf[T]{one: one, all: all, alone: alone, known: map[string]*reading[T]{}, written: map[string]int{}}
}

// get returns an object. found is false where the list does not have it; an object that was read by itself and is not
// there is the error of that.
func (s *shelf[T]) get(ctx context.Context, name string) (value T, found bool, err error) {
	return s.find(ctx, name, true)
}

// getAlone is get for an object that the list does not have, and that may be there all the same.
func (s *shelf[T]) getAlone(ctx context.Context, name string) (T, error) {
	value, _, err := s.find(ctx, name, false)
	return value, err
}

func (s *shelf[T]) find(ctx context.Context, name string, believeList bool) (value T, found bool, err error) {
	for {
		s.mu.Lock()
		r, mine, list := s.plan(name, believeList)
		s.mu.Unlock()
		switch {
		case list:
			if err := s.load(ctx); err != nil && (ctx.Err() != nil || isRefusal(err)) {
				return value, false, err
			}
			continue // to the list, or to single reads where there is none
		case r == nil:
			return value, false, nil
		case mine:
			s.read(ctx, name, r)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return value, false, ctx.Err()
		}
		if ctx.Err() != nil || !r.failed() || s.isKept(name, r) {
			return r.value, r.err == nil, r.err
		}
		// It ended with its caller, or the list knows better.
	}
}

// plan says how to get an object: from a reading, which may be the caller's to carry out; from a list; or not at all,
// because the list does not have it.
func (s *shelf[T]) plan(name string, believeList bool) (r *reading[T], mine, list bool) {
	if r := s.known[name]; r != nil && !s.isStale(name, r) {
		return r, false, false
	}
	listed := s.listing != nil && s.listing.isDone()
	switch {
	case believeList && listed && s.listing.err == nil && s.written[name] <= s.listing.began && s.known[name] == nil:
		return nil, false, false
	case s.alone <= 0 && (!listed || isRefusal(s.listing.err)):
		return nil, false, true
	}
	s.alone--
	r = &reading[T]{began: s.writes, done: make(chan struct{})}
	s.known[name] = r
	return r, true, false
}

// isRefusal reports whether a list failed for what a single read would be told too.
func isRefusal(err error) bool {
	return errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrVHostUnreadable)
}

// isStale reports whether something was written since a read began that may have changed what it says.
func (s *shelf[T]) isStale(name string, r *reading[T]) bool {
	since := func(name string) bool { return s.written[name] > r.began }
	switch {
	case r.began == s.writes:
		return false
	case since(name):
		return true
	default:
		return s.speaksOf != nil && (!r.isDone() || slices.ContainsFunc(s.speaksOf(r.value), since))
	}
}

// isKept reports whether a reading is what is known of an object.
func (s *shelf[T]) isKept(name string, r *reading[T]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[name] == r
}

func (s *shelf[T]) read(ctx context.Context, name string, r *reading[T]) {
	defer close(r.done)
	r.value, r.err = s.one(ctx, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.err != nil && ctx.Err() != nil && s.known[name] == r {
		delete(s.known, name)
	}
}

// load reads the list, once.
func (s *shelf[T]) load(ctx context.Context) error {
	for {
		s.mu.Lock()
		r, mine := s.listing, s.listing == nil
		if mine {
			r = &reading[map[string]T]{began: s.writes, done: make(chan struct{})}
			s.listing = r
		}
		s.mu.Unlock()
		if mine {
			s.readAll(ctx, r)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.mu.Lock()
		kept := s.listing == r
		s.mu.Unlock()
		if kept || ctx.Err() != nil {
			return r.err
		}
	}
}

// readAll reads the list. Of what is being read by itself the list says already what it is: that read may fail, and
// then the object would seem to be in neither.
func (s *shelf[T]) readAll(ctx context.Context, r *reading[map[string]T]) {
	defer close(r.done)
	all, err := s.all(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.err = err; err != nil {
		if ctx.Err() != nil {
			s.listing = nil
		}
		return
	}
	for name, value := range all {
		if have := s.known[name]; have == nil || !have.isDone() || have.failed() {
			s.known[name] = &reading[T]{began: r.began, done: r.done, value: value}
		}
	}
}

// list returns all objects, by name.
func (s *shelf[T]) list(ctx context.Context) ([]T, error) {
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	names := maps.Clone(s.written)
	for name := range s.known {
		names[name] = 0
	}
	s.mu.Unlock()
	out := make([]T, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		value, found, err := s.get(ctx, name)
		if gone(err) != nil {
			return nil, err
		}
		if found {
			out = append(out, value)
		}
	}
	return out, nil
}

// wrote makes unknown what was written, or was tried to be.
func (s *shelf[T]) wrote(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	for _, name := range names {
		s.written[name] = s.writes
	}
}

// patch changes what is known of an object as a write did that succeeded. What is not known yet stays so, and what is being
// read is read again. No two values come from one that was changed, so that change may append to it.
func (s *shelf[T]) patch(name string, change func(T) T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	have := s.known[name]
	current := have != nil && have.isDone() && have.err == nil && !s.isStale(name, have)
	s.writes++
	if !current {
		s.written[name] = s.writes
		return
	}
	s.known[name] = &reading[T]{began: s.writes, done: have.done, value: change(have.value)}
}

// keyed makes a value for every key that is asked for.
type keyed[T any] struct {
	build func(key string) T
	mu    sync.Mutex
	byKey map[string]T
}

func newKeyed[T any](build func(key string) T) *keyed[T] {
	return &keyed[T]{build: build, byKey: map[string]T{}}
}

func (k *keyed[T]) get(key string) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	value, ok := k.byKey[key]
	if !ok {
		value = k.build(key)
		k.byKey[key] = value
	}
	return value
}

// allowance is a number of something that is used up.
type allowance struct {
	mu   sync.Mutex
	left int
}

// take uses n of it up, if that much is left.
func (a *allowance) take(n int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left < n {
		a.left = 0
		return false
	}
	a.left -= n
	return true
}
