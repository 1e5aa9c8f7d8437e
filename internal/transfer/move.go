package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
)

const (
	// hopeless is how many messages in a row may fail before a run ends.
	hopeless = 100
	// quiet is how long a queue that is to have messages may deliver none before it is asked how many it has, and starved
	// how long it may say that it has some.
	quiet   = 500 * time.Millisecond
	starved = 30 * time.Second
	// finishTimeout bounds the end of a run: what is on its way is waited for, then everything is given back.
	finishTimeout = 30 * time.Second
	// tellEvery is the least time between two calls of Progress.
	tellEvery = 200 * time.Millisecond
)

// mover is one run.
type mover struct {
	o         Options
	report    Report
	most      int // how many messages may be looked at
	source    *source
	publisher *amqp.Publisher
	results   chan result // with room for all that are flying

	flying   int      // copies whose fate is not known
	chosen   int      // messages that the filter wanted
	inARow   int      // failures since the last success
	deferred []uint64 // copied, to be acknowledged when the broker sends nothing for it
	next     time.Time
	told     time.Time
	refused  error // in a dry run: why the target would take nothing
}

// result is what became of a copy.
type result struct {
	tag uint64
	id  string
	err error
}

// Move moves messages and says what became of them. It returns an error when it
// ended before it had looked at all: because ctx was done, the source was lost,
// or the target takes nothing. Messages that fail by themselves are none; the
// report has them.
//
// When ctx is done it waits for the copies that are on their way, acknowledges
// their originals, and gives everything else back.
func Move(ctx context.Context, o Options) (Report, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Report{Left: -1}, err
	}
	m := &mover{o: o, report: Report{Left: -1}, results: make(chan result, o.Prefetch)}
	if m.source, err = openSource(ctx, o); err != nil {
		if ctx.Err() != nil {
			err = interrupted(ctx)
		}
		return m.report, err
	}
	m.publisher = amqp.NewPublisher(amqp.Options{Dial: func(ctx context.Context) (*amqp.Conn, error) { return o.Dial(ctx, " (transfer, publisher)") }})
	err = m.attempt(ctx)
	err = errors.Join(err, m.finish(context.WithoutCancel(ctx)))
	if o.Progress != nil {
		o.Progress(m.report.clone())
	}
	return m.report, err
}

func interrupted(ctx context.Context) error { return fmt.Errorf("interrupted: %w", context.Cause(ctx)) }

// attempt looks at the messages. A function of the caller's that panics ends the
// run, and what it has taken is given back all the same.
func (m *mover) attempt(ctx context.Context) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("a function that was passed in the options panicked: %v", value)
		}
	}()
	if err := m.prepare(ctx); err != nil {
		return err
	}
	return m.run(ctx)
}

// prepare finds out what can be found out before a message is touched.
func (m *mover) prepare(ctx context.Context) error {
	var err error
	if m.report.Found, err = m.source.ready(); err != nil {
		return err
	}
	m.most = m.report.Found
	if m.o.Limit > 0 && m.o.Filter == nil {
		m.most = min(m.most, m.o.Limit)
	}
	if m.most == 0 || !m.o.hasTarget() {
		return nil
	}
	err = m.probe(ctx)
	if m.o.DryRun {
		m.refused, err = err, nil
	}
	return err
}

// probe fails when the target takes nothing, as far as that can be told before
// something is published. Whether a queue is bound cannot, but for the default
// exchange.
//
// A broker that blocks publishers does not answer. That says nothing about the
// target, and what is published after it is told of the alarm.
func (m *mover) probe(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	probe := m.publisher.Probe
	if m.o.Exchange != "" {
		probe = m.publisher.ProbeAny
	}
	err := probe(limited, m.o.Exchange)
	if errors.Is(err, amqp.ErrUnconfirmed) && limited.Err() != nil && ctx.Err() == nil {
		err = nil
	}
	if err == nil && m.o.Exchange == "" && m.o.Route == nil && m.source.lacks(m.o.RoutingKey) {
		err = fmt.Errorf("%w: there is no such queue", amqp.ErrUnroutable)
	}
	if err != nil {
		return m.targetError(err)
	}
	return nil
}

// probeTimeout bounds the wait for the broker's answer to a probe.
const probeTimeout = 5 * time.Second

func (m *mover) targetError(err error) error {
	return fmt.Errorf("publishing to exchange %q with routing key %q: %w", m.o.Exchange, m.o.RoutingKey, err)
}

// run takes messages until there are no more to take.
func (m *mover) run(ctx context.Context) error {
	if err := m.look(ctx); err != nil {
		return err
	}
	return m.refused
}

func (m *mover) look(ctx context.Context) error {
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	var silent time.Time // since when nothing was delivered that should be
	for m.source.total() < m.most && (m.o.Limit == 0 || m.chosen < m.o.Limit) {
		if m.source.deliveries == nil {
			if err := m.source.consume(m.allotment()); err != nil {
				return err
			}
		}
		deliveries, wait := m.source.deliveries, quiet
		if pause := time.Until(m.next); m.flying >= m.o.Prefetch {
			deliveries = nil
		} else if pause > 0 {
			deliveries, wait = nil, pause
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return interrupted(ctx)
		case r := <-m.results:
			if err := m.settle(r); err != nil {
				return err
			}
		case d, ok := <-deliveries:
			silent = time.Time{}
			if err := m.delivered(&d, ok); err != nil {
				return err
			}
		case now := <-timer.C:
			if deliveries == nil || m.flying > 0 {
				continue
			}
			if silent.IsZero() {
				silent = now
				continue
			}
			switch left, err := m.source.ready(); {
			case err != nil:
				return err
			case left == 0:
				return nil // somebody else takes them too
			case now.Sub(silent) > starved:
				return fmt.Errorf("queue %q: %w", m.o.Source, errStarved)
			}
		}
		if err := m.renew(); err != nil {
			return err
		}
		m.tell()
	}
	return nil
}

// allotment is the prefetch of the next consumer. The first one gets one message:
// where the target takes nothing, no other is touched.
func (m *mover) allotment() int {
	return min(1<<min(m.source.consumers, 16), m.o.Prefetch, m.most-m.source.total())
}

// renew ends a consumer that is to be followed by another one, because what it
// holds takes half of its places, or because all went well with the few that it
// had.
func (m *mover) renew() error {
	s := m.source
	if s.deliveries == nil || s.cancelled {
		return nil
	}
	grow := (s.acked >= s.allotted || m.flying == 0 && s.quiet()) && s.allotted < min(m.o.Prefetch, m.most-s.before)
	s.ending = s.ending || grow || 2*s.holding >= s.allotted
	if !s.ending || !s.quiet() {
		return nil
	}
	if err := s.cancel(); err != nil {
		return err
	}
	m.ackDeferred()
	return nil
}

// delivered takes a delivery, or learns that its consumer has ended.
func (m *mover) delivered(d *amqp091.Delivery, ok bool) error {
	s := m.source
	if !ok {
		if !s.cancelled || s.ch.IsClosed() {
			return s.lost()
		}
		s.deliveries = nil
		return nil
	}
	s.take(d)
	if m.o.Filter != nil && !m.o.Filter(d) {
		m.report.Skipped++
		s.hold(d.DeliveryTag)
		return nil
	}
	m.chosen++
	if m.o.Each != nil {
		m.o.Each(d)
	}
	switch {
	case m.o.DryRun:
		if m.refused != nil {
			m.report.fail(d.MessageId, m.refused)
		} else {
			m.report.Moved++
		}
		s.hold(d.DeliveryTag)
	default:
		m.publish(d)
	}
	return nil
}

func (m *mover) publish(d *amqp091.Delivery) {
	if m.o.Rate > 0 {
		m.next = time.Now().Add(time.Duration(float64(time.Second) / m.o.Rate))
	}
	msg, key := amqp.Copy(d, nil, nil), m.o.RoutingKey
	if m.o.Route != nil {
		key = m.o.Route(d)
	}
	if m.o.Edit != nil {
		m.o.Edit(d, &msg)
	}
	m.flying++
	tag, id := d.DeliveryTag, d.MessageId
	m.publisher.Publish(m.o.Exchange, key, msg, func(err error) { m.results <- result{tag, id, err} })
}

// settle acts on what became of a copy. It returns an error where the others
// would fare no better.
func (m *mover) settle(r result) error {
	m.flying--
	if r.err == nil {
		m.inARow = 0
		m.ack(r.tag)
		return nil
	}
	m.report.fail(r.id, r.err)
	m.inARow++
	m.source.hold(r.tag)
	switch {
	case errors.Is(r.err, amqp.ErrNoExchange), errors.Is(r.err, amqp.ErrForbidden), errors.Is(r.err, amqp.ErrNotConnected):
		return m.targetError(r.err)
	case errors.Is(r.err, amqp.ErrUnroutable) && m.o.Route == nil:
		return m.targetError(r.err)
	case m.inARow >= hopeless:
		return fmt.Errorf("%d messages failed in a row: %w", m.inARow, m.targetError(r.err))
	default:
		return nil
	}
}

// ack acknowledges a message whose copy was confirmed, at once unless the broker
// would send one for it that is not to be taken.
func (m *mover) ack(tag uint64) {
	switch {
	case !m.source.mayAck(tag, m.most):
		m.deferred = append(m.deferred, tag)
	case m.source.ack(tag) != nil:
		m.report.Doubtful++
	default:
		m.report.Moved++
	}
}

// finish waits for what is on its way, gives everything else back, and closes.
func (m *mover) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	s := m.source
	var err error
	if s.deliveries != nil && !s.cancelled && !s.ch.IsClosed() {
		m.catchUp()
		err = s.cancel()
	}
	for m.flying > 0 {
		select {
		case r := <-m.results:
			_ = m.settle(r) // it is the end anyway
		case <-ctx.Done():
			_ = m.publisher.Close(ctx) // this tells of the rest
		}
	}
	m.ackDeferred()
	if !s.ch.IsClosed() {
		err = errors.Join(err, s.giveBack())
	}
	m.report.Left = s.close(ctx)
	return errors.Join(err, m.publisher.Close(ctx))
}

// catchUp takes what is on its way to the consumer, to give it back.
func (m *mover) catchUp() {
	s := m.source
	s.ending = true
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for !s.quiet() {
		select {
		case d, ok := <-s.deliveries:
			if !ok {
				return
			}
			s.take(&d)
			s.hold(d.DeliveryTag)
		case <-timer.C: // the queue has no more
			return
		}
	}
}

// ackDeferred acknowledges what could not be while the consumer was there.
func (m *mover) ackDeferred() {
	tags := m.deferred
	m.deferred = nil
	for _, tag := range tags {
		m.ack(tag)
	}
}

// tell calls Progress now and then.
func (m *mover) tell() {
	if m.o.Progress == nil || time.Since(m.told) < tellEvery {
		return
	}
	m.told = time.Now()
	m.o.Progress(m.report.clone())
}

func (r Report) clone() Report {
	r.Failures = slices.Clone(r.Failures)
	return r
}
