package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

type sqsTopicModel struct {
	sqsPartModel
	Name                types.String `tfsdk:"name"`
	DeadLetterQueue     types.String `tfsdk:"dead_letter_queue"`
	ParkedQueue         types.String `tfsdk:"parked_queue"`
	DeadLetterVia       types.String `tfsdk:"dead_letter_via"`
	Retry               types.Object `tfsdk:"retry"`
	Park                types.String `tfsdk:"park"`
	HandlerTimeout      types.String `tfsdk:"handler_timeout"`
	AllowMessageLoss    types.Bool   `tfsdk:"allow_message_loss"`
	AcknowledgeWarnings types.Set    `tfsdk:"acknowledge_warnings"`
	Manifest            types.String `tfsdk:"manifest"`
}

type sqsRetryModel struct {
	MaxRetries  types.Int64   `tfsdk:"max_retries"`
	Delays      types.List    `tfsdk:"delays"`
	GiveUpAfter types.String  `tfsdk:"give_up_after"`
	Jitter      types.Float64 `tfsdk:"jitter"`
}

var sqsRetryAttrTypes = map[string]attr.Type{
	"max_retries": types.Int64Type, "delays": types.ListType{ElemType: types.StringType}, "give_up_after": types.StringType, "jitter": types.Float64Type,
}

func (*sqsTopicResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	warnings := append(topology.SQSWarningIDs(), warningForeignDeadEnd)
	resp.Schema = schema.Schema{
		MarkdownDescription: "A topic on Amazon SQS: one logical stream of one message type, as the queue that applications consume, with its redrive policy. Its `manifest` is what a consumer binds to.",
		Attributes: sqsPartAttributes(ctx, "the work queue", "convention=...&consumer_group=...", topology.DefaultRetention, map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "The topic's name, which is also its work queue's, but for the suffix of a FIFO queue. Changing it replaces the queue.",
			},
			"dead_letter_queue": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "The name of the queue for messages that failed for good: the `name` of a `redeliver_sqs_dead_letter_queue`. " +
					"A topic without one is refused unless `allow_message_loss` is true.",
			},
			"parked_queue": schema.StringAttribute{
				Optional: true, MarkdownDescription: "The name of the queue for messages that nobody could read: the `name` of a `redeliver_sqs_parked_queue`.",
			},
			"dead_letter_via": schema.StringAttribute{
				Optional: true, Validators: oneOf(topology.DeadLetterVias()),
				MarkdownDescription: "How a message that failed for good reaches the dead-letter queue: `redrive` (SQS moves it by the redrive policy, whose `maxReceiveCount` is `max_retries` + 1; the default) or " +
					"`send` (the consumer sends it there with the reason and then deletes it, which takes permission to send; the redrive policy stays, with room for crashes).",
			},
			"retry": schema.SingleNestedAttribute{
				Optional: true,
				MarkdownDescription: "The retry policy. A message waits for its retry in the queue, invisible. Every receive counts as a retry: also one after Defer, after a crash, " +
					"or after a visibility timeout that was over too early.",
				Attributes: map[string]schema.Attribute{
					"max_retries": schema.Int64Attribute{
						Optional: true, Validators: []validator.Int64{int64validator.AtLeast(0)},
						MarkdownDescription: fmt.Sprintf("How many retries are honoured: a message that always fails is handed to a handler once more than that, then dead-lettered. Defaults to `%d`.", topology.DefaultMaxRetries),
					},
					"delays": schema.ListAttribute{
						Optional: true, ElementType: types.StringType, Validators: []validator.List{listvalidator.ValueStringsAre(duration)},
						MarkdownDescription: "The delays in whole seconds, shortest first; the last one repeats. Together, with jitter, they have to fit into `retention`.",
					},
					"give_up_after": schema.StringAttribute{
						Optional: true, Validators: durationText(), MarkdownDescription: "The age at which a message is retried no more, whatever retries are left. Never by default.",
					},
					"jitter": schema.Float64Attribute{
						Optional: true, Validators: []validator.Float64{float64validator.Between(0, 1)},
						MarkdownDescription: fmt.Sprintf("The factor by which waits vary both ways, from 0 to below 1. Defaults to `%v`.", topology.DefaultJitter),
					},
				},
			},
			"park": schema.StringAttribute{
				Optional: true, Validators: oneOf([]topology.ParkMode{topology.ParkReject, topology.ParkPublish}),
				MarkdownDescription: "How a consumer parks a message: `reject` (dead-letter it) or `publish` (send it to the parked queue, which takes permission to send). Defaults to `publish` under `dead_letter_via = \"send\"` with a parked queue, else to `reject`.",
			},
			"handler_timeout": schema.StringAttribute{
				Optional: true, Validators: durationText(),
				MarkdownDescription: "How long a handler may take. Where it is stated, a `visibility_timeout` that is shorter is refused, and the time is part of what has to fit into `retention`.",
			},
			"allow_message_loss": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Accept a topic without a dead-letter queue, whose rejected and exhausted messages are discarded. Defaults to `false`.",
			},
			"acknowledge_warnings": warningsAttribute(warnings...),
			"manifest": schema.StringAttribute{
				Computed:            true,
				MarkdownDescription: "The manifest that a consumer binds to, as JSON: known at plan time once the account id is, computed from the configuration, without secrets. Hand it to applications as a file, an environment variable or a parameter.",
			},
		}),
	}
}

// spec reads the model as what is asked for, at a place that need not be known. known is false while anything that
// attributes depend on is not known.
func (m *sqsTopicModel) spec(ctx context.Context, place sqsPlace, diags *diag.Diagnostics) (spec topology.SQSSpec, known bool) {
	settings, known := m.settings(ctx, diags)
	for _, value := range []attr.Value{m.Name, m.DeadLetterQueue, m.ParkedQueue, m.DeadLetterVia, m.Retry, m.Park, m.HandlerTimeout, m.AllowMessageLoss} {
		known = known && fullyKnown(value)
	}
	if !known || diags.HasError() {
		return spec, false
	}
	return topology.SQSSpec{
		SQSIdentity: place.in(m.identityOf(m.Name)), SQSQueueSettings: settings, Endpoint: place.endpoint,
		DeadLetterQueue: m.DeadLetterQueue.ValueString(), ParkedQueue: m.ParkedQueue.ValueString(),
		DeadLetterVia: topology.DeadLetterVia(m.DeadLetterVia.ValueString()), AllowMessageLoss: m.AllowMessageLoss.ValueBool(),
		Park: topology.ParkMode(m.Park.ValueString()), Retry: m.policy(ctx, diags),
		HandlerTimeout: lengthOf(path.Root("handler_timeout"), m.HandlerTimeout, "no handler is done at once", diags),
	}, !diags.HasError()
}

// policy reads retry, with the provider's defaults for what it leaves out.
func (m *sqsTopicModel) policy(ctx context.Context, diags *diag.Diagnostics) topology.RetryPolicy {
	policy := topology.RetryPolicy{MaxRetries: topology.DefaultMaxRetries, Jitter: topology.DefaultJitter}
	if m.Retry.IsNull() {
		return policy
	}
	var r sqsRetryModel
	if d := m.Retry.As(ctx, &r, basetypes.ObjectAsOptions{}); d.HasError() {
		diags.Append(d...)
		return policy
	}
	at := path.Root("retry")
	if !r.MaxRetries.IsNull() {
		policy.MaxRetries = int(r.MaxRetries.ValueInt64())
	}
	if !r.Jitter.IsNull() {
		policy.Jitter = r.Jitter.ValueFloat64()
	}
	policy.GiveUpAfter = lengthOf(at.AtName("give_up_after"), r.GiveUpAfter, "no message would ever be retried: use retry.max_retries = 0 for that", diags)
	if !r.Delays.IsNull() {
		delays, _, err := durations(ctx, r.Delays)
		if err != nil {
			diags.AddAttributeError(at.AtName("delays"), "Invalid retry policy", sentence(err))
		}
		policy.Delays = delays
	}
	return policy
}

// workQueue is the name of the topic's queue; null while it is not known.
func (m *sqsTopicModel) workQueue() types.String {
	if m.Name.IsUnknown() || m.FIFO.IsUnknown() {
		return types.StringNull()
	}
	return types.StringValue(m.identityOf(m.Name).WorkQueueName())
}

// recognise fills in what SQS tells about a topic that is being imported. Delays are in no queue: what is chosen is what a
// message waits that nobody does anything about, so that the configuration which the command line writes down is valid, and
// says what to look at: cut to what as many retries can wait.
func (m *sqsTopicModel) recognise(live topology.SQSAttributes) {
	m.recogniseSettings(live, topology.RoleWork)
	arn, count, ok := live.RedriveTarget()
	if !ok {
		m.AllowMessageLoss, m.Retry = types.BoolValue(true), sqsRetried(0, "")
		return
	}
	if _, queue, err := topology.ParseSQSARN(arn); err == nil {
		m.DeadLetterQueue = types.StringValue(queue)
	}
	m.Retry = sqsRetried(count-1, topology.FormatDuration(live.IdleWait(max(1, count-1), topology.DefaultJitter)))
}

// sqsRetried is the retry policy of a topic whose messages are retried so often, after this delay.
func sqsRetried(maxRetries int, delay string) types.Object {
	delays := types.ListNull(types.StringType)
	if maxRetries > 0 {
		delays = types.ListValueMust(types.StringType, []attr.Value{types.StringValue(delay)})
	}
	return types.ObjectValueMust(sqsRetryAttrTypes, map[string]attr.Value{
		"max_retries": types.Int64Value(int64(maxRetries)), "delays": delays, "give_up_after": types.StringNull(), "jitter": types.Float64Null(),
	})
}
