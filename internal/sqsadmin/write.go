package sqsadmin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Queue is a queue as it is to be.
type Queue struct {
	Address
	// Attributes are all that are managed; an empty one is unset.
	Attributes topology.SQSAttributes
	// Tags are all that the queue is to have.
	Tags map[string]string
}

// errTaken: a queue of the name is there.
var errTaken = errors.New("it was made by somebody else at this very moment; apply again to see how it compares")

// Create makes a queue and waits until it can be seen. made says that it is there, whatever became of the waiting. A name
// that was deleted within the last minute is tried until ctx ends. SQS does not tell whether it made the queue or found
// one with the same attributes: who must know looks first.
func (c *Client) Create(ctx context.Context, q Queue) (made bool, err error) {
	in := &sqs.CreateQueueInput{QueueName: aws.String(q.Name), Attributes: q.Attributes.Set(), Tags: q.Tags}
	var recently *types.QueueDeletedRecently
	for start := time.Now(); ; {
		answer, err := c.sqs.CreateQueue(ctx, in)
		var taken *types.QueueNameExists
		switch {
		case ctx.Err() != nil && recently != nil:
			return false, refused("create", q.ARN, "", recently)
		case err == nil:
			// Where the configured account is not that of the credentials, everything else would look in the wrong place.
			if url := aws.ToString(answer.QueueUrl); tail(url) != tail(q.URL) {
				return false, fmt.Errorf("%s was asked for and SQS made %s, in the account of the credentials: set sqs.account_id to that account, or use its credentials; the queue that was made is left to delete",
					object(q.ARN), url)
			}
			return true, c.awaitWritten(ctx, q)
		case errors.As(err, &taken):
			return false, &Error{Op: "create", Queue: object(q.ARN), Reason: reason(err), Advice: errTaken.Error(), cause: err}
		case !errors.As(err, &recently) && unanswered(err) && c.wasMade(ctx, q):
			if ctx.Err() != nil {
				return true, fmt.Errorf("%s was made, and then the apply was interrupted: %w", object(q.ARN), ctx.Err())
			}
			return true, c.awaitWritten(ctx, q)
		case !errors.As(err, &recently):
			return false, refused("create", q.ARN, topology.ActionCreate+" (and "+topology.ActionTag+", where there are tags)", err)
		}
		c.cfg.Progressf(ctx, "waiting until SQS lets the name of a deleted queue be used again, which takes a minute",
			map[string]any{"queue": q.ARN, "waited": time.Since(start).Round(time.Second).String()})
		if sleep(ctx, c.pace.recreate) != nil {
			return false, refused("create", q.ARN, "", recently)
		}
	}
}

// unanswered says that nobody knows what became of a request.
func unanswered(err error) bool {
	var answer smithy.APIError
	return !errors.As(err, &answer) || answer.ErrorCode() == nobody
}

// lookTimeout bounds the look for a queue whose creation was not answered.
const lookTimeout = 10 * time.Second

// wasMade says whether a queue is there after a request to make it that was not answered. An apply that is interrupted in
// it would leave the queue behind, unknown to the state, and the next one would refuse to make it.
func (c *Client) wasMade(ctx context.Context, q Queue) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
	defer cancel()
	live, err := c.Attributes(ctx, q.Address)
	return err == nil && len(topology.DiffSQSAttributes(q.Attributes, live.Attributes)) == 0
}

// tail is the account and the name that a queue's URL ends in.
func tail(url string) string {
	parts := strings.Split(url, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}

// Update sets what differs from what the queue is to be, and waits until it can be seen.
func (c *Client) Update(ctx context.Context, q Queue) error {
	live, err := c.Queue(ctx, q.Address)
	if err != nil {
		return err
	}
	set := q.Attributes.Repair(live.Attributes)
	if len(set) == 0 && maps.Equal(q.Tags, live.Tags) {
		return nil
	}
	if len(set) > 0 {
		if _, err := c.sqs.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: aws.String(q.URL), Attributes: set}); err != nil {
			return refused("set "+strings.Join(slices.Sorted(maps.Keys(set)), ", ")+" of", q.ARN, topology.ActionSetAttributes, err)
		}
	}
	if err := c.updateTags(ctx, q, live.Tags); err != nil {
		return err
	}
	return c.awaitWritten(ctx, q)
}

func (c *Client) updateTags(ctx context.Context, q Queue, live map[string]string) error {
	var remove []string
	for key := range live {
		if _, kept := q.Tags[key]; !kept {
			remove = append(remove, key)
		}
	}
	set := maps.Clone(q.Tags)
	maps.DeleteFunc(set, func(key, value string) bool {
		have, there := live[key]
		return there && have == value
	})
	if len(remove) > 0 {
		slices.Sort(remove)
		if _, err := c.sqs.UntagQueue(ctx, &sqs.UntagQueueInput{QueueUrl: aws.String(q.URL), TagKeys: remove}); err != nil {
			return refused("remove tags of", q.ARN, topology.ActionUntag, err)
		}
	}
	if len(set) > 0 {
		if _, err := c.sqs.TagQueue(ctx, &sqs.TagQueueInput{QueueUrl: aws.String(q.URL), Tags: set}); err != nil {
			return refused("set tags of", q.ARN, topology.ActionTag, err)
		}
	}
	return nil
}

// awaitWritten waits until a queue shows as it is to be.
func (c *Client) awaitWritten(ctx context.Context, q Queue) error {
	return c.await(ctx, "what was written", q.ARN, func(ctx context.Context) (string, error) {
		live, err := c.Queue(ctx, q.Address)
		switch {
		case errors.Is(err, ErrNotFound):
			return "no such queue", nil
		case err != nil:
			return "", err
		}
		differences := topology.DiffSQSAttributes(q.Attributes, live.Attributes)
		if len(differences) > 0 {
			return differences[0].String(), nil
		}
		if !maps.Equal(q.Tags, live.Tags) {
			return fmt.Sprintf("the tags %v", live.Tags), nil
		}
		return "", nil
	})
}
