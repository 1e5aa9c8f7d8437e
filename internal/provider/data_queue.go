package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// queueDataSource is one queue as the broker has it, whoever made it.
type queueDataSource struct{ dataSource }

var _ datasource.DataSourceWithConfigure = (*queueDataSource)(nil)

func newQueueDataSource() datasource.DataSource { return &queueDataSource{} }

type queueDataModel struct {
	VHost              types.String `tfsdk:"vhost"`
	Name               types.String `tfsdk:"name"`
	Type               types.String `tfsdk:"type"`
	Durable            types.Bool   `tfsdk:"durable"`
	AutoDelete         types.Bool   `tfsdk:"auto_delete"`
	Exclusive          types.Bool   `tfsdk:"exclusive"`
	State              types.String `tfsdk:"state"`
	Arguments          types.Map    `tfsdk:"arguments"`
	EffectiveArguments types.Map    `tfsdk:"effective_arguments"`
	Policy             types.String `tfsdk:"policy"`
	OperatorPolicy     types.String `tfsdk:"operator_policy"`
	OverriddenBy       types.List   `tfsdk:"overridden_by"`
	Messages           types.Object `tfsdk:"messages"`
	Consumers          types.Int64  `tfsdk:"consumers"`
}

func (*queueDataSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = TypeName + "_rabbitmq_queue"
}

func (*queueDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "One queue as the broker has it, whoever made it: its arguments, what policies make of them, how many messages it holds and who consumes it. " +
			"A queue that does not exist is an error; `redeliver_rabbitmq_topology` answers whether the queues of a topic are there." + whenRead,
		Attributes: map[string]schema.Attribute{
			"vhost": schema.StringAttribute{
				Optional: true, Computed: true, Validators: vhostName(),
				MarkdownDescription: "The virtual host. Defaults to the provider's `rabbitmq.vhost`.",
			},
			"name":        schema.StringAttribute{Required: true, MarkdownDescription: "The queue's name."},
			"type":        schema.StringAttribute{Computed: true, MarkdownDescription: "The queue's type, such as `quorum` or `classic`."},
			"durable":     schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the queue survives a restart of the broker."},
			"auto_delete": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the broker deletes the queue when its last consumer leaves."},
			"exclusive":   schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the queue belongs to one connection and goes with it."},
			"state": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "What the broker says of the queue itself: `running` where all is well, another word such as `down` or `minority` where its messages are out of reach. Null where the broker does not say.",
			},
			"arguments": schema.MapAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "The arguments that the queue was declared with, as canonical JSON, by name.",
			},
			"effective_arguments": schema.MapAttribute{
				Computed: true, ElementType: types.StringType,
				MarkdownDescription: "What applies: `arguments`, with what the policy and the operator policy make of those that decide what happens to messages.",
			},
			"policy":          schema.StringAttribute{Computed: true, MarkdownDescription: "The name of the policy that applies to the queue. Null where none does."},
			"operator_policy": schema.StringAttribute{Computed: true, MarkdownDescription: "The name of the operator policy that applies to the queue. Null where none does."},
			"overridden_by":   overridesAttribute("The arguments that apply otherwise than the queue was declared with, and the policy that decides each."),
			"messages":        messagesAttribute(),
			"consumers": schema.Int64Attribute{
				Computed:            true,
				MarkdownDescription: "How many consumers the queue has. A user without the tag `monitoring` is told by statistics, up to 10 seconds late.",
			},
		},
	}
}

func (d *queueDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m queueDataModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	view, ok := d.view(&resp.Diagnostics)
	if !ok {
		return
	}
	if m.VHost.IsNull() {
		m.VHost = d.rt.vhost
	}
	vhost, name := m.VHost.ValueString(), m.Name.ValueString()
	live, err := view.Queue(ctx, vhost, name)
	if errors.Is(err, rabbitmqadmin.ErrNotFound) {
		resp.Diagnostics.AddAttributeError(path.Root("name"), "There is no such queue",
			fmt.Sprintf("Vhost %q has no queue %q. Correct the name or the vhost, or make the data source wait for the resource that creates the queue by taking the name from it. "+
				"Whether the queues of a topic exist is what the data source redeliver_rabbitmq_topology answers.", vhost, name))
		return
	}
	if err == nil {
		err = m.fill(ctx, view, live)
	}
	if addError(&resp.Diagnostics, "Could not read the queue", err); err == nil {
		resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
	}
}

// fill sets what the broker says of the queue.
func (m *queueDataModel) fill(ctx context.Context, view *rabbitmqadmin.View, live rabbitmqadmin.LiveQueue) error {
	vhost, name := m.VHost.ValueString(), m.Name.ValueString()
	policies, err := view.Policies(ctx, vhost)
	if err != nil {
		return err
	}
	depths, err := view.Depths(ctx, vhost, []string{name})
	if err != nil {
		return err
	}
	consumers, err := view.Consumers(ctx, vhost, name)
	if err != nil {
		return err
	}
	queue := topology.Queue{Name: name, Type: live.Type, Arguments: live.Arguments}
	effects := queue.Effects(policies, live.Policy)
	arguments := live.Arguments.Canonical()
	effective := maps.Clone(arguments)
	for _, e := range effects {
		effective[e.Key] = e.Effective
	}
	m.Type, m.State = types.StringValue(string(live.Type)), optionalText(live.State)
	m.Durable, m.AutoDelete, m.Exclusive = types.BoolValue(live.Durable), types.BoolValue(live.AutoDelete), types.BoolValue(live.Exclusive)
	m.Arguments, m.EffectiveArguments = stringMap(arguments), stringMap(effective)
	for _, p := range queue.Policies(policies, live.Policy) {
		if p.Operator {
			m.OperatorPolicy = types.StringValue(p.Name)
		} else {
			m.Policy = types.StringValue(p.Name)
		}
	}
	m.OverriddenBy = overridesOf(effects)
	m.Messages = messagesOf(&depths[0])
	m.Consumers = types.Int64Value(int64(len(consumers)))
	return nil
}
