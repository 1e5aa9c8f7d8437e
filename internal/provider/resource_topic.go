package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const topicTypeName = TypeName + "_rabbitmq_topic"

// The warnings that a topic's acknowledge_warnings accepts.
const (
	// warningForeignDeadEnd: the topic is meant to share another topic's dead-letter or parked queue.
	warningForeignDeadEnd = "foreign_dead_end"
	// warningUnusedParkedQueue: the parked queue is for applications that publish what they park; consumers in place do not.
	warningUnusedParkedQueue = "unused_parked_queue"
)

type topicResource struct{ configured }

var (
	_ resource.ResourceWithConfigure   = (*topicResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*topicResource)(nil)
	_ resource.ResourceWithImportState = (*topicResource)(nil)

	_ resource.ResourceWithValidateConfig = (*topicResource)(nil)
)

func newTopicResource() resource.Resource { return &topicResource{} }

func (*topicResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = topicTypeName
}

func (r *topicResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.configure(req.ProviderData, &resp.Diagnostics)
}

// ValidateConfig refuses what is wrong whatever the provider's defaults are.
func (r *topicResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config topicModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &config)...); !resp.Diagnostics.HasError() {
		config.refuseDelaysTwice(&resp.Diagnostics)
	}
}

// refuseDelaysTwice refuses delays beside a ladder, as far as both are known.
func (m *topicModel) refuseDelaysTwice(diags *diag.Diagnostics) {
	if m.HoldQueues.IsNull() || m.HoldQueues.IsUnknown() || m.Retry.IsNull() || m.Retry.IsUnknown() {
		return
	}
	if !m.Retry.Attributes()["delays"].IsNull() {
		diags.AddAttributeError(path.Root("retry").AtName("delays"), "Delays are given twice",
			"The topic has hold_queues, and their delays are the topic's: leave retry.delays out, or hold_queues.")
	}
}

func (r *topicResource) importID(m *topicModel) string {
	return importID{segments: []string{m.VHost.ValueString(), m.Name.ValueString()}, params: m.params()}.String()
}

func (r *topicResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	config, plan, state := planModels[topicModel](ctx, req, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan == nil {
		r.rt.warnOfMessages(ctx, &resp.Diagnostics, state.VHost.ValueString(), topicQueues(ctx, state), state.DeleteNonEmpty.ValueBool(), "destroyed")
		return
	}
	// Everything computed is computed anew from the configuration, so that removing an attribute unsets it.
	plan.VHost, plan.Convention, plan.ConsumerGroup = config.VHost, config.Convention, config.ConsumerGroup
	plan.takeConfigured(config)
	plan.refuseDelaysTwice(&resp.Diagnostics)
	var before *partModel
	if state != nil {
		before = &state.partModel
		replaceChanged(resp, map[string][2]attr.Value{"name": {state.Name, plan.Name}, "sequence_shards": {state.SequenceShards, plan.SequenceShards}})
	}
	known := r.rt.planIdentity(ctx, &plan.partModel, before, resp)
	spec, specKnown := plan.spec(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if !known || !specKnown || plan.Name.IsUnknown() {
		arguments, shards := r.planArguments(ctx, plan, state, resp)
		if resp.Diagnostics.HasError() {
			return
		}
		plan.unknown(ctx)
		plan.Arguments, plan.ShardArguments = arguments, shards
	} else {
		objects, ok := r.fill(ctx, plan, spec, &resp.Diagnostics)
		if !ok {
			return
		}
		if admin, err := r.rt.asker(); err == nil && !check(ctx, admin, spec, false, &resp.Diagnostics) {
			return
		}
		plan.warn(ctx, spec, &resp.Diagnostics)
		plan.Arguments, plan.ShardArguments = planWorkQueues(ctx, plan, state, objects.Queues, resp)
	}
	if state != nil && len(resp.RequiresReplace) > 0 {
		r.rt.warnOfMessages(ctx, &resp.Diagnostics, state.VHost.ValueString(), topicQueues(ctx, state), plan.DeleteNonEmpty.ValueBool(), "replaced")
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// planWorkQueues plans the arguments of the work queue or of the shards, compared with what the state has of them.
func planWorkQueues(ctx context.Context, plan, state *topicModel, queues []topology.Queue, resp *resource.ModifyPlanResponse) (arguments, shards types.Map) {
	compared := state != nil && len(resp.RequiresReplace) == 0
	if plan.SequenceShards.ValueInt64() == 0 {
		have := types.MapNull(types.StringType)
		if compared {
			have = state.Arguments
		}
		return planQueue(ctx, queues[0], have, plan.IgnoreArguments, resp), types.MapNull(queueArgumentsType)
	}
	have := map[string]map[string]string{}
	if compared {
		have = state.shown(ctx)
	}
	return stringMap(nil), planShards(ctx, queues, have, plan.IgnoreArguments, resp)
}

// planArguments plans the arguments of the work queue or of the shards while something else of the topic is not known
// yet. They are unknown only where they depend on it, and then an existing queue is replaced.
func (r *topicResource) planArguments(ctx context.Context, plan, state *topicModel, resp *resource.ModifyPlanResponse) (arguments, shards types.Map) {
	unknown, unknownShards := types.MapUnknown(types.StringType), types.MapUnknown(queueArgumentsType)
	spec, known := plan.queueSpec(ctx, &resp.Diagnostics)
	if !known {
		if state != nil {
			depends := map[string]attr.Value{
				"extra_arguments": plan.ExtraArguments, "queue_type": plan.QueueType, "dead_letter_queue": plan.DeadLetterQueue,
				"delivery_limit": plan.DeliveryLimit, "max_priority": plan.MaxPriority, "sequenced": plan.Sequenced, "sequence_shards": plan.SequenceShards,
			}
			if plan.retryDecides(ctx) {
				depends["retry"] = types.ObjectUnknown(retryAttrTypes)
			}
			replaceUnknown(resp, depends)
		}
		return unknown, unknownShards
	}
	objects, err := spec.BuildWorkQueue()
	if err != nil {
		addError(&resp.Diagnostics, "Invalid topic", err)
		return unknown, unknownShards
	}
	return planWorkQueues(ctx, plan, state, objects.Queues, resp)
}

// topicQueues are the queues whose messages a destroyed topic strands: its own and its ladder's.
func topicQueues(ctx context.Context, m *topicModel) []string {
	queues := m.workQueues()
	for _, ref := range m.holdRefs(ctx) {
		queues = append(queues, ref.Name.ValueString())
	}
	return queues
}

// fill sets the computed attributes that follow from the configuration alone, and returns what the topic owns.
func (r *topicResource) fill(ctx context.Context, m *topicModel, spec topology.Spec, diags *diag.Diagnostics) (topology.Objects, bool) {
	objects, err := spec.BuildWorkQueue()
	if err != nil {
		addError(diags, "Invalid topic", err)
		return objects, false
	}
	manifest, err := spec.Manifest()
	if err != nil {
		addError(diags, "Invalid topic", err)
		return objects, false
	}
	m.ID = types.StringValue(r.importID(m))
	m.QueueType = types.StringValue(string(objects.Queues[0].Type))
	m.Park = types.StringValue(string(manifest.Park))
	m.Exchanges = stringSet(exchangeNames(objects.Exchanges))
	home, err := m.home()
	if err != nil {
		addError(diags, "Invalid topic", err)
		return objects, false
	}
	m.HomeBindings = homeBindings(home, home)
	m.Manifest = types.StringValue(string(manifest.Encode()))
	m.Retry = m.retryWith(ctx, manifest.Retry, diags)
	return objects, !diags.HasError()
}

// finish computes, with everything known, what a plan may have left unknown.
func (r *topicResource) finish(ctx context.Context, plan, config *topicModel, diags *diag.Diagnostics) (topology.Objects, bool) {
	arguments, shards := plan.Arguments, plan.ShardArguments
	plan.takeConfigured(config)
	if !plan.settle(r.rt) {
		addError(diags, "Could not apply the topic", errUnknown)
		return topology.Objects{}, false
	}
	spec, _ := plan.spec(ctx, diags)
	admin, err := r.rt.admin()
	if addError(diags, "Could not apply the topic", err); diags.HasError() {
		return topology.Objects{}, false
	}
	objects, ok := r.fill(ctx, plan, spec, diags)
	if !ok || !check(ctx, admin, spec, true, diags) {
		return objects, false
	}
	computed := map[string]map[string]string{}
	for _, q := range objects.Queues {
		computed[q.Name] = q.Arguments.Canonical()
	}
	plan.show(computed)
	if !arguments.IsUnknown() {
		plan.Arguments = arguments
	}
	if !shards.IsUnknown() {
		plan.ShardArguments = shards
	}
	return objects, true
}

// check refuses what the broker cannot carry. A plan can do without its answer; an apply, which asks again before
// anything is made, must have it.
func check(ctx context.Context, admin *rabbitmqadmin.Client, spec topology.Spec, must bool, diags *diag.Diagnostics) bool {
	broker, err := admin.Ping(ctx)
	if err != nil {
		if must {
			addError(diags, "Could not ask the broker what it can carry", err)
		}
		return !must
	}
	at, err := lacking(broker, spec)
	if err != nil {
		diags.AddAttributeError(at, "The broker cannot carry the topic", sentence(err))
	}
	return err == nil
}

func (r *topicResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, config topicModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	objects, ok := r.finish(ctx, &plan, &config, &resp.Diagnostics)
	if !ok {
		return
	}
	if err := r.checkDeadEnds(ctx, plan.Manifest.ValueString()); err != nil {
		addError(&resp.Diagnostics, "Could not create the topic", err)
		return
	}
	left, err := r.rt.create(ctx, r.createRequest(ctx, &plan, objects, &resp.Diagnostics))
	addError(&resp.Diagnostics, "Could not create the topic", err)
	if err == nil || len(left) > 0 {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

func (r *topicResource) createRequest(ctx context.Context, plan *topicModel, objects topology.Objects, diags *diag.Diagnostics) createRequest {
	return createRequest{
		vhost: plan.VHost.ValueString(), objects: objects, adopt: plan.AdoptExisting.ValueBool(), ignore: stringsOf(ctx, plan.IgnoreArguments),
		resourceType: topicTypeName, importID: plan.ID.ValueString(), diags: diags,
	}
}

// checkDeadEnds refuses a topic whose dead-letter or parked queue cannot be reached by the topic's own route: what is
// sent there would wait unseen in the work queue. A queue's own resource binds it to the exchange of its topic.
func (r *topicResource) checkDeadEnds(ctx context.Context, manifest string) error {
	m, err := topology.DecodeManifest([]byte(manifest))
	if err != nil {
		return err
	}
	admin, err := r.rt.admin()
	if err != nil {
		return err
	}
	for _, target := range []*topology.ManifestTarget{m.DeadLetter, m.Parked} {
		if target == nil || target.Exchange == "" {
			continue
		}
		reached, err := awaitRoute(ctx, admin, m.VHost, target)
		if err != nil {
			return err
		}
		if !reached {
			return fmt.Errorf("queue %q in vhost %q does not exist or is not bound to exchange %q with its name as the key, so that what topic %q sends there would be stranded; nothing was changed. "+
				"Take the name from the resource of the queue, whose topic is %q, so that it comes first; or bind another topic's queue with a redeliver_rabbitmq_binding",
				target.Name, m.VHost, target.Exchange, m.Topic, m.Topic)
		}
	}
	return nil
}

// routeWait is how long a topic waits for a dead end that the same apply makes at the same time, because the
// configuration spells its name instead of referring to it.
const routeWait = 10 * time.Second

// awaitRoute reports whether a dead end is bound to where the topic sends to it.
func awaitRoute(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, target *topology.ManifestTarget) (bool, error) {
	route := []topology.Binding{{Source: target.Exchange, Destination: target.Name, DestinationType: topology.BindingToQueue, RoutingKey: target.RoutingKey}}
	for deadline := time.Now().Add(routeWait); ; {
		found, err := admin.QueueBindings(ctx, vhost, target.Name)
		if err != nil && !errors.Is(err, rabbitmqadmin.ErrNotFound) {
			return false, err
		}
		if missing, _ := topology.DiffBindings(route, found); len(missing) == 0 {
			return true, nil
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func (r *topicResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state topicModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	admin, ok := r.rt.reader(&resp.Diagnostics)
	if !ok {
		return
	}
	vhost, imported := state.VHost.ValueString(), state.Arguments.IsNull()
	if imported {
		err := r.recogniseShards(ctx, admin, &state)
		if addError(&resp.Diagnostics, "Could not import the topic", err); err != nil {
			return
		}
	}
	shown, err := readArguments(ctx, admin, vhost, state.workQueues())
	if addError(&resp.Diagnostics, "Could not read the topic", err); err != nil {
		return
	}
	if len(shown) == 0 {
		resp.State.RemoveResource(ctx)
		return
	}
	if imported {
		err := r.recognise(ctx, admin, &state, shown)
		if addError(&resp.Diagnostics, "Could not import the topic", err); err != nil {
			return
		}
	}
	state.show(shown)
	objects, err := state.routes(ctx)
	if addError(&resp.Diagnostics, "Invalid topic", err); err != nil {
		return
	}
	exchanges, found, err := mirrorRoutes(ctx, admin, vhost, objects)
	if addError(&resp.Diagnostics, "Could not read the topic's routes", err); err != nil {
		return
	}
	if state.Manifest.IsNull() {
		// An imported topic may lack what only its configuration says, such as its delays: then the plan computes the rest.
		if spec, _ := state.spec(ctx, &resp.Diagnostics); spec.Validate() == nil {
			r.fill(ctx, &state, spec, &resp.Diagnostics)
		}
	}
	home, err := state.home()
	if addError(&resp.Diagnostics, "Invalid topic", err); err != nil {
		return
	}
	state.Exchanges, state.HomeBindings = stringSet(exchanges), homeBindings(home, found)
	if !state.Bindings.IsNull() {
		state.Bindings = bindingSet(present(state.bindings(ctx), found))
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// recogniseShards finds out whether a topic that is being imported has shards in the place of a queue of its own name.
func (r *topicResource) recogniseShards(ctx context.Context, admin *rabbitmqadmin.Client, state *topicModel) error {
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
func (r *topicResource) recognise(ctx context.Context, admin *rabbitmqadmin.Client, state *topicModel, shown map[string]map[string]string) error {
	vhost, id := state.VHost.ValueString(), state.identityOf(state.Name)
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
	// Arguments that the convention does not have by itself were asked for, by the attribute that stands for them.
	computed := objects.Queues[0].Arguments
	if limit, ok := live.Arguments[topology.ArgDeliveryLimit].(int64); ok && computed[topology.ArgDeliveryLimit] == nil && live.Type == topology.Quorum && limit > 0 {
		state.DeliveryLimit = types.Int64Value(limit)
	}
	if priority, ok := live.Arguments[topology.ArgMaxPriority].(int64); ok && computed[topology.ArgMaxPriority] != priority {
		state.MaxPriority = types.Int64Value(priority)
	}
	r.recogniseArguments(ctx, state, live.Arguments)
	if objects, err = state.routes(ctx); err != nil {
		return err
	}
	state.recogniseExtra(slices.DeleteFunc(objects.Queues, func(q topology.Queue) bool { return shown[q.Name] == nil }), shown)
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

func (r *topicResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state, config topicModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	objects, ok := r.finish(ctx, &plan, &config, &resp.Diagnostics)
	if !ok {
		return
	}
	vhost := plan.VHost.ValueString()
	err := r.makeMissing(ctx, &plan, objects, state.shown(ctx), &resp.Diagnostics)
	if err == nil {
		err = r.rt.repairRoutes(ctx, vhost, objects)
	}
	if err == nil {
		// Bindings are not authoritative: only those that this resource made and makes no more are removed.
		err = r.unbind(ctx, vhost, without(state.bindings(ctx), objects.Bindings))
	}
	if err != nil {
		addError(&resp.Diagnostics, "Could not update the topic", err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// makeMissing makes shards anew that the broker lacks while it has others. A work queue that is missing is a topic that is.
func (r *topicResource) makeMissing(ctx context.Context, plan *topicModel, objects topology.Objects, shown map[string]map[string]string, diags *diag.Diagnostics) error {
	objects.Queues = slices.DeleteFunc(slices.Clone(objects.Queues), func(q topology.Queue) bool { return shown[q.Name] != nil })
	if len(objects.Queues) == 0 {
		return nil
	}
	_, err := r.rt.create(ctx, r.createRequest(ctx, plan, objects, diags))
	return err
}

func (r *topicResource) unbind(ctx context.Context, vhost string, bindings []topology.Binding) error {
	admin, err := r.rt.admin()
	if err != nil {
		return err
	}
	for _, b := range bindings {
		if err := admin.Unbind(ctx, vhost, b); err != nil {
			return err
		}
	}
	return nil
}

func (r *topicResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state topicModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	objects, err := state.routes(ctx)
	if addError(&resp.Diagnostics, "Invalid topic", err); err != nil {
		return
	}
	err = r.rt.remove(ctx, rabbitmqadmin.SafeDelete{
		VHost: state.VHost.ValueString(), Queues: state.workQueues(), AlsoEmpty: topicQueues(ctx, &state)[len(state.workQueues()):],
		OwnBindings: objects.Bindings, DeleteNonEmpty: deleteAnyway(ctx, req.Private, state.DeleteNonEmpty),
	}, objects.Exchanges)
	if err != nil {
		addRefusal(&resp.Diagnostics, "Could not delete the topic", err)
		clearPassed(ctx, resp.Private, &resp.Diagnostics)
	}
}

func (r *topicResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	m := topicModel{
		partModel: nullPart(), HoldQueues: types.ListNull(holdRefType), Retry: types.ObjectNull(retryAttrTypes), Bindings: types.SetNull(bindingType),
		AllowMessageLoss: types.BoolValue(false), AcknowledgeWarnings: types.SetNull(types.StringType),
		Sequenced: types.BoolValue(false), Arguments: types.MapNull(types.StringType), ShardArguments: types.MapNull(queueArgumentsType),
		HomeBindings: types.SetNull(bindingType),
	}
	_, topic, err := m.importPart(req.ID)
	if addError(&resp.Diagnostics, "Invalid import id", err); err != nil {
		return
	}
	m.Name = topic
	m.ID = types.StringValue(r.importID(&m))
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// warn adds the topic's standing warnings that are not acknowledged.
func (m *topicModel) warn(ctx context.Context, spec topology.Spec, diags *diag.Diagnostics) {
	acknowledged := stringsOf(ctx, m.AcknowledgeWarnings)
	if spec.ParkedQueue != "" && m.Park.ValueString() == string(topology.ParkReject) && !slices.Contains(acknowledged, warningUnusedParkedQueue) {
		diags.AddAttributeWarning(path.Root("parked_queue"), "Nothing is parked",
			fmt.Sprintf("Topic %q has the parked queue %q, and under park = %q a consumer dead-letters what it cannot read. Set park = %q, which takes write permission on the route to it, "+
				"or leave parked_queue out. If other applications publish to it, say so with acknowledge_warnings = [%q].",
				spec.Topic, spec.ParkedQueue, topology.ParkReject, topology.ParkPublish, warningUnusedParkedQueue))
	}
	if slices.Contains(acknowledged, warningForeignDeadEnd) {
		return
	}
	for _, end := range []struct{ attribute, name string }{
		{"dead_letter_queue", spec.DeadLetterQueue}, {"parked_queue", spec.ParkedQueue},
	} {
		if other := spec.ForeignDeadEnd(end.name); other != "" {
			diags.AddAttributeWarning(path.Root(end.attribute), "The queue looks like another topic's",
				fmt.Sprintf("Topic %q sets its messages aside in %q, which looks like topic %q's. If that is meant, say so with acknowledge_warnings = [%q]. "+
					"The queue must then also be reachable through this topic's own route.", spec.Topic, end.name, other, warningForeignDeadEnd))
		}
	}
}
