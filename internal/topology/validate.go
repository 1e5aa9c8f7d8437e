package topology

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// Validate refuses a topic that the broker or the convention cannot carry, or
// that would lose messages without saying so. Every error says what, why and
// what to do instead.
func (s Spec) Validate() error {
	if err := s.Identity.Validate(); err != nil {
		return err
	}
	return errors.Join(s.validateQueueType(), s.validateDeadEnds(), s.ValidateLadder(), s.validateSequence(), s.validateRetry(), s.validateLimits(),
		s.validateBindings(), s.validateExtra())
}

func (s Spec) validateQueueType() error {
	types := s.Convention.scheme().workTypes
	if !slices.Contains(types, s.queueType()) {
		return fmt.Errorf("queue_type %q: under the %s convention a work queue is %s; use that or leave queue_type out", s.QueueType, s.convention(), quotedList(types))
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
	case "":
	case ParkReject:
		if s.parkMode() != ParkReject {
			return fmt.Errorf("park = %q with a parked queue under the strategy %q: its consumers write to the topic's queues anyway and publish there what they park; leave park out, or parked_queue",
				s.Park, s.Retry.strategy())
		}
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
	base, _ := s.Convention.derivedFrom(name)
	own := base != "" && (base == s.base() || base == s.Topic) && name != s.DeadLetterQueueName() && name != s.ParkedQueueName() &&
		name != s.groupless().DeadLetterQueueName()
	if own || name == s.WorkQueueName() || name == s.MigratingQueueName() {
		return fmt.Errorf("%s %q: topic %q itself uses this name for another of its queues; choose another", kind, name, s.Topic)
	}
	return nil
}

// groupless is the identity of the topic itself, whose names any of its groups may share.
func (id Identity) groupless() Identity {
	id.ConsumerGroup = ""
	return id
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
		if s.shardDelays == nil && !(s.JitterFactor > 0 && s.JitterFactor < 1) {
			return fmt.Errorf("jitter_factor %v: with jitter_shards it is above 0 and below 1", s.JitterFactor)
		}
	} else if s.JitterFactor != 0 {
		return fmt.Errorf("jitter_factor %v has no effect without jitter_shards above 1; leave it out or set jitter_shards", s.JitterFactor)
	}
	if err := s.validateShards(); err != nil {
		return err
	}
	for tier, delay := range s.HoldDelays {
		for shard := range s.holdShards() {
			if err := s.validateDerived(s.holdQueueName(tier, delay, shard)); err != nil {
				return err
			}
			if ttl := s.shardTTL(tier, shard); ttl < 1 || ttl > MaxDelay.Milliseconds() {
				return fmt.Errorf("delay %s: its shard %d would wait %d ms, and a hold queue holds for 1 to %d; change the delay or jitter_factor",
					FormatDuration(delay), shard, ttl, MaxDelay.Milliseconds())
			}
		}
	}
	return nil
}

// ValidateDelays refuses delays that are not positive, not strictly ascending,
// longer than a hold queue can hold, or that the convention cannot name.
func (s Spec) ValidateDelays(delays []time.Duration) error {
	scheme := s.Convention.scheme()
	longest, why := MaxDelay, "they are kept in 32 bits of milliseconds"
	if scheme.doubledDelay {
		longest, why = MaxDelay/2, fmt.Sprintf("they are kept in 32 bits of milliseconds, of which the %s convention needs twice the delay", s.convention())
	}
	for i, delay := range delays {
		text := FormatDuration(delay)
		switch {
		case delay <= 0:
			return fmt.Errorf("delay %d is %s: a delay must be positive; leave it out, or use 1ms or more", i+1, text)
		case delay%time.Millisecond != 0:
			return fmt.Errorf("delay %d is %s: RabbitMQ counts in whole milliseconds; use %s", i+1, delay, FormatDuration(RoundUp(delay, time.Millisecond)))
		case delay > longest:
			return fmt.Errorf("delay %d is %s: delays are at most %s, because %s; shorten it", i+1, text, FormatDuration(longest.Truncate(time.Second)), why)
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

func (s Spec) validateBindings() error {
	for _, b := range s.Bindings {
		if b.Source == "" {
			return fmt.Errorf("a binding of topic %q names no exchange: every queue is bound to the default exchange already; leave the binding out", s.Topic)
		}
		if err := validateText("exchange of a binding", b.Source); err != nil {
			return err
		}
		switch {
		case len(b.RoutingKey) > MaxNameBytes:
			return fmt.Errorf("binding to exchange %q: its routing key has %d bytes and RabbitMQ allows %d; shorten it", b.Source, len(b.RoutingKey), MaxNameBytes)
		case !utf8.ValidString(b.RoutingKey):
			return fmt.Errorf("binding to exchange %q: its routing key %q is not valid UTF-8, and RabbitMQ's management API cannot carry it; use UTF-8", b.Source, b.RoutingKey)
		}
		if _, err := settable(b.Arguments); err != nil {
			return fmt.Errorf("binding to exchange %q: %w", b.Source, err)
		}
	}
	return nil
}

func (s Spec) validateExtra() error {
	for _, role := range []Role{RoleWork, RoleHold, RoleDeadLetter, RoleParked} {
		if _, err := s.extra(role); err != nil {
			return err
		}
	}
	return nil
}

// extra are the arguments beyond the contract for a role, in the types of
// [Arguments].
func (s Spec) extra(role Role) (Arguments, error) {
	args, err := settable(s.Extra[role])
	if err != nil {
		return nil, fmt.Errorf("extra_arguments: %w", err)
	}
	if value, ok := args[ArgExpires]; ok {
		return nil, fmt.Errorf("extra_arguments %q = %s: RabbitMQ would delete the queue with its messages while nobody consumes it; leave it out",
			ArgExpires, CanonicalJSON(value))
	}
	if value, ok := args[ArgConsumerTimeout]; ok {
		if ms, isInt := value.(int64); !isInt || ms < 1 || ms > MaxDelay.Milliseconds() {
			return nil, fmt.Errorf("extra_arguments %q = %s: a consumer timeout is a number of whole milliseconds from 1 to %d, which no RabbitMQ before 3.12 checks; use one",
				ArgConsumerTimeout, CanonicalJSON(value), MaxDelay.Milliseconds())
		}
	}
	for _, key := range slices.Sorted(maps.Keys(args)) {
		if allowed, ok := extraValues[key]; ok && !allowed.fits(args[key]) {
			return nil, fmt.Errorf("extra_arguments %q = %s: it must be %s; the broker would refuse the queue, and where it is replaced the old one would be gone by then",
				key, CanonicalJSON(args[key]), allowed.text)
		}
	}
	return args, nil
}

// extraValue says which values an argument beyond the contract may have.
type extraValue struct {
	text string
	fits func(value any) bool
}

// extraValues are the arguments beyond the contract whose values every broker checks, from RabbitMQ 3.10 on.
var extraValues = map[string]extraValue{
	ArgMaxLength:                  wholeNumber(0, math.MaxInt64),
	ArgMaxLengthBytes:             wholeNumber(0, math.MaxInt64),
	"x-max-in-memory-length":      wholeNumber(0, math.MaxInt64),
	"x-max-in-memory-bytes":       wholeNumber(0, math.MaxInt64),
	"x-quorum-initial-group-size": wholeNumber(1, math.MaxInt64),
	ArgMessageTTL:                 wholeNumber(0, MaxDelay.Milliseconds()),
	ArgSingleActiveConsumer: {"true or false", func(value any) bool {
		_, ok := value.(bool)
		return ok
	}},
	ArgOverflow:              oneOfTexts("drop-head", "reject-publish", "reject-publish-dlx"),
	"x-queue-leader-locator": oneOfTexts("client-local", "balanced", "random", "least-leaders"),
}

func wholeNumber(least, most int64) extraValue {
	text := fmt.Sprintf("a whole number from %d", least)
	if most < math.MaxInt64 {
		text += fmt.Sprintf(" to %d", most)
	}
	return extraValue{text, func(value any) bool {
		n, ok := value.(int64)
		return ok && n >= least && n <= most
	}}
}

func oneOfTexts(texts ...string) extraValue {
	return extraValue{"one of " + quotedList(texts), func(value any) bool {
		text, ok := value.(string)
		return ok && slices.Contains(texts, text)
	}}
}

// settable normalises arguments that are to be set, and refuses nulls: the
// management API does (null_not_allowed).
func settable(args Arguments) (Arguments, error) {
	normal, err := NormaliseArguments(args)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(normal)) {
		if holdsNull(normal[key]) {
			return nil, fmt.Errorf("argument %q is null or holds one, which RabbitMQ refuses; leave it out", key)
		}
	}
	return normal, nil
}

func holdsNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(v, holdsNull)
	case map[string]any:
		for _, element := range v {
			if holdsNull(element) {
				return true
			}
		}
	}
	return false
}

// Dropping are those of extra arguments by which a dead-letter or parked queue
// drops messages, sorted. None do where the queue dead-letters in its turn; and
// a full queue that refuses new messages drops none where what dead-letters to
// it keeps what is refused.
func (c Convention) Dropping(extra Arguments) []string {
	if _, onwards := extra[ArgDeadLetterExchange]; onwards {
		return nil
	}
	keys := []string{ArgMaxLength, ArgMaxLengthBytes, ArgMessageTTL}
	if c.scheme().strict && extra[ArgOverflow] == "reject-publish" {
		keys = []string{ArgMessageTTL}
	}
	return slices.DeleteFunc(keys, func(key string) bool { _, set := extra[key]; return !set })
}
