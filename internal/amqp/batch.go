package amqp

import (
	"net"
	"sync"
	"time"
)

const (
	// batchMax is how much may wait to be written before a write waits too.
	batchMax = 64 << 10
	// flushTimeout bounds the last write of a connection that is closed.
	flushTimeout = time.Second
)

// batch gathers what is written to a connection while an earlier write goes on.
// The library makes a system call for every publishing and every
// acknowledgement, and wakes the broker with each; that they were written says
// nothing to anybody, since only a confirm does.
type batch struct {
	net.Conn

	// out is held by who writes to the connection. It is taken before mu.
	out sync.Mutex

	mu      sync.Mutex
	changed *sync.Cond // on mu: something was written, or failed
	waiting []byte
	spare   []byte // the buffer that is not waiting
	writing bool   // a goroutine is to write what waits
	err     error  // why a write failed: none follows it
}

func newBatch(conn net.Conn) *batch {
	b := &batch{Conn: conn}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// Write implements net.Conn. An error is that of an earlier write.
func (b *batch) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.waiting) >= batchMax && b.err == nil {
		b.changed.Wait()
	}
	if b.err != nil {
		return 0, b.err
	}
	b.waiting = append(b.waiting, p...)
	if !b.writing {
		b.writing = true
		go b.flush()
	}
	return len(p), nil
}

// flush writes until nothing waits.
func (b *batch) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.waiting) > 0 && b.err == nil {
		b.mu.Unlock()
		b.push()
		b.mu.Lock()
	}
	b.writing = false
	b.changed.Broadcast()
}

// push writes what waits at once, after a write that goes on: the caller's
// goroutine need not yield for that.
func (b *batch) push() {
	b.out.Lock()
	defer b.out.Unlock()
	b.mu.Lock()
	out, err := b.waiting, b.err
	b.waiting = b.spare[:0]
	b.spare = nil
	b.mu.Unlock()
	if len(out) > 0 && err == nil {
		_, err = b.Conn.Write(out)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
	if cap(out) <= 2*batchMax { // a frame can be as large as the broker allows: such a buffer is not kept
		b.spare = out
	}
	b.changed.Broadcast()
}

// Close implements net.Conn. What waits is written first.
func (b *batch) Close() error {
	_ = b.SetWriteDeadline(time.Now().Add(flushTimeout)) // else the connection is closed already
	b.mu.Lock()
	for b.writing {
		b.changed.Wait()
	}
	b.mu.Unlock()
	return b.Conn.Close()
}
