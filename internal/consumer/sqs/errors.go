package sqs

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// bindError says why a request that a consumer needs failed, and what
// infrastructure has to provide. action is the request's IAM action.
func (b *Broker) bindError(queue topology.ManifestQueue, action string, err error) error {
	if errors.Is(err, context.Canceled) { // that says nothing about the service
		return fmt.Errorf("subscribing to queue %q: %w", queue.Name, err)
	}
	e := &redeliver.BindError{Topic: b.cfg.Topic, Queue: queue.Name, ARN: queue.ARN, Address: host(queue.URL), Err: sqsapi.Said(err)}
	denied, key := sqsapi.Denied(err)
	switch {
	case key:
		e.Kind, e.Advice = redeliver.ErrPermission, "the queue is encrypted with a key of AWS KMS: the caller needs kms:Decrypt on it, and kms:GenerateDataKey to send"
	case denied:
		e.Kind, e.Action = redeliver.ErrPermission, action
		e.Advice = "allow " + action + " on " + queue.ARN + " (the provider function build_iam_policy has what the manifest needs)"
	case sqsapi.Gone(err):
		e.Kind = redeliver.ErrQueueNotFound
		e.Advice = "apply the Terraform configuration that has the topic; is this the account and the region where that was done?"
	case sqsapi.BadCredentials(err):
		e.Kind = redeliver.ErrCredentials
		e.Advice = "check the credentials, and that they have not expired: AWS_PROFILE, AWS_ACCESS_KEY_ID, or the role of the machine"
	case sqsapi.Unanswered(err):
		e.Kind = redeliver.ErrUnreachable
		e.Advice = "check the network, the endpoint and the region, and that there are credentials"
	default:
		e.Kind = redeliver.ErrRefused
	}
	return e
}

func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Host
}

// lostError says why a session ends with a request's error; nil where the
// request may succeed when it is made again.
func lostError(err error) *consumer.LostError {
	denied, _ := sqsapi.Denied(err)
	switch {
	case sqsapi.Gone(err):
		return &consumer.LostError{Reason: consumer.LostQueueDeleted, Err: sqsapi.Said(err)}
	case denied, sqsapi.BadCredentials(err):
		return &consumer.LostError{Reason: consumer.LostAccess, Err: sqsapi.Said(err)}
	default:
		return nil
	}
}
