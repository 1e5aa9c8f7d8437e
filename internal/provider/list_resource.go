package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// listResource finds the resources of one type that a vhost has, for terraform query: by the names and arguments that a
// convention gives them, whoever made them.
type listResource struct {
	configured
	// managed is the resource that is listed.
	managed managedResource
	form    identityForm
	// description is the documentation's.
	description string
	// found are the import ids of what is there.
	found func(ctx context.Context, admin *rabbitmqadmin.View, like topology.Identity) ([]importID, error)
	// byConvention: it is recognised by a convention, and not for what it is.
	byConvention bool
}

// managedResource is a resource that can be imported, and so listed.
type managedResource interface {
	resource.ResourceWithConfigure
	resource.ResourceWithImportState
}

var (
	_ list.ListResourceWithConfigure = (*listResource)(nil)

	_ managedResource = (*topicResource)(nil)
	_ managedResource = (*holdLadderResource)(nil)
	_ managedResource = (*deadEndResource)(nil)
	_ managedResource = (*exchangeResource)(nil)
)

type listModel struct {
	VHost         types.String `tfsdk:"vhost"`
	Convention    types.String `tfsdk:"convention"`
	ConsumerGroup types.String `tfsdk:"consumer_group"`
}

// listResources are the lists that the provider has.
func listResources() []func() list.ListResource {
	byConvention := func(managed managedResource, form identityForm, what string, is func(topology.Recognised) (importID, bool)) func() list.ListResource {
		return func() list.ListResource {
			return &listResource{managed: managed, form: form, description: what, found: recognised(is), byConvention: true}
		}
	}
	return []func() list.ListResource{
		byConvention(&topicResource{}, topicForm, "The topics of a vhost: work queues that have a dead-letter queue, a parked queue or hold queues beside them as the convention names them, or dead-letter as it has them.",
			func(r topology.Recognised) (importID, bool) { return idOf(r.Identity, ""), r.WorkQueue }),
		byConvention(&holdLadderResource{}, ladderForm, "The hold ladders of a vhost: the hold queues of each topic, as the convention names them, from which messages go home to it.",
			func(r topology.Recognised) (importID, bool) { return idOf(r.Identity, ""), r.Ladder }),
		byConvention(&deadEndResource{role: topology.RoleDeadLetter}, deadEndForm, "The dead-letter queues of a vhost: as the convention names them, or whatever a topic's work queue dead-letters to.",
			func(r topology.Recognised) (importID, bool) {
				return idOf(r.Identity, unlessDerived(r.DeadLetterQueue, r.DeadLetterQueueName())), r.DeadLetterQueue != ""
			}),
		byConvention(&deadEndResource{role: topology.RoleParked}, deadEndForm, "The parked queues of a vhost, as the convention names them.",
			func(r topology.Recognised) (importID, bool) { return idOf(r.Identity, ""), r.ParkedQueue != "" }),
		func() list.ListResource {
			return &listResource{managed: &exchangeResource{}, form: exchangeForm, description: "The exchanges of a vhost, but for RabbitMQ's own.", found: exchanges}
		},
	}
}

// idOf is the import id of a part of a topic.
func idOf(id topology.Identity, name string) importID {
	part := partModel{Convention: types.StringValue(string(id.Convention)), ConsumerGroup: types.StringValue(id.ConsumerGroup)}
	params := part.params()
	params["name"] = name
	return importID{segments: []string{id.VHost, id.Topic}, params: params}
}

func unlessDerived(name, derived string) string {
	if name == derived {
		return ""
	}
	return name
}

// recognised finds those parts of topics that is says are there.
func recognised(is func(topology.Recognised) (importID, bool)) func(context.Context, *rabbitmqadmin.View, topology.Identity) ([]importID, error) {
	return func(ctx context.Context, admin *rabbitmqadmin.View, like topology.Identity) ([]importID, error) {
		queues, err := liveQueues(ctx, admin, like.VHost)
		if err != nil {
			return nil, err
		}
		var out []importID
		for _, r := range topology.RecogniseTopics(like, queues) {
			if id, there := is(r); there {
				out = append(out, id)
			}
		}
		return out, nil
	}
}

// exchanges are those of a vhost that anybody made.
func exchanges(ctx context.Context, admin *rabbitmqadmin.View, like topology.Identity) ([]importID, error) {
	all, err := admin.Exchanges(ctx, like.VHost)
	var out []importID
	for _, e := range all {
		if e.Name != "" && !strings.HasPrefix(e.Name, "amq.") {
			out = append(out, importID{segments: []string{like.VHost, e.Name}})
		}
	}
	return out, err
}

func (l *listResource) Metadata(ctx context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	l.managed.Metadata(ctx, req, resp)
}

func (l *listResource) Configure(ctx context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	l.configure(req.ProviderData, &resp.Diagnostics)
	l.managed.Configure(ctx, req, resp)
}

func (l *listResource) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	attributes := map[string]schema.Attribute{
		"vhost": schema.StringAttribute{Optional: true, Validators: vhostName(), MarkdownDescription: "The virtual host. Defaults to the provider's `rabbitmq.vhost`."},
	}
	if l.byConvention {
		attributes["convention"] = schema.StringAttribute{
			Optional: true, Validators: oneOf(topology.Conventions()),
			MarkdownDescription: "The naming and argument scheme that is looked for. Defaults to the provider's. Several conventions can recognise one queue: list by the one that its applications follow.",
		}
		attributes["consumer_group"] = schema.StringAttribute{
			Optional: true, Validators: nameOf("consumer group"),
			MarkdownDescription: "The consumer group that is looked for, under the `shove` convention. Defaults to the provider's.",
		}
	}
	resp.Schema = schema.Schema{MarkdownDescription: l.description, Attributes: attributes}
}

func (l *listResource) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diags diag.Diagnostics
	ids := l.ids(ctx, req.Config, &diags)
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = func(push func(list.ListResult) bool) {
		for i, id := range ids {
			if req.Limit > 0 && int64(i) >= req.Limit || !push(l.result(ctx, req, id)) {
				return
			}
		}
	}
}

// ids are the import ids of what is there, in order.
func (l *listResource) ids(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) []importID {
	var m listModel
	if l.byConvention {
		diags.Append(config.Get(ctx, &m)...)
	} else {
		var only struct {
			VHost types.String `tfsdk:"vhost"`
		}
		diags.Append(config.Get(ctx, &only)...)
		m.VHost = only.VHost
	}
	view, ok := l.rt.reader(diags)
	if !ok || diags.HasError() {
		return nil
	}
	part := partModel{VHost: m.VHost, Convention: m.Convention, ConsumerGroup: m.ConsumerGroup}
	if !part.resolve(l.rt, nil) {
		addError(diags, "Could not list", errUnknown)
		return nil
	}
	ids, err := l.found(ctx, view, part.identityOf(types.StringNull()))
	addError(diags, "Could not list", err)
	return ids
}

// result is one resource: what identifies it and, where that is asked for, what an import of it would have in state.
func (l *listResource) result(ctx context.Context, req list.ListRequest, id importID) list.ListResult {
	result := req.NewListResult(ctx)
	result.DisplayName = fmt.Sprintf("%s in vhost %s", id.segments[1], id.segments[0])
	if name := id.params["name"]; name != "" {
		result.DisplayName = fmt.Sprintf("%s of topic %s", name, result.DisplayName)
	}
	l.form.identifyAs(ctx, id.String(), result.Identity, &result.Diagnostics)
	if req.IncludeResource {
		includeResource(ctx, l.managed, id.String(), &result)
	}
	return result
}

// includeResource adds what an import of a resource would have in state.
func includeResource(ctx context.Context, managed managedResource, id string, result *list.ListResult) {
	imported := resource.ImportStateResponse{State: tfsdk.State{Raw: result.Resource.Raw, Schema: result.Resource.Schema}}
	managed.ImportState(ctx, resource.ImportStateRequest{ID: id}, &imported)
	read := resource.ReadResponse{State: imported.State, Diagnostics: imported.Diagnostics}
	if !read.Diagnostics.HasError() {
		managed.Read(ctx, resource.ReadRequest{State: imported.State}, &read)
	}
	result.Diagnostics.Append(read.Diagnostics...)
	result.Resource.Raw = read.State.Raw
}
