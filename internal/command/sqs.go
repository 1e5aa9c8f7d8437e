package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/internal/verify"
)

// sqsRetries is how often a request of the control plane is sent again: somebody waits for it.
const sqsRetries = 3

// amazonSQS is the backend of Amazon SQS in one region: the control plane says how queues are, and messages are received,
// sent and deleted.
type amazonSQS struct {
	admin  *sqsadmin.Client
	client *sqs.Client
}

var _ backend = (*amazonSQS)(nil)

// sqs is the backend for a manifest's region. Nothing of AWS is looked for before a manifest needs it.
func (a *app) sqs(ctx context.Context, m topology.Manifest) (*amazonSQS, error) {
	region := a.conn.region
	if region == "" {
		where, _, err := topology.ParseSQSARN(m.WorkQueue.ARN)
		if err != nil {
			return nil, err
		}
		region = where.Region
	}
	if b, ok := a.regions[region]; ok {
		return b, nil
	}
	retries := sqsRetries
	cfg := sqsadmin.Config{Region: region, Profile: a.conn.profile, Endpoint: a.conn.endpoint, MaxRetries: &retries, UserAgentVersion: a.version}
	admin, err := sqsadmin.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	settings, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(region), awsconfig.WithSharedConfigProfile(cfg.Profile))
	if err != nil {
		return nil, fmt.Errorf("cannot read the configuration of the AWS SDK: %w", err)
	}
	client := sqs.NewFromConfig(settings, func(o *sqs.Options) {
		if cfg.Endpoint != "" {
			o.BaseEndpoint = aws.String(cfg.Endpoint)
		}
	})
	b := &amazonSQS{admin: admin, client: client}
	a.regions[region] = b
	return b, nil
}

// attributes reads a queue. What to do about an error is said in the command's words.
func (b *amazonSQS) attributes(ctx context.Context, q topology.ManifestQueue) (sqsadmin.LiveQueue, error) {
	live, err := b.admin.Attributes(ctx, sqsadmin.Address{Name: q.Name, URL: q.URL, ARN: q.ARN})
	var refused *sqsadmin.Error
	if errors.As(err, &refused) {
		advised := *refused
		advised.Advice = sqsAdvice(ctx, q.ARN, err)
		return live, &advised
	}
	return live, err
}

// sqsAdvice is what to do where a queue cannot be read.
func sqsAdvice(ctx context.Context, arn string, err error) string {
	denied, _ := sqsapi.Denied(err)
	switch {
	case denied:
		return fmt.Sprintf("the credentials lack %s on %s, or a policy denies it; redeliver permissions --role operator prints what an operator needs", topology.ActionGetAttributes, arn)
	case sqsapi.BadCredentials(err):
		return "the credentials are not valid here: see --profile, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	case sqsapi.Unanswered(err) && ctx.Err() == nil:
		return "are there credentials (--profile, AWS_PROFILE, AWS_ACCESS_KEY_ID), are --region and --endpoint right, and can this machine reach them?"
	}
	return ""
}

func (b *amazonSQS) Verify(ctx context.Context, m topology.Manifest) (verify.Report, error) {
	return verify.SQS(ctx, b.attributes, m)
}

func (b *amazonSQS) Snapshot(ctx context.Context, m topology.Manifest) (snapshot, error) {
	s := snapshot{Queues: queuesOf(m), Notes: []string{
		"SQS counts approximately, and a minute late at times; what waits for its retry is in flight.",
		"SQS does not tell rates, consumers and the age of the oldest message: CloudWatch has the latter (ApproximateAgeOfOldestMessage).",
	}}
	for i := range s.Queues {
		q := &s.Queues[i]
		live, err := b.attributes(ctx, q.queue)
		denied, _ := sqsapi.Denied(err)
		switch {
		case errors.Is(err, sqsadmin.ErrNotFound):
			q.Missing = true
			continue
		case denied:
			q.Unseen = err.Error()
			continue
		case err != nil:
			return snapshot{}, err
		}
		depth := live.Depth()
		total, visible, inFlight, delayed := int64(depth.Total()), int64(depth.Visible), int64(depth.InFlight), int64(depth.Delayed)
		q.Messages, q.Ready, q.Unacknowledged, q.Delayed = &total, &visible, &inFlight, &delayed
	}
	return s, nil
}

// HandedOut is how many are in flight.
func (b *amazonSQS) HandedOut(ctx context.Context, _ topology.Manifest, queue topology.ManifestQueue) (*int64, error) {
	live, err := b.attributes(ctx, queue)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // whoever may move need not be allowed to ask
	}
	n := int64(live.Depth().InFlight)
	return &n, nil
}

// Ready is how many messages there are, those in flight and delayed too: all are purged.
func (b *amazonSQS) Ready(ctx context.Context, _ topology.Manifest, queue topology.ManifestQueue) (int, error) {
	live, err := b.attributes(ctx, queue)
	if err != nil {
		return 0, err
	}
	return live.Depth().Total(), nil
}

func (b *amazonSQS) Purge(ctx context.Context, m topology.Manifest, queue topology.ManifestQueue) (int, error) {
	n, err := b.Ready(ctx, m, queue)
	if err != nil {
		return 0, err
	}
	if _, err := b.client.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &queue.URL}); err != nil {
		return 0, fmt.Errorf("purging queue %q: %w%s", queue.Name, sqsapi.Said(err), purgeAdvice(err))
	}
	return n, nil
}
