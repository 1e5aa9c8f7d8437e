package memory

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// version is what tells the emulated RabbitMQ versions apart.
type version int

const (
	// v3: what a queue counted is forgotten when a message is dead-lettered, and the delivery limit has no default.
	v3 version = iota
	// v4: counts are carried along to a dead-letter queue.
	v4
	// v43: basic.nack counts nothing, and a queue can delay what comes back.
	v43
)

// DefaultVersion is the version that is emulated where none is asked for.
const DefaultVersion = "4.3"

func parseVersion(text string) (version, error) {
	var major, minor int
	if n, err := fmt.Sscanf(text, "%d.%d", &major, &minor); n != 2 || err != nil || major < 3 {
		return v3, fmt.Errorf("%q is no version of RabbitMQ that can be emulated: use one such as 3.10, 4.0 or %s", text, DefaultVersion)
	}
	switch {
	case major == 3:
		return v3, nil
	case major == 4 && minor < 3:
		return v4, nil
	default:
		return v43, nil
	}
}

// Broker is a broker. Its methods may be called from several goroutines; but
// only one may move the clock at a time.
type Broker struct {
	version  version
	clock    *clock
	activity activity

	mu     sync.Mutex
	queues map[string]*queue
	// declared are all queues that were ever provisioned, for Restore.
	declared map[string]topology.ManifestQueue
	// routes lead from an exchange, and a routing key, to queues. An exchange without any does not exist.
	routes map[string]map[string][]string
	// arrivals counts the messages that came to any queue.
	arrivals uint64
}

// New makes a broker without queues. Its clock stands at start.
func New(emulated string, start time.Time) (*Broker, error) {
	v, err := parseVersion(emulated)
	if err != nil {
		return nil, err
	}
	return &Broker{
		version: v, clock: &clock{now: start}, queues: make(map[string]*queue),
		declared: make(map[string]topology.ManifestQueue), routes: make(map[string]map[string][]string),
	}, nil
}

// Provision makes what a topic's manifest describes. What is there already stays
// as it is.
func (b *Broker) Provision(m topology.Manifest) error {
	if m.Retry.Strategy == topology.BrokerDelayed && b.version < v43 {
		return fmt.Errorf("topic %q has the strategy %s, which needs RabbitMQ %s: emulate that version", m.Topic, topology.BrokerDelayed, topology.BrokerDelayedSince)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range m.WorkQueues() {
		b.declare(q)
	}
	for _, q := range m.HoldQueues {
		b.declare(q.ManifestQueue)
		b.bind(m.RetryExchange, q.Name, q.Name)
		home, _ := q.Arguments[topology.ArgDeadLetterExchange].(string)
		key, _ := q.Arguments[topology.ArgDeadLetterKey].(string)
		b.bind(home, key, key) // through which a message that expired goes home
	}
	for _, target := range []*topology.ManifestTarget{m.DeadLetter, m.Parked} {
		if target != nil {
			b.declare(target.ManifestQueue)
			b.bind(target.Exchange, target.RoutingKey, target.Name)
		}
	}
	return nil
}

func (b *Broker) declare(q topology.ManifestQueue) {
	if _, ok := b.declared[q.Name]; !ok {
		b.declared[q.Name] = q
		b.queues[q.Name] = newQueue(q, b.version)
	}
}

// bind leads messages from an exchange to a queue. From the default exchange all
// queues can be reached already.
func (b *Broker) bind(exchange, key, queue string) {
	if exchange == "" {
		return
	}
	if b.routes[exchange] == nil {
		b.routes[exchange] = make(map[string][]string)
	}
	if !slices.Contains(b.routes[exchange][key], queue) {
		b.routes[exchange][key] = append(b.routes[exchange][key], queue)
	}
}

// route are the queues that a message gets to. b.mu is held.
func (b *Broker) route(exchange, key string) []*queue {
	names := b.routes[exchange][key]
	if exchange == "" {
		names = []string{key}
	}
	var reached []*queue
	for _, name := range names {
		if q := b.queues[name]; q != nil {
			reached = append(reached, q)
		}
	}
	return reached
}

// Publish puts messages into a queue, as if each had been published with its
// Exchange and RoutingKey or, where it has neither, through the default exchange.
func (b *Broker) Publish(queue string, msgs ...redeliver.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.find(queue)
	if err != nil {
		return err
	}
	made := make([]*message, len(msgs))
	for i, m := range msgs {
		if m.Exchange == "" && m.RoutingKey == "" && q.sqs == nil {
			m.RoutingKey = queue
		}
		if made[i], err = b.newMessage(q, m); err != nil {
			return fmt.Errorf("publishing message %q to queue %q: %w", m.ID, queue, err)
		}
	}
	for _, m := range made {
		b.arrive(q, m)
	}
	return nil
}

// find is the queue of a name. b.mu is held.
func (b *Broker) find(name string) (*queue, error) {
	if q := b.queues[name]; q != nil {
		if q.sqs != nil {
			q.expire(b.clock.Now())
		}
		return q, nil
	}
	if _, ok := b.declared[name]; ok {
		return nil, fmt.Errorf("queue %q was removed", name)
	}
	return nil, fmt.Errorf("there is no queue %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(b.queues)), ", "))
}

// Messages are all messages of a queue, in the order in which they came: those
// that a consumer has and did not settle too.
func (b *Broker) Messages(queue string) ([]redeliver.Message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.find(queue)
	if err != nil {
		return nil, err
	}
	return show(q, q.all()), nil
}

// Away are the messages of a queue that a consumer has and did not settle, or
// that came back and wait.
func (b *Broker) Away(queue string) ([]redeliver.Message, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.find(queue)
	if err != nil {
		return nil, err
	}
	return show(q, q.away()), nil
}

func show(q *queue, msgs []*message) []redeliver.Message {
	shown := make([]redeliver.Message, len(msgs))
	for i, m := range msgs {
		shown[i] = m.show(q)
	}
	return shown
}

// Remove deletes a queue with its messages, as an operator would.
func (b *Broker) Remove(queue string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.find(queue)
	if err != nil {
		return err
	}
	delete(b.queues, queue)
	for _, e := range q.events {
		b.clock.cancel(e)
	}
	for _, s := range slices.Clone(q.sessions) {
		s.lose(&consumer.LostError{Reason: consumer.LostQueueDeleted})
	}
	return nil
}

// Restore makes a queue again that was removed.
func (b *Broker) Restore(queue string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	declared, ok := b.declared[queue]
	if !ok {
		_, err := b.find(queue)
		return err
	}
	if b.queues[queue] == nil {
		b.queues[queue] = newQueue(declared, b.version)
	}
	return nil
}

// Disconnect ends all subscriptions as a lost connection does. What was not
// settled is in its queue again.
func (b *Broker) Disconnect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.queues)) {
		q := b.queues[name]
		var back []*message
		for _, s := range slices.Clone(q.sessions) {
			back = append(back, s.lose(&consumer.LostError{Reason: consumer.LostConnection})...)
		}
		for _, m := range back {
			b.giveBack(q, m, byLoss)
		}
	}
}

// Now is the broker's time.
func (b *Broker) Now() time.Time { return b.clock.Now() }

// Wait waits until everything is at rest. It returns false when that did not
// happen within patience of the machine's time.
func (b *Broker) Wait(patience time.Duration) bool { return b.activity.wait(patience) }

// Step moves the clock to the next thing that is due, and lets it happen. Where
// that is after limit, or nothing is, it moves the clock to limit and returns
// false. Whoever calls it waits before and after.
func (b *Broker) Step(limit time.Time) bool { return b.clock.step(limit) }

// Next is when the next thing is due; any is false where nothing waits.
func (b *Broker) Next() (at time.Time, any bool) { return b.clock.next() }
