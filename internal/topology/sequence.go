package topology

import (
	"fmt"
	"time"
)

// MaxSequenceShards bounds the queues that one sequenced topic is spread over.
const MaxSequenceShards = 1000

// An exchange of type ExchangeConsistentHash spreads messages over the queues
// that are bound to it, by a hash of their routing key: messages of one key go
// to one queue. The type is not RabbitMQ's own: [ConsistentHashPlugin], which
// comes with RabbitMQ, has to be enabled.
const (
	ExchangeConsistentHash = "x-consistent-hash"
	ConsistentHashPlugin   = "rabbitmq_consistent_hash_exchange"
)

// shardWeight is the key that a shard is bound with: how many of the hash
// ring's buckets it gets. All shards get the same.
const shardWeight = "1"

// SequenceExchangeName is the exchange that spreads a sequenced topic over its shards; "" where the convention has none.
func (id Identity) SequenceExchangeName() string {
	if exchange := id.Convention.scheme().shardExchange; exchange != nil {
		return exchange(id.base())
	}
	return ""
}

// ShardQueueName is the name of a sequenced topic's shard, from 0; "" where the convention has none. Shards are the
// topic's work queues, and no more than the one work queue of other topics do they carry the consumer group.
func (id Identity) ShardQueueName(shard int) string {
	if name := id.Convention.scheme().shard; name != nil {
		return name(id.Topic, shard)
	}
	return ""
}

// shardHoldQueueName is the name of the hold queue of a tier from which messages go home to a shard.
func (id Identity) shardHoldQueueName(tier int, delay time.Duration, shard int) string {
	scheme := id.Convention.scheme()
	return scheme.hold(scheme.shard(id.base(), shard), tier, delay)
}

// validateSequence refuses what would break the order of a key's messages. The number of shards is checked with the
// ladder, which has one too.
func (s Spec) validateSequence() error {
	scheme := s.Convention.scheme()
	switch strategy := s.Retry.strategy(); {
	case !s.Sequenced && s.SequenceShards > 0:
		return fmt.Errorf("sequence_shards %d has no effect: topic %q is not sequenced; set sequenced = true, or leave it out", s.SequenceShards, s.Topic)
	case !s.Sequenced:
		return nil
	case scheme.noSequence != "":
		return fmt.Errorf("a sequenced topic under the %s convention is refused: %s", s.convention(), scheme.noSequence)
	case scheme.shard != nil && s.SequenceShards == 0:
		return fmt.Errorf("topic %q is sequenced and has no sequence_shards: the %s convention spreads a sequenced topic over several queues; "+
			"set it to what its applications have (routing_shards, 8 unless they say otherwise)", s.Topic, s.convention())
	case outOfSequence[strategy] != "":
		return fmt.Errorf("retry strategy %q: topic %q is sequenced, and %s; use %q, or leave sequenced out",
			strategy, s.Topic, outOfSequence[strategy], InPlace)
	case s.maxPriority() > 0:
		return fmt.Errorf("max_priority %d: topic %q is sequenced, and a message of a higher priority would overtake those of its key; leave it out", s.maxPriority(), s.Topic)
	}
	return nil
}

// outOfSequence says how a strategy breaks the order of a key's messages.
var outOfSequence = map[Strategy]string{
	BrokerDelayed: "a message that the broker delays comes back behind those of its key that follow it",
	Republish:     "the copy of a retried message comes back behind those of its key that follow it",
	Hybrid:        "the copy of a retried message comes back behind those of its key that follow it",
}

// validateShards refuses a number of shards that the convention does not have.
func (s Spec) validateShards() error {
	scheme := s.Convention.scheme()
	switch {
	case s.SequenceShards < 0 || s.SequenceShards > MaxSequenceShards:
		return fmt.Errorf("sequence_shards %d: use 1 to %d", s.SequenceShards, MaxSequenceShards)
	case s.SequenceShards > 0 && scheme.shard == nil:
		return fmt.Errorf("sequence_shards %d: under the %s convention a sequenced topic has one work queue, only %s has shards; leave it out", s.SequenceShards, s.convention(), Shove)
	case s.SequenceShards == 0:
		return nil
	}
	for _, name := range []string{s.SequenceExchangeName(), s.ShardQueueName(s.SequenceShards - 1)} {
		if err := s.validateDerived(name); err != nil {
			return err
		}
	}
	return nil
}

// shards spreads the work queue over shards, which have its type and arguments.
func (s Spec) shards(work Queue) Objects {
	exchange := s.SequenceExchangeName()
	out := Objects{Exchanges: []Exchange{{Name: exchange, Type: ExchangeConsistentHash}}}
	for shard := range s.SequenceShards {
		queue := work
		queue.Name, queue.Shard, queue.Arguments = s.ShardQueueName(shard), shard, work.Arguments.clone()
		out.Queues = append(out.Queues, queue)
		out.Bindings = append(out.Bindings, bindQueue(exchange, queue.Name, shardWeight))
	}
	return out
}

// RecogniseShards counts the shards of a sequenced topic that a broker has, from 0 on without a gap.
func (id Identity) RecogniseShards(queues []Queue) int {
	if id.ShardQueueName(0) == "" {
		return 0
	}
	names := map[string]bool{}
	for _, q := range queues {
		names[q.Name] = true
	}
	shards := 0
	for shards < MaxSequenceShards && names[id.ShardQueueName(shards)] {
		shards++
	}
	return shards
}
