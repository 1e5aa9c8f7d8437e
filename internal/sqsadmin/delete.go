package sqsadmin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// counts is how often a queue is counted before it is taken for empty.
const counts = 3

// Deletion asks for the end of a queue.
type Deletion struct {
	Address
	// DeleteNonEmpty deletes the queue whatever it holds and whoever redrives to it.
	DeleteNonEmpty bool
}

// NotEmptyError is that a queue holds messages.
type NotEmptyError struct {
	ARN   string
	Depth Depth
}

func (e *NotEmptyError) Error() string {
	return fmt.Sprintf("%s holds %s, and was not deleted", object(e.ARN), e.Depth)
}

// String is what a queue holds, for people.
func (d Depth) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{d.Visible, "waiting"}, {d.InFlight, "in flight"}, {d.Delayed, "delayed"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	messages := "messages"
	if d.Total() == 1 {
		messages = "message"
	}
	return fmt.Sprintf("about %d %s (%s)", d.Total(), messages, strings.Join(parts, ", "))
}

// PointedAtError is that queues redrive to the one that was to be deleted.
type PointedAtError struct {
	ARN string
	By  []string
}

func (e *PointedAtError) Error() string {
	return fmt.Sprintf("%s is the dead-letter queue of %s, and was not deleted: what they redrive would be lost", object(e.ARN), strings.Join(e.By, ", "))
}

// Delete deletes a queue that is empty and that no queue redrives to, and waits until it is gone. A queue that is gone
// already is no error.
func (c *Client) Delete(ctx context.Context, d Deletion) error {
	if !d.DeleteNonEmpty {
		err := c.checkUnused(ctx, d.Address)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if _, err := c.sqs.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: aws.String(d.URL)}); err != nil {
		if isMissing(err) {
			return nil
		}
		return refused("delete", d.ARN, topology.ActionDeleteQueue, err)
	}
	return c.await(ctx, "the deletion", d.ARN, func(ctx context.Context) (string, error) {
		_, err := c.attributes(ctx, d.Address)
		switch {
		case errors.Is(err, ErrNotFound):
			return "", nil
		case err != nil:
			return "", err
		}
		return "the queue", nil
	})
}

// checkUnused refuses a queue that holds messages or that another one redrives to. It gives the other one time to go that
// is deleted beside it.
func (c *Client) checkUnused(ctx context.Context, q Address) error {
	if err := c.checkEmpty(ctx, q); err != nil {
		return err
	}
	for n := range counts {
		by, err := c.PointingAt(ctx, q)
		switch {
		case err != nil:
			return err
		case len(by) == 0 && n == 0:
			return nil
		case len(by) == 0:
			return c.checkEmpty(ctx, q) // of what was redriven meanwhile
		case n == counts-1:
			return &PointedAtError{ARN: q.ARN, By: by}
		}
		if sleep(ctx, c.pace.count) != nil {
			return &PointedAtError{ARN: q.ARN, By: by}
		}
	}
	return nil
}

// checkEmpty refuses a queue that holds messages.
func (c *Client) checkEmpty(ctx context.Context, q Address) error {
	for n := range counts {
		if n > 0 {
			if err := sleep(ctx, c.pace.count); err != nil {
				return fmt.Errorf("counting the messages of %s: %w; raise timeouts.delete", object(q.ARN), err)
			}
		}
		live, err := c.Attributes(ctx, q)
		if err != nil {
			return err
		}
		if depth := live.Depth(); depth.Total() > 0 {
			return &NotEmptyError{ARN: q.ARN, Depth: depth}
		}
	}
	return nil
}
