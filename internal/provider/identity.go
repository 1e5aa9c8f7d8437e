package provider

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// identityForm is what a resource is identified by: what its import id holds, as attributes of their own. Command lines
// that know identities (Terraform 1.12 and OpenTofu 1.12 on) can import by it, and a list yields it; older ones go on with
// the id alone.
type identityForm struct {
	// segments are the attributes that the import id always has, in its order, and params those that it may have.
	segments, params []identityPart
}

type identityPart struct{ name, description string }

var (
	vhostPart   = identityPart{"vhost", "The virtual host."}
	inTopic     = []identityPart{{"convention", "The naming and argument scheme. Defaults to redeliver, whatever the provider's is."}, {"consumer_group", "The consumer group, under the shove convention."}}
	topicForm   = identityForm{segments: []identityPart{vhostPart, {"name", "The topic's name."}}, params: inTopic}
	ladderForm  = identityForm{segments: []identityPart{vhostPart, {"topic", "The topic's name."}}, params: inTopic}
	deadEndForm = identityForm{
		segments: ladderForm.segments,
		params:   []identityPart{inTopic[0], inTopic[1], {"name", "The queue's name, where it is not the one that the convention derives from the topic."}},
	}
	exchangeForm = identityForm{segments: []identityPart{vhostPart, {"name", "The exchange's name."}}}
	bindingForm  = identityForm{
		segments: []identityPart{vhostPart, {"source", "The exchange that messages come from."}, {"destination_type", "What the destination is: queue or exchange."}, {"destination", "The queue or exchange that messages go to."}},
		params:   []identityPart{{"routing_key", "The routing key. Defaults to the empty one."}, {"arguments", "The binding's arguments, as a JSON object. Defaults to none."}},
	}
)

var (
	_ resource.ResourceWithIdentity = (*topicResource)(nil)
	_ resource.ResourceWithIdentity = (*holdLadderResource)(nil)
	_ resource.ResourceWithIdentity = (*deadEndResource)(nil)
	_ resource.ResourceWithIdentity = (*exchangeResource)(nil)
	_ resource.ResourceWithIdentity = (*bindingResource)(nil)
)

func (*topicResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = topicForm.schema()
}

func (*holdLadderResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = ladderForm.schema()
}

func (*deadEndResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = deadEndForm.schema()
}

func (*exchangeResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = exchangeForm.schema()
}

func (*bindingResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = bindingForm.schema()
}

func (f identityForm) schema() identityschema.Schema {
	attributes := map[string]identityschema.Attribute{}
	for _, part := range f.segments {
		attributes[part.name] = identityschema.StringAttribute{RequiredForImport: true, Description: part.description}
	}
	for _, part := range f.params {
		attributes[part.name] = identityschema.StringAttribute{OptionalForImport: true, Description: part.description}
	}
	return identityschema.Schema{Attributes: attributes}
}

// importText is the id of an import, which an identity may stand for.
func (f identityForm) importText(ctx context.Context, req resource.ImportStateRequest, diags *diag.Diagnostics) string {
	if req.ID != "" || req.Identity == nil {
		return req.ID
	}
	value := func(name string) string {
		var text types.String
		diags.Append(req.Identity.GetAttribute(ctx, path.Root(name), &text)...)
		return text.ValueString()
	}
	id := importID{params: map[string]string{}}
	for _, part := range f.segments {
		id.segments = append(id.segments, value(part.name))
	}
	for _, part := range f.params {
		id.params[part.name] = value(part.name)
	}
	return id.String()
}

// identify sets the identity of a resource from the id in its state. It is deferred by whatever reads or writes the state:
// where there is none, there is nothing to identify. A refresh takes the state that it was given, because even what is gone
// has to be identified.
func (f identityForm) identify(ctx context.Context, state *tfsdk.State, identity *tfsdk.ResourceIdentity, diags *diag.Diagnostics) {
	if identity == nil || state.Raw.IsNull() {
		return
	}
	var id types.String
	if diags.Append(state.GetAttribute(ctx, path.Root("id"), &id)...); id.ValueString() == "" {
		return
	}
	f.identifyAs(ctx, id.ValueString(), identity, diags)
}

// identifyAs sets an identity to what an import id says. The convention is written out, so that no default changes it.
func (f identityForm) identifyAs(ctx context.Context, text string, identity *tfsdk.ResourceIdentity, diags *diag.Diagnostics) {
	form, params := make([]string, len(f.segments)), make([]string, len(f.params))
	for i, part := range f.segments {
		form[i] = part.name
	}
	for i, part := range f.params {
		params[i] = part.name
	}
	id, err := parseImportID(text, strings.Join(form, "/"), params...)
	if err != nil {
		addError(diags, "Could not tell what identifies the resource", err)
		return
	}
	set := func(name string, value types.String) {
		diags.Append(identity.SetAttribute(ctx, path.Root(name), value)...)
	}
	for i, name := range form {
		set(name, types.StringValue(id.segments[i]))
	}
	for _, name := range params {
		value := id.params[name]
		if name == "convention" && value == "" {
			value = string(topology.Redeliver)
		}
		set(name, optionalText(value))
	}
}
