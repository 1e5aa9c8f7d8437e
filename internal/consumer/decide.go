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
	// MessageID is the message's id, which says the shard of a hold queue.
	MessageID string
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
	// Hold is how long it is held in this process before that. It fits under the broker's consumer timeout.
	Hold time.Duration
	// Delay is how long it takes from now until the message comes back, wherever it waits; 0 where it does not.
	Delay time.Duration
	// After is how long the broker waits with the message that Verb gives back.
	After time.Duration
	// Early says that Hold is shorter than the wait ought to be, because the consumer timeout is near: the message is
	// handed back.
	Early bool
	// RetryCount is the count with which the message comes back.
	RetryCount int
	// Target is where VerbPublish publishes to: a hold queue, the dead-letter queue or the parked queue.
	Target *topology.ManifestTarget
	// Asked is the delay that was asked for and not yet waited when the copy was decided on; 0 where the policy decided.
	Asked time.Duration
	// Until is when a delay that was asked for is over; the engine sets it when it publishes the copy first.
	Until time.Time
	// Hops says that the wait is longer than Target's, so that the copy carries the time before which no handler gets it.
	Hops bool
	// Tries is how often its copy was not taken.
	Tries int
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
	// FateHopped: it goes on waiting in another hold queue; no handler saw it.
	FateHopped
)

// String names the fate for a log.
func (f Fate) String() string {
	return [...]string{"none", "acked", "retried", "deferred", "dead-lettered", "parked", "discarded", "hopped"}[f]
}

// waits says that the message comes back.
func (f Fate) waits() bool { return f == FateRetried || f == FateDeferred || f == FateHopped }

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
	// CauseUnpublishable: the copy that was to wait in a hold queue cannot be made.
	CauseUnpublishable Cause = "copy cannot be published"
)

// Decide says what becomes of a message whose handler returned o. It is the
// design's settle table:
//
//	Ack                 acknowledged
//	Retry, budget left  in_place: held for the tier's delay (or the one asked for), then given back so that the broker
//	                    counts it; where it counts nothing, and in a sequenced topic, handed to a handler here with the
//	                    count + 1. When the consumer timeout leaves no room for the wait, it is given up where nothing
//	                    counts, and a sequenced topic's session is renewed, so that all its messages start afresh.
//	                    broker_delayed: given back at once, and the broker delays it.
//	                    republish: copied to the tier's hold queue with the count + 1.
//	                    hybrid: as in_place below hold_from, as republish from there on
//	                    where the broker waits: given back at once with the delay; Defer too, which counts there
//	Retry, budget       given up: the queue's dead-letter exchange carries it; published where the manifest says so;
//	spent, too old or   discarded where there is no dead-letter queue
//	a permanent error
//	Reject              given up
//	Defer               in_place: held for the first tier's delay (or the one asked for), then handed to a handler here.
//	                    broker_delayed: given back, uncounted. republish, hybrid: as a retry of the first tier, the count
//	                    unchanged. In a sequenced topic: as Retry
//	Park                published to the parked queue where the manifest says so, else given up
func (p *Policy) Decide(f Facts, o redeliver.Outcome) Action {
	if p.NeverGivesUp && o.Kind() != redeliver.OutcomeAck {
		a := Action{Fate: FateRetried, Verb: VerbAgain, RetryCount: f.RetryCount + 1, Reason: o.Err()}
		delay := p.delay(f.RetryCount, f.Random)
		if p.waitsThere() {
			return p.lend(f, a, delay)
		}
		return p.hold(f, a, delay)
	}
	switch o.Kind() {
	case redeliver.OutcomeAck:
		return Action{Fate: FateAcked, Verb: VerbAck}
	case redeliver.OutcomeReject:
		return p.final(CauseRejected, o.Err())
	case redeliver.OutcomePark:
		if p.Parked != nil { // in a sequenced topic too: the key's lane is kept until the copy is confirmed, or waits to be published again
			return Action{Fate: FateParked, Verb: VerbPublish, Target: p.Parked, Reason: o.Err(), Cause: CauseUnreadable}
		}
		return p.final(CauseUnreadable, o.Err())
	case redeliver.OutcomeDefer:
		switch {
		case p.Sequenced:
			o = redeliver.RetryAfter(o.Delay(), redeliver.ErrSequencedDefer)
		case p.BrokerWaits && f.RetryCount >= p.MaxRetries: // it would be given up on its next delivery, by whoever counts
			return p.final(CauseExhausted, redeliver.ErrDeferCounts)
		default:
			return p.wait(f, o, Action{Fate: FateDeferred, RetryCount: f.RetryCount}, 0)
		}
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
	default:
		return p.wait(f, o, Action{Fate: FateRetried, RetryCount: f.RetryCount + 1, Reason: err}, f.RetryCount)
	}
}

// Hop says what becomes of a message that comes out of a hold queue and has
// still to wait: it waits on, and no handler sees it.
func (p *Policy) Hop(f Facts, remaining time.Duration) Action {
	a := Action{Fate: FateHopped, RetryCount: f.RetryCount}
	if remaining < p.HoldFrom && remaining <= p.possible(f) {
		a.Verb, a.Hold, a.Delay = VerbAgain, remaining, remaining
		return a
	}
	return p.asked(remaining, a)
}

// mostTries is how many copies are sent in vain before a redrive policy carries a message.
const mostTries = 50

// DecideUnpublished says what becomes of a message whose copy was not taken.
//
//   - A copy for a hold queue: the message waits the delay in place. Under hybrid, where the hold queue is missing, it is
//     then retried as in place; else it is published again.
//   - A copy that can never be published: the message is rejected, where the queue has a dead-letter exchange.
//   - A copy for the dead-letter or the parked queue: where the strategy republishes and the queue has a dead-letter
//     exchange, the message is rejected, once, and the broker carries it. Else it waits the delay of its tier and is
//     published again: giving it up would lose it. Where the broker waits, that goes on for mostTries copies and for as
//     long as there is time; then the redrive policy carries it: handed out again and again, it would end with the
//     queue's retention.
//
// A message that waits to be published again goes back to the broker when the
// consumer timeout is near.
func (p *Policy) DecideUnpublished(f Facts, a Action, why error) Action {
	never := errors.Is(why, ErrUnpublishable)
	switch {
	case p.BrokerDeadLetters && !a.Fate.waits() && (never || p.republishes()):
		return Action{Fate: FateDeadLettered, Verb: VerbDeadLetter, Reason: a.Reason, Cause: a.Cause}
	case p.BrokerDeadLetters && never:
		return Action{Fate: FateDeadLettered, Verb: VerbDeadLetter, Reason: errors.Join(why, a.Reason), Cause: CauseUnpublishable}
	case !a.Fate.waits():
		a.Tries++
		delay := p.delay(f.RetryCount, f.Random)
		if p.BrokerWaits && p.BrokerDeadLetters && (a.Tries >= mostTries || delay > p.possible(f)) {
			return Action{Fate: FateDeadLettered, Verb: VerbDeadLetter, Reason: a.Reason, Cause: a.Cause}
		}
		return p.hold(f, a, delay)
	case errors.Is(why, ErrNoQueue) && p.Strategy == topology.Hybrid && a.Asked <= p.possible(f):
		a.Target, a.Hops, a.Verb = nil, false, p.inPlaceVerb(a.Fate)
		return p.hold(f, a, max(a.Delay, a.Asked))
	default:
		return p.hold(f, a, a.Delay)
	}
}

// possible is how much longer a delivery can be held.
func (p *Policy) possible(f Facts) time.Duration { return max(0, p.HoldBound-f.Held) }

// wait says where and how long a message waits: for the delay that o asks for,
// or for that of the tier for count. A delay that was asked for is waited in
// full or not at all; one of the policy's may be cut short by the consumer
// timeout.
func (p *Policy) wait(f Facts, o redeliver.Outcome, a Action, count int) Action {
	possible := p.possible(f)
	asked := o.Delay()
	switch {
	case asked > 0 && len(p.Holds) > 0 && (asked >= p.HoldFrom || asked > possible):
		return p.asked(asked, a)
	case asked > possible:
		return p.final(CauseDelayTooLong, &redeliver.DelayError{Asked: asked, Possible: possible, Err: o.Err()})
	case asked > 0 && p.waitsThere():
		return p.lend(f, a, asked)
	case asked > 0 && p.Strategy == topology.BrokerDelayed && a.Fate == FateRetried:
		// The broker's own delay follows on the wait here: together they are no shorter than what was asked for.
		own := p.brokerDelay(f.RetryCount + 1)
		a.Verb, a.Hold, a.Delay = VerbRequeue, max(0, asked-own), max(asked, own)
		return a
	case asked > 0:
		a.Asked = asked
		return p.inPlace(f, a, asked)
	case p.Strategy == topology.BrokerDelayed:
		a.Verb, a.Delay = VerbRequeue, p.brokerDelay(f.RetryCount+1)
		if a.Fate == FateDeferred {
			a.Verb, a.Delay = VerbHandBack, p.brokerDelay(f.RetryCount)
		}
		return a
	}
	delay := p.delay(count, f.Random)
	if p.waitsThere() {
		return p.lend(f, a, delay)
	}
	if shard, ok := p.holdShard(count, f.MessageID, delay > possible); ok {
		a.Verb, a.Target, a.Delay = VerbPublish, shard.target, shard.delay
		return a
	}
	return p.inPlace(f, a, delay)
}

// waitsThere says that a message waits with the broker.
func (p *Policy) waitsThere() bool { return p.BrokerWaits && !p.Sequenced }

// lend gives a message back, for the broker to wait with it: in whole seconds,
// never less than delay unless no more is possible.
func (p *Policy) lend(f Facts, a Action, delay time.Duration) Action {
	a.Verb = VerbRequeue
	a.After = min(topology.RoundUp(delay, time.Second), p.possible(f).Truncate(time.Second))
	a.Delay = a.After
	return a
}

// asked sends a message to the hold queue in which it waits next for a delay
// that was asked for.
func (p *Policy) asked(delay time.Duration, a Action) Action {
	shard, last, ok := p.hop(delay)
	if !ok || delay > maxNotBefore {
		return p.final(CauseDelayTooLong, &redeliver.DelayError{Asked: delay, Possible: maxNotBefore, Err: a.Reason})
	}
	a.Verb, a.Target, a.Delay, a.Asked, a.Hops = VerbPublish, shard.target, shard.delay, delay, !last
	return a
}

// inPlace holds a message in this process, and gives it back, or hands it out
// again, after that.
func (p *Policy) inPlace(f Facts, a Action, delay time.Duration) Action {
	a.Verb = p.inPlaceVerb(a.Fate)
	if a.Fate == FateRetried && a.Verb == VerbAgain && delay > p.possible(f) && f.RetryCount > 0 && !p.Sequenced {
		// The count lives with this delivery: handed back, the message would start again from 0, and for ever.
		return p.final(CauseDelayTooLong, &redeliver.DelayError{Asked: delay, Possible: p.possible(f), Err: a.Reason})
	}
	return p.hold(f, a, delay)
}

// inPlaceVerb is what follows on a wait in this process.
func (p *Policy) inPlaceVerb(f Fate) Verb {
	if f == FateRetried && p.BrokerCounts && !p.Sequenced {
		return VerbRequeue
	}
	return VerbAgain
}

// hold puts a wait before a, as long as the consumer timeout allows.
func (p *Policy) hold(f Facts, a Action, delay time.Duration) Action {
	a.Hold, a.Delay = delay, delay
	if possible := p.possible(f); delay > possible {
		a.Hold, a.Delay, a.Early = possible, possible, true
		switch {
		case p.Sequenced: // by itself, it would come back behind its successors
			a.Verb = VerbRenew
		case a.Verb != VerbRequeue: // a retry that the broker counts goes back anyway, only earlier
			a.Verb = VerbHandBack
		}
	}
	return a
}

// final gives the message up.
func (p *Policy) final(cause Cause, err error) Action {
	switch {
	case p.DeadLetter == nil && p.BrokerWaits: // which drops nothing by itself
		return Action{Fate: FateDiscarded, Verb: VerbAck, Reason: err, Cause: cause}
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
