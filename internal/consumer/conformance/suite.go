package conformance

import (
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Broker is a broker with one topic's queues.
type Broker interface {
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

// Open makes a broker with the queues of a topic of RabbitMQ, and OpenSQS one
// with those of a topic of Amazon SQS.
type (
	Open    func(t *testing.T, spec topology.Spec) Broker
	OpenSQS func(t *testing.T, spec topology.SQSSpec) Broker
)

// Run runs the suite on the brokers that open makes. Where those are real, twin
// makes one in memory of the same version, on which everything happens too: what
// is seen on both has to be the same. twin is nil where open's are in memory.
// since43 says whether the brokers are of version 4.3 or later, which some
// topics need.
func Run(t *testing.T, since43 bool, open, twin Open) {
	for _, v := range variants() {
		if v.since43 && !since43 {
			t.Run(v.name, func(t *testing.T) {
				t.Skip("the provider refuses such a topic before RabbitMQ 4.3: there is nothing that would have to work")
			})
			continue
		}
		v.run(t, func(t *testing.T, spec topology.Spec) stage {
			t.Helper()
			doc, err := spec.Manifest()
			return newStage(t, spec, doc, err, open, twin)
		})
	}
}

// RunSQS is Run for Amazon SQS.
func RunSQS(t *testing.T, open, twin OpenSQS) {
	for _, v := range sqsVariants() {
		v.run(t, func(t *testing.T, common topology.Spec) stage {
			t.Helper()
			spec := v.sqsSpec(common)
			doc, err := spec.Manifest()
			return newStage(t, spec, doc, err, open, twin)
		})
	}
}

// stage is what a scene is played on: a topic, and how to get a broker that has
// its queues.
type stage struct {
	doc        topology.Manifest
	open, twin func() Broker
}

func newStage[S any](t *testing.T, spec S, doc topology.Manifest, err error, open, twin func(*testing.T, S) Broker) stage {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	s := stage{doc: doc, open: func() Broker { return open(t, spec) }}
	if twin != nil {
		s.twin = func() Broker { return twin(t, spec) }
	}
	return s
}

// run plays every scene, on the stage that is set for its topic.
func (v variant) run(t *testing.T, set func(t *testing.T, spec topology.Spec) stage) {
	t.Run(v.name, func(t *testing.T) {
		t.Parallel()
		for _, c := range cases() {
			if c.skip != nil && c.skip(v) {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				s := set(t, c.spec(v))
				seen := c.play(t, v, s.doc, s.open())
				if s.twin != nil && !t.Failed() {
					seen.compare(t, c.play(t, v, s.doc, s.twin()))
				}
			})
		}
	})
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

// spec is the scene's topic.
func (c scene) spec(v variant) topology.Spec {
	spec := v.spec()
	if c.topic != nil {
		c.topic(&spec)
	}
	if !spec.AllowMessageLoss {
		spec.DeadLetterQueue = spec.DeadLetterQueueName()
	}
	return spec
}

func (c scene) play(t *testing.T, v variant, doc topology.Manifest, b Broker) *seen {
	t.Helper()
	w := newWorld(t, v, doc, b)
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
