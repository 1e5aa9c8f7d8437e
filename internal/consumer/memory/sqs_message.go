package memory

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// maxAttributes is how many attributes a message of SQS can have.
const maxAttributes = 10

// newMessage is a message as a publisher sends it to a queue. b.mu is held.
func (b *Broker) newMessage(q *queue, m redeliver.Message) (*message, error) {
	if q.sqs == nil {
		return newMessage(m)
	}
	if q.sqs.fifo && m.RoutingKey == "" {
		return nil, errors.New("a message of a FIFO queue needs a message group, which is its RoutingKey")
	}
	if len(m.Headers) > maxAttributes {
		return nil, fmt.Errorf("a message of SQS has at most %d attributes, and this one has %d headers", maxAttributes, len(m.Headers))
	}
	sent := redeliver.Message{ID: m.ID, Body: bytes.Clone(m.Body), RoutingKey: m.RoutingKey}
	if sent.ID == "" {
		sent.ID = fmt.Sprintf("00000000-0000-4000-8000-%012x", b.arrivals+1)
	}
	for name, value := range m.Headers {
		received, ok := attribute(value)
		if !ok {
			return nil, fmt.Errorf("header %q: an attribute of SQS cannot hold the %T %v", name, value, value)
		}
		if sent.Headers == nil {
			sent.Headers = make(map[string]any)
		}
		sent.Headers[name] = received
	}
	return &message{Message: sent}, nil
}

// attribute is a header's value as it is received; ok is false for what no attribute can hold.
func attribute(value any) (received any, ok bool) {
	switch v := value.(type) {
	case string:
		return v, v != ""
	case bool:
		return strconv.FormatBool(v), true
	case []byte:
		return bytes.Clone(v), len(v) > 0
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'f', -1, 64), true
		}
		if n := int64(v); float64(n) == v && strconv.FormatFloat(v, 'f', -1, 64) == strconv.FormatInt(n, 10) {
			return n, true // a number is a number
		}
		return v, true
	case redeliver.Attribute:
		return v, v.Text != ""
	default:
		return nil, false
	}
}

// attributesOf are the headers of a copy: those that an attribute can hold, as far as there is room.
func attributesOf(c consumer.Copy) map[string]any {
	made := make(map[string]any)
	own := maps.Clone(c.Message.Headers)
	for _, name := range append([]string{consumer.HeaderDeadLetterSource}, c.Unset...) {
		delete(own, name)
	}
	for _, headers := range []map[string]any{own, c.Set} {
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			_, replaces := made[name]
			if _, ok := attribute(headers[name]); ok && (replaces || len(made) < maxAttributes) {
				made[name] = headers[name]
			}
		}
	}
	return made
}

// showReceived is the message as a consumer of a queue of SQS gets it that receives it next.
func (m *message) showReceived() redeliver.Message {
	shown := m.Message
	shown.Timestamp, shown.Redelivered = m.sent.Truncate(time.Millisecond), m.count > 0
	if m.source != "" {
		shown.Headers = maps.Clone(m.Headers)
		if shown.Headers == nil {
			shown.Headers = make(map[string]any)
		}
		shown.Headers[consumer.HeaderDeadLetterSource] = m.source
	}
	return shown
}
