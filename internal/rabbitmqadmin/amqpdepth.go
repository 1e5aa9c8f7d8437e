package rabbitmqadmin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

// amqpDepths asks for exact depths by passive declares. A passive declare counts what is ready at this moment, and
// neither what is unacknowledged nor what waits to be dead-lettered. It opens one connection per vhost when it is first
// needed and keeps it.
type amqpDepths struct {
	cfg       Config
	endpoints []*url.URL

	mu     sync.Mutex
	vhosts map[string]*amqpVHost
}

// amqpVHost is the connection to one vhost. Its user holds turn, so that breaking the connection off, which is the only
// way to stop a request on it, disturbs nobody else.
type amqpVHost struct {
	turn chan struct{}
	conn *amqp091.Connection
	raw  net.Conn
}

// amqpDepth is what a passive declare tells.
type amqpDepth struct {
	exists              bool
	messages, consumers int
}

const closeTimeout = 2 * time.Second

func newAMQPDepths(cfg Config, endpoints []*url.URL) *amqpDepths {
	return &amqpDepths{cfg: cfg, endpoints: endpoints, vhosts: map[string]*amqpVHost{}}
}

// depths asks for the depth of each queue. Any permission on a queue is enough on most versions; 4.2 and 4.3.0 want
// configure.
func (a *amqpDepths) depths(ctx context.Context, vhost string, queues []string) (map[string]amqpDepth, error) {
	v := a.vhost(vhost)
	if err := take(ctx, v.turn); err != nil {
		return nil, ctx.Err()
	}
	defer release(v.turn, 1)
	ctx, cancel := context.WithTimeout(ctx, a.cfg.RequestTimeout)
	defer cancel()
	for round := 0; ; round++ {
		kept := v.conn != nil
		out, err := a.ask(ctx, v, vhost, queues)
		switch {
		case err == nil:
			return out, nil
		case ctx.Err() != nil:
			v.drop()
			return nil, fmt.Errorf("%w (%w)", ctx.Err(), err)
		case round >= a.cfg.MaxRetries && !kept, !passing(err) && (!kept || a.cfg.Token == nil): // a new connection has the token of now
			return nil, err
		}
		v.drop()
		if kept {
			// It may have died since the last question: there is nothing to wait for.
			continue
		}
		if pause(ctx, backoff(round)) != nil {
			return nil, err
		}
	}
}

// passing reports whether a failure may be gone the next time: the connection's, not the broker's refusals.
func passing(err error) bool {
	var refusal *amqp091.Error
	if errors.As(err, &refusal) {
		switch refusal.Code {
		case amqp091.ConnectionForced, amqp091.ChannelError, amqp091.FrameError, amqp091.InternalError:
			return true
		}
		return false
	}
	return !permanentFailure(err)
}

func (a *amqpDepths) vhost(name string) *amqpVHost {
	a.mu.Lock()
	defer a.mu.Unlock()
	v := a.vhosts[name]
	if v == nil {
		v = &amqpVHost{turn: make(chan struct{}, 1)}
		a.vhosts[name] = v
	}
	return v
}

func (a *amqpDepths) ask(ctx context.Context, v *amqpVHost, vhost string, queues []string) (map[string]amqpDepth, error) {
	if v.conn == nil || v.conn.IsClosed() {
		if err := a.connect(ctx, v, vhost); err != nil {
			return nil, err
		}
	}
	// The library's requests take no context. Without its connection they end at once.
	raw := v.raw
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()

	out := make(map[string]amqpDepth, len(queues))
	var channel *amqp091.Channel
	defer func() {
		if channel != nil {
			_ = channel.Close()
		}
	}()
	for _, name := range queues {
		if channel == nil {
			var err error
			if channel, err = v.conn.Channel(); err != nil {
				return nil, fmt.Errorf("asking for the exact depth of queue %q in vhost %q over AMQP: %w", name, vhost, err)
			}
		}
		q, err := channel.QueueDeclarePassive(name, true, false, false, false, nil)
		var refusal *amqp091.Error
		switch {
		case err == nil:
			out[name] = amqpDepth{exists: true, messages: q.Messages, consumers: q.Consumers}
		case errors.As(err, &refusal) && refusal.Code == amqp091.NotFound:
			out[name] = amqpDepth{}
			channel = nil // the broker closed it
		default:
			channel = nil
			return nil, fmt.Errorf("asking for the exact depth of queue %q in vhost %q over AMQP as %s: %w%s", name, vhost, a.cfg.amqpIdentity(), err, amqpAdvice(refusal))
		}
	}
	return out, nil
}

func amqpAdvice(refusal *amqp091.Error) string {
	switch {
	case refusal == nil:
		return ""
	case refusal.Code == amqp091.AccessRefused:
		return "; the user needs a permission on this queue (configure, on some versions), or amqp_endpoints has to be left out: depths are then taken from statistics"
	case refusal.Code == amqp091.ResourceLocked:
		return "; the queue is exclusive to another connection and goes when that closes"
	}
	return ""
}

// connect tries the endpoints in turn.
func (a *amqpDepths) connect(ctx context.Context, v *amqpVHost, vhost string) error {
	e := &UnreachableError{Op: "connect to", Object: "RabbitMQ over AMQP", VHost: vhost, Tries: 1}
	for _, endpoint := range a.endpoints {
		conn, raw, err := a.dial(ctx, endpoint, vhost)
		if err == nil {
			v.conn, v.raw = conn, raw
			return nil
		}
		if why := a.cfg.amqpNotAccepted(err); why != "" {
			err = fmt.Errorf("%w (%s)", err, why)
		}
		e.Endpoints = append(e.Endpoints, endpoint.String())
		e.Causes = append(e.Causes, err)
	}
	return e
}

func (a *amqpDepths) dial(ctx context.Context, endpoint *url.URL, vhost string) (*amqp091.Connection, net.Conn, error) {
	var raw net.Conn
	stop := func() bool { return false }
	sasl, err := a.cfg.SASL()
	if err != nil {
		return nil, nil, err
	}
	cfg := amqp091.Config{
		Vhost:      vhost,
		SASL:       []amqp091.Authentication{sasl},
		Properties: amqp091.NewConnectionProperties(),
		Dial: func(network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			raw = conn
			// The handshakes take no context either.
			stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
			return conn, nil
		},
	}
	cfg.Properties.SetClientConnectionName(a.cfg.UserAgent)
	if endpoint.Scheme == "amqps" {
		cfg.TLSClientConfig = a.cfg.TLS.Clone()
		if cfg.TLSClientConfig == nil {
			cfg.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		if cfg.TLSClientConfig.ServerName == "" {
			cfg.TLSClientConfig.ServerName = endpoint.Hostname()
		}
	}
	conn, err := amqp091.DialConfig(endpoint.String(), cfg)
	stop()
	return conn, raw, err
}

// drop gives the connection up. The caller holds the turn.
func (v *amqpVHost) drop() {
	if v.raw != nil {
		_ = v.raw.Close()
	}
	if v.conn != nil {
		_ = v.conn.Close()
	}
	v.conn, v.raw = nil, nil
}

func (a *amqpDepths) close() {
	a.mu.Lock()
	vhosts := a.vhosts
	a.vhosts = map[string]*amqpVHost{}
	a.mu.Unlock()
	for _, v := range vhosts {
		v.turn <- struct{}{}
		if v.conn != nil {
			_ = v.conn.CloseDeadline(time.Now().Add(closeTimeout))
		}
		v.drop()
		<-v.turn
	}
}
