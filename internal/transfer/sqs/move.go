package sqs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
)

const (
	// lease is how long a message is invisible for the run. What stays is kept invisible for as long as the run lasts.
	lease = 5 * time.Minute
	// pollWait is how long a receive waits, in seconds, and emptyPolls how many in a row must find nothing: a standard
	// queue may have messages on machines that were not asked.
	pollWait   = 2
	emptyPolls = 2
	// clockSlack is how much the service's clock may be ahead of this machine's.
	clockSlack = 5 * time.Second
	// tries is how often a request is made in vain before the run ends.
	tries = 8
)

// run is one run by send.
type run struct {
	Options
	Report
	kept kept
	seen map[string]bool
	// looked is how many messages were there to be moved.
	looked int
	told   time.Time
	begun  time.Time
}

// Move moves messages by sending each to the target and then deleting it. It
// moves no message that was sent after it began. What is not moved is invisible
// until the run is over.
func Move(ctx context.Context, o Options) (Report, error) {
	r := &run{Options: o, Report: Report{Left: -1}, seen: make(map[string]bool), begun: time.Now()}
	if err := o.validate(); err != nil {
		return r.Report, err
	}
	r.kept.options = o
	r.Found = left(ctx, o)
	err := r.all(ctx)
	r.kept.release(context.WithoutCancel(ctx))
	r.Left = left(context.WithoutCancel(ctx), o)
	r.tell(true)
	return r.Report, err
}

// all moves messages until there are no more, or enough.
func (r *run) all(ctx context.Context) error {
	for empty := 0; empty < emptyPolls; {
		n := r.wanted()
		if n == 0 {
			return nil
		}
		if err := r.pause(ctx); err != nil {
			return err
		}
		messages, err := r.receive(ctx, n)
		if err != nil {
			return err
		}
		before := r.looked
		if err := r.deal(ctx, messages); err != nil {
			return err
		}
		if empty++; r.looked > before {
			empty = 0
		}
		r.tell(false)
		if err := r.kept.extend(ctx, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// pause waits until as many messages as were moved may have been. It does so
// before messages are received: the leases of those in hand would be over while a
// slow run waits, and what it then sent could be here still.
func (r *run) pause(ctx context.Context) error {
	if r.Rate == 0 || r.DryRun {
		return nil
	}
	due := r.begun.Add(time.Duration(float64(r.Moved+r.Doubtful) / r.Rate * float64(time.Second)))
	for left := time.Until(due); left > 0; left = time.Until(due) {
		if !sqsapi.Sleep(ctx, min(left, lease/4)) { // what stays has to be extended meanwhile
			return ctx.Err()
		}
		if err := r.kept.extend(ctx, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// wanted is how many more messages the run may look at, up to a batch: at a low
// rate as many as it may move in a second.
func (r *run) wanted() int {
	n := sqsapi.BatchMax
	if r.Rate > 0 && !r.DryRun {
		n = int(min(float64(n), max(1, r.Rate)))
	}
	if r.Limit > 0 {
		n = min(n, r.Limit-r.Moved-r.Doubtful)
	}
	return max(0, n)
}

func (r *run) receive(ctx context.Context, n int) ([]types.Message, error) {
	var messages []types.Message
	err := again(ctx, func(ctx context.Context) error {
		out, err := r.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &r.Source.URL, MaxNumberOfMessages: int32(n), WaitTimeSeconds: pollWait, VisibilityTimeout: sqsapi.Seconds(lease), //nolint:gosec // at most 10
			MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: r.System,
		}, sqsapi.Once)
		if err == nil {
			messages = out.Messages
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("receiving from queue %q: %w", r.Source.Name, sqsapi.Said(err))
	}
	return messages, nil
}

// deal moves those of a batch that are wanted, and keeps the others.
func (r *run) deal(ctx context.Context, messages []types.Message) error {
	var wanted []types.Message
	for _, m := range messages {
		id := aws.ToString(m.MessageId)
		again := r.seen[id]
		r.seen[id] = true
		if again || r.later(&m) { // its time was over before the run was, or it is none of the run's
			r.kept.add(m)
			continue
		}
		r.looked++
		r.Found = max(r.Found, r.looked) // which is an approximate count
		switch {
		case r.Filter != nil && !r.Filter(&m):
			r.Skipped++
			r.kept.add(m)
		case r.DryRun:
			r.Moved++
			r.kept.add(m)
		default:
			wanted = append(wanted, m)
		}
	}
	for len(wanted) > 0 {
		n, bytes := 0, 0
		for n < len(wanted) && (n == 0 || bytes+size(&wanted[n]) <= sqsapi.BytesMax) {
			bytes += size(&wanted[n])
			n++
		}
		if err := r.move(ctx, wanted[:n]); err != nil {
			for _, m := range wanted[n:] {
				r.kept.add(m)
			}
			return err
		}
		wanted = wanted[n:]
	}
	return nil
}

// move sends messages and deletes those that were taken. An error ends the run.
func (r *run) move(ctx context.Context, messages []types.Message) error {
	if err := ctx.Err(); err != nil { // they were not tried, and have not failed
		r.keep(messages)
		return err
	}
	entries := make([]types.SendMessageBatchRequestEntry, len(messages))
	for i := range messages {
		entries[i] = r.copy(i, &messages[i])
	}
	var out *sqs.SendMessageBatchOutput
	err := again(ctx, func(ctx context.Context) (err error) {
		out, err = r.Client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &r.Target.URL, Entries: entries}, sqsapi.Once)
		if sqsapi.Unanswered(err) { // once more would be twice, perhaps
			return &final{err}
		}
		return err
	})
	if sent := (*final)(nil); ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.As(err, &sent) { // they were refused for the moment, and then it was the end
		r.keep(messages)
		return err
	}
	if half := len(messages) / 2; half > 0 && sqsapi.TooLong(err) { // a region where a batch has fewer bytes
		if err := r.move(ctx, messages[:half]); err != nil {
			r.keep(messages[half:])
			return err
		}
		return r.move(ctx, messages[half:])
	}
	if err != nil {
		for _, m := range messages {
			r.fail(aws.ToString(m.MessageId), sqsapi.Said(err))
		}
		r.keep(messages)
		return fmt.Errorf("sending to queue %q: %w", r.Target.Name, sqsapi.Said(err))
	}
	taken := make([]types.Message, 0, len(messages))
	for _, ok := range out.Successful {
		if i, err := strconv.Atoi(aws.ToString(ok.Id)); err == nil && i >= 0 && i < len(messages) {
			taken = append(taken, messages[i])
		}
	}
	for _, f := range out.Failed {
		if i, err := strconv.Atoi(aws.ToString(f.Id)); err == nil && i >= 0 && i < len(messages) {
			r.fail(aws.ToString(messages[i].MessageId), sqsapi.EntryError(f))
			r.kept.add(messages[i])
		}
	}
	return r.remove(context.WithoutCancel(ctx), taken) // what was taken is to be deleted, whatever else
}

// later says that a message was sent after the run began, by the service's
// clock: what the run itself brings about, perhaps.
func (r *run) later(m *types.Message) bool {
	ms, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64)
	return err == nil && ms > r.begun.Add(clockSlack).UnixMilli()
}

func (r *run) keep(messages []types.Message) {
	for _, m := range messages {
		r.kept.add(m)
	}
}

// copy is the message that is sent. In a FIFO queue it has the group that it
// had, and the id of the message that it is made of to be told from its like.
func (r *run) copy(i int, m *types.Message) types.SendMessageBatchRequestEntry {
	attributes := make(map[string]types.MessageAttributeValue, len(m.MessageAttributes))
	for name, value := range m.MessageAttributes {
		attributes[name] = value
	}
	for _, name := range r.Without {
		delete(attributes, name)
	}
	e := types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: m.Body, MessageAttributes: attributes}
	if trace, ok := m.Attributes[string(types.MessageSystemAttributeNameAWSTraceHeader)]; ok {
		e.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{
			string(types.MessageSystemAttributeNameForSendsAWSTraceHeader): {DataType: aws.String("String"), StringValue: &trace},
		}
	}
	if group, ok := m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]; ok {
		e.MessageGroupId = &group
	}
	if r.FIFO {
		e.MessageDeduplicationId = m.MessageId
	}
	return e
}

// remove deletes what has been copied.
func (r *run) remove(ctx context.Context, messages []types.Message) error {
	if len(messages) == 0 {
		return nil
	}
	entries := make([]types.DeleteMessageBatchRequestEntry, len(messages))
	for i, m := range messages {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle}
	}
	var out *sqs.DeleteMessageBatchOutput
	err := again(ctx, func(ctx context.Context) (err error) {
		out, err = r.Client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &r.Source.URL, Entries: entries}, sqsapi.Once)
		return err
	})
	if err != nil {
		r.Doubtful += len(messages)
		return fmt.Errorf("deleting from queue %q what has been sent to queue %q: %w", r.Source.Name, r.Target.Name, sqsapi.Said(err))
	}
	r.Doubtful += len(out.Failed)
	r.Moved += len(messages) - len(out.Failed)
	return nil
}

func (r *run) tell(last bool) {
	now := time.Now()
	if r.Progress != nil && (last || now.Sub(r.told) >= progressEvery) {
		r.told = now
		r.Progress(r.Report)
	}
}

// final is an error after which a request is not made again.
type final struct{ error }

func (f *final) Unwrap() error { return f.error }

// again makes a request until it succeeds, is hopeless or has failed too often.
func again(ctx context.Context, request func(context.Context) error) error {
	var pauses sqsapi.Backoff
	for try := 1; ; try++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		// A request that is under way is not cut off when ctx ends: of such a receive, SQS has handed out messages that
		// nobody can give back, and of a send nobody knows what became of it.
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), sqsapi.Timeout)
		err := request(limited)
		cancel()
		_, last := err.(*final) //nolint:errorlint // it is made here
		switch {
		case err == nil, last, sqsapi.Hopeless(err), try == tries:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case !sqsapi.Sleep(ctx, pauses.Next()):
			return err
		}
	}
}

// size is what a message counts, in bytes.
func size(m *types.Message) int {
	n := len(aws.ToString(m.Body))
	for name, value := range m.MessageAttributes {
		n += len(name) + len(aws.ToString(value.DataType)) + len(aws.ToString(value.StringValue)) + len(value.BinaryValue)
	}
	return min(n, math.MaxInt32)
}
