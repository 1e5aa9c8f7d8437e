package amqp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

const (
	// dialTimeout bounds connecting to one node, handshakes included.
	dialTimeout = 15 * time.Second
	// closeTimeout bounds how long a broker is waited for that has been told of a connection's end.
	closeTimeout = 3 * time.Second
)

// Config says which broker.
type Config struct {
	// URL is the broker's, with credentials unless SASL is set.
	URL string
	// SASL authenticates each connection instead of the credentials in URL: by a token that is renewed, or by a client
	// certificate. Optional.
	SASL func() (amqp091.Authentication, error)
	// Addresses are further nodes ("host" or "host:port") with the same credentials.
	Addresses []string
	// TLS is used with amqps; nil is the library's default. It is not modified.
	TLS *tls.Config
	// VHost is the virtual host; empty is the URL's.
	VHost string
	// Name is shown for the connections in the management UI.
	Name string
}

// Broker dials the nodes of one broker.
type Broker struct {
	cfg  Config
	urls []*url.URL // one for each node, with credentials: never printed
}

// NewBroker reads the configuration. It connects to nothing, and its errors
// quote nothing of the URL, since a password that is not percent-encoded can end
// up in any part of it.
func NewBroker(cfg Config) (*Broker, error) {
	if cfg.URL == "" {
		return nil, errors.New("URL is empty; set it to the broker's, such as amqp://user:password@host:5672")
	}
	if _, err := amqp091.ParseURI(cfg.URL); err != nil {
		return nil, errors.New("URL is not an AMQP URL, such as amqp://user:password@host:5672; " +
			"special characters in the user, the password and the vhost are percent-encoded (url.UserPassword does it)")
	}
	first, err := url.Parse(cfg.URL)
	if err != nil { // ParseURI has parsed it the same way
		return nil, errors.New("URL cannot be parsed")
	}
	if cfg.TLS != nil && first.Scheme != "amqps" {
		return nil, errors.New("TLS is set and the URL begins with amqp://; use amqps://, or leave TLS out")
	}
	b := &Broker{cfg: cfg, urls: []*url.URL{first}}
	for _, address := range cfg.Addresses {
		if address == "" || strings.ContainsAny(address, "/@") {
			return nil, errors.New("an entry of Addresses is not a host or host:port; credentials and vhost come from URL")
		}
		u := *first
		u.Host = address
		b.urls = append(b.urls, &u)
	}
	return b, nil
}

// User is the user in the URL.
func (b *Broker) User() string {
	if b.urls[0].User == nil {
		return "guest" // the client library's
	}
	return b.urls[0].User.Username()
}

// VHost is the virtual host that the URL names, "" where it names none.
func (b *Broker) VHost() string { return strings.TrimPrefix(b.urls[0].Path, "/") }

// Address is the first node's.
func (b *Broker) Address() string { return b.urls[0].Host }

// Conn is a connection to one node.
type Conn struct {
	*amqp091.Connection
	// Address is the node's.
	Address string
	socket  net.Conn
	out     *batch
}

// Dial connects to the first node that answers, in the order of the
// configuration. purpose becomes part of the connection's name. The error is a
// *DialError.
func (b *Broker) Dial(ctx context.Context, purpose string) (*Conn, error) {
	var failed []string
	var first error
	for _, u := range b.urls {
		conn, err := b.dialNode(ctx, u, purpose)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil || sameEverywhere(err) {
			return nil, &DialError{Address: u.Host, Err: err}
		}
		if first == nil {
			first = err
		}
		failed = append(failed, u.Host)
	}
	return nil, &DialError{Address: strings.Join(failed, ", "), Err: first}
}

// sameEverywhere: the node answered, and the others would say the same.
func sameEverywhere(err error) bool {
	switch ReplyCode(err) {
	case amqp091.AccessRefused: // ErrSASL, ErrCredentials and ErrVhost have this code too
		return true
	case amqp091.NotAllowed:
		return !AtLimit(err)
	default:
		return false
	}
}

// AtLimit says whether a node refused a connection because there are too many,
// on the node, in the vhost or of the user. Only the text tells that from a
// vhost that does not exist.
func AtLimit(err error) bool {
	var reply *amqp091.Error
	return errors.As(err, &reply) && reply.Code == amqp091.NotAllowed && strings.Contains(reply.Reason, "limit (")
}

func (b *Broker) dialNode(ctx context.Context, u *url.URL, purpose string) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	made := &Conn{Address: u.Host}
	var under *wire
	stop := func() bool { return true }
	properties := amqp091.NewConnectionProperties()
	properties.SetClientConnectionName(b.cfg.Name + purpose)
	uri, err := amqp091.ParseURI(u.String())
	if err != nil {
		return nil, errors.New("the URL with this address is not an AMQP URL")
	}
	secure := uri.Scheme == "amqps"
	plain := *u
	if secure { // TLS belongs under the wire: the library, which would put it above, is asked for a plain connection
		plain.Scheme, plain.Host = "amqp", net.JoinHostPort(uri.Host, strconv.Itoa(uri.Port))
	}
	cfg := amqp091.Config{
		Vhost:      b.cfg.VHost,
		Properties: properties,
		FrameSize:  amqp091.FrameSizeUnlimited, // the broker's
		// The handshakes obey ctx: when it ends, or times out, the connection is closed under them.
		Dial: func(network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			made.socket = conn
			stop = context.AfterFunc(ctx, made.Abandon)
			if secure {
				if conn, err = b.secure(ctx, conn, uri); err != nil {
					return nil, err
				}
			}
			made.out = newBatch(conn)
			under = newWire(made.out)
			return under, nil
		},
	}
	if b.cfg.SASL != nil {
		sasl, err := b.cfg.SASL()
		if err != nil {
			return nil, err
		}
		cfg.SASL = []amqp091.Authentication{sasl}
	}
	conn, err := amqp091.DialConfig(plain.String(), cfg)
	if !stop() || err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		if made.socket != nil { // after a failed handshake the library leaves it open
			made.Abandon()
		}
		return nil, err
	}
	under.keepTo(conn)
	made.Connection = conn
	// amqp091-go closes the socket of a connection that failed only when it has every channel's lock, and a write that a
	// broken network does not take holds one until the kernel gives up, for a quarter of an hour.
	closes := conn.NotifyClose(make(chan *amqp091.Error, 1))
	go func() {
		<-closes                                   //nolint:errcheck // why does not matter here
		time.AfterFunc(flushTimeout, made.Abandon) // the answer to the broker's close may wait to be written
	}()
	return made, nil
}

// Flush has what was written so far leave at once, and not when the goroutine
// that writes gets its turn.
func (c *Conn) Flush() { c.out.push() }

// Abandon ends the connection at once, without a word to the broker.
func (c *Conn) Abandon() { _ = c.socket.Close() }

// Close ends the connection, before ctx does and within some seconds.
func (c *Conn) Close(ctx context.Context) error {
	deadline := time.Now().Add(closeTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := c.CloseDeadline(deadline); err != nil && !errors.Is(err, amqp091.ErrClosed) {
		return err
	}
	return nil
}
