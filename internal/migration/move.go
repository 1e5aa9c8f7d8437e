package migration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/internal/transfer"
)

const (
	// few messages are left when the switch is thrown: what is published then may overtake these, and no others.
	few = 100
	// moveTries is how often moving is tried in a row that moves nothing, with movePause in between.
	moveTries = 5
	movePause = time.Second
)

// clear empties the queue and deletes it, once what is published goes to the migrating queue. It takes half of the time
// that is left at most, so that there is some for the way back.
func (m *run) clear(ctx context.Context, s scene) error {
	temp := m.names.Queue
	if err := m.declareBranch(ctx); err != nil {
		return err
	}
	if !s.temp { // what an earlier run has filled may be of another kind, and stays
		if err := m.Client.CreateQueue(ctx, m.VHost, temp); err != nil {
			return err
		}
	}
	if err := m.lead(ctx, m.names.Branch, temp.Name); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	m.tell(StepDivert)
	if err := m.divert(ctx); err != nil {
		return err
	}
	m.tell(StepEmpty)
	if err := m.moveMost(ctx, m.Queue.Name, nothing); err != nil {
		return err
	}
	return m.empty(ctx, m.Queue.Name, func() error {
		if err := m.divert(ctx); err != nil {
			return err
		}
		return m.cut(ctx, m.names.Switch, m.Queue.Name)
	})
}

// bringBack moves everything back into the queue, which is what it is to be or what it was, gives it its bindings and
// removes what the migration made.
func (m *run) bringBack(ctx context.Context, s scene) error {
	if s.queue == nil {
		// It was deleted by somebody else since.
		if made, err := m.create(ctx, m.wantedOr(s.replacing)); err != nil || !made {
			return errors.Join(err, errors.New("the queue is gone and could not be made again"))
		}
	}
	if s.temp {
		m.tell(StepReturn)
		thrown := s.branchToQueue && !s.branchToTemp && !s.switchToTemp
		if !thrown {
			if err := m.turn(ctx, s); err != nil {
				return err
			}
			if err := m.moveMost(ctx, m.names.Queue.Name, m.gather); err != nil {
				return err
			}
		}
		err := m.empty(ctx, m.names.Queue.Name, func() error { return m.cut(ctx, m.names.Switch, m.names.Queue.Name) })
		if err != nil {
			return err
		}
	}
	return m.restore(ctx)
}

// dropProbe deletes a migrating queue that nothing leads to, which was made to see whether the broker takes the arguments. One
// that holds messages was none: somebody has deleted what it was led by since.
func (m *run) dropProbe(ctx context.Context, s *scene) error {
	if !s.temp || s.branchToTemp || s.returning() {
		return nil
	}
	_, err := m.Client.SafeDelete(ctx, rabbitmqadmin.SafeDelete{VHost: m.VHost, Queues: []string{m.names.Queue.Name}})
	var notEmpty *rabbitmqadmin.NotEmptyError
	if errors.As(err, &notEmpty) {
		return nil
	}
	s.temp = err != nil
	return err
}

// nothing is what needs to be done while messages are moved out.
func nothing(context.Context) error { return nil }

// moveMost moves messages while others come in, until few are left or there are no less than before. meanwhile is called
// before that and some times in a second.
func (m *run) moveMost(ctx context.Context, queue string, meanwhile func(context.Context) error) error {
	for before := -1; ; {
		if err := meanwhile(ctx); err != nil {
			return err
		}
		r, err := m.move(ctx, queue, meanwhile)
		if err != nil || r.Left <= few || before >= 0 && r.Left > before/2 {
			return err
		}
		before = r.Left
	}
}

// empty moves what is left in a queue to which nothing is led any more, waits for what consumers hold and what waits to be
// dead-lettered, and deletes it. stop, which is called again after every wait, stops what is led to it.
func (m *run) empty(ctx context.Context, queue string, stop func() error) error {
	for held := ""; ; {
		err := m.emptyOnce(ctx, queue, stop)
		var notEmpty *rabbitmqadmin.NotEmptyError
		if errors.As(err, &notEmpty) {
			held = notEmpty.Depths[0].String()
			m.progress(Progress{Left: int(notEmpty.Depths[0].Total), Waiting: held})
			if err = pause(ctx, movePause); err == nil {
				continue
			}
		}
		if err == nil {
			m.progress(Progress{}) // how far the step came, which may have been over before anybody was told
		}
		if err != nil && ctx.Err() != nil && held != "" {
			err = fmt.Errorf("%s, and its consumers have to settle what they hold: %w", held, ctx.Err())
		}
		return err
	}
}

func (m *run) emptyOnce(ctx context.Context, queue string, stop func() error) error {
	if err := stop(); err != nil {
		return err
	}
	if _, err := m.move(ctx, queue, nothing); err != nil {
		return err
	}
	result, err := m.Client.SafeDelete(ctx, rabbitmqadmin.SafeDelete{VHost: m.VHost, Queues: []string{queue}})
	if queue == m.Queue.Name {
		m.late = append(m.late, result.Bindings...)
	}
	return err
}

// move moves what is ready in a queue to where the branch leads, as long as that is where it is to lead. What others than the
// messages are the reason for is tried again.
func (m *run) move(ctx context.Context, queue string, meanwhile func(context.Context) error) (transfer.Report, error) {
	for tries := 1; ; tries++ {
		if err := m.straight(ctx, queue); err != nil {
			return transfer.Report{}, err
		}
		moving, stop := context.WithCancelCause(ctx)
		var astray *AstrayError
		r, err := transfer.Move(moving, transfer.Options{
			Dial: m.broker.Dial, Source: queue, Exchange: m.names.Branch,
			Route: func(d *amqp091.Delivery) string { return d.RoutingKey },
			Edit:  keep,
			Progress: func(r transfer.Report) {
				_ = meanwhile(ctx) // it is called again, and what fails then ends the run
				if err := m.branchLeads(moving, queue); errors.As(err, &astray) {
					stop(err)
				}
				m.progress(Progress{Moved: r.Moved, Left: max(0, r.Found-r.Moved)})
			},
		})
		stop(nil)
		*m.counter() += r.Moved
		m.report.Doubtful += r.Doubtful
		if err == nil && len(r.Failures) > 0 {
			err = r.Failures[0].Err
		}
		switch {
		case astray != nil: // seen after the last message, it is no less of a reason
			return r, fmt.Errorf("moving messages of queue %q: %w", queue, astray)
		case err == nil:
			return r, nil
		case ctx.Err() != nil, errors.Is(err, amqp.ErrForbidden), errors.Is(err, amqp.ErrNoExchange):
			return r, fmt.Errorf("moving messages of queue %q: %w", queue, err)
		case r.Moved > 0:
			tries = 0
		case tries >= moveTries:
			return r, fmt.Errorf("moving messages of queue %q: after %d tries: %w", queue, tries, err)
		}
		m.progress(Progress{Left: max(0, r.Left), Waiting: err.Error()})
		if pause(ctx, movePause) != nil {
			return r, fmt.Errorf("moving messages of queue %q: %w", queue, err)
		}
	}
}

// counter is that of the direction in which messages are moved, or were moved last.
func (m *run) counter() *int {
	if m.step == StepReturn || m.step == StepRestore {
		return &m.report.Back
	}
	return &m.report.Out
}

// keep makes a copy be what its original is, as far as that can be published: it is not a new message but the same one.
// So it keeps its dead-letter history, which copies elsewhere do not, and its time to live, which begins again. The
// branch is a fanout: further routing keys (CC) take a message nowhere else. How often it was delivered the broker counts
// by itself, from 0; and it lets nobody publish with another's user id, which stays as a header.
func keep(of *amqp091.Delivery, made *amqp091.Publishing) {
	headers := maps.Clone(of.Headers)
	if headers == nil {
		headers = amqp091.Table{}
	}
	delete(headers, topology.HeaderDeliveryCount)
	delete(headers, topology.HeaderAcquiredCount)
	if of.UserId != "" {
		headers[topology.HeaderOriginalUserID] = of.UserId
	}
	made.Headers, made.Expiration = headers, of.Expiration
}
