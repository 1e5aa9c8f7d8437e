package conformance

import (
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Broker is a broker with one topic's queues.
type Broker interface {
	// Version is that of RabbitMQ, such as "4.3" or "4.3.6".
	Version() string
	// Now is the broker's time.
	Now() time.Time
	// Consume consumes the topic until the test ends, or until the consumer is closed.
	Consume(cfg redeliver.Config, handler redeliver.Handler) Consumer
	// Publish publishes messages to the topic.
	Publish(msgs ...redeliver.Message)
	// Disconnect takes the consumers' connections away, once.
	Disconnect()
	// Remove deletes a queue, and Restore makes it again.
	Remove(queue string)
	Restore(queue string)
	// Until lets time pass until a condition holds.
	Until(condition func() (holds bool, state string))
	// Messages are the messages that are ready in a queue, and Depth is how many they are.
	Messages(queue string) []redeliver.Message
	Depth(queue string) int
	// Exact says that time is what the broker says it is: a message is there the moment that it is due.
	Exact() bool
}

// Consumer is a consumer that runs.
type Consumer interface {
	Stats() redeliver.Stats
	// Close shuts it down.
	Close() error
}

// Open makes a broker with the queues of a topic.
type Open func(t *testing.T, spec topology.Spec) Broker

// Run runs the suite on the brokers that open makes. Where those are real, twin
// makes one in memory of the same version, on which everything happens too: what
// is seen on both has to be the same. twin is nil where open's are in memory.
// since43 says whether the brokers are of version 4.3 or later, which some
// topics need.
func Run(t *testing.T, since43 bool, open, twin Open) {
	for _, v := range variants() {
		if v.since43 && !since43 {
			continue // the provider refuses such a topic: there is nothing that would have to work
		}
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range cases() {
				if c.skip != nil && c.skip(v) {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					seen := c.play(t, v, open)
					if twin != nil && !t.Failed() {
						seen.compare(t, c.play(t, v, twin))
					}
				})
			}
		})
	}
}

// scene is one case on one topic.
type scene struct {
	name string
	// skip leaves out topics that have nothing to do with it.
	skip func(v variant) bool
	// topic changes the topic.
	topic func(s *topology.Spec)
	// act lets it happen, and looks at the end.
	act func(w *world)
}

func (c scene) play(t *testing.T, v variant, open Open) *seen {
	t.Helper()
	spec := v.spec()
	if c.topic != nil {
		c.topic(&spec)
	}
	if !spec.AllowMessageLoss {
		spec.DeadLetterQueue = spec.DeadLetterQueueName()
	}
	doc, err := spec.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, v, doc, open(t, spec))
	c.act(w)
	return &w.seen
}

// cases are all scenes.
func cases() []scene {
	var all []scene
	all = append(all, outcomes()...)
	all = append(all, faults()...)
	return append(all, ordered()...)
}
