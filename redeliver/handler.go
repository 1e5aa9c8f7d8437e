package redeliver

import (
	"context"
	"encoding/json"
	"fmt"
)

// Handler handles the messages of a topic.
//
// Handle is called by up to Config.Workers goroutines at a time, never twice at
// the same time for one delivery. It should return soon after ctx is done: that
// happens when Config.HandlerTimeout has passed (the cause is a *[TimeoutError])
// and when a shutdown is running out of time (the cause is [ErrDraining]), not
// when a shutdown begins. A handler that ignores ctx keeps its worker.
//
// A panic is recovered and counts as [Retry].
type Handler interface {
	Handle(ctx context.Context, msg *Message) Outcome
}

// HandlerFunc is a function that is a [Handler].
type HandlerFunc func(ctx context.Context, msg *Message) Outcome

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, msg *Message) Outcome { return f(ctx, msg) }

// JSON is a [Handler] that decodes each body as JSON into a new T and hands it
// to handle together with the message. A body that does not decode never gets
// there: it is parked with a *[DecodeError]. Unknown fields are ignored, and
// text after the value is refused.
func JSON[T any](handle func(ctx context.Context, value T, msg *Message) Outcome) Handler {
	return HandlerFunc(func(ctx context.Context, msg *Message) Outcome {
		var value T
		if err := json.Unmarshal(msg.Body, &value); err != nil {
			return Park(&DecodeError{Into: fmt.Sprintf("JSON (%T)", value), Err: err})
		}
		return handle(ctx, value, msg)
	})
}
