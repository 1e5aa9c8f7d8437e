package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const ladderTypeName = TypeName + "_rabbitmq_hold_ladder"

// defaultLadderTimeout bounds a change of a ladder beyond the delays it has to wait out.
const defaultLadderTimeout = 10 * time.Minute

type holdLadderResource struct{ configured }

var (
	_ resource.ResourceWithConfigure   = (*holdLadderResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*holdLadderResource)(nil)
	_ resource.ResourceWithImportState = (*holdLadderResource)(nil)
)

func newHoldLadderResource() resource.Resource { return &holdLadderResource{} }

func (*holdLadderResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = ladderTypeName
}

func (*holdLadderResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The hold queues of a topic, shortest delay first. Nobody consumes them: a message that is published to one comes home to the work queue after its delay. " +
			"A ladder changes tier by tier, in place: a removed tier is waited out before it is deleted.",
		Attributes: partAttributes("the hold queues", "VHOST/TOPIC?convention=...&consumer_group=...", map[string]schema.Attribute{
			"topic": schema.StringAttribute{
				Required: true, Validators: nameOf("topic"),
				MarkdownDescription: "The topic's name. Changing it replaces the ladder.",
			},
			"delays": schema.ListAttribute{
				Required: true, ElementType: types.StringType,
				Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.ValueStringsAre(duration)},
				MarkdownDescription: "The tiers' delays, shortest first, such as `[\"5s\", \"30s\", \"2m\"]`.",
			},
			"jitter_shards": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.Between(1, 100)},
				MarkdownDescription: "Split every tier into so many hold queues with staggered delays, so that messages that failed together do not return together (`redeliver` and `rabbitkit`). Not split by default.",
			},
			"jitter_factor": schema.Float64Attribute{
				Optional: true, Validators: []validator.Float64{float64validator.Between(0, 1)},
				MarkdownDescription: "How far the delays of shards spread around the tier's delay: above 0 and below 1. Goes with `jitter_shards`.",
			},
			"sequence_shards": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.Between(1, topology.MaxSequenceShards)},
				MarkdownDescription: "The topic's `sequence_shards`, where it has them (`shove`): every tier has a hold queue for each shard, from which messages go home to it. The Go library needs none of them; applications of the convention do.",
			},
			"queues": schema.ListNestedAttribute{
				Computed: true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"delay": schema.StringAttribute{Computed: true, MarkdownDescription: "How long the queue holds a message."},
					"name":  schema.StringAttribute{Computed: true, MarkdownDescription: "The queue's name."},
					"shard": schema.Int64Attribute{Computed: true, MarkdownDescription: "The sub-queue's number where the tier is split, or the shard that it belongs to, else 0."},
				}},
				MarkdownDescription: "The hold queues, to hand over to the topic's `hold_queues`.",
			},
			"acknowledge_warnings": warningsAttribute(warningPolicy, warningDefaultType),
			"arguments": schema.MapAttribute{
				Computed: true, ElementType: queueArgumentsType,
				MarkdownDescription: "Every argument of every hold queue as canonical JSON, by queue and name. RabbitMQ cannot change a queue's arguments: " +
					"a hold queue that differs is deleted, if it is empty, and made again. One that is missing on the broker is missing here.",
			},
			"policies": policiesAttribute("hold queue"),
			"bindings": schema.SetNestedAttribute{
				Computed: true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"exchange":    schema.StringAttribute{Computed: true, MarkdownDescription: "The exchange."},
					"routing_key": schema.StringAttribute{Computed: true, MarkdownDescription: "The routing key, which is the hold queue's name."},
				}},
				MarkdownDescription: "The bindings that lead messages to the hold queues. One that is missing on the broker shows as drift.",
			},
			"timeouts": ladderTimeouts(ctx),
		}),
	}
}

func ladderTimeouts(ctx context.Context) schema.Attribute {
	attribute := timeouts.Attributes(ctx, timeouts.Opts{
		Update: true, UpdateDescription: "How long an update may take, which includes waiting out removed tiers. Defaults to the longest removed delay and ten minutes.",
	})
	if nested, ok := attribute.(schema.SingleNestedAttribute); ok {
		nested.MarkdownDescription = "How long operations may take, as durations such as `30m`."
		return nested
	}
	return attribute
}

func (r *holdLadderResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.configure(req.ProviderData, &resp.Diagnostics)
}

// objects computes what the resource owns.
func (r *holdLadderResource) objects(ctx context.Context, m *holdLadderModel, extra topology.Arguments) (topology.Objects, error) {
	delays, _, err := durations(ctx, m.Delays)
	if err != nil {
		return topology.Objects{}, err
	}
	return topology.Spec{
		Identity: m.identityOf(m.Topic), HoldDelays: delays,
		JitterShards: int(m.JitterShards.ValueInt64()), JitterFactor: m.JitterFactor.ValueFloat64(), SequenceShards: int(m.SequenceShards.ValueInt64()),
		Extra: map[topology.Role]topology.Arguments{topology.RoleHold: extra},
	}.BuildLadder()
}

func (r *holdLadderResource) importID(m *holdLadderModel) string {
	return importID{segments: []string{m.VHost.ValueString(), m.Topic.ValueString()}, params: m.params()}.String()
}

func (r *holdLadderResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	config, plan, state := planModels[holdLadderModel](ctx, req, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan == nil {
		r.rt.warnOfMessages(ctx, &resp.Diagnostics, state.VHost.ValueString(), ownedQueues(state), state.DeleteNonEmpty.ValueBool(), "destroyed")
		return
	}
	plan.VHost, plan.Convention, plan.ConsumerGroup = config.VHost, config.Convention, config.ConsumerGroup
	var before *partModel
	replacing := state == nil && isSecondPlan(ctx, req.Private)
	if state != nil {
		before = &state.partModel
		replaceChanged(resp, map[string][2]attr.Value{"topic": {state.Topic, plan.Topic}})
	}
	plan.planVia(&config.partModel, before, defaultVia(), resp)
	known := r.rt.planIdentity(ctx, &plan.partModel, before, resp)
	extra, extraKnown := plan.extra(&resp.Diagnostics)
	_, delaysKnown, _ := durations(ctx, plan.Delays)
	if resp.Diagnostics.HasError() {
		return
	}
	if !known || !extraKnown || !delaysKnown || !allKnown([]attr.Value{plan.Topic, plan.JitterShards, plan.JitterFactor, plan.SequenceShards, plan.SettingsVia, plan.MergePolicy}) {
		plan.ID, plan.Exchanges = types.StringUnknown(), types.SetUnknown(types.StringType)
		plan.Queues, plan.Arguments, plan.Bindings = types.ListUnknown(holdRefType), types.MapUnknown(queueArgumentsType), types.SetUnknown(bindingType)
		plan.Policies = plan.policyUnknown(queueArgumentsType)
	} else {
		objects, err := r.objects(ctx, plan, extra)
		if err != nil {
			addError(&resp.Diagnostics, "Invalid hold ladder", err)
			return
		}
		r.fill(plan, objects)
		acknowledged := stringsOf(ctx, plan.AcknowledgeWarnings)
		objects, unmerged := r.rt.withPolicies(ctx, &plan.partModel, acknowledged, objects, &resp.Diagnostics)
		if !r.rt.checkPlan(ctx, planned{
			vhost: plan.VHost.ValueString(), convention: topology.Convention(plan.Convention.ValueString()), objects: objects, exists: state != nil, replacing: replacing,
			adopt: plan.AdoptExisting.ValueBool(), ignore: stringsOf(ctx, plan.IgnoreArguments), acknowledged: acknowledged, merge: plan.MergePolicy.ValueBool(),
			resourceType: ladderTypeName, importID: plan.ID.ValueString(),
		}, &resp.Diagnostics) {
			return
		}
		have, havePolicies := map[string]map[string]string{}, map[string]map[string]string(nil)
		if state != nil && len(resp.RequiresReplace) == 0 {
			have, havePolicies = ladderArguments(state), argumentsByQueue(ctx, state.Policies)
		}
		plan.Arguments = r.planTiers(ctx, plan, objects, have, &resp.Diagnostics)
		if plan.Policies = plan.policyUnknown(queueArgumentsType); unmerged == nil {
			plan.Policies = plan.policiesOf(r.rt.planPolicies(ctx, &plan.partModel, objects.Queues, havePolicies, &resp.Diagnostics))
		} else {
			r.rt.sayUnchecked(&resp.Diagnostics, unmerged)
		}
	}
	if state != nil && len(resp.RequiresReplace) > 0 {
		r.rt.warnOfMessages(ctx, &resp.Diagnostics, state.VHost.ValueString(), ownedQueues(state), plan.DeleteNonEmpty.ValueBool(), "replaced")
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	if plan.mergesLater(ctx, req, resp) {
		plan.Policies = plan.policyUnknown(queueArgumentsType)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	}
}

// planTiers plans the arguments of every hold queue, and says what happens to those that differ and to those of tiers
// that are removed. have is what the state has of them.
func (r *holdLadderResource) planTiers(ctx context.Context, plan *holdLadderModel, objects topology.Objects, have map[string]map[string]string, diags *diag.Diagnostics) types.Map {
	vhost, lose := plan.VHost.ValueString(), plan.DeleteNonEmpty.ValueBool()
	planned := map[string]map[string]string{}
	var replaced, removed, differ []string
	for _, q := range objects.Queues {
		differences := queueDifferences(q, have[q.Name], stringsOf(ctx, plan.IgnoreArguments))
		planned[q.Name] = plannedArguments(q.Arguments, have[q.Name], differences)
		if len(differences) > 0 {
			replaced = append(replaced, q.Name)
			differ = append(differ, fmt.Sprintf("%q:\n%s", q.Name, describeQueue(q, differences)))
		}
	}
	if len(differ) > 0 {
		diags.AddAttributeWarning(path.Root("arguments"), fmt.Sprintf("Hold queues of topic %q differ from the configuration", plan.Topic.ValueString()),
			"They will be deleted, if they are empty, and made again in place, because RabbitMQ cannot change a queue's arguments:\n"+strings.Join(differ, "\n"))
	}
	for name := range have {
		if _, kept := planned[name]; !kept {
			removed = append(removed, name)
		}
	}
	slices.Sort(removed)
	if !r.rt.asksLive(true) {
		return argumentsMap(planned)
	}
	r.rt.warnOfMessages(ctx, diags, vhost, replaced, lose, "deleted and made again")
	if lose {
		r.rt.warnOfMessages(ctx, diags, vhost, removed, lose, "deleted")
	} else {
		r.rt.warnOf(diags, vhost, r.rt.count(ctx, vhost, removed, diags),
			"Their tiers are removed: apply waits until they are home, which takes up to the tier's delay, and then deletes the queue.")
	}
	return argumentsMap(planned)
}

// fill sets the computed attributes that follow from the configuration alone.
func (r *holdLadderResource) fill(m *holdLadderModel, objects topology.Objects) {
	m.ID = types.StringValue(r.importID(m))
	m.Exchanges = stringSet(exchangeNames(objects.Exchanges))
	m.Bindings = bindingSet(objects.Bindings)
	m.Queues = holdRefList(objects.HoldRefs())
}

// finish computes, with everything known, what a plan may have left unknown.
func (r *holdLadderResource) finish(ctx context.Context, plan *holdLadderModel, diags *diag.Diagnostics) (topology.Objects, bool) {
	plan.settleVia(defaultVia())
	if !plan.settle(r.rt) {
		addError(diags, "Could not apply the hold ladder", errUnknown)
		return topology.Objects{}, false
	}
	extra, _ := plan.extra(diags)
	objects, err := r.objects(ctx, plan, extra)
	if addError(diags, "Invalid hold ladder", err); diags.HasError() {
		return objects, false
	}
	r.fill(plan, objects)
	objects, err = r.rt.withPolicies(ctx, &plan.partModel, stringsOf(ctx, plan.AcknowledgeWarnings), objects, diags)
	if addError(diags, "Could not read the policies to merge", err); diags.HasError() {
		return objects, false
	}
	plan.Policies = plan.policiesOf(plannedPolicies(objects.Queues))
	if plan.Arguments.IsUnknown() {
		computed := map[string]map[string]string{}
		for _, q := range objects.Queues {
			computed[q.Name] = q.Arguments.Canonical()
		}
		plan.Arguments = argumentsMap(computed)
	}
	return objects, true
}

func (r *holdLadderResource) createRequest(ctx context.Context, plan *holdLadderModel, objects topology.Objects, diags *diag.Diagnostics) createRequest {
	return createRequest{
		vhost: plan.VHost.ValueString(), objects: objects, adopt: plan.AdoptExisting.ValueBool(), merge: plan.MergePolicy.ValueBool(), ignore: stringsOf(ctx, plan.IgnoreArguments),
		resourceType: ladderTypeName, importID: plan.ID.ValueString(), diags: diags,
	}
}

func (r *holdLadderResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer ladderForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	var plan holdLadderModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	objects, ok := r.finish(ctx, &plan, &resp.Diagnostics)
	if !ok {
		return
	}
	left, err := r.rt.create(ctx, r.createRequest(ctx, &plan, objects, &resp.Diagnostics))
	addError(&resp.Diagnostics, "Could not create the hold ladder", err)
	if err == nil {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	} else if len(left) > 0 {
		// Nothing but what is left is the resource's own: not what it was to adopt, nor what it did not get to make.
		notLeft := func(name string, _ map[string]string) bool { return !slices.Contains(left, name) }
		owned, policies := ladderArguments(&plan), argumentsByQueue(ctx, plan.Policies)
		maps.DeleteFunc(owned, notLeft)
		maps.DeleteFunc(policies, notLeft)
		plan.Policies = plan.policiesOf(policies)
		refs := slices.DeleteFunc(objects.HoldRefs(), func(ref topology.HoldRef) bool { return !slices.Contains(left, ref.Name) })
		plan.Arguments, plan.Queues = argumentsMap(owned), holdRefList(refs)
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

func (r *holdLadderResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	defer ladderForm.identify(ctx, &req.State, resp.Identity, &resp.Diagnostics)
	var state holdLadderModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	admin, ok := r.rt.reader(&resp.Diagnostics)
	if !ok {
		return
	}
	vhost := state.VHost.ValueString()
	imported := state.Arguments.IsNull()
	if state.Delays.IsNull() {
		found, err := r.recognise(ctx, admin, &state, &resp.Diagnostics)
		if addError(&resp.Diagnostics, "Could not read the hold ladder", err); err != nil {
			return
		}
		if !found {
			resp.State.RemoveResource(ctx)
			return
		}
	}
	r.rt.see(queueKeys(vhost, ownedQueues(&state))...)
	live, err := readArguments(ctx, admin, vhost, ownedQueues(&state))
	if addError(&resp.Diagnostics, "Could not read the hold ladder", err); err != nil {
		return
	}
	settings, copied := live, topology.Arguments(nil)
	if imported {
		settings, copied, err = state.recogniseVia(ctx, admin, live)
		if addError(&resp.Diagnostics, "Could not import the hold ladder", err); err != nil {
			return
		}
	}
	policies, err := state.readPolicies(ctx, admin, ownedQueues(&state))
	if len(live) == 0 {
		warnOfLeftPolicies(&resp.Diagnostics, vhost, policies)
		resp.State.RemoveResource(ctx)
		return
	}
	if addError(&resp.Diagnostics, "Could not read the policies of the hold ladder", err); err != nil {
		return
	}
	state.Arguments, state.Policies = argumentsMap(live), state.policiesOf(policies)
	objects, err := r.objects(ctx, &state, nil)
	if addError(&resp.Diagnostics, "Invalid hold ladder", err); err != nil {
		return
	}
	if imported {
		state.recogniseExtra(objects.Queues, settings, copied)
	}
	exchanges, bindings, err := mirrorRoutes(ctx, admin, vhost, objects)
	if addError(&resp.Diagnostics, "Could not read the hold ladder", err); err != nil {
		return
	}
	state.Exchanges, state.Bindings = stringSet(exchanges), bindingSet(bindings)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// recognise fills in the tiers of a ladder that is being imported.
func (r *holdLadderResource) recognise(ctx context.Context, admin broker, state *holdLadderModel, diags *diag.Diagnostics) (bool, error) {
	queues, err := liveQueues(ctx, admin, state.VHost.ValueString())
	if err != nil {
		return false, err
	}
	refs, sequenceShards := state.identityOf(state.Topic).RecogniseLadder(queues)
	warnOfGap(state, queues, refs, diags)
	var delays []attr.Value
	shards := int64(0)
	for _, ref := range refs {
		if ref.Shard == 0 {
			delays = append(delays, types.StringValue(topology.FormatDuration(ref.Delay)))
		}
		shards = max(shards, int64(ref.Shard)+1)
	}
	if len(refs) == 0 {
		return false, nil
	}
	state.Delays = types.ListValueMust(types.StringType, delays)
	state.Queues = holdRefList(refs)
	switch {
	case sequenceShards > 0:
		state.SequenceShards = types.Int64Value(int64(sequenceShards))
	case shards > 1:
		state.JitterShards, state.JitterFactor = types.Int64Value(shards), types.Float64Value(topology.JitterFactorOf(refs))
	}
	return true, nil
}

func (r *holdLadderResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state holdLadderModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	objects, err := r.objects(ctx, &state, nil)
	if addError(&resp.Diagnostics, "Invalid hold ladder", err); err != nil {
		return
	}
	queues := ownedQueues(&state)
	err = r.rt.remove(ctx, rabbitmqadmin.SafeDelete{
		VHost: state.VHost.ValueString(), Queues: queues, OwnBindings: ladderRoutes(objects, queues),
		DeleteNonEmpty: deleteAnyway(ctx, req.Private, state.DeleteNonEmpty),
	}, objects.Exchanges)
	if err != nil {
		addRefusal(&resp.Diagnostics, "Could not delete the hold ladder", err)
		clearPassed(ctx, resp.Private, &resp.Diagnostics)
	}
}

func (r *holdLadderResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	defer ladderForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	if !r.canImport(&resp.Diagnostics) {
		return
	}
	m := holdLadderModel{
		partModel: nullPart(), Delays: types.ListNull(types.StringType), Queues: types.ListNull(holdRefType),
		Arguments: types.MapNull(queueArgumentsType), Policies: types.MapNull(queueArgumentsType), Bindings: types.SetNull(bindingType), AcknowledgeWarnings: types.SetNull(types.StringType),
		Timeouts: timeouts.Value{Object: types.ObjectNull(map[string]attr.Type{"update": types.StringType})},
	}
	id, topic, err := m.importPart(ladderForm.importText(ctx, req, &resp.Diagnostics), "delays")
	if addError(&resp.Diagnostics, "Invalid import id", err); err != nil {
		return
	}
	m.Topic = topic
	m.ID = types.StringValue(r.importID(&m))
	if err := r.importDelays(ctx, &m, id.params["delays"]); err != nil {
		addError(&resp.Diagnostics, "Invalid import id", err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
