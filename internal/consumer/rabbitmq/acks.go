package rabbitmq

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

const (
	// flushAfter is how long an acknowledgement waits for others at most.
	flushAfter = 5 * time.Millisecond
	// flushPart is the part of the prefetch that is acknowledged without waiting: the broker sends the next ones while the
	// rest is handled.
	flushPart = 4
)

// acks coalesces the acknowledgements of one channel. The longest prefix of
// deliveries that are all settled is acknowledged at once (multiple=true), never
// across one that is not: the broker would take that one as done too. What is
// acknowledged behind an unsettled delivery waits for it for as long as the next
// flush, and is then acknowledged by itself, since a delivery that is held may
// stay for minutes.
//
// The deliveries of a channel with one consumer have the tags 1, 2, 3, ...
type acks struct {
	ch acknowledger
	// batch is how many acknowledgements are sent without waiting for more.
	batch int
	// flushed is when something was written last, in nanoseconds since 1970.
	flushed *atomic.Int64

	// sending serialises what is written to the channel after looking at states: a multiple acknowledgement must not
	// overtake the rejection of a delivery that it covers. It is taken before mu.
	sending sync.Mutex

	mu sync.Mutex
	// states are those of the deliveries from first on, in a ring: states[tag & (len-1)].
	states []ackState
	// first is the lowest tag that is not known to be settled, and last the highest that was delivered.
	first, last uint64
	// top is the highest tag below first that is acknowledged and not flushed; 0 is none.
	top uint64
	// pending is how many acknowledgements wait to be flushed.
	pending int
	// timer flushes after flushAfter; armed says that it runs.
	timer *time.Timer
	armed bool
	// closed: nothing is flushed any more.
	closed bool
	// failed is why a flush failed.
	failed error
}

// acknowledger is a channel as acks uses it.
type acknowledger interface {
	Ack(tag uint64, multiple bool) error
}

var _ acknowledger = (*amqp091.Channel)(nil)

// ackState is what has become of a delivery.
type ackState uint8

const (
	// unsettled: nobody has said what becomes of it.
	unsettled ackState = iota
	// acked: it is to be acknowledged.
	acked
	// waited: it is to be acknowledged, and a flush has passed since.
	waited
	// gone: the broker was told.
	gone
)

// newAcks makes the coalescer of a channel. The ring has room for what the
// broker may send, and grows where it has sent more, as it may when the channel
// is rejected messages quickly.
func newAcks(ch acknowledger, prefetch int, flushed *atomic.Int64) *acks {
	size := 64
	for size < 2*prefetch {
		size *= 2
	}
	a := &acks{ch: ch, flushed: flushed, batch: max(1, prefetch/flushPart), states: make([]ackState, size), first: 1}
	a.timer = time.AfterFunc(time.Hour, func() { a.flush(true) })
	a.timer.Stop()
	return a
}

// ack notes that a delivery is done. It returns an error when an earlier flush
// failed: the channel is closed then.
func (a *acks) ack(tag uint64) error {
	a.mu.Lock()
	a.grow(tag)
	a.states[a.slot(tag)] = acked
	a.last = max(a.last, tag)
	a.pending++
	err := a.failed
	full := a.pending >= a.batch
	if !full && !a.armed {
		a.armed = true
		a.timer.Reset(flushAfter)
	}
	a.mu.Unlock()
	if full {
		a.flush(false)
	}
	return err
}

// settle writes another settlement of a delivery with send, and notes it.
func (a *acks) settle(tag uint64, send func() error) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	if err := send(); err != nil {
		return err
	}
	a.mu.Lock()
	a.grow(tag)
	a.states[a.slot(tag)] = gone
	a.last = max(a.last, tag)
	a.mu.Unlock()
	return nil
}

// flush acknowledges what can be. idle says that acknowledgements behind an
// unsettled delivery that have waited since the last flush wait no longer.
func (a *acks) flush(idle bool) {
	a.sending.Lock()
	defer a.sending.Unlock()
	a.mu.Lock()
	if a.closed || a.failed != nil {
		a.mu.Unlock()
		return
	}
	if idle {
		a.armed = false
	}
	top := a.advance()
	// So many behind one unsettled delivery would narrow the window that the broker fills.
	single := a.behind(idle || a.pending >= a.batch)
	if a.pending > 0 && !a.armed {
		a.armed = true
		a.timer.Reset(flushAfter)
	}
	a.mu.Unlock()

	if top == 0 && len(single) == 0 {
		return
	}
	a.flushed.Store(time.Now().UnixNano())
	var err error
	if top > 0 {
		err = a.ch.Ack(top, true)
	}
	for _, tag := range single {
		if err == nil {
			err = a.ch.Ack(tag, false)
		}
	}
	if err != nil {
		a.mu.Lock()
		a.failed = err
		a.mu.Unlock()
	}
}

// advance moves first over what is settled, and returns the highest tag on the
// way that is to be acknowledged; 0 is none. a.mu is held.
func (a *acks) advance() (top uint64) {
	for a.first <= a.last {
		slot := a.slot(a.first)
		switch a.states[slot] {
		case unsettled:
			return top
		case acked, waited:
			top = a.first
			a.pending--
		}
		a.states[slot] = unsettled
		a.first++
	}
	return top
}

// behind takes out the acknowledgements behind an unsettled delivery that have
// waited; the others wait from now on, where age is set. a.mu is held.
func (a *acks) behind(age bool) (tags []uint64) {
	if a.pending == 0 || !age {
		return nil
	}
	for tag := a.first + 1; tag <= a.last; tag++ {
		switch slot := a.slot(tag); a.states[slot] {
		case acked:
			a.states[slot] = waited
		case waited:
			a.states[slot] = gone
			a.pending--
			tags = append(tags, tag)
		}
	}
	return tags
}

// close flushes everything and ends the coalescing. It returns how many
// acknowledgements did not get through.
func (a *acks) close(flush bool) (lost int) {
	if flush {
		a.flush(true) // what is behind an unsettled delivery has then waited
		a.flush(true)
	}
	a.timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	return a.pending
}

func (a *acks) slot(tag uint64) int { return int(tag) & (len(a.states) - 1) } //nolint:gosec // a ring's index

// grow makes room for a tag. a.mu is held.
func (a *acks) grow(tag uint64) {
	size := uint64(len(a.states))
	for tag-a.first >= size && tag > a.first {
		size *= 2
	}
	if size == uint64(len(a.states)) {
		return
	}
	bigger := make([]ackState, size)
	for t := a.first; t <= a.last; t++ {
		bigger[t&(size-1)] = a.states[a.slot(t)]
	}
	a.states = bigger
}
