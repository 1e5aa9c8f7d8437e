package topology

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

func (s Spec) validateRetry() error {
	r := s.Retry
	strategy := r.strategy()
	if !slices.Contains(Strategies(), strategy) {
		return fmt.Errorf("retry strategy %q: use one of %s", strategy, quotedList(Strategies()))
	}
	if strategy == BrokerDelayed {
		if err := s.validateBrokerDelayed(); err != nil {
			return err
		}
	} else if err := s.validateRetryDelays(); err != nil {
		return err
	}
	switch {
	case r.MaxRetries < 0:
		return fmt.Errorf("retry.max_retries %d: use 0 (never retry) or more", r.MaxRetries)
	case r.GiveUpAfter < 0 || r.GiveUpAfter%time.Millisecond != 0:
		return fmt.Errorf("retry.give_up_after %s: use a positive duration in whole milliseconds, or leave it out to never give up by age", r.GiveUpAfter)
	case !(r.Jitter >= 0 && r.Jitter < 1):
		return fmt.Errorf("retry.jitter %v: use 0 (none) to below 1", r.Jitter)
	case r.HoldFrom != 0 && strategy != Hybrid:
		return fmt.Errorf("retry.hold_from is for the %s strategy, not %s; leave it out", Hybrid, strategy)
	case r.HoldFrom != 0:
		if err := ValidateHoldFrom(r.HoldFrom); err != nil {
			return err
		}
	}
	if (strategy == Republish || strategy == Hybrid) && len(s.HoldDelays) == 0 && r.MaxRetries > 0 {
		return fmt.Errorf("retry strategy %q waits in hold queues and topic %q was handed none; set hold_queues, or use %q", strategy, s.Topic, InPlace)
	}
	return s.validateInPlaceWaits()
}

// ValidateHoldFrom refuses a hold_from that was written out and is no border
// between short and long waits: zero too, which in a [RetryPolicy] would be the
// default.
func ValidateHoldFrom(holdFrom time.Duration) error {
	if holdFrom <= 0 || holdFrom%time.Millisecond != 0 {
		return fmt.Errorf("retry.hold_from %s: use a positive duration in whole milliseconds; never and always are the strategies %s and %s",
			FormatDuration(holdFrom), InPlace, Republish)
	}
	return nil
}

func (s Spec) validateRetryDelays() error {
	r, delays := s.Retry, s.delays()
	if err := s.ValidateDelays(r.Delays); err != nil {
		return fmt.Errorf("retry.delays: %w", err)
	}
	switch {
	case r.DelayMin != 0 || r.DelayMax != 0:
		return fmt.Errorf("retry.delay_min and retry.delay_max are for the %s strategy, not %s; leave them out", BrokerDelayed, r.strategy())
	case len(s.HoldDelays) > 0 && len(r.Delays) > 0 && !slices.Equal(r.Delays, s.HoldDelays):
		return fmt.Errorf("retry.delays (%s) are not those of the hold queues (%s): tier k would wait one thing and be named another; leave retry.delays out, the ladder's are taken",
			joinDelays(r.Delays), joinDelays(s.HoldDelays))
	case r.MaxRetries > 0 && len(delays) == 0:
		return fmt.Errorf("topic %q retries %d times but has no delays; hand it a ladder's queues (hold_queues), set retry.delays, or set retry.max_retries = 0",
			s.Topic, r.MaxRetries)
	case s.Convention.scheme().onePerAttempt && len(s.HoldDelays) > 0 && len(delays) < r.MaxRetries && !r.LastDelayRepeats:
		return fmt.Errorf("the %s convention has one hold queue per attempt: %d retries need %d delays and there are %d; "+
			"add delays, lower retry.max_retries, or set retry.last_delay_repeats = true",
			s.convention(), r.MaxRetries, r.MaxRetries, len(delays))
	}
	return nil
}

// validateBrokerDelayed refuses what a broker's delayed retry cannot do:
// RabbitMQ 4.3 accepts bad values without a word and then does nothing.
func (s Spec) validateBrokerDelayed() error {
	r := s.Retry
	switch {
	case s.queueType() != Quorum:
		return fmt.Errorf("retry strategy %q: only quorum queues delay returned messages and the work queue of topic %q is %s; use %q",
			BrokerDelayed, s.Topic, s.queueType(), InPlace)
	case len(r.Delays) > 0:
		return fmt.Errorf("retry.delays are not for the %s strategy: the broker waits min(delay_min * retries, delay_max); set retry.delay_min and retry.delay_max instead", BrokerDelayed)
	case len(s.HoldDelays) > 0:
		return fmt.Errorf("retry strategy %q: messages wait in the work queue itself and hold queues would stay empty; leave hold_queues out, or use %q", BrokerDelayed, Republish)
	case r.DelayMin <= 0 || r.DelayMin%time.Millisecond != 0:
		return fmt.Errorf("retry.delay_min %s: the %s strategy needs a positive one in whole milliseconds", r.DelayMin, BrokerDelayed)
	case r.DelayMax < r.DelayMin || r.DelayMax > MaxDelay || r.DelayMax%time.Millisecond != 0:
		return fmt.Errorf("retry.delay_max %s: the %s strategy needs one from retry.delay_min (%s) to %s in whole milliseconds; without it the wait would not grow",
			r.DelayMax, BrokerDelayed, FormatDuration(r.DelayMin), FormatDuration(MaxDelay.Truncate(time.Second)))
	}
	return nil
}

// validateInPlaceWaits refuses what a consumer cannot wait in place: the broker
// takes the delivery away after the consumer timeout, which runs from delivery.
// That holds for every delay and, where all of a message's retries live in one
// delivery, for their sum. Jitter may lengthen the wait.
func (s Spec) validateInPlaceWaits() error {
	timeout := s.ConsumerTimeout()
	bound := InPlaceBound(timeout)
	way := fmt.Sprintf("use the strategy %q or %q with hold queues, ", Republish, Hybrid)
	if s.Sequenced {
		way = ""
	}
	for _, delay := range s.delays() {
		if longest := float64(delay) * (1 + s.Retry.Jitter); s.waitsInPlace(delay) && longest > float64(bound) {
			return fmt.Errorf("delay %s cannot be waited in place: with jitter it is up to %s, and of RabbitMQ's consumer timeout of %s only %s may be used; "+
				"shorten it, %sor raise %s in extra_arguments (RabbitMQ 3.12 and later)",
				FormatDuration(delay), formatWait(longest), FormatDuration(timeout), FormatDuration(bound), way, ArgConsumerTimeout)
		}
	}
	kind := "on a classic queue, which counts no deliveries,"
	switch {
	case s.Sequenced:
		kind = "in a sequenced topic, where a requeue would change the order,"
	case s.queueType() != Classic:
		return nil // each retry is a delivery of its own
	}
	if total := s.inPlaceTotal(); total > float64(bound) {
		return fmt.Errorf("retry.max_retries %d cannot all be waited in place: %s all retries of a message live in one delivery, "+
			"with jitter they take up to %s together, and of RabbitMQ's consumer timeout of %s only %s may be used; "+
			"lower retry.max_retries or the delays, %sor raise %s in extra_arguments (RabbitMQ 3.12 and later)",
			s.Retry.MaxRetries, kind, formatWait(total), FormatDuration(timeout), FormatDuration(bound), way, ArgConsumerTimeout)
	}
	return nil
}

// waitsInPlace reports whether a consumer holds a message for this delay.
func (s Spec) waitsInPlace(delay time.Duration) bool {
	return s.Retry.strategy() == InPlace || s.Retry.strategy() == Hybrid && delay < s.Retry.holdFrom()
}

// inPlaceTotal is how long all retries of a message together wait in place at
// most, in nanoseconds: every tier's delay once, and the last one's for each
// retry that is left. It does not fit a [time.Duration] for every budget.
func (s Spec) inPlaceTotal() float64 {
	total := 0.0
	delays := s.delays()
	for tier, delay := range delays {
		times := 0
		switch {
		case tier >= s.Retry.MaxRetries || !s.waitsInPlace(delay):
		case tier == len(delays)-1:
			times = s.Retry.MaxRetries - tier
		default:
			times = 1
		}
		total += float64(times) * float64(delay)
	}
	return total * (1 + s.Retry.Jitter)
}

// formatWait writes a wait in nanoseconds, rounded up to milliseconds, or the longest duration that can be written.
func formatWait(ns float64) string {
	if ns >= math.MaxInt64 {
		return FormatDuration(time.Duration(math.MaxInt64).Truncate(time.Millisecond))
	}
	return FormatDuration(RoundUp(time.Duration(math.Ceil(ns)), time.Millisecond))
}

// delays are the retry policy's tiers: its own, or those of the ladder.
func (s Spec) delays() []time.Duration {
	if len(s.Retry.Delays) == 0 {
		return s.HoldDelays
	}
	return s.Retry.Delays
}

func joinDelays(delays []time.Duration) string {
	texts := make([]string, len(delays))
	for i, delay := range delays {
		texts[i] = FormatDuration(delay)
	}
	return strings.Join(texts, ", ")
}

func (s Spec) validateLimits() error {
	quorum := s.queueType() == Quorum
	// Where a retry is a requeue the broker counts it; a republished copy starts again at zero, and one of a sequenced
	// topic stays with the consumer.
	counts := s.Retry.strategy() != Republish && !s.Sequenced
	switch {
	case s.DeliveryLimit < 0:
		return fmt.Errorf("delivery_limit %d: a negative limit drops a message after one delivery on RabbitMQ 3.10; use a large one, such as 1000000", s.DeliveryLimit)
	case s.DeliveryLimit > 0 && !quorum:
		return fmt.Errorf("delivery_limit %d: classic queues count no deliveries; leave it out", s.DeliveryLimit)
	case s.DeliveryLimit > 0 && counts && s.DeliveryLimit < s.Retry.MaxRetries:
		return fmt.Errorf("delivery_limit %d is below retry.max_retries %d: the broker would dead-letter messages that still have retries; set it to %d or more",
			s.DeliveryLimit, s.Retry.MaxRetries, s.Retry.MaxRetries+deliveryHeadroom)
	case quorum && s.DeliveryLimit == 0 && s.Convention.scheme().strict && DefaultDeliveryLimit(s.Retry.MaxRetries) == 0:
		return fmt.Errorf("retry.max_retries %d is beyond the default delivery limits; set delivery_limit to at least %d",
			s.Retry.MaxRetries, s.Retry.MaxRetries+deliveryHeadroom)
	case quorum && s.DeliveryLimit == 0 && !s.Convention.scheme().strict && counts && s.Retry.MaxRetries > implicitDeliveryLimit:
		return fmt.Errorf("retry.max_retries %d: the %s convention states no delivery limit and RabbitMQ 4 then dead-letters after %d redeliveries; "+
			"set delivery_limit to %d or more, or lower retry.max_retries", s.Retry.MaxRetries, s.convention(), implicitDeliveryLimit, s.Retry.MaxRetries+deliveryHeadroom)
	case s.MaxPriority != nil && (*s.MaxPriority < 0 || *s.MaxPriority > 255):
		return fmt.Errorf("max_priority %d: use 1 to 255, or 0 for none", *s.MaxPriority)
	case s.MaxPriority != nil && *s.MaxPriority > 0 && quorum:
		return fmt.Errorf("max_priority %d: quorum queues refuse it on every version of RabbitMQ, and from 4.0 on give priorities without it; leave it out", *s.MaxPriority)
	}
	return nil
}
