package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

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
	return extra
}

// mirrorExchange is how a live exchange shows in state: its name, and whatever no exchange of the contract is.
func mirrorExchange(live rabbitmqadmin.LiveExchange) string {
	var differs []string
	if live.Type != "direct" {
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
func mirrorRoutes(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, objects topology.Objects) (exchanges []string, bindings []topology.Binding, err error) {
	for _, e := range objects.Exchanges {
		live, err := admin.Exchange(ctx, vhost, e.Name)
		if errors.Is(err, rabbitmqadmin.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		exchanges = append(exchanges, mirrorExchange(live))
	}
	have := map[string][]topology.Binding{}
	for _, b := range objects.Bindings {
		live, read := have[b.Destination]
		if !read {
			live, err = admin.QueueBindings(ctx, vhost, b.Destination)
			if err != nil && !errors.Is(err, rabbitmqadmin.ErrNotFound) {
				return nil, nil, err
			}
			have[b.Destination] = live
		}
		bindings = append(bindings, present([]topology.Binding{b}, live)...)
	}
	return exchanges, bindings, nil
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
