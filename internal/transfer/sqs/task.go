package sqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
)

const (
	// maxTaskRate is the highest rate of a message-move task, in messages a second.
	maxTaskRate = 500
	// lookEvery is how often a task is looked at.
	lookEvery = time.Second
	// listedWithin is how long a task may be missing in the list, which may be that of a moment ago.
	listedWithin = 10 * time.Second
	// cancelTimeout bounds the cancelling of a task.
	cancelTimeout = 10 * time.Second
)

// The states of a task.
const (
	taskRunning    = "RUNNING"
	taskCompleted  = "COMPLETED"
	taskCancelling = "CANCELLING"
	taskCancelled  = "CANCELLED"
)

// Task moves all messages with the service's own move, and follows it to its
// end. When ctx is done, the task is cancelled: what it moved stays moved.
func Task(ctx context.Context, o Options) (Report, error) {
	r := Report{Left: -1}
	if err := o.validate(); err != nil {
		return r, err
	}
	in := &sqs.StartMessageMoveTaskInput{SourceArn: &o.Source.ARN, DestinationArn: &o.Target.ARN}
	if o.Rate > 0 {
		in.MaxNumberOfMessagesPerSecond = aws.Int32(int32(o.Rate))
	}
	before := newestTask(ctx, o).StartedTimestamp
	started, err := o.Client.StartMessageMoveTask(ctx, in, sqsapi.Once)
	if err != nil {
		r.Left = left(ctx, o)
		err = fmt.Errorf("starting a message-move task from queue %q to queue %q: %w", o.Source.Name, o.Target.Name, sqsapi.Said(err))
		if other := newestTask(ctx, o); !ended(other) {
			err = fmt.Errorf("%w; a queue has one task at a time, and the one to %s has moved %d of about %d messages: wait until it has ended and run the replay again, or cancel it first (CancelMessageMoveTask)",
				err, aws.ToString(other.DestinationArn), other.ApproximateNumberOfMessagesMoved, aws.ToInt64(other.ApproximateNumberOfMessagesToMove))
		}
		return r, err
	}
	err = follow(ctx, o, &r, started.TaskHandle, before)
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), cancelTask(o, &r, started.TaskHandle)) //nolint:contextcheck // it has ended
	}
	r.Left = left(context.WithoutCancel(ctx), o)
	return r, err
}

// follow looks at a task until it has ended.
func follow(ctx context.Context, o Options, r *Report, handle *string, before int64) error {
	begun := time.Now()
	for sqsapi.Sleep(ctx, lookEvery) {
		out, err := o.Client.ListMessageMoveTasks(ctx, &sqs.ListMessageMoveTasksInput{SourceArn: &o.Source.ARN}, sqsapi.Once)
		if err != nil && !sqsapi.Hopeless(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking at the message-move task of queue %q, which goes on: %w", o.Source.Name, sqsapi.Said(err))
		}
		task, found := taskOf(out.Results, handle, before)
		if !found && time.Since(begun) < listedWithin {
			continue
		}
		if !found {
			return fmt.Errorf("the message-move task of queue %q was started, and the service does not list it: look at the queue", o.Source.Name)
		}
		r.Found = max(r.Found, int(aws.ToInt64(task.ApproximateNumberOfMessagesToMove)))
		r.Moved = int(task.ApproximateNumberOfMessagesMoved)
		if o.Progress != nil {
			o.Progress(*r)
		}
		switch status := aws.ToString(task.Status); status {
		case taskRunning, taskCancelling:
		case taskCompleted:
			return nil
		case taskCancelled:
			return errors.New("somebody cancelled the message-move task; run the replay again to go on")
		default:
			return fmt.Errorf("the message-move task from queue %q to queue %q is %s: %s", o.Source.Name, o.Target.Name, status, aws.ToString(task.FailureReason))
		}
	}
	return ctx.Err()
}

// ended says that a task has come to its end, or is none.
func ended(task types.ListMessageMoveTasksResultEntry) bool {
	status := aws.ToString(task.Status)
	return status != taskRunning && status != taskCancelling
}

// newestTask is the newest task of the source; an empty one where there was none,
// or the service does not say.
func newestTask(ctx context.Context, o Options) (newest types.ListMessageMoveTasksResultEntry) {
	ctx, cancel := context.WithTimeout(ctx, sqsapi.Timeout)
	defer cancel()
	out, err := o.Client.ListMessageMoveTasks(ctx, &sqs.ListMessageMoveTasksInput{SourceArn: &o.Source.ARN}, sqsapi.Once)
	if err != nil {
		return newest
	}
	for _, task := range out.Results {
		if task.StartedTimestamp > newest.StartedTimestamp {
			newest = task
		}
	}
	return newest
}

// taskOf is the task with a handle. One that has ended has none, and is the
// newest: a queue has one at a time. Those from before are others.
func taskOf(tasks []types.ListMessageMoveTasksResultEntry, handle *string, before int64) (found types.ListMessageMoveTasksResultEntry, ok bool) {
	for _, task := range tasks {
		if task.TaskHandle != nil && *task.TaskHandle == aws.ToString(handle) {
			return task, true
		}
		if task.StartedTimestamp > max(before, found.StartedTimestamp) {
			found, ok = task, true
		}
	}
	return found, ok
}

func cancelTask(o Options, r *Report, handle *string) error {
	ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
	defer cancel()
	out, err := o.Client.CancelMessageMoveTask(ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: handle}, sqsapi.Once)
	if err != nil {
		return fmt.Errorf("cancelling the message-move task of queue %q, which may go on: %w", o.Source.Name, sqsapi.Said(err))
	}
	r.Moved = max(r.Moved, int(out.ApproximateNumberOfMessagesMoved))
	return nil
}

// left is how many messages the source has, by the service's approximate count;
// -1 where it does not say.
func left(ctx context.Context, o Options) int {
	ctx, cancel := context.WithTimeout(ctx, sqsapi.Timeout)
	defer cancel()
	name := types.QueueAttributeNameApproximateNumberOfMessages
	out, err := o.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &o.Source.URL, AttributeNames: []types.QueueAttributeName{name}}, sqsapi.Once)
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(out.Attributes[string(name)])
	if err != nil {
		return -1
	}
	return n
}
