package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Manifest holds a manifest against the broker behind view. What the user may not see is unknown, and no error; an error
// is that nobody answered.
func Manifest(ctx context.Context, view *rabbitmqadmin.View, m topology.Manifest) (Report, error) {
	v := verification{ctx: ctx, view: view, vhost: m.VHost, report: Report{VHost: m.VHost, Topic: m.Topic}}
	objects := m.Objects()
	for _, e := range objects.Exchanges {
		if err := v.exchange(e); err != nil {
			return Report{}, err
		}
	}
	if err := v.queues(objects.Queues); err != nil {
		return Report{}, err
	}
	for _, b := range objects.Bindings {
		if err := v.binding(b, objects.Queues); err != nil {
			return Report{}, err
		}
	}
	v.waiting(objects)
	return v.report, nil
}

// verification is one comparison on its way.
type verification struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call of Manifest
	view   *rabbitmqadmin.View
	vhost  string
	report Report
}

// refused notes what the broker does not show, once for each kind of thing, with the first reason; any other error is handed
// back.
func (v *verification) refused(what string, err error) (unseen bool, failed error) {
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, rabbitmqadmin.ErrUnauthorized), errors.Is(err, rabbitmqadmin.ErrVHostUnreadable):
		if !slices.ContainsFunc(v.report.Unseen, func(said string) bool { return strings.HasPrefix(said, what+": ") }) {
			v.report.Unseen = append(v.report.Unseen, fmt.Sprintf("%s: %v", what, err))
		}
		return true, nil
	default:
		return false, err
	}
}

func (v *verification) exchange(want topology.Exchange) error {
	o := Object{Kind: Exchange, Name: want.Name, Status: Present}
	live, err := v.view.Exchange(v.ctx, v.vhost, want.Name)
	if errors.Is(err, rabbitmqadmin.ErrNotFound) {
		o.Status, err = Missing, nil
	} else if err == nil {
		o.Differences = exchangeDifferences(want, live)
		if topology.Breaking(o.Differences) {
			o.Status = Drifted
		}
	}
	unseen, err := v.refused("exchanges", err)
	if unseen {
		o.Status = Unknown
	}
	v.report.Objects = append(v.report.Objects, o)
	return err
}

// exchangeDifferences are the properties in which an exchange is not the contract's. Arguments that the contract does not
// have, such as an alternate exchange, do not change where its bindings lead.
func exchangeDifferences(want topology.Exchange, live rabbitmqadmin.LiveExchange) []topology.Difference {
	var out []topology.Difference
	differ := func(key, want, live, meaning string) {
		if want != live {
			out = append(out, topology.Difference{Key: key, Want: want, Live: live, Meaning: topology.ChangesBehaviour, Explanation: meaning})
		}
	}
	differ(KeyType, topology.CanonicalJSON(want.Type), topology.CanonicalJSON(live.Type), "messages are routed by other rules, and may reach other queues or none")
	differ(topology.KeyDurable, "true", strconv.FormatBool(live.Durable), "the exchange and its bindings do not survive a restart of the broker")
	differ(topology.KeyAutoDelete, "false", strconv.FormatBool(live.AutoDelete), "RabbitMQ deletes the exchange with its last binding")
	differ(KeyInternal, "false", strconv.FormatBool(live.Internal), "clients cannot publish to the exchange")
	return out
}

// queues looks at all queues, whose policies, consumers and depths are read together.
func (v *verification) queues(want []topology.Queue) error {
	policies, err := v.view.Policies(v.ctx, v.vhost)
	if _, err := v.refused("policies, so that what they override is not known", err); err != nil {
		return err
	}
	names := make([]string, len(want))
	for i, q := range want {
		names[i] = q.Name
	}
	depths, err := v.view.Depths(v.ctx, v.vhost, names)
	if _, err := v.refused("message counts", err); err != nil {
		return err
	}
	for i, q := range want {
		o := Object{Kind: Queue, Name: q.Name, Role: q.Role, Status: Present}
		if i < len(depths) && depths[i].Exists && depths[i].Known {
			o.Messages = &depths[i]
		}
		if err := v.queue(&o, q, policies); err != nil {
			return err
		}
		v.report.Objects = append(v.report.Objects, o)
	}
	return nil
}

func (v *verification) queue(o *Object, want topology.Queue, policies []topology.Policy) error {
	live, err := v.view.Queue(v.ctx, v.vhost, want.Name)
	if errors.Is(err, rabbitmqadmin.ErrNotFound) {
		o.Status, o.Messages = Missing, nil
		return nil
	}
	if unseen, err := v.refused("queues", err); unseen || err != nil {
		o.Status = Unknown
		return err
	}
	consumers, err := v.view.Consumers(v.ctx, v.vhost, want.Name)
	unseen, err := v.refused("consumers", err)
	if err != nil {
		return err
	}
	if n := len(consumers); !unseen {
		o.Consumers = &n
	}
	o.Differences = queueDifferences(want, live, policies)
	if o.Role == topology.RoleHold && len(consumers) > 0 {
		o.Differences = append(o.Differences, topology.Difference{
			Key: KeyConsumers, Want: "0", Live: strconv.Itoa(len(consumers)), Meaning: topology.ChangesBehaviour,
			Explanation: "what is taken out of a hold queue does not wait its delay, and what is acknowledged never comes home to the topic",
		})
	}
	o.OverriddenBy = overrides(want, live, policies)
	if topology.Breaking(o.Differences) || len(o.OverriddenBy) > 0 {
		o.Status = Drifted
	}
	return nil
}

// queueDifferences are those of arguments and properties. Where the queue lacks an argument that the manifest has, what a
// policy sets counts as the queue's own: it applies.
func queueDifferences(want topology.Queue, live rabbitmqadmin.LiveQueue, policies []topology.Policy) []topology.Difference {
	set := map[string]string{}
	for _, e := range (topology.Queue{Name: live.Name, Type: live.Type, Arguments: live.Arguments}).Effects(policies, live.Policy) {
		if _, wanted := want.Arguments[e.Key]; wanted && e.Argument == "" {
			set[e.Key] = e.Effective
		}
	}
	arguments := live.Arguments
	if byPolicy, err := topology.ParseCanonical(set); err == nil && len(set) > 0 {
		arguments = maps.Clone(live.Arguments)
		maps.Copy(arguments, byPolicy)
	}
	return topology.DiffQueue(want, topology.LiveQueue{
		Name: live.Name, Type: live.Type, Durable: live.Durable, AutoDelete: live.AutoDelete, Exclusive: live.Exclusive, Arguments: arguments,
	})
}

// overrides are the effects of policies that contradict the manifest. What a queue's own policy sets beyond it was merged into
// it by whoever made it.
func overrides(want topology.Queue, live rabbitmqadmin.LiveQueue, policies []topology.Policy) []topology.Effect {
	return slices.DeleteFunc(want.Contradictions(want.Effects(policies, live.Policy)), func(e topology.Effect) bool {
		return e.Policy.Name == topology.OwnPolicyName(want.Name) && e.Argument == ""
	})
}

func (v *verification) binding(want topology.Binding, queues []topology.Queue) error {
	o := Object{Kind: Binding, Name: describe(want), Binding: &want, Status: Present}
	for _, q := range queues {
		if q.Name == want.Destination && want.DestinationType != topology.BindingToExchange {
			o.Role = q.Role
		}
	}
	var found []topology.Binding
	var err error
	if want.DestinationType == topology.BindingToExchange {
		_, found, err = v.view.ExchangeBindings(v.ctx, v.vhost, want.Destination)
	} else {
		found, err = v.view.QueueBindings(v.ctx, v.vhost, want.Destination)
	}
	if errors.Is(err, rabbitmqadmin.ErrNotFound) {
		err = nil
	}
	unseen, err := v.refused("bindings", err)
	// A queue that may or may not be there, as in a vhost that nobody has seen, says nothing about its bindings either.
	unseen = unseen || slices.ContainsFunc(v.report.Objects, func(other Object) bool {
		return other.Kind == Queue && other.Name == want.Destination && other.Status == Unknown
	})
	if missing, _ := topology.DiffBindings([]topology.Binding{want}, found); unseen {
		o.Status = Unknown
	} else if len(missing) > 0 {
		o.Status = Missing
	}
	v.report.Objects = append(v.report.Objects, o)
	return err
}

// describe writes a binding for people.
func describe(b topology.Binding) string {
	parts := []string{b.Source, "->", b.Destination, fmt.Sprintf("(%s)", b.RoutingKey)}
	if len(b.Arguments) > 0 {
		parts = append(parts, topology.CanonicalJSON(b.Arguments))
	}
	return strings.Join(parts, " ")
}
