package sqs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	transport "github.com/redeliver/terraform-provider-redeliver/internal/consumer/sqs"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Config says which topic, who handles its messages, and how the service is
// reached.
type Config struct {
	// Manifest is the topic's: see redeliver.LoadManifest.
	//
	// Required.
	Manifest redeliver.Manifest

	// Handler handles the messages.
	//
	// Required.
	Handler redeliver.Handler

	// Consumer says how: workers, prefetch, timeouts, logging.
	//
	// Defaults to the defaults of redeliver.Config.
	Consumer redeliver.Config

	// AWS is the configuration of the AWS SDK: credentials, HTTP client and the
	// like. Its retries are not used: requests are made again by this package, which
	// counts them.
	//
	// Defaults to what the SDK finds in the environment, in ~/.aws and on the
	// machine.
	AWS *aws.Config

	// Client is used instead of one made of AWS, Region and Endpoint, none of which
	// may be set then.
	//
	// Defaults to none.
	Client *sqs.Client

	// Region is the queues' region. One that is not the manifest's is refused.
	//
	// Defaults to the manifest's.
	Region string

	// Endpoint is the address of an emulator or a VPC endpoint, such as
	// "http://127.0.0.1:4566".
	//
	// Defaults to AWS's own.
	Endpoint string
}

// Consumer consumes one topic's work queue. Its methods may be called from
// several goroutines.
type Consumer struct {
	shards *consumer.Shards
}

var _ redeliver.Runner = (*Consumer)(nil)

// Open checks what the manifest needs and receives for the first time. It tries
// once: what is missing is an error now, not a consumer that keeps trying. The
// error is a *redeliver.BindError that says what infrastructure has to provide,
// or says what is wrong with the configuration.
//
// From then on up to Prefetch messages are received, which wait in this process
// until [Consumer.Run] hands them to the handler; so call Run soon, or
// [Consumer.Close].
//
// The context bounds opening only.
func Open(ctx context.Context, cfg Config) (*Consumer, error) {
	doc, err := cfg.contract()
	if err != nil {
		return nil, fmt.Errorf("opening a consumer: %w", err)
	}
	c, err := cfg.open(ctx, doc, consumer.Options{Handler: cfg.Handler}, doc.WorkQueue)
	if err != nil {
		return nil, fmt.Errorf("opening a consumer: %w", err)
	}
	return c, nil
}

// HandleDead opens a consumer of the topic's dead-letter queue. The handler
// learns why each message failed, as far as that is known: SQS moves messages
// without saying. A message is deleted, and so gone, when the handler returns
// nil; else it is received again after a pause that grows with the number of its
// receives, from a second to five minutes. Nothing is ever given up.
//
// The messages of a group of a FIFO queue come in order, but one that is received
// again comes after those that were handled meanwhile: each is dealt with by
// itself.
//
// Of cfg, Handler is not used, and neither are Consumer.MaxRetries,
// MaxMessageSize and Sequence. The caller needs on the dead-letter queue what a
// consumer needs on the work queue (build_iam_policy has it in the role operator).
// What HandleDead returns is run and closed as what [Open] returns.
func HandleDead(ctx context.Context, cfg Config, handler redeliver.DeadHandler) (*Consumer, error) {
	doc, err := cfg.contract()
	switch {
	case err != nil:
	case doc.DeadLetter == nil:
		err = fmt.Errorf("topic %q has no dead-letter queue; its manifest says so", doc.Topic)
	case handler == nil:
		err = errors.New("there is no handler")
	}
	if err != nil {
		return nil, fmt.Errorf("opening a consumer of dead letters: %w", err)
	}
	cfg.Consumer.Sequence, cfg.Consumer.MaxMessageSize = nil, math.MaxInt
	c, err := cfg.open(ctx, doc, consumer.Options{Handler: consumer.DeadHandler(doc, handler), Dead: true}, doc.DeadLetter.ManifestQueue)
	if err != nil {
		return nil, fmt.Errorf("opening a consumer of dead letters: %w", err)
	}
	return c, nil
}

// contract is the manifest, which has to be one of SQS.
func (cfg Config) contract() (topology.Manifest, error) {
	doc := cfg.Manifest.Contract()
	if doc.Topic == "" {
		return doc, redeliver.ErrNoManifest
	}
	return doc, doc.RequireBroker(topology.BrokerSQS)
}

func (cfg Config) open(ctx context.Context, doc topology.Manifest, o consumer.Options, queue topology.ManifestQueue) (*Consumer, error) {
	client, err := cfg.client(ctx, doc)
	if err != nil {
		return nil, err
	}
	o.Manifest, o.Config = doc, cfg.Consumer
	o.Connect = func(m topology.Manifest, queue topology.ManifestQueue, targets []*topology.ManifestTarget) (consumer.Transport, consumer.Publisher, error) {
		broker := transport.NewBroker(transport.Config{
			Client: client, Topic: m.Topic, Queue: queue, Headers: m.Headers, AckEach: cfg.Consumer.AckEach, MaxReceives: m.MaxReceiveCount(),
			Log: cfg.Consumer.WithDefaults().Logger.With("topic", m.Topic, "queue", queue.Name),
		})
		if len(targets) == 0 {
			return broker, nil, nil
		}
		return broker, transport.NewPublisher(broker), nil
	}
	shards, err := consumer.Open(ctx, o, queue)
	if err != nil {
		return nil, err
	}
	return &Consumer{shards}, nil
}

// connections is how many connections are kept for the next request: as many as
// there are requests at a time.
const connections = 64

// client is the configured client, or one that is made.
func (cfg Config) client(ctx context.Context, doc topology.Manifest) (*sqs.Client, error) {
	region := ""
	if parts := strings.Split(doc.WorkQueue.ARN, ":"); len(parts) > 3 { // arn:partition:sqs:region:account:name
		region = parts[3]
	}
	switch {
	case cfg.Client != nil && (cfg.AWS != nil || cfg.Region != "" || cfg.Endpoint != ""):
		return nil, errors.New("Client is set, and so is AWS, Region or Endpoint, of which a client is made: leave out one or the other") //nolint:staticcheck // a field's name
	case cfg.Client != nil:
		return cfg.Client, nil
	case cfg.Region != "" && region != "" && cfg.Region != region:
		return nil, fmt.Errorf("the Region is %q, and the manifest's queue %s is in %q: leave out the Region, or take the manifest of the other region", cfg.Region, doc.WorkQueue.ARN, region)
	}
	var settings aws.Config
	if cfg.AWS != nil {
		settings = cfg.AWS.Copy()
		if settings.HTTPClient == nil {
			settings.HTTPClient = pooled()
		}
	} else {
		var err error
		if settings, err = config.LoadDefaultConfig(ctx, config.WithHTTPClient(pooled())); err != nil {
			return nil, fmt.Errorf("configuring the AWS SDK: %w", err)
		}
	}
	settings.Region = cmp.Or(cfg.Region, region, settings.Region)
	return sqs.NewFromConfig(settings, func(o *sqs.Options) {
		if cfg.Endpoint != "" {
			o.BaseEndpoint = aws.String(cfg.Endpoint)
		}
	}), nil
}

// pooled is the SDK's HTTP client, which keeps more connections.
func pooled() *awshttp.BuildableClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = connections, connections
	})
}

// Run hands messages to the handler until ctx is done or [Consumer.Close] is
// called. Then it shuts down within Config.DrainTimeout: it receives no more,
// gives back what was not started, and waits for the handlers that run.
//
// It returns nil after a clean shutdown, a *redeliver.DrainError that names the
// messages whose handlers did not return in time, or the reason why it gave up
// reconnecting (see redeliver.Config.MaxReconnectAttempts). It is called once.
func (c *Consumer) Run(ctx context.Context) error { return c.shards.Run(ctx) }

// Close shuts down like the end of Run's context does, waits for that, and
// returns what Run returns. It may be called at any time and more than once,
// but not from a handler: it waits for that handler until the drain timeout.
func (c *Consumer) Close() error { return c.shards.Close() }

// Stats reads the consumer's counters.
func (c *Consumer) Stats() redeliver.Stats { return c.shards.Stats() }

// Health says how the consumer is, for readiness probes and for people: see
// redeliver.Health.
func (c *Consumer) Health() redeliver.Health { return c.shards.Health() }

// ResetSequence lets the messages of a group of a FIFO queue be handled again
// after one of them failed for good under redeliver.FailAll. It returns false
// when none had, in this process.
func (c *Consumer) ResetSequence(group string) bool { return c.shards.ResetSequence(group) }
