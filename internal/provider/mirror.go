package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// queueArgumentsType is that of the arguments of one queue among several.
var queueArgumentsType = types.MapType{ElemType: types.StringType}

// argumentsMap shows the arguments of queues by name.
func argumentsMap(arguments map[string]map[string]string) types.Map {
	elements := make(map[string]attr.Value, len(arguments))
	for name, args := range arguments {
		elements[name] = stringMap(args)
	}
	return types.MapValueMust(queueArgumentsType, elements)
}

// argumentsByQueue reads what [argumentsMap] wrote; it is empty where there is nothing to read.
func argumentsByQueue(ctx context.Context, arguments types.Map) map[string]map[string]string {
	out := map[string]map[string]string{}
	for name, element := range arguments.Elements() {
		if args, ok := element.(types.Map); ok {
			out[name] = mapOf(ctx, args)
		}
	}
	return out
}

// broker is where the objects of a broker are read: in the view that a run shares, or, by those who write, fresh from the client.
type broker interface {
	Queue(ctx context.Context, vhost, name string) (rabbitmqadmin.LiveQueue, error)
	Queues(ctx context.Context, vhost string) ([]rabbitmqadmin.LiveQueue, error)
	Exchange(ctx context.Context, vhost, name string) (rabbitmqadmin.LiveExchange, error)
	QueueBindings(ctx context.Context, vhost, queue string) ([]topology.Binding, error)
	ExchangeBindings(ctx context.Context, vhost, exchange string) (source, destination []topology.Binding, err error)
	Policies(ctx context.Context, vhost string) ([]topology.Policy, error)
}

var (
	_ broker = (*rabbitmqadmin.Client)(nil)
	_ broker = (*rabbitmqadmin.View)(nil)
)

// readArguments reads how queues show; those that are gone are left out.
func readArguments(ctx context.Context, admin broker, vhost string, names []string) (map[string]map[string]string, error) {
	found := map[string]map[string]string{}
	for _, name := range names {
		live, err := admin.Queue(ctx, vhost, name)
		if errors.Is(err, rabbitmqadmin.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[name] = mirrorArguments(live)
	}
	return found, nil
}

// liveQueues are the queues of a vhost, to recognise those of a topic among them. What their own policies set is among
// their arguments.
func liveQueues(ctx context.Context, admin broker, vhost string) ([]topology.Queue, error) {
	all, err := admin.Queues(ctx, vhost)
	if err != nil {
		return nil, err
	}
	policies, err := admin.Policies(ctx, vhost)
	if err != nil {
		return nil, err
	}
	own := topology.OwnPolicies(policies)
	queues := make([]topology.Queue, len(all))
	for i, q := range all {
		queues[i] = topology.Queue{Name: q.Name, Arguments: q.Arguments}
		if p, ok := own[q.Name]; ok {
			queues[i].Arguments = p.Over(q.Arguments)
		}
	}
	return queues, nil
}

// mirrorArguments is how a live queue shows in state: its arguments in canonical JSON, its type among them even where
// the broker keeps that apart, and whatever no queue of the contract is.
func mirrorArguments(live rabbitmqadmin.LiveQueue) map[string]string {
	shown := live.Arguments.Canonical()
	if live.Type != "" {
		shown[topology.ArgQueueType] = topology.CanonicalJSON(string(live.Type))
	}
	if !live.Durable {
		shown[topology.KeyDurable] = "false"
	}
	if live.AutoDelete {
		shown[topology.KeyAutoDelete] = "true"
	}
	if live.Exclusive {
		shown[topology.KeyExclusive] = "true"
	}
	return shown
}

// mirrored reads what [mirrorArguments] wrote.
func mirrored(name string, shown map[string]string) topology.LiveQueue {
	live := topology.LiveQueue{
		Name: name, Durable: shown[topology.KeyDurable] != "false",
		AutoDelete: shown[topology.KeyAutoDelete] == "true", Exclusive: shown[topology.KeyExclusive] == "true",
	}
	arguments := maps.Clone(shown)
	for _, key := range []string{topology.KeyDurable, topology.KeyAutoDelete, topology.KeyExclusive} {
		delete(arguments, key)
	}
	parsed, err := topology.ParseCanonical(arguments)
	if err != nil {
		return live // not written by this provider: everything is missing, and shows as drift
	}
	live.Arguments = parsed
	kind, _ := parsed[topology.ArgQueueType].(string)
	live.Type = topology.QueueType(kind)
	return live
}

// queueDifferences are the differences between a queue that is computed and what a broker shows that only a new queue
// can repair; none where there is no queue to compare with.
func queueDifferences(want topology.Queue, shown map[string]string, ignore []string) []topology.Difference {
	if shown == nil {
		return nil
	}
	return breaking(topology.DiffQueue(want, mirrored(want.Name, shown)), ignore)
}

// breaking leaves out the differences that need no repair.
func breaking(differences []topology.Difference, ignore []string) []topology.Difference {
	return slices.DeleteFunc(differences, func(d topology.Difference) bool { return !topology.Breaking([]topology.Difference{d}, ignore...) })
}

// plannedArguments is what the plan shows: what is computed, with accepted differences left as the broker shows them.
func plannedArguments(want topology.Arguments, shown map[string]string, open []topology.Difference) map[string]string {
	planned := want.Canonical()
	if shown == nil {
		return planned
	}
	repaired := func(key string) bool {
		return slices.ContainsFunc(open, func(d topology.Difference) bool { return d.Key == key })
	}
	for key := range planned {
		if _, live := shown[key]; !live && !repaired(key) {
			delete(planned, key)
		}
	}
	for key, value := range shown {
		if !repaired(key) {
			planned[key] = value
		}
	}
	return planned
}

// describe lists differences for an error or a warning.
func describe(differences []topology.Difference) string {
	lines := make([]string, len(differences))
	for i, d := range differences {
		lines[i] = "  " + d.String()
	}
	return strings.Join(lines, "\n")
}

// describeQueue is describe for a queue that may have a policy of its own: what moves there from the arguments does not go away.
func describeQueue(q topology.Queue, differences []topology.Difference) string {
	if q.Policy == nil {
		return describe(differences)
	}
	set := q.Policy.Over(nil)
	lines := make([]string, len(differences))
	for i, d := range differences {
		value, moves := set[d.Key]
		switch {
		case !moves || d.Want != "":
			lines[i] = "  " + d.String()
		case topology.CanonicalJSON(value) == d.Live:
			lines[i] = fmt.Sprintf("  %s: %s moves to policy %q", d.Key, d.Live, q.Policy.Name)
		default:
			lines[i] = fmt.Sprintf("  %s: moves to policy %q, as %s instead of %s", d.Key, q.Policy.Name, topology.CanonicalJSON(value), d.Live)
		}
	}
	return strings.Join(lines, "\n")
}

// beyond are the arguments of live queues that the contract does not compute for them, where all of the queues have
// the same ones: what extra_arguments must have been.
func beyond(queues []topology.Queue, shown map[string]map[string]string) topology.Arguments {
	var extra topology.Arguments
	for i, q := range queues {
		live := mirrored(q.Name, shown[q.Name])
		own := topology.Arguments{}
		for _, d := range breaking(topology.DiffQueue(q, live), nil) {
			if value, ok := live.Arguments[d.Key]; ok && d.Want == "" {
				own[d.Key] = value
			}
		}
		if i > 0 && topology.CanonicalJSON(own) != topology.CanonicalJSON(extra) {
			return nil
		}
		extra = own
	}
	// Where a leader was placed is no difference to messages, and is asked for again with the queue that replaces this one.
	if locator := sameOfAll(queues, shown, topology.ArgLeaderLocator); locator != nil {
		extra[topology.ArgLeaderLocator] = locator
	}
	return extra
}

// sameOfAll is the value of an argument that all of the live queues have alike; nil where they do not.
func sameOfAll(queues []topology.Queue, shown map[string]map[string]string, key string) any {
	var same any
	for i, q := range queues {
		value := mirrored(q.Name, shown[q.Name]).Arguments[key]
		if i > 0 && value != same {
			return nil
		}
		same = value
	}
	return same
}

// mirrorExchange is how a live exchange shows in state: its name, and whatever the exchange of the contract, which has
// this type, is not.
func mirrorExchange(live rabbitmqadmin.LiveExchange, kind string) string {
	var differs []string
	if live.Type != kind {
		differs = append(differs, live.Type)
	}
	if !live.Durable {
		differs = append(differs, "transient")
	}
	if live.AutoDelete {
		differs = append(differs, "auto-delete")
	}
	if live.Internal {
		differs = append(differs, "internal")
	}
	if len(differs) == 0 {
		return live.Name
	}
	return fmt.Sprintf("%s (%s)", live.Name, strings.Join(differs, ", "))
}

// mirrorRoutes reads which of a resource's exchanges and bindings exist. An exchange of another kind shows as what it
// is.
func mirrorRoutes(ctx context.Context, admin broker, vhost string, objects topology.Objects) (exchanges []string, bindings []topology.Binding, err error) {
	for _, e := range objects.Exchanges {
		live, err := admin.Exchange(ctx, vhost, e.Name)
		if errors.Is(err, rabbitmqadmin.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		exchanges = append(exchanges, mirrorExchange(live, e.Type))
	}
	have := map[string][]topology.Binding{}
	for _, b := range objects.Bindings {
		key := objectKey(b.DestinationType, vhost, b.Destination)
		live, read := have[key]
		if !read {
			if live, err = bindingsBeside(ctx, admin, vhost, b); err != nil {
				return nil, nil, err
			}
			have[key] = live
		}
		bindings = append(bindings, present([]topology.Binding{b}, live)...)
	}
	return exchanges, bindings, nil
}

// bindingsBeside reads all bindings that lead where b leads; none where that does not exist.
func bindingsBeside(ctx context.Context, admin broker, vhost string, b topology.Binding) (found []topology.Binding, err error) {
	if b.DestinationType == topology.BindingToExchange {
		_, found, err = admin.ExchangeBindings(ctx, vhost, b.Destination)
	} else {
		found, err = admin.QueueBindings(ctx, vhost, b.Destination)
	}
	if errors.Is(err, rabbitmqadmin.ErrNotFound) {
		return nil, nil
	}
	return found, err
}

// present returns those of the bindings that were found.
func present(bindings, found []topology.Binding) []topology.Binding {
	return without(bindings, without(bindings, found))
}

// without returns the bindings that are not among those left out.
func without(bindings, out []topology.Binding) []topology.Binding {
	kept, _ := topology.DiffBindings(bindings, out)
	return kept
}
