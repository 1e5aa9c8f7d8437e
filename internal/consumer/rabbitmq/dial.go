package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// dialTimeout bounds connecting to one address, handshakes included.
const dialTimeout = 15 * time.Second

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
	// Quorum says that the queue is a quorum queue.
	Quorum bool
	// AckEach sends every acknowledgement by itself.
	AckEach bool
}

// Broker dials the nodes of one broker. It implements consumer.Transport.
type Broker struct {
	cfg  Config
	user string
	urls []*url.URL // one for each node, with credentials: never printed
}

// NewBroker reads the configuration. It connects to nothing.
func NewBroker(cfg Config) (*Broker, error) {
	first, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	b := &Broker{cfg: cfg, user: "guest", urls: []*url.URL{first}}
	if first.User != nil {
		b.user = first.User.Username()
	}
	if cfg.TLS != nil && first.Scheme != "amqps" {
		return nil, errors.New("rabbitmq config: TLS is set and the URL begins with amqp://; use amqps://, or leave TLS out")
	}
	if named := strings.TrimPrefix(first.Path, "/"); named != "" && named != cfg.VHost {
		return nil, b.bindError(redeliver.ErrVHost, first.Host, fmt.Sprintf(
			"the URL names vhost %q and the manifest %q; leave the vhost out of the URL, or use the manifest of the other vhost", named, cfg.VHost), nil)
	}
	for _, address := range cfg.Addresses {
		if address == "" || strings.ContainsAny(address, "/@") {
			return nil, errors.New("rabbitmq config: an entry of Addresses is not a host or host:port; credentials and vhost come from URL")
		}
		u := *first
		u.Host = address
		b.urls = append(b.urls, &u)
	}
	return b, nil
}

// parseURL reads an AMQP URL. Its errors quote nothing of it, since a password
// that is not percent-encoded can end up in any part.
func parseURL(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, errors.New("rabbitmq config: URL is empty; set it to the broker's, such as amqp://user:password@host:5672")
	}
	if _, err := amqp091.ParseURI(raw); err != nil {
		return nil, errors.New("rabbitmq config: URL is not an AMQP URL, such as amqp://user:password@host:5672; " +
			"special characters in the user, the password and the vhost are percent-encoded (url.UserPassword does it)")
	}
	u, err := url.Parse(raw)
	if err != nil { // ParseURI has parsed it the same way
		return nil, errors.New("rabbitmq config: URL cannot be parsed")
	}
	return u, nil
}

// dial connects to the first node that answers, in the order of the
// configuration. purpose becomes part of the connection's name.
func (b *Broker) dial(ctx context.Context, purpose string) (*amqp091.Connection, string, error) {
	var failed []string
	var first error
	for _, u := range b.urls {
		conn, err := b.dialNode(ctx, u, purpose)
		if err == nil {
			return conn, u.Host, nil
		}
		err = b.dialError(u.Host, err)
		if !errors.Is(err, redeliver.ErrUnreachable) || ctx.Err() != nil {
			return nil, "", err // the node answered: the others would say the same
		}
		if first == nil {
			first = err
		}
		failed = append(failed, u.Host)
	}
	var bind *redeliver.BindError
	if errors.As(first, &bind) {
		bind.Address = strings.Join(failed, ", ")
	}
	return nil, "", first
}

func (b *Broker) dialNode(ctx context.Context, u *url.URL, purpose string) (*amqp091.Connection, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	stop := func() bool { return true }
	properties := amqp091.NewConnectionProperties()
	properties.SetClientConnectionName(b.cfg.Name + purpose)
	cfg := amqp091.Config{
		Vhost:      b.cfg.VHost,
		Properties: properties,
		// The handshakes obey ctx: when it ends, or times out, the connection is closed under them.
		Dial: func(network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
			return conn, nil
		},
	}
	if b.cfg.TLS != nil {
		cfg.TLSClientConfig = b.cfg.TLS.Clone() // the library writes to it
	}
	conn, err := amqp091.DialConfig(u.String(), cfg)
	switch {
	case !stop():
		return nil, ctx.Err()
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	}
	return conn, nil
}
