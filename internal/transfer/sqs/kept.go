package sqs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
)

// kept are the messages that stay, invisible so that the run does not get them
// again.
type kept struct {
	options  Options
	handles  []*string
	extended time.Time
}

func (k *kept) add(m types.Message) {
	if len(k.handles) == 0 {
		k.extended = time.Now()
	}
	k.handles = append(k.handles, m.ReceiptHandle)
}

// extend keeps them invisible, when half of the time has passed.
func (k *kept) extend(ctx context.Context, now time.Time) error {
	if len(k.handles) == 0 || now.Sub(k.extended) < lease/2 {
		return nil
	}
	k.extended = now
	if err := k.change(ctx, lease); err != nil {
		return fmt.Errorf("keeping messages of queue %q from being received again: %w", k.options.Source.Name, sqsapi.Said(err))
	}
	return nil
}

// release gives them back. Those for which that fails come back by themselves.
func (k *kept) release(ctx context.Context) {
	slices.Reverse(k.handles) // the first message of a group last, so that none comes before it
	_ = k.change(ctx, 0)
}

func (k *kept) change(ctx context.Context, d time.Duration) error {
	for batch := range slices.Chunk(k.handles, sqsapi.BatchMax) {
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))
		for i, handle := range batch {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: handle, VisibilityTimeout: sqsapi.Seconds(d)}
		}
		if err := again(ctx, func(ctx context.Context) error {
			_, err := k.options.Client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &k.options.Source.URL, Entries: entries}, sqsapi.Once)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
