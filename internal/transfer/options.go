package transfer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
)

// DefaultPrefetch is how many messages are on their way at a time.
const DefaultPrefetch = 256

// Options say what is moved where.
type Options struct {
	// Dial opens a connection to the broker; purpose becomes part of its name. Two are opened, one that consumes and one
	// that publishes: (*amqp.Broker).Dial.
	//
	// Required.
	Dial func(ctx context.Context, purpose string) (*amqp.Conn, error)

	// Source is the queue that messages are taken from.
	//
	// Required.
	Source string

	// Exchange and RoutingKey are what the copies are published with. With an empty exchange, the default one, the routing
	// key is the name of a queue.
	Exchange, RoutingKey string

	// Route, where it is set, says the routing key of each copy instead of RoutingKey.
	Route func(*amqp091.Delivery) string

	// Limit is how many messages are moved at most.
	//
	// Defaults to 0: as many as there are.
	Limit int

	// Filter, where it is set, says which messages are moved. The others stay.
	Filter func(*amqp091.Delivery) bool

	// Each, where it is set, is told of every message that is to be moved, in a dry run too.
	Each func(*amqp091.Delivery)

	// Edit, where it is set, changes a copy before it is published: a copy has the message's body and properties, and a
	// header table of its own without what belongs to the old delivery (see amqp.Copy).
	Edit func(of *amqp091.Delivery, made *amqp091.Publishing)

	// DryRun looks at the messages and copies none. Moved is then how many would be. Where the target takes nothing, as far
	// as that can be told, they are Failed, and the run's error says why. Without a target it only looks.
	DryRun bool

	// Rate is how many messages are published in a second at most.
	//
	// Defaults to 0: no limit.
	Rate float64

	// Prefetch is how many messages are on their way at a time.
	//
	// Defaults to DefaultPrefetch, or to what Rate publishes in some seconds.
	Prefetch int

	// Progress, where it is set, is told a few times in a second how far the run is. The run waits for it.
	Progress func(Report)
}

func (o Options) hasTarget() bool { return o.Exchange != "" || o.RoutingKey != "" || o.Route != nil }

// rateHorizon is how many seconds of work are taken from a queue in advance
// where there is a rate.
const rateHorizon = 5

// slowest is the lowest rate: a message a day.
const slowest = 1.0 / (24 * 60 * 60)

// withDefaults fills in what is not set, and refuses what contradicts itself.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Source == "":
		return o, errors.New("there is no source queue")
	case !o.hasTarget() && !o.DryRun:
		return o, errors.New("there is neither a target exchange nor a target queue")
	case math.IsNaN(o.Rate), o.Rate > 0 && o.Rate < slowest:
		return o, fmt.Errorf("rate %v: use a number of messages in a second, at least %g (one a day), or 0 for no limit", o.Rate, slowest)
	case o.Limit < 0, o.Rate < 0, o.Prefetch < 0, o.Prefetch > 65535:
		return o, fmt.Errorf("limit %d, rate %v, prefetch %d: they are not negative, and prefetch is at most 65535", o.Limit, o.Rate, o.Prefetch)
	}
	if o.Prefetch == 0 {
		o.Prefetch = DefaultPrefetch
		if o.Rate > 0 {
			o.Prefetch = max(1, min(o.Prefetch, int(o.Rate*rateHorizon)))
		}
	}
	return o, nil
}

// Report says what became of the messages. Every message that the run looked at
// is counted once: Moved + Skipped + Failed + Doubtful.
type Report struct {
	// Found is how many messages were ready in the source when the run began: the most it looks at.
	Found int
	// Moved have been copied, confirmed and acknowledged; in a dry run, would be.
	Moved int
	// Skipped were not wanted by the filter. They are in the source.
	Skipped int
	// Failed could not be copied; Failures says why. They are in the source.
	Failed int
	// Doubtful may be there twice: the broker did not confirm their copies, which it may have all the same (Failures says
	// why, and they are in the source), or the connection was lost before they were acknowledged.
	Doubtful int
	// Left is how many messages are ready in the source after the run, whoever put them there; -1 where the broker could
	// not be asked.
	Left int
	// Failures are the reasons why messages failed or are doubtful, in the order in which they occurred first.
	Failures []Failure
}

// Failure is one reason why messages failed.
type Failure struct {
	// Err is what was said of the first one. It matches the errors of package amqp.
	Err error
	// MessageID is the first one's.
	MessageID string
	// Count is how many failed for that reason.
	Count int
	// Unknown: they may have been copied all the same, and are Doubtful (amqp.ErrUnconfirmed). The others are Failed.
	Unknown bool
}

// kinds are the reasons that are told apart, whatever their texts.
var kinds = []error{
	amqp.ErrUnroutable, amqp.ErrNoExchange, amqp.ErrForbidden, amqp.ErrNacked, amqp.ErrUnconfirmed, amqp.ErrNotConnected, amqp.ErrClosed,
}

// fail counts a message that was not copied, as far as is known.
func (r *Report) fail(id string, err error) {
	unknown := errors.Is(err, amqp.ErrUnconfirmed)
	if unknown {
		r.Doubtful++
	} else {
		r.Failed++
	}
	i := slices.IndexFunc(r.Failures, func(f Failure) bool {
		if k := slices.IndexFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }); k >= 0 {
			return errors.Is(f.Err, kinds[k])
		}
		return f.Err.Error() == err.Error()
	})
	if i < 0 {
		i = len(r.Failures)
		r.Failures = append(r.Failures, Failure{Err: err, MessageID: id, Unknown: unknown})
	}
	r.Failures[i].Count++
}

// String sums the report up for a log.
func (r Report) String() string {
	s := fmt.Sprintf("%d found, %d moved", r.Found, r.Moved)
	for _, part := range []struct {
		n    int
		what string
	}{{r.Skipped, "skipped"}, {r.Failed, "failed"}, {r.Doubtful, "doubtful (they may be there twice)"}} {
		if part.n > 0 {
			s += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	if r.Left >= 0 {
		s += fmt.Sprintf(", %d left", r.Left)
	}
	return s
}
