package topology

import "time"

// MaxDelay is the longest delay of a hold queue: 32 bits of milliseconds (about
// 49.7 days), which every RabbitMQ and every convention's library can hold.
// Brokers need not refuse more: a classic queue on 3.10.8 was created with it.
const MaxDelay = (1<<32 - 1) * time.Millisecond

// DefaultMaxRetries is the number of Retry outcomes honoured where none is said.
const DefaultMaxRetries = 10

// DefaultHoldFrom is the shortest delay that the hybrid strategy waits in a hold queue.
const DefaultHoldFrom = 30 * time.Second

// DefaultJitter is the factor by which waits in the consumer vary both ways.
const DefaultJitter = 0.2

// DefaultConsumerTimeout is how long RabbitMQ lets a consumer hold a delivery
// unless x-consumer-timeout says otherwise.
const DefaultConsumerTimeout = 30 * time.Minute

// implicitDeliveryLimit is the limit that 4.x brokers give a quorum queue that
// states none; 3.10 gives none.
const implicitDeliveryLimit = 20

// Role says what a queue is for.
type Role string

// The roles of a topic's queues.
const (
	RoleWork       Role = "work"
	RoleHold       Role = "hold"
	RoleDeadLetter Role = "dead_letter"
	RoleParked     Role = "parked"
)

// Strategy says how Retry and Defer are carried out.
type Strategy string

// The strategies.
const (
	InPlace       Strategy = "in_place"
	BrokerDelayed Strategy = "broker_delayed"
	Republish     Strategy = "republish"
	Hybrid        Strategy = "hybrid"
)

// Strategies lists every strategy, the default first.
func Strategies() []Strategy { return []Strategy{InPlace, BrokerDelayed, Republish, Hybrid} }

// ParkMode says how Park is carried out where messages settle in place.
type ParkMode string

// The park modes.
const (
	// ParkReject dead-letters a parked message: no write permission is needed.
	ParkReject ParkMode = "reject"
	// ParkPublish publishes it to the parked queue, then acknowledges it.
	ParkPublish ParkMode = "publish"
)

// RetryPolicy says how often, after how long and for how long a message is retried.
type RetryPolicy struct {
	// Strategy says where the delay is waited; "" is [InPlace].
	Strategy Strategy
	// MaxRetries is the number of Retry outcomes that are honoured. Zero means none: use [DefaultMaxRetries] for the
	// default.
	MaxRetries int
	// Delays are the tiers, shortest first; a message that was retried k times waits Delays[min(k, len-1)]. Empty with
	// a ladder takes the ladder's. [BrokerDelayed] has none.
	Delays []time.Duration
	// LastDelayRepeats allows fewer delays than retries where each attempt has a hold queue of its own ([RabbitKit]).
	LastDelayRepeats bool
	// DelayMin and DelayMax are what [BrokerDelayed] has in the place of Delays: the broker delays a message by
	// min(DelayMin * retries, DelayMax).
	DelayMin, DelayMax time.Duration
	// HoldFrom is the shortest delay that [Hybrid] waits in a hold queue; 0 is [DefaultHoldFrom].
	HoldFrom time.Duration
	// GiveUpAfter is the age at which a message is retried no more; 0 is never.
	GiveUpAfter time.Duration
	// Jitter is the factor, from 0 to below 1, by which waits in the consumer vary both ways. Waits in a broker never do.
	Jitter float64
}

// Spec is what can be asked for: one topic with everything that belongs to it.
// A resource that owns a part of it fills in what it knows.
type Spec struct {
	Identity
	// QueueType is the work queue's type; "" is the convention's default.
	QueueType QueueType
	// DeadLetterQueue is the dead-letter queue's name; "" is none. A name of its own need not be the derived one.
	DeadLetterQueue string
	// ParkedQueue is the parked queue's name; "" is none.
	ParkedQueue string
	// AllowMessageLoss accepts a topic without a dead-letter queue, whose rejected messages are discarded.
	AllowMessageLoss bool
	// HoldDelays are the delays of the ladder's hold queues, shortest first; empty is no ladder.
	HoldDelays []time.Duration
	// JitterShards splits every tier into so many hold queues with staggered delays; 0 and 1 do not split.
	JitterShards int
	// JitterFactor is how far the delays of shards spread, from 0 to below 1.
	JitterFactor float64
	// shardDelays are the delays of every tier's shards where a ladder handed them over; nil where they are computed.
	shardDelays [][]time.Duration
	// DeliveryLimit is the work queue's x-delivery-limit; 0 lets the convention say.
	DeliveryLimit int
	// MaxPriority is the work queue's x-max-priority; nil lets the convention say, 0 leaves it out.
	MaxPriority *int
	// Retry is the retry policy.
	Retry RetryPolicy
	// Sequenced keeps messages of one key in order: one consumer at a time receives them, also while they are retried.
	Sequenced bool
	// SequenceShards is the number of queues that a sequenced topic is spread over by the hash of the routing key; 0 is
	// none, which leaves it to the one work queue. [Shove] has them and needs them.
	SequenceShards int
	// Park says how Park is carried out where messages settle in place; "" is [ParkReject]. [Republish] publishes to the
	// parked queue wherever there is one.
	Park ParkMode
	// Bindings are the topic's own: where its messages come from. Destination and its type are filled in, which with
	// shards are those of the exchange that spreads messages over them; order and repetitions do not matter.
	Bindings []Binding
	// Extra are arguments beyond the contract, by the role of the queues they are for. They cannot replace the
	// contract's, and hold no nulls, which the management API refuses.
	Extra map[Role]Arguments
}

// maxPriority is the work queue's x-max-priority; 0 is none.
func (s Spec) maxPriority() int {
	if s.MaxPriority != nil {
		return *s.MaxPriority
	}
	return s.Convention.scheme().maxPriority
}

// holdShards is the number of hold queues of a tier: one for every jittered delay, or for every shard of a sequenced topic.
func (s Spec) holdShards() int { return max(1, s.JitterShards, s.SequenceShards) }

// holdQueueName is [Identity.HoldQueueName], or the name of the hold queue of a sequenced topic's shard.
func (s Spec) holdQueueName(tier int, delay time.Duration, shard int) string {
	if s.SequenceShards > 0 {
		return s.shardHoldQueueName(tier, delay, shard)
	}
	return s.HoldQueueName(tier, delay, shard)
}

func (s Spec) queueType() QueueType {
	if types := s.Convention.scheme().workTypes; s.QueueType == "" && len(types) > 0 {
		return types[0]
	}
	return s.QueueType
}

// deliveryHeadroom is how many deliveries the default limit leaves for crashes.
const deliveryHeadroom = 10

// DefaultDeliveryLimit is the work queue's delivery limit for a retry budget:
// the smallest of a few steps that leaves room for ten deliveries lost to
// crashes, so that raising max_retries a little does not replace a live queue.
// Beyond the last step it is 0: the limit must be stated.
func DefaultDeliveryLimit(maxRetries int) int {
	for _, step := range []int{50, 100, 200, 500, 1000} {
		if maxRetries <= step-deliveryHeadroom {
			return step
		}
	}
	return 0
}

// InPlaceBound is how long a consumer may hold a delivery in place: three
// quarters of the consumer timeout, so that time in the client's buffer fits.
func InPlaceBound(consumerTimeout time.Duration) time.Duration { return consumerTimeout / 4 * 3 }

// ConsumerTimeout is how long the broker lets a consumer hold one of the
// topic's messages.
func (s Spec) ConsumerTimeout() time.Duration {
	if extra, err := s.extra(RoleWork); err == nil {
		if ms, ok := extra[ArgConsumerTimeout].(int64); ok {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return DefaultConsumerTimeout
}

// convention is the convention's name with the zero value spelled out.
func (id Identity) convention() Convention {
	if id.Convention == "" {
		return Redeliver
	}
	return id.Convention
}

func (r RetryPolicy) strategy() Strategy {
	if r.Strategy == "" {
		return InPlace
	}
	return r.Strategy
}

func (r RetryPolicy) holdFrom() time.Duration {
	if r.HoldFrom == 0 {
		return DefaultHoldFrom
	}
	return r.HoldFrom
}
