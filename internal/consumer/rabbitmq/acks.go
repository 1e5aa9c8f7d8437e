package rabbitmq

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
)

const (
	// flushAfter is how long an acknowledgement waits for others at most.
	flushAfter = 5 * time.Millisecond
	// flushPart is the part of the window that is acknowledged without waiting: the broker sends the next ones while the
	// rest is handled. It is large because each acknowledgement is a command that a quorum queue commits.
	flushPart = 2
)

// acks coalesces the acknowledgements of one channel. Everything below the
// lowest delivery that is not settled is acknowledged at once (multiple=true),
// never across that one: the broker would take it as done too. What is
// acknowledged above it is acknowledged by itself: at once where it is known to
// be held, which may last for minutes, and else when a flush has passed, since a
// handler that runs may return any moment.
//
// The deliveries of a channel have the tags 1, 2, 3, ... Of those that were
// delivered, only the unsettled ones are remembered, which are no more than the
// prefetch.
type acks struct {
	ch acknowledger
	// push has what was written to ch leave at once: until it does, the broker sends nothing more.
	push     func()
	prefetch int
	// flushed is when something was written last, in nanoseconds since 1970.
	flushed *atomic.Int64

	// sending serialises what is written to the channel after looking at the rest: a multiple acknowledgement must not
	// overtake the rejection of a delivery that it covers. It is taken before mu.
	sending sync.Mutex

	mu sync.Mutex
	// head and tail are the unsettled deliveries, in order, and held is how many of them are held.
	head, tail *consumer.Delivery
	held       int
	// fresh are the tags to be acknowledged, and aged those that a flush has passed by.
	fresh, aged []uint64
	// timer flushes after flushAfter; armed says that it runs.
	timer *time.Timer
	armed bool
	// closed: nothing is flushed any more. unsent counts the acknowledgements that did not get through.
	closed bool
	unsent int
	// failed is why a flush failed.
	failed error
	// single is scratch space of a flush, which holds sending.
	single []uint64
}

// acknowledger is a channel as acks uses it.
type acknowledger interface {
	Ack(tag uint64, multiple bool) error
}

var _ acknowledger = (*amqp091.Channel)(nil)

// errAcksClosed is returned for acknowledgements that would reach nothing.
var errAcksClosed = errors.New("the session takes no more acknowledgements")

// newAcks makes the coalescer of a channel.
func newAcks(ch acknowledger, push func(), prefetch int, flushed *atomic.Int64) *acks {
	a := &acks{ch: ch, push: push, prefetch: prefetch, flushed: flushed}
	a.timer = time.AfterFunc(time.Hour, func() { a.flush(true) })
	a.timer.Stop()
	return a
}

// deliver notes a delivery. They come in the order of their tags.
func (a *acks) deliver(d *consumer.Delivery) {
	a.mu.Lock()
	d.Prev = a.tail
	if a.tail == nil {
		a.head = d
	} else {
		a.tail.Next = d
	}
	a.tail = d
	a.mu.Unlock()
}

// hold notes that a delivery will stay unsettled for a while.
func (a *acks) hold(d *consumer.Delivery) {
	a.mu.Lock()
	if !d.Held {
		d.Held = true
		a.held++
	}
	a.mu.Unlock()
}

// forget takes a delivery out of the unsettled ones. a.mu is held.
func (a *acks) forget(d *consumer.Delivery) {
	if d.Prev == nil {
		a.head = d.Next
	} else {
		d.Prev.Next = d.Next
	}
	if d.Next == nil {
		a.tail = d.Prev
	} else {
		d.Next.Prev = d.Prev
	}
	d.Prev, d.Next = nil, nil
	if d.Held {
		d.Held = false
		a.held--
	}
}

// ack notes that a delivery is done. It returns an error when it will not get
// through, or an earlier one did not: the channel is closed then.
func (a *acks) ack(d *consumer.Delivery) error {
	a.mu.Lock()
	if a.closed || a.failed != nil {
		defer a.mu.Unlock()
		if a.failed != nil {
			return a.failed
		}
		return errAcksClosed
	}
	a.forget(d)
	a.fresh = append(a.fresh, d.Tag)
	full := a.wait()
	if !full && !a.armed {
		a.armed = true
		a.timer.Reset(flushAfter)
	}
	a.mu.Unlock()
	if full {
		a.flush(false)
	}
	return nil
}

// wait says whether a part of what the broker may send while others are held
// waits to be acknowledged. a.mu is held.
func (a *acks) wait() bool {
	return len(a.fresh)+len(a.aged) >= max(1, (a.prefetch-a.held)/flushPart)
}

// settle writes another settlement of a delivery with send, and notes it.
func (a *acks) settle(d *consumer.Delivery, send func() error) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	if err := send(); err != nil {
		return err
	}
	a.mu.Lock()
	a.forget(d)
	a.mu.Unlock()
	return nil
}

// flush acknowledges what can be. late says that the time is over in which an
// acknowledgement waits for an unsettled delivery before it.
func (a *acks) flush(late bool) {
	a.sending.Lock()
	defer a.sending.Unlock()
	a.mu.Lock()
	if late {
		a.armed = false
	}
	if a.closed || a.failed != nil {
		a.mu.Unlock()
		return
	}
	top, covered := a.below()
	single := a.above(late || a.wait())
	if len(a.fresh)+len(a.aged) > 0 && !a.armed {
		a.armed = true
		a.timer.Reset(flushAfter)
	}
	a.mu.Unlock()
	if covered == 0 && len(single) == 0 {
		return
	}
	a.flushed.Store(time.Now().UnixNano())
	var err error
	left := covered + len(single)
	if covered > 0 {
		if err = a.ch.Ack(top, true); err == nil {
			left -= covered
		}
	}
	for _, tag := range single {
		if err == nil {
			if err = a.ch.Ack(tag, false); err == nil {
				left--
			}
		}
	}
	a.push()
	if err != nil {
		a.mu.Lock()
		a.failed = err
		a.unsent += left
		a.mu.Unlock()
	}
}

// below takes out the acknowledgements below every unsettled delivery: how many
// they are, and the highest, which covers them all. a.mu is held.
func (a *acks) below() (top uint64, covered int) {
	lowest := uint64(math.MaxUint64)
	if a.head != nil {
		lowest = a.head.Tag
	}
	take := func(tags []uint64) []uint64 {
		kept := tags[:0]
		for _, tag := range tags {
			if tag < lowest {
				top = max(top, tag)
				covered++
			} else {
				kept = append(kept, tag)
			}
		}
		return kept
	}
	a.fresh, a.aged = take(a.fresh), take(a.aged)
	return top, covered
}

// above takes out the acknowledgements above an unsettled delivery that do not
// wait for it: all where it is held, else those that a flush has passed by; with
// age, this flush passes by the others. a.mu is held.
func (a *acks) above(age bool) []uint64 {
	a.single = a.single[:0]
	switch {
	case a.head != nil && a.head.Held:
		a.single = append(append(a.single, a.aged...), a.fresh...)
		a.aged, a.fresh = a.aged[:0], a.fresh[:0]
	case age:
		a.single = append(a.single, a.aged...)
		a.aged, a.fresh = append(a.aged[:0], a.fresh...), a.fresh[:0]
	}
	return a.single
}

// close ends the coalescing, after a last flush of everything where flush says
// so. It returns how many acknowledgements did not get through.
func (a *acks) close(flush bool) (unsent int) {
	if flush {
		a.flush(true) // after this one, everything has been passed by
		a.flush(true)
	}
	a.timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.closed = true
		a.unsent += len(a.fresh) + len(a.aged)
	}
	return a.unsent
}
