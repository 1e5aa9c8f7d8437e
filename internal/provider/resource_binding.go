package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const bindingTypeName = TypeName + "_rabbitmq_binding"

// bindingResource is one binding with typed arguments, or one whose
// destination is no topic.
type bindingResource struct{ configured }

var (
	_ resource.ResourceWithConfigure   = (*bindingResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*bindingResource)(nil)
	_ resource.ResourceWithImportState = (*bindingResource)(nil)
)

func newBindingResource() resource.Resource { return &bindingResource{} }

type bindingResourceModel struct {
	ID              types.String  `tfsdk:"id"`
	VHost           types.String  `tfsdk:"vhost"`
	Source          types.String  `tfsdk:"source"`
	Destination     types.String  `tfsdk:"destination"`
	DestinationType types.String  `tfsdk:"destination_type"`
	RoutingKey      types.String  `tfsdk:"routing_key"`
	Arguments       types.Dynamic `tfsdk:"arguments"`
	AdoptExisting   types.Bool    `tfsdk:"adopt_existing"`
}

func (*bindingResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = bindingTypeName
}

func (*bindingResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "One binding from an exchange to a queue or another exchange. A topic's plain bindings are easier written in the topic's own `bindings`; " +
			"this resource has typed arguments, as a headers exchange needs them. RabbitMQ cannot change a binding: changing anything replaces it.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The identifier the binding is imported by: `VHOST/SOURCE/DESTINATION_TYPE/DESTINATION?routing_key=...&arguments=...`, percent-encoded, the arguments as JSON.",
			},
			"vhost": schema.StringAttribute{
				Optional: true, Computed: true, Validators: vhostName(),
				MarkdownDescription: "The virtual host. Defaults to the provider's `rabbitmq.vhost`.",
			},
			"source": schema.StringAttribute{
				Required: true, Validators: bindingSource(),
				MarkdownDescription: "The exchange that messages come from.",
			},
			"destination": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The queue or exchange that messages go to.",
			},
			"destination_type": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("queue"), Validators: oneOf([]string{"queue", "exchange"}),
				MarkdownDescription: "What the destination is: `queue` (the default) or `exchange`.",
			},
			"routing_key": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(""),
				MarkdownDescription: "The routing key. Defaults to `\"\"`.",
			},
			"arguments": schema.DynamicAttribute{
				Optional:            true,
				MarkdownDescription: "Arguments, such as `{ \"x-match\" = \"all\", priority = 5 }`. Types are kept: a number stays a number and `\"5\"` a string.",
			},
			"adopt_existing": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "On create, take over the binding if it exists, instead of refusing. Defaults to `false`.",
			},
		},
	}
}

func (r *bindingResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.configure(req.ProviderData, &resp.Diagnostics)
}

// binding is the model as a binding; known is false while its arguments are not known.
func (m *bindingResourceModel) binding() (b topology.Binding, known bool, err error) {
	args, known, err := dynamicArguments(m.Arguments)
	return topology.Binding{
		Source: m.Source.ValueString(), Destination: m.Destination.ValueString(), DestinationType: m.DestinationType.ValueString(),
		RoutingKey: m.RoutingKey.ValueString(), Arguments: args,
	}, known, err
}

func (m *bindingResourceModel) importID(args topology.Arguments) string {
	params := map[string]string{"routing_key": m.RoutingKey.ValueString()}
	if len(args) > 0 {
		params["arguments"] = topology.CanonicalJSON(args)
	}
	return importID{
		segments: []string{m.VHost.ValueString(), m.Source.ValueString(), m.DestinationType.ValueString(), m.Destination.ValueString()}, params: params,
	}.String()
}

func (r *bindingResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	config, plan, state := planModels[bindingResourceModel](ctx, req, &resp.Diagnostics)
	if plan == nil || resp.Diagnostics.HasError() {
		return
	}
	b, known, err := plan.binding()
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("arguments"), "Invalid arguments", sentence(err))
		return
	}
	if state == nil {
		plan.VHost = r.rt.plannedVHost(config.VHost, nil, &resp.Diagnostics)
	} else {
		plan.VHost = r.rt.plannedVHost(config.VHost, &state.VHost, &resp.Diagnostics)
		replaceChanged(resp, map[string][2]attr.Value{
			"vhost": {state.VHost, plan.VHost}, "source": {state.Source, plan.Source}, "destination": {state.Destination, plan.Destination},
			"destination_type": {state.DestinationType, plan.DestinationType}, "routing_key": {state.RoutingKey, plan.RoutingKey},
		})
		if have, _, err := state.binding(); err != nil || !known || topology.CanonicalJSON(have.Arguments) != topology.CanonicalJSON(b.Arguments) {
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root("arguments"))
		}
	}
	plan.ID = types.StringUnknown()
	if known && allKnown([]attr.Value{plan.VHost, plan.Source, plan.Destination, plan.DestinationType, plan.RoutingKey}) {
		plan.ID = types.StringValue(plan.importID(b.Arguments))
		if state == nil {
			r.warnOfExisting(ctx, plan, b, &resp.Diagnostics)
		}
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// warnOfExisting says that a binding that is to be created is there.
func (r *bindingResource) warnOfExisting(ctx context.Context, plan *bindingResourceModel, b topology.Binding, diags *diag.Diagnostics) {
	view, err := r.rt.view()
	if err != nil {
		r.rt.sayUnchecked(diags, err)
		return
	}
	if !r.rt.asksLive(false) || r.rt.wasSeen(objectKey("binding", plan.VHost.ValueString(), plan.ID.ValueString())) {
		return
	}
	found, err := findBinding(ctx, view, plan.VHost.ValueString(), b)
	if err != nil {
		r.rt.sayUnchecked(diags, err)
		return
	}
	if !found {
		return
	}
	fate := "Apply will refuse to create it, and change nothing; it may belong to a topic's bindings, or to another resource.\nTo manage it from here on, import it:\n" +
		createRequest{resourceType: bindingTypeName, importID: plan.ID.ValueString()}.importBlock() + "\nor set adopt_existing = true."
	summary := fmt.Sprintf("Binding from exchange %q to %q exists already", b.Source, b.Destination)
	if plan.AdoptExisting.ValueBool() {
		fate = "adopt_existing is true: apply takes it over."
		summary = fmt.Sprintf("Binding from exchange %q to %q exists and is adopted", b.Source, b.Destination)
	}
	diags.AddWarning(summary, fmt.Sprintf("In vhost %q there is a binding with routing key %q and arguments %s. %s",
		plan.VHost.ValueString(), b.RoutingKey, topology.CanonicalJSON(b.Arguments), fate))
}

func (r *bindingResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer bindingForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	var plan bindingResourceModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	if err := r.create(ctx, &plan); err != nil {
		addError(&resp.Diagnostics, "Could not create the binding", err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *bindingResource) create(ctx context.Context, plan *bindingResourceModel) error {
	admin, err := r.rt.admin()
	if err != nil {
		return err
	}
	if plan.VHost.IsUnknown() {
		plan.VHost = r.rt.vhost
	}
	b, _, err := plan.binding()
	if err != nil {
		return err
	}
	plan.ID = types.StringValue(plan.importID(b.Arguments))
	defer r.rt.locks.lock(plan.ID.ValueString(), objectKey("queue", plan.VHost.ValueString(), b.Destination))() // which may be migrating
	found, err := findBinding(ctx, admin, plan.VHost.ValueString(), b)
	if err != nil && !errors.Is(err, rabbitmqadmin.ErrNotFound) {
		return err
	}
	if found && !plan.AdoptExisting.ValueBool() {
		return fmt.Errorf("the binding from exchange %q to %s %q with key %q in vhost %q exists already, so it was not created and nothing was changed; "+
			"it may belong to a topic's bindings, or to another resource.\nTo manage it from here on, import it:\n%s\nor set adopt_existing = true",
			b.Source, b.DestinationType, b.Destination, b.RoutingKey, plan.VHost.ValueString(),
			createRequest{resourceType: bindingTypeName, importID: plan.ID.ValueString()}.importBlock())
	}
	if found {
		return nil
	}
	return admin.Bind(ctx, plan.VHost.ValueString(), b)
}

// atSwitch is where a binding of a queue is as long as the queue is migrated, and after a migration that was interrupted: it
// returns when that is finished.
func atSwitch(b topology.Binding) topology.Binding {
	b.Destination, b.DestinationType = topology.Queue{Name: b.Destination}.Migrating().Switch, topology.BindingToExchange
	return b
}

// findBinding reports whether a binding exists, if need be at the switch. [rabbitmqadmin.ErrNotFound] says that its exchange
// does not.
func findBinding(ctx context.Context, admin broker, vhost string, b topology.Binding) (bool, error) {
	source, _, err := admin.ExchangeBindings(ctx, vhost, b.Source)
	if err != nil {
		return false, err
	}
	missing, _ := topology.DiffBindings([]topology.Binding{b}, source)
	if len(missing) > 0 && b.DestinationType == topology.BindingToQueue {
		missing, _ = topology.DiffBindings([]topology.Binding{atSwitch(b)}, source)
	}
	return len(missing) == 0, nil
}

func (r *bindingResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	defer bindingForm.identify(ctx, &req.State, resp.Identity, &resp.Diagnostics)
	var state bindingResourceModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	admin, ok := r.rt.reader(&resp.Diagnostics)
	if !ok {
		return
	}
	b, _, err := state.binding()
	if addError(&resp.Diagnostics, "Could not read the binding", err); err != nil {
		return
	}
	r.rt.see(objectKey("binding", state.VHost.ValueString(), state.ID.ValueString()))
	found, err := findBinding(ctx, admin, state.VHost.ValueString(), b)
	if err != nil && !errors.Is(err, rabbitmqadmin.ErrNotFound) {
		addError(&resp.Diagnostics, "Could not read the binding", err)
		return
	}
	if !found {
		resp.State.RemoveResource(ctx)
	}
}

func (r *bindingResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer bindingForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	var plan bindingResourceModel
	// What can change in place concerns later applies only.
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

func (r *bindingResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state bindingResourceModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	admin, err := r.rt.admin()
	if err == nil {
		var b topology.Binding
		if b, _, err = state.binding(); err == nil {
			defer r.rt.locks.lock(objectKey("queue", state.VHost.ValueString(), b.Destination))() // which may be migrating
			err = admin.Unbind(ctx, state.VHost.ValueString(), b)
		}
		if err == nil && b.DestinationType == topology.BindingToQueue {
			err = admin.Unbind(ctx, state.VHost.ValueString(), atSwitch(b))
		}
	}
	addError(&resp.Diagnostics, "Could not delete the binding", err)
}

func (r *bindingResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	defer bindingForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	if !r.canImport(&resp.Diagnostics) {
		return
	}
	id, err := parseImportID(bindingForm.importText(ctx, req, &resp.Diagnostics), "VHOST/SOURCE/DESTINATION_TYPE/DESTINATION", "routing_key", "arguments")
	if addError(&resp.Diagnostics, "Invalid import id", err); err != nil {
		return
	}
	m := bindingResourceModel{
		VHost: types.StringValue(id.segments[0]), Source: types.StringValue(id.segments[1]),
		DestinationType: types.StringValue(id.segments[2]), Destination: types.StringValue(id.segments[3]),
		RoutingKey: types.StringValue(id.params["routing_key"]), Arguments: types.DynamicNull(), AdoptExisting: types.BoolValue(false),
	}
	if text := id.params["arguments"]; text != "" {
		m.Arguments, err = dynamicOf(text)
		if addError(&resp.Diagnostics, "Invalid import id", err); err != nil {
			return
		}
	}
	b, _, err := m.binding()
	if err == nil && b.DestinationType != topology.BindingToQueue && b.DestinationType != topology.BindingToExchange {
		err = fmt.Errorf("import id %q: the destination's type is %q; it is %q or %q", id, b.DestinationType, topology.BindingToQueue, topology.BindingToExchange)
	}
	if addError(&resp.Diagnostics, "Invalid import id", err); err != nil {
		return
	}
	m.ID = types.StringValue(m.importID(b.Arguments))
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
