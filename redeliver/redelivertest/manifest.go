package redelivertest

import (
	"fmt"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Topic says what a topic is like, for tests that have no manifest of a real
// one. The zero value of every field is the default of Terraform's topic
// resource, but that the topic has delays and a dead-letter queue.
type Topic struct {
	// Broker is "rabbitmq" or "sqs". Defaults to "rabbitmq".
	Broker string
	// Name is the topic's. Defaults to "orders".
	Name string
	// Convention names the queues: "redeliver", "shove", "acemq", "rabbitkit" or "queuey". Defaults to "redeliver".
	Convention string
	// QueueType is "quorum" or "classic". Defaults to the convention's.
	QueueType string
	// Strategy is how retries wait: "in_place", "broker_delayed", "republish" or "hybrid". Defaults to "in_place".
	Strategy string
	// MaxRetries is how many retries are honoured; redeliver.NoRetries is none. Defaults to 10.
	MaxRetries int
	// Delays are the delays of retries; the last one repeats. Under "republish" and "hybrid" each has a hold queue.
	// Defaults to 5s, 30s and 2m, or none under "broker_delayed".
	Delays []time.Duration
	// DelayMin and DelayMax are the waits of "broker_delayed": DelayMin times the number of retries, at most DelayMax.
	// Default to 5s and 2m there.
	DelayMin, DelayMax time.Duration
	// HoldFrom is the shortest delay that "hybrid" waits in a hold queue. Defaults to 30s there.
	HoldFrom time.Duration
	// GiveUpAfter is the age at which a message is retried no more. Defaults to never.
	GiveUpAfter time.Duration
	// NoDeadLetterQueue: what fails for good is discarded.
	NoDeadLetterQueue bool
	// ParkedQueue: there is one, and what nobody can read is published to it. The conventions "redeliver" and "acemq" have
	// parked queues.
	ParkedQueue bool
	// MaxPriority is the classic work queue's highest priority. Defaults to the convention's.
	MaxPriority int
	// Sequenced keeps the messages of a key in order; on Amazon SQS the queues are FIFO queues, and a message's RoutingKey is
	// its group. Shards are the queues that such a topic is spread over under "shove".
	Sequenced bool
	Shards    int

	// The others are about Amazon SQS, where of those above QueueType, MaxPriority and Shards mean nothing, and other
	// strategies than "in_place" are refused.

	// DeadLetterVia is how what failed for good is dead-lettered: "redrive" or "send". Defaults to "redrive".
	DeadLetterVia string
	// VisibilityTimeout is how long a message stays invisible whose consumer is gone. Defaults to 30s.
	VisibilityTimeout time.Duration
	// Retention is how long the work queue keeps a message. Defaults to four days.
	Retention time.Duration
}

// Manifest makes a topic's manifest. A topic that Terraform would refuse fails
// the test.
func Manifest(t testing.TB, topic Topic) redeliver.Manifest {
	t.Helper()
	doc, err := topic.manifest()
	if err != nil {
		t.Fatalf("making the manifest of a topic: %v", err)
	}
	m, err := redeliver.ParseManifest(doc.Encode())
	if err != nil {
		t.Fatalf("making the manifest of a topic: %v", err)
	}
	return m
}

func (topic Topic) manifest() (topology.Manifest, error) {
	switch spec := topic.spec(); topic.Broker {
	case "", topology.BrokerRabbitMQ:
		return spec.Manifest()
	case topology.BrokerSQS:
		return topic.onSQS(spec).Manifest()
	default:
		return topology.Manifest{}, fmt.Errorf("there is no broker %q: use %q or %q", topic.Broker, topology.BrokerRabbitMQ, topology.BrokerSQS)
	}
}

// onSQS is the same topic on Amazon SQS, in an account that is nobody's.
func (topic Topic) onSQS(spec topology.Spec) topology.SQSSpec {
	s := topology.SQSSpec{
		SQSIdentity: topology.SQSIdentity{
			Topic: spec.Topic, Convention: spec.Convention, FIFO: topic.Sequenced, Region: "us-east-1", Account: "000000000000",
		},
		SQSQueueSettings: topology.SQSQueueSettings{VisibilityTimeout: topic.VisibilityTimeout, Retention: topic.Retention},
		DeadLetterVia:    topology.DeadLetterVia(topic.DeadLetterVia), AllowMessageLoss: spec.AllowMessageLoss, Park: spec.Park,
		Retry: spec.Retry,
	}
	s.Retry.LastDelayRepeats = false // it does on SQS, without being told
	if !topic.NoDeadLetterQueue {
		s.DeadLetterQueue = s.DeadLetterQueueName()
	}
	if topic.ParkedQueue {
		s.ParkedQueue = s.ParkedQueueName()
	}
	return s
}

func (topic Topic) spec() topology.Spec {
	s := topology.Spec{
		Identity:       topology.Identity{Topic: topic.Name, Convention: topology.Convention(topic.Convention)},
		QueueType:      topology.QueueType(topic.QueueType),
		Sequenced:      topic.Sequenced,
		SequenceShards: topic.Shards,
		Retry: topology.RetryPolicy{
			Strategy: topology.Strategy(topic.Strategy), MaxRetries: topic.MaxRetries, Delays: topic.Delays, LastDelayRepeats: true,
			DelayMin: topic.DelayMin, DelayMax: topic.DelayMax, HoldFrom: topic.HoldFrom, GiveUpAfter: topic.GiveUpAfter,
			Jitter: topology.DefaultJitter,
		},
	}
	if s.Topic == "" {
		s.Topic = "orders"
	}
	switch s.Retry.MaxRetries {
	case 0:
		s.Retry.MaxRetries = topology.DefaultMaxRetries
	case redeliver.NoRetries:
		s.Retry.MaxRetries = 0
	}
	delays := []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}
	switch s.Retry.Strategy {
	case topology.BrokerDelayed:
		if s.Retry.DelayMin == 0 {
			s.Retry.DelayMin = delays[0]
		}
		if s.Retry.DelayMax == 0 {
			s.Retry.DelayMax = max(s.Retry.DelayMin, delays[len(delays)-1])
		}
	default:
		if len(s.Retry.Delays) == 0 {
			s.Retry.Delays = delays
		}
	}
	if s.Retry.Strategy == topology.Republish || s.Retry.Strategy == topology.Hybrid {
		s.HoldDelays = s.Retry.Delays
	}
	if topic.MaxPriority > 0 {
		s.MaxPriority = &topic.MaxPriority
	}
	s.AllowMessageLoss = topic.NoDeadLetterQueue
	if !topic.NoDeadLetterQueue {
		s.DeadLetterQueue = s.DeadLetterQueueName()
	}
	if topic.ParkedQueue {
		s.ParkedQueue, s.Park = s.ParkedQueueName(), topology.ParkPublish
	}
	return s
}
