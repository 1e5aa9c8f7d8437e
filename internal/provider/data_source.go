package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// dataSource is what the data sources have in common: they read through the view that the run shares.
type dataSource struct{ configured }

func (d *dataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.configure(req.ProviderData, &resp.Diagnostics)
}

// view returns the view of the broker, without which a data source has nothing to say.
func (d *dataSource) view(diags *diag.Diagnostics) (*rabbitmqadmin.View, bool) {
	view, err := d.rt.view()
	addError(diags, "Could not read from RabbitMQ", err)
	return view, err == nil
}

// messagesType is how many messages a queue holds.
var messagesType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"total": types.Int64Type, "ready": types.Int64Type, "unacknowledged": types.Int64Type, "dead_lettering": types.Int64Type,
}}

func messagesAttribute() schema.Attribute {
	count := func(text string) schema.Attribute {
		return schema.Int64Attribute{Computed: true, MarkdownDescription: text}
	}
	return schema.SingleNestedAttribute{
		Computed: true,
		MarkdownDescription: "How many messages the queue holds, as the broker's counts have it, which are up to 5 seconds old on a quorum queue. " +
			"Null where the broker has none yet: on a quorum queue for some seconds after it was created, and while it has no leader.",
		Attributes: map[string]schema.Attribute{
			"total":          count("All of them. A queue is empty when this is 0, and not when `ready` is."),
			"ready":          count("Those that wait for a consumer."),
			"unacknowledged": count("Those that a consumer holds; retries that wait in place are among them."),
			"dead_lettering": count("Those that wait to be dead-lettered: their target is missing or takes none."),
		},
	}
}

// messagesOf shows a depth; one that is not known is null.
func messagesOf(d *rabbitmqadmin.Depth) types.Object {
	if d == nil || !d.Exists || !d.Known {
		return types.ObjectNull(messagesType.AttrTypes)
	}
	return types.ObjectValueMust(messagesType.AttrTypes, map[string]attr.Value{
		"total": types.Int64Value(d.Total), "ready": types.Int64Value(d.Ready), "unacknowledged": types.Int64Value(d.Unacknowledged),
		"dead_lettering": types.Int64Value(max(0, d.Total-d.Ready-d.Unacknowledged)),
	})
}

// overrideType is what a policy makes of one argument.
var overrideType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"key": types.StringType, "argument": types.StringType, "effective": types.StringType, "policy": types.StringType, "operator": types.BoolType,
}}

func overridesAttribute(text string) schema.Attribute {
	return schema.ListNestedAttribute{
		Computed: true, MarkdownDescription: text,
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"key":       schema.StringAttribute{Computed: true, MarkdownDescription: "The argument's name, such as `x-message-ttl`."},
			"argument":  schema.StringAttribute{Computed: true, MarkdownDescription: "What the queue's own arguments say, as canonical JSON; null where they do not have it."},
			"effective": schema.StringAttribute{Computed: true, MarkdownDescription: "What applies, as canonical JSON."},
			"policy":    schema.StringAttribute{Computed: true, MarkdownDescription: "The name of the policy that decides."},
			"operator":  schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether it is an operator policy."},
		}},
	}
}

func overridesOf(effects []topology.Effect) types.List {
	elements := make([]attr.Value, len(effects))
	for i, e := range effects {
		elements[i] = types.ObjectValueMust(overrideType.AttrTypes, map[string]attr.Value{
			"key": types.StringValue(e.Key), "argument": optionalText(e.Argument), "effective": types.StringValue(e.Effective),
			"policy": types.StringValue(e.Policy.Name), "operator": types.BoolValue(e.Policy.Operator),
		})
	}
	return types.ListValueMust(overrideType, elements)
}

// optionalText is null where there is no text.
func optionalText(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}

// whenRead says when the data sources are read, for their documentation.
const whenRead = "\n\nIt is read while planning where what it is asked for is known by then; where that depends on something that is still to be created or changed, " +
	"and in a configuration that makes it wait with `depends_on`, it is read during the apply. All data sources and resources of a run share their reads of the broker, so that many of them cost little."
