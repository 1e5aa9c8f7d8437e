package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
)

// holder takes all deliveries of a topic's work queue, says when it holds them,
// and keeps them until ctx is done.
type holder func(ctx context.Context, t *topic, held chan<- struct{}) error

// holding measures what it costs to hold many deliveries at a time.
func holding(h holder) runner {
	return func(ctx context.Context, p *place) (s sample, err error) {
		t, err := p.topic(inPlace)
		if err != nil {
			return sample{}, err
		}
		defer func() { err = errors.Join(err, t.remove()) }()
		if err := t.fill(ctx, p.held); err != nil {
			return sample{}, err
		}
		ctx, cancel := context.WithTimeout(ctx, runTimeout)
		defer cancel()
		before := memory()
		held, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- h(ctx, t, held) }()
		select {
		case <-held:
			s = sample{memory: float64(memory() - before), goroutines: float64(runtime.NumGoroutine())}
		case err := <-ended:
			return sample{}, errors.Join(err, errors.New("the loop ended before it held everything"))
		}
		cancel()
		return s, <-ended
	}
}

// holdOurs holds them as messages that wait, in place, to be retried.
func holdOurs(ctx context.Context, t *topic, held chan<- struct{}) error {
	n := t.place.held
	cfg := redeliver.Config{Workers: heldWorkers, MaxHeld: n, Prefetch: n + heldWorkers}
	fail := func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Retry(errBusy) }
	return t.consumeWith(ctx, cfg, fail, func(c *rabbitmq.Consumer) {
		go func() {
			look := time.NewTicker(10 * time.Millisecond)
			defer look.Stop()
			for c.Stats().Held < n {
				select {
				case <-look.C:
				case <-ctx.Done():
					return
				}
			}
			close(held)
		}()
	})
}

// holdBare holds them in a slice.
func holdBare(ctx context.Context, t *topic, held chan<- struct{}) error {
	n := t.place.held
	_, deliveries, err := t.consume(ctx, n+heldWorkers)
	if err != nil {
		return err
	}
	list := make([]amqp091.Delivery, 0, n)
	for d := range deliveries {
		if list = append(list, d); len(list) == n {
			close(held)
		}
	}
	runtime.KeepAlive(list)
	return unlessDone(ctx, errClosed)
}

// settleMemory collects garbage, so that a run does not pay for the one before.
func settleMemory() {
	runtime.GC()
	runtime.GC() // what pools keep survives one collection
}

// memory is what the process uses, in bytes: heap and stacks.
func memory() int64 {
	settleMemory()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return int64(mem.HeapAlloc + mem.StackInuse)
}
