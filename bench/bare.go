package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

// errClosed is why a bare loop ends early.
var errClosed = errors.New("the broker closed the channel or the connection")

// bareFlush is how long the bare loop that acknowledges many at a time leaves
// the last ones unacknowledged.
const bareFlush = 2 * time.Millisecond

// consume subscribes a bare loop. Its connection is closed when ctx is done, and
// with it the deliveries.
func (t *topic) consume(ctx context.Context, prefetch int) (*amqp091.Channel, <-chan amqp091.Delivery, error) {
	conn, err := t.place.dial("bare consumer")
	if err != nil {
		return nil, nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		return nil, nil, fmt.Errorf("opening a channel: %w", err)
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return nil, nil, fmt.Errorf("setting the prefetch: %w", err)
	}
	deliveries, err := ch.Consume(t.doc.WorkQueue.Name, "", false, false, false, false, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("consuming queue %q: %w", t.doc.WorkQueue.Name, err)
	}
	return ch, deliveries, nil
}

// unlessDone is err, or nil when ctx is done: the loop was asked to end.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it is what the end looks like
	}
	return err
}

// ackMultiple is the fastest simple loop: one goroutine that acknowledges
// everything so far a few times in each prefetch window, and another one that
// does it when nothing comes. (One goroutine that selects between deliveries and
// a ticker is slower: the ticker is started and stopped with every wait.)
func ackMultiple(prefetch int) loop {
	return func(ctx context.Context, t *topic, m *meter) error {
		ch, deliveries, err := t.consume(ctx, prefetch)
		if err != nil {
			return err
		}
		acks := batch{ch: ch, every: max(1, prefetch/4)}
		idle := time.NewTicker(bareFlush)
		defer idle.Stop()
		go func() {
			for {
				select {
				case <-idle.C:
					acks.flushIdle()
				case <-ctx.Done():
					return
				}
			}
		}()
		for d := range deliveries {
			m.hit()
			if err := acks.add(d.DeliveryTag); err != nil {
				return unlessDone(ctx, err)
			}
		}
		return unlessDone(ctx, errClosed)
	}
}

// batch acknowledges deliveries that come in order, many at a time.
type batch struct {
	ch    *amqp091.Channel
	every int

	mu      sync.Mutex
	last    uint64
	pending int
	looked  uint64 // what last was when flushIdle looked
}

func (b *batch) add(tag uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = tag
	if b.pending++; b.pending < b.every {
		return nil
	}
	b.pending = 0
	return b.ch.Ack(tag, true)
}

func (b *batch) flushIdle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pending > 0 && b.last == b.looked {
		b.pending = 0
		_ = b.ch.Ack(b.last, true) // the deliveries end where it fails
	}
	b.looked = b.last
}

// ackEach is the loop that most applications have: some goroutines, each of
// which acknowledges what it has handled.
func ackEach(prefetch int) loop {
	return func(ctx context.Context, t *topic, m *meter) error {
		_, deliveries, err := t.consume(ctx, prefetch)
		if err != nil {
			return err
		}
		ended := make(chan error, bareHandlers)
		for range bareHandlers {
			go func() {
				for d := range deliveries {
					m.hit()
					if err := d.Ack(false); err != nil {
						ended <- err
						return
					}
				}
				ended <- errClosed
			}()
		}
		for range bareHandlers {
			err = errors.Join(err, <-ended)
		}
		return unlessDone(ctx, err)
	}
}

// publishThenAck is the bare loop that retries: it publishes a copy into the
// hold queue, and acknowledges when that was confirmed.
func publishThenAck(prefetch int) loop {
	every := uint64(prefetch / 4)
	return func(ctx context.Context, t *topic, m *meter) error {
		ch, deliveries, err := t.consume(ctx, prefetch)
		if err != nil {
			return err
		}
		conn, err := t.place.dial("bare publisher")
		if err != nil {
			return err
		}
		defer conn.Close()
		out, err := conn.Channel()
		if err != nil {
			return fmt.Errorf("opening a channel: %w", err)
		}
		pending, err := newConfirms(out, window)
		if err != nil {
			return err
		}
		exchange, hold := t.doc.RetryExchange, t.doc.HoldQueues[0].Name
		for d := range deliveries {
			m.hit()
			c, err := out.PublishWithDeferredConfirm(exchange, hold, true, false, amqp091.Publishing{
				Headers: likeHeaders(t.doc.Headers), DeliveryMode: d.DeliveryMode, Body: d.Body,
			})
			if err == nil {
				err = pending.add(ctx, c)
			}
			// Deliveries are numbered from 1, so the window says which one the confirm was for.
			if confirmed := d.DeliveryTag - window; err == nil && d.DeliveryTag > window && confirmed%every == 0 {
				err = ch.Ack(confirmed, true)
			}
			if err != nil {
				return unlessDone(ctx, err)
			}
		}
		return unlessDone(ctx, errClosed)
	}
}
