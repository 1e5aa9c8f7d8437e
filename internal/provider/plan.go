package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// reader returns the client for a refresh. While the provider's configuration
// is not known the state is kept as it is, and the warning says so.
func (rt *runtime) reader(diags *diag.Diagnostics) (*rabbitmqadmin.Client, bool) {
	admin, err := rt.admin()
	if errors.Is(err, errUnknown) {
		diags.AddWarning("Not compared with the broker", "The provider's RabbitMQ configuration is not known yet, so this plan trusts the state as it was last seen.")
		return nil, false
	}
	addError(diags, "RabbitMQ is not configured", err)
	return admin, err == nil
}

// argumentPaths are the paths of arguments that only a new queue can repair.
func argumentPaths(differences []topology.Difference) path.Paths {
	paths := make(path.Paths, len(differences))
	for i, d := range differences {
		paths[i] = path.Root("arguments").AtMapKey(d.Key)
	}
	return paths
}

// warnOfDrift says what each difference means for messages.
func warnOfDrift(diags *diag.Diagnostics, queue string, differences []topology.Difference) {
	if len(differences) == 0 {
		return
	}
	diags.AddAttributeWarning(path.Root("arguments"), "Queue arguments differ",
		fmt.Sprintf("Queue %q has to be replaced, because RabbitMQ cannot change a queue's arguments:\n%s\n"+
			"It is replaced only while it is empty, unless delete_non_empty is true. ignore_arguments accepts a difference.", queue, describe(differences)))
}

// warnOfMessages says how many messages a destroy or a replacement meets. It
// asks the broker and is silent where that is not possible: apply checks again.
func (rt *runtime) warnOfMessages(ctx context.Context, diags *diag.Diagnostics, vhost string, queues []string, deleteNonEmpty bool, fate string) {
	admin, err := rt.admin()
	if err != nil {
		return
	}
	depths, err := admin.DepthsNow(ctx, vhost, queues)
	if err != nil {
		return
	}
	var holding []string
	for _, d := range depths {
		if d.Exists && d.Known && d.Total > 0 {
			holding = append(holding, fmt.Sprintf("%q holds %d (%d ready, %d unacknowledged)", d.Queue, d.Total, d.Ready, d.Unacknowledged))
		}
	}
	if len(holding) == 0 {
		return
	}
	consequence := "Apply will refuse while they are there: drain or move them first, or set delete_non_empty = true to lose them."
	if deleteNonEmpty {
		consequence = "delete_non_empty is true: they will be lost."
	}
	diags.AddWarning("Messages in a queue that is to be "+fate,
		fmt.Sprintf("In vhost %q the queue %s messages. %s", vhost, strings.Join(holding, ", "), consequence))
}

// mirrorRoutes reads which of a resource's exchanges and bindings exist. An
// exchange of another kind shows as what it is.
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
		if missing, _ := topology.DiffBindings([]topology.Binding{b}, live); len(missing) == 0 {
			bindings = append(bindings, b)
		}
	}
	return exchanges, bindings, nil
}

// repairRoutes declares a resource's exchanges and bindings that are missing.
func (rt *runtime) repairRoutes(ctx context.Context, vhost string, objects topology.Objects) error {
	admin, err := rt.admin()
	if err != nil {
		return err
	}
	for _, e := range objects.Exchanges {
		if _, err := rt.ensureExchange(ctx, admin, vhost, e); err != nil {
			return err
		}
	}
	for _, b := range objects.Bindings {
		if err := rt.bind(ctx, admin, vhost, b, objects.Exchanges); err != nil {
			return err
		}
	}
	return nil
}

// passedKey is where a plan leaves delete_non_empty (delete_in_use of an exchange) for the Delete of a
// replacement, which sees the state from before the plan only.
const passedKey = "delete_anyway"

// privateState is the part of the framework's private state that is used here.
type privateState interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func passToDelete(ctx context.Context, private privateState, value types.Bool, diags *diag.Diagnostics) {
	text := "false"
	if value.ValueBool() {
		text = "true"
	}
	diags.Append(private.SetKey(ctx, passedKey, []byte(text))...)
}

// deleteAnyway is what the configuration that led to a Delete said.
func deleteAnyway(ctx context.Context, private privateState, state types.Bool) bool {
	passed, _ := private.GetKey(ctx, passedKey)
	switch string(passed) {
	case "true":
		return true
	case "false":
		return false
	default:
		return state.ValueBool()
	}
}

// clearPassed makes a refused Delete forget what its plan passed.
func clearPassed(ctx context.Context, private privateState, diags *diag.Diagnostics) {
	diags.Append(private.SetKey(ctx, passedKey, []byte("null"))...)
}

// plannedVHost is the vhost of a resource outside a topic: configured, or the provider's, or, while that is not known,
// the state's.
func (rt *runtime) plannedVHost(config, state types.String) types.String {
	id, known := rt.identity(types.StringValue(""), config, types.StringValue(string(topology.Redeliver)), types.StringNull(), state)
	if !known {
		return types.StringUnknown()
	}
	return types.StringValue(id.VHost)
}

// changedPaths are the attributes whose values differ between state and plan.
func changedPaths(values map[string][2]attr.Value) path.Paths {
	var changed path.Paths
	for name, pair := range values {
		if !pair[0].Equal(pair[1]) {
			changed = append(changed, path.Root(name))
		}
	}
	return changed
}
