package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// sqsDeadEndResource is the dead-letter queue or the parked queue of a topic on SQS. The two differ in nothing but their role.
type sqsDeadEndResource struct {
	configured
	role topology.Role
}

var (
	_ resource.ResourceWithConfigure   = (*sqsDeadEndResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*sqsDeadEndResource)(nil)
	_ resource.ResourceWithImportState = (*sqsDeadEndResource)(nil)
	_ resource.ResourceWithIdentity    = (*sqsDeadEndResource)(nil)
)

func newSQSDeadLetterQueueResource() resource.Resource {
	return &sqsDeadEndResource{role: topology.RoleDeadLetter}
}

func newSQSParkedQueueResource() resource.Resource {
	return &sqsDeadEndResource{role: topology.RoleParked}
}

type sqsDeadEndModel struct {
	sqsPartModel
	Topic       types.String `tfsdk:"topic"`
	Name        types.String `tfsdk:"name"`
	SourceQueue types.String `tfsdk:"source_queue"`
}

// noun is what the queue is called in text.
func (r *sqsDeadEndResource) noun() string { return (&deadEndResource{role: r.role}).noun() }

func (r *sqsDeadEndResource) typeName() string {
	return TypeName + "_sqs_" + strings.NewReplacer("-", "_", " ", "_").Replace(r.noun())
}

func (r *sqsDeadEndResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = r.typeName()
}

func (r *sqsDeadEndResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	description := "The dead-letter queue of a topic on Amazon SQS: messages that failed for good wait here (retries exhausted, too old, rejected). Only the topic's work queue may redrive to it. " +
		"It is created before the topic that points at it and outlives it on destroy."
	derived := "orders-dlq"
	if r.role == topology.RoleParked {
		description = "The parked queue of a topic on Amazon SQS: messages that nobody could read wait here (a body that does not decode, a version never taught). Consumers send them here; no queue may redrive to it. " +
			"The convention `redeliver` has one."
		derived = "orders-parked"
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: description,
		Attributes: sqsPartAttributes(ctx, "the "+r.noun(), "convention=...&consumer_group=...&topic=...", topology.MaxRetention, map[string]schema.Attribute{
			"topic": schema.StringAttribute{
				Required: true, MarkdownDescription: "The topic's name. Changing it replaces the queue.",
			},
			"name": schema.StringAttribute{
				Optional: true, Computed: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
				MarkdownDescription: "The queue's name, with the suffix `.fifo` where it is a FIFO queue. Defaults to what the convention derives from the topic, such as `" + derived + "`. Changing it replaces the queue.",
			},
			"source_queue": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "The name of the only queue that may redrive to this one, where it is not the topic's work queue. A parked queue takes none.",
			},
		}),
	}
}

func (r *sqsDeadEndResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.configure(req.ProviderData, &resp.Diagnostics)
}

// spec is what is asked for, but for its settings, at a place that need not be known.
func (r *sqsDeadEndResource) spec(m *sqsDeadEndModel, place sqsPlace) topology.SQSDeadEnd {
	return topology.SQSDeadEnd{
		SQSIdentity: place.in(m.identityOf(m.Topic)), Role: r.role, Name: m.Name.ValueString(), SourceQueue: m.SourceQueue.ValueString(),
	}
}

func (r *sqsDeadEndResource) importID(m *sqsDeadEndModel) string {
	params := m.params()
	if topic, role, _, ok := topology.SQSTopicOf(topology.Convention(m.Convention.ValueString()), m.ConsumerGroup.ValueString(), m.Name.ValueString()); !ok || role != r.role || topic != m.Topic.ValueString() {
		params["topic"] = m.Topic.ValueString()
	}
	return sqsID(m.ARN, params)
}

func (r *sqsDeadEndResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	config, plan, state := planModels[sqsDeadEndModel](ctx, req, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan == nil {
		r.rt.warnOfSQSMessages(ctx, &resp.Diagnostics, &state.sqsPartModel, state.Name.ValueString(), state.DeleteNonEmpty.ValueBool(), "destroyed")
		return
	}
	plan.Name = config.Name
	var before *sqsPartModel
	if state != nil {
		before = &state.sqsPartModel
		replaceChanged(resp, map[string][2]attr.Value{"topic": {state.Topic, plan.Topic}})
	}
	p := r.rt.beginSQSPlan(ctx, req, resp, &config.sqsPartModel, &plan.sqsPartModel, before, r.typeName())
	settings, settled := plan.settings(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	var attributes topology.SQSAttributes
	if known := p.known && allKnown([]attr.Value{plan.Topic, plan.Name, plan.SourceQueue}); known {
		end := r.spec(plan, p.place)
		if settled {
			end.SQSQueueSettings = settings
		}
		if err := end.Validate(); err != nil {
			addError(&resp.Diagnostics, "Invalid "+r.noun(), err)
			return
		}
		plan.Name = types.StringValue(end.QueueName())
		if settled && p.placed {
			var err error
			if attributes, err = end.Attributes(); err != nil {
				addError(&resp.Diagnostics, "Invalid "+r.noun(), err)
				return
			}
		}
	} else if plan.Name.IsNull() {
		plan.Name = types.StringUnknown()
	}
	p.nameKnown(plan.Name, func() string { return r.importID(plan) })
	p.settle(ctx, plan.Name.ValueString(), attributes)
	if attributes != nil && r.role == topology.RoleDeadLetter && !plan.FIFO.ValueBool() {
		p.warnOfRetention(ctx, r.spec(plan, p.place).SourceQueueName(), attributes.Retention())
	}
	if state != nil {
		replaceChanged(resp, map[string][2]attr.Value{"name": {state.Name, plan.Name}})
		p.end(ctx, state.Name.ValueString())
		if len(resp.RequiresReplace) > 0 && r.role == topology.RoleDeadLetter {
			r.rt.warnOfRedriving(ctx, &resp.Diagnostics, state.Name.ValueString(), plan.DeleteNonEmpty.ValueBool())
		}
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// finish computes, with everything known, what a plan may have left unknown.
func (r *sqsDeadEndResource) finish(ctx context.Context, plan *sqsDeadEndModel, diags *diag.Diagnostics) (queue sqsadmin.Queue, place sqsPlace, ok bool) {
	place, err := r.rt.finishSQS(ctx, &plan.sqsPartModel)
	if addError(diags, "Could not apply the "+r.noun(), err); err != nil {
		return queue, place, false
	}
	if plan.Name.IsUnknown() {
		plan.Name = types.StringNull()
	}
	end := r.spec(plan, place)
	end.SQSQueueSettings, _ = plan.settings(ctx, diags)
	attributes, err := end.Attributes()
	if addError(diags, "Invalid "+r.noun(), err); diags.HasError() {
		return queue, place, false
	}
	plan.Name = types.StringValue(end.QueueName())
	queue = plan.finished(ctx, place.address(end.QueueName()), attributes)
	plan.ID = types.StringValue(r.importID(plan))
	return queue, place, true
}

func (r *sqsDeadEndResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer sqsDeadEndForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	var plan sqsDeadEndModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	queue, place, ok := r.finish(ctx, &plan, &resp.Diagnostics)
	if !ok {
		return
	}
	made, err := r.rt.createSQS(ctx, place, &plan.sqsPartModel, queue, r.typeName())
	addError(&resp.Diagnostics, "Could not create the "+r.noun(), err)
	if made {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

func (r *sqsDeadEndResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	defer sqsDeadEndForm.identify(ctx, &req.State, resp.Identity, &resp.Diagnostics)
	var state sqsDeadEndModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	imported := state.Attributes.IsNull()
	live, place, found, ok := r.rt.readSQS(ctx, &state.sqsPartModel, state.Name.ValueString(), &resp.Diagnostics)
	if !ok {
		return
	}
	if !found {
		resp.State.RemoveResource(ctx)
		return
	}
	if imported {
		state.recogniseSettings(live.Attributes, r.role)
		state.recogniseTags(r.rt, live.Tags)
		if source := r.spec(&state, place).SourceQueueIn(live.Attributes); source != "" {
			state.SourceQueue = types.StringValue(source)
		}
	}
	state.ID = types.StringValue(r.importID(&state))
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

func (r *sqsDeadEndResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer sqsDeadEndForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	var plan sqsDeadEndModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	queue, place, ok := r.finish(ctx, &plan, &resp.Diagnostics)
	if !ok {
		return
	}
	err := r.rt.updateSQS(ctx, place, &plan.sqsPartModel, queue)
	if addError(&resp.Diagnostics, "Could not update the "+r.noun(), err); err == nil {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

func (r *sqsDeadEndResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state sqsDeadEndModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	err := r.rt.deleteSQS(ctx, &state.sqsPartModel, state.Name.ValueString(), deleteAnyway(ctx, req.Private, state.DeleteNonEmpty))
	if err != nil {
		addSQSRefusal(&resp.Diagnostics, "Could not delete the "+r.noun(), err)
		clearPassed(ctx, resp.Private, &resp.Diagnostics)
	}
}

func (r *sqsDeadEndResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	defer sqsDeadEndForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	m := sqsDeadEndModel{sqsPartModel: nullSQSPart()}
	id := sqsDeadEndForm.importText(ctx, req, &resp.Diagnostics)
	topic, err := m.importSQS(ctx, r.rt, id, r.role)
	if addError(&resp.Diagnostics, "Invalid import id", err); err != nil {
		return
	}
	_, queue, err := topology.ParseSQSARN(m.ARN.ValueString())
	if addError(&resp.Diagnostics, "Invalid import id", err); err != nil {
		return
	}
	m.Topic, m.Name = topic, types.StringValue(queue)
	m.ID = types.StringValue(r.importID(&m))
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
