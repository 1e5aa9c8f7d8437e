package memory

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// message is a message in a queue.
type message struct {
	// Message is the message as it was published, or dead-lettered, with its publisher's headers. It is not changed but for
	// its exchange and routing key.
	redeliver.Message
	// arrival is its place among all messages.
	arrival uint64
	// due is when it expires.
	due time.Time
	// sent is when it was sent to SQS, and source the ARN of the queue that moved it to where it is.
	sent   time.Time
	source string

	// delivered says that it was delivered before. count and acquired are how often this quorum queue counts it, and lost
	// how many of those were lost with a session.
	delivered             bool
	count, acquired, lost int64
	// carriedCount and carriedAcquired are what it was counted in the queue before; they are shown until this one counts.
	carriedCount, carriedAcquired int64

	// deaths are its history, newest first. first is the first of them, where the broker shows it.
	deaths []redeliver.Death
	first  *redeliver.Death
}

// newMessage is a message as a publisher sends it.
func newMessage(m redeliver.Message) (*message, error) {
	headers, err := sent(m.Headers)
	if err != nil {
		return nil, err
	}
	m.Body, m.Headers = bytes.Clone(m.Body), headers
	m.Topic, m.RetryCount, m.Redelivered, m.FirstSeen = "", 0, false, time.Time{} // no part of a message
	m.Timestamp = m.Timestamp.Truncate(time.Second)
	return &message{Message: m}, nil
}

// die adds a death, and carries on what the queue that it leaves counted, as far
// as the one that it comes to shows that.
func (m *message) die(d redeliver.Death, from, to *queue) {
	v := to.version
	if v < v4 && m.deaths == nil { // a history that a publisher sent is gone on with
		m.deaths = consumer.ParseDead(m.Message, topology.Headers{}).Deaths
	}
	if m.first == nil && (v >= v4 || len(m.deaths) == 0) {
		m.first = &d
	}
	d.Count = 1
	deaths := []redeliver.Death{d}
	for _, old := range m.deaths {
		if old.Queue == d.Queue && old.Reason == d.Reason {
			old.Count++
			deaths[0] = old
		} else {
			deaths = append(deaths, old)
		}
	}
	m.deaths = deaths

	counted, carries := m.count, from.quorum && to.quorum
	if v == v4 {
		counted = m.lost // 4.0 forgets what it counted when a message is given back one by one
	}
	if d.Reason == rejected {
		counted++
	}
	m.count, m.acquired, m.lost, m.carriedCount, m.carriedAcquired = 0, 0, 0, 0, 0
	switch {
	case v < v4:
		m.delivered = false
	case v == v4:
		m.delivered = carries && counted > 0
		if carries {
			m.carriedCount = counted
		}
	default:
		m.delivered = m.delivered || d.Reason == rejected
		if carries {
			m.count, m.carriedAcquired = counted, counted
		}
	}
}

// show is the message as a consumer of a queue gets it.
func (m *message) show(q *queue) redeliver.Message {
	if q.sqs != nil {
		return m.showReceived()
	}
	shown := m.Message
	shown.Redelivered = m.delivered
	count, acquired := cmp.Or(m.count, m.carriedCount), cmp.Or(m.acquired, m.carriedAcquired)
	if !q.quorum || q.version < v43 {
		acquired = 0
	}
	if len(m.deaths) == 0 && count == 0 && acquired == 0 {
		return shown // the broker adds nothing to most messages
	}
	headers := make(map[string]any, len(m.Headers)+8)
	maps.Copy(headers, m.Headers)
	if count > 0 {
		headers[topology.HeaderDeliveryCount] = count
	}
	if acquired > 0 {
		headers[topology.HeaderAcquiredCount] = acquired
	}
	m.showDeaths(headers, q.version)
	shown.Headers = headers
	return shown
}

// showDeaths adds the headers that tell a message's history.
func (m *message) showDeaths(headers map[string]any, v version) {
	if len(m.deaths) == 0 {
		return
	}
	list := make([]any, len(m.deaths))
	for i, d := range m.deaths {
		keys := make([]any, len(d.RoutingKeys))
		for k, key := range d.RoutingKeys {
			keys[k] = key
		}
		entry := map[string]any{"count": d.Count, "exchange": d.Exchange, "queue": d.Queue, "reason": d.Reason, "routing-keys": keys}
		if !d.Time.IsZero() {
			entry["time"] = d.Time
		}
		list[i] = entry
	}
	headers[topology.HeaderDeath] = list
	if m.first != nil {
		showDeath(headers, topology.PrefixFirstDeath, *m.first)
	}
	if v >= v4 {
		showDeath(headers, topology.PrefixLastDeath, m.deaths[0])
	}
}

func showDeath(headers map[string]any, prefix string, d redeliver.Death) {
	headers[prefix+"queue"], headers[prefix+"reason"], headers[prefix+"exchange"] = d.Queue, d.Reason, d.Exchange
}

// sent are a publisher's headers as they arrive: AMQP has no type for some of
// Go's, and whole seconds only. Nothing of them is shared with the publisher.
func sent(headers map[string]any) (map[string]any, error) {
	if headers == nil {
		return nil, nil
	}
	made := make(map[string]any, len(headers))
	for key, value := range headers {
		var err error
		if made[key], err = sentValue(value); err != nil {
			return nil, fmt.Errorf("header %q: %w", key, err)
		}
	}
	return made, nil
}

func sentValue(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, int8, uint8, int16, uint16, int32, uint32, int64, float32, float64, string:
		return v, nil
	case int:
		return int32(v), nil //nolint:gosec // as amqp091-go does
	case []byte:
		return bytes.Clone(v), nil
	case time.Time:
		return v.Truncate(time.Second), nil
	case map[string]any:
		return sent(v)
	case []any:
		made := make([]any, len(v))
		for i, inner := range v {
			var err error
			if made[i], err = sentValue(inner); err != nil {
				return nil, err
			}
		}
		return made, nil
	default:
		return nil, fmt.Errorf("AMQP cannot carry a %T", value)
	}
}
