package provider

import (
	"context"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func (r *topicResource) importID(m *topicModel) string {
	return importID{segments: []string{m.VHost.ValueString(), m.Name.ValueString()}, params: m.params()}.String()
}

// recogniseShards finds out whether a topic that is being imported has shards in the place of a queue of its own name.
func (r *topicResource) recogniseShards(ctx context.Context, admin broker, state *topicModel) error {
	id := state.identityOf(state.Name)
	if id.SequenceExchangeName() == "" {
		return nil
	}
	queues, err := liveQueues(ctx, admin, state.VHost.ValueString())
	if err != nil {
		return err
	}
	own := slices.ContainsFunc(queues, func(q topology.Queue) bool { return q.Name == id.WorkQueueName() })
	if shards := id.RecogniseShards(queues); shards > 0 && !own {
		state.Sequenced, state.SequenceShards = types.BoolValue(true), types.Int64Value(int64(shards))
	}
	return nil
}

// recognise fills in what the broker tells about a topic that is being imported. shown are its work queue or its shards.
func (r *topicResource) recognise(ctx context.Context, admin broker, state *topicModel, shown map[string]map[string]string) error {
	vhost, id := state.VHost.ValueString(), state.identityOf(state.Name)
	shown, copied, err := state.recogniseVia(ctx, admin, shown)
	if err != nil {
		return err
	}
	first := slices.Sorted(maps.Keys(shown))[0]
	live := mirrored(first, shown[first])
	if slices.Contains(id.Convention.QueueTypes(), live.Type) {
		state.QueueType = types.StringValue(string(live.Type)) // a type that the convention cannot have shows as drift
	}
	if key, ok := live.Arguments[topology.ArgDeadLetterKey].(string); ok && key != "" {
		state.DeadLetterQueue = types.StringValue(key)
	}
	queues, err := liveQueues(ctx, admin, vhost)
	if err != nil {
		return err
	}
	for _, q := range queues {
		switch {
		case q.Name == id.ParkedQueueName():
			state.ParkedQueue = types.StringValue(q.Name)
		case q.Name == id.DeadLetterQueueName() && state.DeadLetterQueue.IsNull():
			state.DeadLetterQueue = types.StringValue(q.Name)
		}
	}
	if refs, _ := id.RecogniseLadder(queues); len(refs) > 0 {
		state.HoldQueues = holdRefList(refs)
	}
	home, err := state.home()
	if err != nil {
		return err
	}
	entry := topology.Binding{Destination: live.Name, DestinationType: topology.BindingToQueue}
	if state.SequenceShards.ValueInt64() > 0 {
		entry = topology.Binding{Destination: id.SequenceExchangeName(), DestinationType: topology.BindingToExchange}
	}
	bindings, err := bindingsBeside(ctx, admin, vhost, entry)
	if err != nil {
		return err
	}
	// The resource's bindings have no arguments; one that has some belongs to a binding resource.
	own := slices.DeleteFunc(without(bindings, home), func(b topology.Binding) bool { return len(b.Arguments) > 0 })
	if len(own) > 0 {
		state.Bindings = bindingSet(own)
	}
	objects, err := state.routes(ctx)
	if err != nil {
		return err
	}
	// Arguments that the convention does not have by itself, or has otherwise, were asked for, by the attribute that stands for them.
	computed := objects.Queues[0].Arguments
	if limit, ok := live.Arguments[topology.ArgDeliveryLimit].(int64); ok && computed[topology.ArgDeliveryLimit] != limit && live.Type == topology.Quorum && limit > 0 {
		state.DeliveryLimit = types.Int64Value(limit)
	}
	if priority, ok := live.Arguments[topology.ArgMaxPriority].(int64); ok && computed[topology.ArgMaxPriority] != priority {
		state.MaxPriority = types.Int64Value(priority)
	}
	r.recogniseArguments(ctx, state, live.Arguments)
	if objects, err = state.routes(ctx); err != nil {
		return err
	}
	state.recogniseExtra(slices.DeleteFunc(objects.Queues, func(q topology.Queue) bool { return shown[q.Name] == nil }), shown, copied)
	state.recogniseRetry(ctx)
	return nil
}

// recogniseArguments fills in what only arguments tell, where the topic can have it: that it keeps an order, and that
// the broker delays its retries.
func (r *topicResource) recogniseArguments(ctx context.Context, state *topicModel, live topology.Arguments) {
	try := func(change func(*topicModel)) {
		tried := *state
		if change(&tried); tried.buildable(ctx) {
			*state = tried
		}
	}
	if live[topology.ArgSingleActiveConsumer] == true {
		try(func(m *topicModel) { m.Sequenced = types.BoolValue(true) })
	}
	shortest, hasMin := live[topology.ArgDelayedRetryMin].(int64)
	longest, hasMax := live[topology.ArgDelayedRetryMax].(int64)
	if live[topology.ArgDelayedRetryType] == "all" && hasMin && hasMax && shortest > 0 {
		try(func(m *topicModel) { m.Retry = brokerDelayed(shortest, longest) })
	}
}

func (r *topicResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	defer topicForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	if !r.canImport(&resp.Diagnostics) {
		return
	}
	m := topicModel{
		partModel: nullPart(), migrateModel: nullMigrate(), HoldQueues: types.ListNull(holdRefType), Retry: types.ObjectNull(retryAttrTypes), Bindings: types.SetNull(bindingType),
		AllowMessageLoss: types.BoolValue(false), AcknowledgeWarnings: types.SetNull(types.StringType),
		Sequenced: types.BoolValue(false), Arguments: types.MapNull(types.StringType), ShardArguments: types.MapNull(queueArgumentsType),
		Policy: types.MapNull(types.StringType), ShardPolicies: types.MapNull(queueArgumentsType),
		HomeBindings: types.SetNull(bindingType),
	}
	_, topic, err := m.importPart(topicForm.importText(ctx, req, &resp.Diagnostics))
	if addError(&resp.Diagnostics, "Invalid import id", err); err != nil {
		return
	}
	m.Name = topic
	m.ID = types.StringValue(r.importID(&m))
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
