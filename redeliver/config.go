package redeliver

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// The defaults of [Config].
const (
	DefaultWorkers        = 8
	DefaultMaxHeld        = 64
	DefaultMaxMessageSize = 10 << 20
	DefaultDrainTimeout   = 20 * time.Second
)

// NoRetries is a [Config].MaxRetries that honours no retry at all.
const NoRetries = -1

// maxPrefetch is the most that AMQP can say.
const maxPrefetch = 65535

// Config says how a consumer runs. The zero value is good: every field has a
// default, which [Config.WithDefaults] fills in. What is retried, after which
// delay and how often is not said here but in the topic's manifest.
type Config struct {
	// Workers is how many messages are handled at the same time.
	//
	// Defaults to 8.
	Workers int

	// MaxHeld bounds how many messages wait in this process to be retried or
	// deferred. Each keeps a prefetch slot and some memory, and no worker. Past
	// the bound a message that is to wait keeps its worker while it waits, so
	// that a consumer whose every message fails slows down instead of taking in
	// ever more. Messages whose copies were not taken by the broker are held beyond
	// it, up to Prefetch. Under hybrid, the rest of a long delay counts too that is
	// waited here after the hold queues. Under broker_delayed it is Workers,
	// whatever is said here.
	//
	// Defaults to 64, or to Prefetch - Workers where Prefetch is set.
	MaxHeld int

	// Prefetch is how many unsettled messages the broker hands to this process:
	// those that are handled, those that wait, and those that are next. Every one
	// of them is delivered again when the connection is lost, and on a quorum
	// queue that spends one of its retries; so more is faster and less is safer.
	// It is at least Workers + MaxHeld, so that waiting messages cannot keep the
	// workers from getting any, and at most 65535. Under the strategy
	// broker_delayed, where a lost connection also delays every prefetched
	// message, it is Workers, whatever is said here.
	//
	// On Amazon SQS messages wait for their retries in the queue, and Prefetch only
	// bounds what this process has received.
	//
	// Defaults to Workers + MaxHeld; on a standard queue of Amazon SQS, where
	// neither is set, to Workers + 20.
	Prefetch int

	// MaxRetries lowers the manifest's max_retries. A value above the manifest's
	// has no effect. NoRetries (-1) honours no retry.
	//
	// Defaults to 0: the manifest's.
	MaxRetries int

	// HandlerTimeout is how long a handler may take. When it has passed, the
	// handler's context is cancelled with a *TimeoutError as its cause, and a
	// Retry that the handler then returns is replaced by TimeoutOutcome. Any other
	// outcome is carried out as it is: an Ack that came late is work that was
	// done. A handler that ignores its context keeps its worker, and its message,
	// until it returns.
	//
	// Leave it well below the broker's consumer timeout (30 minutes by default),
	// after which the broker takes the message away.
	//
	// Defaults to none.
	HandlerTimeout time.Duration

	// TimeoutOutcome is what becomes of a message whose handler exceeded
	// HandlerTimeout: such as Reject(nil), or RetryAfter(time.Minute, nil). Where
	// it has no error, the *TimeoutError is filled in.
	//
	// Defaults to Retry.
	TimeoutOutcome Outcome

	// MaxMessageSize is the largest body, in bytes, that is handed to a handler. A
	// larger one is parked with a *SizeError. The broker has sent it by then: the
	// limit protects the handler, not the network.
	//
	// Defaults to 10 MiB.
	MaxMessageSize int

	// DrainTimeout bounds the whole shutdown: telling the broker to send no more,
	// giving back what was not started, waiting for handlers, closing. When three
	// quarters of it have passed, the contexts of the handlers that still run are
	// cancelled with ErrDraining.
	//
	// Defaults to 20 seconds.
	DrainTimeout time.Duration

	// AckEach acknowledges every message by itself and at once. Otherwise
	// acknowledgements wait for one another, for five milliseconds at most, and one
	// answer to the broker covers all messages up to the first that is not done:
	// much faster, and should the connection be lost in those milliseconds, the
	// broker delivers them again.
	//
	// Defaults to false.
	AckEach bool

	// Sequence says which messages of a sequenced topic belong together. The
	// manifest says whether the topic is sequenced.
	//
	// Required for a sequenced topic on RabbitMQ, and refused for one that is not
	// sequenced. On Amazon SQS, where the message group is the key, it may say what
	// happens after a failure.
	Sequence *Sequence

	// Telemetry watches the consumer, for metrics and traces: see package
	// redeliver/redeliverotel.
	//
	// Defaults to none.
	Telemetry Telemetry

	// MaxReconnectAttempts is how often in a row connecting may fail, after a
	// connection was lost, before the consumer gives up and Run returns the error.
	// Attempts are made with growing pauses of up to 30 seconds.
	//
	// Defaults to 0: never give up.
	MaxReconnectAttempts int

	// Logger receives what an operator wants to read: connections lost and won,
	// messages that failed and why. Bodies and credentials are never logged.
	//
	// Defaults to slog.Default().
	Logger *slog.Logger

	// OnEvent, where it is set, is told of everything that is counted in Stats, as
	// it happens. It is called from many goroutines and must return quickly: the
	// message's settlement waits for it. A panic in it is logged; it must not end
	// its goroutine, as testing's FailNow does.
	//
	// Defaults to none.
	OnEvent func(Event)
}

// WithDefaults returns the configuration with every unset field filled in.
func (c Config) WithDefaults() Config {
	if c.Workers == 0 {
		c.Workers = DefaultWorkers
	}
	switch {
	case c.Prefetch == 0 && c.MaxHeld == 0:
		c.MaxHeld = DefaultMaxHeld
	case c.MaxHeld == 0:
		c.MaxHeld = max(0, c.Prefetch-c.Workers)
	}
	if c.Prefetch == 0 {
		c.Prefetch = c.Workers + c.MaxHeld
	}
	if c.TimeoutOutcome.Kind() == OutcomeNone {
		c.TimeoutOutcome = Retry(nil)
	}
	if c.MaxMessageSize == 0 {
		c.MaxMessageSize = DefaultMaxMessageSize
	}
	if c.DrainTimeout == 0 {
		c.DrainTimeout = DefaultDrainTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Validate refuses a configuration that contradicts itself. It looks at the
// configuration with its defaults, so that it may be called before or after
// [Config.WithDefaults].
func (c Config) Validate() error {
	c = c.WithDefaults()
	refuse := func(bad bool, format string, args ...any) error {
		if bad {
			return fmt.Errorf("consumer config: "+format, args...)
		}
		return nil
	}
	return errors.Join(
		refuse(c.Workers < 0 || c.Workers > maxPrefetch, "Workers is %d; use 1 to %d, or 0 for the default of %d", c.Workers, maxPrefetch, DefaultWorkers),
		refuse(c.MaxHeld < 0 || c.MaxHeld > maxPrefetch, "MaxHeld is %d; use 1 to %d, or 0 for the default of %d", c.MaxHeld, maxPrefetch, DefaultMaxHeld),
		refuse((c.Prefetch < 0 || c.Prefetch > maxPrefetch) && c.Workers <= maxPrefetch && c.MaxHeld <= maxPrefetch, "Prefetch is %d; use 1 to %d, or 0 for Workers + MaxHeld", c.Prefetch, maxPrefetch),
		refuse(c.Prefetch > 0 && c.Prefetch < c.Workers, "Prefetch is %d, below Workers (%d, of which the default is %d): some would never get a message; raise it, or lower Workers",
			c.Prefetch, c.Workers, DefaultWorkers),
		refuse(c.Workers >= 0 && c.MaxHeld > 0 && c.Prefetch >= c.Workers && c.Prefetch < c.Workers+c.MaxHeld,
			"Prefetch is %d, below Workers (%d) + MaxHeld (%d): waiting messages would keep the workers from getting any; raise it, or leave it out",
			c.Prefetch, c.Workers, c.MaxHeld),
		refuse(c.MaxRetries < NoRetries, "MaxRetries is %d; use NoRetries (%d) for none, 0 for the manifest's", c.MaxRetries, NoRetries),
		refuse(c.HandlerTimeout < 0, "HandlerTimeout is %s; use a positive duration, or 0 for none", c.HandlerTimeout),
		refuse(c.TimeoutOutcome.Kind() == OutcomeAck, "TimeoutOutcome is Ack: a message whose handler was not done would be forgotten; use Retry, Reject, Defer or Park"),
		refuse(c.MaxMessageSize < 0, "MaxMessageSize is %d; use a positive number of bytes, or 0 for the default of %d", c.MaxMessageSize, DefaultMaxMessageSize),
		refuse(c.DrainTimeout < 0, "DrainTimeout is %s; use a positive duration, or 0 for the default of %s", c.DrainTimeout, DefaultDrainTimeout),
		refuse(c.MaxReconnectAttempts < 0, "MaxReconnectAttempts is %d; use a positive number, or 0 to never give up", c.MaxReconnectAttempts),
	)
}

// EffectiveMaxRetries is the number of retries honoured for a manifest whose
// max_retries is given: MaxRetries may lower it and never raises it.
func (c Config) EffectiveMaxRetries(manifest int) int {
	switch c.MaxRetries {
	case NoRetries:
		return 0
	case 0:
		return manifest
	default:
		return min(c.MaxRetries, manifest)
	}
}
