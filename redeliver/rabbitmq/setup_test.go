package rabbitmq_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
)

// waitTimeout bounds every wait for an event. Only a failing test needs it, and
// the one that waits for a broker which looks once a minute.
const waitTimeout = 150 * time.Second

// world is a topic on a broker, in a vhost of its own, and a user with the
// permissions that its manifest needs.
type world struct {
	t          *testing.T
	broker     *brokertest.Broker
	vhost      string
	spec       topology.Spec
	doc        topology.Manifest
	manifest   redeliver.Manifest
	user, pass string
	via        string // the URL of a proxy, where there is one
	// cluster are the nodes, broker among them, where there are several.
	cluster brokertest.Nodes
	// pace is how often a trial publishes ten messages.
	pace time.Duration
}

// worldRetries is how often a message of a world is retried, unless the test says otherwise.
const worldRetries = 10

// standard is the standard example of the field, scaled down: 5s, 30s and 2m.
func standard(s *topology.Spec) {
	s.Retry.Delays = []time.Duration{5 * time.Millisecond, 30 * time.Millisecond, 120 * time.Millisecond}
}

// onClassic makes the work queue a classic one.
func onClassic(s *topology.Spec) { s.Convention, s.QueueType = topology.RabbitKit, topology.Classic }

// parking publishes unreadable messages to the parked queue.
func parking(s *topology.Spec) { s.ParkedQueue, s.Park = "orders-parked", topology.ParkPublish }

// newWorld provisions the topic "orders" on the shared broker.
func newWorld(t *testing.T, change ...func(*topology.Spec)) *world {
	t.Helper()
	return newWorldOn(t, brokertest.Shared(t), change...)
}

func newWorldOn(t *testing.T, b *brokertest.Broker, change ...func(*topology.Spec)) *world {
	t.Helper()
	w := &world{t: t, broker: b, vhost: brokertest.VHost(t, b), pace: feedEvery}
	w.spec = topology.Spec{
		Identity: topology.Identity{Topic: "orders", VHost: w.vhost},
		Retry:    topology.RetryPolicy{MaxRetries: worldRetries, Delays: []time.Duration{20 * time.Millisecond}, Jitter: topology.DefaultJitter},
	}
	for _, f := range change {
		f(&w.spec)
	}
	if !w.spec.AllowMessageLoss {
		w.spec.DeadLetterQueue = w.spec.DeadLetterQueueName()
	}
	var err error
	if w.doc, err = w.spec.Manifest(); err != nil {
		t.Fatal(err)
	}
	if w.manifest, err = redeliver.ParseManifest(w.doc.Encode()); err != nil {
		t.Fatal(err)
	}
	w.declare()
	may, err := topology.Permissions(w.doc, topology.AccessConsumer)
	if err != nil {
		t.Fatal(err)
	}
	w.user, w.pass = brokertest.User(t, b, w.vhost, may.Configure, may.Write, may.Read)
	return w
}

// declare creates what the spec computes, as the provider does.
func (w *world) declare() {
	w.t.Helper()
	objects, err := w.spec.Build()
	if err != nil {
		w.t.Fatal(err)
	}
	ch := brokertest.Channel(w.t, w.broker, w.vhost)
	for _, e := range objects.Exchanges {
		if err := ch.ExchangeDeclare(e.Name, e.Type, true, false, false, false, nil); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, q := range objects.Queues {
		if _, err := ch.QueueDeclare(q.Name, true, false, false, false, amqp091.Table(q.Arguments)); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, b := range objects.Bindings {
		if err := ch.QueueBind(b.Destination, b.RoutingKey, b.Source, false, amqp091.Table(b.Arguments)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// publish publishes messages with these ids to the work queue; a message's body
// is its id.
func (w *world) publish(ids ...string) {
	w.t.Helper()
	msgs := make([]amqp091.Publishing, len(ids))
	for i, id := range ids {
		msgs[i] = amqp091.Publishing{MessageId: id, Body: []byte(id), DeliveryMode: amqp091.Persistent}
	}
	w.send(msgs...)
}

func (w *world) send(msgs ...amqp091.Publishing) {
	w.t.Helper()
	brokertest.Publish(w.t, w.broker, w.vhost, "", "orders", msgs...)
}

// waitDepth waits until a queue has so many messages ready.
func (w *world) waitDepth(queue string, want int) {
	w.t.Helper()
	brokertest.WaitDepth(w.t, w.broker, w.vhost, queue, want)
}

// drained waits until the queue has exactly these messages, and takes them out.
func (w *world) drained(queue string, ids ...string) []amqp091.Delivery {
	w.t.Helper()
	w.waitDepth(queue, len(ids))
	got := brokertest.Drain(w.t, w.broker, w.vhost, queue)
	var found []string
	for _, d := range got {
		found = append(found, d.MessageId)
	}
	slices.Sort(found)
	slices.Sort(ids)
	if !slices.Equal(found, ids) {
		w.t.Errorf("queue %q has %q, want %q", queue, found, ids)
	}
	return got
}

// config is a configuration as the least privileged user.
func (w *world) config(handler redeliver.Handler, cfg redeliver.Config) rabbitmq.Config {
	return rabbitmq.Config{URL: w.url(), Addresses: w.cluster.Addresses(), Manifest: w.manifest, Handler: handler, Consumer: cfg}
}

func (w *world) url() string {
	if w.via != "" {
		return w.via
	}
	return w.broker.AMQPURLAs(w.vhost, w.user, w.pass)
}

// live is a consumer that runs, with what it told.
type live struct {
	*rabbitmq.Consumer
	t    *testing.T
	stop context.CancelFunc
	done chan error
	log  *lockedBuffer

	mu     sync.Mutex
	events []redeliver.Event
	more   chan struct{} // closed and replaced with every event
}

// consume opens a consumer and runs it until the test ends, or until stopped.
func (w *world) consume(cfg redeliver.Config, handler redeliver.HandlerFunc) *live {
	w.t.Helper()
	l := w.open(cfg, handler)
	l.run()
	return l
}

func (w *world) open(cfg redeliver.Config, handler redeliver.Handler) *live {
	w.t.Helper()
	l := &live{t: w.t, done: make(chan error, 1), more: make(chan struct{}), log: &lockedBuffer{}}
	told := cfg.OnEvent
	cfg.OnEvent = func(e redeliver.Event) {
		l.record(e)
		if told != nil {
			told(e)
		}
	}
	cfg.Logger = slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if l.Consumer, err = rabbitmq.Open(w.t.Context(), w.config(handler, cfg)); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = l.Close() // a test that cares has stopped it
		if strings.Contains(l.log.String(), w.pass) {
			w.t.Error("the password is in the log")
		}
		if w.t.Failed() {
			w.t.Logf("--- end of a consumer's log ---\n%s", l.log.tail())
		}
	})
	return l
}

func (l *live) run() {
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	go func() { l.done <- l.Run(ctx) }()
}

// stopped ends the consumer and returns what Run returned.
func (l *live) stopped() error {
	l.t.Helper()
	l.stop()
	return l.ended()
}

func (l *live) ended() error {
	l.t.Helper()
	select {
	case err := <-l.done:
		return err
	case <-time.After(waitTimeout):
		l.t.Fatal("Run does not return")
		return nil
	}
}

// mustStop ends the consumer, which must be clean.
func (l *live) mustStop() {
	l.t.Helper()
	if err := l.stopped(); err != nil {
		l.t.Errorf("the consumer did not stop cleanly: %v", err)
	}
}

func (l *live) record(e redeliver.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	close(l.more)
	l.more = make(chan struct{})
}

func (l *live) of(kind redeliver.EventKind) []redeliver.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []redeliver.Event
	for _, e := range l.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// await waits for n events of a kind and returns them.
func (l *live) await(kind redeliver.EventKind, n int) []redeliver.Event {
	l.t.Helper()
	timeout := time.After(waitTimeout)
	for {
		l.mu.Lock()
		more := l.more
		l.mu.Unlock()
		if list := l.of(kind); len(list) >= n {
			return list
		}
		select {
		case <-more:
		case <-timeout:
			l.t.Fatalf("%d events %q after %s, want %d; stats %+v", len(l.of(kind)), kind, waitTimeout, n, l.Stats())
		}
	}
}

// lockedBuffer is a log that a test may read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *lockedBuffer) tail() string {
	s := b.String()
	return s[max(0, len(s)-4000):]
}

// ids are n message ids.
func ids(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("m%05d", i)
	}
	return list
}
