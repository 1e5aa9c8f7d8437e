package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
)

// runTimeout bounds a run: one that takes so long stands still.
const runTimeout = 5 * time.Minute

// warmUpPrefetch is that of the run which is not counted.
const warmUpPrefetch = 1000

// errBusy is why the handlers of retried messages fail.
var errBusy = errors.New("payments answers 503")

// loop consumes a topic's work queue, hits the meter with every delivery and
// settles it, until ctx is done. It returns nil then.
type loop func(ctx context.Context, t *topic, m *meter) error

// settling measures how fast a loop settles. The command's documentation says
// how.
func settling(schedule func(*topology.Spec), prefetch int, l loop) runner {
	return func(ctx context.Context, p *place) (s sample, err error) {
		t, err := p.topic(schedule)
		if err != nil {
			return sample{}, err
		}
		defer func() { err = errors.Join(err, t.remove()) }()
		timed := p.messages + prefetch
		if err := t.fill(ctx, timed); err != nil {
			return sample{}, err
		}
		m := newMeter(timed, timed+prefetch)
		if err := p.profiled(func() error { return t.run(ctx, l, m, prefetch) }); err != nil {
			return sample{}, err
		}
		for _, q := range t.doc.HoldQueues {
			if err := t.mustHold(q.Name, timed); err != nil {
				return sample{}, err
			}
		}
		return between(m.begin, m.end, p.messages, timed), nil
	}
}

// run runs a loop until it has settled all that the meter waits for, of which
// the tail is published when the time was taken.
func (t *topic) run(ctx context.Context, l loop, m *meter, tail int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, runTimeout, errors.New("it stands still"))
	defer cancel()
	loopCtx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- l(loopCtx, t, m) }()
	wait := func(done <-chan struct{}) error {
		select {
		case <-done:
			return nil
		case err := <-ended:
			ended <- nil
			return fmt.Errorf("the loop ended after %d of %d deliveries: %w", m.count.Load(), m.all, err)
		case <-ctx.Done():
			return fmt.Errorf("after %d of %d deliveries: %w", m.count.Load(), m.all, context.Cause(ctx))
		}
	}
	err := wait(m.timedDone)
	if err == nil {
		err = t.fill(ctx, tail)
	}
	if err == nil {
		err = wait(m.allDone)
	}
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	if n := m.count.Load(); n != m.all {
		return fmt.Errorf("%d deliveries of %d messages: some came twice", n, m.all)
	}
	return nil
}

// consumer is the loop of this module, used as an application would use it.
func consumer(cfg redeliver.Config, outcome redeliver.Outcome) loop {
	return func(ctx context.Context, t *topic, m *meter) error {
		return t.consumeWith(ctx, cfg, func(context.Context, *redeliver.Message) redeliver.Outcome {
			m.hit()
			return outcome
		}, func(*rabbitmq.Consumer) {})
	}
}

// consumeWith opens a consumer, tells of it, and runs it until ctx is done.
func (t *topic) consumeWith(ctx context.Context, cfg redeliver.Config, handle redeliver.HandlerFunc, opened func(*rabbitmq.Consumer)) error {
	// What is wrong is shown; what is not, would measure the log.
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c, err := rabbitmq.Open(ctx, rabbitmq.Config{URL: t.place.url, Manifest: t.manifest, Handler: handle, Consumer: cfg})
	if err != nil {
		return err
	}
	opened(c)
	if err := c.Run(ctx); err != nil {
		return err
	}
	if s := c.Stats(); s.SessionsLost > 0 || s.Dropped > 0 {
		return fmt.Errorf("the consumer lost its session: %+v", s)
	}
	return nil
}

// warmUp lets the broker do once what it does slower the first time.
func warmUp(ctx context.Context, p *place) error {
	if _, err := settling(inPlace, warmUpPrefetch, ackMultiple(warmUpPrefetch))(ctx, p); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	return nil
}
