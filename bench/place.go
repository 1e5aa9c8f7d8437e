package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// place is the vhost that is measured in. Its connection declares and fills
// queues; those that are measured have connections of their own.
type place struct {
	options
	vhost   string
	version string // the broker's
	conn    *amqp091.Connection
	topics  int // how many there were

	profileTo string // the file for the next run's CPU profile; "" is none
}

func openPlace(o options) (*place, error) {
	u, err := url.Parse(o.url)
	if err != nil {
		return nil, errors.New("the broker's URL is not one") // what it quotes may be a password
	}
	p := &place{options: o, vhost: strings.TrimPrefix(u.Path, "/")}
	if p.vhost == "" {
		p.vhost = topology.DefaultVHost
	}
	if p.conn, err = p.dial("setup"); err != nil {
		return nil, err
	}
	p.version, _ = p.conn.Properties["version"].(string)
	return p, nil
}

func (p *place) close() { _ = p.conn.Close() }

// dial opens a connection as a consumer of this module does.
func (p *place) dial(purpose string) (*amqp091.Connection, error) {
	properties := amqp091.NewConnectionProperties()
	properties.SetClientConnectionName("bench " + purpose)
	conn, err := amqp091.DialConfig(p.url, amqp091.Config{Vhost: p.vhost, Properties: properties})
	if err != nil {
		return nil, fmt.Errorf("connecting to vhost %q: %w", p.vhost, err)
	}
	return conn, nil
}

// topic is the topology of one run. Nothing of it was used before.
type topic struct {
	place    *place
	ch       *amqp091.Channel
	objects  topology.Objects
	doc      topology.Manifest
	manifest redeliver.Manifest
}

// topic declares what the provider would create for a topic with this schedule.
func (p *place) topic(schedule func(*topology.Spec)) (*topic, error) {
	p.topics++
	spec := topology.Spec{
		Identity: topology.Identity{Topic: "bench-" + strconv.Itoa(p.topics), VHost: p.vhost},
		Retry:    topology.RetryPolicy{MaxRetries: topology.DefaultMaxRetries, Jitter: topology.DefaultJitter},
	}
	spec.DeadLetterQueue = spec.DeadLetterQueueName()
	schedule(&spec)
	t := &topic{place: p}
	var err error
	if t.objects, err = spec.Build(); err != nil {
		return nil, err
	}
	if t.doc, err = spec.Manifest(); err != nil {
		return nil, err
	}
	if t.manifest, err = redeliver.ParseManifest(t.doc.Encode()); err != nil {
		return nil, err
	}
	if t.ch, err = p.conn.Channel(); err != nil {
		return nil, fmt.Errorf("opening a channel: %w", err)
	}
	if err := t.declare(); err != nil {
		return nil, errors.Join(fmt.Errorf("declaring topic %q: %w", spec.Topic, err), t.ch.Close())
	}
	return t, nil
}

func (t *topic) declare() error {
	for _, e := range t.objects.Exchanges {
		if err := t.ch.ExchangeDeclare(e.Name, e.Type, true, false, false, false, nil); err != nil {
			return err
		}
	}
	for _, q := range t.objects.Queues {
		if _, err := t.ch.QueueDeclare(q.Name, true, false, false, false, amqp091.Table(q.Arguments)); err != nil {
			return err
		}
	}
	for _, b := range t.objects.Bindings {
		if err := t.ch.QueueBind(b.Destination, b.RoutingKey, b.Source, false, amqp091.Table(b.Arguments)); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes the topic with its messages.
func (t *topic) remove() error {
	for _, q := range t.objects.Queues {
		if _, err := t.ch.QueueDelete(q.Name, false, false, false); err != nil {
			return fmt.Errorf("deleting queue %q: %w", q.Name, err)
		}
	}
	for _, e := range t.objects.Exchanges {
		if err := t.ch.ExchangeDelete(e.Name, false, false); err != nil {
			return fmt.Errorf("deleting exchange %q: %w", e.Name, err)
		}
	}
	if err := t.ch.Close(); err != nil {
		return fmt.Errorf("closing a channel: %w", err)
	}
	return nil
}

// mustHold fails unless at least n messages are ready in a queue.
func (t *topic) mustHold(queue string, n int) error {
	q, err := t.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	switch {
	case err != nil:
		return fmt.Errorf("asking for the depth of queue %q: %w", queue, err)
	case q.Messages < n:
		return fmt.Errorf("queue %q has %d messages, not %d: some are lost", queue, q.Messages, n)
	default:
		return nil
	}
}

// fill puts n messages into the work queue and returns when all are there.
func (t *topic) fill(ctx context.Context, n int) error {
	if err := publish(ctx, t.place.conn, "", t.doc.WorkQueue.Name, message(nil), n, fillWindow); err != nil {
		return fmt.Errorf("filling queue %q: %w", t.doc.WorkQueue.Name, err)
	}
	return nil
}
