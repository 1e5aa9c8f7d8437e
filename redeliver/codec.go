package redeliver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Codec decodes the bodies of a topic's messages; see [Typed]. [JSONCodec] is
// one, and [CodecFunc] makes one of a function. Decode is called by up to
// Config.Workers goroutines at a time.
//
// What an error means is for the codec to say:
//
//   - Most errors mean that nobody can read the body, now or later. The message
//     is parked with a *[DecodeError], before the handler sees it.
//   - An error that is an [Outcomer], or has one in its chain, is obeyed: a codec
//     whose schema registry does not answer returns one whose outcome is [Retry],
//     because the message is fine.
type Codec[T any] interface {
	// Decode makes a T of the message's body. Headers and properties say how, such as ContentType or a schema's id. The
	// value may refer to the body, which must not be modified.
	Decode(msg *Message) (T, error)
}

// CodecFunc is a function that is a [Codec].
type CodecFunc[T any] func(msg *Message) (T, error)

// Decode calls f.
func (f CodecFunc[T]) Decode(msg *Message) (T, error) { return f(msg) }

// JSONCodec decodes each body as JSON into a new T. Unknown fields are ignored,
// and text after the value is refused.
type JSONCodec[T any] struct{}

// Decode implements [Codec].
func (JSONCodec[T]) Decode(msg *Message) (value T, err error) {
	if err := json.Unmarshal(msg.Body, &value); err != nil {
		return value, &DecodeError{Into: "JSON (" + typeName[T]() + ")", Err: err}
	}
	return value, nil
}

// Typed is a [Handler] that decodes each body with codec and hands the value to
// handle together with the message. A message that does not decode never gets
// there: see [Codec] for what becomes of it. Both arguments are required; Typed
// panics without them, so that a program that lacks one ends at start-up and not
// with its first message.
func Typed[T any](codec Codec[T], handle func(ctx context.Context, value T, msg *Message) Outcome) Handler {
	if codec == nil || handle == nil {
		panic("redeliver: Typed needs a codec and a function that handles the values")
	}
	return HandlerFunc(func(ctx context.Context, msg *Message) Outcome {
		value, err := codec.Decode(msg)
		if err != nil {
			return undecoded(typeName[T](), err)
		}
		return handle(ctx, value, msg)
	})
}

// JSON is [Typed] with a [JSONCodec].
func JSON[T any](handle func(ctx context.Context, value T, msg *Message) Outcome) Handler {
	return Typed(JSONCodec[T]{}, handle)
}

// undecoded is the outcome of a codec's error: what the error says itself, else
// Park. An error that is a *DecodeError already says Park.
func undecoded(into string, err error) Outcome {
	var own Outcomer
	if errors.As(err, &own) || errors.Is(err, ErrPermanent) {
		return FromError(err)
	}
	return Park(&DecodeError{Into: into, Err: err})
}

// typeName is the name of T, also where T is an interface.
func typeName[T any]() string { return strings.TrimPrefix(fmt.Sprintf("%T", (*T)(nil)), "*") }
