package migration

import (
	"context"
	"errors"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// lead binds a queue to the switch or its branch, and cut undoes that. Either may be so already.
func (m *run) lead(ctx context.Context, exchange, queue string) error {
	return m.Client.Bind(ctx, m.VHost, way(exchange, queue))
}

func (m *run) cut(ctx context.Context, exchange, queue string) error {
	return m.Client.Unbind(ctx, m.VHost, way(exchange, queue))
}

func way(exchange, queue string) topology.Binding {
	return topology.Binding{Source: exchange, Destination: queue, DestinationType: topology.BindingToQueue}
}

// divert has all that is published to the queue come through the switch, and from there to the queue as before. A message
// that can go both ways meanwhile is delivered once, as to any queue that several bindings lead to.
func (m *run) divert(ctx context.Context) error {
	for {
		bindings, err := m.direct(ctx)
		if err != nil || len(bindings) == 0 {
			return err
		}
		// Where the switch was thrown already this throws it back, for bindings that were made since.
		if err := m.lead(ctx, m.names.Switch, m.Queue.Name); err != nil {
			return err
		}
		if err := m.rebind(ctx, bindings, m.names.Switch, topology.BindingToExchange); err != nil {
			return err
		}
	}
}

// rebind leads what bindings lead somewhere to another place: each is made there before it is removed.
func (m *run) rebind(ctx context.Context, bindings []topology.Binding, to, kind string) error {
	for _, b := range bindings {
		other := b
		other.Destination, other.DestinationType = to, kind
		err := m.Client.Bind(ctx, m.VHost, other)
		if rabbitmqadmin.IsMissingExchange(err) {
			if _, gone := m.Client.Exchange(ctx, m.VHost, b.Source); errors.Is(gone, rabbitmqadmin.ErrNotFound) {
				continue // with its exchange a binding is gone
			}
		}
		if err == nil {
			err = m.Client.Unbind(ctx, m.VHost, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// turn has what the switch leads nowhere else go to the queue, and everything else to the migrating queue, where it goes
// already. After that the switch is thrown back by a single request.
func (m *run) turn(ctx context.Context, s scene) error {
	temp := m.names.Queue.Name
	if !s.returning() {
		if err := m.declareBranch(ctx); err != nil { // a run may have been killed before there was one
			return err
		}
		if err := m.lead(ctx, m.names.Branch, temp); err != nil {
			return err
		}
		if err := m.divert(ctx); err != nil {
			return err
		}
		if err := m.cut(ctx, m.names.Switch, m.Queue.Name); err != nil {
			return err
		}
		if err := m.lead(ctx, m.names.Switch, temp); err != nil {
			return err
		}
	} else if s.switchToQueue { // no run leaves it so, and what is published would be there twice
		if err := m.cut(ctx, m.names.Switch, m.Queue.Name); err != nil {
			return err
		}
	}
	if err := m.cut(ctx, m.names.Branch, temp); err != nil {
		return err
	}
	return m.lead(ctx, m.names.Branch, m.Queue.Name)
}

// gather is divert while messages are on their way back and the switch leads to the migrating queue: what a binding
// delivers to the queue and the switch to the migrating queue would be there twice. A consumer that was cancelled when the
// queue was deleted may make such bindings when it subscribes again. While they are led to the switch that leads to
// the queue, as its branch does.
func (m *run) gather(ctx context.Context) error {
	bindings, err := m.direct(ctx)
	if err != nil || len(bindings) == 0 {
		return err
	}
	if err := m.cut(ctx, m.names.Switch, m.names.Queue.Name); err != nil {
		return err
	}
	if err := m.rebind(ctx, bindings, m.names.Switch, topology.BindingToExchange); err != nil {
		return err
	}
	return m.lead(ctx, m.names.Switch, m.names.Queue.Name)
}

func (m *run) declareBranch(ctx context.Context) error {
	return m.Client.CreateExchange(ctx, m.VHost, rabbitmqadmin.LiveExchange{Name: m.names.Branch, Type: fanout, Durable: true})
}

// restore gives the queue its bindings back, and removes the exchanges that nothing comes through any more.
func (m *run) restore(ctx context.Context) error {
	m.tell(StepRestore)
	for {
		_, entries, err := m.Client.ExchangeBindings(ctx, m.VHost, m.names.Switch)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			break
		}
		if err := m.rebind(ctx, entries, m.Queue.Name, topology.BindingToQueue); err != nil {
			return err
		}
	}
	// The switch goes last: it is what a later run knows by.
	if err := m.Client.DeleteExchange(ctx, m.VHost, m.names.Branch); err != nil {
		return err
	}
	return m.Client.DeleteExchange(ctx, m.VHost, m.names.Switch)
}
