package topology

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// MaxAttempts bounds a computed schedule.
const MaxAttempts = 1000

// Fixed is the schedule of attempts deliveries with the same delay between
// them: attempts - 1 delays.
func Fixed(attempts int, delay time.Duration) ([]time.Duration, error) {
	if err := validateSchedule(attempts, "delay", delay); err != nil {
		return nil, err
	}
	return slices.Repeat([]time.Duration{delay}, attempts-1), nil
}

// Exponential is the schedule of attempts deliveries whose delays start at
// initial and double up to longest: attempts - 1 delays. Five attempts from 1s
// up to 60s wait 1s, 2s, 4s and 8s.
func Exponential(attempts int, initial, longest time.Duration) ([]time.Duration, error) {
	if err := validateSchedule(attempts, "initial delay", initial); err != nil {
		return nil, err
	}
	if longest < initial {
		return nil, fmt.Errorf("longest delay %s is shorter than the initial one, %s; swap them or raise it", FormatDuration(longest), FormatDuration(initial))
	}
	if err := validateSchedule(attempts, "longest delay", longest); err != nil {
		return nil, err
	}
	delays := make([]time.Duration, attempts-1)
	for i, delay := 0, initial; i < len(delays); i++ {
		delays[i] = delay
		delay = min(2*delay, longest)
	}
	return delays, nil
}

// OnSQS rounds a schedule's delays up to whole seconds, in which SQS counts, and refuses one that no message can wait there.
func OnSQS(schedule []time.Duration) ([]time.Duration, error) {
	out := make([]time.Duration, len(schedule))
	for i, delay := range schedule {
		out[i] = RoundUp(delay, time.Second)
	}
	return out, validateInvisibleWaits(out, 0)
}

func validateSchedule(attempts int, kind string, delay time.Duration) error {
	switch {
	case attempts < 1 || attempts > MaxAttempts:
		return fmt.Errorf("attempts %d: use 1 (no retry) to %d", attempts, MaxAttempts)
	case delay <= 0:
		return fmt.Errorf("%s %s: a delay must be positive; use 1ms or more", kind, FormatDuration(delay))
	case delay%time.Millisecond != 0:
		return fmt.Errorf("%s %s: RabbitMQ counts in whole milliseconds; use %s", kind, delay, FormatDuration(RoundUp(delay, time.Millisecond)))
	case delay > MaxDelay:
		return fmt.Errorf("%s %s: delays are at most %s; shorten it", kind, FormatDuration(delay), FormatDuration(MaxDelay.Truncate(time.Second)))
	}
	return nil
}

// Tiers leaves repeated delays out of an ascending schedule: what a ladder
// needs, because the last tier repeats by itself.
func Tiers(schedule []time.Duration) []time.Duration {
	var tiers []time.Duration
	for _, delay := range schedule {
		if len(tiers) == 0 || delay != tiers[len(tiers)-1] {
			tiers = append(tiers, delay)
		}
	}
	return tiers
}

// TierFor is the tier (from 0) of a message that was retried retryCount times
// in a ladder of tiers tiers: the last one repeats. It is 0 where there is no
// tier or the count is negative. In a ladder with one hold queue per attempt the
// same rule picks the attempt's own.
func TierFor(retryCount, tiers int) int { return max(0, min(retryCount, tiers-1)) }

// ExplicitTier is the first tier whose delay is not shorter than delay: a delay
// that was asked for is never released early. ok is false where delay is
// longer than every tier; then no single tier will do (see [NextHop]).
func ExplicitTier(delays []time.Duration, delay time.Duration) (tier int, ok bool) {
	for tier, d := range delays {
		if d >= delay {
			return tier, true
		}
	}
	return 0, false
}

// NextHop is the tier in which a message waits next that still has to wait
// remaining: the first tier that covers it, else the longest one, after which
// it hops again.
func NextHop(delays []time.Duration, remaining time.Duration) int {
	if tier, ok := ExplicitTier(delays, remaining); ok {
		return tier
	}
	return max(0, len(delays)-1)
}

// GivesUp reports whether a message of the given age is retried no more: from
// an age equal to the limit on. A message of unknown age is young, and a limit
// of 0 is no limit.
func GivesUp(age time.Duration, known bool, limit time.Duration) bool {
	return limit > 0 && known && age >= limit
}

// Jitter varies delay both ways by up to factor: r in [0, 1) picks the place
// in that range. The result is at least 1 ms.
func Jitter(delay time.Duration, factor, r float64) time.Duration {
	jittered := float64(delay) * (1 + factor*(2*r-1))
	if jittered >= math.MaxInt64 {
		return math.MaxInt64
	}
	return max(time.Millisecond, time.Duration(jittered))
}

// RoundUp rounds delay up to a multiple of granularity, never down. A
// granularity of zero or less leaves it as it is, and what cannot be
// represented becomes the longest duration there is.
func RoundUp(delay, granularity time.Duration) time.Duration {
	if granularity <= 0 || delay <= 0 || delay%granularity == 0 {
		return delay
	}
	rounded := delay - delay%granularity
	if rounded > math.MaxInt64-granularity {
		return math.MaxInt64
	}
	return rounded + granularity
}
