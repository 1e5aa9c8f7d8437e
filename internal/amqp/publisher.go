package amqp

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

const (
	// DefaultWindow is how many messages may be unconfirmed on a channel. A broker stops reading a connection one of whose
	// channels does not keep up with 400 of them (measured, 3.10): below that, a queue that takes nothing, because it has
	// no leader, holds up its own channel only.
	DefaultWindow = 256
	// confirmTimeout is how long a confirm may take, and how long a message waits to be written while nothing of its lane
	// is confirmed.
	confirmTimeout = 10 * time.Second
	// slowest is the least that a network carries, in bytes a second: larger messages have more time, and so have those
	// behind them.
	slowest = 100 << 10
	// restFirst and restMax bound the time after a failed attempt to connect in which there is no other. It doubles, and
	// jitter shortens it to half at most, so that publishers do not come back to a broker all at once.
	restFirst = 100 * time.Millisecond
	restMax   = 5 * time.Second
	// openTimeout bounds the opening of a channel.
	openTimeout = 5 * time.Second
)

// Options say how a [Publisher] publishes.
type Options struct {
	// Dial opens the publisher's connection, which must not consume: a broker that blocks publishers blocks everything on
	// their connections.
	Dial func(ctx context.Context) (*Conn, error)
	// Window bounds the messages that are unconfirmed on one channel.
	//
	// Defaults to DefaultWindow.
	Window int
	// PerKey gives every routing key a channel of its own, so that a queue that does not confirm holds up no other. It is
	// for a few keys that are known. Without it every exchange has one channel, and its messages are written in the order
	// in which they were published.
	PerKey bool
	// OnBlocked, where it is set, is told when the broker begins to block publishers, with its reason, and when it ends.
	// It must return quickly.
	OnBlocked func(reason string, blocked bool)
}

// Publisher publishes messages, mandatory and persistent, and tells what became
// of each: many are on their way at the same time. It connects when it is first
// used, and again after the connection was lost.
type Publisher struct {
	opts    Options
	timeout time.Duration // confirmTimeout, but for tests
	ctx     context.Context
	cancel  context.CancelFunc // called by Close
	running sync.WaitGroup

	dialing sync.Mutex // one lane connects, the others wait for it

	mu       sync.Mutex
	closed   bool
	lanes    map[[2]string]*lane
	conn     *Conn  // nil before the first message; it may have been lost
	blocked  bool   // the broker takes no messages on conn
	reason   string // what it says about that
	failures int    // to connect, in a row
	failed   error  // the last of them
	restEnds time.Time
	watching bool // a call of watch is due
}

// NewPublisher makes a publisher.
func NewPublisher(o Options) *Publisher {
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	p := &Publisher{opts: o, timeout: confirmTimeout, lanes: make(map[[2]string]*lane)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Publish publishes a message and calls done once, on another goroutine: with
// nil when the broker confirmed it and a queue took it. It never blocks. What
// msg refers to must not change before that. done must return quickly, since
// the messages of the same lane wait for it.
func (p *Publisher) Publish(exchange, key string, msg amqp091.Publishing, done func(error)) {
	msg.DeliveryMode = amqp091.Persistent
	size, err := headerSize(exchange, key, &msg)
	if err != nil {
		go done(fmt.Errorf("%w: %w", ErrUnsendable, err))
		return
	}
	o := &outgoing{key: key, msg: msg, size: size, done: done, since: time.Now()}
	name := [2]string{exchange}
	if p.opts.PerKey {
		name[1] = key
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		go done(ErrClosed)
		return
	}
	l := p.lanes[name]
	if l == nil {
		l = newLane(p, exchange)
		p.lanes[name] = l
		p.running.Add(1)
		go l.run()
	}
	l.queue.push(o)
	l.wake.Signal()
	p.watchSoon()
}

// Blocked says whether the broker takes no messages for the moment, and why.
func (p *Publisher) Blocked() (reason string, blocked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reason, p.blocked
}

// Probe fails when messages could not be published to an exchange, as far as
// that can be told without one reaching anybody: it publishes an empty one with
// a routing key that nothing is bound to, which the broker returns, or refuses.
// Should something be bound to every key after all, the message has expired.
func (p *Publisher) Probe(ctx context.Context, exchange string) error {
	return p.probe(ctx, exchange, amqp091.Publishing{Expiration: "0"})
}

// ProbeAny is Probe for an exchange that may lead to queues whatever the routing
// key. The message names a user that is not the connection's: the broker refuses
// it after it has looked at the exchange and the permission, and before it looks
// for queues. It writes so to its log. A user with the tag impersonator may name
// others, and the message, which has expired, goes where the exchange leads.
func (p *Publisher) ProbeAny(ctx context.Context, exchange string) error {
	err := p.probe(ctx, exchange, amqp091.Publishing{Expiration: "0", UserId: "redeliver-probe"})
	if ReplyCode(err) == amqp091.PreconditionFailed {
		return nil
	}
	return err
}

func (p *Publisher) probe(ctx context.Context, exchange string, msg amqp091.Publishing) error {
	conn, err := p.connection(ctx)
	if err != nil {
		return err
	}
	ch, err := openChannel(conn)
	if err != nil {
		return err
	}
	closes := ch.NotifyClose(make(chan *amqp091.Error, 1))
	defer func() {
		go ch.Close() // a broker that blocks publishers answers when it does no more
	}()
	confirm, err := ch.PublishWithDeferredConfirm(exchange, "redeliver-probe-"+rand.Text(), true, false, msg)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotConnected, Said(err))
	}
	acked, err := confirm.WaitContext(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	case acked:
		return nil
	case ch.IsClosed():
		return closeReason(<-closes)
	default:
		return ErrNacked
	}
}

// Close gives up what is not confirmed, calling its done with ErrClosed, and
// closes the connection, before ctx ends.
func (p *Publisher) Close(ctx context.Context) error {
	p.cancel()
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	var left []finished
	for _, l := range p.lanes {
		left = l.giveUp(left, ErrClosed)
		l.wake.Broadcast()
	}
	conn, blocked := p.conn, p.blocked
	p.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tell(left)
		p.running.Wait()
	}()
	var err error
	switch {
	case conn == nil:
	case blocked: // it would not answer
		conn.Abandon()
	default:
		err = conn.Close(ctx)
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
	return err
}

// connection returns the connection, dialling where there is none. For a while
// after a failed attempt it returns that one's error.
func (p *Publisher) connection(ctx context.Context) (*Conn, error) {
	p.dialing.Lock()
	defer p.dialing.Unlock()
	p.mu.Lock()
	conn, failed, rest := p.conn, p.failed, time.Until(p.restEnds)
	p.mu.Unlock()
	switch {
	case conn != nil && !conn.IsClosed():
		return conn, nil
	case rest > 0:
		return nil, failed
	}
	conn, err := p.opts.Dial(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		if err == nil {
			conn.Abandon()
		}
		return nil, ErrClosed
	case ctx.Err() != nil && err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, err)
	case err != nil:
		return nil, p.rest(err)
	}
	p.conn = conn
	blocks := conn.NotifyBlocked(make(chan amqp091.Blocking, 1))
	p.running.Add(1)
	go p.listen(blocks)
	return conn, nil
}

// rest notes that connecting failed. p.mu is held.
func (p *Publisher) rest(err error) error {
	pause := restMax
	if p.failures < 6 {
		pause = min(restMax, restFirst<<p.failures)
	}
	p.failures++
	p.failed = fmt.Errorf("%w: %w", ErrNotConnected, err)
	p.restEnds = time.Now().Add(pause/2 + mathrand.N(pause/2))
	return p.failed
}

// listen follows what the broker says about blocking a connection, until that ends.
func (p *Publisher) listen(blocks <-chan amqp091.Blocking) {
	defer p.running.Done()
	for b := range blocks {
		p.setBlocked(b)
	}
	p.setBlocked(amqp091.Blocking{})
}

func (p *Publisher) setBlocked(b amqp091.Blocking) {
	p.mu.Lock()
	changed := p.blocked != b.Active
	p.blocked, p.reason = b.Active, b.Reason
	if changed {
		for _, l := range p.lanes {
			l.wake.Signal()
		}
	}
	p.mu.Unlock()
	if changed && p.opts.OnBlocked != nil {
		p.opts.OnBlocked(b.Reason, b.Active)
	}
}

// watchSoon has watch called before long. p.mu is held.
func (p *Publisher) watchSoon() {
	if !p.watching {
		p.watching = true
		time.AfterFunc(p.timeout/20, p.watch)
	}
}

// watch ends what has waited too long, and looks again while there is anything.
func (p *Publisher) watch() {
	p.mu.Lock()
	now := time.Now()
	var late []finished
	busy := false
	for _, l := range p.lanes {
		late = l.expire(late, now)
		busy = busy || !l.idle()
	}
	p.watching = false
	if busy && !p.closed {
		p.watchSoon()
	}
	p.mu.Unlock()
	tell(late)
}

// openChannel opens a channel in confirm mode. A connection on which that takes
// too long is of no use.
func openChannel(conn *Conn) (*amqp091.Channel, error) {
	timer := time.AfterFunc(openTimeout, conn.Abandon)
	defer timer.Stop()
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: opening a channel at %s: %w", ErrNotConnected, conn.Address, Said(err))
	}
	return ch, nil
}
