package topology

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// MaxDelay is the longest delay of a hold queue: RabbitMQ holds x-message-ttl
// in 32 bits of milliseconds (about 49.7 days) and refuses more, on 3.10, 4.0
// and 4.3 alike.
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
	// Delays are the tiers, shortest first; a message that was retried k times waits Delays[min(k, len-1)].
	Delays []time.Duration
	// LastDelayRepeats allows fewer delays than retries where each attempt has a hold queue of its own ([RabbitKit]).
	LastDelayRepeats bool
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
	// DeliveryLimit is the work queue's x-delivery-limit; 0 lets the convention say.
	DeliveryLimit int
	// MaxPriority is the work queue's x-max-priority; nil lets the convention say, 0 leaves it out.
	MaxPriority *int
	// Retry is the retry policy.
	Retry RetryPolicy
	// Park says how Park is carried out in place; "" is [ParkReject].
	Park ParkMode
	// Bindings are the topic's own: where its messages come from. Destination and its type are filled in.
	Bindings []Binding
	// Extra are arguments beyond the contract, by the role of the queues they are for. They cannot replace the contract's.
	Extra map[Role]Arguments
}

func (s Spec) queueType() QueueType {
	if s.QueueType == "" {
		return s.Convention.scheme().workTypes[0]
	}
	return s.QueueType
}

// DefaultDeliveryLimit is the work queue's delivery limit for a retry budget:
// the smallest of a few steps that leaves room for ten deliveries lost to
// crashes, so that raising max_retries a little does not replace a live queue.
// Beyond the last step it is 0: the limit must be stated.
func DefaultDeliveryLimit(maxRetries int) int {
	for _, step := range []int{50, 100, 200, 500, 1000} {
		if step >= maxRetries+10 {
			return step
		}
	}
	return 0
}

// Validate refuses a topic that the broker or the convention cannot carry, or
// that would lose messages without saying so. Every error says what, why and
// what to do instead.
func (s Spec) Validate() error {
	if err := s.Identity.Validate(); err != nil {
		return err
	}
	return errors.Join(s.validateQueueType(), s.validateDeadEnds(), s.ValidateLadder(), s.validateRetry(), s.validateLimits())
}

func (s Spec) validateQueueType() error {
	types := s.Convention.scheme().workTypes
	if !slices.Contains(types, s.queueType()) {
		return fmt.Errorf("queue_type %q: under the %s convention a work queue is %s", s.QueueType, s.convention(), quotedList(types))
	}
	return nil
}

func (s Spec) validateDeadEnds() error {
	if s.DeadLetterQueue == "" && !s.AllowMessageLoss {
		return fmt.Errorf("topic %q has no dead-letter queue: rejected and exhausted messages would be discarded; set dead_letter_queue "+
			"(%q is its name under this convention), or accept the loss with allow_message_loss = true", s.Topic, s.DeadLetterQueueName())
	}
	if err := s.ValidateDeadEnd(RoleDeadLetter, s.DeadLetterQueue); err != nil {
		return err
	}
	if s.ParkedQueue != "" && !s.Convention.HasParkedQueue() {
		return fmt.Errorf("parked_queue %q: the %s convention has no parked queue; leave it out, and unreadable messages go to the dead-letter queue",
			s.ParkedQueue, s.convention())
	}
	if err := s.ValidateDeadEnd(RoleParked, s.ParkedQueue); err != nil {
		return err
	}
	if s.DeadLetterQueue != "" && s.DeadLetterQueue == s.ParkedQueue {
		return fmt.Errorf("topic %q: %q is both the dead-letter queue and the parked queue; leave parked_queue out to have unreadable messages dead-lettered",
			s.Topic, s.ParkedQueue)
	}
	switch s.Park {
	case "", ParkReject:
	case ParkPublish:
		if s.ParkedQueue == "" {
			return fmt.Errorf("park = %q: topic %q has no parked queue to publish to; set parked_queue, or leave park out", s.Park, s.Topic)
		}
	default:
		return fmt.Errorf("park %q: use %q or %q", s.Park, ParkReject, ParkPublish)
	}
	return nil
}

// ValidateDeadEnd refuses a dead-letter or parked queue's name that the topic
// itself has another use for. An empty name is none and passes.
func (s Spec) ValidateDeadEnd(role Role, name string) error {
	if name == "" {
		return nil
	}
	kind := "dead-letter queue"
	if role == RoleParked {
		kind = "parked queue"
	}
	if err := ValidateName(kind, name); err != nil {
		return err
	}
	if name == s.WorkQueueName() || name == s.MigratingQueueName() || s.isHoldName(name) {
		return fmt.Errorf("%s %q: topic %q itself uses this name for another of its queues; choose another", kind, name, s.Topic)
	}
	return nil
}

func (s Spec) isHoldName(name string) bool {
	for tier, delay := range s.HoldDelays {
		if s.HoldQueueName(tier, delay, 0) == name {
			return true
		}
	}
	return false
}

// ValidateLadder refuses a ladder that cannot be: see [ValidateDelays] for the
// delays; a convention without ladders; shards it does not have.
func (s Spec) ValidateLadder() error {
	scheme := s.Convention.scheme()
	if len(s.HoldDelays) > 0 && scheme.noLadder != "" {
		return fmt.Errorf("a hold ladder under the %s convention is refused: %s", s.convention(), scheme.noLadder)
	}
	if err := s.ValidateDelays(s.HoldDelays); err != nil {
		return err
	}
	if s.JitterShards < 0 || s.JitterShards > 100 {
		return fmt.Errorf("jitter_shards %d: use 1 (not split) to 100", s.JitterShards)
	}
	if s.JitterShards > 1 {
		if !scheme.sharded {
			return fmt.Errorf("jitter_shards %d: the %s convention has one hold queue a tier; leave it out", s.JitterShards, s.convention())
		}
		if !(s.JitterFactor > 0 && s.JitterFactor < 1) {
			return fmt.Errorf("jitter_factor %v: with jitter_shards it is above 0 and below 1", s.JitterFactor)
		}
	} else if s.JitterFactor != 0 {
		return fmt.Errorf("jitter_factor %v has no effect without jitter_shards above 1; leave it out or set jitter_shards", s.JitterFactor)
	}
	for tier, delay := range s.HoldDelays {
		for shard := range max(1, s.JitterShards) {
			if err := validateLength(s.Identity, s.HoldQueueName(tier, delay, shard)); err != nil {
				return err
			}
			if ttl := shardTTL(delay, shard, s.JitterShards, s.JitterFactor); ttl > MaxDelay.Milliseconds() {
				return fmt.Errorf("delay %s: its shard %d would wait %d ms and RabbitMQ holds at most %d; shorten the delay or jitter_factor",
					FormatDuration(delay), shard, ttl, MaxDelay.Milliseconds())
			}
		}
	}
	return nil
}

// ValidateDelays refuses delays that are not positive, not strictly ascending,
// longer than RabbitMQ can hold, or that the convention cannot name.
func (s Spec) ValidateDelays(delays []time.Duration) error {
	scheme := s.Convention.scheme()
	longest, why := MaxDelay, ""
	if scheme.doubledDelay {
		longest, why = MaxDelay/2, ", of which the "+string(s.convention())+" convention needs twice the delay"
	}
	for i, delay := range delays {
		text := FormatDuration(delay)
		switch {
		case delay <= 0:
			return fmt.Errorf("delay %d is %s: a delay must be positive", i+1, text)
		case delay%time.Millisecond != 0:
			return fmt.Errorf("delay %d is %s: RabbitMQ counts in whole milliseconds", i+1, delay)
		case delay > longest:
			return fmt.Errorf("delay %d is %s: RabbitMQ holds delays in 32 bits of milliseconds%s; the longest is %s",
				i+1, text, why, FormatDuration(longest.Truncate(time.Second)))
		case scheme.wholeSeconds && delay%time.Second != 0:
			return fmt.Errorf("delay %d is %s: the %s convention names hold queues by whole seconds; use %s",
				i+1, text, s.convention(), FormatDuration(RoundUp(delay, time.Second)))
		case i > 0 && delay == delays[i-1]:
			return fmt.Errorf("delay %d repeats %s: one hold queue has one delay; leave the duplicate out, the last tier repeats by itself", i+1, text)
		case i > 0 && delay < delays[i-1]:
			return fmt.Errorf("delay %d (%s) is shorter than the one before it (%s): list delays shortest first", i+1, text, FormatDuration(delays[i-1]))
		}
	}
	return nil
}

func (s Spec) validateRetry() error {
	r := s.Retry
	strategy := r.strategy()
	if !slices.Contains(Strategies(), strategy) {
		return fmt.Errorf("retry strategy %q: use one of %s", strategy, quotedList(Strategies()))
	}
	if err := s.ValidateDelays(r.Delays); err != nil {
		return fmt.Errorf("retry.delays: %w", err)
	}
	switch {
	case r.MaxRetries < 0:
		return fmt.Errorf("retry.max_retries %d: use 0 (never retry) or more", r.MaxRetries)
	case r.MaxRetries > 0 && len(r.Delays) == 0:
		return fmt.Errorf("topic %q retries %d times but has no delays; hand it a ladder's queues (hold_queues), set retry.delays, or set retry.max_retries = 0",
			s.Topic, r.MaxRetries)
	case s.Convention.scheme().onePerAttempt && len(s.HoldDelays) > 0 && len(r.Delays) < r.MaxRetries && !r.LastDelayRepeats:
		return fmt.Errorf("the %s convention has one hold queue per attempt: %d retries need %d delays and there are %d; "+
			"add delays, lower retry.max_retries, or set retry.last_delay_repeats = true",
			s.convention(), r.MaxRetries, r.MaxRetries, len(r.Delays))
	case r.GiveUpAfter < 0:
		return fmt.Errorf("retry.give_up_after %s: use a positive duration, or leave it out to never give up by age", FormatDuration(r.GiveUpAfter))
	case !(r.Jitter >= 0 && r.Jitter < 1):
		return fmt.Errorf("retry.jitter %v: use 0 (none) to below 1", r.Jitter)
	case r.HoldFrom != 0 && strategy != Hybrid:
		return fmt.Errorf("retry.hold_from is for the %s strategy, not %s; leave it out", Hybrid, strategy)
	case r.HoldFrom < 0:
		return fmt.Errorf("retry.hold_from %s: use a positive duration; never and always are the strategies %s and %s", FormatDuration(r.HoldFrom), InPlace, Republish)
	}
	if (strategy == Republish || strategy == Hybrid) && len(s.HoldDelays) == 0 && r.MaxRetries > 0 {
		return fmt.Errorf("retry strategy %q waits in hold queues and topic %q was handed none; set hold_queues, or use %q", strategy, s.Topic, InPlace)
	}
	return s.validateInPlaceWaits()
}

// validateInPlaceWaits refuses a delay that a consumer cannot wait in place:
// the broker takes the delivery away after the consumer timeout, which runs
// from delivery. Jitter may lengthen the wait.
func (s Spec) validateInPlaceWaits() error {
	timeout := s.ConsumerTimeout()
	for _, delay := range s.Retry.Delays {
		inPlace := s.Retry.strategy() == InPlace || s.Retry.strategy() == Hybrid && delay < s.Retry.holdFrom()
		longest := time.Duration(math.Ceil(float64(delay) * (1 + s.Retry.Jitter)))
		if inPlace && longest > InPlaceBound(timeout) {
			return fmt.Errorf("delay %s cannot be waited in place: with jitter it is up to %s, and of RabbitMQ's consumer timeout of %s only %s may be used; "+
				"shorten it, use the strategy %q or %q with hold queues, or raise %s in extra_arguments (RabbitMQ 3.12 and later)",
				FormatDuration(delay), FormatDuration(longest), FormatDuration(timeout), FormatDuration(InPlaceBound(timeout)), Republish, Hybrid, ArgConsumerTimeout)
		}
	}
	return nil
}

// InPlaceBound is how long a consumer may hold a delivery in place: three
// quarters of the consumer timeout, so that time in the client's buffer fits.
func InPlaceBound(consumerTimeout time.Duration) time.Duration { return consumerTimeout / 4 * 3 }

// ConsumerTimeout is how long the broker lets a consumer hold one of the
// topic's messages.
func (s Spec) ConsumerTimeout() time.Duration {
	if ms, ok := s.Extra[RoleWork][ArgConsumerTimeout].(int64); ok {
		return time.Duration(ms) * time.Millisecond
	}
	return DefaultConsumerTimeout
}

func (s Spec) validateLimits() error {
	switch quorum := s.queueType() == Quorum; {
	case s.DeliveryLimit < 0:
		return fmt.Errorf("delivery_limit %d: a negative limit drops a message after one delivery on RabbitMQ 3.10; use a large one, such as 1000000", s.DeliveryLimit)
	case s.DeliveryLimit > 0 && !quorum:
		return fmt.Errorf("delivery_limit %d: classic queues count no deliveries; leave it out", s.DeliveryLimit)
	case s.DeliveryLimit > 0 && s.DeliveryLimit < s.Retry.MaxRetries:
		return fmt.Errorf("delivery_limit %d is below retry.max_retries %d: the broker would dead-letter messages that still have retries; set it to %d or more",
			s.DeliveryLimit, s.Retry.MaxRetries, s.Retry.MaxRetries+10)
	case quorum && s.DeliveryLimit == 0 && s.Convention.scheme().strict && DefaultDeliveryLimit(s.Retry.MaxRetries) == 0:
		return fmt.Errorf("retry.max_retries %d is beyond the default delivery limits; set delivery_limit to at least %d",
			s.Retry.MaxRetries, s.Retry.MaxRetries+10)
	case quorum && s.DeliveryLimit == 0 && !s.Convention.scheme().strict && s.Retry.strategy() == InPlace && s.Retry.MaxRetries > implicitDeliveryLimit:
		return fmt.Errorf("retry.max_retries %d: the %s convention states no delivery limit and RabbitMQ 4 then dead-letters after %d redeliveries; "+
			"set delivery_limit to %d or more, or lower retry.max_retries", s.Retry.MaxRetries, s.convention(), implicitDeliveryLimit, s.Retry.MaxRetries+10)
	case s.MaxPriority != nil && (*s.MaxPriority < 0 || *s.MaxPriority > 255):
		return fmt.Errorf("max_priority %d: use 1 to 255, or 0 for none", *s.MaxPriority)
	case s.MaxPriority != nil && *s.MaxPriority > 0 && quorum:
		return fmt.Errorf("max_priority %d: quorum queues before RabbitMQ 4.3 refuse it and give priorities without it; leave it out", *s.MaxPriority)
	}
	return nil
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
