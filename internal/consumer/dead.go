package consumer

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// HeaderDeadLetterSource is where a transport whose broker says from which queue
// a message was moved here notes it (Amazon SQS: the queue's ARN). No publisher's
// attribute begins like it.
const HeaderDeadLetterSource = "AWS.DeadLetterQueueSourceArn"

// deathMoved is why a message was moved here that the broker has moved by its
// receives.
const deathMoved = "max_receives"

// ParseDead is what the headers of a message say about how it came into a
// dead-letter or parked queue: the broker's history, and the convention's headers
// where a consumer published it. It takes nothing on trust: publishers can send
// headers of these names with anything in them.
func ParseDead(m redeliver.Message, h topology.Headers) redeliver.DeadMessage {
	d := redeliver.DeadMessage{Message: m}
	for _, death := range topology.Deaths(m.Headers) {
		d.Deaths = append(d.Deaths, redeliver.Death(death))
	}
	d.FirstSeen = firstSeen(&m, h.FirstSeen)
	for _, death := range d.Deaths {
		d.DeathCount += min(death.Count, math.MaxInt64-d.DeathCount)
	}
	d.LastError = topology.HeaderText(named(m.Headers, h.Error))
	d.Reason = d.LastError
	if len(d.Deaths) > 0 && (d.Reason == "" || d.Deaths[0].Reason != topology.DeathExpired) {
		// A copy carries no history, so the newest death is what brought the message here; unless it expired in a hold
		// queue, after which a library that keeps the history published it.
		d.Reason = d.Deaths[0].Reason
	}
	origin := h.OriginOf(m.Headers)
	d.OriginalQueue, d.OriginalExchange, d.OriginalRoutingKey = origin.Queue, origin.Exchange, origin.RoutingKey
	if source, ok := m.Headers[HeaderDeadLetterSource].(string); ok {
		d.OriginalQueue, d.OriginalRoutingKey = source[strings.LastIndex(source, ":")+1:], m.RoutingKey
		if d.Reason == "" {
			d.Reason = deathMoved
		}
	}
	if d.Attempts = attemptsOf(m.Headers, h); d.Attempts > 0 {
		d.RetryCount = d.Attempts - 1
	}
	return d
}

// attemptsOf is how often a message was handed to a handler; 0 where no header
// says so.
func attemptsOf(headers map[string]any, h topology.Headers) int {
	if n, ok := topology.HeaderInteger(named(headers, h.Attempts)); ok {
		return int(clamp(n, math.MaxInt32))
	}
	for _, name := range append([]string{h.RetryCount}, h.RetryCountAlso...) {
		if n, ok := topology.HeaderInteger(named(headers, name)); ok {
			return int(clamp(clamp(n, math.MaxInt32-1)-int64(h.RetryCountFrom), math.MaxInt32-1)) + 1
		}
	}
	return 0
}

// named is a header that a convention may not have.
func named(headers map[string]any, name string) any {
	if name == "" {
		return nil
	}
	return headers[name]
}

// DeadHandler is a handler that hands messages of a dead-letter queue to handle,
// with what is known about how they got there.
func DeadHandler(m topology.Manifest, handle redeliver.DeadHandler) redeliver.Handler {
	return redeliver.HandlerFunc(func(ctx context.Context, msg *redeliver.Message) redeliver.Outcome {
		dead := ParseDead(*msg, m.Headers)
		if dead.OriginalQueue == "" && m.Sequence == nil { // a copy's queue is the one that this queue belongs to
			dead.OriginalQueue = m.WorkQueue.Name
		}
		if err := handle(ctx, &dead); err != nil {
			return redeliver.Retry(err)
		}
		return redeliver.Ack()
	})
}

// Replayed is the queue that a replay takes messages from.
func Replayed(doc topology.Manifest, from redeliver.ReplayFrom) (topology.ManifestQueue, error) {
	var target *topology.ManifestTarget
	switch from {
	case redeliver.ReplayDead, "":
		from, target = redeliver.ReplayDead, doc.DeadLetter
	case redeliver.ReplayParked:
		target = doc.Parked
	default:
		return topology.ManifestQueue{}, fmt.Errorf("from %q is no queue; use %q or %q", from, redeliver.ReplayDead, redeliver.ReplayParked)
	}
	if target == nil {
		return topology.ManifestQueue{}, fmt.Errorf("topic %q has no %s; its manifest says so", doc.Topic, from)
	}
	return target.ManifestQueue, nil
}
