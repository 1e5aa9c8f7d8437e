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

// errUnlistable says that objects can be read one by one only.
var errUnlistable = errors.New("the broker cannot list these")

// shelf keeps what was read of one kind of object. The first few objects are read by themselves; then all are, in one
// list. Everything is read once, whoever asks at the same time; what failed is read again by whoever asks next.
type shelf[T any] struct {
	one func(ctx context.Context, name string) (T, error)
	all func(ctx context.Context) (map[string]T, error)

	mu sync.Mutex
	// alone is how many more objects are read by themselves.
	alone int
	known map[string]*reading[T]
	// listing is the list, on its way or done; nil before.
	listing *reading[map[string]T]
	// written are the objects that were written since the list began: it may not have them as they are.
	written map[string]bool
	// closed is the done of everything that was not read by itself.
	closed chan struct{}
}

// reading is a read on its way, or what came of it once done is closed.
type reading[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func newReading[T any]() *reading[T] { return &reading[T]{done: make(chan struct{})} }

func (r *reading[T]) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func newShelf[T any](alone int, one func(context.Context, string) (T, error), all func(context.Context) (map[string]T, error)) *shelf[T] {
	s := &shelf[T]{one: one, all: all, alone: alone, known: map[string]*reading[T]{}, written: map[string]bool{}, closed: make(chan struct{})}
	close(s.closed)
	return s
}

// keep makes an object known. The caller holds the lock.
func (s *shelf[T]) keep(name string, value T) {
	s.known[name] = &reading[T]{done: s.closed, value: value}
}

// get returns an object. found is false where the list does not have it; an object that was read by itself and is not
// there is the error of that.
func (s *shelf[T]) get(ctx context.Context, name string) (value T, found bool, err error) {
	for {
		s.mu.Lock()
		r, mine, list := s.plan(name)
		s.mu.Unlock()
		switch {
		case list:
			if err := s.load(ctx); err != nil && !errors.Is(err, errUnlistable) {
				return value, false, err
			}
			continue
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
		if !mine && r.err != nil && !errors.Is(r.err, ErrNotFound) && ctx.Err() == nil {
			continue // somebody else's failure
		}
		return r.value, r.err == nil, r.err
	}
}

// plan says how to get an object: from a reading, which may be the caller's to carry out; from a list; or not at all,
// because the list does not have it.
func (s *shelf[T]) plan(name string) (r *reading[T], mine, list bool) {
	if r := s.known[name]; r != nil {
		return r, false, false
	}
	listed := s.listing != nil && s.listing.isDone()
	switch {
	case listed && !s.written[name]:
		return nil, false, false
	case !listed && s.alone <= 0:
		return nil, false, true
	}
	s.alone--
	r = newReading[T]()
	s.known[name] = r
	return r, true, false
}

// getAlone reads an object that the list does not have.
func (s *shelf[T]) getAlone(ctx context.Context, name string) (T, error) {
	s.mu.Lock()
	s.written[name] = true
	s.mu.Unlock()
	value, _, err := s.get(ctx, name)
	return value, err
}

func (s *shelf[T]) read(ctx context.Context, name string, r *reading[T]) {
	defer close(r.done)
	r.value, r.err = s.one(ctx, name)
	if r.err != nil && !errors.Is(r.err, ErrNotFound) {
		s.forget(name, r)
	}
}

func (s *shelf[T]) forget(name string, r *reading[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[name] == r {
		delete(s.known, name)
	}
}

// list returns all objects.
func (s *shelf[T]) list(ctx context.Context) ([]T, error) {
	if err := s.load(ctx); err != nil {
		return nil, err
	}
	return s.values(), nil
}

// load reads the list, once.
func (s *shelf[T]) load(ctx context.Context) error {
	for {
		s.mu.Lock()
		r, mine := s.listing, false
		if r == nil {
			r, mine = newReading[map[string]T](), true
			s.listing, s.written = r, map[string]bool{}
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
		if r.err == nil || mine || ctx.Err() != nil || errors.Is(r.err, errUnlistable) {
			return r.err
		}
	}
}

func (s *shelf[T]) readAll(ctx context.Context, r *reading[map[string]T]) {
	defer close(r.done)
	r.value, r.err = s.all(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.err != nil {
		s.listing = nil
		if errors.Is(r.err, errUnlistable) {
			s.alone = never
		}
		return
	}
	for name, value := range r.value {
		if s.known[name] == nil && !s.written[name] {
			s.keep(name, value)
		}
	}
	r.value = nil
}

// values are all objects that are known to be there, by name.
func (s *shelf[T]) values() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]T, 0, len(s.known))
	for _, name := range slices.Sorted(maps.Keys(s.known)) {
		if r := s.known[name]; r.isDone() && r.err == nil {
			out = append(out, r.value)
		}
	}
	return out
}

// put keeps an object as it was written.
func (s *shelf[T]) put(name string, value T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(name, value)
	s.written[name] = true
}

// drop forgets an object that was deleted: whoever asks for it reads it by itself.
func (s *shelf[T]) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, name)
	s.written[name] = true
}

// change rewrites an object that is known; one that is not is read by itself when it is asked for.
func (s *shelf[T]) change(name string, to func(T) T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.known[name]
	listed := s.listing != nil && s.listing.isDone()
	switch {
	case r != nil && r.isDone() && r.err == nil, r == nil && listed && !s.written[name]:
		var value T
		if r != nil {
			value = r.value
		}
		s.keep(name, to(value))
	default:
		delete(s.known, name)
	}
	s.written[name] = true
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
