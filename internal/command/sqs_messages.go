package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	transport "github.com/redeliver/terraform-provider-redeliver/internal/consumer/sqs"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqsadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/internal/transfer"
	transfersqs "github.com/redeliver/terraform-provider-redeliver/internal/transfer/sqs"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// messageOfSQS is a message, with what is known of how it came where it is.
func messageOfSQS(m topology.Manifest, from *types.Message) redeliver.DeadMessage {
	msg := consumer.ParseDead(transport.MessageOf(from), m.Headers)
	msg.Topic = m.Topic
	return msg
}

// transferred is a queue as package transfer/sqs has it.
func transferred(q topology.ManifestQueue) transfersqs.Queue {
	return transfersqs.Queue{Name: q.Name, URL: q.URL, ARN: q.ARN}
}

// Browse receives messages and gives them back, whatever ends it. Meanwhile nobody else receives them.
func (b *amazonSQS) Browse(ctx context.Context, m topology.Manifest, queue topology.ManifestQueue, o browseOptions) (browsed, error) {
	live, err := b.attributes(ctx, queue)
	if err != nil {
		return browsed{}, err
	}
	if err := mayLook(queue, live.Attributes, o.AcceptLoss); err != nil {
		return browsed{}, err
	}
	var out browsed
	report, err := transfersqs.Move(ctx, transfersqs.Options{
		Client: b.client, Source: transferred(queue), Limit: o.Limit, DryRun: true, System: transport.SystemAttributes(),
		Filter: func(from *types.Message) bool {
			msg := messageOfSQS(m, from)
			if o.Filter != nil && !o.Filter(&msg) {
				return false
			}
			out.Messages = append(out.Messages, msg)
			return true
		},
	})
	if err != nil {
		return browsed{}, fmt.Errorf("looking at queue %q: %w", queue.Name, caused(ctx, err))
	}
	out.Found, out.Looked = max(0, report.Found, report.Moved+report.Skipped), report.Moved+report.Skipped
	out.Notes = lookNotes(queue, live.Depth(), out.Looked)
	return out, nil
}

// mayLook refuses to look where a look may move a message away: a queue with a redrive policy of its own, which no topic's
// dead end has.
func mayLook(queue topology.ManifestQueue, live topology.SQSAttributes, accepted bool) error {
	target, receives, redrives := live.RedriveTarget()
	if !redrives || accepted {
		return nil
	}
	return fmt.Errorf("looking at queue %q may move messages away: its own redrive policy has SQS move a message to %s after %d receives, and a look is one. "+
		"Take that policy from the queue, or accept it with --accept-loss", queue.Name, target, receives)
}

// lookNotes say what SQS cannot promise.
func lookNotes(queue topology.ManifestQueue, depth sqsadmin.Depth, looked int) []string {
	var out []string
	if n := depth.InFlight + depth.Delayed; n > 0 {
		out = append(out, fmt.Sprintf("about %s in flight or delayed %s not seen: SQS gives %s to nobody.", messages(n), plural(n, "was", "were"), plural(n, "it", "them")))
	}
	if looked == 0 {
		return out
	}
	out = append(out, fmt.Sprintf("SQS counts a look as a receive: the receive count of the %s has grown by one%s.", messages(looked), plural(looked, "", " each")))
	if queue.Type == topology.FIFO {
		return append(out, "while a message of a group was looked at, nobody received others of its group; of a group with more messages than a receive returns (10), the rest was not seen.")
	}
	return append(out, "a standard queue has no order: another look may show other messages, or the same ones in another order.")
}

// Move moves messages: the whole of a dead-letter queue by the service's own message-move task, anything else by sending
// each message and then deleting it.
func (b *amazonSQS) Move(ctx context.Context, m topology.Manifest, queue topology.ManifestQueue, o moveOptions) (transfer.Report, error) {
	target, err := targetOf(m, o)
	if err != nil {
		return transfer.Report{Left: -1}, err
	}
	options := transfersqs.Options{
		Client: b.client, Source: transferred(queue), Target: target, FIFO: strings.HasSuffix(target.Name, ".fifo"), Limit: o.Limit, Rate: o.Rate,
		DryRun: o.DryRun, System: transport.SystemAttributes(),
	}
	if o.Replay { // what counts the retries begins again
		options.Without = append([]string{m.Headers.RetryCount, m.Headers.Attempts, m.Headers.FirstSeen}, m.Headers.RetryCountAlso...)
	}
	if o.Filter != nil {
		options.Filter = func(from *types.Message) bool {
			msg := messageOfSQS(m, from)
			return o.Filter(&msg)
		}
	}
	if o.Progress != nil {
		options.Progress = func(r transfersqs.Report) { o.Progress(reportOf(r)) }
	}
	move := transfersqs.Move
	if options.Native(m.DeadLetter != nil && queue.ARN == m.DeadLetter.ARN) && o.Rate == 0 && o.Queue == "" {
		move = transfersqs.Task
	} else if err := b.mayMove(ctx, queue, target, o); err != nil {
		return transfer.Report{Left: -1}, err
	}
	moved, err := move(ctx, options)
	report := reportOf(moved)
	for _, note := range lookNotes(queue, sqsadmin.Depth{}, givenBack(report, o)) { // what is in flight the report counts
		o.Note(note)
	}
	return report, caused(ctx, err)
}

// targetOf is where messages go: the topic's work queue, or another queue of its account and region.
func targetOf(m topology.Manifest, o moveOptions) (transfersqs.Queue, error) {
	switch {
	case o.Exchange != "":
		return transfersqs.Queue{}, usagef("--to-exchange %q: Amazon SQS has no exchanges; name a queue with --to", o.Exchange)
	case o.KeepCount:
		return transfersqs.Queue{}, usagef("--keep-count: Amazon SQS counts a message's receives itself, and what is replayed is a new message, which was never received; leave it out")
	}
	work := transferred(m.WorkQueue)
	name := cmp.Or(o.Queue, work.Name)
	return transfersqs.Queue{Name: name, URL: strings.TrimSuffix(work.URL, work.Name) + name, ARN: strings.TrimSuffix(work.ARN, work.Name) + name}, nil
}

// mayMove refuses what would come to nothing: a target that is not there, and a look at messages that a redrive policy
// would move away for it.
func (b *amazonSQS) mayMove(ctx context.Context, queue topology.ManifestQueue, target transfersqs.Queue, o moveOptions) error {
	if _, err := b.attributes(ctx, topology.ManifestQueue{Name: target.Name, URL: target.URL, ARN: target.ARN}); errors.Is(err, sqsadmin.ErrNotFound) {
		return err
	}
	if !o.DryRun && o.Filter == nil {
		return nil
	}
	live, err := b.attributes(ctx, queue)
	if denied, _ := sqsapi.Denied(err); denied {
		return nil // whoever may move need not be allowed to ask
	}
	if err != nil {
		return err
	}
	return mayLook(queue, live.Attributes, o.AcceptLoss)
}

// reportOf is a report of package transfer/sqs as that of package transfer.
func reportOf(r transfersqs.Report) transfer.Report {
	out := transfer.Report{
		Found: max(0, r.Found, r.Moved), // the count is approximate, and a task that has ended has none
		Moved: r.Moved, Skipped: r.Skipped, Failed: r.Failed, Doubtful: r.Doubtful, Left: r.Left,
	}
	for _, f := range r.Failures {
		out.Failures = append(out.Failures, transfer.Failure{Err: f.Err, MessageID: f.MessageID, Count: f.Count, Unknown: f.Unknown})
	}
	return out
}

// caused is an error with the reason why ctx has ended in the place of that it has.
func caused(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	why := []error{context.Cause(ctx)}
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		for _, e := range several.Unwrap() {
			if !errors.Is(e, ctx.Err()) {
				why = append(why, e)
			}
		}
	}
	return errors.Join(why...)
}

// purgeAdvice is what to do where a queue cannot be purged.
func purgeAdvice(err error) string {
	var again *types.PurgeQueueInProgress
	if errors.As(err, &again) {
		return "; SQS purges a queue once in 60 seconds: try again in a minute"
	}
	if denied, _ := sqsapi.Denied(err); denied {
		return "; it takes sqs:PurgeQueue on the queue"
	}
	return ""
}
