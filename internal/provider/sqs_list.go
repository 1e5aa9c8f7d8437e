package provider

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// sqsListResource finds the resources of one type that an account has in a region, for terraform query: by the names that a
// convention gives queues, whoever made them.
type sqsListResource struct {
	configured
	managed managedResource
	form    identityForm
	// description is the documentation's.
	description string
	role        topology.Role
}

var (
	_ list.ListResourceWithConfigure = (*sqsListResource)(nil)

	_ managedResource = (*sqsTopicResource)(nil)
	_ managedResource = (*sqsDeadEndResource)(nil)
)

type sqsListModel struct {
	NamePrefix    types.String `tfsdk:"name_prefix"`
	Convention    types.String `tfsdk:"convention"`
	ConsumerGroup types.String `tfsdk:"consumer_group"`
}

// sqsListResources are the lists of queues on SQS.
func sqsListResources() []func() list.ListResource {
	of := func(managed managedResource, form identityForm, role topology.Role, description string) func() list.ListResource {
		return func() list.ListResource {
			return &sqsListResource{managed: managed, form: form, role: role, description: description + " Queues are recognised by their names alone."}
		}
	}
	return []func() list.ListResource{
		of(&sqsTopicResource{}, sqsTopicForm, topology.RoleWork, "The topics of an account in a region: queues that have a dead-letter or a parked queue beside them as the convention names it."),
		of(&sqsDeadEndResource{role: topology.RoleDeadLetter}, sqsDeadEndForm, topology.RoleDeadLetter, "The dead-letter queues of an account in a region, as the convention names them."),
		of(&sqsDeadEndResource{role: topology.RoleParked}, sqsDeadEndForm, topology.RoleParked, "The parked queues of an account in a region, as the convention names them."),
	}
}

func (l *sqsListResource) Metadata(ctx context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	l.managed.Metadata(ctx, req, resp)
}

func (l *sqsListResource) Configure(ctx context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	l.configure(req.ProviderData, &resp.Diagnostics)
	l.managed.Configure(ctx, req, resp)
}

func (l *sqsListResource) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = schema.Schema{MarkdownDescription: l.description, Attributes: map[string]schema.Attribute{
		"name_prefix": schema.StringAttribute{Optional: true, MarkdownDescription: "What the names of the queues start with. SQS lists at most 1,000 at a time: a prefix saves requests."},
		"convention": schema.StringAttribute{
			Optional: true, Validators: oneOf(topology.SQSConventions()),
			MarkdownDescription: "The naming scheme that is looked for. Defaults to the provider's.",
		},
		"consumer_group": schema.StringAttribute{
			Optional: true, MarkdownDescription: "The consumer group that is looked for, under the `shove` convention. Defaults to the provider's.",
		},
	}}
}

func (l *sqsListResource) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diags diag.Diagnostics
	found := l.find(ctx, req.Config, &diags)
	if diags.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diags)
		return
	}
	stream.Results = func(push func(list.ListResult) bool) {
		for i, one := range found {
			if req.Limit > 0 && int64(i) >= req.Limit || !push(l.result(ctx, req, one)) {
				return
			}
		}
	}
}

// sqsFound is a queue that a list found.
type sqsFound struct{ id, name string }

// find looks through the names of the account's queues.
func (l *sqsListResource) find(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) []sqsFound {
	var m sqsListModel
	if diags.Append(config.Get(ctx, &m)...); diags.HasError() {
		return nil
	}
	part := nullSQSPart()
	part.Convention, part.ConsumerGroup = m.Convention, m.ConsumerGroup
	place, ok := l.rt.sqsReader(ctx, diags)
	if !ok || !part.resolve(l.rt, nil) {
		if !diags.HasError() {
			addError(diags, "Could not list", errSQSUnknown)
		}
		return nil
	}
	names, err := place.client.Names(ctx, m.NamePrefix.ValueString())
	if addError(diags, "Could not list", err); err != nil {
		return nil
	}
	var found []sqsFound
	for _, name := range names {
		topic, role, fifo, ok := topology.SQSTopicOf(topology.Convention(part.Convention.ValueString()), part.ConsumerGroup.ValueString(), name)
		if !ok || role != l.role {
			continue
		}
		of := part
		of.FIFO = types.BoolValue(fifo)
		if id := of.identityOf(types.StringValue(topic)); role == topology.RoleWork &&
			!slices.Contains(names, id.DeadLetterQueueName()) && !slices.Contains(names, id.ParkedQueueName()) {
			continue // a queue, and no topic that can be told
		}
		found = append(found, sqsFound{id: sqsID(types.StringValue(place.where.ARN(name)), of.params()), name: name})
	}
	return found
}

// result is one resource: what identifies it and, where that is asked for, what an import of it would have in state.
func (l *sqsListResource) result(ctx context.Context, req list.ListRequest, one sqsFound) list.ListResult {
	result := req.NewListResult(ctx)
	result.DisplayName = one.name
	l.form.identifyAs(ctx, one.id, result.Identity, &result.Diagnostics)
	if req.IncludeResource {
		includeResource(ctx, l.managed, one.id, &result)
	}
	return result
}
