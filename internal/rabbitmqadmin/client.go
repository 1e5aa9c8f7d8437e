package rabbitmqadmin

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Client talks to one RabbitMQ cluster. Its methods may be called from several goroutines. Make one with [New], one
// per run: what it learned about the broker (which vhosts are readable) is never asked again.
type Client struct {
	cfg       Config
	endpoints []endpoint
	http      *http.Transport
	amqp      *amqpDepths  // nil without AMQP endpoints
	current   atomic.Int64 // the endpoint that answered last
	requests  atomic.Int64

	exchanges    exchangeLocks
	deleted      deletions
	policyWrites chan struct{} // a slot for each
	counts       *sharedRead[map[string]counts]
	queues       *sharedRead[[]LiveQueue]
	exchangeList *sharedRead[[]LiveExchange]
	view         *View

	mu       sync.Mutex
	broker   *Broker
	readable map[vhostAt]bool // vhosts that were readable, by endpoint
	large    map[string]bool  // what has more than a page in a vhost, by kind and vhost

	// Tests shorten these.
	pause       func(context.Context, time.Duration) error
	unknownWait time.Duration
	unknownPoll time.Duration
	pageAbove   int
}

const (
	// unknownWait is how long counts that are absent are waited for.
	unknownWait = 15 * time.Second
	unknownPoll = time.Second

	dialTimeout         = 10 * time.Second
	idleTimeout         = 90 * time.Second
	idleConnsPerHost    = 32
	tlsHandshakeTimeout = 10 * time.Second
)

// New makes a client. It checks the configuration and does no I/O: an unreachable broker shows in the first call, or
// in [Client.Ping].
func New(cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configuring the RabbitMQ client: %w", err)
	}
	endpoints, err := parseEndpoints(cfg.Endpoints)
	if err != nil {
		return nil, fmt.Errorf("configuring the RabbitMQ client: %w", err)
	}
	amqpEndpoints, err := parseAMQPEndpoints(cfg.AMQPEndpoints)
	if err != nil {
		return nil, fmt.Errorf("configuring the RabbitMQ client: %w", err)
	}
	c := &Client{
		cfg:       cfg,
		endpoints: endpoints,
		http: &http.Transport{
			Proxy:               cfg.proxy(),
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSClientConfig:     cfg.TLS.Clone(),
			TLSHandshakeTimeout: tlsHandshakeTimeout,
			MaxIdleConnsPerHost: idleConnsPerHost,
			IdleConnTimeout:     idleTimeout,
		},
		policyWrites: make(chan struct{}, policyWritesAtOnce),
		readable:     map[vhostAt]bool{},
		large:        map[string]bool{},
		pause:        pause,
		unknownWait:  unknownWait,
		unknownPoll:  unknownPoll,
		pageAbove:    pageAbove,
	}
	if len(amqpEndpoints) > 0 {
		c.amqp = newAMQPDepths(cfg, amqpEndpoints)
	}
	c.counts = newSharedRead(c.readCounts)
	c.queues = newSharedRead(c.Queues)
	c.exchangeList = newSharedRead(c.listExchanges)
	c.view = newView(c)
	return c, nil
}

// Requests is how many requests were sent to the management API so far, those that got no answer included.
func (c *Client) Requests() int64 { return c.requests.Load() }

// Close closes the client's connections. Calls that are running fail or finish. It may be called more than once.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	if c.amqp != nil {
		c.amqp.close()
	}
}

// pause waits for d or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
