package rabbitmq

import (
	"context"
	"fmt"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	transport "github.com/redeliver/terraform-provider-redeliver/internal/consumer/rabbitmq"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/internal/transfer"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Replay moves messages of the topic's dead-letter or parked queue back to the
// work queue, or wherever the options say. A message is removed when the broker
// has confirmed its copy and a queue has taken it; so nothing is lost, whatever
// is interrupted when, and what was interrupted is just run again. At most those
// that were on their way may be there twice; the report says so.
//
// What is not replayed stays in the queue. It looks at no more messages than
// there were when it began, so that one which fails again meanwhile is not
// replayed twice.
//
// The error says why the replay ended before it had looked at all: ctx was done,
// a connection was lost, or the target takes nothing. Messages that fail by
// themselves are no error, and the report has them.
//
// Of cfg, URL, Addresses, TLS, Manifest, ConnectionName and Consumer.Logger are
// used. The user needs read permission on the queue, and write permission on the
// exchange that is published to, "amq.default" unless the options say otherwise.
func Replay(ctx context.Context, cfg Config, o redeliver.ReplayOptions) (redeliver.ReplayReport, error) {
	report := redeliver.ReplayReport{Left: -1, DryRun: o.DryRun}
	doc := cfg.Manifest.Contract()
	if doc.Topic == "" {
		return report, fmt.Errorf("replaying: %w", redeliver.ErrNoManifest)
	}
	queue, err := consumer.Replayed(doc, o.From)
	if err != nil {
		return report, fmt.Errorf("replaying: %w", err)
	}
	report.From = queue.Name
	broker, err := cfg.broker(doc, queue)
	if err != nil {
		return report, fmt.Errorf("replaying queue %q: %w", queue.Name, err)
	}
	log := cfg.Consumer.WithDefaults().Logger.With("topic", doc.Topic, "queue", queue.Name, "vhost", doc.VHost)
	log.Info("replaying", "dry_run", o.DryRun, "limit", o.Limit)
	t := replayOf(doc, o, queue.Name, broker)
	report.Exchange, report.RoutingKey = t.Exchange, t.RoutingKey
	moved, err := transfer.Move(ctx, t)
	fill(&report, moved)
	for _, f := range report.Failures {
		log.Warn("messages were not replayed and stay in the queue", "count", f.Count, "first_message_id", f.MessageID, "error", f.Err)
	}
	log.Info("replayed", "dry_run", o.DryRun, "found", report.Found, "replayed", report.Replayed, "skipped", report.Skipped,
		"failed", report.Failed, "doubtful", report.Doubtful, "left", report.Left)
	if err != nil {
		return report, fmt.Errorf("replaying queue %q of topic %q: %w", queue.Name, doc.Topic, transfer.Advise(err))
	}
	return report, nil
}

// replayOf is the transfer that carries out a replay.
func replayOf(doc topology.Manifest, o redeliver.ReplayOptions, queue string, broker *transport.Broker) transfer.Options {
	t := transfer.Replay(doc, transfer.Options{
		Dial: broker.Dial, Source: queue, Exchange: o.Exchange, RoutingKey: o.RoutingKey, Limit: o.Limit, DryRun: o.DryRun, Rate: o.Rate,
	}, o.KeepCount)
	if o.Filter != nil {
		t.Filter = func(d *amqp091.Delivery) bool {
			msg := consumer.ParseDead(transport.MessageOf(d), doc.Headers)
			msg.Topic = doc.Topic
			return o.Filter(&msg)
		}
	}
	if o.Progress != nil {
		t.Progress = func(moved transfer.Report) {
			report := redeliver.ReplayReport{From: queue, DryRun: o.DryRun, Exchange: t.Exchange, RoutingKey: t.RoutingKey}
			fill(&report, moved)
			o.Progress(report)
		}
	}
	return t
}

func fill(report *redeliver.ReplayReport, moved transfer.Report) {
	report.Found, report.Replayed, report.Skipped = moved.Found, moved.Moved, moved.Skipped
	report.Failed, report.Doubtful, report.Left = moved.Failed, moved.Doubtful, moved.Left
	report.Failures = nil
	for _, f := range moved.Failures {
		report.Failures = append(report.Failures, redeliver.ReplayFailure{
			Err: f.Err, MessageID: f.MessageID, Count: f.Count, Unknown: f.Unknown,
		})
	}
}
