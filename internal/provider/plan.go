package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// planModels reads what a plan is about. plan is nil where the resource is to be destroyed, state where there is none.
func planModels[T any](ctx context.Context, req resource.ModifyPlanRequest, diags *diag.Diagnostics) (config, plan, state *T) {
	read := func(isNull bool, get func(context.Context, any) diag.Diagnostics) *T {
		if isNull {
			return nil
		}
		model := new(T)
		diags.Append(get(ctx, model)...)
		return model
	}
	return read(req.Config.Raw.IsNull(), req.Config.Get), read(req.Plan.Raw.IsNull(), req.Plan.Get), read(req.State.Raw.IsNull(), req.State.Get)
}

// planIdentity fills in the identity of a part of a topic, as m has it from the configuration, passes delete_non_empty
// on to Delete, and asks for a replacement where the part becomes another one.
func (rt *runtime) planIdentity(ctx context.Context, m, state *partModel, resp *resource.ModifyPlanResponse) (known bool) {
	rt.refuseUnconfigured(&resp.Diagnostics)
	passToDelete(ctx, resp.Private, m.DeleteNonEmpty, &resp.Diagnostics)
	known = m.resolve(rt, state)
	if state != nil {
		replaceChanged(resp, map[string][2]attr.Value{
			"vhost": {state.VHost, m.VHost}, "convention": {state.Convention, m.Convention}, "consumer_group": {state.ConsumerGroup, m.ConsumerGroup},
		})
	}
	return known
}

// replaceChanged asks for a replacement where an attribute is not, or may turn out not to be, what the state has.
func replaceChanged(resp *resource.ModifyPlanResponse, values map[string][2]attr.Value) {
	for name, pair := range values {
		if !pair[0].Equal(pair[1]) {
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root(name))
		}
	}
}

// replaceUnknown asks for a replacement of an existing queue where its arguments depend on something that is not known
// yet. They may turn out to be the same, but an apply can do no more than its plan said. The command line marks no
// dynamic attribute as the reason, so that the arguments are named too.
func replaceUnknown(resp *resource.ModifyPlanResponse, values map[string]attr.Value) {
	for name, value := range values {
		if !fullyKnown(value) {
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root(name), path.Root("arguments"))
		}
	}
}

// planQueue plans the arguments of a resource's only queue. have is what the state has, null where there is no queue
// to compare with. Every difference replaces the queue, because RabbitMQ cannot change an argument.
//
// What a migration does instead of a replacement [runtime.planMigration] says.
func planQueue(ctx context.Context, queue topology.Queue, have types.Map, ignore types.Set, migrates bool, resp *resource.ModifyPlanResponse) types.Map {
	shown := mapOf(ctx, have)
	differences := queueDifferences(queue, shown, stringsOf(ctx, ignore))
	for _, d := range differences {
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("arguments").AtMapKey(d.Key))
	}
	if len(differences) > 0 && !migrates {
		resp.Diagnostics.AddAttributeWarning(path.Root("arguments"), fmt.Sprintf("Queue %q differs from the configuration", queue.Name),
			fmt.Sprintf("Queue %q has to be replaced, because RabbitMQ cannot change a queue's arguments:\n%s\n"+
				"It is replaced only while it is empty, unless delete_non_empty is true. Its bindings are away from the look whether it is empty until it is made again, a second or two, and about eight without amqp_endpoints: "+
				"what is published meanwhile is not routed to it. ignore_arguments accepts a difference.", queue.Name, describeQueue(queue, differences)))
	}
	return stringMap(plannedArguments(queue.Arguments, shown, differences))
}

// planShards plans the arguments of the shards of a sequenced topic, of which the state has some. A difference replaces
// all of them, since keys move while a shard is away; one that is missing is made again in place.
func planShards(ctx context.Context, queues []topology.Queue, have map[string]map[string]string, ignore types.Set, resp *resource.ModifyPlanResponse) types.Map {
	planned := map[string]map[string]string{}
	var differ []string
	for _, q := range queues {
		differences := queueDifferences(q, have[q.Name], stringsOf(ctx, ignore))
		planned[q.Name] = plannedArguments(q.Arguments, have[q.Name], differences)
		for _, d := range differences {
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root("shard_arguments").AtMapKey(q.Name).AtMapKey(d.Key))
		}
		if len(differences) > 0 {
			differ = append(differ, fmt.Sprintf("%q:\n%s", q.Name, describeQueue(q, differences)))
		}
	}
	if len(differ) > 0 {
		resp.Diagnostics.AddAttributeWarning(path.Root("shard_arguments"), fmt.Sprintf("Shards such as %q differ from the configuration", queues[0].Name),
			"All shards have to be replaced, because RabbitMQ cannot change a queue's arguments and the keys of a shard that is away go to another:\n"+strings.Join(differ, "\n")+
				"\nThey are replaced only while all of them are empty, unless delete_non_empty is true. What is published meanwhile is not routed to them. ignore_arguments accepts a difference.")
	}
	return argumentsMap(planned)
}

// lacking says what a broker lacks that a topic needs, and which attribute asks for it.
func lacking(broker rabbitmqadmin.Broker, spec topology.Spec) (at path.Path, err error) {
	if err := spec.CheckVersion(broker.Version); err != nil {
		return path.Root("retry").AtName("strategy"), err
	}
	return path.Root("sequence_shards"), spec.CheckExchangeTypes(broker.ExchangeTypes)
}

// warnOfMessages says how many messages a destroy or a replacement meets, what could not be counted, and what will happen.
// Apply checks again.
func (rt *runtime) warnOfMessages(ctx context.Context, diags *diag.Diagnostics, vhost string, queues []string, deleteNonEmpty bool, fate string) {
	consequence := "Apply will refuse while they are there: drain or move them first, or set delete_non_empty = true (and apply it, before a destroy) to lose them."
	if deleteNonEmpty {
		consequence = "delete_non_empty is true: they will be lost."
	}
	rt.warnOf(diags, vhost, rt.count(ctx, vhost, queues, diags), "This is to be "+fate+". "+consequence)
}

// warnOf says which queues hold messages or may hold some. A queue is in the summary because the command line shows only the
// first of several warnings of one summary.
func (*runtime) warnOf(diags *diag.Diagnostics, vhost string, depths []rabbitmqadmin.Depth, consequence string) {
	var holding, unknown []rabbitmqadmin.Depth
	for _, d := range depths {
		if d.Known {
			holding = append(holding, d)
		} else {
			unknown = append(unknown, d)
		}
	}
	if len(holding) > 0 {
		diags.AddWarning(fmt.Sprintf("Queue %q holds messages", holding[0].Queue), fmt.Sprintf("In vhost %q %s. %s", vhost, listDepths(holding), consequence))
	}
	if len(unknown) > 0 {
		diags.AddWarning(fmt.Sprintf("Queue %q may hold messages", unknown[0].Queue), fmt.Sprintf("In vhost %q %s: the broker has no counts where a queue was made some seconds ago, or the node that leads it is down. %s",
			vhost, listDepths(unknown), consequence))
	}
}

func listDepths(depths []rabbitmqadmin.Depth) string {
	texts := make([]string, len(depths))
	for i, d := range depths {
		texts[i] = d.String()
	}
	return strings.Join(texts, ", ")
}

// holding are the queues that hold messages or may hold some, as far as the broker can be asked.
func (rt *runtime) holding(ctx context.Context, vhost string, queues []string) []rabbitmqadmin.Depth {
	return rt.count(ctx, vhost, queues, &diag.Diagnostics{})
}

// count is holding that says why the broker could not be asked.
func (rt *runtime) count(ctx context.Context, vhost string, queues []string, diags *diag.Diagnostics) []rabbitmqadmin.Depth {
	if len(queues) == 0 || rt.applying.Load() {
		return nil
	}
	view, err := rt.view()
	var depths []rabbitmqadmin.Depth
	if err == nil {
		depths, err = view.Depths(ctx, vhost, queues)
	}
	if err != nil {
		rt.sayUnchecked(diags, err)
		return nil
	}
	return slices.DeleteFunc(depths, func(d rabbitmqadmin.Depth) bool { return !d.Exists || d.Known && d.Total == 0 })
}

// warnOfPointing says which queues still dead-letter to one that is to be replaced. They may be replaced in the same
// run, which a plan of one resource cannot know.
func (rt *runtime) warnOfPointing(ctx context.Context, diags *diag.Diagnostics, vhost, queue string, deleteNonEmpty bool) {
	view, err := rt.view()
	if err != nil || deleteNonEmpty || rt.applying.Load() {
		return
	}
	by, err := view.PointingAt(ctx, vhost, queue)
	if err != nil || len(by) == 0 {
		return
	}
	diags.AddWarning(fmt.Sprintf("Queue %q is to be replaced and is still pointed at", queue),
		fmt.Sprintf("In vhost %q these queues dead-letter to %q: %q. Apply will refuse to delete it, because what they dead-letter meanwhile would be lost, "+
			"unless they are destroyed or replaced in the same run (terraform apply -replace=ADDRESS names further resources). "+
			"To replace it under them, stop their consumers and set delete_non_empty = true.", vhost, queue, by))
}

// isSecondPlan reports whether what is planned without a state is the create of a replacement: the private state of what
// it replaces is still there.
func isSecondPlan(ctx context.Context, private privateState) bool {
	passed, _ := private.GetKey(ctx, passedKey)
	return len(passed) > 0
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

// addRefusal adds the error of a Delete, and what a refusal of it takes.
func addRefusal(diags *diag.Diagnostics, summary string, err error) {
	var notEmpty *rabbitmqadmin.NotEmptyError
	var pointedAt *rabbitmqadmin.PointedAtError
	if errors.As(err, &pointedAt) {
		err = fmt.Errorf("%w.\nWhere the queues that point at it are topics of this configuration, replace them in the same run, which destroys them first: "+
			"terraform apply -replace=%s.NAME", err, topicTypeName)
	}
	if errors.As(err, &notEmpty) || errors.As(err, &pointedAt) {
		err = fmt.Errorf("%w.\ndelete_non_empty = true lets it through, with the loss: in the same apply where the resource is replaced; "+
			"where it is destroyed, after an apply of its own (terraform apply -target=ADDRESS, then destroy again)", err)
	}
	addError(diags, summary, err)
}
