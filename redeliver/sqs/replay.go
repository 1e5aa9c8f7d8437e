package sqs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	transport "github.com/redeliver/terraform-provider-redeliver/internal/consumer/sqs"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	transfer "github.com/redeliver/terraform-provider-redeliver/internal/transfer/sqs"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Replay moves messages of the topic's dead-letter or parked queue back to the
// work queue, or to the queue that the options name in RoutingKey.
//
// All dead letters are moved by the service itself, with a message-move task:
// when ctx is done, the task is cancelled, and what it moved stays moved. With a
// filter, a limit or a dry run, and from a parked queue, messages are sent and,
// when the service has taken them, deleted; so nothing is lost, whatever is
// interrupted when, and what was interrupted is just run again. At most those
// that were on their way may be there twice; the report says so. It looks at no
// message that was sent after it began, and goes on until it finds no more: what
// the service says of how many there are is approximate. In a FIFO queue, a
// message that stays hides those behind it in its group. At a rate below ten in a
// second it receives as many at a time as it may move in one.
//
// Either way what arrives is a new message, with a new id and a count of 0, which
// is why KeepCount is refused. The error says why the replay ended before it had
// looked at all. Messages that fail by themselves are no error, and the report
// has them.
//
// Of cfg, Handler and most of Consumer are not used. The caller needs what
// build_iam_policy has in the role operator.
func Replay(ctx context.Context, cfg Config, o redeliver.ReplayOptions) (redeliver.ReplayReport, error) {
	report := redeliver.ReplayReport{Left: -1, DryRun: o.DryRun}
	doc, err := cfg.contract()
	if err != nil {
		return report, fmt.Errorf("replaying: %w", err)
	}
	source, err := consumer.Replayed(doc, o.From)
	if err != nil {
		return report, fmt.Errorf("replaying: %w", err)
	}
	report.From = source.Name
	target, err := targetOf(doc, o)
	if err != nil {
		return report, fmt.Errorf("replaying queue %q: %w", source.Name, err)
	}
	report.RoutingKey = target.Name
	client, err := cfg.client(ctx, doc)
	if err != nil {
		return report, fmt.Errorf("replaying queue %q: %w", source.Name, err)
	}
	t := transfer.Options{
		Client: client, Source: transfer.Queue{Name: source.Name, URL: source.URL, ARN: source.ARN}, Target: target,
		FIFO: doc.WorkQueue.Type == topology.FIFO, Limit: o.Limit, DryRun: o.DryRun, Rate: o.Rate, System: transport.SystemAttributes(),
		Without: append([]string{doc.Headers.RetryCount, doc.Headers.Attempts, doc.Headers.FirstSeen}, doc.Headers.RetryCountAlso...),
	}
	if o.Filter != nil {
		t.Filter = func(m *types.Message) bool {
			msg := consumer.ParseDead(transport.MessageOf(m), doc.Headers)
			msg.Topic = doc.Topic
			return o.Filter(&msg)
		}
	}
	if o.Progress != nil {
		t.Progress = func(moved transfer.Report) {
			so := redeliver.ReplayReport{From: source.Name, DryRun: o.DryRun, RoutingKey: target.Name}
			fill(&so, moved)
			o.Progress(so)
		}
	}
	log := cfg.Consumer.WithDefaults().Logger.With("topic", doc.Topic, "queue", source.Name, "target", target.Name)
	move := transfer.Move
	if t.Native(o.From != redeliver.ReplayParked) {
		move = transfer.Task
	}
	log.Info("replaying", "dry_run", o.DryRun, "limit", o.Limit)
	moved, err := move(ctx, t)
	fill(&report, moved)
	for _, f := range report.Failures {
		log.Warn("messages were not replayed and stay in the queue", "count", f.Count, "first_message_id", f.MessageID, "error", f.Err)
	}
	log.Info("replayed", "dry_run", o.DryRun, "found", report.Found, "replayed", report.Replayed, "skipped", report.Skipped,
		"failed", report.Failed, "doubtful", report.Doubtful, "left", report.Left)
	if err != nil {
		return report, fmt.Errorf("replaying queue %q of topic %q: %w", source.Name, doc.Topic, err)
	}
	return report, nil
}

// targetOf is where messages go: the work queue, or another queue of the same
// account and region.
func targetOf(doc topology.Manifest, o redeliver.ReplayOptions) (transfer.Queue, error) {
	work := transfer.Queue{Name: doc.WorkQueue.Name, URL: doc.WorkQueue.URL, ARN: doc.WorkQueue.ARN}
	switch {
	case o.Exchange != "":
		return work, errors.New("there are no exchanges on Amazon SQS; name a queue in RoutingKey")
	case o.KeepCount:
		return work, errors.New("a message that is moved is a new one for Amazon SQS, which counts its receives: leave KeepCount out")
	case o.RoutingKey == "":
		return work, nil
	default:
		return transfer.Queue{
			Name: o.RoutingKey, URL: strings.TrimSuffix(work.URL, work.Name) + o.RoutingKey, ARN: strings.TrimSuffix(work.ARN, work.Name) + o.RoutingKey,
		}, nil
	}
}

func fill(report *redeliver.ReplayReport, moved transfer.Report) {
	report.Found, report.Replayed, report.Skipped = max(0, moved.Found), moved.Moved, moved.Skipped
	report.Failed, report.Doubtful, report.Left = moved.Failed, moved.Doubtful, moved.Left
	report.Failures = nil
	for _, f := range moved.Failures {
		report.Failures = append(report.Failures, redeliver.ReplayFailure{Err: f.Err, MessageID: f.MessageID, Count: f.Count, Unknown: f.Unknown})
	}
}
