package provider

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Address is where Terraform finds the provider.
const Address = "registry.terraform.io/redeliver/redeliver"

// TypeName is what every resource's name starts with.
const TypeName = "redeliver"

var (
	_ provider.Provider              = (*redeliverProvider)(nil)
	_ provider.ProviderWithFunctions = (*redeliverProvider)(nil)

	_ provider.ProviderWithListResources = (*redeliverProvider)(nil)
	_ provider.ProviderWithActions       = (*redeliverProvider)(nil)
)

// New returns the provider's constructor for a release of the given version.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &redeliverProvider{version: version, getenv: os.Getenv} }
}

type redeliverProvider struct {
	version string
	// getenv reads the environment variables that stand in for attributes.
	getenv func(string) string
}

type providerModel struct {
	Convention    types.String `tfsdk:"convention"`
	ConsumerGroup types.String `tfsdk:"consumer_group"`
	RabbitMQ      types.Object `tfsdk:"rabbitmq"`
	SQS           types.Object `tfsdk:"sqs"`
}

func (p *redeliverProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = TypeName
	resp.Version = p.version
}

func (p *redeliverProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Retry topology as infrastructure: topics, hold-queue ladders, dead-letter queues and parked queues, " +
			"with names and arguments computed from the configuration, and plans that show every argument that drifted.",
		Attributes: map[string]schema.Attribute{
			"convention": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The naming and argument scheme of resources that name none: `redeliver` (the default), `shove`, `acemq`, `rabbitkit` " +
					"or `queuey`. The others are those of the libraries they are named after, so that their topology can be moved into Terraform without renaming a queue.",
				Validators: oneOf(topology.Conventions()),
			},
			"consumer_group": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "The consumer group of resources that name none. Only the `shove` convention has consumer groups.",
			},
			"rabbitmq": rabbitMQSchema(),
			"sqs":      sqsSchema(),
		},
	}
}

func (p *redeliverProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var model providerModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &model)...); resp.Diagnostics.HasError() {
		return
	}
	rt := newRuntime(model.Convention, model.ConsumerGroup)
	resp.Diagnostics.Append(rt.configureRabbitMQ(ctx, model.RabbitMQ, p.getenv, p.version)...)
	resp.Diagnostics.Append(rt.configureSQS(ctx, model.SQS, p.version)...)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.ResourceData, resp.DataSourceData, resp.ListResourceData, resp.ActionData = rt, rt, rt, rt
}

func (p *redeliverProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		newTopicResource, newHoldLadderResource, newDeadLetterQueueResource, newParkedQueueResource,
		newExchangeResource, newBindingResource,
		newSQSTopicResource, newSQSDeadLetterQueueResource, newSQSParkedQueueResource,
	}
}

func (p *redeliverProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{newQueueDataSource, newTopologyDataSource}
}

func (p *redeliverProvider) ListResources(context.Context) []func() list.ListResource {
	return append(listResources(), sqsListResources()...)
}

func (p *redeliverProvider) Actions(context.Context) []func() action.Action {
	return []func() action.Action{newReplayAction}
}

func (p *redeliverProvider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{
		newBuildNamesFunction, newBuildScheduleFunction, newBuildPermissionsFunction, newRenderGraphFunction,
		newBuildIAMPolicyFunction,
	}
}
