package rabbitmqadmin

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// bindsAtOnce is how many bindings of one exchange are written at the same time.
const bindsAtOnce = 8

// exchangeLocks keeps writes to one exchange apart: declarations and deletions from everything else, so that nobody
// binds to an exchange between the look at it and its deletion. Bindings may run beside each other. Waiting ends with
// the context.
type exchangeLocks struct {
	mu   sync.Mutex
	byID map[[2]string]*exchangeLock
}

// exchangeLock is a lock for readers and writers made of channels: a reader takes one slot, a writer takes all.
type exchangeLock struct {
	writer chan struct{}
	slots  chan struct{}
}

func (l *exchangeLocks) get(vhost, name string) *exchangeLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := [2]string{vhost, name}
	lock := l.byID[id]
	if lock == nil {
		if l.byID == nil {
			l.byID = map[[2]string]*exchangeLock{}
		}
		lock = &exchangeLock{writer: make(chan struct{}, 1), slots: make(chan struct{}, bindsAtOnce)}
		l.byID[id] = lock
	}
	return lock
}

// write waits until nobody else writes to the exchange or its bindings.
func (l *exchangeLocks) write(ctx context.Context, vhost, name string) (unlock func(), err error) {
	lock := l.get(vhost, name)
	if err := take(ctx, lock.writer); err != nil {
		return nil, err
	}
	for taken := range bindsAtOnce {
		if err := take(ctx, lock.slots); err != nil {
			release(lock.slots, taken)
			release(lock.writer, 1)
			return nil, err
		}
	}
	return func() {
		release(lock.slots, bindsAtOnce)
		release(lock.writer, 1)
	}, nil
}

// bind waits until nobody declares or deletes any of the exchanges. They are locked in one order, whichever way a
// binding goes, so that two bindings never wait for each other.
func (l *exchangeLocks) bind(ctx context.Context, vhost string, names ...string) (unlock func(), err error) {
	slices.Sort(names)
	var held []*exchangeLock
	unlock = func() {
		for _, lock := range held {
			release(lock.slots, 1)
		}
	}
	for _, name := range slices.Compact(names) {
		lock := l.get(vhost, name)
		if err := take(ctx, lock.slots); err != nil {
			unlock()
			return nil, err
		}
		held = append(held, lock)
	}
	return unlock, nil
}

func take(ctx context.Context, slots chan<- struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for other writes of this run: %w", ctx.Err())
	}
}

func release(slots <-chan struct{}, n int) {
	for range n {
		<-slots
	}
}
