package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// ByNameError says that queues dead-letter to a queue by its name, through the default exchange, and keep no message that
// comes while there is no such queue.
type ByNameError struct {
	Queue string
	By    []string
}

func (e *ByNameError) Error() string {
	return fmt.Sprintf("queue %q is dead-lettered to by its name, through the default exchange, and what comes that way is lost in the moment in which there is no such queue (the time of a few requests): by %q. "+
		"Have them dead-letter to an exchange that the queue is bound to, or wait until they are empty and accept it", e.Queue, e.By)
}

// Check refuses what [Run] would refuse before it changes anything, as far as that can be told by reading. live is the
// queue as it is.
func Check(ctx context.Context, o Options, live rabbitmqadmin.LiveQueue) error {
	m := &run{Options: o, names: o.Queue.Migrating()}
	if _, err := Broker(o.Client, o.VHost); err != nil {
		return err
	}
	return m.check(ctx, live)
}

func (m *run) check(ctx context.Context, live rabbitmqadmin.LiveQueue) error {
	if err := m.names.Validate(m.Queue.Name); err != nil {
		return err
	}
	for _, args := range []topology.Arguments{live.Arguments, m.Queue.Arguments} {
		if args[topology.ArgSingleActiveConsumer] == true {
			return fmt.Errorf("queue %q hands its messages to one consumer at a time, to keep their order, which moving them would not: it is replaced only while it is empty", m.Queue.Name)
		}
	}
	if live.Exclusive {
		return fmt.Errorf("queue %q is exclusive: it belongs to a connection and goes when that closes", m.Queue.Name)
	}
	if err := m.checkLength(ctx); err != nil {
		return err
	}
	if err := m.checkSources(ctx); err != nil {
		return err
	}
	if err := m.checkPolicies(ctx); err != nil {
		return err
	}
	if m.AllowDefaultExchangeLoss {
		return nil
	}
	by, err := m.Client.DeadLetteringByName(ctx, m.VHost, m.Queue.Name)
	if err == nil && len(by) > 0 {
		err = &ByNameError{Queue: m.Queue.Name, By: by}
	}
	return err
}

// checkLength refuses a queue that would drop messages that are there.
func (m *run) checkLength(ctx context.Context) error {
	settings := m.Queue.Settings()
	limit, limited := settings[topology.ArgMaxLength].(int64)
	overflow := settings[topology.ArgOverflow]
	if !limited || overflow == "reject-publish" || overflow == "reject-publish-dlx" {
		return nil
	}
	depths, err := m.Client.DepthsNow(ctx, m.VHost, []string{m.Queue.Name})
	if err == nil && depths[0].Total > limit {
		err = fmt.Errorf("%s, and with %s = %d the broker would drop the oldest of them: let consumers drain it first, or set a higher limit", depths[0], topology.ArgMaxLength, limit)
	}
	return err
}

// checkSources refuses exchanges that do more than route to each binding by itself: what they do for others would
// change, or what they have sent before would come again.
func (m *run) checkSources(ctx context.Context) error {
	bindings, err := m.Client.QueueBindings(ctx, m.VHost, m.Queue.Name)
	if err != nil {
		return err
	}
	for _, b := range bindings {
		source, err := m.Client.View().Exchange(ctx, m.VHost, b.Source)
		if errors.Is(err, rabbitmqadmin.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if !slices.Contains([]string{"direct", fanout, "topic", "headers"}, source.Type) {
			return fmt.Errorf("queue %q is bound to exchange %q of type %q, which cannot be led elsewhere for a while without changing what it sends to whom: the queue is replaced only while it is empty",
				m.Queue.Name, b.Source, source.Type)
		}
	}
	return nil
}

// checkPolicies refuses policies by which the migrating queue would lose messages.
func (m *run) checkPolicies(ctx context.Context) error {
	policies, err := m.Client.View().Policies(ctx, m.VHost)
	if err != nil {
		return err
	}
	temp := m.names.Queue
	for _, e := range temp.Contradictions(temp.Effects(policies, "")) {
		return fmt.Errorf("the messages are to wait in queue %q, and %s: have the policy not match that name, such as by a $ at the end of its pattern", temp.Name, e)
	}
	return nil
}

// checkName refuses a migrating queue that somebody else has made, unless it is empty: without the switch no message of
// the queue is in it.
func (m *run) checkName(ctx context.Context) error {
	name := m.names.Queue.Name
	temp, err := m.find(ctx, name)
	if err != nil || temp == nil {
		return err
	}
	if _, err := m.Client.SafeDelete(ctx, rabbitmqadmin.SafeDelete{VHost: m.VHost, Queues: []string{name}}); err != nil {
		return fmt.Errorf("the name %q is needed: %w", name, err)
	}
	return nil
}

// probe finds out whether the broker takes the new arguments, by a queue that nothing leads to.
func (m *run) probe(ctx context.Context) error {
	q := m.Queue
	q.Name = m.names.Queue.Name
	err := m.Client.CreateQueue(ctx, m.VHost, q)
	if err == nil {
		return m.Client.DeleteQueue(ctx, m.VHost, q.Name)
	}
	if isRefusal(err) {
		err = fmt.Errorf("nothing was changed, because the broker refuses the new arguments: %w", err)
		return errors.Join(err, m.restore(ctx))
	}
	return err
}
