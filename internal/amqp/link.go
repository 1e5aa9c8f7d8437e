package amqp

import (
	"fmt"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

const (
	// sweepFirst and sweepMax bound the pause between two looks for messages that were confirmed before an older one. It
	// doubles while there are none.
	sweepFirst = 5 * time.Millisecond
	sweepMax   = 100 * time.Millisecond
)

// link is a channel in confirm mode with the messages in flight on it. The lane
// writes; collect learns what became of them.
type link struct {
	lane    *lane
	conn    *Conn
	ch      *amqp091.Channel
	returns <-chan amqp091.Return
	closes  <-chan *amqp091.Error
	written chan struct{} // the first message in flight may have been written

	flight outgoings // in the order in which they were written; guarded by the publisher's lock
}

func newLink(l *lane, conn *Conn, ch *amqp091.Channel) *link {
	return &link{
		lane: l, conn: conn, ch: ch, written: make(chan struct{}, 1),
		// amqp091-go drops a return that nobody takes in time, and its message would pass for delivered. There is room for
		// one of every message in flight, since both are taken out together.
		returns: ch.NotifyReturn(make(chan amqp091.Return, l.p.opts.Window)),
		closes:  ch.NotifyClose(make(chan *amqp091.Error, 1)),
	}
}

// write writes a message that is in flight.
func (k *link) write(o *outgoing) {
	confirm, err := k.ch.PublishWithDeferredConfirm(k.lane.exchange, o.key, true, false, o.msg)
	if err != nil {
		return // the channel has ended, which collect learns by itself
	}
	o.confirm.Store(confirm)
	select {
	case k.written <- struct{}{}:
	default:
	}
}

// collect learns what becomes of the messages in flight, until the channel ends.
func (k *link) collect() {
	defer k.lane.p.running.Done()
	timer := time.NewTimer(sweepMax)
	defer timer.Stop()
	pause := sweepFirst
	var list []finished
	for {
		oldest := k.oldest()
		if oldest == nil {
			select {
			case <-k.written:
				continue
			case reply := <-k.closes:
				k.lose(reply)
				return
			}
		}
		sweep := false
		if !isDone(oldest) {
			timer.Reset(pause)
			select {
			case <-oldest.Done():
			case <-timer.C:
				sweep = true
			}
		}
		list = k.gather(list[:0], sweep)
		tell(list)
		switch {
		case len(list) > 0:
			pause = sweepFirst
			clear(list)
		case k.ch.IsClosed():
			k.lose(<-k.closes)
			return
		case sweep:
			pause = min(2*pause, sweepMax)
		}
	}
}

// oldest is the confirm of the first message in flight, nil where that has not
// been written, or there is none.
func (k *link) oldest() *amqp091.DeferredConfirmation {
	k.lane.p.mu.Lock()
	defer k.lane.p.mu.Unlock()
	if k.flight.head == nil {
		return nil
	}
	return k.flight.head.confirm.Load()
}

func isDone(confirm *amqp091.DeferredConfirmation) bool {
	select {
	case <-confirm.Done():
		return true
	default:
		return false
	}
}

// gather takes the messages out of the flight that the broker has decided on:
// the oldest ones or, with sweep, all.
func (k *link) gather(list []finished, sweep bool) []finished {
	l := k.lane
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	decided := k.flight.take(func(o *outgoing) (take, goOn bool) {
		confirm := o.confirm.Load()
		if confirm == nil {
			return false, false
		}
		// The end of a channel looks like a refusal of all that was on it.
		take = isDone(confirm) && (confirm.Acked() || !k.ch.IsClosed())
		return take, take || sweep
	})
	if decided.n == 0 {
		return list
	}
	k.markReturned(decided)
	l.heard = time.Now()
	l.room = min(2*l.room, l.p.opts.Window)
	l.wake.Signal()
	for o := decided.head; o != nil; o = o.next {
		list = o.finish(list, o.verdict())
	}
	return list
}

// verdict is what the broker decided.
func (o *outgoing) verdict() error {
	switch {
	case o.returned != nil:
		return o.returned
	case o.confirm.Load().Acked():
		return nil
	default:
		return ErrNacked
	}
}

// markReturned marks messages that came back, among those decided and in
// flight. A return is here before its message's confirm.
//
// It does not say which publish it answers, and nothing is put on a message that
// would: so it answers all with its routing key and its message id. One of them
// that a queue did take was in all likelihood lost, when that queue was deleted
// before the other one came. At worst it is published twice.
func (k *link) markReturned(decided outgoings) {
	for {
		select {
		case r, ok := <-k.returns:
			if !ok {
				return
			}
			err := fmt.Errorf("%w: returned: %d %s", ErrUnroutable, r.ReplyCode, r.ReplyText)
			decided.mark(&r, err)
			k.flight.mark(&r, err)
		default:
			return
		}
	}
}

func (l *outgoings) mark(r *amqp091.Return, err error) {
	for o := l.head; o != nil; o = o.next {
		if o.key == r.RoutingKey && o.msg.MessageId == r.MessageId {
			o.returned = err
		}
	}
}

// lose ends what is in flight when the channel has ended.
func (k *link) lose(reply *amqp091.Error) {
	l := k.lane
	l.p.mu.Lock()
	k.markReturned(outgoings{})
	err := closeReason(reply)
	var list []finished
	for k.flight.n > 0 {
		o := k.flight.pop()
		if confirm := o.confirm.Load(); confirm != nil && confirm.Acked() {
			list = o.finish(list, o.verdict())
		} else {
			list = o.finish(list, err)
		}
	}
	if l.link == k {
		l.link = nil
	}
	l.wake.Signal()
	l.p.mu.Unlock()
	tell(list)
}

// expire ends what was not confirmed in time, and says whether there was any.
// The publisher's lock is held.
func (k *link) expire(list []finished, now time.Time) ([]finished, bool) {
	p, before := k.lane.p, len(list)
	limit := p.timeout
	for o := k.flight.head; o != nil; o = o.next {
		limit += time.Duration(len(o.msg.Body)) * time.Second / slowest
		if now.Sub(o.since) < limit {
			break
		}
		confirm := o.confirm.Load()
		switch {
		case confirm == nil && !p.blocked:
			k.conn.Abandon() // it cannot be written, not even to the batch that waits: the network is broken
		case confirm != nil && isDone(confirm):
			continue // collect is about to tell
		}
		list = o.finish(list, fmt.Errorf("%w within %s", ErrUnconfirmed, limit.Round(time.Second)))
	}
	return list, len(list) > before
}

// waits says whether somebody waits for a message in flight. The publisher's
// lock is held.
func (k *link) waits() bool {
	for o := k.flight.head; o != nil; o = o.next {
		if o.done != nil {
			return true
		}
	}
	return false
}
