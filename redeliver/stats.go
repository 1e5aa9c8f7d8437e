package redeliver

// Stats are a consumer's counters since it was opened, and two gauges. The
// numbers are read one after the other while messages move on.
type Stats struct {
	// Delivered counts the messages that the broker sent, redeliveries included.
	Delivered uint64
	// Handled counts the calls of the handler.
	Handled uint64

	// Acked counts the messages that were acknowledged because the handler said so. An acknowledgement that did not reach
	// the broker any more, because the connection was lost in the milliseconds that it waits for others, is in Dropped as well.
	Acked uint64
	// Retried counts the Retry outcomes that were honoured.
	Retried uint64
	// Deferred counts the Defer outcomes.
	Deferred uint64
	// DeadLettered counts the messages sent to the dead-letter queue, whatever the reason. It includes parked ones where
	// the manifest says park = "reject".
	DeadLettered uint64
	// Parked counts the messages sent to the parked queue.
	Parked uint64
	// Discarded counts the messages that would have been dead-lettered and were dropped, because the topic has no
	// dead-letter queue. Each is logged as a warning.
	Discarded uint64

	// Exhausted counts the dead-lettered or discarded messages whose retries were spent.
	Exhausted uint64
	// TooOld counts those that were as old as give_up_after.
	TooOld uint64
	// DelayTooLong counts those whose handler asked for a delay that cannot be waited.
	DelayTooLong uint64

	// Undecodable counts the bodies that did not decode, and Oversized those over MaxMessageSize.
	Undecodable, Oversized uint64
	// Panicked counts the handler calls that panicked, and TimedOut those that exceeded HandlerTimeout.
	Panicked, TimedOut uint64

	// Republished counts the copies that a hold queue took, for retries, deferrals and hops.
	Republished uint64
	// Hopped counts the messages that came out of a hold queue before the delay they had asked for was over, and went on
	// waiting; no handler saw them.
	Hopped uint64
	// HoldQueueMissing counts the waits that happened in this process because the hold queue was not there.
	HoldQueueMissing uint64
	// SetAsideFailed counts the copies that were not taken, by the parked or the dead-letter queue or, for another reason
	// than that it is missing, by a hold queue. The message is published again later or, under republish and hybrid, one
	// that was to be set aside is rejected once. SetAsideFailures are the same by queue, nil without any.
	SetAsideFailed   uint64
	SetAsideFailures map[string]uint64
	// HandedBack counts the messages that were given back to the broker before their wait was over, because the consumer
	// timeout or a shutdown was near, or before they were started.
	HandedBack uint64
	// Dropped counts the outcomes that could not be carried out, because the session of their delivery had ended or the
	// message's lease was lost. The broker delivers those messages again.
	Dropped uint64
	// SessionsLost counts the subscriptions that ended without being asked to, and Reconnects those that followed.
	SessionsLost, Reconnects uint64

	// LeasesLost counts the messages that may have gone to another consumer while this one had them (Amazon SQS). Their
	// outcomes are in Dropped.
	LeasesLost uint64
	// Throttled counts the requests that the service refused because there were too many, and RequestsFailed those that
	// failed otherwise; both are made again (Amazon SQS).
	Throttled, RequestsFailed uint64

	// InFlight is how many messages count as in flight at this moment because of this consumer: those that it has, and
	// those that it gave back to wait for their next attempt. A standard queue of Amazon SQS can have 120,000 of them, and
	// delivers no more beyond that: add up those of all processes. 0 on RabbitMQ.
	InFlight int
	// Held is how many messages wait at this moment to be retried, deferred or published again.
	Held int
	// Waiting is how many messages of a sequenced topic wait at this moment behind another of their key.
	Waiting int
	// Running is how many workers are busy at this moment: with a handler, or past MaxHeld with a message that waits.
	Running int
}

// Add is the sum of two consumers' counters.
func (s Stats) Add(o Stats) Stats {
	s.Delivered += o.Delivered
	s.Handled += o.Handled
	s.Acked += o.Acked
	s.Retried += o.Retried
	s.Deferred += o.Deferred
	s.DeadLettered += o.DeadLettered
	s.Parked += o.Parked
	s.Discarded += o.Discarded
	s.Exhausted += o.Exhausted
	s.TooOld += o.TooOld
	s.DelayTooLong += o.DelayTooLong
	s.Undecodable += o.Undecodable
	s.Oversized += o.Oversized
	s.Panicked += o.Panicked
	s.TimedOut += o.TimedOut
	s.Republished += o.Republished
	s.Hopped += o.Hopped
	s.HoldQueueMissing += o.HoldQueueMissing
	s.SetAsideFailed += o.SetAsideFailed
	if len(o.SetAsideFailures) > 0 {
		sum := make(map[string]uint64, len(s.SetAsideFailures)+len(o.SetAsideFailures))
		for _, failures := range []map[string]uint64{s.SetAsideFailures, o.SetAsideFailures} {
			for queue, n := range failures {
				sum[queue] += n
			}
		}
		s.SetAsideFailures = sum
	}
	s.HandedBack += o.HandedBack
	s.Dropped += o.Dropped
	s.SessionsLost += o.SessionsLost
	s.Reconnects += o.Reconnects
	s.LeasesLost += o.LeasesLost
	s.Throttled += o.Throttled
	s.RequestsFailed += o.RequestsFailed
	s.InFlight += o.InFlight
	s.Held += o.Held
	s.Waiting += o.Waiting
	s.Running += o.Running
	return s
}
