package brokertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

// waitTimeout bounds every wait for something that the broker is about to do. It is long, because it only
// matters for tests that fail.
const waitTimeout = 90 * time.Second

// Dial opens a connection to a vhost as the administrator, and closes it when the test ends.
func Dial(t testing.TB, b *Broker, vhost string) *amqp091.Connection {
	t.Helper()
	conn, err := amqp091.Dial(b.AMQPURL(vhost))
	if err != nil {
		t.Fatalf("connecting to vhost %q: %v", vhost, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Channel opens a channel on a connection of its own, and closes both when the test ends.
func Channel(t testing.TB, b *Broker, vhost string) *amqp091.Channel {
	t.Helper()
	ch, err := Dial(t, b, vhost).Channel()
	if err != nil {
		t.Fatalf("opening a channel in vhost %q: %v", vhost, err)
	}
	return ch
}

// withChannel runs do with a channel that is closed again at once: helpers are called in loops.
func withChannel(t testing.TB, b *Broker, vhost string, do func(ch *amqp091.Channel)) {
	t.Helper()
	conn, err := amqp091.Dial(b.AMQPURL(vhost))
	if err != nil {
		t.Fatalf("connecting to vhost %q: %v", vhost, err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatalf("opening a channel in vhost %q: %v", vhost, err)
	}
	do(ch)
}

// Publish publishes messages in order and returns when the broker has confirmed all of them. A message that
// no queue takes, or that the broker refuses, fails the test.
func Publish(t testing.TB, b *Broker, vhost, exchange, key string, msgs ...amqp091.Publishing) {
	t.Helper()
	withChannel(t, b, vhost, func(ch *amqp091.Channel) {
		if err := ch.Confirm(false); err != nil {
			t.Fatalf("publishing to exchange %q: turning confirms on: %v", exchange, err)
		}
		returned := ch.NotifyReturn(make(chan amqp091.Return, len(msgs)))
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitTimeout)
		defer cancel()
		pending := make([]*amqp091.DeferredConfirmation, 0, len(msgs))
		for i, msg := range msgs {
			c, err := ch.PublishWithDeferredConfirmWithContext(ctx, exchange, key, true, false, msg)
			if err != nil {
				t.Fatalf("publishing message %d to exchange %q with key %q: %v", i, exchange, key, err)
			}
			pending = append(pending, c)
		}
		for i, c := range pending {
			acked, err := c.WaitContext(ctx)
			if err != nil {
				t.Fatalf("publishing message %d to exchange %q with key %q: waiting for the confirm: %v", i, exchange, key, err)
			}
			if !acked {
				t.Fatalf("publishing message %d to exchange %q with key %q: the broker refused it", i, exchange, key)
			}
		}
		select {
		case r := <-returned: // a return arrives before its confirm
			t.Fatalf("publishing to exchange %q with key %q: returned: %d %s", exchange, key, r.ReplyCode, r.ReplyText)
		default:
		}
	})
}

// Get takes one message from a queue and acknowledges it. It returns false when the queue is empty.
func Get(t testing.TB, b *Broker, vhost, queue string) (amqp091.Delivery, bool) {
	t.Helper()
	got := take(t, b, vhost, queue, 1)
	if len(got) == 0 {
		return amqp091.Delivery{}, false
	}
	return got[0], true
}

// Drain takes all messages that are ready in a queue, acknowledges them, and returns them in the order in
// which they came.
func Drain(t testing.TB, b *Broker, vhost, queue string) []amqp091.Delivery {
	t.Helper()
	return take(t, b, vhost, queue, -1)
}

// takeAttempts is how often a queue is asked that does not answer the broker in time, on a machine that is busy with tests:
// RabbitMQ 3.10 closes the connection then (541), and puts back what it may have taken out.
const takeAttempts = 3

// take takes up to limit messages; any number when limit is negative.
func take(t testing.TB, b *Broker, vhost, queue string, limit int) []amqp091.Delivery {
	t.Helper()
	for attempt := 1; ; attempt++ {
		got, err := tryTake(t, b, vhost, queue, limit)
		var said *amqp091.Error
		switch {
		case err == nil:
			return got
		case len(got) > 0, attempt == takeAttempts, !errors.As(err, &said), said.Code != amqp091.InternalError:
			t.Fatalf("getting from queue %q: %v", queue, err)
		}
	}
}

func tryTake(t testing.TB, b *Broker, vhost, queue string, limit int) (got []amqp091.Delivery, err error) {
	t.Helper()
	withChannel(t, b, vhost, func(ch *amqp091.Channel) {
		for len(got) != limit {
			d, ok, getErr := ch.Get(queue, false)
			if getErr != nil {
				err = getErr
				return
			}
			if !ok {
				break
			}
			if err := d.Ack(false); err != nil {
				t.Fatalf("acknowledging a message of queue %q: %v", queue, err)
			}
			got = append(got, d)
		}
		// An acknowledgement has no answer, but the broker closes a channel after all that was sent on it.
		if err := ch.Close(); err != nil {
			t.Fatalf("acknowledging the messages of queue %q: %v", queue, err)
		}
	})
	return got, err
}

// Depth returns how many messages are ready in a queue, exactly: it asks by a passive declare, which neither
// lags like the management API nor counts unacknowledged messages.
func Depth(t testing.TB, b *Broker, vhost, queue string) int {
	t.Helper()
	depth := 0
	withChannel(t, b, vhost, func(ch *amqp091.Channel) {
		depth = inspect(t, ch, queue)
	})
	return depth
}

func inspect(t testing.TB, ch *amqp091.Channel, queue string) int {
	t.Helper()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		t.Fatalf("asking for the depth of queue %q: %v", queue, err)
	}
	return q.Messages
}

// WaitDepth waits until exactly want messages are ready in a queue, and fails the test when that does not
// happen.
func WaitDepth(t testing.TB, b *Broker, vhost, queue string, want int) {
	t.Helper()
	withChannel(t, b, vhost, func(ch *amqp091.Channel) {
		WaitFor(t, func() (bool, string) {
			depth := inspect(t, ch, queue)
			return depth == want, fmt.Sprintf("queue %q has %d messages ready, want %d", queue, depth, want)
		})
	})
}

// WaitFor polls a condition until it holds, and fails the test with the condition's last description of
// what is wrong when it does not in time.
func WaitFor(t testing.TB, condition func() (ok bool, state string)) {
	t.Helper()
	deadline := time.NewTimer(waitTimeout)
	defer deadline.Stop()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		ok, state := condition()
		if ok {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("after %v: %s", waitTimeout, state)
		case <-ticker.C:
		}
	}
}
