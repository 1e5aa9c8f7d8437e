package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// warningBounded: what is set aside in the queue is meant to be dropped once there is too much of it, or it is too old.
const warningBounded = "messages_dropped"

// deadEndResource is the dead-letter queue or the parked queue of a topic: one
// queue that messages are set aside in. The two differ in nothing but their
// role.
type deadEndResource struct {
	configured
	role topology.Role
}

var (
	_ resource.ResourceWithConfigure   = (*deadEndResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*deadEndResource)(nil)
	_ resource.ResourceWithImportState = (*deadEndResource)(nil)
)

func newDeadLetterQueueResource() resource.Resource {
	return &deadEndResource{role: topology.RoleDeadLetter}
}

func newParkedQueueResource() resource.Resource { return &deadEndResource{role: topology.RoleParked} }

type deadEndModel struct {
	partModel
	migrateModel
	Topic               types.String `tfsdk:"topic"`
	Name                types.String `tfsdk:"name"`
	WorkQueueType       types.String `tfsdk:"work_queue_type"`
	AcknowledgeWarnings types.Set    `tfsdk:"acknowledge_warnings"`
	Arguments           types.Map    `tfsdk:"arguments"`
	Policy              types.Map    `tfsdk:"policy"`
	Bindings            types.Set    `tfsdk:"bindings"`
}

// noun is what the queue is called in text.
func (r *deadEndResource) noun() string {
	if r.role == topology.RoleParked {
		return "parked queue"
	}
	return "dead-letter queue"
}

func (r *deadEndResource) typeName() string {
	return TypeName + "_rabbitmq_" + strings.NewReplacer("-", "_", " ", "_").Replace(r.noun())
}

func (r *deadEndResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = r.typeName()
}

func (r *deadEndResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	description := "The dead-letter queue of a topic: messages that failed for good wait here (retries exhausted, too old, rejected). " +
		"It is created before the topic that points at it and outlives it on destroy."
	nameDescription := "The queue's name. Defaults to what the convention derives from the topic, such as `orders-dlq`. Changing it replaces the queue."
	if r.role == topology.RoleParked {
		description = "The parked queue of a topic: messages that nobody could read wait here (a body that does not decode, a version never taught). " +
			"The conventions `redeliver` and `acemq` have one."
		nameDescription = "The queue's name. Defaults to what the convention derives from the topic, such as `orders-parked`. Changing it replaces the queue."
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: description,
		Attributes: partAttributes("the "+r.noun(), "VHOST/TOPIC?convention=...&consumer_group=...&name=...", map[string]schema.Attribute{
			"topic": schema.StringAttribute{
				Required: true, Validators: nameOf("topic"),
				MarkdownDescription: "The topic's name. Changing it replaces the queue.",
			},
			"name": schema.StringAttribute{
				Optional: true, Computed: true, Validators: nameOf(r.noun()),
				MarkdownDescription: nameDescription,
			},
			"work_queue_type": schema.StringAttribute{
				Optional: true, Validators: oneOf([]topology.QueueType{topology.Classic, topology.Quorum}),
				MarkdownDescription: "The type of the topic's work queue, where the convention leaves it open and this queue follows it (`rabbitkit`). Defaults to the convention's default.",
			},
			"acknowledge_warnings": warningsAttribute(warningBounded, warningPolicy, warningDefaultType, warningCycle),
			"arguments":            argumentsAttribute("the queue"),
			"policy":               policyAttribute("the queue"),
			"bindings": schema.SetNestedAttribute{
				Computed: true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"exchange":    schema.StringAttribute{Computed: true, MarkdownDescription: "The exchange."},
					"routing_key": schema.StringAttribute{Computed: true, MarkdownDescription: "The routing key."},
				}},
				MarkdownDescription: "The bindings that lead messages to the queue. One that is missing on the broker shows as drift.",
			},
		}),
	}
	maps.Copy(resp.Schema.Attributes, migrateAttributes(ctx, "the queue"))
}

func (r *deadEndResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.configure(req.ProviderData, &resp.Diagnostics)
}

// objects computes what the resource owns.
func (r *deadEndResource) objects(m *deadEndModel, extra topology.Arguments) (topology.Objects, error) {
	spec := topology.Spec{
		Identity: m.identityOf(m.Topic), QueueType: topology.QueueType(m.WorkQueueType.ValueString()),
		Extra: map[topology.Role]topology.Arguments{r.role: extra},
	}
	if r.role == topology.RoleParked {
		spec.ParkedQueue = m.Name.ValueString()
		return spec.BuildParkedQueue()
	}
	spec.DeadLetterQueue = m.Name.ValueString()
	return spec.BuildDeadLetterQueue()
}

func (r *deadEndResource) importID(m *deadEndModel) string {
	params := m.params()
	derived := m.identityOf(m.Topic).DeadLetterQueueName()
	if r.role == topology.RoleParked {
		derived = m.identityOf(m.Topic).ParkedQueueName()
	}
	if m.Name.ValueString() != derived {
		params["name"] = m.Name.ValueString()
	}
	return importID{segments: []string{m.VHost.ValueString(), m.Topic.ValueString()}, params: params}.String()
}

func (r *deadEndResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	config, plan, state := planModels[deadEndModel](ctx, req, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan == nil {
		r.rt.warnOfMessages(ctx, &resp.Diagnostics, state.VHost.ValueString(), []string{state.Name.ValueString()}, state.DeleteNonEmpty.ValueBool(), "destroyed")
		return
	}
	plan.VHost, plan.Convention, plan.ConsumerGroup, plan.Name = config.VHost, config.Convention, config.ConsumerGroup, config.Name
	plan.Migrating = types.BoolNull()
	var before *partModel
	replacing := state == nil && isSecondPlan(ctx, req.Private)
	if state != nil {
		before = &state.partModel
		replaceChanged(resp, map[string][2]attr.Value{"topic": {state.Topic, plan.Topic}})
	}
	plan.planVia(&config.partModel, before, defaultVia(), resp)
	known := r.rt.planIdentity(ctx, &plan.partModel, before, resp)
	extra, extraKnown := plan.extra(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if !known || !extraKnown || !allKnown([]attr.Value{plan.Topic, plan.Name, plan.WorkQueueType, plan.SettingsVia, plan.MergePolicy}) {
		if state != nil {
			replaceUnknown(resp, map[string]attr.Value{"name": plan.Name})
			plan.planUnknown([]string{state.Name.ValueString()}, map[string]attr.Value{"work_queue_type": plan.WorkQueueType, "extra_arguments": plan.ExtraArguments}, resp)
		}
		if plan.Name.IsNull() {
			plan.Name = types.StringUnknown()
		}
		plan.ID, plan.Exchanges = types.StringUnknown(), types.SetUnknown(types.StringType)
		plan.Arguments, plan.Bindings = types.MapUnknown(types.StringType), types.SetUnknown(bindingType)
		plan.Policy = plan.policyUnknown(types.StringType)
	} else {
		objects, err := r.objects(plan, extra)
		if err != nil {
			addError(&resp.Diagnostics, "Invalid "+r.noun(), err)
			return
		}
		r.fill(plan, objects)
		r.warn(ctx, plan, extra, &resp.Diagnostics)
		acknowledged := stringsOf(ctx, plan.AcknowledgeWarnings)
		objects, unmerged := r.rt.withPolicies(ctx, &plan.partModel, acknowledged, objects, &resp.Diagnostics)
		if !r.rt.checkPlan(ctx, planned{
			vhost: plan.VHost.ValueString(), convention: topology.Convention(plan.Convention.ValueString()), objects: objects, exists: state != nil, replacing: replacing,
			adopt: plan.AdoptExisting.ValueBool(), ignore: stringsOf(ctx, plan.IgnoreArguments), acknowledged: acknowledged, merge: plan.MergePolicy.ValueBool(),
			resourceType: r.typeName(), importID: plan.ID.ValueString(),
		}, &resp.Diagnostics) {
			return
		}
		have, havePolicy := types.MapNull(types.StringType), map[string]map[string]string(nil)
		if state != nil {
			replaceChanged(resp, map[string][2]attr.Value{"name": {state.Name, plan.Name}})
			if len(resp.RequiresReplace) == 0 {
				have, havePolicy = state.Arguments, map[string]map[string]string{state.Name.ValueString(): mapOf(ctx, state.Policy)}
			}
		}
		plan.Arguments = planQueue(ctx, objects.Queues[0], have, plan.IgnoreArguments, plan.migrates(), resp)
		if plan.Policy = plan.policyUnknown(types.StringType); unmerged == nil {
			plan.Policy = plan.policyOf(r.rt.planPolicies(ctx, &plan.partModel, objects.Queues, havePolicy, &resp.Diagnostics), plan.Name.ValueString())
		} else {
			r.rt.sayUnchecked(&resp.Diagnostics, unmerged)
		}
		r.rt.planMigration(ctx, plan.migration(ctx, state, objects), resp)
	}
	if state != nil && len(resp.RequiresReplace) > 0 {
		vhost, name := state.VHost.ValueString(), state.Name.ValueString()
		r.rt.warnOfMessages(ctx, &resp.Diagnostics, vhost, []string{name}, plan.DeleteNonEmpty.ValueBool(), "replaced")
		r.rt.warnOfPointing(ctx, &resp.Diagnostics, vhost, name, plan.DeleteNonEmpty.ValueBool())
		guardImport(ctx, vhost, name, plan.AdoptExisting, req, resp)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	if plan.mergesLater(ctx, req, resp) {
		plan.Policy = plan.policyUnknown(types.StringType)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	}
}

// warn adds the queue's standing warning unless it is acknowledged.
func (r *deadEndResource) warn(ctx context.Context, m *deadEndModel, extra topology.Arguments, diags *diag.Diagnostics) {
	dropping := topology.Convention(m.Convention.ValueString()).Dropping(extra)
	if len(dropping) == 0 || slices.Contains(stringsOf(ctx, m.AcknowledgeWarnings), warningBounded) {
		return
	}
	diags.AddAttributeWarning(path.Root("extra_arguments"), "Messages that were set aside can be dropped",
		fmt.Sprintf("By %s the broker drops messages from the %s %q, for good and without a trace. Leave that out, or give the queue an %s of its own that leads to an archive. "+
			"If the loss is meant, say so with acknowledge_warnings = [%q].",
			strings.Join(dropping, " and "), r.noun(), m.Name.ValueString(), topology.ArgDeadLetterExchange, warningBounded))
}

// fill sets the computed attributes that follow from the configuration alone.
func (r *deadEndResource) fill(m *deadEndModel, objects topology.Objects) {
	m.Name = types.StringValue(objects.Queues[0].Name)
	m.ID = types.StringValue(r.importID(m))
	m.Exchanges = stringSet(exchangeNames(objects.Exchanges))
	m.Bindings = bindingSet(objects.Bindings)
}

// finish computes, with everything known, what a plan may have left unknown.
func (r *deadEndResource) finish(ctx context.Context, plan *deadEndModel, diags *diag.Diagnostics) (topology.Objects, bool) {
	plan.settleVia(defaultVia())
	if !plan.settle(r.rt) {
		addError(diags, "Could not apply the "+r.noun(), errUnknown)
		return topology.Objects{}, false
	}
	if plan.Name.IsUnknown() {
		plan.Name = types.StringNull()
	}
	extra, _ := plan.extra(diags)
	objects, err := r.objects(plan, extra)
	if addError(diags, "Invalid "+r.noun(), err); diags.HasError() {
		return objects, false
	}
	r.fill(plan, objects)
	objects, err = r.rt.withPolicies(ctx, &plan.partModel, stringsOf(ctx, plan.AcknowledgeWarnings), objects, diags)
	if addError(diags, "Could not read the policies to merge", err); diags.HasError() {
		return objects, false
	}
	if plan.Arguments.IsUnknown() {
		plan.Arguments = stringMap(objects.Queues[0].Arguments.Canonical())
	}
	plan.Policy = plan.policyOf(plannedPolicies(objects.Queues), plan.Name.ValueString())
	return objects, true
}

func (r *deadEndResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer deadEndForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	var plan deadEndModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	objects, ok := r.finish(ctx, &plan, &resp.Diagnostics)
	if !ok {
		return
	}
	left, err := r.rt.create(ctx, createRequest{
		vhost: plan.VHost.ValueString(), objects: objects, adopt: plan.AdoptExisting.ValueBool(), merge: plan.MergePolicy.ValueBool(), ignore: stringsOf(ctx, plan.IgnoreArguments),
		resourceType: r.typeName(), importID: plan.ID.ValueString(), diags: &resp.Diagnostics,
	})
	addError(&resp.Diagnostics, "Could not create the "+r.noun(), err)
	if err == nil || len(left) > 0 {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

func (r *deadEndResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	defer deadEndForm.identify(ctx, &req.State, resp.Identity, &resp.Diagnostics)
	var state deadEndModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	admin, ok := r.rt.reader(&resp.Diagnostics)
	if !ok {
		return
	}
	vhost := state.VHost.ValueString()
	r.rt.see(objectKey("queue", vhost, state.Name.ValueString()))
	noteImported(ctx, state.Arguments.IsNull(), resp)
	live, err := admin.Queue(ctx, vhost, state.Name.ValueString())
	gone, migrating := errors.Is(err, rabbitmqadmin.ErrNotFound), false
	if err == nil || gone {
		migrating, err = isMigrating(ctx, admin, vhost, state.Name.ValueString())
	}
	if addError(&resp.Diagnostics, "Could not read the "+r.noun(), err); err != nil {
		return
	}
	if state.keepWhileMigrating(migrating, state.Arguments) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
		return
	}
	if gone {
		if left, err := state.readPolicies(ctx, admin, []string{state.Name.ValueString()}); err == nil {
			warnOfLeftPolicies(&resp.Diagnostics, vhost, left)
		}
		resp.State.RemoveResource(ctx)
		return
	}
	if state.Arguments.IsNull() { // it is being imported
		err := r.recognise(ctx, admin, &state, live)
		if addError(&resp.Diagnostics, "Could not import the "+r.noun(), err); err != nil {
			return
		}
	}
	policies, err := state.readPolicies(ctx, admin, []string{live.Name})
	if addError(&resp.Diagnostics, "Could not read the policy of the "+r.noun(), err); err != nil {
		return
	}
	state.Arguments, state.Policy = stringMap(mirrorArguments(live)), state.policyOf(policies, live.Name)
	objects, err := r.objects(&state, nil)
	if addError(&resp.Diagnostics, "Invalid "+r.noun(), err); err != nil {
		return
	}
	exchanges, bindings, err := mirrorRoutes(ctx, admin, vhost, objects)
	if addError(&resp.Diagnostics, "Could not read the "+r.noun(), err); err != nil {
		return
	}
	state.Exchanges, state.Bindings = stringSet(exchanges), bindingSet(bindings)
	state.ID = types.StringValue(r.importID(&state))
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// recognise fills in what the broker tells about a queue that is being imported.
func (r *deadEndResource) recognise(ctx context.Context, admin broker, state *deadEndModel, live rabbitmqadmin.LiveQueue) error {
	settings, copied, err := state.recogniseVia(ctx, admin, map[string]map[string]string{live.Name: mirrorArguments(live)})
	if err != nil {
		return err
	}
	// Where the convention leaves the type open, that of the queue is what was asked for.
	if kinds := topology.Convention(state.Convention.ValueString()).QueueTypes(); live.Type != kinds[0] && slices.Contains(kinds, live.Type) {
		state.WorkQueueType = types.StringValue(string(live.Type))
	}
	if objects, err := r.objects(state, nil); err == nil {
		state.recogniseExtra(objects.Queues, settings, copied)
	}
	return nil
}

func (r *deadEndResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer deadEndForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	var plan, state deadEndModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	objects, ok := r.finish(ctx, &plan, &resp.Diagnostics)
	if !ok {
		return
	}
	err := r.rt.migrate(ctx, plan.migration(ctx, &state, objects), &resp.Diagnostics)
	if err == nil {
		err = r.rt.repairRoutes(ctx, plan.VHost.ValueString(), objects)
	}
	if err == nil {
		err = r.rt.repairPolicies(ctx, plan.VHost.ValueString(), plan.MergePolicy.ValueBool(), objects.Queues)
	}
	if err != nil {
		addError(&resp.Diagnostics, "Could not update the "+r.noun(), err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *deadEndResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state deadEndModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	if refuseImported(ctx, req, resp, state.VHost.ValueString(), state.Name.ValueString()) {
		return
	}
	objects, err := r.objects(&state, nil)
	if addError(&resp.Diagnostics, "Invalid "+r.noun(), err); err != nil {
		return
	}
	err = r.rt.removeMigrated(ctx, &state.migrateModel, rabbitmqadmin.SafeDelete{
		VHost: state.VHost.ValueString(), Queues: []string{state.Name.ValueString()}, NotPointedAt: true,
		OwnBindings: objects.Bindings, DeleteNonEmpty: deleteAnyway(ctx, req.Private, state.DeleteNonEmpty),
	}, objects.Exchanges)
	if err != nil {
		addRefusal(&resp.Diagnostics, "Could not delete the "+r.noun(), err)
		clearPassed(ctx, resp.Private, &resp.Diagnostics)
	}
}

func (r *deadEndResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	defer deadEndForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	if !r.canImport(&resp.Diagnostics) {
		return
	}
	m := deadEndModel{partModel: nullPart(), migrateModel: nullMigrate(), AcknowledgeWarnings: types.SetNull(types.StringType), Arguments: types.MapNull(types.StringType), Policy: types.MapNull(types.StringType), Bindings: types.SetNull(bindingType)}
	id, topic, err := m.importPart(deadEndForm.importText(ctx, req, &resp.Diagnostics), "name")
	if addError(&resp.Diagnostics, "Invalid import id", err); err != nil {
		return
	}
	m.Topic = topic
	if name := id.params["name"]; name != "" {
		m.Name = types.StringValue(name)
	}
	objects, err := r.objects(&m, nil)
	if addError(&resp.Diagnostics, "Invalid import id", err); err != nil {
		return
	}
	m.Name = types.StringValue(objects.Queues[0].Name)
	m.ID = types.StringValue(r.importID(&m))
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
