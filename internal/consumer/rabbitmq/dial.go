package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Config says which broker and which queue.
type Config struct {
	// URL is the broker's, with credentials; its vhost, where it names one, is VHost.
	URL string
	// Addresses are further nodes ("host" or "host:port") with the same credentials.
	Addresses []string
	// TLS is used with amqps; nil is the library's default.
	TLS *tls.Config
	// Name is shown for the connections in the management UI.
	Name string
	// Topic, VHost and Queue are the manifest's.
	Topic, VHost, Queue string
	// Headers are the manifest's. An error that a copy carries in one of them is cut where the copy would not fit a frame.
	Headers topology.Headers
	// Quorum says that the queue is a quorum queue.
	Quorum bool
	// SingleActive says that the queue sends its messages to one of its consumers, while the others stand by.
	SingleActive bool
	// AckEach sends every acknowledgement by itself.
	AckEach bool
	// OnBlocked, where it is set, is told when the broker begins to take no copies, with its reason, and when it takes them
	// again. It must return quickly.
	OnBlocked func(reason string, blocked bool)
}

// Broker dials the nodes of one broker. It implements consumer.Transport.
type Broker struct {
	cfg   Config
	nodes *amqp.Broker
}

// NewBroker reads the configuration. It connects to nothing.
func NewBroker(cfg Config) (*Broker, error) {
	nodes, err := amqp.NewBroker(amqp.Config{URL: cfg.URL, Addresses: cfg.Addresses, TLS: cfg.TLS, VHost: cfg.VHost, Name: cfg.Name})
	if err != nil {
		return nil, fmt.Errorf("rabbitmq config: %w", err)
	}
	b := &Broker{cfg: cfg, nodes: nodes}
	if named := nodes.VHost(); named != "" && named != cfg.VHost {
		return nil, b.bindError(redeliver.ErrVHost, nodes.Address(), fmt.Sprintf(
			"the URL names vhost %q and the manifest %q; leave the vhost out of the URL, or use the manifest of the other vhost", named, cfg.VHost), nil)
	}
	return b, nil
}

// Dial connects to the first node that answers. purpose becomes part of the
// connection's name. The error is a *redeliver.BindError.
func (b *Broker) Dial(ctx context.Context, purpose string) (*amqp.Conn, error) {
	conn, err := b.nodes.Dial(ctx, purpose)
	var failed *amqp.DialError
	if errors.As(err, &failed) {
		return nil, b.dialError(failed.Address, failed.Err)
	}
	return conn, err
}
