package sqs

import (
	"context"
	"crypto/rand"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// noHandle is no message's handle.
const noHandle = "redeliver-asks-whether-it-may"

// firstWait is how long the first receive of a session waits, in seconds.
const firstWait = 1

// Subscribe implements consumer.Transport. It asks whether the caller may delete
// messages and change their visibility, with a handle that is no message's, and
// receives for the first time.
func (b *Broker) Subscribe(ctx context.Context, prefetch int) (consumer.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*sqsapi.Timeout)
	defer cancel()
	if err := b.mayDelete(ctx); err != nil {
		return nil, b.bindError(b.cfg.Queue, topology.ActionDelete, err)
	}
	if err := b.mayChange(ctx); err != nil {
		return nil, b.bindError(b.cfg.Queue, topology.ActionChangeVisibility, err)
	}
	s := newSession(b, prefetch)
	out, err := b.receive(ctx, s.batch, firstWait, rand.Text())
	if err != nil {
		return nil, b.bindError(b.cfg.Queue, topology.ActionReceive, err)
	}
	b.fine(&b.polling)
	s.reserved, s.pollers = s.batch, 1
	s.arrived(s.batch, out.Messages)
	go s.poll()
	go s.keep()
	return s, nil
}

// mayDelete fails where the service does not say that the handle is the trouble.
func (b *Broker) mayDelete(ctx context.Context) error {
	handle := noHandle
	_, err := b.cfg.Client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{
		QueueUrl: &b.cfg.Queue.URL, Entries: []types.DeleteMessageBatchRequestEntry{{Id: entryID(0), ReceiptHandle: &handle}},
	}, sqsapi.Once)
	return asked(err)
}

func (b *Broker) mayChange(ctx context.Context) error {
	handle := noHandle
	_, err := b.cfg.Client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{
		QueueUrl: &b.cfg.Queue.URL, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{{Id: entryID(0), ReceiptHandle: &handle}},
	}, sqsapi.Once)
	return asked(err)
}

// asked is the error of a request that was made to be refused, where it was
// refused for another reason.
func asked(err error) error {
	if denied, _ := sqsapi.Denied(err); err == nil || !denied && !sqsapi.Gone(err) && !sqsapi.BadCredentials(err) && !sqsapi.Unanswered(err) {
		return nil
	}
	return err
}
