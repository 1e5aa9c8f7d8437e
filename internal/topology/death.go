package topology

import (
	"strconv"
	"time"
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

// DeathExpired is the broker's reason for a message whose time to live is over:
// how every message leaves a hold queue.
const DeathExpired = "expired"

// Death is one entry of a message's dead-letter history.
type Death struct {
	// Queue is the queue it left, and Reason why: "rejected", "expired", "maxlen" or "delivery_limit".
	Queue, Reason string
	// Exchange and RoutingKeys are what it had been published to that queue with.
	Exchange    string
	RoutingKeys []string
	// Count is how often that happened, and Time when it last did.
	Count int64
	Time  time.Time
}

// Deaths reads a message's dead-letter history, newest first: x-death, which
// every version of RabbitMQ writes, or what else says how it died last. The
// headers x-last-death-* (since 4.0) and x-first-death-* are read where a library
// that copies messages kept only those. It takes nothing on trust: publishers can
// send headers of these names with anything in them. Tables are plain maps.
func Deaths(headers map[string]any) []Death {
	entries, _ := headers[HeaderDeath].([]any)
	var list []Death
	for _, entry := range entries {
		table, _ := entry.(map[string]any)
		if d := death(table); d.Reason != "" { // every death that the broker wrote has one
			list = append(list, d)
		}
	}
	if len(list) > 0 {
		return list
	}
	for _, prefix := range []string{PrefixLastDeath, PrefixFirstDeath} {
		if reason := HeaderText(headers[prefix+deathReason]); reason != "" {
			return []Death{{
				Queue: HeaderText(headers[prefix+deathQueue]), Reason: reason, Exchange: HeaderText(headers[prefix+deathExchange]), Count: 1,
			}}
		}
	}
	return nil
}

// death reads one entry of x-death. One without a count that makes sense
// happened once.
func death(table map[string]any) Death {
	d := Death{
		Queue: HeaderText(table[deathQueue]), Reason: HeaderText(table[deathReason]), Exchange: HeaderText(table[deathExchange]),
	}
	count, _ := HeaderInteger(table[deathCount])
	d.Count = max(1, count)
	d.Time, _ = table[deathTime].(time.Time)
	keys, _ := table[deathRoutingKeys].([]any)
	for _, key := range keys {
		d.RoutingKeys = append(d.RoutingKeys, HeaderText(key))
	}
	return d
}

// Origin is where a message of a dead-letter or parked queue failed.
type Origin struct {
	// Queue is the queue that it failed in, Exchange and RoutingKey what it had been published with when it came there.
	// Empty where nothing says so.
	Queue, Exchange, RoutingKey string
}

// OriginOf reads where a message failed: in its dead-letter history, and in the
// convention's own headers where a consumer published it.
func (h Headers) OriginOf(headers map[string]any) Origin {
	var o Origin
	if failed, ok := failedIn(Deaths(headers), h.Error != "" && HeaderText(headers[h.Error]) != ""); ok {
		o.Queue, o.Exchange = failed.Queue, failed.Exchange
		if len(failed.RoutingKeys) > 0 {
			o.RoutingKey = failed.RoutingKeys[0]
		}
	}
	for name, value := range map[string]*string{h.OriginalQueue: &o.Queue, h.OriginalExchange: &o.Exchange, h.OriginalRoutingKey: &o.RoutingKey} {
		if header, ok := headers[name]; ok && name != "" {
			*value = HeaderText(header)
		}
	}
	return o
}

// failedIn is the death in the queue where the message failed. Where it only
// ever expired, that was in a hold queue if a consumer published it in the end.
func failedIn(deaths []Death, published bool) (Death, bool) {
	for _, death := range deaths {
		if death.Reason != DeathExpired {
			return death, true
		}
	}
	if len(deaths) == 0 || published {
		return Death{}, false
	}
	return deaths[0], true
}

// HeaderText reads a header's text; a value of another type is none.
func HeaderText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	default:
		return ""
	}
}

// HeaderInteger reads a header's number: an integer of whatever width, or text,
// which some libraries write.
func HeaderInteger(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int32:
		return int64(n), true
	case int16:
		return int64(n), true
	case int8:
		return int64(n), true
	case int:
		return int64(n), true
	case uint8:
		return int64(n), true
	case uint16:
		return int64(n), true
	case uint32:
		return int64(n), true
	case string, []byte:
		i, err := strconv.ParseInt(HeaderText(value), 10, 64)
		return i, err == nil
	default:
		return 0, false
	}
}
