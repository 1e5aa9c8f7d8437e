package rabbitmq

import (
	"context"
	"crypto/tls"
	"fmt"

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

// Consumer consumes one topic's work queue. Its methods may be called from
// several goroutines.
type Consumer struct {
	engine *consumer.Consumer
}

// Open connects, checks what the manifest needs, and subscribes to the work
// queue. It tries once: what is missing is an error now, not a consumer that
// keeps trying. The error is a *redeliver.BindError that says what
// infrastructure has to provide, or a *redeliver.StrategyError, or says what is
// wrong with the configuration.
//
// From then on the broker may send up to Prefetch messages, which wait in this
// process until [Consumer.Run] hands them to the handler; so call Run soon, or
// [Consumer.Close].
//
// The context bounds opening only.
func Open(ctx context.Context, cfg Config) (*Consumer, error) {
	engine, err := consumer.New(consumer.Options{
		Manifest: cfg.Manifest, Handler: cfg.Handler, Config: cfg.Consumer, Connect: cfg.connect,
	})
	if err != nil {
		return nil, fmt.Errorf("opening a consumer: %w", err)
	}
	if err := engine.Bind(ctx); err != nil {
		return nil, fmt.Errorf("opening a consumer: %w", err)
	}
	return &Consumer{engine: engine}, nil
}

func (cfg Config) connect(m topology.Manifest, targets []*topology.ManifestTarget) (consumer.Transport, consumer.Publisher, error) {
	name := cfg.ConnectionName
	if name == "" {
		name = "redeliver:" + m.Topic
	}
	broker, err := transport.NewBroker(transport.Config{
		URL: cfg.URL, Addresses: cfg.Addresses, TLS: cfg.TLS, Name: name,
		Topic: m.Topic, VHost: m.VHost, Queue: m.WorkQueue.Name, Quorum: m.WorkQueue.Type == topology.Quorum,
	})
	if err != nil {
		return nil, nil, err
	}
	if len(targets) == 0 {
		return broker, nil, nil
	}
	return broker, transport.NewPublisher(broker), nil
}

// Run hands messages to the handler until ctx is done or [Consumer.Close] is
// called. Then it shuts down within Config.DrainTimeout: it tells the broker to
// send no more, gives back what was not started or waits for a retry, and waits
// for the handlers that run.
//
// It returns nil after a clean shutdown, a *redeliver.DrainError that names the
// messages whose handlers did not return in time, or the reason why it gave up
// reconnecting (see redeliver.Config.MaxReconnectAttempts). It is called once.
func (c *Consumer) Run(ctx context.Context) error { return c.engine.Run(ctx) }

// Close shuts down like the end of Run's context does, waits for that, and
// returns what Run returns. It may be called at any time and more than once,
// but not from a handler: it waits for that handler until the drain timeout.
func (c *Consumer) Close() error { return c.engine.Close() }

// Stats reads the consumer's counters.
func (c *Consumer) Stats() redeliver.Stats { return c.engine.Stats() }
