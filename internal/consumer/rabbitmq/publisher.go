package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

var _ consumer.Publisher = (*Publisher)(nil)

// checkTimeout bounds the wait for the answer to a probe.
const checkTimeout = 5 * time.Second

// Publisher publishes copies on a connection that never consumes: a broker that
// blocks publishers must not hold up acknowledgements. Every target has a
// channel of its own, so that a hold queue that does not confirm holds up no
// other. It implements consumer.Publisher.
type Publisher struct {
	broker *Broker
	out    *amqp.Publisher
}

// NewPublisher makes a publisher. It connects when it is first used.
func NewPublisher(b *Broker) *Publisher {
	dial := func(ctx context.Context) (*amqp.Conn, error) { return b.Dial(ctx, " (publisher)") }
	return &Publisher{broker: b, out: amqp.NewPublisher(amqp.Options{Dial: dial, PerKey: true, OnBlocked: b.cfg.OnBlocked})}
}

// Check implements consumer.Publisher. A broker that blocks publishers does not
// answer: that is no reason not to consume.
func (p *Publisher) Check(ctx context.Context, targets []*topology.ManifestTarget) error {
	checked := make(map[string]bool)
	for _, target := range targets {
		if checked[target.Exchange] {
			continue
		}
		checked[target.Exchange] = true
		limited, cancel := context.WithTimeout(ctx, checkTimeout)
		err := p.out.Probe(limited, target.Exchange)
		cancel()
		var bind *redeliver.BindError
		switch blocked := errors.Is(err, amqp.ErrUnconfirmed) && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil; {
		case err == nil, blocked:
		case errors.As(err, &bind):
			return bind
		default:
			return p.broker.publishError(target, err)
		}
	}
	return nil
}

// Publish implements consumer.Publisher.
func (p *Publisher) Publish(c consumer.Copy, done func(error)) {
	msg, target := copyOf(c), c.Target
	tell := func(err error) {
		switch {
		case errors.Is(err, amqp.ErrUnsendable):
			err = fmt.Errorf("%w: %w", consumer.ErrUnpublishable, err)
		case errors.Is(err, amqp.ErrUnroutable), errors.Is(err, amqp.ErrNoExchange):
			err = fmt.Errorf("%w: %w", consumer.ErrNoQueue, err)
		}
		if err != nil {
			err = fmt.Errorf("publishing to queue %q through exchange %q with routing key %q: %w", target.Name, target.Exchange, target.RoutingKey, err)
		}
		done(err)
	}
	p.out.Publish(target.Exchange, target.RoutingKey, msg, func(err error) {
		var large *amqp.TooLargeError
		if errors.As(err, &large) && shorten(msg.Headers, p.broker.cfg.Headers, large.Size-large.Max) {
			p.out.Publish(target.Exchange, target.RoutingKey, msg, tell)
			return
		}
		tell(err)
	})
}

// shorten takes so many bytes away from the error that a copy carries. It
// returns false where the error has not so many.
func shorten(headers amqp091.Table, names topology.Headers, over int) bool {
	for _, name := range []string{names.Error, names.ErrorType} {
		text, _ := headers[name].(string)
		cut := min(over, len(text))
		if cut > 0 {
			headers[name] = strings.ToValidUTF8(text[:len(text)-cut], "")
		}
		over -= cut
	}
	return over <= 0
}

// Blocked implements consumer.Publisher.
func (p *Publisher) Blocked() (reason string, blocked bool) { return p.out.Blocked() }

// Close implements consumer.Publisher.
func (p *Publisher) Close(ctx context.Context) error { return p.out.Close(ctx) }
