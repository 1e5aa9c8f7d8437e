package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
)

var (
	_ consumer.Transport = (*Broker)(nil)
	_ consumer.Session   = (*session)(nil)
)

const (
	// consumerTag names the one consumer of a channel. It is short because every delivery carries it.
	consumerTag = "redeliver"
	// subscribeTimeout bounds a subscription. A queue that has no leader lets a consumer wait for ever, with a connection
	// that is in good health.
	subscribeTimeout = 30 * time.Second
)

// session is one subscription with a connection and a channel of its own.
type session struct {
	conn    *amqp.Conn
	ch      *amqp091.Channel
	queue   string
	closes  <-chan *amqp091.Error
	cancels <-chan string

	deliveries <-chan amqp091.Delivery
	// acks coalesces acknowledgements; nil where each is sent by itself.
	acks *acks
	// over: the broker has taken back what it delivered, whether or not the channel still takes settlements.
	over atomic.Bool
	// stopped: the consumer was cancelled by us.
	stopped atomic.Bool
	// lastSettled is when something was settled last, in nanoseconds since 1970; grace is how long Close waits after that.
	lastSettled atomic.Int64
	grace       atomic.Int64
	// unsent is how many acknowledgements were taken and did not reach the broker; Close sets it.
	unsent atomic.Int64
	// timesOut says that a cancelled consumer whose queue is still there had exceeded the consumer timeout.
	timesOut bool

	// delivered is the tag of the last delivery, and settled how many deliveries were settled: see watch.
	delivered, settled atomic.Uint64
	// detached: watch has ended the session.
	detached atomic.Bool
}

// Subscribe implements consumer.Transport. It asks whether the queue is there
// and consumes it.
func (b *Broker) Subscribe(ctx context.Context, prefetch int) (consumer.Session, error) {
	conn, err := b.Dial(ctx, "")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, conn.Abandon)
	s, err := b.subscribe(conn, prefetch)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		conn.Abandon()
		return nil, b.subscribeError(conn.Address, err)
	}
	return s, nil
}

func (b *Broker) subscribe(conn *amqp.Conn, prefetch int) (*session, error) {
	// This tells a missing queue from a missing permission; a refusal to say means nothing: consuming will tell.
	if _, err := conn.FindQueue(b.cfg.Queue); err != nil && amqp.ReplyCode(err) != amqp091.AccessRefused {
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
	since43 := isSince43(version)
	s := &session{
		conn: conn, ch: ch, queue: b.cfg.Queue,
		closes: ch.NotifyClose(make(chan *amqp091.Error, 1)), cancels: ch.NotifyCancel(make(chan string, 1)),
		// Since 4.3 a quorum queue cancels a consumer that exceeds the consumer timeout, instead of closing its channel.
		timesOut: b.cfg.Quorum && since43,
	}
	if b.cfg.Quorum {
		s.grace.Store(int64(amqp.SettleGrace))
	}
	if !b.cfg.AckEach {
		s.acks = newAcks(ch, conn.Flush, prefetch, &s.lastSettled)
	}
	if s.deliveries, err = ch.Consume(b.cfg.Queue, consumerTag, false, false, false, false, nil); err != nil {
		return nil, err
	}
	if b.cfg.Quorum && !since43 && !b.cfg.SingleActive {
		go s.watch()
	}
	return s, nil
}

// isSince43 says whether a broker is RabbitMQ 4.3 or newer.
func isSince43(version string) bool {
	var major, minor int
	if n, err := fmt.Sscanf(version, "%d.%d", &major, &minor); n != 2 || err != nil {
		return false
	}
	return major > 4 || major == 4 && minor >= 3
}

// Receive implements consumer.Session. A cancelled consumer's buffered
// deliveries are void, because the broker has them again; the client library
// tells of the cancel before it ends the deliveries.
func (s *session) Receive(d *consumer.Delivery) error {
	delivery, ok := <-s.deliveries
	switch {
	case s.detached.Load():
		s.end()
		return &consumer.LostError{Reason: consumer.LostDetached}
	case len(s.cancels) > 0:
		return s.ended(true)
	case !ok:
		return s.ended(false)
	}
	fillDelivery(d, &delivery, time.Now())
	s.delivered.Store(d.Tag)
	if s.acks != nil {
		s.acks.deliver(d)
	}
	return nil
}

// Hold implements consumer.Session.
func (s *session) Hold(d *consumer.Delivery) {
	if s.acks != nil {
		s.acks.hold(d)
	}
}

// ended says why nothing more is received. cancelled says that the broker
// cancelled the consumer.
func (s *session) ended(cancelled bool) error {
	if cancelled {
		s.end()
		return &consumer.LostError{Reason: consumer.LostCancelled}
	}
	select {
	case reply := <-s.closes:
		s.end()
		return lostError(reply)
	default:
	}
	if s.stopped.Load() {
		return io.EOF
	}
	s.end()
	return lostError(nil)
}

// end notes that the broker has taken back what it delivered. Acknowledgements
// that were not sent would reach nothing.
func (s *session) end() {
	s.over.Store(true)
	if s.acks != nil {
		s.acks.close(false)
	}
}

// Diagnose implements consumer.Session.
func (s *session) Diagnose(err error) error {
	var lost *consumer.LostError
	if errors.As(err, &lost) && lost.Reason == consumer.LostCancelled {
		return s.whyCancelled()
	}
	return err
}

// whyCancelled asks whether the queue is still there.
func (s *session) whyCancelled() error {
	switch err := s.conn.AfterCancel(s.queue); {
	case amqp.ReplyCode(err) == amqp091.NotFound:
		return &consumer.LostError{Reason: consumer.LostQueueDeleted, Err: err}
	case err == nil && s.timesOut:
		return &consumer.LostError{
			Reason: consumer.LostConsumerTimeout,
			Err:    errors.New("the consumer was cancelled and its queue is still there: a message was held longer than the consumer timeout"),
		}
	default:
		return &consumer.LostError{Reason: consumer.LostCancelled, Err: err}
	}
}

// errOver is returned for settlements that would reach nothing.
var errOver = errors.New("the broker has taken back what this session was sent")

// Settle implements consumer.Session.
func (s *session) Settle(d *consumer.Delivery, verb consumer.Verb, _ time.Duration) error {
	if s.over.Load() {
		return errOver
	}
	s.settled.Add(1)
	if verb == consumer.VerbAck && s.acks != nil {
		return s.acks.ack(d)
	}
	s.lastSettled.Store(time.Now().UnixNano())
	if s.acks == nil {
		return s.send(d.Tag, verb)
	}
	return s.acks.settle(d, func() error { return s.send(d.Tag, verb) })
}

func (s *session) send(tag uint64, verb consumer.Verb) error {
	switch verb {
	case consumer.VerbAck:
		return s.ch.Ack(tag, false)
	case consumer.VerbRequeue:
		return s.ch.Reject(tag, true)
	case consumer.VerbHandBack:
		return s.ch.Nack(tag, false, true)
	case consumer.VerbDeadLetter:
		return s.ch.Reject(tag, false)
	default:
		return fmt.Errorf("a delivery cannot be settled with %s", verb)
	}
}

// Unsent implements consumer.Session.
func (s *session) Unsent() int { return int(s.unsent.Load()) }

// Stop implements consumer.Session. After it, Receive returns what was on its
// way and then io.EOF.
func (s *session) Stop(ctx context.Context) error {
	s.stopped.Store(true)
	begun := time.Now()
	answer := make(chan error, 1)
	go func() { answer <- s.ch.Cancel(consumerTag, false) }()
	select {
	case err := <-answer:
		if grace := s.grace.Load(); grace > 0 { // a quorum queue commits the cancel: that long its settlements may take too
			s.grace.Store(max(grace, 4*int64(time.Since(begun))))
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close implements consumer.Session.
func (s *session) Close(ctx context.Context) error {
	// A write that the network does not take must not outlast ctx.
	defer context.AfterFunc(ctx, s.conn.Abandon)()
	alive := !s.over.Swap(true)
	if s.acks != nil {
		s.unsent.Store(int64(s.acks.close(alive)))
	}
	if alive {
		s.linger(ctx)
	}
	return s.conn.Close(ctx)
}

// linger waits until the last settlements have had amqp.SettleGrace to be
// committed, and half the time left to ctx at most.
func (s *session) linger(ctx context.Context) {
	wait := time.Until(time.Unix(0, s.lastSettled.Load()).Add(time.Duration(s.grace.Load())))
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/2)
	}
	if wait <= 0 {
		return
	}
	lost := s.conn.NotifyClose(make(chan *amqp091.Error, 1))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-lost: //nolint:errcheck // why does not matter any more
	case <-ctx.Done():
	}
}
