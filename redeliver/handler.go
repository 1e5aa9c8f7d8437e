package redeliver

import "context"

// Handler handles the messages of a topic.
//
// Handle is called by up to Config.Workers goroutines at a time, never twice at
// the same time for one delivery. It should return soon after ctx is done: that
// happens when Config.HandlerTimeout has passed (the cause is a *[TimeoutError])
// and when a shutdown is running out of time (the cause is [ErrDraining]), not
// when a shutdown begins. A handler that ignores ctx keeps its worker.
//
// A panic is recovered and counts as [Retry].
//
// [Typed] and [JSON] make a handler of a function that takes decoded values, and
// [Chain] puts [Middleware] around one.
type Handler interface {
	Handle(ctx context.Context, msg *Message) Outcome
}

// HandlerFunc is a function that is a [Handler].
type HandlerFunc func(ctx context.Context, msg *Message) Outcome

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, msg *Message) Outcome { return f(ctx, msg) }
