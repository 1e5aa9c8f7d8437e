package consumer

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// fakeBroker is one work queue in memory, with a quorum queue's counting. A
// test can take its sessions away.
type fakeBroker struct {
	mu      sync.Mutex
	changed sync.Cond
	ready   []*fakeMessage
	// settled is every settlement that took effect, in order.
	settled []settlement
	// refusals are what Subscribe answers before it succeeds again.
	refusals []error
	session  *fakeSession // the one that is open
	opened   int
	tried    []time.Time // when Subscribe was called
	// slowStop is how long Stop takes.
	slowStop time.Duration
	// hang makes Stop and Settle block until the session is closed.
	hang bool
}

type fakeMessage struct {
	redeliver.Message
	count      int64
	deliveries int
	done       bool // acknowledged, dead-lettered or discarded
}

type settlement struct {
	id   string
	verb Verb
	at   time.Time
}

func newFakeBroker(msgs ...redeliver.Message) *fakeBroker {
	b := &fakeBroker{}
	b.changed.L = &b.mu
	b.publish(msgs...)
	return b
}

func (b *fakeBroker) publish(msgs ...redeliver.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range msgs {
		b.ready = append(b.ready, &fakeMessage{Message: m})
	}
	b.changed.Broadcast()
}

// message is one with an id, which is its body too.
func message(id string) redeliver.Message { return redeliver.Message{ID: id, Body: []byte(id)} }

type fakeSession struct {
	b        *fakeBroker
	prefetch int
	tags     uint64
	unacked  map[uint64]*fakeMessage
	stopped  bool
	unsent   int   // acknowledgements that did not get through
	lost     error // not nil: the session has ended
	closed   chan struct{}
}

func (b *fakeBroker) Subscribe(_ context.Context, prefetch int) (Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tried = append(b.tried, time.Now())
	if len(b.refusals) > 0 {
		err := b.refusals[0]
		b.refusals = b.refusals[1:]
		return nil, err
	}
	b.opened++
	b.session = &fakeSession{b: b, prefetch: prefetch, unacked: make(map[uint64]*fakeMessage), closed: make(chan struct{})}
	return b.session, nil
}

func (s *fakeSession) Receive(d *Delivery) error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	for {
		switch {
		case s.lost != nil:
			return s.lost
		case s.stopped:
			return io.EOF
		case len(s.b.ready) > 0 && len(s.unacked) < s.prefetch:
			m := s.b.ready[0]
			s.b.ready = s.b.ready[1:]
			m.deliveries++
			s.tags++
			s.unacked[s.tags] = m
			*d = Delivery{Message: m.Message, Count: m.count, Tag: s.tags, Received: time.Now()}
			d.Message.Redelivered = m.deliveries > 1
			return nil
		}
		s.b.changed.Wait()
	}
}

func (s *fakeSession) Settle(d *Delivery, verb Verb, _ time.Duration) error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if s.b.hang {
		s.b.mu.Unlock()
		<-s.closed
		s.b.mu.Lock()
	}
	if s.lost != nil {
		return s.lost
	}
	m, ok := s.unacked[d.Tag]
	if !ok {
		return errors.New("unknown delivery tag") // a real broker closes the channel
	}
	delete(s.unacked, d.Tag)
	s.b.settled = append(s.b.settled, settlement{m.ID, verb, time.Now()})
	switch verb {
	case VerbAck, VerbDeadLetter:
		m.done = true
	case VerbRequeue:
		m.count++
		s.b.ready = append(s.b.ready, m)
	case VerbHandBack:
		s.b.ready = append(s.b.ready, m)
	}
	s.b.changed.Broadcast()
	return nil
}

func (s *fakeSession) Unsent() int { return s.unsent }

func (s *fakeSession) Hold(*Delivery) {}

func (s *fakeSession) Diagnose(lost error) error { return lost }

func (s *fakeSession) Stop(ctx context.Context) error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if s.b.hang {
		s.b.mu.Unlock()
		<-ctx.Done()
		s.b.mu.Lock()
		return ctx.Err()
	}
	if s.b.slowStop > 0 {
		s.b.mu.Unlock()
		time.Sleep(s.b.slowStop)
		s.b.mu.Lock()
	}
	s.stopped = true
	s.b.changed.Broadcast()
	return nil
}

func (s *fakeSession) Close(context.Context) error {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.end(errors.New("closed"))
	return nil
}

// end takes back what was not settled. s.b.mu is held.
func (s *fakeSession) end(reason error) {
	if s.lost != nil {
		return
	}
	s.lost = reason
	close(s.closed)
	var back []*fakeMessage // to the head, in order, as a quorum queue does
	for _, tag := range slices.Sorted(maps.Keys(s.unacked)) {
		m := s.unacked[tag]
		m.count++
		back = append(back, m)
	}
	s.b.ready = append(back, s.b.ready...)
	s.b.changed.Broadcast()
}

// lose ends the open session as a lost connection does.
func (b *fakeBroker) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.session.end(&LostError{Reason: LostConnection})
}

// verbs are the settlements of one message.
func (b *fakeBroker) verbs(id string) []Verb {
	b.mu.Lock()
	defer b.mu.Unlock()
	var verbs []Verb
	for _, s := range b.settled {
		if s.id == id {
			verbs = append(verbs, s.verb)
		}
	}
	return verbs
}

// fakePublisher takes copies, or answers with what fail returns.
type fakePublisher struct {
	mu     sync.Mutex
	copies []Copy
	fail   func(n int) error // n is how many were published before
	hang   bool              // confirm nothing before Close
	hung   []func(error)
	n      int
}

func (p *fakePublisher) Check(context.Context, []*topology.ManifestTarget) error { return nil }

func (p *fakePublisher) Publish(c Copy, done func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.n
	p.n++
	if p.hang {
		p.hung = append(p.hung, done)
		return
	}
	var err error
	if p.fail != nil {
		err = p.fail(n)
	}
	if err == nil {
		p.copies = append(p.copies, c)
	}
	go done(err)
}

func (p *fakePublisher) Blocked() (string, bool) { return "", false }

func (p *fakePublisher) Close(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, done := range p.hung {
		go done(errors.New("closed"))
	}
	p.hung = nil
	return nil
}

// setup is what an engine test needs.
type setup struct {
	spec      func(*topology.Spec)
	config    redeliver.Config
	handler   redeliver.HandlerFunc
	broker    *fakeBroker
	publisher *fakePublisher
}

// running is a consumer that runs.
type running struct {
	*Consumer
	events *recorder
	stop   context.CancelFunc
	done   chan error
}

// wait ends the consumer and returns what Run returned.
func (r *running) wait() error {
	r.stop()
	return <-r.done
}

// newConsumer makes a bound consumer, without jitter.
func newConsumer(t *testing.T, s setup) (*Consumer, *recorder) {
	t.Helper()
	manifest := testManifest(t, func(spec *topology.Spec) {
		spec.Retry.Jitter = 0
		if s.spec != nil {
			s.spec(spec)
		}
	})
	events := &recorder{}
	if s.config.OnEvent == nil {
		s.config.OnEvent = events.record
	}
	if s.config.Logger == nil {
		s.config.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := New(Options{
		Manifest: manifest, Handler: s.handler, Config: s.config,
		Connect: func(topology.Manifest, topology.ManifestQueue, []*topology.ManifestTarget) (Transport, Publisher, error) {
			if s.publisher == nil {
				return s.broker, nil, nil
			}
			return s.broker, s.publisher, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Bind(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, events
}

// run makes a consumer that runs until wait is called.
func run(t *testing.T, s setup) *running {
	t.Helper()
	c, events := newConsumer(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{Consumer: c, events: events, stop: cancel, done: make(chan error, 1)}
	go func() { r.done <- c.Run(ctx) }()
	return r
}

// recorder keeps events.
type recorder struct {
	mu   sync.Mutex
	list []redeliver.Event
}

func (r *recorder) record(e redeliver.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, e)
}

func (r *recorder) of(kind redeliver.EventKind) []redeliver.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []redeliver.Event
	for _, e := range r.list {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// pass lets time pass on the bubble's clock, and then everything settle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// logBuffer takes the lines of a log while a test reads them.
type logBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, line...)
	return len(line), nil
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
