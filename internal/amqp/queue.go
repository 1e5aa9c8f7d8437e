package amqp

import (
	"context"
	"errors"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

// SettleGrace is how long a channel stays open after its last settlement, at
// least, on a quorum queue. It hands such a queue 32 settlements at a time, keeps
// the others until those are committed, and forgets them when it is closed: of 500
// acks that a close followed at once, 1 to 93% were lost on 3.10, 4.0 and 4.3
// alike, and none after 20 ms. Nothing in the protocol tells when they are through.
const SettleGrace = 100 * time.Millisecond

const (
	// afterCancelTimeout bounds the looks at a queue whose consumer was cancelled, of which there are afterCancelTries.
	afterCancelTimeout = 3 * time.Second
	afterCancelTries   = 5
	afterCancelPause   = 100 * time.Millisecond
)

// FindQueue asks for a queue and its counts, on a channel of its own, since a refusal closes it.
// Some versions want more permissions for that than a consumer has (4.2.6 and
// 4.3.0 wanted configure): a 403 says nothing about the queue.
func (c *Conn) FindQueue(queue string) (amqp091.Queue, error) {
	ch, err := c.Channel()
	if err != nil {
		return amqp091.Queue{}, err
	}
	found, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		return amqp091.Queue{}, err
	}
	return found, ch.Close()
}

// AfterCancel is FindQueue for a queue whose consumer the broker cancelled: with
// nil, the queue is still there. It asks a few times, because 4.3 cancels the
// consumers of a queue before it forgets the queue, and for some seconds at most.
func (c *Conn) AfterCancel(queue string) error {
	ctx, cancel := context.WithTimeout(context.Background(), afterCancelTimeout)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		var err error
		for range afterCancelTries {
			if _, err = c.FindQueue(queue); err != nil {
				break
			}
			select {
			case <-time.After(afterCancelPause):
			case <-ctx.Done():
			}
		}
		answer <- err
	}()
	select {
	case err := <-answer:
		return Said(err)
	case <-ctx.Done():
		return errors.New("the broker does not answer")
	}
}
