package consumer

import (
	"errors"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Facts are what is known about a delivery when its handler has returned.
type Facts struct {
	// RetryCount is how often the message was retried, clamped.
	RetryCount int
	// Held is how long ago the message was delivered, time in the client's buffer included.
	Held time.Duration
	// Age is how old the message is, where AgeKnown.
	Age      time.Duration
	AgeKnown bool
	// Random, in [0, 1), places a tier's delay within the jitter.
	Random float64
}

// Action is what is to be done with a delivery: wait for Hold, then Verb.
type Action struct {
	// Fate is what becomes of the message, for counters, logs and events.
	Fate Fate
	// Verb is how it is settled after the wait.
	Verb Verb
	// Hold is how long it is held before that. It fits under the broker's consumer timeout.
	Hold time.Duration
	// Early says that Hold is shorter than the wait ought to be, because the consumer timeout is near: the message is
	// handed back.
	Early bool
	// RetryCount is the count with which the message is handed out again by VerbAgain.
	RetryCount int
	// Target is where VerbPublish publishes to.
	Target *topology.ManifestTarget
	// Reason is why; nil where the handler gave none.
	Reason error
	// Cause says which rule led to a final fate.
	Cause Cause
}

// Fate is what becomes of a message.
type Fate uint8

// The fates.
const (
	FateAcked Fate = iota + 1
	FateRetried
	FateDeferred
	FateDeadLettered
	FateParked
	FateDiscarded
)

// String names the fate for a log.
func (f Fate) String() string {
	return [...]string{"none", "acked", "retried", "deferred", "dead-lettered", "parked", "discarded"}[f]
}

// Cause says why a message is retried no more.
type Cause string

// The causes.
const (
	CauseRejected     Cause = "rejected"
	CausePermanent    Cause = "permanent error"
	CauseExhausted    Cause = "retries exhausted"
	CauseTooOld       Cause = "older than give_up_after"
	CauseDelayTooLong Cause = "delay too long"
	CauseUnreadable   Cause = "unreadable"
)

// Decide says what becomes of a message whose handler returned o. It is the
// settle table of the strategy in_place:
//
//	Ack                         acknowledged
//	Retry, budget left          held for the tier's delay (or the one asked for), then given back so that the broker
//	                            counts it; where it counts nothing, handed to a handler here with the count + 1, and given
//	                            up when the consumer timeout leaves no room for the wait
//	Retry, budget spent or too
//	old or a permanent error    given up: the queue's dead-letter exchange carries it; published where it has none;
//	                            discarded where there is no dead-letter queue
//	Reject                      given up
//	Defer                       held for the first tier's delay (or the one asked for), then handed to a handler here
//	Park                        published to the parked queue where the manifest says so, else given up
func (p *Policy) Decide(f Facts, o redeliver.Outcome) Action {
	switch o.Kind() {
	case redeliver.OutcomeAck:
		return Action{Fate: FateAcked, Verb: VerbAck}
	case redeliver.OutcomeReject:
		return p.final(CauseRejected, o.Err())
	case redeliver.OutcomePark:
		if p.Parked != nil {
			return Action{Fate: FateParked, Verb: VerbPublish, Target: p.Parked, Reason: o.Err(), Cause: CauseUnreadable}
		}
		return p.final(CauseUnreadable, o.Err())
	case redeliver.OutcomeDefer:
		return p.wait(f, o, Action{Fate: FateDeferred, Verb: VerbAgain, RetryCount: f.RetryCount}, 0)
	case redeliver.OutcomeNone:
		o = redeliver.Retry(redeliver.ErrNoOutcome)
	}
	switch err := o.Err(); {
	case errors.Is(err, redeliver.ErrPermanent):
		return p.final(CausePermanent, err)
	case f.RetryCount >= p.MaxRetries:
		return p.final(CauseExhausted, err)
	case topology.GivesUp(f.Age, f.AgeKnown, p.GiveUpAfter):
		return p.final(CauseTooOld, err)
	case p.BrokerCounts:
		return p.wait(f, o, Action{Fate: FateRetried, Verb: VerbRequeue, Reason: err}, f.RetryCount)
	default:
		a := p.wait(f, o, Action{Fate: FateRetried, Verb: VerbAgain, RetryCount: f.RetryCount + 1, Reason: err}, f.RetryCount)
		if a.Early && f.RetryCount > 0 {
			// The count lives with this delivery: handed back, the message would start again from 0, and for ever.
			return p.final(CauseDelayTooLong, &redeliver.DelayError{Asked: p.delay(f.RetryCount, f.Random), Possible: a.Hold, Err: err})
		}
		return a
	}
}

// DecideUnpublished says what becomes of a message whose copy was not taken:
// it waits the delay of its tier and is published again, and goes back to the
// broker when the consumer timeout is near. It is never given up, because
// giving it up would lose it.
func (p *Policy) DecideUnpublished(f Facts, a Action) Action {
	return p.wait(f, redeliver.Outcome{}, a, f.RetryCount)
}

// wait puts a wait before a: the delay that o asked for, or that of the tier
// for count. A delay that was asked for is waited in full or not at all; one of
// the policy's may be cut short by the consumer timeout.
func (p *Policy) wait(f Facts, o redeliver.Outcome, a Action, count int) Action {
	possible := max(0, p.HoldBound-f.Held)
	if asked := o.Delay(); asked > 0 {
		if asked > possible {
			return p.final(CauseDelayTooLong, &redeliver.DelayError{Asked: asked, Possible: possible, Err: o.Err()})
		}
		a.Hold = asked
		return a
	}
	a.Hold = p.delay(count, f.Random)
	if a.Hold > possible {
		a.Hold, a.Early = possible, true
		if a.Verb != VerbRequeue { // a retry that the broker counts goes back anyway, only earlier
			a.Verb = VerbHandBack
		}
	}
	return a
}

// final gives the message up.
func (p *Policy) final(cause Cause, err error) Action {
	switch {
	case p.DeadLetter == nil:
		return Action{Fate: FateDiscarded, Verb: VerbDeadLetter, Reason: err, Cause: cause}
	case p.PublishFinal:
		return Action{Fate: FateDeadLettered, Verb: VerbPublish, Target: p.DeadLetter, Reason: err, Cause: cause}
	default:
		return Action{Fate: FateDeadLettered, Verb: VerbDeadLetter, Reason: err, Cause: cause}
	}
}

// shutdownVerb is how a delivery with this action is given back when the
// consumer shuts down before the wait is over. A retry that the broker counts
// stays a counted one, so that max_retries means the same across restarts;
// anything else goes back as cheaply as the broker can.
func (a Action) shutdownVerb() Verb {
	if a.Verb == VerbRequeue {
		return VerbRequeue
	}
	return VerbHandBack
}
