package redeliver

import (
	"errors"
	"fmt"
	"time"
)

// Outcome is what a handler says is to become of a message. Make one with
// [Ack], [Retry], [RetryAfter], [Reject], [Defer], [DeferFor], [Park] or
// [FromError].
//
// The zero value is no outcome. It is not an acknowledgement: a message whose
// handler returned it is retried, with [ErrNoOutcome] as the reason.
type Outcome struct {
	kind  OutcomeKind
	err   error
	delay time.Duration
}

// OutcomeKind tells outcomes apart.
type OutcomeKind uint8

// The kinds of outcome.
const (
	// OutcomeNone is the kind of the zero Outcome. It is carried out as OutcomeRetry.
	OutcomeNone OutcomeKind = iota
	OutcomeAck
	OutcomeRetry
	OutcomeReject
	OutcomeDefer
	OutcomePark
)

// String returns the kind in lower case: "ack", "retry", "reject", "defer",
// "park" or "none".
func (k OutcomeKind) String() string {
	switch k {
	case OutcomeNone:
		return "none"
	case OutcomeAck:
		return "ack"
	case OutcomeRetry:
		return "retry"
	case OutcomeReject:
		return "reject"
	case OutcomeDefer:
		return "defer"
	case OutcomePark:
		return "park"
	default:
		return fmt.Sprintf("OutcomeKind(%d)", uint8(k))
	}
}

// Ack says that the message was dealt with and can be forgotten.
func Ack() Outcome { return Outcome{kind: OutcomeAck} }

// Retry says that handling failed with err and may succeed later. The message
// comes back after the policy's delay for its retry count, and the retry
// counts. It goes to the dead-letter queue instead when the budget
// (max_retries) is spent, when the message is as old as give_up_after, or when
// err was marked with [Permanent].
func Retry(err error) Outcome { return Outcome{kind: OutcomeRetry, err: err} }

// RetryAfter is [Retry] with a delay of its own, such as an HTTP Retry-After.
// The message does not come back before delay has passed, except where it has to
// be given back: the consumer shuts down or loses its connection while it waits in
// place, or its copy is not taken by the broker until the consumer timeout is near. A delay of zero or less asks for
// nothing: the policy's delay applies.
//
// The delay is never shortened. Where messages wait in hold queues, it is the
// first one that is not shorter, and a delay longer than all of them takes
// several hops; one of more than 366 days is refused as below. In place a message can be held for three quarters of the
// broker's consumer timeout (22.5 of 30 minutes by default, counted from its
// delivery), and one that asks for longer is dead-lettered with a [DelayError]
// that says so.
func RetryAfter(delay time.Duration, err error) Outcome {
	return Outcome{kind: OutcomeRetry, err: err, delay: max(0, delay)}
}

// Reject says that the message failed for good. It goes to the dead-letter
// queue without another attempt, whatever is left of the budget.
func Reject(err error) Outcome { return Outcome{kind: OutcomeReject, err: err} }

// Defer says that the message cannot be handled yet, though nothing failed: a
// prerequisite has not arrived. It comes back after the policy's first delay
// and the retry count stays as it is. In a sequenced topic, whose successors
// wait for the message, it is carried out as [Retry].
//
// In place, all deferrals of one delivery wait within the broker's consumer
// timeout. When three quarters of it have passed (22.5 of 30 minutes by
// default), the message is handed back to the broker, which is counted in
// [Stats].HandedBack and logged. On a quorum queue before RabbitMQ 4.3 that
// spends one retry; on a classic queue the count starts again from 0.
func Defer() Outcome { return Outcome{kind: OutcomeDefer} }

// DeferFor is [Defer] with a delay of its own, under the same rules as
// [RetryAfter].
func DeferFor(delay time.Duration) Outcome {
	return Outcome{kind: OutcomeDefer, delay: max(0, delay)}
}

// Park says that nobody can read the message: its body does not decode, or it
// has a version that this handler was never taught. It goes to the parked queue
// where the topic has one and the manifest says park = "publish"; else it is
// dead-lettered like [Reject].
func Park(err error) Outcome { return Outcome{kind: OutcomePark, err: err} }

// Kind says which outcome it is.
func (o Outcome) Kind() OutcomeKind { return o.kind }

// Err is the error that the outcome was made with, or nil.
func (o Outcome) Err() error { return o.err }

// Delay is the delay that was asked for with [RetryAfter] or [DeferFor]. It is
// zero where the policy decides.
func (o Outcome) Delay() time.Duration { return o.delay }

// String describes the outcome for a log.
func (o Outcome) String() string {
	s := o.kind.String()
	if o.delay > 0 {
		s += " after " + o.delay.String()
	}
	if o.err != nil {
		s += ": " + o.err.Error()
	}
	return s
}

// FromError is the outcome that an ordinary error stands for:
//
//   - nil: [Ack].
//   - An error marked with [Permanent]: [Reject].
//   - An error with the method Outcome() Outcome (see [Outcomer]): what that
//     returns, with err as its error.
//   - Any other: [Retry].
//
// The mark or method may be anywhere in err's chain; the outermost counts.
func FromError(err error) Outcome {
	if err == nil {
		return Ack()
	}
	var own Outcomer
	if errors.As(err, &own) {
		o := own.Outcome()
		if o.kind != OutcomeAck {
			o.err = err // the whole chain says more than its inner part
		}
		return o
	}
	if errors.Is(err, ErrPermanent) {
		return Reject(err)
	}
	return Retry(err)
}

// Outcomer is implemented by errors that know what is to become of the message,
// such as a rate-limit error that knows how long to wait. [FromError] asks it.
// [DecodeError] is one.
type Outcomer interface {
	error
	Outcome() Outcome
}
