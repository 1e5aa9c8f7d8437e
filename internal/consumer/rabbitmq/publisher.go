package rabbitmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

var _ consumer.Publisher = (*Publisher)(nil)

const (
	// maxChannels bounds how many copies are unconfirmed at a time.
	maxChannels = 16
	// confirmTimeout is how long a confirm may take. A copy that is confirmed later is one of the duplicates that may be.
	confirmTimeout = 10 * time.Second
	// checkTimeout bounds the wait for the answer to a probe.
	checkTimeout = 5 * time.Second
	// probeExpiration makes a message that was not to reach anybody expire at once where it did.
	probeExpiration = "0"
)

// Publisher publishes copies on a connection that never consumes: a broker
// that blocks publishers must not hold up acknowledgements. It implements
// consumer.Publisher.
//
// Each copy has a channel of its own until it is confirmed. A returned message
// does not say which publish it belongs to, and on such a channel there is only
// one it can be. The channels are kept and used again.
type Publisher struct {
	broker *Broker
	slots  chan struct{} // one for each channel that may be in use

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	inUse  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	conn    *amqp091.Connection // nil until the first copy, and after it broke
	address string
	idle    []*channel
}

// channel is a channel in confirm mode.
type channel struct {
	*amqp091.Channel
	conn    *amqp091.Connection
	returns <-chan amqp091.Return
	closes  <-chan *amqp091.Error
}

// NewPublisher makes a publisher. It connects when it is first used.
func NewPublisher(b *Broker) *Publisher {
	p := &Publisher{broker: b, slots: make(chan struct{}, maxChannels)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// errUnroutable is returned for a copy that no queue took.
var errUnroutable = errors.New("no queue took it")

// Check implements consumer.Publisher. To each exchange it publishes an empty
// message with a routing key that nothing is bound to: the broker refuses it
// without the permission and returns it with, and nobody receives it. Should
// something be bound to every key after all, the message has expired. A broker
// that blocks publishers does not answer: that is no reason not to consume.
func (p *Publisher) Check(ctx context.Context, targets []*topology.ManifestTarget) error {
	checked := make(map[string]bool)
	for _, target := range targets {
		if checked[target.Exchange] {
			continue
		}
		checked[target.Exchange] = true
		if err := p.check(ctx, target); err != nil {
			return err
		}
	}
	return nil
}

func (p *Publisher) check(ctx context.Context, target *topology.ManifestTarget) error {
	ch, address, err := p.channel(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err = ch.publish(limited, target.Exchange, "redeliver-probe-"+rand.Text(), amqp091.Publishing{Expiration: probeExpiration})
	p.release(ch, err)
	blocked := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	if err == nil || errors.Is(err, errUnroutable) || blocked {
		return nil
	}
	return p.broker.publishCheckError(address, target.Exchange, target.Name, err)
}

// Publish implements consumer.Publisher.
func (p *Publisher) Publish(c consumer.Copy, done func(error)) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		go done(errClosed)
		return
	}
	p.inUse.Add(1)
	p.mu.Unlock()
	go func() {
		defer p.inUse.Done()
		err := p.publish(c)
		if err != nil {
			err = fmt.Errorf("publishing to queue %q through exchange %q with routing key %q: %w", c.Target.Name, c.Target.Exchange, c.Target.RoutingKey, err)
		}
		done(err)
	}()
}

var errClosed = errors.New("the publisher is closed")

func (p *Publisher) publish(c consumer.Copy) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-p.ctx.Done():
		return errClosed
	}
	ctx, cancel := context.WithTimeout(p.ctx, confirmTimeout)
	defer cancel()
	ch, _, err := p.channel(ctx)
	if err != nil {
		return err
	}
	err = ch.publish(ctx, c.Target.Exchange, c.Target.RoutingKey, copyOf(c.Message, c.Set))
	p.release(ch, err)
	return err
}

// publish publishes one message and waits for its fate.
func (ch *channel) publish(ctx context.Context, exchange, key string, msg amqp091.Publishing) error {
	sent := make(chan error, 1)
	var confirm *amqp091.DeferredConfirmation
	go func() { // a blocked connection does not take the bytes, and writing to it obeys no context
		var err error
		confirm, err = ch.PublishWithDeferredConfirm(exchange, key, true, false, msg)
		sent <- err
	}()
	select {
	case err := <-sent:
		if err != nil {
			return ch.reason(err)
		}
	case <-ctx.Done():
		return fmt.Errorf("the broker does not take it (is an alarm blocking publishers?): %w", ctx.Err())
	}
	acked, err := confirm.WaitContext(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("not confirmed within %s (is an alarm blocking publishers?): %w", confirmTimeout, err)
	case !acked:
		return ch.reason(errors.New("the broker refused it"))
	}
	select {
	case r := <-ch.returns: // it came before the confirm
		return fmt.Errorf("%w: returned: %d %s", errUnroutable, r.ReplyCode, r.ReplyText)
	default:
		return nil
	}
}

// reason is why the channel was closed, or err where it was not.
func (ch *channel) reason(err error) error {
	select {
	case reply := <-ch.closes:
		if reply != nil {
			return brokerSaid(reply)
		}
	default:
	}
	return brokerSaid(err)
}

// channel returns an idle channel or opens one, connecting first where needed.
func (p *Publisher) channel(ctx context.Context) (*channel, string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		ch := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if !ch.IsClosed() {
			return ch, p.address, nil
		}
	}
	if p.conn == nil || p.conn.IsClosed() {
		conn, address, err := p.broker.dial(ctx, " (publisher)")
		if err != nil {
			return nil, "", err
		}
		p.conn, p.address, p.idle = conn, address, nil
	}
	conn := p.conn
	stop := context.AfterFunc(ctx, func() { closeNow(conn) })
	ch, err := openChannel(conn)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		p.abandon(conn)
		return nil, "", err
	}
	return ch, p.address, nil
}

func openChannel(conn *amqp091.Connection) (*channel, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("opening a channel: %w", brokerSaid(err))
	}
	c := &channel{
		Channel: ch, conn: conn,
		returns: ch.NotifyReturn(make(chan amqp091.Return, 1)),
		closes:  ch.NotifyClose(make(chan *amqp091.Error, 1)),
	}
	if err := ch.Confirm(false); err != nil {
		return nil, fmt.Errorf("turning confirms on: %w", brokerSaid(err))
	}
	return c, nil
}

// release takes a channel back after a publish that ended with err. One whose
// publish is undecided cannot be used again, and neither can its connection be
// trusted.
func (p *Publisher) release(ch *channel, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		p.abandon(ch.conn)
	case ch.conn == p.conn && !p.closed && !ch.IsClosed():
		p.idle = append(p.idle, ch)
	}
}

// abandon closes a connection, in the background, and forgets its channels.
// p.mu is held.
func (p *Publisher) abandon(conn *amqp091.Connection) {
	if p.conn == conn {
		p.conn, p.idle = nil, nil
	}
	p.inUse.Add(1)
	go func() {
		defer p.inUse.Done()
		closeNow(conn)
	}()
}

// Close implements consumer.Publisher.
func (p *Publisher) Close(ctx context.Context) error {
	p.cancel() // ends whatever holds the lock
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	conn := p.conn
	p.mu.Unlock()
	if !first {
		return nil
	}
	var err error
	if conn != nil {
		err = closeConn(ctx, conn)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.inUse.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	return err
}

// Blocked implements consumer.Publisher.
func (p *Publisher) Blocked() (string, bool) { return "", false }
