package sqs

import (
	"context"
	"sync"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
)

const (
	// flushAfter is how long a request waits for others, and flushGroupAfter how long in a FIFO queue, where the next
	// messages of a group wait for it.
	flushAfter      = 100 * time.Millisecond
	flushGroupAfter = 20 * time.Millisecond
	// senders is how many requests of a kind are on their way at a time.
	senders = 16
)

// batcher collects what goes into one request: as much as a batch holds, or what
// has come within after.
type batcher[E any] struct {
	after time.Duration
	send  func([]E) // it returns when the service, or time, has dealt with all of them
	slots chan struct{}

	mu      sync.Mutex
	idle    sync.Cond
	waiting []E
	timer   *time.Timer
	armed   bool
	// pending counts what was added and not dealt with.
	pending int
}

func newBatcher[E any](after time.Duration, send func([]E)) *batcher[E] {
	b := &batcher[E]{after: after, send: send, slots: make(chan struct{}, senders)}
	b.idle.L = &b.mu
	b.timer = time.AfterFunc(time.Hour, b.flush)
	b.timer.Stop()
	return b
}

// add adds an entry; now has it leave at once, with what waits.
func (b *batcher[E]) add(e E, now bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending++
	b.waiting = append(b.waiting, e)
	switch {
	case now || b.after == 0 || len(b.waiting) >= sqsapi.BatchMax:
		b.leave()
	case !b.armed:
		b.armed = true
		b.timer.Reset(b.after)
	}
}

// flush lets go what waits.
func (b *batcher[E]) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave()
}

// leave is flush with b.mu held.
func (b *batcher[E]) leave() {
	b.armed = false
	b.timer.Stop()
	for len(b.waiting) > 0 {
		n := min(len(b.waiting), sqsapi.BatchMax)
		batch := b.waiting[:n:n]
		b.waiting = b.waiting[n:]
		go b.carry(batch)
	}
	b.waiting = nil
}

func (b *batcher[E]) carry(batch []E) {
	b.slots <- struct{}{}
	b.send(batch)
	<-b.slots
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending -= len(batch); b.pending == 0 {
		b.idle.Broadcast()
	}
}

func (b *batcher[E]) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pending
}

// drain lets go what waits, and waits until all is dealt with or ctx is done.
func (b *batcher[E]) drain(ctx context.Context) {
	defer context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.idle.Broadcast()
	})()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave()
	for b.pending > 0 && ctx.Err() == nil {
		b.idle.Wait()
	}
}
