package topology

import (
	"fmt"
	"time"
)

// Where a topic is warned about.
const (
	// fewRetries is a budget that a few receives which are nobody's fault spend.
	fewRetries = 5
	// longWaits is how long a message's retries take in all where many of them that wait fill the queue's room.
	longWaits = time.Hour
	// shortLook is the least time that somebody should have to look into a dead-letter queue.
	shortLook = Day
)

// The ids of warnings.
const (
	WarnFewReceives   = "few_receives"
	WarnInFlight      = "waiting_in_flight"
	WarnShortDeadLife = "short_dead_letter_retention"
)

// SQSWarningIDs lists the ids of all warnings.
func SQSWarningIDs() []string { return []string{WarnFewReceives, WarnInFlight, WarnShortDeadLife} }

// Warnings are what works and may not be meant. Those of a topic that [SQSSpec.Validate] refuses make no sense.
func (s SQSSpec) Warnings() []SQSWarning {
	var out []SQSWarning
	if count := s.MaxReceiveCount(); count > 0 && s.Retry.MaxRetries < fewRetries {
		deferred := "Defer, "
		if s.FIFO {
			deferred = "" // waits in the same receive, as a retry does
		}
		out = append(out, SQSWarning{
			WarnFewReceives, "Every receive counts as a retry",
			fmt.Sprintf("Topic %q dead-letters a message that was received %d times without success (retry.max_retries = %d). SQS counts every receive, also one after %sa crash, "+
				"a shutdown that gave the message back, or a visibility timeout that was over before the handler was done: each spends one of them.",
				s.Topic, s.Retry.MaxRetries+1, s.Retry.MaxRetries, deferred),
		})
	}
	life := s.longestLife()
	if life >= float64(longWaits) && s.Retry.MaxRetries > 0 {
		out = append(out, SQSWarning{
			WarnInFlight, "Messages that wait for a retry are in flight",
			fmt.Sprintf("A message of topic %q that always fails waits up to %s in all, and a waiting message counts against the %d messages that SQS lets be in flight in a queue. "+
				"From %s failing messages a second on, the queue gives out no more messages until some are through.", s.Topic, formatWait(life), MaxInFlight, rate(life)),
		})
	}
	if left := float64(s.DeadLetterRetention) - life; s.DeadLetterQueue != "" && s.DeadLetterRetention > 0 && !s.FIFO && left < float64(shortLook) {
		out = append(out, SQSWarning{
			WarnShortDeadLife, "A dead letter may be deleted soon after it arrives",
			fmt.Sprintf("The retries of topic %q take up to %s, and its dead-letter queue %q keeps a message for %s from when it was first sent: what used up its retries is there for %s. "+
				"Raise the dead-letter queue's retention (up to %s).", s.Topic, formatWait(life), s.DeadLetterQueue, FormatDuration(s.DeadLetterRetention),
				formatWait(max(0, left)), FormatDuration(MaxRetention)),
		})
	}
	return out
}

// rate is how many messages a second fill a queue whose messages wait so long, in nanoseconds.
func rate(ns float64) string {
	perSecond := MaxInFlight / (ns / float64(time.Second))
	if perSecond >= 10 {
		return fmt.Sprintf("%.0f", perSecond)
	}
	return fmt.Sprintf("%.1f", perSecond)
}
