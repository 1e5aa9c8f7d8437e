package redeliver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrPermanent is matched, with errors.Is, by every error that [Permanent] made.
var ErrPermanent = errors.New("permanent error")

// ErrNoOutcome is the reason of a retry whose handler returned the zero [Outcome].
var ErrNoOutcome = errors.New("the handler returned no outcome: return redeliver.Ack(), Retry(err), Reject(err), Defer() or Park(err)")

// ErrDraining is the cause (see context.Cause) with which handlers' contexts
// are cancelled when a shutdown is running out of time.
var ErrDraining = errors.New("the consumer is shutting down")

// ErrSequencedDefer is the reason of a retry whose handler deferred a message of
// a sequenced topic: what follows on it would wait for ever, so a deferral
// counts like a [Retry].
var ErrSequencedDefer = errors.New("a message of a sequenced topic cannot be deferred, because its successors wait for it: it is retried")

// ErrSequenceFailed is why a message of a sequenced topic was dead-lettered that
// no handler saw: a message of its key failed for good before it, under
// [FailAll].
var ErrSequenceFailed = errors.New("a message of the same key failed for good before this one")

// ErrDeferCounts is why a message was given up whose handler deferred it when its
// retries were spent, on a broker that counts every delivery (Amazon SQS).
var ErrDeferCounts = errors.New("the message was deferred, and on this broker every delivery counts")

// ErrLeaseLost is the cause (see context.Cause) with which a handler's context is
// cancelled when the broker may have given the message to another consumer: on
// Amazon SQS, when its visibility could not be extended in time, or cannot be
// extended any more 12 hours after it was received. What the handler returns is
// dropped, and the message is delivered again.
var ErrLeaseLost = errors.New("the lease of the message was lost: another consumer may have it")

// Permanent marks err as one that no retry will cure: [FromError] makes it a
// [Reject], and a [Retry] with it is carried out as one. The text stays the
// same, and errors.Is and errors.As see err. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string        { return e.err.Error() }
func (e *permanentError) Unwrap() error        { return e.err }
func (e *permanentError) Is(target error) bool { return target == ErrPermanent }
func (e *permanentError) Outcome() Outcome     { return Reject(e) }

// DecodeError says that a message's body could not be decoded. Its message is
// parked before the handler sees it.
type DecodeError struct {
	// Into names the type that was decoded into.
	Into string
	// Err is what the decoder said.
	Err error
}

// Error implements error.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("the body does not decode as %s: %v", e.Into, e.Err)
}

// Unwrap returns what the decoder said.
func (e *DecodeError) Unwrap() error { return e.Err }

// Outcome is [Park]: nobody can read the message.
func (e *DecodeError) Outcome() Outcome { return Park(e) }

// SizeError says that a message's body is larger than [Config].MaxMessageSize.
// Its message is parked before the handler sees it.
type SizeError struct {
	// Size and Max are in bytes.
	Size, Max int
}

// Error implements error.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the body has %d bytes and max_message_size is %d; raise Config.MaxMessageSize to read such messages", e.Size, e.Max)
}

// DelayError is why a message was dead-lettered whose handler asked for a delay
// that cannot be waited: it is neither shortened nor left unsettled.
type DelayError struct {
	// Asked is the delay that [RetryAfter] or [DeferFor] asked for.
	Asked time.Duration
	// Possible is how much longer the delivery could have been held; where messages wait in hold queues, 366 days.
	Possible time.Duration
	// Err is the outcome's error, or nil.
	Err error
}

// Error implements error.
func (e *DelayError) Error() string {
	s := fmt.Sprintf("a delay of %s is too long: %s can be waited (in place, as much as the broker's consumer timeout leaves); ask for less, or raise the consumer timeout where that can be", e.Asked, e.Possible)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the outcome's error.
func (e *DelayError) Unwrap() error { return e.Err }

// TimeoutError is the cause (see context.Cause) with which a handler's context
// is cancelled when [Config].HandlerTimeout has passed, and the reason that its
// message is retried with. errors.Is(err, context.DeadlineExceeded) holds.
type TimeoutError struct {
	// Timeout is the configured HandlerTimeout.
	Timeout time.Duration
}

// Error implements error.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("the handler was not done within its timeout of %s", e.Timeout)
}

// Is reports a match with context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// PanicError is the reason that a message is retried with whose handler panicked.
type PanicError struct {
	// Value is what the handler panicked with. It is nil when the handler ended its goroutine (runtime.Goexit).
	Value any
	// Stack is the stack at that moment.
	Stack []byte
}

// Error implements error. The stack is not part of it.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return "the handler ended its goroutine with runtime.Goexit"
	}
	return fmt.Sprintf("the handler panicked: %v", e.Value)
}

// Unwrap returns the value of the panic where that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// What a [BindError] can be about; match it with errors.Is.
var (
	// ErrUnreachable: no broker answered, or TLS could not be agreed on.
	ErrUnreachable = errors.New("the broker is not reachable")
	// ErrRefused: the broker answered and refuses for another reason: a limit of connections or channels is reached, say.
	ErrRefused = errors.New("the broker refuses")
	// ErrCredentials: the broker does not accept the user or its password.
	ErrCredentials = errors.New("the broker does not accept the credentials")
	// ErrVHost: the virtual host is not there, the user may not enter it, or the URL names another than the manifest.
	ErrVHost = errors.New("the virtual host is not accessible")
	// ErrQueueNotFound: a queue of the manifest does not exist.
	ErrQueueNotFound = errors.New("the queue does not exist")
	// ErrExchangeNotFound: an exchange of the manifest does not exist.
	ErrExchangeNotFound = errors.New("the exchange does not exist")
	// ErrPermission: the user lacks a permission that the manifest needs.
	ErrPermission = errors.New("the user lacks a permission")
)

// BindError says why a consumer could not be bound to its queue, and what
// infrastructure has to provide. It never holds a password.
type BindError struct {
	// Kind is ErrUnreachable, ErrRefused, ErrCredentials, ErrVHost, ErrQueueNotFound, ErrExchangeNotFound or ErrPermission.
	Kind error
	// Topic and Queue are the manifest's topic and the queue that was asked for.
	Topic, Queue string
	// Exchange is the exchange that was asked for, where the error is about one.
	Exchange string
	// VHost and User are what was asked for.
	VHost, User string
	// ARN is the queue's on Amazon SQS, and Action the IAM action that is missing, where one is.
	ARN, Action string
	// Address is the broker's address, or several, separated by commas.
	Address string
	// Advice says what to do.
	Advice string
	// Err is what the broker, or the network, said.
	Err error
}

// Error implements error.
func (e *BindError) Error() string {
	object := fmt.Sprintf("queue %q", e.Queue)
	if e.Exchange != "" {
		object = fmt.Sprintf("exchange %q", e.Exchange)
	}
	s := fmt.Sprintf("topic %q: binding to %s in vhost %q at %s as user %q: %v", e.Topic, object, e.VHost, e.Address, e.User, e.Kind)
	if e.ARN != "" {
		s = fmt.Sprintf("topic %q: binding to %s (%s) at %s: %v", e.Topic, object, e.ARN, e.Address, e.Kind)
		if e.Action != "" {
			s += " (" + e.Action + ")"
		}
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Advice != "" {
		s += "; " + e.Advice
	}
	return s
}

// Unwrap returns Kind and, where there is one, Err.
func (e *BindError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// DrainError says that a consumer closed at its deadline and left messages
// behind, mostly because their handlers had not returned. The broker delivers
// them again, and whatever the handlers still return is dropped.
type DrainError struct {
	// Topic is the topic whose messages were left.
	Topic string
	// Timeout is the configured DrainTimeout.
	Timeout time.Duration
	// Stranded are the messages that were left.
	Stranded []Stranded
}

// Stranded is one message that a consumer left behind.
type Stranded struct {
	// MessageID is the message's id, "" without one.
	MessageID string
	// DeliveryTag is the tag of its delivery.
	DeliveryTag uint64
	// RetryCount is how often the message had been retried.
	RetryCount int
	// State says what it was waiting for: "handler"; "confirm" while its copy was being published; "connection" where it
	// could not be given back, because the connection took nothing any more.
	State string
	// Since is when it began to wait for that.
	Since time.Time
}

// strandedListed bounds how many messages the text of a DrainError names.
const strandedListed = 10

// Error implements error.
func (e *DrainError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "topic %q: %d message(s) left after the drain timeout of %s, which the broker delivers again: ", e.Topic, len(e.Stranded), e.Timeout)
	for i, s := range e.Stranded {
		if i == strandedListed {
			fmt.Fprintf(&b, ", and %d more", len(e.Stranded)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "id %q (delivery %d, %s)", s.MessageID, s.DeliveryTag, s.State)
	}
	return b.String()
}
