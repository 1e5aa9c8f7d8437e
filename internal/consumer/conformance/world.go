package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// waitForEvent bounds the wait for an event that needs no time to pass.
const waitForEvent = 30 * time.Second

// world is one topic on one broker, and what is seen there.
type world struct {
	Broker
	t   *testing.T
	v   variant
	doc topology.Manifest

	mu    sync.Mutex
	seen  seen
	ended map[string]fate // of messages whose end was told
	// events are those that were told; told is closed and replaced with each.
	events []redeliver.Event
	told   chan struct{}
}

// seen is what happened to messages, by their ids.
type seen struct {
	doc topology.Manifest
	// calls are those of the handler.
	calls map[string][]call
	// order is that of all calls.
	order []string
	// setAside are the messages that were found in dead-letter and parked queues.
	setAside map[string]redeliver.Message
	// loose are messages that are not the same each time.
	loose map[string]bool
}

// call is a message as a handler got it, and when.
type call struct {
	at  time.Time
	msg redeliver.Message
}

func newWorld(t *testing.T, v variant, doc topology.Manifest, b Broker) *world {
	t.Helper()
	return &world{
		Broker: b, t: t, v: v, doc: doc, ended: make(map[string]fate), told: make(chan struct{}),
		seen: seen{doc: doc, calls: make(map[string][]call), setAside: make(map[string]redeliver.Message), loose: make(map[string]bool)},
	}
}

// consume runs a consumer whose handler does what stories say.
func (w *world) consume(cfg redeliver.Config, all ...story) Consumer {
	byID := make(map[string]story)
	for _, s := range all {
		byID[s.id] = s
		w.seen.loose[s.id] = s.loose || s.hops
	}
	cfg.MaxMessageSize = maxSize
	cfg.OnEvent = w.note
	return w.Consume(cfg, redeliver.HandlerFunc(func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		o := byID[w.v.storyOf(m)].says(w.called(m))
		if o.Err() == errPanic { //nolint:errorlint // the very one
			panic(errPanic)
		}
		return o
	}))
}

// publish publishes a story's message.
func (w *world) publish(s story) {
	w.t.Helper()
	if w.v.sqs() {
		w.Publish(s.sent(w.v.fifo))
	} else {
		w.Publish(s.message(w.Now()))
	}
}

// called notes a call, and returns how many there were of the message before.
func (w *world) called(m *redeliver.Message) int {
	at, id := w.Now(), w.v.storyOf(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.calls[id] = append(w.seen.calls[id], call{at, *m})
	w.seen.order = append(w.seen.order, id)
	return len(w.seen.calls[id]) - 1
}

func (w *world) note(e redeliver.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
	switch e.Kind {
	case redeliver.EventAcked:
		w.ended[w.v.storyOf(e.Message)] = acked
	case redeliver.EventDeadLettered:
		w.ended[w.v.storyOf(e.Message)] = dead
	case redeliver.EventParked:
		w.ended[w.v.storyOf(e.Message)] = parked
	case redeliver.EventDiscarded:
		w.ended[w.v.storyOf(e.Message)] = discarded
	}
	close(w.told)
	w.told = make(chan struct{})
}

// count counts the events of a kind.
func (w *world) count(kind redeliver.EventKind) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, e := range w.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// await waits for an event that comes without time passing.
func (w *world) await(kind redeliver.EventKind) {
	w.t.Helper()
	timeout := time.After(waitForEvent)
	for {
		w.mu.Lock()
		told := w.told
		w.mu.Unlock()
		if w.count(kind) > 0 {
			return
		}
		select {
		case <-told:
		case <-timeout:
			w.t.Fatalf("the event %q did not come", kind)
		}
	}
}

// until lets time pass until an event has happened.
func (w *world) until(kind redeliver.EventKind) {
	w.t.Helper()
	w.Until(func() (bool, string) { return w.count(kind) > 0, fmt.Sprintf("no event %q", kind) })
}

// untilEnded lets time pass until all stories have ended.
func (w *world) untilEnded(all ...story) {
	w.t.Helper()
	w.Until(func() (bool, string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		var open []string
		for _, s := range all {
			if w.ended[s.id] == "" {
				open = append(open, s.id)
			}
		}
		return len(open) == 0, fmt.Sprintf("not ended: %q", open)
	})
}

// tell publishes stories' messages, lets them happen, and looks whether each
// ends as is expected.
func (w *world) tell(cfg redeliver.Config, all ...story) {
	w.t.Helper()
	c := w.consume(cfg, all...)
	want := make(map[string]ending)
	var sum redeliver.Stats
	for _, s := range all {
		w.publish(s)
		want[s.id] = expect(w.v, w.doc, cfg, s)
		sum = sum.Add(want[s.id].stats)
	}
	w.untilEnded(all...)
	w.collect(want)
	w.closed(c)
	for _, s := range all {
		w.check(s, want[s.id])
	}
	w.checkStats(c.Stats(), sum)
}

// collect finds the messages that were set aside, in the queues where they belong.
func (w *world) collect(want map[string]ending) {
	w.t.Helper()
	ids := map[fate][]string{}
	for id, e := range want {
		ids[e.fate] = append(ids[e.fate], id)
	}
	w.find(w.doc.DeadLetter, ids[dead])
	w.find(w.doc.Parked, ids[parked])
}

// find waits until exactly these messages are in a queue.
func (w *world) find(target *topology.ManifestTarget, ids []string) {
	w.t.Helper()
	if target == nil {
		return
	}
	slices.Sort(ids)
	var found []redeliver.Message
	w.Until(func() (bool, string) {
		found = w.Messages(target.Name)
		var have []string
		for i := range found {
			have = append(have, w.v.storyOf(&found[i]))
		}
		slices.Sort(have)
		return slices.Equal(have, ids), fmt.Sprintf("queue %q has %q, want %q", target.Name, have, ids)
	})
	for i := range found {
		w.seen.setAside[w.v.storyOf(&found[i])] = found[i]
	}
}

// closed shuts the consumer down. Nothing may be left in the work queue.
func (w *world) closed(c Consumer) {
	w.t.Helper()
	if err := c.Close(); err != nil {
		w.t.Errorf("the consumer did not stop cleanly: %v", err)
	}
	if n := w.Depth(w.doc.WorkQueue.Name); n > 0 {
		w.t.Errorf("%d messages are left in the work queue", n)
	}
}

// check compares what a handler saw of a story with its ending.
func (w *world) check(s story, want ending) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.seen.calls[s.id]
	var counts []int
	for _, c := range calls {
		counts = append(counts, c.msg.RetryCount)
	}
	if !slices.Equal(counts, want.counts) {
		w.t.Errorf("%q was handled with the retry counts %v, want %v", s.id, counts, want.counts)
		return
	}
	if w.ended[s.id] != want.fate {
		w.t.Errorf("%q was %s, want %s", s.id, w.ended[s.id], want.fate)
	}
	for i, pause := range want.waits {
		waited := calls[i+1].at.Sub(calls[i].at)
		asked := s.says(i).Delay()
		switch {
		case w.Exact() && waited != pause.lasts:
			w.t.Errorf("%q waited %s after call %d, want %s", s.id, waited, i, pause.lasts)
		case waited < max(asked, pause.lasts) && !s.hops, waited < asked:
			w.t.Errorf("%q waited only %s after call %d, want %s", s.id, waited, i, pause.lasts)
		}
	}
}

// checkStats compares the counters.
func (w *world) checkStats(got, want redeliver.Stats) {
	w.t.Helper()
	if !w.Exact() && want.Hopped > 0 { // the busier a broker is, the fewer hops fit into a delay
		if got.Hopped > want.Hopped {
			w.t.Errorf("%d hops, want at most %d", got.Hopped, want.Hopped)
		}
		want.Hopped, want.Republished, want.Delivered = got.Hopped, got.Republished, got.Delivered
	}
	got.InFlight = 0 // what waits with a real service is in flight, and not yet forgotten
	if have, expected := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); have != expected {
		w.t.Errorf("stats\n got %s\nwant %s", have, expected)
	}
}

// compare says where the same scene was not the same on the broker in memory.
func (s *seen) compare(t *testing.T, memory *seen) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(s.calls)) {
		if s.loose[id] {
			continue
		}
		if len(s.calls[id]) != len(memory.calls[id]) {
			t.Errorf("%q: %d calls, and %d in memory", id, len(s.calls[id]), len(memory.calls[id]))
			continue
		}
		for i := range s.calls[id] {
			s.same(t, fmt.Sprintf("%q, call %d", id, i), s.calls[id][i].msg, memory.calls[id][i].msg)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.setAside)) {
		if s.loose[id] {
			continue
		}
		s.same(t, fmt.Sprintf("%q, set aside", id), s.setAside[id], memory.setAside[id])
	}
}

func (s *seen) same(t *testing.T, what string, got, memory redeliver.Message) {
	t.Helper()
	a, b := s.comparable(got), s.comparable(memory)
	if a.Headers[topology.HeaderDeliveryCount] == int64(0) { // basic.get of 3.10 says so whatever else is true
		delete(a.Headers, topology.HeaderDeliveryCount)
		delete(b.Headers, topology.HeaderDeliveryCount)
	}
	if fmt.Sprintf("%#v", a) != fmt.Sprintf("%#v", b) { // with the types of everything
		t.Errorf("%s:\n  here      %s\n  in memory %s", what, describe(a), describe(b))
	}
}

// comparable is a message without what differs from run to run.
func (s *seen) comparable(m redeliver.Message) redeliver.Message {
	m.Timestamp, m.FirstSeen = time.Time{}, time.Time{}
	if s.doc.Broker == topology.BrokerSQS { // which gives a message its id
		m.ID = ""
	}
	h := s.doc.Headers
	headers := maps.Clone(m.Headers)
	for _, name := range []string{h.FirstSeen, h.FirstFailedAt, h.LastFailedAt, topology.HeaderNotBefore} {
		delete(headers, name)
	}
	deaths, _ := headers[topology.HeaderDeath].([]any)
	timeless := make([]any, len(deaths))
	for i, death := range deaths {
		table := maps.Clone(death.(map[string]any))
		delete(table, "time")
		timeless[i] = table
	}
	if len(timeless) > 0 {
		headers[topology.HeaderDeath] = timeless
	}
	m.Headers = headers
	if headers == nil {
		m.Headers = map[string]any{}
	}
	return m
}

func describe(m redeliver.Message) string {
	var b strings.Builder
	fmt.Fprintf(&b, "redelivered=%v exchange=%q key=%q priority=%d body=%.40q", m.Redelivered, m.Exchange, m.RoutingKey, m.Priority, m.Body)
	for _, key := range slices.Sorted(maps.Keys(m.Headers)) {
		fmt.Fprintf(&b, "\n      %s = %T %v", key, m.Headers[key], m.Headers[key])
	}
	return b.String()
}
