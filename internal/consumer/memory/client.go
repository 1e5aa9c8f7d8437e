package memory

import (
	"context"
	"fmt"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Client is one consumer's connection to a broker.
type Client struct {
	broker *Broker
	share  *share
	// buried are messages of SQS that this client gave up, until they are moved.
	buried map[*message]bool
}

// Client connects.
func (b *Broker) Client() *Client {
	return &Client{broker: b, share: &share{all: &b.activity}, buried: make(map[*message]bool)}
}

// noJitter places a delay in the middle of its jitter, where it is as long as the
// policy says.
const noJitter = 0.5

// Attach fills in what makes an engine run on the broker and its clock.
func (c *Client) Attach(o consumer.Options) consumer.Options {
	o.Connect = c.connect
	o.Clock = clientClock{c.broker.clock, c.share}
	o.Moving = c.share.add
	o.Random = func() float64 { return noJitter }
	return o
}

// Leave forgets a client whose engine has ended: whatever it left undone keeps
// nobody waiting.
func (c *Client) Leave() { c.share.leave() }

func (c *Client) connect(m topology.Manifest, queue topology.ManifestQueue, targets []*topology.ManifestTarget) (consumer.Transport, consumer.Publisher, error) {
	t := &transport{client: c, topic: m.Topic, vhost: m.VHost, queue: queue.Name}
	if len(targets) == 0 {
		return t, nil, nil
	}
	return t, &publisher{client: c}, nil
}

// transport implements consumer.Transport.
type transport struct {
	client              *Client
	topic, vhost, queue string
}

// Subscribe implements consumer.Transport.
func (t *transport) Subscribe(_ context.Context, prefetch int) (consumer.Session, error) {
	b := t.client.broker
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.find(t.queue)
	if err != nil {
		return nil, &redeliver.BindError{
			Kind: redeliver.ErrQueueNotFound, Topic: t.topic, Queue: t.queue, VHost: t.vhost, User: "guest", Address: "memory", Err: err,
		}
	}
	s := newSession(t.client, q, prefetch)
	q.sessions = append(q.sessions, s)
	b.dispatch(q)
	return s, nil
}

// publisher implements consumer.Publisher.
type publisher struct {
	client *Client
}

// Check implements consumer.Publisher: everybody may publish to everything.
func (p *publisher) Check(context.Context, []*topology.ManifestTarget) error { return nil }

// Publish implements consumer.Publisher. The copy is in its queue when it
// returns, and confirmed later.
func (p *publisher) Publish(c consumer.Copy, done func(error)) {
	p.client.share.add(1)
	err := p.client.broker.publish(c)
	if err != nil {
		err = fmt.Errorf("publishing to queue %q through exchange %q with routing key %q: %w", c.Target.Name, c.Target.Exchange, c.Target.RoutingKey, err)
	}
	go func() {
		done(err)
		p.client.share.add(-1)
	}()
}

// Blocked implements consumer.Publisher.
func (p *publisher) Blocked() (string, bool) { return "", false }

// Close implements consumer.Publisher.
func (p *publisher) Close(context.Context) error { return nil }
