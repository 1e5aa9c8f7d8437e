package amqp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rabbitmq/amqp091-go"
)

// Why a publish failed; match them with errors.Is.
var (
	// ErrUnroutable: the message came back, because no queue took it.
	ErrUnroutable = errors.New("no queue took it")
	// ErrNoExchange: the exchange does not exist.
	ErrNoExchange = errors.New("the exchange does not exist")
	// ErrForbidden: the user may not write to the exchange.
	ErrForbidden = errors.New("the user may not write to the exchange")
	// ErrNacked: the broker refused the message. A queue that rejects what exceeds its limit does that, and a quorum queue
	// whose leader does not answer.
	ErrNacked = errors.New("the broker refused it (is the queue at its length limit, or without a leader?)")
	// ErrUnconfirmed: nobody knows whether a queue has the message.
	ErrUnconfirmed = errors.New("not confirmed by the broker, which may have it or not")
	// ErrNotConnected: there was no connection or channel to publish on. The broker does not have the message.
	ErrNotConnected = errors.New("not connected to the broker")
	// ErrUnsendable: AMQP cannot carry the message as it is; a *TooLargeError is one such error. It is never any better.
	ErrUnsendable = errors.New("AMQP cannot carry it")
	// ErrClosed: the publisher was closed.
	ErrClosed = errors.New("the publisher is closed")
)

// TooLargeError says that a message was not published because its properties
// and headers do not fit into one frame. The broker would close the connection,
// and with it fail every other message that is on its way.
type TooLargeError struct {
	// Size and Max are in bytes, framing included.
	Size, Max int
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("its properties and headers take %d bytes and the broker's frame_max is %d: remove headers, or raise frame_max", e.Size, e.Max)
}

// Is reports a match with ErrUnsendable.
func (e *TooLargeError) Is(target error) bool { return target == ErrUnsendable }

// DialError says that no node could be connected to.
type DialError struct {
	// Address is the node's, or several, separated by commas.
	Address string
	// Err is what the node, or the network, said. Of several nodes it is the first one's.
	Err error
}

// Error implements error.
func (e *DialError) Error() string {
	return fmt.Sprintf("connecting to %s: %v", e.Address, Said(e.Err))
}

// Unwrap returns what the node said.
func (e *DialError) Unwrap() error { return e.Err }

// errFrame says why the library ended a connection; of its own error only the text is left.
var errFrame = fmt.Errorf("a frame came in that is too large to be read: it is the headers of the queue's first message that take "+
	"more than the broker's frame_max and %d KiB: raise frame_max in rabbitmq.conf", headerRoom>>10)

// Said is an AMQP error as the broker worded it; other errors stay as they are.
func Said(err error) error {
	var said *replyError
	var reply *amqp091.Error
	switch {
	case errors.As(err, &said) || !errors.As(err, &reply):
		return err
	case reply.Server:
		return &replyError{reply}
	case strings.Contains(reply.Reason, amqp091.ErrFrameTooLarge.Reason) && !errors.Is(err, errFrame):
		return fmt.Errorf("%w (%w)", errFrame, err)
	default:
		return err
	}
}

// replyError words an AMQP error like the broker's log does.
type replyError struct{ reply *amqp091.Error }

func (e *replyError) Error() string {
	return fmt.Sprintf("the broker said: %d %s", e.reply.Code, e.reply.Reason)
}
func (e *replyError) Unwrap() error { return e.reply }

// ReplyCode is the code of an AMQP error, 0 for any other.
func ReplyCode(err error) int {
	var reply *amqp091.Error
	if errors.As(err, &reply) {
		return reply.Code
	}
	return 0
}

// closeReason is why the messages that were on their way failed when their
// channel ended; reply is nil where it ended without an error.
func closeReason(reply *amqp091.Error) error {
	if reply == nil {
		return fmt.Errorf("%w: the channel was closed", ErrUnconfirmed)
	}
	kind := ErrUnconfirmed
	switch reply.Code {
	case amqp091.NotFound:
		kind = ErrNoExchange
	case amqp091.AccessRefused:
		kind = ErrForbidden
	}
	return fmt.Errorf("%w: %w", kind, Said(reply))
}
