package sqs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Publisher sends copies to the dead-letter and the parked queue, up to ten in a
// request. It implements consumer.Publisher.
type Publisher struct {
	b      *Broker
	ctx    context.Context //nolint:containedctx // it ends with the publisher
	cancel context.CancelFunc

	mu      sync.Mutex
	targets map[string]*batcher[*parcel] // by the queue's name
}

var _ consumer.Publisher = (*Publisher)(nil)

// parcel is a copy on its way.
type parcel struct {
	entry types.SendMessageBatchRequestEntry
	// own are the message's own attributes: what the copy has when it was refused with those that were added. nil where it
	// was, or where none were.
	own  map[string]types.MessageAttributeValue
	size int
	done func(error)
}

// NewPublisher makes a publisher. It makes no request.
func NewPublisher(b *Broker) *Publisher {
	p := &Publisher{b: b, targets: make(map[string]*batcher[*parcel])}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Check implements consumer.Publisher: it sends a batch of nothing, which is
// refused for that unless it is for want of a permission.
func (p *Publisher) Check(ctx context.Context, targets []*topology.ManifestTarget) error {
	for _, target := range targets {
		limited, cancel := context.WithTimeout(ctx, sqsapi.Timeout)
		_, err := p.b.cfg.Client.SendMessageBatch(limited, &sqs.SendMessageBatchInput{
			QueueUrl: &target.URL, Entries: []types.SendMessageBatchRequestEntry{},
		}, sqsapi.Once)
		cancel()
		if err := asked(err); err != nil {
			return p.b.bindError(target.ManifestQueue, topology.ActionSend, err)
		}
	}
	return nil
}

// Publish implements consumer.Publisher.
func (p *Publisher) Publish(c consumer.Copy, done func(error)) {
	made, err := p.pack(c)
	if err != nil {
		go done(err)
		return
	}
	made.done = done
	p.to(c.Target).add(made, false)
}

// pack makes the entry of a copy. The message group stays, and a copy that is
// sent twice, because the answer was lost, is one message of a FIFO queue.
func (p *Publisher) pack(c consumer.Copy) (*parcel, error) {
	attributes, left := attributesOf(c)
	body := string(c.Message.Body)
	for _, name := range []string{p.b.cfg.Headers.Error, p.b.cfg.Headers.ErrorType} {
		if over := size(body, attributes) - sqsapi.BytesMax; over > 0 && name != "" {
			if _, set := c.Set[name]; set {
				delete(attributes, name)
				left = append(left, name)
			}
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		p.b.cfg.Log.Warn("a copy has no room for some of its attributes", "message_id", c.Message.ID, "target", c.Target.Name, "attributes", left)
	}
	n := size(body, attributes)
	if n > sqsapi.BytesMax {
		return nil, fmt.Errorf("%w: with its attributes it has %d bytes, and a message at most %d", consumer.ErrUnpublishable, n, sqsapi.BytesMax)
	}
	entry := types.SendMessageBatchRequestEntry{MessageBody: &body, MessageAttributes: attributes}
	if trace, ok := c.Message.Headers[headerTrace].(string); ok {
		entry.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{headerTrace: {DataType: aws.String(typeString), StringValue: &trace}}
	}
	if c.Message.RoutingKey != "" { // a standard queue can have groups too
		entry.MessageGroupId = &c.Message.RoutingKey
	}
	if c.Target.Type == topology.FIFO {
		entry.MessageDeduplicationId = &c.Message.ID
	}
	made := &parcel{entry: entry, size: n}
	if len(c.Set) > 0 {
		c.Set = nil
		made.own, _ = attributesOf(c)
	}
	return made, nil
}

func (p *Publisher) to(target *topology.ManifestTarget) *batcher[*parcel] {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.targets[target.Name]
	if b == nil {
		queue := target.ManifestQueue
		b = newBatcher(flushAfter, func(batch []*parcel) { p.send(queue, batch) })
		p.targets[target.Name] = b
	}
	return b
}

// send sends a batch, in as many requests as its size takes.
func (p *Publisher) send(queue topology.ManifestQueue, batch []*parcel) {
	for len(batch) > 0 {
		n, bytes := 0, 0
		for n < len(batch) && (n == 0 || bytes+batch[n].size <= sqsapi.BytesMax) {
			bytes += batch[n].size
			n++
		}
		p.request(queue, batch[:n])
		batch = batch[n:]
	}
}

// errUnconfirmed is why nobody knows whether a copy was taken.
var errUnconfirmed = errors.New("the service did not confirm it")

func (p *Publisher) request(queue topology.ManifestQueue, batch []*parcel) {
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i, made := range batch {
		entries[i] = made.entry
		entries[i].Id = entryID(i)
	}
	ctx, cancel := context.WithTimeout(p.ctx, sqsapi.Timeout)
	out, err := p.b.cfg.Client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &queue.URL, Entries: entries}, sqsapi.Once)
	cancel()
	if half := len(batch) / 2; half > 0 && sqsapi.TooLong(err) { // a region where a batch has fewer bytes
		p.request(queue, batch[:half])
		p.request(queue, batch[half:])
		return
	}
	results := make([]error, len(batch))
	for i := range results {
		if results[i] = errUnconfirmed; err != nil {
			results[i] = err
		}
		if sqsapi.TooLong(err) {
			results[i] = fmt.Errorf("%w: %w", consumer.ErrUnpublishable, err)
		}
	}
	if err == nil {
		for _, ok := range out.Successful {
			if i := entryIndex(ok.Id); i >= 0 && i < len(batch) {
				results[i] = nil
			}
		}
		for _, f := range out.Failed {
			if i := entryIndex(f.Id); i >= 0 && i < len(batch) {
				if results[i] = sqsapi.EntryError(f); !sqsapi.Again(f) {
					results[i] = fmt.Errorf("%w: %w", consumer.ErrUnpublishable, results[i])
				}
			}
		}
	}
	var bare []*parcel
	for i, made := range batch {
		if errors.Is(results[i], consumer.ErrUnpublishable) && made.own != nil {
			made.entry.MessageAttributes, made.own = made.own, nil
			bare = append(bare, made)
			continue
		}
		made.done(p.failure(queue, results[i]))
	}
	if len(bare) > 0 { // that the message gets there matters more than the reason
		p.b.cfg.Log.Warn("copies were refused; sending them without the attributes that say why they failed", "target", queue.Name, "messages", len(bare))
		p.request(queue, bare)
	}
}

func (p *Publisher) failure(queue topology.ManifestQueue, err error) error {
	if err == nil {
		return nil
	}
	p.b.note(&p.b.settling, err)
	if sqsapi.Gone(err) {
		return fmt.Errorf("sending to queue %q: %w: %w", queue.Name, consumer.ErrNoQueue, sqsapi.Said(err))
	}
	return fmt.Errorf("sending to queue %q: %w", queue.Name, sqsapi.Said(err))
}

// Blocked implements consumer.Publisher: the service blocks nobody.
func (p *Publisher) Blocked() (reason string, blocked bool) { return "", false }

// Close implements consumer.Publisher.
func (p *Publisher) Close(ctx context.Context) error {
	defer p.cancel()
	defer context.AfterFunc(ctx, p.cancel)()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.targets {
		b.drain(ctx)
	}
	return ctx.Err()
}
