package rabbitmq

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	transport "github.com/redeliver/terraform-provider-redeliver/internal/consumer/rabbitmq"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Config says which broker, which topic, and who handles its messages.
type Config struct {
	// URL is the broker's, with the user and the password:
	// "amqp://user:password@host:5672", or "amqps://" for TLS. Special characters
	// in it are percent-encoded (url.UserPassword does that). The vhost comes from
	// the manifest; where the URL names one too, it must be the same. The query
	// parameters of amqp091-go apply, such as heartbeat and cacertfile.
	//
	// Required.
	URL string

	// Addresses are further nodes of the same broker, "host" or "host:port". They
	// are tried in order where the one before does not answer.
	//
	// Defaults to none: the node in URL.
	Addresses []string

	// TLS is the TLS configuration for amqps. It is not modified.
	//
	// Defaults to the system's certificate authorities and the URL's parameters.
	TLS *tls.Config

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

	// ConnectionName is how the connection is called in RabbitMQ's management UI.
	//
	// Defaults to "redeliver:" and the topic.
	ConnectionName string
}

// Consumer consumes one topic's work queue, or the shards of one. Its methods
// may be called from several goroutines.
type Consumer struct {
	shards *consumer.Shards
}

var _ redeliver.Runner = (*Consumer)(nil)

// Open connects, checks what the manifest needs, and subscribes to the work
// queue; to each shard, where a sequenced topic has shards. It tries once: what
// is missing is an error now, not a consumer that keeps trying. The error is a
// *redeliver.BindError that says what infrastructure has to provide, or says
// what is wrong with the configuration.
//
// From then on the broker may send up to Prefetch messages, which wait in this
// process until [Consumer.Run] hands them to the handler; so call Run soon, or
// [Consumer.Close].
//
// Config.Workers and the like are for each shard.
//
// The context bounds opening only.
func Open(ctx context.Context, cfg Config) (*Consumer, error) {
	doc := cfg.Manifest.Contract()
	if doc.Topic == "" {
		return nil, fmt.Errorf("opening a consumer: %w", redeliver.ErrNoManifest)
	}
	c, err := cfg.open(ctx, consumer.Options{Handler: cfg.Handler}, doc.WorkQueues()...)
	if err != nil {
		return nil, fmt.Errorf("opening a consumer: %w", err)
	}
	return c, nil
}

// HandleDead opens a consumer of the topic's dead-letter queue. The handler
// learns why and where each message failed. A message is acknowledged, and so
// gone, when the handler returns nil; else it is handed out again in this
// process after pauses that grow from a second to five minutes, and given back
// to the broker when its consumer timeout is near, or at shutdown. Nothing is
// ever given up, so that more than Config.MaxHeld messages which keep failing take
// the workers too, and hold up the rest.
//
// Of cfg, Handler is not used, and neither are Consumer.MaxRetries,
// MaxMessageSize and Sequence. The user needs read permission on the dead-letter
// queue (build_permissions has it in the role operator). What HandleDead returns is run and closed as what [Open] returns.
func HandleDead(ctx context.Context, cfg Config, handler redeliver.DeadHandler) (*Consumer, error) {
	doc := cfg.Manifest.Contract()
	switch {
	case doc.Topic == "":
		return nil, fmt.Errorf("opening a consumer of dead letters: %w", redeliver.ErrNoManifest)
	case doc.DeadLetter == nil:
		return nil, fmt.Errorf("opening a consumer of dead letters: topic %q has no dead-letter queue; its manifest says so", doc.Topic)
	case handler == nil:
		return nil, fmt.Errorf("opening a consumer of dead letters: there is no handler")
	}
	cfg.Consumer.Sequence, cfg.Consumer.MaxMessageSize = nil, math.MaxInt
	c, err := cfg.open(ctx, consumer.Options{Handler: consumer.DeadHandler(doc, handler), Dead: true}, doc.DeadLetter.ManifestQueue)
	if err != nil {
		return nil, fmt.Errorf("opening a consumer of dead letters: %w", err)
	}
	return c, nil
}

func (cfg Config) open(ctx context.Context, o consumer.Options, queues ...topology.ManifestQueue) (*Consumer, error) {
	o.Manifest, o.Config, o.Connect = cfg.Manifest.Contract(), cfg.Consumer, cfg.connect
	shards, err := consumer.Open(ctx, o, queues...)
	if err != nil {
		return nil, err
	}
	return &Consumer{shards}, nil
}

func (cfg Config) connect(m topology.Manifest, queue topology.ManifestQueue, targets []*topology.ManifestTarget) (consumer.Transport, consumer.Publisher, error) {
	broker, err := cfg.broker(m, queue)
	if err != nil {
		return nil, nil, err
	}
	if len(targets) == 0 {
		return broker, nil, nil
	}
	return broker, transport.NewPublisher(broker), nil
}

func (cfg Config) broker(m topology.Manifest, queue topology.ManifestQueue) (*transport.Broker, error) {
	if err := m.RequireBroker(topology.BrokerRabbitMQ); err != nil {
		return nil, err
	}
	name := cfg.ConnectionName
	if name == "" {
		name = "redeliver:" + m.Topic
	}
	log := cfg.Consumer.WithDefaults().Logger.With("topic", m.Topic, "vhost", m.VHost)
	return transport.NewBroker(transport.Config{
		URL: cfg.URL, Addresses: cfg.Addresses, TLS: cfg.TLS, Name: name,
		Topic: m.Topic, VHost: m.VHost, Queue: queue.Name, Headers: m.Headers,
		Quorum: queue.Type == topology.Quorum, SingleActive: m.Sequence != nil, AckEach: cfg.Consumer.AckEach,
		OnBlocked: func(reason string, blocked bool) {
			if blocked {
				log.Warn("the broker takes no copies: messages that are to be published wait, and acknowledgements go on", "reason", reason)
			} else {
				log.Info("the broker takes copies again")
			}
		},
	})
}

// Run hands messages to the handler until ctx is done or [Consumer.Close] is
// called. Then it shuts down within Config.DrainTimeout: it tells the broker to
// send no more, gives back what was not started or waits for a retry, and waits
// for the handlers that run.
//
// It returns nil after a clean shutdown, a *redeliver.DrainError that names the
// messages whose handlers did not return in time, or the reason why it gave up
// reconnecting (see redeliver.Config.MaxReconnectAttempts). It is called once.
func (c *Consumer) Run(ctx context.Context) error { return c.shards.Run(ctx) }

// Close shuts down like the end of Run's context does, waits for that, and
// returns what Run returns. It may be called at any time and more than once,
// but not from a handler: it waits for that handler until the drain timeout.
func (c *Consumer) Close() error { return c.shards.Close() }

// Stats reads the consumer's counters; those of all shards together.
func (c *Consumer) Stats() redeliver.Stats { return c.shards.Stats() }

// Health says how the consumer is, for readiness probes and for people: see
// redeliver.Health.
func (c *Consumer) Health() redeliver.Health { return c.shards.Health() }

// ResetSequence lets the messages of a key of a sequenced topic be handled again
// after one of them failed for good under redeliver.FailAll. It returns false
// when none had, in this process.
func (c *Consumer) ResetSequence(key string) bool { return c.shards.ResetSequence(key) }
