package consumer

import (
	"context"
	"math"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// The keys of a death in x-death, and what the headers x-first-death-* and
// x-last-death-* end in.
const (
	deathQueue       = "queue"
	deathReason      = "reason"
	deathExchange    = "exchange"
	deathRoutingKeys = "routing-keys"
	deathCount       = "count"
	deathTime        = "time"
)

// reasonExpired is the broker's reason for a message whose time to live is over:
// how every message leaves a hold queue.
const reasonExpired = "expired"

// ParseDead is what the headers of a message say about how it came into a
// dead-letter or parked queue: the broker's history, and the convention's headers
// where a consumer published it. It takes nothing on trust: publishers can send
// headers of these names with anything in them.
//
// Every version of RabbitMQ writes x-death, newest first. The headers
// x-last-death-* (since 4.0) and x-first-death-* are read where a library that
// copies messages kept only those.
func ParseDead(m redeliver.Message, h topology.Headers) redeliver.DeadMessage {
	d := redeliver.DeadMessage{Message: m, Deaths: deaths(m.Headers)}
	d.FirstSeen = firstSeen(&m, h.FirstSeen)
	for _, death := range d.Deaths {
		d.DeathCount += min(death.Count, math.MaxInt64-d.DeathCount)
	}
	d.LastError = text(named(m.Headers, h.Error))
	d.Reason = d.LastError
	if len(d.Deaths) > 0 && (d.Reason == "" || d.Deaths[0].Reason != reasonExpired) {
		// A copy carries no history, so the newest death is what brought the message here; unless it expired in a hold
		// queue, after which a library that keeps the history published it.
		d.Reason = d.Deaths[0].Reason
	}
	if failed, ok := failedIn(d.Deaths, d.LastError != ""); ok {
		d.OriginalQueue, d.OriginalExchange = failed.Queue, failed.Exchange
		if len(failed.RoutingKeys) > 0 {
			d.OriginalRoutingKey = failed.RoutingKeys[0]
		}
	}
	for name, value := range map[string]*string{
		h.OriginalQueue: &d.OriginalQueue, h.OriginalExchange: &d.OriginalExchange, h.OriginalRoutingKey: &d.OriginalRoutingKey,
	} {
		if header, ok := m.Headers[name]; ok && name != "" {
			*value = text(header)
		}
	}
	if d.Attempts = attemptsOf(m.Headers, h); d.Attempts > 0 {
		d.RetryCount = d.Attempts - 1
	}
	return d
}

// failedIn is the death in the queue where the message failed. Where it only
// ever expired, that was in a hold queue if a consumer published it in the end.
func failedIn(deaths []redeliver.Death, published bool) (redeliver.Death, bool) {
	for _, death := range deaths {
		if death.Reason != reasonExpired {
			return death, true
		}
	}
	if len(deaths) == 0 || published {
		return redeliver.Death{}, false
	}
	return deaths[0], true
}

// attemptsOf is how often a message was handed to a handler; 0 where no header
// says so.
func attemptsOf(headers map[string]any, h topology.Headers) int {
	if n, ok := integer(named(headers, h.Attempts)); ok {
		return int(clamp(n, math.MaxInt32))
	}
	for _, name := range append([]string{h.RetryCount}, h.RetryCountAlso...) {
		if n, ok := integer(named(headers, name)); ok {
			return int(clamp(clamp(n, math.MaxInt32-1)-int64(h.RetryCountFrom), math.MaxInt32-1)) + 1
		}
	}
	return 0
}

// deaths reads x-death, or what else says how a message died last.
func deaths(headers map[string]any) []redeliver.Death {
	entries, _ := headers[topology.HeaderDeath].([]any)
	var list []redeliver.Death
	for _, entry := range entries {
		table, _ := entry.(map[string]any)
		if d := death(table); d.Reason != "" { // every death that the broker wrote has one
			list = append(list, d)
		}
	}
	if len(list) > 0 {
		return list
	}
	for _, prefix := range []string{topology.PrefixLastDeath, topology.PrefixFirstDeath} {
		if reason := text(headers[prefix+deathReason]); reason != "" {
			return []redeliver.Death{{
				Queue: text(headers[prefix+deathQueue]), Reason: reason, Exchange: text(headers[prefix+deathExchange]), Count: 1,
			}}
		}
	}
	return nil
}

// death reads one entry of x-death. One without a count that makes sense
// happened once.
func death(table map[string]any) redeliver.Death {
	d := redeliver.Death{
		Queue: text(table[deathQueue]), Reason: text(table[deathReason]), Exchange: text(table[deathExchange]),
	}
	count, _ := integer(table[deathCount])
	d.Count = max(1, count)
	d.Time, _ = table[deathTime].(time.Time)
	keys, _ := table[deathRoutingKeys].([]any)
	for _, key := range keys {
		d.RoutingKeys = append(d.RoutingKeys, text(key))
	}
	return d
}

// named is a header that a convention may not have.
func named(headers map[string]any, name string) any {
	if name == "" {
		return nil
	}
	return headers[name]
}

// text reads a header's text; a value of another type is none.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	default:
		return ""
	}
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
