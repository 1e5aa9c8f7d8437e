package consumer

import (
	"context"
	"errors"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Transport subscribes to one topic's work queue on one broker. It never
// declares or changes anything.
type Transport interface {
	// Subscribe opens a session in which the broker sends up to prefetch unsettled deliveries. Each session has a
	// connection and a channel of its own. An error is a *redeliver.BindError wherever the reason is known.
	Subscribe(ctx context.Context, prefetch int) (Session, error)
}

// Session is one subscription. It ends once and is not revived: a new one is
// opened instead, so that no settlement can reach a delivery of another.
type Session interface {
	// Receive waits for the next delivery and fills in everything of d. When the subscription has ended it returns why:
	// io.EOF after Stop, when all that was sent has been received; a *LostError otherwise. It is called by one goroutine at a
	// time.
	Receive(d *Delivery) error

	// Settle settles a delivery of this session. An error means that the broker has the message again, because the session
	// has ended or the delivery's lease has (see Leaser); else the session knows nothing of d any more. It may be called from
	// several goroutines. An acknowledgement may wait for others, for some milliseconds. after is how long the broker is to
	// wait before it delivers a requeued message again: 0, but for a policy whose broker waits.
	Settle(d *Delivery, verb Verb, after time.Duration) error

	// Hold says that a delivery will stay unsettled for a while, so that the acknowledgement of no other waits for it.
	Hold(d *Delivery)

	// Diagnose says more about the error with which Receive ended, and may ask the broker for some seconds.
	Diagnose(lost error) error

	// Unsent is how many acknowledgements were taken by Settle and never reached the broker, which delivers their messages
	// again. It is known after Close.
	Unsent() int

	// Stop tells the broker to send no more. Deliveries can still be settled.
	Stop(ctx context.Context) error

	// Close ends the session, whatever its state, before ctx does. What was not settled goes back to the broker.
	Close(ctx context.Context) error
}

// Leaser is a session that can lose a single delivery, because the broker lends
// messages for a time.
type Leaser interface {
	// Lease is ctx for the handler of a delivery, cancelled with redeliver.ErrLeaseLost as its cause when the delivery is
	// lost. release is called when the handler has returned.
	Lease(ctx context.Context, d *Delivery) (leased context.Context, release func())

	// Lost says whether a delivery is lost: another consumer may have the message.
	Lost(d *Delivery) bool
}

// Monitor is a transport that knows more about its service than what becomes of
// messages.
type Monitor interface {
	Monitor() Monitored
}

// Monitored is what a Monitor counts, and what is wrong at this moment.
type Monitored struct {
	// InFlight is how many messages the broker counts as in flight because of this consumer: those that it has, and those
	// that wait.
	InFlight int
	// LeasesLost, Throttled and RequestsFailed are those of redeliver.Stats.
	LeasesLost, Throttled, RequestsFailed uint64
	// Down and Degraded are sentences for redeliver.Health.
	Down, Degraded []string
}

// Publisher publishes copies on a connection of its own. A transport whose
// manifest publishes nothing has none.
type Publisher interface {
	// Check fails with a *redeliver.BindError when copies could not be published to the targets' exchanges, as far as that
	// can be told without a message reaching anybody.
	Check(ctx context.Context, targets []*topology.ManifestTarget) error

	// Publish publishes a copy, persistent and mandatory, and calls done once: with nil when the broker confirmed it and a
	// queue took it, with an error that matches ErrNoQueue when it came back. It never blocks, and done is called on
	// another goroutine.
	Publish(copy Copy, done func(error))

	// Blocked says whether the broker takes no copies for the moment, and why.
	Blocked() (reason string, blocked bool)

	// Close gives up what is still unconfirmed and closes the connection, before ctx does.
	Close(ctx context.Context) error
}

// ErrNoQueue says that a copy came back: its target is not there, or nothing
// leads to it.
var ErrNoQueue = errors.New("no queue took it")

// ErrUnpublishable says that a copy can never be published, whatever is tried:
// it is too large, say.
var ErrUnpublishable = errors.New("the copy cannot be published")

// Delivery is one message as the broker sent it.
type Delivery struct {
	// Message is complete except for Topic and RetryCount.
	Message redeliver.Message
	// Count is how often the broker says the message was delivered before; it is not trusted until the policy clamped it.
	Count int64
	// Tag identifies the delivery within its session.
	Tag uint64
	// Received is when the client took it off the wire, as far as it can tell.
	Received time.Time

	// Prev, Next and Held are the session's own: its unsettled deliveries in order, and whether this one is held.
	Prev, Next *Delivery
	Held       bool
}

// Copy is a message on its way to another queue.
type Copy struct {
	// Message is the message that is copied: body, properties and headers.
	Message *redeliver.Message
	// Set are headers that are added or replaced, and Unset those that are left out.
	Set   map[string]any
	Unset []string
	// Priority is the copy's priority; nil keeps the message's.
	Priority *uint8
	// Target is where the copy goes: a hold queue, the dead-letter queue or the parked queue.
	Target *topology.ManifestTarget
}

// Verb is a way of settling a delivery.
type Verb uint8

// The verbs. They are ways of leaving the consumer's hands; Again,
// Publish and Renew are carried out by the engine.
const (
	verbNone Verb = iota
	// VerbAck: the message is done.
	VerbAck
	// VerbRequeue gives the message back so that the broker counts it: a retry. RabbitMQ: basic.reject(requeue=true),
	// which counts on a quorum queue of every version.
	VerbRequeue
	// VerbHandBack gives the message back as cheaply as the broker can: it was not tried, or is not to be counted.
	// RabbitMQ: basic.nack(requeue=true), which since 4.3 counts nothing and before it counts like a reject.
	VerbHandBack
	// VerbDeadLetter gives up the message: the queue's dead-letter exchange carries it. RabbitMQ:
	// basic.reject(requeue=false).
	VerbDeadLetter
	// VerbAgain hands the message to a handler of this process again.
	VerbAgain
	// VerbPublish publishes a copy and then acknowledges.
	VerbPublish
	// VerbRenew ends the session, so that the broker takes everything back in order, and begins another one.
	VerbRenew
)

// String names the verb for a log.
func (v Verb) String() string {
	return [...]string{"none", "ack", "requeue", "hand_back", "dead_letter", "again", "publish", "renew"}[v]
}

// LostError says why a session ended without being asked to.
type LostError struct {
	// Reason tells the cases apart.
	Reason LostReason
	// Err is what the broker or the network said.
	Err error
}

// LostReason says why a session was lost.
type LostReason string

// The reasons.
const (
	// LostConnection: the connection ended: network, restart, or an operator closed it.
	LostConnection LostReason = "connection lost"
	// LostChannel: the broker closed the channel with an error.
	LostChannel LostReason = "channel closed by the broker"
	// LostConsumerTimeout: a delivery was held longer than the broker's consumer timeout.
	LostConsumerTimeout LostReason = "consumer timeout"
	// LostQueueDeleted: the queue was deleted.
	LostQueueDeleted LostReason = "queue deleted"
	// LostDetached: the subscription had no effect any more, and the broker had not said so: the queue was deleted and made
	// again in one moment.
	LostDetached LostReason = "queue deleted and made again"
	// LostAccess: the broker does not let the consumer receive any more.
	LostAccess LostReason = "access denied"
	// LostCancelled: the broker cancelled the consumer and it is not known why.
	LostCancelled LostReason = "consumer cancelled by the broker"
	// LostRenewed: the consumer ended it, because the consumer timeout was near for a message of a sequenced topic.
	LostRenewed LostReason = "renewed"
)

// Error implements error.
func (e *LostError) Error() string {
	if e.Err == nil {
		return string(e.Reason)
	}
	return string(e.Reason) + ": " + e.Err.Error()
}

// Unwrap returns what the broker or the network said.
func (e *LostError) Unwrap() error { return e.Err }

// errSessionEnded is why an outcome is dropped.
var errSessionEnded = errors.New("the session of this delivery has ended; the broker delivers the message again")
