package conformance

import (
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

var (
	errBoom = errors.New("boom")
	// errPanic marks an outcome whose handler panics instead of returning it.
	errPanic = errors.New("at the disco")
)

const (
	// maxSize is the size of the largest body that is handed to a handler.
	maxSize = 1000
)

// story is one message, and what a handler says about it at each call.
type story struct {
	// id is the message's.
	id string
	// says is what the handler returns, call by call; the last one over and over.
	outcomes []redeliver.Outcome
	headers  map[string]any
	priority uint8
	key      string
	// old messages are older than give_up_after by the publisher's timestamp, those that were seen by the convention's header
	// and without a timestamp. Oversized ones no handler sees.
	old, seen, oversized bool
	// firstCount is the retry count of the first call where a publisher forged it.
	firstCount func(v variant) int
	// hops: on a real broker the number of hold queues that it waits in depends on how busy that is.
	hops bool
	// loose: what is set aside says how much time was left.
	loose bool
}

func (s story) says(call int) redeliver.Outcome { return s.outcomes[min(call, len(s.outcomes)-1)] }

// sent is the story's message on Amazon SQS, which has few properties: its body says which it is.
func (s story) sent(fifo bool) redeliver.Message {
	m := redeliver.Message{ID: s.id, Body: []byte(`"` + s.id + `"`), Headers: s.headers}
	if s.oversized {
		m.Body = append(m.Body, strings.Repeat("x", maxSize+1)...)
	}
	if m.RoutingKey = s.key; fifo && s.key == "" {
		m.RoutingKey = "group of " + s.id
	}
	return m
}

// storyOf is the id of the story of a message.
func (v variant) storyOf(m *redeliver.Message) string {
	if !v.sqs() {
		return m.ID
	}
	parts := strings.SplitN(string(m.Body), `"`, 3)
	return parts[min(1, len(parts)-1)]
}

func (s story) message(now time.Time) redeliver.Message {
	m := redeliver.Message{
		ID: s.id, Body: []byte(`"` + s.id + `"`), Headers: s.headers, Priority: s.priority, ContentType: "application/json",
		Type: "order", CorrelationID: "correlation", AppID: "conformance",
	}
	if s.old {
		m.Timestamp = now.Add(-giveUpAfter - time.Hour)
	}
	if s.oversized {
		m.Body = []byte(strings.Repeat("x", maxSize+1))
	}
	if s.key != "" {
		m.Headers = map[string]any{keyHeader: s.key}
	}
	return m
}

func says(outcomes ...redeliver.Outcome) []redeliver.Outcome { return outcomes }

// stories are messages for every outcome.
func stories(v variant, doc topology.Manifest) []story {
	retry, ack := redeliver.Retry(errBoom), redeliver.Ack()
	tick := v.tick()
	all := []story{
		{id: "ack", outcomes: says(ack)},
		{id: "retried once", outcomes: says(retry, ack)},
		{id: "retried as often as may be", outcomes: says(retry, retry, retry, ack)},
		{id: "exhausted", outcomes: says(retry)},
		{id: "panic", outcomes: says(redeliver.Retry(errPanic), ack)},
		{id: "no outcome", outcomes: says(redeliver.Outcome{}, ack)},
		{id: "retry after", outcomes: says(redeliver.RetryAfter(5*tick, errBoom), ack)},
		{id: "retry soon after", outcomes: says(redeliver.RetryAfter(tick, errBoom), ack)},
		{id: "reject", outcomes: says(redeliver.Reject(errBoom))},
		{id: "retried, then rejected", outcomes: says(retry, redeliver.Reject(errBoom))},
		{id: "permanent", outcomes: says(redeliver.Retry(redeliver.Permanent(errBoom)))},
		{id: "too old", outcomes: says(retry), old: true},
		{id: "defer", outcomes: says(redeliver.Defer(), redeliver.Defer(), ack)},
		{id: "retried, deferred, retried", outcomes: says(retry, redeliver.Defer(), retry, ack)},
		{id: "defer for", outcomes: says(redeliver.DeferFor(5*tick), ack)},
		{id: "park", outcomes: says(redeliver.Park(errBoom))},
		{id: "retried, then parked", outcomes: says(retry, redeliver.Park(errBoom))},
		{id: "undecodable", outcomes: says(redeliver.Park(&redeliver.DecodeError{Into: "order", Err: errBoom}))},
		{id: "oversized", oversized: true, outcomes: says(ack)},
	}
	if v.holds() {
		all = append(all, story{id: "over the last tier", outcomes: says(redeliver.RetryAfter(15*tick, errBoom), ack), hops: true},
			story{id: "deferred over the last tier", outcomes: says(redeliver.DeferFor(15*tick), ack), hops: true})
	} else {
		all = append(all, story{id: "delay too long", loose: true, outcomes: says(redeliver.RetryAfter(v.tooLong(), errBoom))})
	}
	if v.sqs() {
		all = slices.DeleteFunc(all, func(s story) bool { return s.old }) // nobody can say that a message is older than it is
		return append(all, attributes(doc)...)
	}
	if doc.Headers.FirstSeen != "" {
		long := map[string]any{doc.Headers.FirstSeen: int64(1_600_000_000_000)} // in 2020
		all = append(all, story{id: "first seen long ago", seen: true, headers: long, outcomes: says(retry, ack)})
	}
	return append(all, forgeries(doc)...)
}

// attributes are messages of Amazon SQS with attributes: whatever they say, the service counts.
func attributes(doc topology.Manifest) []story {
	all := map[string]any{
		"text": "ä", "whole": int64(-1), "half": 0.5, "bytes": []byte{0, 255}, "long": redeliver.Attribute{Type: "Number", Text: "12345678901234567890"},
		"typed": redeliver.Attribute{Type: "String.uuid", Text: "x"}, topology.HeaderDeliveryCount: int64(2),
	}
	if doc.Headers.RetryCount != "" {
		all[doc.Headers.RetryCount] = int64(2)
	}
	return []story{
		{id: "attributes", headers: all, outcomes: says(redeliver.Retry(errBoom), redeliver.Ack())},
		{id: "attributes, rejected", headers: all, outcomes: says(redeliver.Reject(errBoom))},
	}
}

// forgeries are messages whose publisher claims that they were delivered before.
func forgeries(doc topology.Manifest) []story {
	claim := func(count, delivered any) map[string]any {
		h := map[string]any{
			topology.HeaderDeliveryCount: delivered, topology.HeaderAcquiredCount: delivered, "kept": "yes",
			"nested": map[string]any{"list": []any{int32(1), "two", map[string]any{"deep": "er"}}},
		}
		if doc.Headers.RetryCount != "" {
			h[doc.Headers.RetryCount] = count
		}
		return h
	}
	from := int64(doc.Headers.RetryCountFrom)
	// counted is the first count where the header says one thing and the broker's another, each clamped.
	counted := func(header, broker int) func(variant) int {
		return func(v variant) int {
			count := 0
			if v.holds() && doc.Headers.RetryCount != "" {
				count = header
			}
			if v.counts() {
				count += broker
			}
			return min(count, maxRetries)
		}
	}
	ack, reject := says(redeliver.Ack()), says(redeliver.Reject(errBoom))
	return []story{
		{id: "forged", headers: claim(2+from, int64(1)), firstCount: counted(2, 1), outcomes: ack},
		{id: "forged, rejected", headers: claim(2+from, int64(1)), firstCount: counted(2, 1), outcomes: reject},
		{id: "forged, negative", headers: claim(-5+from, int64(-5)), firstCount: counted(0, 0), outcomes: ack},
		{id: "forged, large", headers: claim(int64(math.MaxInt64), int64(math.MaxInt64)), firstCount: counted(maxRetries, maxRetries), outcomes: ack},
		{id: "forged, malformed", headers: claim("many", "many"), firstCount: counted(0, 0), outcomes: ack},
	}
}

// outcomes are scenes in which every outcome happens.
func outcomes() []scene {
	everything := func(w *world) { w.tell(redeliver.Config{}, stories(w.v, w.doc)...) }
	few := func(cfg redeliver.Config) func(w *world) {
		return func(w *world) {
			retry := redeliver.Retry(errBoom)
			w.tell(cfg, story{id: "retry", outcomes: says(retry)}, story{id: "reject", outcomes: says(redeliver.Reject(errBoom))},
				story{id: "park", outcomes: says(redeliver.Park(errBoom))}, story{id: "ack", outcomes: says(redeliver.Ack())})
		}
	}
	return []scene{
		{name: "outcomes", act: everything, topic: func(s *topology.Spec) {
			if s.Convention.HasParkedQueue() {
				s.ParkedQueue, s.Park = s.ParkedQueueName(), topology.ParkPublish
			}
		}},
		{name: "nothing to park in", act: few(redeliver.Config{})},
		{name: "no retries", act: few(redeliver.Config{}), topic: func(s *topology.Spec) { s.Retry.MaxRetries = 0 }},
		{name: "fewer retries", act: few(redeliver.Config{MaxRetries: 1})},
		{name: "no dead-letter queue", act: few(redeliver.Config{}), topic: func(s *topology.Spec) { s.AllowMessageLoss = true }},
	}
}
