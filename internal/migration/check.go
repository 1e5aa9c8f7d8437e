package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
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
	return fmt.Sprintf("queue %q is dead-lettered to by its name, through the default exchange, and what comes that way is lost in the moment in which there is no such queue (about a second): by %q. "+
		"Have them dead-letter to an exchange that the queue is bound to, or wait until they are empty and accept it", e.Queue, e.By)
}

// refusal is a reason not to change a queue, in contrast to a broker that cannot be asked.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refusef(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

// Check refuses what [Run] would refuse before it changes anything, as far as that can be told by reading. live is the
// queue as it is.
func Check(ctx context.Context, o Options, live rabbitmqadmin.LiveQueue) error {
	m := &run{Options: o, names: o.Queue.Migrating()}
	if _, err := Broker(o.Client, o.VHost); err != nil {
		return err
	}
	return m.check(ctx, live)
}

// check refuses, by a [refusal], what would lose messages, in every run that is to replace the queue: what is wanted may
// be something else than when an interrupted run began.
func (m *run) check(ctx context.Context, live rabbitmqadmin.LiveQueue) error {
	if err := m.names.Validate(m.Queue.Name); err != nil {
		return refusal{err}
	}
	for _, args := range []topology.Arguments{live.Arguments, m.Queue.Arguments} {
		if args[topology.ArgSingleActiveConsumer] == true {
			return refusef("queue %q hands its messages to one consumer at a time, to keep their order, which moving them would not: it is replaced only while it is empty", m.Queue.Name)
		}
	}
	if live.Exclusive {
		return refusef("queue %q is exclusive: it belongs to a connection and goes when that closes", m.Queue.Name)
	}
	if err := m.checkLength(ctx, live); err != nil {
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
		err = refusal{&ByNameError{Queue: m.Queue.Name, By: by}}
	}
	return err
}

// checkLength refuses a queue that would drop messages that are there, in the queue or in the migrating queue.
func (m *run) checkLength(ctx context.Context, live rabbitmqadmin.LiveQueue) error {
	settings := m.Queue.Settings()
	if overflow := settings[topology.ArgOverflow]; overflow == "reject-publish" || overflow == "reject-publish-dlx" {
		return nil
	}
	refused := live.Arguments[topology.ArgOverflow] != nil && live.Arguments[topology.ArgOverflow] != "drop-head"
	tightens := func(key string) (limit int64, tighter bool) {
		limit, limited := settings[key].(int64)
		before, dropped := live.Arguments[key].(int64)
		return limit, limited && (!dropped || refused || limit < before)
	}
	length, shorter := tightens(topology.ArgMaxLength)
	size, smaller := tightens(topology.ArgMaxLengthBytes)
	if !shorter && !smaller {
		return nil
	}
	depths, total, err := m.depths(ctx)
	const advice = "let consumers drain it first, set a higher limit, or have it refuse what is too much (" + topology.ArgOverflow + " = reject-publish)"
	switch {
	case err != nil:
		return err
	case shorter && total > length:
		return refusef("%s, and with %s = %d the broker would drop the oldest of them: %s", depths, topology.ArgMaxLength, length, advice)
	case smaller && total > 0:
		return refusef("%s, and with %s = %d the broker may drop the oldest of them, since it does not tell in time how many bytes there are: %s", depths, topology.ArgMaxLengthBytes, size, advice)
	}
	return nil
}

// depths says what the queue and the migrating queue hold. A run asks over AMQP too, because the counts of a quorum queue are
// some seconds old.
func (m *run) depths(ctx context.Context) (text string, total int64, err error) {
	names := []string{m.Queue.Name, m.names.Queue.Name}
	depths, err := m.Client.Depths(ctx, m.VHost, names)
	if err != nil {
		return "", 0, err
	}
	texts := make([]string, 0, len(depths))
	for _, d := range depths {
		if !d.Exists {
			continue
		}
		if m.broker != nil {
			ready, err := m.ready(ctx, d.Queue)
			if err != nil {
				return "", 0, err
			}
			d.Known, d.Ready = true, ready
			d.Total = max(d.Total, d.Ready+d.Unacknowledged)
		}
		if !d.Known {
			return "", 0, fmt.Errorf("the broker does not tell how many messages queue %q holds: try again when the queue has a leader", d.Queue)
		}
		if total += d.Total; d.Total > 0 {
			texts = append(texts, d.String())
		}
	}
	return strings.Join(texts, ", "), total, nil
}

// ready counts the messages of a queue that nobody holds.
func (m *run) ready(ctx context.Context, queue string) (int64, error) {
	conn, err := m.broker.Dial(ctx, "")
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	ch, err := conn.Channel()
	if err != nil {
		return 0, err
	}
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		return 0, fmt.Errorf("asking how many messages queue %q holds: %w", queue, amqp.Said(err))
	}
	return int64(q.Messages), nil
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
			return refusef("queue %q is bound to exchange %q of type %q, which cannot be led elsewhere for a while without changing what it sends to whom: the queue is replaced only while it is empty",
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
	for _, e := range temp.Hazards(policies) {
		return refusef("the messages are to wait in queue %q, and %s: have the policy not match that name, such as by a $ at the end of its pattern", temp.Name, e)
	}
	return nil
}

// checkName refuses a migrating queue that somebody else has made, empty or not: without the switch it is none of a migration.
func (m *run) checkName(ctx context.Context) error {
	temp, err := m.find(ctx, m.names.Queue.Name)
	if err == nil && temp != nil {
		err = fmt.Errorf("there is a queue %q, which no migration made, and its name is needed: delete it", m.names.Queue.Name)
	}
	return err
}

// probe finds out whether the broker takes the new arguments, by a queue that nothing leads to.
func (m *run) probe(ctx context.Context) error {
	q := m.Queue
	q.Name = m.names.Queue.Name
	err := m.Client.CreateQueue(ctx, m.VHost, q)
	if err == nil {
		return m.Client.DeleteQueue(ctx, m.VHost, q.Name)
	}
	if refusesArguments(err) {
		err = fmt.Errorf("nothing was changed, because the broker refuses the new arguments: %w", err)
		return errors.Join(err, m.restore(ctx))
	}
	return err
}
