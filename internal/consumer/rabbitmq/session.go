package rabbitmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
)

var (
	_ consumer.Transport = (*Broker)(nil)
	_ consumer.Session   = (*session)(nil)
)

// probeTimeout bounds the look at a queue whose consumer was cancelled.
const probeTimeout = 3 * time.Second

// session is one subscription with a connection and a channel of its own.
type session struct {
	conn    *amqp091.Connection
	ch      *amqp091.Channel
	queue   string
	tag     string
	closes  <-chan *amqp091.Error
	cancels <-chan string

	deliveries <-chan amqp091.Delivery
	// over: the broker has taken back what it delivered, whether or not the channel still takes settlements.
	over atomic.Bool
	// stopped: the consumer was cancelled by us.
	stopped atomic.Bool
	// timesOut says that a cancelled consumer whose queue is still there had exceeded the consumer timeout.
	timesOut bool
}

// Subscribe implements consumer.Transport. It asks whether the queue is there
// and consumes it.
func (b *Broker) Subscribe(ctx context.Context, prefetch int) (consumer.Session, error) {
	conn, address, err := b.dial(ctx, "")
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now()) })
	s, err := b.subscribe(conn, prefetch)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		closeNow(conn)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, b.subscribeError(address, err)
	}
	return s, nil
}

func (b *Broker) subscribe(conn *amqp091.Connection, prefetch int) (*session, error) {
	// A passive declare tells a missing queue from a missing permission. Some versions want more permissions for it than a
	// consumer has (4.2.6 and 4.3.0 wanted configure), so a refusal means nothing: consuming will tell.
	if err := queueExists(conn, b.cfg.Queue); err != nil && replyCode(err) != amqp091.AccessRefused {
		return nil, err
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return nil, err
	}
	version, _ := conn.Properties["version"].(string)
	s := &session{
		conn: conn, ch: ch, queue: b.cfg.Queue, tag: "redeliver-" + rand.Text(),
		closes: ch.NotifyClose(make(chan *amqp091.Error, 1)), cancels: ch.NotifyCancel(make(chan string, 1)),
		timesOut: b.cfg.Quorum && cancelsOnTimeout(version),
	}
	if s.deliveries, err = ch.Consume(b.cfg.Queue, s.tag, false, false, false, false, nil); err != nil {
		return nil, err
	}
	return s, nil
}

// queueExists asks for a queue on a channel that is of no further use: a
// refusal closes it.
func queueExists(conn *amqp091.Connection, queue string) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if _, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil); err != nil {
		return err
	}
	return ch.Close()
}

// cancelsOnTimeout says whether a broker cancels a consumer that exceeds the
// consumer timeout (since 4.3, on quorum queues) instead of closing its channel.
func cancelsOnTimeout(version string) bool {
	var major, minor int
	if n, err := fmt.Sscanf(version, "%d.%d", &major, &minor); n != 2 || err != nil {
		return false
	}
	return major > 4 || major == 4 && minor >= 3
}

// Receive implements consumer.Session.
func (s *session) Receive(d *consumer.Delivery) error {
	// A cancelled consumer's buffered deliveries are void: the broker has them again. So its cancel comes first.
	select {
	case _, ok := <-s.cancels:
		return s.ended(ok)
	default:
	}
	select {
	case _, ok := <-s.cancels:
		return s.ended(ok)
	case delivery, ok := <-s.deliveries:
		if !ok {
			select {
			case _, cancelled := <-s.cancels:
				return s.ended(cancelled)
			default:
				return s.ended(false)
			}
		}
		fillDelivery(d, &delivery, time.Now())
		return nil
	}
}

// ended says why nothing more is received. cancelled says that the broker
// cancelled the consumer.
func (s *session) ended(cancelled bool) error {
	if cancelled {
		s.over.Store(true)
		return s.whyCancelled()
	}
	select {
	case reply := <-s.closes:
		s.over.Store(true)
		return lostError(reply)
	default:
	}
	if s.stopped.Load() {
		return io.EOF
	}
	s.over.Store(true)
	return lostError(nil)
}

// whyCancelled asks, on another channel, whether the queue is still there.
func (s *session) whyCancelled() error {
	answer := make(chan error, 1)
	go func() { answer <- queueExists(s.conn, s.queue) }()
	timer := time.NewTimer(probeTimeout)
	defer timer.Stop()
	var err error
	select {
	case err = <-answer:
	case <-timer.C:
		err = errors.New("the broker does not answer")
	}
	switch {
	case replyCode(err) == amqp091.NotFound:
		return &consumer.LostError{Reason: consumer.LostQueueDeleted, Err: brokerSaid(err)}
	case err == nil && s.timesOut:
		return &consumer.LostError{Reason: consumer.LostConsumerTimeout,
			Err: errors.New("the consumer was cancelled and its queue is still there: a message was held longer than the consumer timeout")}
	default:
		return &consumer.LostError{Reason: consumer.LostCancelled, Err: brokerSaid(err)}
	}
}

// errOver is returned for settlements that would reach nothing.
var errOver = errors.New("the broker has taken back what this session was sent")

// Settle implements consumer.Session.
func (s *session) Settle(d *consumer.Delivery, verb consumer.Verb) error {
	if s.over.Load() {
		return errOver
	}
	switch verb {
	case consumer.VerbAck:
		return s.ch.Ack(d.Tag, false)
	case consumer.VerbRequeue:
		return s.ch.Reject(d.Tag, true)
	case consumer.VerbHandBack:
		return s.ch.Nack(d.Tag, false, true)
	case consumer.VerbDeadLetter:
		return s.ch.Reject(d.Tag, false)
	default:
		return fmt.Errorf("a delivery cannot be settled with %s", verb)
	}
}

// Stop implements consumer.Session. After it, Receive returns what was on its
// way and then io.EOF.
func (s *session) Stop(ctx context.Context) error {
	s.stopped.Store(true)
	answer := make(chan error, 1)
	go func() { answer <- s.ch.Cancel(s.tag, false) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements consumer.Session.
func (s *session) Close(ctx context.Context) error {
	s.over.Store(true)
	return closeConn(ctx, s.conn)
}

// closeConn closes a connection before ctx ends.
func closeConn(ctx context.Context, conn *amqp091.Connection) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(probeTimeout)
	}
	err := conn.CloseDeadline(deadline)
	if errors.Is(err, amqp091.ErrClosed) {
		return nil
	}
	return err
}

// closeNow closes a connection that is of no more use.
func closeNow(conn *amqp091.Connection) {
	_ = conn.CloseDeadline(time.Now().Add(probeTimeout)) // closed either way
}
