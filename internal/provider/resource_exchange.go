package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const exchangeTypeName = TypeName + "_rabbitmq_exchange"

// exchangeResource is an exchange that messages are published to; those of the
// retry topology belong to the resources that need them.
type exchangeResource struct{ configured }

var (
	_ resource.ResourceWithConfigure   = (*exchangeResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*exchangeResource)(nil)
	_ resource.ResourceWithImportState = (*exchangeResource)(nil)
)

func newExchangeResource() resource.Resource { return &exchangeResource{} }

type exchangeModel struct {
	ID             types.String  `tfsdk:"id"`
	VHost          types.String  `tfsdk:"vhost"`
	Name           types.String  `tfsdk:"name"`
	Type           types.String  `tfsdk:"type"`
	Durable        types.Bool    `tfsdk:"durable"`
	AutoDelete     types.Bool    `tfsdk:"auto_delete"`
	Internal       types.Bool    `tfsdk:"internal"`
	ExtraArguments types.Dynamic `tfsdk:"extra_arguments"`
	Arguments      types.Map     `tfsdk:"arguments"`
	DeleteInUse    types.Bool    `tfsdk:"delete_in_use"`
	AdoptExisting  types.Bool    `tfsdk:"adopt_existing"`
}

func (*exchangeResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = exchangeTypeName
}

func (*exchangeResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "An exchange that applications publish to. The exchanges of a retry topology are declared by the resources that need them.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{Computed: true, MarkdownDescription: "The identifier the exchange is imported by: `VHOST/NAME`, percent-encoded."},
			"vhost": schema.StringAttribute{
				Optional: true, Computed: true, Validators: vhostName(),
				MarkdownDescription: "The virtual host. Defaults to the provider's `rabbitmq.vhost`. Changing it replaces the exchange.",
			},
			"name": schema.StringAttribute{
				Required: true, Validators: nameOf("exchange"),
				MarkdownDescription: "The exchange's name. Changing it replaces the exchange.",
			},
			"type": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The exchange's type: `direct`, `topic`, `fanout`, `headers`, or one that a plugin brings. Changing it replaces the exchange.",
			},
			"durable": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				MarkdownDescription: "Whether the exchange survives a restart of the broker. Defaults to `true`. Changing it replaces the exchange.",
			},
			"auto_delete": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Whether the broker deletes the exchange with its last binding. Defaults to `false`. Changing it replaces the exchange.",
			},
			"internal": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Whether only other exchanges may publish to it. Defaults to `false`. Changing it replaces the exchange.",
			},
			"extra_arguments": schema.DynamicAttribute{
				Optional:            true,
				MarkdownDescription: "Arguments, such as `{ \"alternate-exchange\" = \"unrouted\" }`; types are kept. Changing one replaces the exchange.",
			},
			"arguments": schema.MapAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "Every argument of the exchange as canonical JSON, by name: what the broker has, and in a plan what the configuration says. A difference replaces the exchange.",
			},
			"delete_in_use": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Delete or replace the exchange although bindings or dead-letter arguments still name it: what is published to it then has nowhere to go. " +
					"A replacement gives the bindings back. Defaults to `false`.",
			},
			"adopt_existing": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "On create, take over the exchange if it exists just like this, instead of refusing. Defaults to `false`.",
			},
		},
	}
}

func (r *exchangeResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.configure(req.ProviderData, &resp.Diagnostics)
}

func (m *exchangeModel) importID() string {
	return importID{segments: []string{m.VHost.ValueString(), m.Name.ValueString()}}.String()
}

// live is the exchange as the model describes it.
func (m *exchangeModel) live(args topology.Arguments) rabbitmqadmin.LiveExchange {
	return rabbitmqadmin.LiveExchange{
		Name: m.Name.ValueString(), VHost: m.VHost.ValueString(), Type: m.Type.ValueString(), Durable: m.Durable.ValueBool(),
		AutoDelete: m.AutoDelete.ValueBool(), Internal: m.Internal.ValueBool(), Arguments: args,
	}
}

func (r *exchangeResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	config, plan, state := planModels[exchangeModel](ctx, req, &resp.Diagnostics)
	if plan == nil || resp.Diagnostics.HasError() {
		return
	}
	args, known, err := dynamicArguments(plan.ExtraArguments)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("extra_arguments"), "Invalid extra arguments", sentence(err))
	}
	replacing := state == nil && isSecondPlan(ctx, req.Private)
	passToDelete(ctx, resp.Private, plan.DeleteInUse, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	var shown map[string]string
	if state == nil {
		plan.VHost = r.rt.plannedVHost(config.VHost, nil, &resp.Diagnostics)
	} else {
		plan.VHost = r.rt.plannedVHost(config.VHost, &state.VHost, &resp.Diagnostics)
		replaceChanged(resp, map[string][2]attr.Value{
			"vhost": {state.VHost, plan.VHost}, "name": {state.Name, plan.Name}, "type": {state.Type, plan.Type},
			"durable": {state.Durable, plan.Durable}, "auto_delete": {state.AutoDelete, plan.AutoDelete}, "internal": {state.Internal, plan.Internal},
		})
		replaceUnknown(resp, map[string]attr.Value{"extra_arguments": plan.ExtraArguments})
		shown = mapOf(ctx, state.Arguments)
	}
	plan.ID, plan.Arguments = types.StringUnknown(), types.MapUnknown(types.StringType)
	if !plan.VHost.IsUnknown() && !plan.Name.IsUnknown() {
		plan.ID = types.StringValue(plan.importID())
	}
	if known {
		differences := exchangeDifferences(args, shown)
		for _, d := range differences {
			resp.RequiresReplace = append(resp.RequiresReplace, path.Root("arguments").AtMapKey(d.Key))
		}
		plan.Arguments = stringMap(plannedArguments(args, shown, differences))
	}
	if known && !plan.ID.IsUnknown() && !plan.Type.IsUnknown() && state == nil && !replacing {
		r.warnOfExisting(ctx, plan, args, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// warnOfExisting says that an exchange that is to be created is there.
func (r *exchangeResource) warnOfExisting(ctx context.Context, plan *exchangeModel, args topology.Arguments, diags *diag.Diagnostics) {
	vhost, name := plan.VHost.ValueString(), plan.Name.ValueString()
	view, err := r.rt.view()
	if err != nil {
		r.rt.sayUnchecked(diags, err)
		return
	}
	if !r.rt.asksLive(false) || r.rt.wasSeen(objectKey("exchange", vhost, name)) {
		return
	}
	live, err := view.Exchange(ctx, vhost, name)
	want := plan.live(args)
	switch {
	case errors.Is(err, rabbitmqadmin.ErrNotFound):
	case err != nil:
		r.rt.sayUnchecked(diags, err)
	case !plan.AdoptExisting.ValueBool():
		diags.AddWarning(fmt.Sprintf("Exchange %q exists already", name),
			fmt.Sprintf("In vhost %q it is %s, and the configuration says %s. Apply will refuse to create it, and change nothing. It may have been made by hand, by an application, or by another resource of this name.\n"+
				"To manage it from here on, import it:\n%s\nor set adopt_existing = true.", vhost, describeExchange(live), describeExchange(want),
				createRequest{resourceType: exchangeTypeName, importID: plan.importID()}.importBlock()))
	case describeExchange(live) != describeExchange(want):
		diags.AddWarning(fmt.Sprintf("Exchange %q exists and cannot be adopted", name),
			fmt.Sprintf("In vhost %q it is %s, and the configuration says %s: RabbitMQ cannot change an exchange, and apply will refuse it.", vhost, describeExchange(live), describeExchange(want)))
	default:
		diags.AddWarning(fmt.Sprintf("Exchange %q exists and is adopted", name),
			fmt.Sprintf("adopt_existing is true: apply takes over exchange %q in vhost %q with its bindings.", name, vhost))
	}
}

// exchangeDifferences are the arguments in which an exchange differs from what the broker shows; none where there is
// none to compare with.
func exchangeDifferences(want topology.Arguments, shown map[string]string) []topology.Difference {
	if shown == nil {
		return nil
	}
	live, err := topology.ParseCanonical(shown)
	if err != nil {
		live = nil // not written by this provider: everything is missing, and shows as drift
	}
	return topology.DiffArguments(want, live)
}

func (r *exchangeResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer exchangeForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	var plan exchangeModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	if err := r.create(ctx, &plan); err != nil {
		addError(&resp.Diagnostics, "Could not create the exchange", err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *exchangeResource) create(ctx context.Context, plan *exchangeModel) error {
	admin, err := r.rt.admin()
	if err != nil {
		return err
	}
	if plan.VHost.IsUnknown() {
		plan.VHost = r.rt.vhost
	}
	plan.ID = types.StringValue(plan.importID())
	args, _, err := dynamicArguments(plan.ExtraArguments)
	if err != nil {
		return err
	}
	if plan.Arguments.IsUnknown() {
		plan.Arguments = stringMap(args.Canonical())
	}
	vhost, name := plan.VHost.ValueString(), plan.Name.ValueString()
	key := objectKey("exchange", vhost, name)
	defer r.rt.locks.lock(key)()
	want := plan.live(args)
	live, err := admin.Exchange(ctx, vhost, name)
	switch {
	case errors.Is(err, rabbitmqadmin.ErrNotFound):
		if err := admin.CreateExchange(ctx, vhost, want); err != nil {
			return err
		}
		r.rt.noteCreated(key)
	case err != nil:
		return err
	case !plan.AdoptExisting.ValueBool():
		return fmt.Errorf("exchange %q in vhost %q exists already as %s, so it was not created and nothing was changed.\n"+
			"It may have been made by hand, by an application, or by another resource of this name; create_before_destroy, which a resource also inherits, "+
			"creates the new exchange while the old one is still there.\nTo manage it from here on, import it:\n%s\nor set adopt_existing = true",
			name, vhost, describeExchange(live), createRequest{resourceType: exchangeTypeName, importID: plan.importID()}.importBlock())
	case describeExchange(live) != describeExchange(want):
		return fmt.Errorf("exchange %q in vhost %q exists and cannot be adopted: it is %s and the configuration says %s; RabbitMQ cannot change an exchange",
			name, vhost, describeExchange(live), describeExchange(want))
	}
	for _, b := range r.rt.takeCarried(key) {
		if err := admin.Bind(ctx, vhost, b); err != nil {
			return fmt.Errorf("exchange %q was replaced and one of its bindings could not be given back: %w", name, err)
		}
	}
	return nil
}

// describeExchange writes everything in which two exchanges of one name can differ.
func describeExchange(e rabbitmqadmin.LiveExchange) string {
	traits := []string{e.Type, map[bool]string{true: "durable", false: "transient"}[e.Durable]}
	if e.AutoDelete {
		traits = append(traits, "auto-delete")
	}
	if e.Internal {
		traits = append(traits, "internal")
	}
	if len(e.Arguments) > 0 {
		traits = append(traits, "with "+topology.CanonicalJSON(e.Arguments))
	}
	return strings.Join(traits, ", ")
}

func (r *exchangeResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	defer exchangeForm.identify(ctx, &req.State, resp.Identity, &resp.Diagnostics)
	var state exchangeModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	admin, ok := r.rt.reader(&resp.Diagnostics)
	if !ok {
		return
	}
	r.rt.see(objectKey("exchange", state.VHost.ValueString(), state.Name.ValueString()))
	live, err := admin.Exchange(ctx, state.VHost.ValueString(), state.Name.ValueString())
	if errors.Is(err, rabbitmqadmin.ErrNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if addError(&resp.Diagnostics, "Could not read the exchange", err); err != nil {
		return
	}
	state.ID = types.StringValue(state.importID())
	state.Type, state.Durable = types.StringValue(live.Type), types.BoolValue(live.Durable)
	state.AutoDelete, state.Internal = types.BoolValue(live.AutoDelete), types.BoolValue(live.Internal)
	if state.Arguments.IsNull() && len(live.Arguments) > 0 {
		// It is being imported: whatever it has must have been asked for.
		state.ExtraArguments = types.DynamicValue(attrValue(map[string]any(live.Arguments)))
	}
	state.Arguments = stringMap(live.Arguments.Canonical())
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

func (r *exchangeResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer exchangeForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	var plan exchangeModel
	// What can change in place concerns later applies only.
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); !resp.Diagnostics.HasError() {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

func (r *exchangeResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state exchangeModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	err := r.delete(ctx, &state, deleteAnyway(ctx, req.Private, state.DeleteInUse))
	if err != nil {
		addError(&resp.Diagnostics, "Could not delete the exchange", err)
		clearPassed(ctx, resp.Private, &resp.Diagnostics)
	}
}

func (r *exchangeResource) delete(ctx context.Context, state *exchangeModel, inUse bool) error {
	admin, err := r.rt.admin()
	if err != nil {
		return err
	}
	vhost, name := state.VHost.ValueString(), state.Name.ValueString()
	key := objectKey("exchange", vhost, name)
	defer r.rt.locks.lock(key)()
	if inUse {
		source, destination, err := admin.ExchangeBindings(ctx, vhost, name)
		if err != nil && !errors.Is(err, rabbitmqadmin.ErrNotFound) {
			return err
		}
		if err := admin.DeleteExchange(ctx, vhost, name); err != nil {
			return err
		}
		r.rt.carry(key, append(source, destination...))
		return nil
	}
	deleted, usedBy, err := admin.DeleteExchangeIfUnused(ctx, vhost, name)
	if err != nil {
		return err
	}
	if !deleted && len(usedBy) > 0 {
		return fmt.Errorf("exchange %q in vhost %q is still used, so it was not deleted and nothing was changed:\n  %s\n"+
			"Remove these first, or set delete_in_use = true, in an apply of its own before a destroy: messages published to the exchange then have nowhere to go",
			name, vhost, strings.Join(usedBy, "\n  "))
	}
	r.rt.carry(key, nil)
	return nil
}

func (r *exchangeResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	defer exchangeForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	if !r.canImport(&resp.Diagnostics) {
		return
	}
	id, err := parseImportID(exchangeForm.importText(ctx, req, &resp.Diagnostics), "VHOST/NAME")
	if addError(&resp.Diagnostics, "Invalid import id", err); err != nil {
		return
	}
	m := exchangeModel{
		ID: types.StringValue(id.String()), VHost: types.StringValue(id.segments[0]), Name: types.StringValue(id.segments[1]),
		ExtraArguments: types.DynamicNull(), Arguments: types.MapNull(types.StringType),
		DeleteInUse: types.BoolValue(false), AdoptExisting: types.BoolValue(false),
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
