package migration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Options say what becomes of which queue.
type Options struct {
	// Client is the broker's. It needs AMQP endpoints.
	//
	// Required.
	Client *rabbitmqadmin.Client
	// VHost is the queue's.
	//
	// Required.
	VHost string
	// Queue is the queue as it is to be: its name, its type and all of its arguments.
	//
	// Required.
	Queue topology.Queue
	// Ignore are arguments that may be what they are.
	Ignore []string
	// Keep changes nothing: it finishes or undoes what is under way, and Queue need have no more than a name.
	Keep bool
	// AllowDefaultExchangeLoss accepts that what others dead-letter to the queue by its name, through the default exchange,
	// is lost while there is no such queue: about a second.
	AllowDefaultExchangeLoss bool
	// Progress, where it is set, is told a few times in a second how far the run is. The run waits for it.
	Progress func(Progress)
}

// Step is what a run is doing.
type Step string

// The steps, in their order.
const (
	StepLock    Step = "waiting for another run"
	StepDivert  Step = "leading what is published to the migrating queue"
	StepEmpty   Step = "moving messages to the migrating queue"
	StepReplace Step = "replacing the queue"
	StepReturn  Step = "moving messages back"
	StepRestore Step = "giving bindings back"
)

// Progress says how far a run is.
type Progress struct {
	Step Step
	// Moved is how many messages were moved out of the queue or, from StepReturn on, back into it, by this run. Left is how many
	// are still to be moved in this step, as far as that is known.
	Moved, Left int
	// Waiting says what the run is waiting for, "" where it is not.
	Waiting string
}

// Report says what was done.
type Report struct {
	// Resumed: the run went on with what an earlier one had left.
	Resumed bool
	// Out and Back are how many messages were moved out of the queue and back into it.
	Out, Back int
	// Doubtful are messages that may be there twice: a connection was lost between the copy and its original's
	// acknowledgement. Those of earlier runs, which were killed, nobody counted.
	Doubtful int
}

// UndoneError says that a queue could not be changed, and is as it was.
type UndoneError struct {
	VHost, Queue string
	// Other: it has other arguments than it had, because somebody else declared it meanwhile.
	Other bool
	// Err is why.
	Err error
}

func (e *UndoneError) Error() string {
	arguments := "its old arguments"
	if e.Other {
		arguments = "the arguments with which somebody else declared it meanwhile"
	}
	return fmt.Sprintf("changing the arguments of queue %q in vhost %q: %v; this was undone: the queue has %s, its bindings and its messages", e.Queue, e.VHost, e.Err, arguments)
}

// Unwrap returns the cause.
func (e *UndoneError) Unwrap() error { return e.Err }

// Run brings a queue to what it is to be without losing a message, or goes on with a run that was interrupted. Where the
// queue is that already and nothing is under way it does nothing. An [*UndoneError] says that everything is as it was;
// after any other error the next run goes on. A [*LockedError] says that another run works on the queue, an [*AstrayError] that
// somebody changes the bindings by which messages are moved.
func Run(ctx context.Context, o Options) (Report, error) {
	m := &run{Options: o, names: o.Queue.Migrating()}
	var err error
	if m.broker, err = Broker(o.Client, o.VHost); err == nil {
		err = m.runAlone(ctx)
	}
	var undone *UndoneError
	if err != nil && !errors.As(err, &undone) {
		err = fmt.Errorf("changing the arguments of queue %q in vhost %q: %w", o.Queue.Name, o.VHost, err)
	}
	return m.report, err
}

// run is one run.
type run struct {
	Options
	names  topology.Migrating
	broker *amqp.Broker
	report Report
	step   Step
	// late are bindings that the queue had when it was deleted: they were made at that very moment.
	late []topology.Binding
}

// runAlone runs while no other run works on the queue. It stops at once where another one may have begun.
func (m *run) runAlone(ctx context.Context) error {
	held, release, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	err = m.run(held)
	var lost *LockLostError
	var undone *UndoneError
	if err == nil || errors.As(err, &undone) || errors.As(err, &lost) || !errors.As(context.Cause(held), &lost) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return lost
	}
	return fmt.Errorf("%w: %w", lost, err)
}

func (m *run) run(ctx context.Context) error {
	s, err := m.look(ctx)
	if err != nil {
		return err
	}
	m.report.Resumed = s.begun
	if s.begun {
		if s, err = m.resume(ctx, s); err != nil {
			return err
		}
	}
	if !s.begun {
		switch {
		case s.queue == nil:
			return errors.New("there is no such queue")
		case m.isWanted(*s.queue):
			return nil
		}
		if err := m.check(ctx, *s.queue); err != nil {
			return err
		}
		if err := m.checkName(ctx); err != nil {
			return err
		}
		if err := m.begin(ctx, &s); err != nil {
			return err
		}
		if err := m.probe(ctx); err != nil {
			return err
		}
	}
	var undone error
	if s.queue == nil || !m.isWanted(*s.queue) {
		if undone, err = m.replaceUnlessRefused(ctx, s); err != nil {
			return err
		}
	}
	replacing := s.replacing
	if s, err = m.look(ctx); err == nil {
		err = m.bringBack(ctx, s)
	}
	switch {
	case undone == nil:
		return err
	case err != nil:
		return fmt.Errorf("%w; going back to what was before failed too, and is done when this is applied again: %w", undone, err)
	default:
		return m.undone(ctx, replacing, undone)
	}
}

// resume has a run that was interrupted be one that has its messages in the migrating queue, or none at all.
func (m *run) resume(ctx context.Context, s scene) (scene, error) {
	if err := m.dropProbe(ctx, &s); err != nil {
		return s, err
	}
	switch {
	case s.returning():
		// An earlier run has replaced the queue. What is wanted now may be something else again: that is a run of its own.
		if err := m.bringBack(ctx, s); err != nil {
			return s, err
		}
	case !s.temp && s.queue != nil:
		// It had hardly begun, or was almost at its end: what the switch remembers may be older than the queue.
		if err := m.restore(ctx); err != nil {
			return s, err
		}
	default:
		return s, nil
	}
	return m.look(ctx)
}

// replaceUnlessRefused replaces the queue, unless what is wanted by now would lose messages: then the queue is as it was.
func (m *run) replaceUnlessRefused(ctx context.Context, s scene) (undone, err error) {
	if s.temp && !m.Keep {
		live := rabbitmqadmin.LiveQueue{Name: m.Queue.Name, Arguments: s.replacing}
		if s.queue != nil {
			live = *s.queue
		}
		var no refusal
		switch err := m.check(ctx, live); {
		case errors.As(err, &no):
			if s.queue == nil {
				return err, m.recreate(ctx, s.replacing, err)
			}
			return err, nil
		case err != nil:
			return nil, err
		}
	}
	return m.replace(ctx, s)
}

// undone says what became of a queue that could not be replaced.
func (m *run) undone(ctx context.Context, replacing topology.Arguments, cause error) error {
	undone := &UndoneError{VHost: m.VHost, Queue: m.Queue.Name, Err: cause}
	live, err := m.Client.Queue(ctx, m.VHost, m.Queue.Name)
	switch {
	case err != nil:
		return errors.Join(undone, err)
	case !m.Keep && m.isWanted(live):
		return nil // the deletion had succeeded, and its answer was lost
	}
	undone.Other = topology.Breaking(topology.DiffQueue(m.before(replacing), compared(live)))
	return undone
}

// isWanted reports whether a queue need not be replaced.
func (m *run) isWanted(live rabbitmqadmin.LiveQueue) bool {
	return m.Keep || !topology.Breaking(topology.DiffQueue(m.Queue, compared(live)), m.Ignore...)
}

func compared(live rabbitmqadmin.LiveQueue) topology.LiveQueue {
	return topology.LiveQueue{
		Name: live.Name, Type: live.Type, Durable: live.Durable, AutoDelete: live.AutoDelete, Exclusive: live.Exclusive, Arguments: live.Arguments,
	}
}

// begin makes the switch, by which later runs know that there is something to go on with.
func (m *run) begin(ctx context.Context, s *scene) error {
	s.replacing = topology.Arguments{}
	maps.Copy(s.replacing, s.queue.Arguments)
	s.replacing[topology.ArgQueueType] = string(s.queue.Type)
	return m.Client.CreateExchange(ctx, m.VHost, rabbitmqadmin.LiveExchange{
		Name: m.names.Switch, Type: fanout, Durable: true, Arguments: m.names.SwitchArguments(s.replacing),
	})
}

// replace empties the queue and makes it anew. undone is why that cannot be: then the queue is there, as it was.
func (m *run) replace(ctx context.Context, s scene) (undone, err error) {
	exists := s.queue != nil
	for range replaceTries {
		if exists {
			if err := m.clear(ctx, s); err != nil {
				var astray *AstrayError
				if ctx.Err() != nil || errors.As(err, &astray) {
					return nil, err
				}
				return err, nil
			}
		}
		m.tell(StepReplace)
		made, err := m.create(ctx, m.wantedOr(s.replacing))
		switch {
		case made:
			return nil, m.rebindLate(ctx)
		case refusesArguments(err):
			return err, m.recreate(ctx, s.replacing, err)
		case err != nil:
			return nil, err
		}
		exists, s.temp = true, true // somebody was faster: an application that declares its queue
	}
	return fmt.Errorf("each time that the queue was away for a moment somebody else declared it with other arguments: stop the applications that declare queue %q, or have them declare it as it is to be",
		m.Queue.Name), m.rebindLate(ctx)
}

// replaceTries is how often a queue is deleted again that somebody else declared while it was away.
const replaceTries = 3

// create makes the queue. made is false where somebody else has made another one of the name.
func (m *run) create(ctx context.Context, q topology.Queue) (made bool, err error) {
	outcome, err := m.Client.DeclareQueue(ctx, m.VHost, q)
	var other *rabbitmqadmin.InequivalentError
	switch {
	case errors.As(err, &other):
		return false, nil
	case err != nil || outcome == rabbitmqadmin.Created:
		return err == nil, err
	}
	live, err := m.Client.Queue(ctx, m.VHost, q.Name) // the broker does not compare all that matters
	return err == nil && m.isWanted(live), err
}

// recreate makes the queue that was, because the one that is to be is refused.
func (m *run) recreate(ctx context.Context, replacing topology.Arguments, refusal error) error {
	if err := m.Client.CreateQueue(ctx, m.VHost, m.before(replacing)); err != nil {
		return fmt.Errorf("the new arguments are refused (%w), and to make the queue again as it was failed too: %w; what it held, and what is published to its exchanges, is in queue %q meanwhile",
			refusal, err, m.names.Queue.Name)
	}
	return m.rebindLate(ctx)
}

// before is the queue as it was.
func (m *run) before(replacing topology.Arguments) topology.Queue {
	kind, _ := replacing[topology.ArgQueueType].(string)
	return topology.Queue{Name: m.Queue.Name, Type: topology.QueueType(kind), Arguments: replacing}
}

// wantedOr is the queue as it is to be or, where it is to be kept, as it was.
func (m *run) wantedOr(replacing topology.Arguments) topology.Queue {
	if m.Keep {
		return m.before(replacing)
	}
	return m.Queue
}

// rebindLate makes bindings again that went with the queue: at the switch, since a message that came to the queue and
// through the switch to the migrating queue would be there twice.
func (m *run) rebindLate(ctx context.Context) error {
	for _, b := range m.late {
		b.Destination, b.DestinationType = m.names.Switch, topology.BindingToExchange
		if err := m.Client.Bind(ctx, m.VHost, b); err != nil && !rabbitmqadmin.IsMissingExchange(err) {
			return err
		}
	}
	m.late = nil
	return nil
}

// refusesArguments reports that the broker does not take the arguments of a queue, which is a 400. Anything else, such as a
// token that has expired, says nothing about them.
func refusesArguments(err error) bool {
	var answer *rabbitmqadmin.Error
	return errors.As(err, &answer) && answer.Status == http.StatusBadRequest
}

func (m *run) tell(step Step) {
	m.step = step
	m.progress(Progress{})
}

// progress tells how far the run is. p.Moved is what is on its way, which the run has not counted yet.
func (m *run) progress(p Progress) {
	if m.Progress != nil {
		p.Step = m.step
		p.Moved += *m.counter()
		m.Progress(p)
	}
}

// pause waits for d or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
