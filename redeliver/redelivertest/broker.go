package redelivertest

import (
	"hash/fnv"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/consumer/memory"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Broker is a broker in memory that has a topic's queues. Its methods are for
// the goroutine of the test; handlers may call Publish, PublishTo and Now. What
// looks at the broker, or moves its clock, waits first until everything is at
// rest (see [Broker.Wait]).
type Broker struct {
	*shared
	doc topology.Manifest
}

// shared is what the topics of one broker have in common.
type shared struct {
	t      testing.TB
	memory *memory.Broker
	logger *slog.Logger
	// patience is how long, by the machine's clock, handlers may take until a test fails that waits for them.
	patience time.Duration

	mu        sync.Mutex
	topics    []topology.Manifest
	consumers []*Consumer
}

// Option changes how a broker is made; see [New].
type Option func(*options)

type options struct {
	version string
	start   time.Time
}

// Version is the version of RabbitMQ that is emulated, such as "3.10" or "4.0":
// they differ in what they count, and in the headers of dead letters. Amazon SQS
// has none.
//
// Defaults to "4.3".
func Version(version string) Option { return func(o *options) { o.version = version } }

// Start is the time at which the broker's clock stands first.
//
// Defaults to the time of the call, in whole seconds.
func Start(at time.Time) Option { return func(o *options) { o.start = at } }

// New makes a broker with the queues that a manifest describes. It is gone when
// the test ends. The manifest is the application's own, as it would be read in
// production, or one from [Manifest].
func New(t testing.TB, manifest redeliver.Manifest, opts ...Option) *Broker {
	t.Helper()
	o := options{version: memory.DefaultVersion, start: time.Now().Truncate(time.Second)}
	for _, option := range opts {
		option(&o)
	}
	broker, err := memory.New(o.version, o.start)
	if err != nil {
		t.Fatal(err)
	}
	return (&shared{t: t, memory: broker, logger: newLogger(t, broker.Now), patience: defaultPatience}).with(manifest)
}

// With adds another topic's queues to the broker. The Broker that it returns is
// the same one, with the same clock: only that Consume, HandleDead, Publish,
// Dead, Parked and Held are about the other topic.
func (b *Broker) With(manifest redeliver.Manifest) *Broker {
	b.t.Helper()
	return b.with(manifest)
}

func (s *shared) with(manifest redeliver.Manifest) *Broker {
	s.t.Helper()
	doc := manifest.Contract()
	if doc.Topic == "" {
		s.t.Fatal(redeliver.ErrNoManifest)
	}
	if err := s.memory.Provision(doc); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.topics = append(s.topics, doc)
	return &Broker{shared: s, doc: doc}
}

// Publish publishes messages to the topic's work queue; where a sequenced topic
// has shards, to the one that their routing key belongs to. Of a message, its
// body, headers and properties count, and Exchange and RoutingKey, which the
// handler sees; without them it is as if published through the default exchange.
// As in AMQP, times have whole seconds, and an int among the headers has 32 bits.
//
// On Amazon SQS the headers are the message's attributes, and RoutingKey is its
// message group. Other properties do not exist there; only the ID is kept where a
// message has one, which the service would give it.
func (b *Broker) Publish(msgs ...redeliver.Message) {
	b.t.Helper()
	queues := b.doc.WorkQueues()
	for _, m := range msgs {
		b.PublishTo(queues[shardOf(m.RoutingKey, len(queues))].Name, m)
	}
}

// shardOf is the shard that messages of a key go to. A broker's hash is another
// one, and as good.
func shardOf(key string, shards int) int {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(key))
	return int(sum.Sum32() % uint32(shards)) //nolint:gosec // few, and at least one
}

// PublishTo publishes messages to any of the broker's queues.
func (b *Broker) PublishTo(queue string, msgs ...redeliver.Message) {
	b.t.Helper()
	if err := b.memory.Publish(queue, msgs...); err != nil {
		b.t.Error(err) // handlers publish too, and may not end the test
	}
}

// Messages are the messages of a queue in the order in which they came there,
// with those that a consumer has and did not settle yet. Their headers are as a
// consumer of the queue would see them: a dead letter has x-death, and a message
// that a quorum queue counted has x-delivery-count.
func (b *Broker) Messages(queue string) []redeliver.Message {
	b.t.Helper()
	b.Wait()
	return b.must(b.memory.Messages(queue))
}

// Dead are the messages in the topic's dead-letter queue, with what their headers
// say about how they got there.
func (b *Broker) Dead() []redeliver.DeadMessage {
	b.t.Helper()
	if b.doc.DeadLetter == nil {
		b.t.Fatalf("topic %q has no dead-letter queue: what fails for good is discarded", b.doc.Topic)
	}
	return b.setAside(b.doc.DeadLetter.Name)
}

// Parked are the messages in the topic's parked queue, with what their headers
// say about how they got there.
func (b *Broker) Parked() []redeliver.DeadMessage {
	b.t.Helper()
	if b.doc.Parked == nil {
		b.t.Fatalf("topic %q has no parked queue: what nobody can read is dead-lettered", b.doc.Topic)
	}
	return b.setAside(b.doc.Parked.Name)
}

func (b *Broker) setAside(queue string) []redeliver.DeadMessage {
	b.t.Helper()
	var list []redeliver.DeadMessage
	for _, m := range b.Messages(queue) {
		m.Topic = b.doc.Topic
		list = append(list, consumer.ParseDead(m, b.doc.Headers))
	}
	return list
}

// Held are the topic's messages that wait: to be retried, for what they were
// deferred for, or for a consumer that is busy with others; in a consumer, in a
// hold queue, or in the work queue of a broker that delays, as invisible messages
// of Amazon SQS do. Their RetryCount is not filled in.
func (b *Broker) Held() []redeliver.Message {
	b.t.Helper()
	b.Wait()
	return b.held(b.doc)
}

func (s *shared) held(doc topology.Manifest) []redeliver.Message {
	s.t.Helper()
	var list []redeliver.Message
	for _, q := range doc.WorkQueues() {
		if away, err := s.memory.Away(q.Name); err == nil { // else it was removed
			list = append(list, away...)
		}
	}
	for _, q := range doc.HoldQueues {
		if held, err := s.memory.Messages(q.Name); err == nil {
			list = append(list, held...)
		}
	}
	return list
}

// Disconnect takes all consumers' connections away, as the restart of a broker
// does. Their messages are in their queues again, and counted there as the
// emulated version does. The outcomes of handlers that run are dropped. Consumers
// connect again after a pause of a tenth of a second, then of growing ones:
// [Broker.Advance] makes it pass. On Amazon SQS, which has no connections, it is
// the end of the process that matters: messages come back when their visibility
// timeout is over, and have been received once more.
func (b *Broker) Disconnect() { b.memory.Disconnect() }

// Remove deletes a queue with its messages, as an operator could: a hold queue
// that is missing, a dead-letter queue that is not there when it is needed.
func (b *Broker) Remove(queue string) {
	b.t.Helper()
	b.Wait()
	if err := b.memory.Remove(queue); err != nil {
		b.t.Fatal(err)
	}
}

// Restore makes a queue again, empty, that was removed.
func (b *Broker) Restore(queue string) {
	b.t.Helper()
	b.Wait()
	if err := b.memory.Restore(queue); err != nil {
		b.t.Fatal(err)
	}
}

func (s *shared) must(list []redeliver.Message, err error) []redeliver.Message {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}
