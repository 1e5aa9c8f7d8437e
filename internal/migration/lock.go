package migration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const (
	// lockPatience is how long a lock is waited for that somebody has: as long as a broker may take to give up the connection of
	// a run that is no more.
	lockPatience = 4 * heartbeat
	lockPause    = 500 * time.Millisecond
)

// LockedError says that another run works on the queue.
type LockedError struct {
	Queue, Lock string
	// Holder is who does, as it says itself, and From the connection, as the broker names it; "" where that is not known.
	Holder, From string
}

func (e *LockedError) Error() string {
	by := ""
	if e.Holder != "" {
		by = " (on " + e.Holder
		if e.From != "" {
			by += ", from " + e.From
		}
		by += ")"
	}
	return fmt.Sprintf("another run%s migrates queue %q at this moment: it holds queue %q, which goes with its connection, and has not let go of it for %s. Two at once would multiply messages. "+
		"Wait until it has ended and apply again, which finishes what it may leave; a state that is locked, as that of a remote backend is, keeps applies apart", by, e.Queue, e.Lock, lockPatience)
}

// LockLostError says that a run has stopped because another one may have begun.
type LockLostError struct {
	Lock string
	Err  error
}

func (e *LockLostError) Error() string {
	return fmt.Sprintf("queue %q, which keeps other runs away as long as its connection lasts, was lost: %v. The run has stopped: apply again, which goes on from here", e.Lock, e.Err)
}

// Unwrap returns what became of the lock.
func (e *LockLostError) Unwrap() error { return e.Err }

// lock has this be the only run that works on the queue, wherever others are: a queue that is exclusive to a connection goes
// with it, and the broker lets nobody else have it. The context that is returned ends when the lock is lost, because of a
// [LockLostError]. release gives it up.
func (m *run) lock(ctx context.Context) (held context.Context, release func(), err error) {
	conn, err := m.broker.Dial(ctx, " (migration of "+m.Queue.Name+")")
	if err != nil {
		return nil, nil, err
	}
	shut := func() { _ = conn.Close(context.WithoutCancel(ctx)) }
	ch, err := m.take(ctx, conn)
	if err != nil {
		shut()
		return nil, nil, err
	}
	closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
	// Who consumes is told when the queue is deleted, too.
	deliveries, err := ch.Consume(m.names.Lock, "", true, true, false, false, nil)
	if err != nil {
		shut()
		return nil, nil, fmt.Errorf("consuming from queue %q, which keeps other runs away: %w", m.names.Lock, amqp.Said(err))
	}
	held, lose := context.WithCancelCause(ctx)
	go func() {
		for range deliveries { // somebody else's, if any
		}
		reason := errors.New("it was deleted")
		select {
		case reply := <-closed:
			if reply != nil {
				reason = amqp.Said(reply)
			}
		default:
		}
		lose(&LockLostError{Lock: m.names.Lock, Err: reason})
	}()
	return held, func() {
		lose(nil)
		shut()
	}, nil
}

// take declares the lock. Somebody else's is waited for, in case that only the connection is left of them.
func (m *run) take(ctx context.Context, conn *amqp.Conn) (*amqp091.Channel, error) {
	args := amqp091.Table{}
	for key, value := range m.names.LockArguments(holder()) {
		args[key] = value
	}
	for end := time.Now().Add(lockPatience); ; {
		ch, err := conn.Channel()
		if err != nil {
			return nil, err
		}
		_, err = ch.QueueDeclare(m.names.Lock, false, true, true, false, args)
		switch {
		case err == nil:
			return ch, nil
		case amqp.ReplyCode(err) != amqp091.ResourceLocked:
			return nil, fmt.Errorf("declaring queue %q, which keeps other runs away: %w", m.names.Lock, amqp.Said(err))
		}
		locked := m.locked(ctx)
		if time.Now().After(end) {
			return nil, locked
		}
		m.step = StepLock
		m.progress(Progress{Waiting: locked.Error()})
		if err := pause(ctx, lockPause); err != nil {
			return nil, fmt.Errorf("%w: %w", locked, err)
		}
	}
}

// locked says who has the lock, as far as that can be found out.
func (m *run) locked(ctx context.Context) *LockedError {
	e := &LockedError{Queue: m.Queue.Name, Lock: m.names.Lock}
	if live, err := m.find(ctx, m.names.Lock); err == nil && live != nil {
		e.Holder, e.From = topology.Holder(live.Arguments), live.Owner
	}
	return e
}

// holder is what others are told of this run.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "a host without a name"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}
