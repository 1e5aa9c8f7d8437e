package topology

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

//go:generate go run ./manifestschema/generate -out ../../schemas/manifest.v1.json

// ManifestVersion is the version of the manifest that this package writes, and
// the newest it reads.
const ManifestVersion = 1

// BrokerRabbitMQ is the manifest's broker kind for RabbitMQ.
const BrokerRabbitMQ = "rabbitmq"

// Manifest is the document a topic resource computes and a consumer binds to.
// It is computed from configuration, never from live values, and holds no
// secrets. Fields are in the order in which they are written.
type Manifest struct {
	// Version is the manifest's version, 1.
	Version int `json:"version"`
	// Broker is the kind of broker, "rabbitmq" or "sqs".
	Broker string `json:"broker"`
	// VHost is the virtual host that holds the topology; absent on SQS, which has none.
	VHost string `json:"vhost,omitempty"`
	// Topic is the topic's name.
	Topic string `json:"topic"`
	// Convention names the naming and argument scheme.
	Convention Convention `json:"convention"`
	// ConsumerGroup is part of derived names where it is set.
	ConsumerGroup string `json:"consumer_group,omitempty"`
	// WorkQueue is the queue that is consumed; the first of them where a sequenced topic has shards.
	WorkQueue ManifestQueue `json:"work_queue"`
	// Sequence says that messages of one key are handled in order, and in which queues they are; absent where order is
	// not kept.
	Sequence *ManifestSequence `json:"sequence,omitempty"`
	// HoldQueues are the ladder, shortest delay first; empty where no ladder was handed over.
	HoldQueues []ManifestHoldQueue `json:"hold_queues"`
	// RetryExchange is the exchange that hold queues are published to through; empty is the default exchange, and where
	// there are no hold queues.
	RetryExchange string `json:"retry_exchange"`
	// DeadLetter is where messages go that failed for good; null where they are discarded.
	DeadLetter *ManifestTarget `json:"dead_letter"`
	// Parked is where messages go that nobody could read; null where they are dead-lettered.
	Parked *ManifestTarget `json:"parked"`
	// Retry is the retry policy.
	Retry ManifestRetry `json:"retry"`
	// Final says how a message that failed for good leaves the work queue: "broker" (rejected, and the queue's own
	// dead-letter exchange, or on SQS its redrive policy, carries it, or nothing does where there is none) or "publish"
	// (published to the dead-letter target, then acknowledged).
	Final FinalMode `json:"final"`
	// Park says how Park is carried out: "reject" (as a failed message) or "publish" (to the parked target).
	Park ParkMode `json:"park"`
	// Headers are the headers in which the convention keeps a message's history.
	Headers Headers `json:"headers"`
	// Bindings are where the topic's messages come from.
	Bindings []ManifestBinding `json:"bindings"`
	// Fingerprint is a digest of every name, type and argument above; two manifests with the same one describe the same
	// topology.
	Fingerprint string `json:"fingerprint"`
}

// FinalMode says how a message that failed for good leaves the work queue.
type FinalMode string

// The final modes.
const (
	FinalBroker  FinalMode = "broker"
	FinalPublish FinalMode = "publish"
)

// ManifestQueue is a queue with its arguments.
type ManifestQueue struct {
	// Name is the queue's name.
	Name string `json:"name"`
	// Type is the queue's type: "classic" or "quorum" on RabbitMQ, "standard" or "fifo" on SQS.
	Type QueueType `json:"type"`
	// URL is where SQS has the queue; absent on RabbitMQ.
	URL string `json:"url,omitempty"`
	// ARN is the queue's Amazon Resource Name; absent on RabbitMQ.
	ARN string `json:"arn,omitempty"`
	// Arguments are all of the queue's arguments, x-queue-type included; absent on SQS.
	Arguments Arguments `json:"arguments,omitzero"`
	// Attributes are the queue's attributes on SQS but for its access policy, and without those that are not set; absent on
	// RabbitMQ. Those of a dead-letter or parked queue are not known to its topic and absent too.
	Attributes SQSAttributes `json:"attributes,omitempty"`
}

// ManifestSequence is how a sequenced topic keeps messages of one key in order:
// its queues have x-single-active-consumer, so that one consumer at a time
// receives the messages of each. On SQS its queue is a FIFO queue.
type ManifestSequence struct {
	// Exchange spreads messages over the shards by their routing key, which is their key; empty where the work queue is
	// the only one.
	Exchange string `json:"exchange"`
	// Shards are the queues that are consumed, all of them and each on its own; empty where the work queue is the only one.
	Shards []ManifestQueue `json:"shards"`
}

// ManifestHoldQueue is a hold queue of the ladder.
type ManifestHoldQueue struct {
	ManifestQueue
	// Delay is how long the queue holds a message.
	Delay Duration `json:"delay"`
	// Tier and Shard place the queue in the ladder, both from 0. In the ladder of a sequenced topic with shards, Shard is
	// the one that messages go home to.
	Tier  int `json:"tier"`
	Shard int `json:"shard"`
}

// ManifestTarget is a queue that messages are set aside in and the route that leads there.
type ManifestTarget struct {
	ManifestQueue
	// Exchange and RoutingKey lead to the queue; an empty exchange is the default one. On SQS, which has no exchanges, the
	// routing key is the queue's name.
	Exchange   string `json:"exchange"`
	RoutingKey string `json:"routing_key"`
}

// ManifestRetry is the retry policy.
type ManifestRetry struct {
	// Strategy says where the delay of a retry is waited.
	Strategy Strategy `json:"strategy"`
	// MaxRetries is the number of Retry outcomes that are honoured; 0 is none.
	MaxRetries int `json:"max_retries"`
	// Delays are the tiers, shortest first; the last one repeats. Empty under the broker_delayed strategy.
	Delays []Duration `json:"delays"`
	// DelayMin and DelayMax are the waits of the broker_delayed strategy: min(delay_min * retries, delay_max). Absent
	// under the others.
	DelayMin Duration `json:"delay_min,omitempty"`
	DelayMax Duration `json:"delay_max,omitempty"`
	// HoldFrom is the shortest delay that the hybrid strategy waits in a hold queue; absent under the others.
	HoldFrom Duration `json:"hold_from,omitempty"`
	// GiveUpAfter is the age at which a message is retried no more; absent is never.
	GiveUpAfter Duration `json:"give_up_after,omitempty"`
	// Jitter is the factor by which waits in the consumer vary both ways.
	Jitter float64 `json:"jitter"`
	// ConsumerTimeout is how long the broker lets a consumer hold a delivery; on SQS, how long a message may stay invisible.
	ConsumerTimeout Duration `json:"consumer_timeout"`
}

// ManifestBinding is where some of the topic's messages come from.
type ManifestBinding struct {
	// Exchange is the exchange that the work queue is bound to, or the exchange of a sequence.
	Exchange string `json:"exchange"`
	// RoutingKey is the binding's key or pattern; it may be empty.
	RoutingKey string `json:"routing_key"`
	// Arguments are the binding's arguments, such as what a headers exchange matches; absent where there are none.
	Arguments Arguments `json:"arguments,omitempty"`
}

// Manifest computes the topic's manifest. It refuses what [Spec.Validate] refuses.
func (s Spec) Manifest() (Manifest, error) {
	objects, err := s.Build()
	if err != nil {
		return Manifest{}, err
	}
	scheme := s.Convention.scheme()
	m := Manifest{
		Version: ManifestVersion, Broker: BrokerRabbitMQ, VHost: s.vhost(), Topic: s.Topic,
		Convention: s.convention(), ConsumerGroup: s.ConsumerGroup,
		HoldQueues: []ManifestHoldQueue{}, Bindings: []ManifestBinding{},
		Retry: ManifestRetry{
			Strategy: s.Retry.strategy(), MaxRetries: s.Retry.MaxRetries, Delays: []Duration{},
			DelayMin: Duration(s.Retry.DelayMin), DelayMax: Duration(s.Retry.DelayMax),
			GiveUpAfter: Duration(s.Retry.GiveUpAfter), Jitter: s.Retry.Jitter, ConsumerTimeout: Duration(s.ConsumerTimeout()),
		},
		Final: FinalBroker, Park: s.parkMode(), Headers: scheme.headers,
	}
	if m.Retry.Strategy == Hybrid {
		m.Retry.HoldFrom = Duration(s.Retry.holdFrom())
	}
	for _, delay := range s.delays() {
		m.Retry.Delays = append(m.Retry.Delays, Duration(delay))
	}
	if scheme.holdRoutedBy != nil && len(s.HoldDelays) > 0 {
		m.RetryExchange = scheme.holdRoutedBy(s.base())
	}
	if s.DeadLetterQueue != "" && (scheme.deadExchange == nil || m.Retry.Strategy == Republish) {
		m.Final = FinalPublish
	}
	if s.Sequenced {
		m.Sequence = &ManifestSequence{Shards: []ManifestQueue{}}
		if s.SequenceShards > 0 {
			m.Sequence.Exchange = s.SequenceExchangeName()
		}
	}
	deadExchange := ""
	if scheme.deadRoutedBy != nil {
		deadExchange = scheme.deadRoutedBy(s.base())
	}
	for _, q := range objects.Queues {
		queue := ManifestQueue{Name: q.Name, Type: q.Type, Arguments: q.Arguments}
		target := &ManifestTarget{ManifestQueue: queue, Exchange: deadExchange, RoutingKey: q.Name}
		switch q.Role {
		case RoleWork:
			if q.Shard == 0 {
				m.WorkQueue = queue
			}
			if s.SequenceShards > 0 {
				m.Sequence.Shards = append(m.Sequence.Shards, queue)
			}
		case RoleHold:
			m.HoldQueues = append(m.HoldQueues, ManifestHoldQueue{ManifestQueue: queue, Delay: Duration(q.Delay), Tier: q.Tier, Shard: q.Shard})
		case RoleDeadLetter:
			m.DeadLetter = target
		case RoleParked:
			m.Parked = target
		}
	}
	for _, b := range s.bindings() {
		m.Bindings = append(m.Bindings, ManifestBinding{Exchange: b.Source, RoutingKey: b.RoutingKey, Arguments: b.Arguments})
	}
	m.Fingerprint = m.fingerprint()
	return m, nil
}

// WorkQueues are the queues that are consumed, all of them and each on its own:
// the shards of a sequenced topic, else the work queue alone.
func (m Manifest) WorkQueues() []ManifestQueue {
	if m.Sequence != nil && len(m.Sequence.Shards) > 0 {
		return m.Sequence.Shards
	}
	return []ManifestQueue{m.WorkQueue}
}

// parkMode says how Park is carried out. Republishing consumers write to the
// topic's queues anyway, so they park wherever there is a parked queue.
func (s Spec) parkMode() ParkMode {
	if s.Retry.strategy() == Republish && s.ParkedQueue != "" {
		return ParkPublish
	}
	if s.Park == "" {
		return ParkReject
	}
	return s.Park
}

// Encode writes the manifest as indented JSON that is the same, byte for byte,
// on every machine.
func (m Manifest) Encode() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m.withoutNil()); err != nil {
		panic(fmt.Sprintf("topology: a manifest always encodes: %v", err)) // arguments are normalised JSON values
	}
	return b.Bytes()
}

// withoutNil writes lists that are nil as empty ones, as the manifest's schema has them, and arguments where the broker has
// them.
func (m Manifest) withoutNil() Manifest {
	m.HoldQueues = append([]ManifestHoldQueue{}, m.HoldQueues...)
	m.Bindings = append([]ManifestBinding{}, m.Bindings...)
	m.Retry.Delays = append([]Duration{}, m.Retry.Delays...)
	m.WorkQueue.argue(m.Broker)
	for i := range m.HoldQueues {
		m.HoldQueues[i].argue(m.Broker)
	}
	if m.Sequence != nil {
		m.Sequence = &ManifestSequence{Exchange: m.Sequence.Exchange, Shards: append([]ManifestQueue{}, m.Sequence.Shards...)}
		for i := range m.Sequence.Shards {
			m.Sequence.Shards[i].argue(m.Broker)
		}
	}
	for _, target := range []**ManifestTarget{&m.DeadLetter, &m.Parked} {
		if *target != nil {
			written := **target
			written.argue(m.Broker)
			*target = &written
		}
	}
	return m
}

// argue gives the queue an object of arguments, which may be empty, where the broker knows arguments, and none where not.
func (q *ManifestQueue) argue(broker string) {
	switch {
	case broker != BrokerSQS && q.Arguments == nil:
		q.Arguments = Arguments{}
	case broker == BrokerSQS && len(q.Arguments) == 0:
		q.Arguments = nil
	}
}

// fingerprint digests every name, type and argument: the topology and not the
// policy. Its fields are listed here, so that a field that is added to the
// manifest does not change the fingerprints of those already written.
func (m Manifest) fingerprint() string {
	m = m.withoutNil()
	sum := sha256.Sum256([]byte(CanonicalJSON(struct {
		Broker        string              `json:"broker"`
		VHost         string              `json:"vhost"`
		Topic         string              `json:"topic"`
		Convention    Convention          `json:"convention"`
		ConsumerGroup string              `json:"consumer_group"`
		WorkQueue     ManifestQueue       `json:"work_queue"`
		Sequence      *ManifestSequence   `json:"sequence,omitempty"`
		HoldQueues    []ManifestHoldQueue `json:"hold_queues"`
		RetryExchange string              `json:"retry_exchange"`
		DeadLetter    *ManifestTarget     `json:"dead_letter"`
		Parked        *ManifestTarget     `json:"parked"`
		Bindings      []ManifestBinding   `json:"bindings"`
	}{
		m.Broker, m.VHost, m.Topic, m.Convention, m.ConsumerGroup, m.WorkQueue, m.Sequence,
		m.HoldQueues, m.RetryExchange, m.DeadLetter, m.Parked, m.Bindings,
	})))
	return "sha256:" + hex.EncodeToString(sum[:])
}
