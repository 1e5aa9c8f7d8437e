package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

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
	Topic         types.String `tfsdk:"topic"`
	Name          types.String `tfsdk:"name"`
	WorkQueueType types.String `tfsdk:"work_queue_type"`
	Arguments     types.Map    `tfsdk:"arguments"`
	Bindings      types.Set    `tfsdk:"bindings"`
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

func (r *deadEndResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
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
				Required: true, Validators: []validator.String{nameValidator{"topic"}},
				MarkdownDescription: "The topic's name. Changing it replaces the queue.",
			},
			"name": schema.StringAttribute{
				Optional: true, Computed: true, Validators: []validator.String{nameValidator{r.noun()}},
				MarkdownDescription: nameDescription,
			},
			"work_queue_type": schema.StringAttribute{
				Optional: true, Validators: oneOf([]topology.QueueType{topology.Classic, topology.Quorum}),
				MarkdownDescription: "The type of the topic's work queue, where the convention leaves it open and this queue follows it (`rabbitkit`). Defaults to the convention's default.",
			},
			"arguments": argumentsAttribute("the queue"),
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
	if req.Plan.Raw.IsNull() {
		var state deadEndModel
		if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); !resp.Diagnostics.HasError() {
			r.rt.warnOfMessages(ctx, &resp.Diagnostics, state.VHost.ValueString(), []string{state.Name.ValueString()}, state.DeleteNonEmpty.ValueBool(), "destroyed")
		}
		return
	}
	var config, plan deadEndModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	var state *deadEndModel
	if !req.State.Raw.IsNull() {
		state = new(deadEndModel)
		resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	plan.VHost, plan.Convention, plan.ConsumerGroup, plan.Name = config.VHost, config.Convention, config.ConsumerGroup, config.Name
	stateVHost := types.StringNull()
	if state != nil {
		stateVHost = state.VHost
	}
	_, known := plan.resolve(r.rt, plan.Topic, stateVHost)
	extra, extraKnown := plan.extra(&resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	passToDelete(ctx, resp.Private, plan.DeleteNonEmpty, &resp.Diagnostics)
	if !known || !extraKnown || plan.Name.IsUnknown() || plan.WorkQueueType.IsUnknown() {
		plan.unresolve()
		if plan.Name.IsNull() {
			plan.Name = types.StringUnknown()
		}
		plan.Arguments, plan.Bindings = types.MapUnknown(types.StringType), types.SetUnknown(bindingType)
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
		return
	}
	objects, err := r.objects(&plan, extra)
	if err != nil {
		addError(&resp.Diagnostics, "Invalid "+r.noun(), err)
		return
	}
	queue := objects.Queues[0]
	plan.Name = types.StringValue(queue.Name)
	plan.ID = types.StringValue(r.importID(&plan))
	plan.Exchanges = stringSet(exchangeNames(objects.Exchanges))
	plan.Bindings = bindingSet(objects.Bindings)
	var live map[string]string
	if state != nil {
		resp.RequiresReplace = append(resp.RequiresReplace, plan.replaceWith(&state.partModel)...)
		if !plan.Topic.Equal(state.Topic) {
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root("topic"))
		}
		if !plan.Name.Equal(state.Name) {
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root("name"))
		}
		if len(resp.RequiresReplace) == 0 {
			live = mapOf(ctx, state.Arguments)
		}
	}
	arguments, differences := plannedArguments(queue.Arguments, live, stringsOf(ctx, plan.IgnoreArguments))
	plan.Arguments = stringMap(arguments)
	resp.RequiresReplace = append(resp.RequiresReplace, argumentPaths(differences)...)
	warnOfDrift(&resp.Diagnostics, queue.Name, differences)
	if len(resp.RequiresReplace) > 0 {
		r.rt.warnOfMessages(ctx, &resp.Diagnostics, state.VHost.ValueString(), []string{state.Name.ValueString()}, plan.DeleteNonEmpty.ValueBool(), "replaced")
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

func (r *deadEndResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan deadEndModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	objects, ok := r.finish(ctx, &plan, &resp.Diagnostics)
	if !ok {
		return
	}
	left, err := r.rt.create(ctx, createRequest{
		vhost: plan.VHost.ValueString(), objects: objects, adopt: plan.AdoptExisting.ValueBool(),
		ignore: stringsOf(ctx, plan.IgnoreArguments), resourceType: r.typeName(), importID: plan.ID.ValueString(),
	})
	addError(&resp.Diagnostics, "Could not create the "+r.noun(), err)
	if err == nil || len(left) > 0 {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

// finish computes, with everything known, what a plan may have left unknown.
func (r *deadEndResource) finish(ctx context.Context, plan *deadEndModel, diags *diag.Diagnostics) (topology.Objects, bool) {
	for _, attribute := range []*types.String{&plan.VHost, &plan.Convention, &plan.ConsumerGroup, &plan.Name} {
		if attribute.IsUnknown() {
			*attribute = types.StringNull()
		}
	}
	if _, known := plan.resolve(r.rt, plan.Topic, types.StringNull()); !known {
		addError(diags, "Could not create the "+r.noun(), errUnknown)
		return topology.Objects{}, false
	}
	extra, _ := plan.extra(diags)
	objects, err := r.objects(plan, extra)
	if addError(diags, "Invalid "+r.noun(), err); diags.HasError() {
		return objects, false
	}
	plan.Name = types.StringValue(objects.Queues[0].Name)
	plan.ID = types.StringValue(r.importID(plan))
	plan.Exchanges = stringSet(exchangeNames(objects.Exchanges))
	plan.Bindings = bindingSet(objects.Bindings)
	if plan.Arguments.IsUnknown() {
		plan.Arguments = stringMap(objects.Queues[0].Arguments.Canonical())
	}
	return objects, true
}

func (r *deadEndResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state deadEndModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	admin, ok := r.rt.reader(&resp.Diagnostics)
	if !ok {
		return
	}
	vhost := state.VHost.ValueString()
	live, err := admin.Queue(ctx, vhost, state.Name.ValueString())
	if errors.Is(err, rabbitmqadmin.ErrNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if addError(&resp.Diagnostics, "Could not read the "+r.noun(), err); err != nil {
		return
	}
	state.Arguments = stringMap(mirrorArguments(live))
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

func (r *deadEndResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan deadEndModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	objects, ok := r.finish(ctx, &plan, &resp.Diagnostics)
	if !ok {
		return
	}
	if err := r.rt.repairRoutes(ctx, plan.VHost.ValueString(), objects); err != nil {
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
	objects, err := r.objects(&state, nil)
	if addError(&resp.Diagnostics, "Invalid "+r.noun(), err); err != nil {
		return
	}
	err = r.rt.remove(ctx, rabbitmqadmin.SafeDelete{
		VHost: state.VHost.ValueString(), Queues: []string{state.Name.ValueString()}, NotPointedAt: true,
		OwnBindings: objects.Bindings, DeleteNonEmpty: deleteAnyway(ctx, req.Private, state.DeleteNonEmpty),
	}, objects.Exchanges)
	if err != nil {
		addError(&resp.Diagnostics, fmt.Sprintf("Could not delete the %s", r.noun()), err)
		clearPassed(ctx, resp.Private, &resp.Diagnostics)
	}
}

func (r *deadEndResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	m := deadEndModel{partModel: nullPart(), Arguments: types.MapNull(types.StringType), Bindings: types.SetNull(bindingType)}
	id, topic, err := m.importPart(req.ID, "name")
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
