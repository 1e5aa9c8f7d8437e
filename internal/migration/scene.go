package migration

import (
	"context"
	"errors"
	"fmt"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const fanout = "fanout"

// scene is how far a migration is: what the broker has, and nothing else.
type scene struct {
	// begun: there is a switch.
	begun bool
	// replacing are the queue's arguments from before.
	replacing topology.Arguments
	// queue is nil where there is none, and temp says whether the migrating queue is there.
	queue *rabbitmqadmin.LiveQueue
	temp  bool
	// Where the switch and its branch lead.
	switchToQueue, switchToTemp, branchToQueue, branchToTemp bool
}

// returning: the queue was replaced, or that was given up, and its messages are on their way back.
func (s scene) returning() bool { return s.switchToTemp || s.branchToQueue }

// look reads how far a migration of the queue is.
func (m *run) look(ctx context.Context) (s scene, err error) {
	hub, err := m.Client.Exchange(ctx, m.VHost, m.names.Switch)
	switch {
	case err == nil:
		if s.replacing, s.begun = topology.Replacing(hub.Arguments); !s.begun {
			return s, fmt.Errorf("there is an exchange %q, which no migration made, and its name is needed: delete it", m.names.Switch)
		}
	case !errors.Is(err, rabbitmqadmin.ErrNotFound):
		return s, err
	}
	if s.queue, err = m.find(ctx, m.Queue.Name); err != nil || !s.begun {
		return s, err
	}
	temp, err := m.find(ctx, m.names.Queue.Name)
	if err != nil {
		return s, err
	}
	s.temp = temp != nil
	if s.switchToQueue, s.switchToTemp, err = m.leads(ctx, m.names.Switch); err == nil {
		s.branchToQueue, s.branchToTemp, err = m.leads(ctx, m.names.Branch)
	}
	return s, err
}

func (m *run) find(ctx context.Context, name string) (*rabbitmqadmin.LiveQueue, error) {
	live, err := m.Client.Queue(ctx, m.VHost, name)
	switch {
	case errors.Is(err, rabbitmqadmin.ErrNotFound):
		return nil, nil //nolint:nilnil // that there is none is an answer
	case err != nil:
		return nil, err
	default:
		return &live, nil
	}
}

// direct are the queue's bindings, those to the switch and its branch aside.
func (m *run) direct(ctx context.Context) ([]topology.Binding, error) {
	all, err := m.Client.QueueBindings(ctx, m.VHost, m.Queue.Name)
	var out []topology.Binding
	for _, b := range all {
		if b.Source != m.names.Switch && b.Source != m.names.Branch {
			out = append(out, b)
		}
	}
	return out, err
}
