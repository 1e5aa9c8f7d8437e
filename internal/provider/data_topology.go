package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/internal/verify"
)

// topologyDataSource is a manifest held against the live broker.
type topologyDataSource struct{ dataSource }

var _ datasource.DataSourceWithConfigure = (*topologyDataSource)(nil)

func newTopologyDataSource() datasource.DataSource { return &topologyDataSource{} }

type topologyDataModel struct {
	Manifest types.String `tfsdk:"manifest"`
	VHost    types.String `tfsdk:"vhost"`
	Topic    types.String `tfsdk:"topic"`
	InOrder  types.Bool   `tfsdk:"in_order"`
	Objects  types.List   `tfsdk:"objects"`
	Unseen   types.List   `tfsdk:"unseen"`
}

var (
	differenceType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"key": types.StringType, "want": types.StringType, "live": types.StringType, "meaning": types.StringType, "explanation": types.StringType,
	}}
	verifiedType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"kind": types.StringType, "name": types.StringType, "role": types.StringType, "status": types.StringType,
		"differences": types.ListType{ElemType: differenceType}, "overridden_by": types.ListType{ElemType: overrideType},
		"consumers": types.Int64Type, "messages": messagesType,
	}}
)

func (*topologyDataSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = TypeName + "_rabbitmq_topology"
}

func (*topologyDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{Computed: true, MarkdownDescription: description}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A topic's manifest held against the live broker: every queue, exchange and binding that it needs, and whether each is there as the manifest says. " +
			"A `check` block can assert `in_order`, also in a configuration that owns none of the queues: the team of an application verifies what the platform team provisioned. " +
			"Nothing is changed, and a user with the `management` tag and read permission is enough; what that user is not shown is `unknown`, never missing, and `unseen` says why." + whenRead,
		Attributes: map[string]schema.Attribute{
			"manifest": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The manifest, as JSON: the `manifest` of a `redeliver_rabbitmq_topic`, or `file(...)` of one that was written to a file.",
			},
			"vhost": text("The virtual host that the manifest names."),
			"topic": text("The topic that the manifest describes."),
			"in_order": schema.BoolAttribute{
				Computed:            true,
				MarkdownDescription: "Whether every object was seen to be there as the manifest says. An object that is `unknown` makes it `false`.",
			},
			"objects": schema.ListNestedAttribute{
				Computed: true, MarkdownDescription: "Every object that the manifest needs: exchanges, queues, then bindings.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"kind":   text("What it is: `queue`, `exchange` or `binding`."),
					"name":   text("The name of a queue or exchange; of a binding, `SOURCE -> DESTINATION (ROUTING_KEY)`."),
					"role":   text("What a queue is for: `work`, `hold`, `dead_letter` or `parked`. A binding has its queue's. Null for what belongs to no single queue."),
					"status": text("`present` (there as the manifest says), `missing`, `drifted` (there, and messages fare otherwise) or `unknown` (the broker does not show it to this user)."),
					"differences": schema.ListNestedAttribute{
						Computed: true, MarkdownDescription: "In what it differs from the manifest. A hold queue that somebody consumes differs in `consumers`.",
						NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
							"key":         text("The argument or property."),
							"want":        text("What the manifest says, as canonical JSON; null where it does not have it."),
							"live":        text("What the broker has, as canonical JSON; null where it does not have it."),
							"meaning":     text("`changes_behaviour`, `unknown_argument` (nobody can say what it does), or `equal_in_effect`, which is no drift."),
							"explanation": text("What it means for messages, in a sentence."),
						}},
					},
					"overridden_by": overridesAttribute("The policies that have something else apply than the queue's arguments say, where the contract does not allow for it."),
					"consumers": schema.Int64Attribute{
						Computed:            true,
						MarkdownDescription: "How many consumers a queue has. Null for others, and where it is not known.",
					},
					"messages": messagesAttribute(),
				}},
			},
			"unseen": schema.ListAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "What the broker does not show to this user, with the reason. Empty where everything was seen.",
			},
		},
	}
}

func (d *topologyDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m topologyDataModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	manifest, err := topology.DecodeManifest([]byte(m.Manifest.ValueString()))
	if err == nil {
		err = manifest.RequireBroker(topology.BrokerRabbitMQ)
	}
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("manifest"), "Invalid manifest", sentence(err))
		return
	}
	view, ok := d.view(&resp.Diagnostics)
	if !ok {
		return
	}
	report, err := verify.Manifest(ctx, view, manifest)
	if addError(&resp.Diagnostics, "Could not hold the manifest against the broker", err); err != nil {
		return
	}
	m.VHost, m.Topic, m.InOrder = types.StringValue(report.VHost), types.StringValue(report.Topic), types.BoolValue(report.InOrder())
	objects := make([]attr.Value, len(report.Objects))
	for i, o := range report.Objects {
		objects[i] = verifiedObject(o)
	}
	m.Objects = types.ListValueMust(verifiedType, objects)
	unseen := make([]attr.Value, len(report.Unseen))
	for i, text := range report.Unseen {
		unseen[i] = types.StringValue(text)
	}
	m.Unseen = types.ListValueMust(types.StringType, unseen)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func verifiedObject(o verify.Object) types.Object {
	differences := make([]attr.Value, len(o.Differences))
	for i, d := range o.Differences {
		differences[i] = types.ObjectValueMust(differenceType.AttrTypes, map[string]attr.Value{
			"key": types.StringValue(d.Key), "want": optionalText(d.Want), "live": optionalText(d.Live),
			"meaning": types.StringValue(string(d.Meaning)), "explanation": types.StringValue(d.Explanation),
		})
	}
	consumers := types.Int64Null()
	if o.Consumers != nil {
		consumers = types.Int64Value(int64(*o.Consumers))
	}
	return types.ObjectValueMust(verifiedType.AttrTypes, map[string]attr.Value{
		"kind": types.StringValue(string(o.Kind)), "name": types.StringValue(o.Name), "role": optionalText(string(o.Role)),
		"status": types.StringValue(string(o.Status)), "differences": types.ListValueMust(differenceType, differences),
		"overridden_by": overridesOf(o.OverriddenBy), "consumers": consumers, "messages": messagesOf(o.Messages),
	})
}
