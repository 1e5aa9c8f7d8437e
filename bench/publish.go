package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const (
	bodySize = 256
	// fillWindow is how many publishings are in flight while a queue is filled.
	fillWindow = 2000
)

func message(headers amqp091.Table) amqp091.Publishing {
	return amqp091.Publishing{Headers: headers, DeliveryMode: amqp091.Persistent, Body: bytes.Repeat([]byte("m"), bodySize)}
}

// confirms are a channel's publishings that are not confirmed yet, in order.
type confirms struct {
	ring     []*amqp091.DeferredConfirmation
	next     int // the place in the ring for the next one, where the oldest is
	returned atomic.Int64
}

func newConfirms(ch *amqp091.Channel, window int) (*confirms, error) {
	if err := ch.Confirm(false); err != nil {
		return nil, fmt.Errorf("turning confirms on: %w", err)
	}
	c := &confirms{ring: make([]*amqp091.DeferredConfirmation, window)}
	returns := ch.NotifyReturn(make(chan amqp091.Return, 1))
	go func() { // ends with the channel
		for range returns {
			c.returned.Add(1)
		}
	}()
	return c, nil
}

// add waits for the oldest publishing if the window is full, and takes its
// place.
func (c *confirms) add(ctx context.Context, d *amqp091.DeferredConfirmation) error {
	err := c.wait(ctx)
	c.ring[c.next] = d
	c.next = (c.next + 1) % len(c.ring)
	return err
}

// wait waits for the publishing whose place is next.
func (c *confirms) wait(ctx context.Context) error {
	oldest := c.ring[c.next]
	if oldest == nil {
		return nil
	}
	switch acked, err := oldest.WaitContext(ctx); {
	case err != nil:
		return fmt.Errorf("waiting for a confirm: %w", err)
	case !acked:
		return errors.New("a publishing was refused, or its channel closed")
	case c.returned.Load() > 0:
		return errors.New("a publishing was returned: no queue took it")
	default:
		return nil
	}
}

// flush waits for all.
func (c *confirms) flush(ctx context.Context) error {
	for range c.ring {
		if err := c.add(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// publish publishes a message n times, mandatory, with so many unconfirmed at a
// time, and returns when all are confirmed.
func publish(ctx context.Context, conn *amqp091.Connection, exchange, key string, msg amqp091.Publishing, n, window int) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("opening a channel: %w", err)
	}
	defer ch.Close()
	pending, err := newConfirms(ch, window)
	if err != nil {
		return err
	}
	for range n {
		d, err := ch.PublishWithDeferredConfirm(exchange, key, true, false, msg)
		if err != nil {
			return fmt.Errorf("publishing to exchange %q: %w", exchange, err)
		}
		if err := pending.add(ctx, d); err != nil {
			return err
		}
	}
	return pending.flush(ctx)
}

// likeHeaders are what a copy carries that waits for its first retry.
func likeHeaders(h topology.Headers) amqp091.Table {
	return amqp091.Table{h.RetryCount: int64(1), h.FirstSeen: time.Now().UnixMilli(), h.Error: errBusy.Error()}
}

// publishing measures the bare loop that publishes, through the exchange and
// into the hold queue of a topic like those whose messages are retried.
func publishing(schedule func(*topology.Spec)) runner {
	return func(ctx context.Context, p *place) (s sample, err error) {
		t, err := p.topic(schedule)
		if err != nil {
			return sample{}, err
		}
		defer func() { err = errors.Join(err, t.remove()) }()
		conn, err := p.dial("bare publisher")
		if err != nil {
			return sample{}, err
		}
		defer conn.Close()
		hold := t.doc.HoldQueues[0].Name
		msg := message(likeHeaders(t.doc.Headers))
		err = p.profiled(func() error {
			begin := read()
			err := publish(ctx, conn, t.doc.RetryExchange, hold, msg, p.messages, window)
			s = between(begin, read(), p.messages, p.messages)
			return err
		})
		if err != nil {
			return sample{}, err
		}
		return s, t.mustHold(hold, p.messages)
	}
}
