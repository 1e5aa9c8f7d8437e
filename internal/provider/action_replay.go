package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/action/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/migration"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/internal/transfer"
)

// The queues of a topic that can be replayed, as the Go library calls them.
const (
	replayDead   = "dead_letter_queue"
	replayParked = "parked_queue"
)

// replayAction moves what was set aside of a topic back to it.
type replayAction struct{ configured }

var _ action.ActionWithConfigure = (*replayAction)(nil)

func newReplayAction() action.Action { return &replayAction{} }

type replayModel struct {
	Manifest  types.String  `tfsdk:"manifest"`
	From      types.String  `tfsdk:"from"`
	Limit     types.Int64   `tfsdk:"limit"`
	Rate      types.Float64 `tfsdk:"rate"`
	DryRun    types.Bool    `tfsdk:"dry_run"`
	KeepCount types.Bool    `tfsdk:"keep_count"`
}

func (*replayAction) Metadata(_ context.Context, _ action.MetadataRequest, resp *action.MetadataResponse) {
	resp.TypeName = TypeName + "_rabbitmq_replay"
}

func (*replayAction) Schema(_ context.Context, _ action.SchemaRequest, resp *action.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Replays a topic's dead-letter or parked queue: its messages go back to the work queue, as if they had never been tried. A message is removed when the broker has confirmed its copy and a queue has taken it, " +
			"so that nothing is lost whatever is interrupted when, and what was interrupted is invoked again; at most those that were on their way may be there twice, which the report says. " +
			"It looks at no more messages than there were when it began: one that fails again meanwhile is not replayed twice.\n\n" +
			"Messages go to the work queue by its name, through the default exchange: do not replay while that queue is migrated (`on_argument_change`), since what comes that way between the last look whether the queue is empty and its deletion is lost with it.\n\n" +
			"Needs the provider's `rabbitmq.amqp_endpoints`, read permission on the queue and write permission on the exchange that is published to (the function `build_permissions` has both in the role `operator`).",
		Attributes: map[string]schema.Attribute{
			"manifest": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "The topic's manifest, as JSON: the `manifest` of a `redeliver_rabbitmq_topic`.",
			},
			"from": schema.StringAttribute{
				Optional: true, Validators: oneOf([]string{replayDead, replayParked}),
				MarkdownDescription: "Which queue is replayed: `" + replayDead + "` (the default) or `" + replayParked + "`.",
			},
			"limit": schema.Int64Attribute{
				Optional: true, Validators: []validator.Int64{int64validator.AtLeast(1)},
				MarkdownDescription: "How many messages are replayed at most. Defaults to all that are there when the replay begins.",
			},
			"rate": schema.Float64Attribute{
				Optional: true, Validators: []validator.Float64{float64validator.AtLeast(0.001)},
				MarkdownDescription: "How many messages are replayed in a second at most, so that a service that has just recovered is not hit by everything at once. Not limited by default.",
			},
			"dry_run": schema.BoolAttribute{
				Optional: true,
				MarkdownDescription: "Replay nothing and report what would be. Every message is looked at and given back, which before RabbitMQ 4.3 spends one of its deliveries on a quorum queue; those of this provider have a million. " +
					"Defaults to `false`.",
			},
			"keep_count": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Replay messages with the count of their retries and their age. By default both begin again, and the headers that say why a message failed are kept. Defaults to `false`.",
			},
		},
	}
}

func (a *replayAction) Configure(_ context.Context, req action.ConfigureRequest, resp *action.ConfigureResponse) {
	a.configure(req.ProviderData, &resp.Diagnostics)
}

func (a *replayAction) Invoke(ctx context.Context, req action.InvokeRequest, resp *action.InvokeResponse) {
	var m replayModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	options, ok := a.options(&m, &resp.Diagnostics)
	if !ok {
		return
	}
	tell := func(format string, args ...any) {
		resp.SendProgress(action.InvokeProgressEvent{Message: fmt.Sprintf(format, args...)})
	}
	verb := "replaying"
	if options.DryRun {
		verb = "looking at (dry run)"
	}
	tell("%s queue %q", verb, options.Source)
	options.Progress = func(r transfer.Report) { tell("queue %q: %s", options.Source, r) }
	report, err := transfer.Move(ctx, options)
	for _, f := range report.Failures {
		resp.Diagnostics.AddWarning("Messages were not replayed",
			fmt.Sprintf("%d messages stay in queue %q, the first of them with id %q: %s", f.Count, options.Source, f.MessageID, sentence(transfer.Advise(f.Err))))
	}
	if err != nil {
		addError(&resp.Diagnostics, "The replay ended early",
			fmt.Errorf("replaying queue %q: %w.\nUntil then: %s. Nothing is lost: invoke it again to go on", options.Source, transfer.Advise(err), report))
	}
}

// options are what is moved where.
func (a *replayAction) options(m *replayModel, diags *diag.Diagnostics) (transfer.Options, bool) {
	manifest, err := topology.DecodeManifest([]byte(m.Manifest.ValueString()))
	if err == nil {
		err = manifest.RequireBroker(topology.BrokerRabbitMQ)
	}
	if err != nil {
		diags.AddAttributeError(path.Root("manifest"), "Invalid manifest", sentence(err))
		return transfer.Options{}, false
	}
	from, what := manifest.DeadLetter, "dead-letter queue"
	if m.From.ValueString() == replayParked {
		from, what = manifest.Parked, "parked queue"
	}
	if from == nil {
		diags.AddAttributeError(path.Root("from"), "There is nothing to replay", fmt.Sprintf("Topic %q has no %s: its manifest says so.", manifest.Topic, what))
		return transfer.Options{}, false
	}
	client, err := a.rt.admin()
	if err == nil {
		err = a.rt.rabbitMQ.unreachable
	}
	if addError(diags, "Could not replay", err); err != nil {
		return transfer.Options{}, false
	}
	broker, err := migration.Broker(client, manifest.VHost)
	if addError(diags, "Could not replay", err); err != nil {
		return transfer.Options{}, false
	}
	return transfer.Replay(manifest, transfer.Options{
		Dial: broker.Dial, Source: from.Name, Limit: int(m.Limit.ValueInt64()), Rate: m.Rate.ValueFloat64(), DryRun: m.DryRun.ValueBool(),
	}, m.KeepCount.ValueBool()), true
}
