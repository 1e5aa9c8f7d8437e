package sqsadmin

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Address says which queue is meant.
type Address struct{ Name, URL, ARN string }

// LiveQueue is a queue as SQS shows it.
type LiveQueue struct {
	// Attributes are all that SQS returns.
	Attributes topology.SQSAttributes
	// Tags are the queue's, without those of AWS itself, which nobody can change.
	Tags map[string]string
}

// Depth is what SQS counts in a queue, approximately.
type Depth struct{ Visible, InFlight, Delayed int }

// Total is the sum.
func (d Depth) Total() int { return d.Visible + d.InFlight + d.Delayed }

// Depth is how many messages the queue is said to hold.
func (q LiveQueue) Depth() Depth {
	visible, inFlight, delayed := q.Attributes.Messages()
	return Depth{Visible: visible, InFlight: inFlight, Delayed: delayed}
}

// Queue reads a queue; the error is [ErrNotFound] where there is none.
func (c *Client) Queue(ctx context.Context, q Address) (LiveQueue, error) {
	var live LiveQueue
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		live.Attributes, err = c.attributes(ctx, q)
		return err
	})
	group.Go(func() (err error) {
		live.Tags, err = c.tags(ctx, q)
		return err
	})
	if err := group.Wait(); err != nil {
		return LiveQueue{}, err
	}
	return live, nil
}

// Attributes reads a queue without its tags.
func (c *Client) Attributes(ctx context.Context, q Address) (LiveQueue, error) {
	attributes, err := c.attributes(ctx, q)
	return LiveQueue{Attributes: attributes}, err
}

func (c *Client) attributes(ctx context.Context, q Address) (topology.SQSAttributes, error) {
	answer, err := c.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(q.URL), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return nil, refused("read", q.ARN, topology.ActionGetAttributes, err)
	}
	return answer.Attributes, nil
}

// Missing says that there is no such queue, and that the caller may read all of one that is: what is made and cannot be
// read would be in the state as broken.
func (c *Client) Missing(ctx context.Context, q Address) (bool, LiveQueue, error) {
	live, err := c.Attributes(ctx, q)
	if !errors.Is(err, ErrNotFound) {
		return false, live, err
	}
	if _, err = c.tags(ctx, q); err != nil && !errors.Is(err, ErrNotFound) {
		return false, live, err
	}
	return true, live, nil
}

func (c *Client) tags(ctx context.Context, q Address) (map[string]string, error) {
	answer, err := c.sqs.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: aws.String(q.URL)})
	if err != nil {
		return nil, refused("read the tags of", q.ARN, topology.ActionListTags, err)
	}
	tags := maps.Clone(answer.Tags)
	maps.DeleteFunc(tags, func(key, _ string) bool { return strings.HasPrefix(key, "aws:") })
	return tags, nil
}

// PointingAt are the ARNs of the live queues whose redrive policy names this one.
func (c *Client) PointingAt(ctx context.Context, q Address) ([]string, error) {
	var arns []string
	pages := sqs.NewListDeadLetterSourceQueuesPaginator(c.sqs, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: aws.String(q.URL)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, refused("list the queues that redrive to", q.ARN, topology.ActionListSources, err)
		}
		for _, url := range page.QueueUrls {
			// The list lags: what was deleted or led elsewhere may still be in it.
			live, err := c.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: aws.String(url), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
			if isMissing(err) {
				continue
			}
			if err != nil {
				return nil, refused("read a queue that redrives to", q.ARN, topology.ActionGetAttributes, err)
			}
			attributes := topology.SQSAttributes(live.Attributes)
			if target, _, ok := attributes.RedriveTarget(); ok && target == q.ARN {
				arns = append(arns, attributes.ARN())
			}
		}
	}
	slices.Sort(arns)
	return arns, nil
}

// Names are the names of all queues of the account in the region that start with prefix, in order.
func (c *Client) Names(ctx context.Context, prefix string) ([]string, error) {
	in := &sqs.ListQueuesInput{MaxResults: aws.Int32(1000)}
	if prefix != "" {
		in.QueueNamePrefix = aws.String(prefix)
	}
	var names []string
	for pages := sqs.NewListQueuesPaginator(c.sqs, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, failure(topology.ActionListQueues, err)
		}
		for _, url := range page.QueueUrls {
			names = append(names, url[strings.LastIndexByte(url, '/')+1:])
		}
	}
	slices.Sort(names)
	return names, nil
}
