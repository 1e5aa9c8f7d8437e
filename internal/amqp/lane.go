package amqp

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

// outgoing is a message on its way. It is in the queue of its lane or in the
// flight of a link, and stays in the flight after it was given up, until the
// broker says something about it. Its fields are guarded by the publisher's lock
// unless they never change.
type outgoing struct {
	next *outgoing

	key   string
	msg   amqp091.Publishing
	size  int         // of its header frame
	done  func(error) // nil once it was told
	since time.Time   // when it was published, then when it was written
	// confirm is set when it has been written, without the lock.
	confirm  atomic.Pointer[amqp091.DeferredConfirmation]
	returned error // why it came back
}

// finished is a message whose fate is known, which is still to be told.
type finished struct {
	done func(error)
	err  error
}

// finish takes what is to be told about a message, once.
func (o *outgoing) finish(list []finished, err error) []finished {
	if o.done == nil {
		return list
	}
	list = append(list, finished{o.done, err})
	o.done = nil
	return list
}

// tell tells what became of messages. The publisher's lock is not held.
func tell(list []finished) {
	for _, f := range list {
		f.done(f.err)
	}
}

// outgoings is a list in order of publication.
type outgoings struct {
	head, tail *outgoing
	n          int
}

func (l *outgoings) push(o *outgoing) {
	if l.tail == nil {
		l.head = o
	} else {
		l.tail.next = o
	}
	l.tail = o
	l.n++
}

func (l *outgoings) pop() *outgoing {
	o := l.head
	l.head, o.next = o.next, nil
	if l.head == nil {
		l.tail = nil
	}
	l.n--
	return o
}

// take takes messages out, from the front. want says of each whether to take
// it, and whether to look at the one behind it.
func (l *outgoings) take(want func(*outgoing) (take, goOn bool)) (taken outgoings) {
	var before *outgoing
	for o, goOn := l.head, true; o != nil && goOn; {
		next := o.next
		var take bool
		if take, goOn = want(o); take {
			if before == nil {
				l.head = next
			} else {
				before.next = next
			}
			if next == nil {
				l.tail = before
			}
			l.n--
			o.next = nil
			taken.push(o)
		} else {
			before = o
		}
		o = next
	}
	return taken
}

// giveUp empties a list.
func (l *outgoings) giveUp(list []finished, err error) []finished {
	for l.n > 0 {
		list = l.pop().finish(list, err)
	}
	return list
}

// lane is the messages on their way to one exchange, or with one routing key of
// it, and the goroutine that writes them. Its channel carries no others, since an
// exchange that is not there, or may not be written to, closes the channel.
type lane struct {
	p        *Publisher
	exchange string
	wake     *sync.Cond // on the publisher's lock: there may be something to write

	queue   outgoings // not written yet
	link    *link     // where they are written; nil before the first and after a channel ended
	retired []*link   // links on which a message was not confirmed in time, while others may be
	room    int       // how many may be in flight
	heard   time.Time // when the broker last confirmed or refused one
}

func newLane(p *Publisher, exchange string) *lane {
	return &lane{p: p, exchange: exchange, wake: sync.NewCond(&p.mu), room: p.opts.Window}
}

// run writes messages until the publisher is closed. Writing may block for as
// long as the network does, and so happens here and nowhere else.
func (l *lane) run() {
	defer l.p.running.Done()
	for {
		k, o := l.next()
		switch {
		case o != nil:
			k.write(o)
		case !l.open():
			return
		}
	}
}

// next waits for a message that can be written, and puts it in flight before it
// is: its return may be here before the write has come back. Without a channel
// to write on, or after Close, it returns none.
func (l *lane) next() (*link, *outgoing) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	for {
		if l.link != nil && l.link.ch.IsClosed() {
			l.link = nil
		}
		switch {
		case l.p.closed:
			return nil, nil
		case l.queue.n == 0, l.p.blocked, l.link != nil && l.link.flight.n >= l.room:
			l.wake.Wait()
		case l.link == nil:
			return nil, nil
		default:
			o := l.queue.pop()
			if limit := l.link.conn.Config.FrameSize; limit > 0 && o.size > limit {
				refused := o.finish(nil, &TooLargeError{Size: o.size, Max: limit})
				l.p.mu.Unlock()
				tell(refused)
				l.p.mu.Lock()
				continue
			}
			o.since = time.Now()
			l.link.flight.push(o)
			return l.link, o
		}
	}
}

// open opens a channel. Where that fails, so does everything that waits for it.
// It returns false when the publisher was closed.
func (l *lane) open() bool {
	conn, err := l.p.connection(l.p.ctx)
	var ch *amqp091.Channel
	var opening error
	if err == nil {
		ch, opening = openChannel(conn)
	}
	l.p.mu.Lock()
	if l.p.closed {
		l.p.mu.Unlock()
		return false
	}
	var lost []finished
	switch {
	case err != nil:
		lost = l.queue.giveUp(nil, err)
	case opening != nil:
		lost = l.queue.giveUp(nil, l.p.rest(opening))
	default:
		l.p.failures = 0
		l.link = newLink(l, conn, ch)
		l.p.running.Add(1)
		go l.link.collect()
	}
	l.p.mu.Unlock()
	tell(lost)
	return true
}

// giveUp ends all messages. What is in flight stays there. The publisher's lock
// is held.
func (l *lane) giveUp(list []finished, err error) []finished {
	list = l.queue.giveUp(list, err)
	for _, k := range append(l.retired, l.link) {
		if k != nil {
			for o := k.flight.head; o != nil; o = o.next {
				list = o.finish(list, err)
			}
		}
	}
	return list
}

// idle: nobody waits for anything. The publisher's lock is held.
func (l *lane) idle() bool {
	return l.queue.n == 0 && len(l.retired) == 0 && (l.link == nil || !l.link.waits())
}

// expire ends what has waited too long. The publisher's lock is held.
//
// A channel on which a message was not confirmed in time is closed, as soon as
// nothing else waits on it: RabbitMQ 3.10 then gives up what a queue without a
// leader has not taken, so that it does not come on top of what is published in
// its place; 4.3 keeps it. On the next channel messages go one at a time until one
// is confirmed, or refused.
func (l *lane) expire(list []finished, now time.Time) []finished {
	if l.link != nil {
		var late bool
		if list, late = l.link.expire(list, now); late {
			l.retired = append(l.retired, l.link)
			l.link, l.room = nil, 1
			l.wake.Signal()
		}
	}
	l.retired = slices.DeleteFunc(l.retired, func(k *link) bool {
		list, _ = k.expire(list, now)
		if k.waits() {
			return false
		}
		go k.ch.Close() // it may be as slow as its messages; the connection's end ends it too
		return true
	})
	if now.Sub(l.heard) < l.p.timeout {
		return list // it moves
	}
	for l.queue.n > 0 && now.Sub(l.queue.head.since) >= l.p.timeout {
		list = l.queue.pop().finish(list, l.stalled())
	}
	return list
}

// stalled is why a message was not written.
func (l *lane) stalled() error {
	switch {
	case l.p.blocked:
		return fmt.Errorf("%w: not sent within %s, because an alarm blocks publishers: %s", ErrNotConnected, l.p.timeout, l.p.reason)
	case l.p.conn == nil || l.p.conn.IsClosed():
		return fmt.Errorf("%w within %s", ErrNotConnected, l.p.timeout)
	default:
		return fmt.Errorf("not sent within %s: those sent before it are %w", l.p.timeout, ErrUnconfirmed)
	}
}
