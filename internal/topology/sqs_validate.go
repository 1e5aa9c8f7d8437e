package topology

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Validate refuses a topic that SQS or the convention cannot carry, or that would lose messages without saying so. Every
// error says what, why and what to do instead.
func (s SQSSpec) Validate() error {
	if err := s.SQSIdentity.Validate(RoleWork); err != nil {
		return err
	}
	if err := errors.Join(s.SQSQueueSettings.validate(s.FIFO), s.validateDeadEnds(), s.validateHandlerTimeout()); err != nil {
		return err
	}
	if err := s.validateRetry(); err != nil {
		return err
	}
	return errors.Join(s.validateReceives(), s.validateRetention())
}

// Validate refuses a dead-letter or parked queue that SQS or the convention cannot have.
func (e SQSDeadEnd) Validate() error {
	if e.Role != RoleDeadLetter && e.Role != RoleParked {
		return fmt.Errorf("role %q: a dead end is a %q or a %q queue", e.Role, RoleDeadLetter, RoleParked)
	}
	if err := e.SQSIdentity.Validate(e.Role); err != nil {
		return err
	}
	if err := e.validateDeadEnd(e.Role, e.QueueName()); err != nil {
		return err
	}
	switch {
	case e.SourceQueue == "":
	case e.Role == RoleParked:
		return fmt.Errorf("source_queue %q: SQS moves no messages to a parked queue, consumers send them there; leave it out", e.SourceQueue)
	case e.SourceQueue == e.QueueName():
		return fmt.Errorf("source_queue %q: this is the dead-letter queue itself; name the queue whose messages it takes", e.SourceQueue)
	default:
		if err := e.validateSQSQueue("source_queue", e.SourceQueue); err != nil {
			return err
		}
	}
	return e.SQSQueueSettings.validate(e.FIFO)
}

func (s SQSSpec) validateDeadEnds() error {
	switch {
	case s.DeadLetterVia != "" && !slices.Contains(DeadLetterVias(), s.DeadLetterVia):
		return fmt.Errorf("dead_letter_via %q: use %q or %q", s.DeadLetterVia, ViaRedrive, ViaSend)
	case s.DeadLetterQueue == "" && s.DeadLetterVia != "":
		return fmt.Errorf("dead_letter_via = %q: topic %q has no dead-letter queue for messages to reach; set dead_letter_queue, or leave dead_letter_via out", s.DeadLetterVia, s.Topic)
	case s.DeadLetterQueue == "" && !s.AllowMessageLoss:
		return fmt.Errorf("topic %q has no dead-letter queue: rejected and exhausted messages would be discarded; set dead_letter_queue "+
			"(%q is its name under this convention), or accept the loss with allow_message_loss = true", s.Topic, s.DeadLetterQueueName())
	case s.ParkedQueue != "" && !s.Convention.HasParkedQueue():
		return fmt.Errorf("parked_queue %q: the %s convention has no parked queue; leave it out, and unreadable messages go to the dead-letter queue", s.ParkedQueue, s.identity().convention())
	case s.DeadLetterQueue != "" && s.DeadLetterQueue == s.ParkedQueue:
		return fmt.Errorf("topic %q: %q is both the dead-letter queue and the parked queue; leave parked_queue out to have unreadable messages dead-lettered", s.Topic, s.ParkedQueue)
	}
	if s.DeadLetterQueue != "" {
		if err := s.validateDeadEnd(RoleDeadLetter, s.DeadLetterQueue); err != nil {
			return err
		}
	}
	if s.ParkedQueue != "" {
		if err := s.validateDeadEnd(RoleParked, s.ParkedQueue); err != nil {
			return err
		}
	}
	switch s.Park {
	case "", ParkReject:
	case ParkPublish:
		if s.ParkedQueue == "" {
			return fmt.Errorf("park = %q: topic %q has no parked queue to send to; set parked_queue, or leave park out", s.Park, s.Topic)
		}
	default:
		return fmt.Errorf("park %q: use %q or %q", s.Park, ParkReject, ParkPublish)
	}
	return nil
}

func (s SQSSpec) validateHandlerTimeout() error {
	visibility := cmp.Or(s.VisibilityTimeout, DefaultVisibilityTimeout)
	switch {
	case s.HandlerTimeout < 0:
		return fmt.Errorf("handler_timeout %s: use a positive duration, or leave it out", FormatDuration(s.HandlerTimeout))
	case s.HandlerTimeout > SQSHoldBound:
		return fmt.Errorf("handler_timeout %s: SQS takes a message back %s after its receive whatever a consumer does, of which %s may be used; have the handler do less, or hand long work over",
			FormatDuration(s.HandlerTimeout), FormatDuration(MaxVisibility), FormatDuration(SQSHoldBound))
	case s.HandlerTimeout > visibility:
		return fmt.Errorf("visibility_timeout %s is shorter than handler_timeout %s: another consumer would receive a message that is still being handled; set visibility_timeout to %s or more",
			FormatDuration(visibility), FormatDuration(s.HandlerTimeout), FormatDuration(RoundUp(s.HandlerTimeout, time.Second)))
	}
	return nil
}

func (s SQSSpec) validateRetry() error {
	r := s.Retry
	switch {
	case r.strategy() != InPlace:
		return fmt.Errorf("retry.strategy %q: on SQS a message waits for its retry in the queue itself, invisible; use %q, or leave it out", r.Strategy, InPlace)
	case r.DelayMin != 0 || r.DelayMax != 0 || r.HoldFrom != 0 || r.LastDelayRepeats:
		return fmt.Errorf("retry.delay_min, delay_max, hold_from and last_delay_repeats of topic %q: SQS has no strategy and no convention that they are for; leave them out", s.Topic)
	case r.MaxRetries < 0:
		return fmt.Errorf("retry.max_retries %d: use 0 (never retry) or more", r.MaxRetries)
	case r.MaxRetries > 0 && len(r.Delays) == 0:
		return fmt.Errorf("topic %q retries %d times but has no delays; set retry.delays, or set retry.max_retries = 0", s.Topic, r.MaxRetries)
	case !(r.Jitter >= 0 && r.Jitter < 1):
		return fmt.Errorf("retry.jitter %v: use 0 (none) to below 1", r.Jitter)
	case r.GiveUpAfter < 0 || r.GiveUpAfter%time.Millisecond != 0:
		return fmt.Errorf("retry.give_up_after %s: use a positive duration in whole milliseconds, or leave it out to never give up by age", r.GiveUpAfter)
	case r.GiveUpAfter >= s.retention():
		return fmt.Errorf("retry.give_up_after %s of topic %q is not below the retention of %s: SQS deletes the message first, silently, and nothing is dead-lettered; "+
			"raise retention (up to %s), or lower give_up_after", FormatDuration(r.GiveUpAfter), s.Topic, FormatDuration(s.retention()), FormatDuration(MaxRetention))
	}
	if err := (Spec{Identity: s.identity()}).ValidateDelays(r.Delays); err != nil {
		return fmt.Errorf("retry.delays: %w", err)
	}
	if err := validateInvisibleWaits(r.Delays, r.Jitter); err != nil {
		return fmt.Errorf("retry.delays: %w", err)
	}
	if total := s.longestLife() - float64(s.Delay); s.FIFO && total > float64(SQSHoldBound) {
		return fmt.Errorf("retry.max_retries %d of topic %q cannot all be waited on a FIFO queue: so that its group keeps its order all retries of a message live in one receive, they take up to %s together%s, "+
			"and a message may stay invisible for %s, of which %s may be used; lower retry.max_retries or the delays, or set retry.give_up_after",
			r.MaxRetries, s.Topic, formatWait(total), s.andHandlers(), FormatDuration(MaxVisibility), FormatDuration(SQSHoldBound))
	}
	return nil
}

// validateInvisibleWaits refuses delays that no visibility timeout can be. Jitter may lengthen a wait.
func validateInvisibleWaits(delays []time.Duration, jitter float64) error {
	for _, delay := range delays {
		longest := float64(delay) * (1 + jitter)
		switch {
		case delay%time.Second != 0:
			return fmt.Errorf("delay %s: SQS counts visibility timeouts in whole seconds; use %s", FormatDuration(delay), FormatDuration(RoundUp(delay, time.Second)))
		case longest > float64(SQSHoldBound):
			return fmt.Errorf("delay %s cannot be waited on SQS: a message may stay invisible for %s from its receive, of which %s may be used%s; shorten it%s",
				FormatDuration(delay), FormatDuration(MaxVisibility), FormatDuration(SQSHoldBound), withJitter(longest, jitter), lessJitter(delay))
		}
	}
	return nil
}

// withJitter says how long a delay is with jitter, where there is some.
func withJitter(longest, jitter float64) string {
	if jitter == 0 {
		return ""
	}
	return ", and with jitter it is up to " + formatWait(longest)
}

// lessJitter says that less jitter is a way out, where it is.
func lessJitter(delay time.Duration) string {
	if delay > SQSHoldBound {
		return ""
	}
	return ", or lower retry.jitter"
}

func (s SQSSpec) validateReceives() error {
	if s.DeadLetterQueue == "" {
		return nil
	}
	if s.deadLetterVia() == ViaSend {
		if s.MaxReceiveCount() == 0 {
			return fmt.Errorf("retry.max_retries %d of topic %q: SQS moves a message away after at most %d receives, of which dead_letter_via = %q keeps %d for crashes; lower retry.max_retries to %d or less",
				s.Retry.MaxRetries, s.Topic, MaxReceives, ViaSend, deliveryHeadroom, MaxReceives-deliveryHeadroom)
		}
		return nil
	}
	if s.Retry.MaxRetries > MaxReceives-1 {
		return fmt.Errorf("retry.max_retries %d of topic %q takes one receive more than that, and SQS moves a message away after at most %d; lower retry.max_retries to %d or less",
			s.Retry.MaxRetries, s.Topic, MaxReceives, MaxReceives-1)
	}
	return nil
}

// validateRetention refuses schedules that outlive the message, and dead-letter queues in which it would be dead on arrival.
func (s SQSSpec) validateRetention() error {
	if s.DeadLetterQueue != "" && s.DeadLetterRetention != 0 && s.DeadLetterRetention < s.retention() && !s.FIFO {
		return fmt.Errorf("dead-letter queue %q keeps messages for %s and topic %q for %s: SQS counts from when a message was first sent, also in the dead-letter queue of a standard queue, "+
			"so that it may be deleted as it arrives; raise the dead-letter queue's retention to %s or more (%s is its default)",
			s.DeadLetterQueue, FormatDuration(s.DeadLetterRetention), s.Topic, FormatDuration(s.retention()), FormatDuration(s.retention()), FormatDuration(MaxRetention))
	}
	longest := s.longestLife()
	if longest < float64(s.retention()) {
		return nil
	}
	way := "no retention that SQS has is long enough"
	if longest < float64(MaxRetention) {
		way = fmt.Sprintf("raise retention to %s or more", FormatDuration(retentionFor(longest)))
	}
	return fmt.Errorf("topic %q: its retries take up to %s with jitter%s, and the queue keeps a message for %s: SQS would delete it silently before it is dead-lettered; "+
		"%s, or lower retry.max_retries or the delays, or set retry.give_up_after",
		s.Topic, formatWait(longest), s.andHandlers(), FormatDuration(s.retention()), way)
}

func (s SQSSpec) andHandlers() string {
	if s.HandlerTimeout == 0 {
		return ""
	}
	return ", every handler's full timeout included"
}

// retentionFor is the least retention, in whole minutes, in which a message can wait so long, in nanoseconds.
func retentionFor(ns float64) time.Duration {
	return min(MaxRetention, (time.Duration(ns)/time.Minute+1)*time.Minute)
}

// longestLife is how old a message can become before its retries are spent, in nanoseconds: its delay before the first
// receive, every handler's timeout where it is stated, and all delays with jitter. Where it is given up by age, it is
// no older than that, one delay and one handler. It does not fit a [time.Duration] for every budget.
func (s SQSSpec) longestLife() float64 {
	stretched := func(delay time.Duration) float64 { return float64(delay) * (1 + s.Retry.Jitter) }
	handler := float64(s.HandlerTimeout)
	total, last := float64(s.Delay)+handler, 0.0
	for tier, delay := range s.Retry.Delays {
		if tier >= s.Retry.MaxRetries {
			break
		}
		times := 1.0
		if tier == len(s.Retry.Delays)-1 {
			times = float64(s.Retry.MaxRetries - tier)
		}
		last = stretched(delay)
		total += times * (last + handler)
	}
	if s.Retry.GiveUpAfter > 0 {
		return math.Min(total, float64(s.Retry.GiveUpAfter)+last+handler)
	}
	return total
}

// validate refuses settings that SQS does not take for a queue of this type.
func (q SQSQueueSettings) validate(fifo bool) error {
	for _, d := range []struct {
		name        string
		value       time.Duration
		least, most time.Duration
	}{
		{"visibility_timeout", q.VisibilityTimeout, 0, MaxVisibility},
		{"retention", q.Retention, MinRetention, MaxRetention},
		{"delay", q.Delay, 0, MaxQueueDelay},
		{"receive_wait", q.ReceiveWait, 0, MaxReceiveWait},
		{"kms_data_key_reuse", q.KMSDataKeyReuse, MinKMSReuse, MaxKMSReuse},
	} {
		switch {
		case d.value == 0: // the default
		case d.value%time.Second != 0:
			return fmt.Errorf("%s %s: SQS counts in whole seconds; use %s", d.name, d.value, FormatDuration(RoundUp(d.value, time.Second)))
		case d.value < d.least || d.value > d.most:
			return fmt.Errorf("%s %s: SQS takes %s to %s; use one of those", d.name, FormatDuration(d.value), FormatDuration(d.least), FormatDuration(d.most))
		}
	}
	if q.MaxMessageSize != 0 && (q.MaxMessageSize < MinMessageSize || q.MaxMessageSize > MaxMessageSize) {
		return fmt.Errorf("max_message_size %d: SQS takes %d to %d bytes; use one of those", q.MaxMessageSize, MinMessageSize, MaxMessageSize)
	}
	if _, err := CanonicalPolicy(q.Policy); err != nil {
		return err
	}
	return errors.Join(q.validateEncryption(), q.validateFIFO(fifo), ValidateSQSTags(q.Tags))
}

func (q SQSQueueSettings) validateEncryption() error {
	switch {
	case q.SSE != "" && !slices.Contains(SSEModes(), q.SSE):
		return fmt.Errorf("encryption %q: use one of %s", q.SSE, quotedList(SSEModes()))
	case q.SSE == SSEKMS && q.KMSKey == "":
		return fmt.Errorf("encryption = %q: it names no key; set kms_key to a key's id, ARN or alias (%q is the one that AWS manages)", q.SSE, managedKMSAlias)
	case q.KMSKey != "" && q.sse() != SSEKMS:
		return fmt.Errorf("kms_key %q: under encryption = %q there is no key; leave one of them out", q.KMSKey, q.SSE)
	case q.KMSDataKeyReuse != 0 && q.KMSKey == "":
		return fmt.Errorf("kms_data_key_reuse %s has no effect without kms_key; leave it out, or set kms_key", FormatDuration(q.KMSDataKeyReuse))
	}
	return nil
}

func (q SQSQueueSettings) validateFIFO(fifo bool) error {
	if !fifo {
		for _, a := range []struct {
			name string
			set  bool
		}{
			{"content_based_deduplication", q.ContentBasedDeduplication},
			{"deduplication_scope", q.DeduplicationScope != ""},
			{"throughput_limit", q.ThroughputLimit != ""},
		} {
			if a.set {
				return fmt.Errorf("%s: only FIFO queues have it and SQS refuses it on a standard queue; leave it out, or set fifo = true", a.name)
			}
		}
		return nil
	}
	switch {
	case q.DeduplicationScope != "" && !slices.Contains(DeduplicationScopes(), q.DeduplicationScope):
		return fmt.Errorf("deduplication_scope %q: use one of %s", q.DeduplicationScope, quotedList(DeduplicationScopes()))
	case q.ThroughputLimit != "" && !slices.Contains(ThroughputLimits(), q.ThroughputLimit):
		return fmt.Errorf("throughput_limit %q: use one of %s", q.ThroughputLimit, quotedList(ThroughputLimits()))
	case q.ThroughputLimit == LimitPerGroupID && q.DeduplicationScope != ScopeMessageGroup:
		return fmt.Errorf("throughput_limit %q: SQS takes it only where messages are deduplicated within their group; set deduplication_scope = %q, or leave throughput_limit out",
			q.ThroughputLimit, ScopeMessageGroup)
	}
	return nil
}

// The lengths of a tag's key and value, in characters.
const (
	maxTagKey   = 128
	maxTagValue = 256
)

// ValidateSQSTags refuses tags that a queue cannot have.
func ValidateSQSTags(tags map[string]string) error {
	if len(tags) > MaxQueueTags {
		return fmt.Errorf("tags: there are %d and a queue has at most %d, default tags included; leave %d out", len(tags), MaxQueueTags, len(tags)-MaxQueueTags)
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		switch value := tags[key]; {
		case key == "":
			return errors.New("tags: one has an empty key; give it one")
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			return fmt.Errorf("tag %q: keys that start with \"aws:\" are reserved by AWS; choose another", key)
		case len([]rune(key)) > maxTagKey:
			return fmt.Errorf("tag %q: its key has %d characters and AWS allows %d; shorten it", key, len([]rune(key)), maxTagKey)
		case len([]rune(value)) > maxTagValue:
			return fmt.Errorf("tag %q: its value has %d characters and AWS allows %d; shorten it", key, len([]rune(value)), maxTagValue)
		case strings.IndexFunc(key+value, notInTag) >= 0:
			return fmt.Errorf("tag %q = %q: tags have letters, digits, spaces and _ . : / = + - @ only; replace the others", key, value)
		}
	}
	return nil
}

// notInTag reports whether AWS takes no such character in a tag.
func notInTag(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsSpace(r) && !strings.ContainsRune("_.:/=+-@", r)
}
