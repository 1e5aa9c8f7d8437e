package transfer

import (
	"errors"
	"fmt"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Replay completes the options of a run that moves messages of a topic's
// dead-letter or parked queue back. Where they name no target, it is the work
// queue or, where the topic is sequenced over shards, the exchange that spreads
// messages over them, with the routing key that each message had. Unless
// keepCount is set, copies begin again: what counts a message's retries and its
// age is taken from them.
func Replay(m topology.Manifest, o Options, keepCount bool) Options {
	switch {
	case o.hasTarget():
	case m.Sequence != nil && m.Sequence.Exchange != "":
		o.Exchange = m.Sequence.Exchange
		o.Route = func(d *amqp091.Delivery) string { return m.Headers.OriginOf(amqp.PlainHeaders(d.Headers)).RoutingKey } // dead-lettering has replaced it
	default:
		o.RoutingKey = m.WorkQueue.Name
	}
	if !keepCount {
		o.Edit = func(_ *amqp091.Delivery, made *amqp091.Publishing) { startAgain(m, made, time.Now()) }
	}
	return o
}

// startAgain takes what counts a message's retries and its age from a copy.
func startAgain(m topology.Manifest, made *amqp091.Publishing, now time.Time) {
	h := m.Headers
	for _, name := range append([]string{h.RetryCount, h.Attempts, topology.HeaderNotBefore}, h.RetryCountAlso...) {
		delete(made.Headers, name)
	}
	if _, seen := made.Headers[h.FirstSeen]; seen { // headers that fill a frame have no room for another one
		made.Headers[h.FirstSeen] = now.UnixMilli()
	}
	if m.Retry.GiveUpAfter > 0 {
		made.Timestamp = now
	}
}

// Advise says what to do about the error of a replay.
func Advise(err error) error {
	switch {
	case errors.Is(err, amqp.ErrForbidden):
		return fmt.Errorf("%w; grant the user write permission on that exchange (\"amq.default\" is the name of the default one), "+
			"or replay as another user (the provider function build_permissions gives the expressions for the role operator)", err)
	case errors.Is(err, amqp.ErrNoExchange), errors.Is(err, amqp.ErrUnroutable):
		return fmt.Errorf("%w; apply the Terraform configuration that has the target, or correct the exchange and the routing key", err)
	default:
		return err
	}
}
