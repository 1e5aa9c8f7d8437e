package redeliver

// Middleware wraps a [Handler] in another one, which usually calls it: to log,
// to skip what was handled before, to turn one outcome into another. It sees
// messages whose body is not decoded yet, and so the outcomes of those that do
// not decode; values that it puts into the context reach the handler.
//
//	func slow(limit time.Duration) redeliver.Middleware {
//		return func(next redeliver.Handler) redeliver.Handler {
//			return redeliver.HandlerFunc(func(ctx context.Context, msg *redeliver.Message) redeliver.Outcome {
//				begun := time.Now()
//				outcome := next.Handle(ctx, msg)
//				if took := time.Since(begun); took > limit {
//					slog.WarnContext(ctx, "slow", "id", msg.ID, "took", took)
//				}
//				return outcome
//			})
//		}
//	}
type Middleware func(next Handler) Handler

// Chain wraps a handler. The first middleware is the outermost: it sees a
// message first and its outcome last. Those that are nil are left out.
func Chain(h Handler, mw ...Middleware) Handler {
	for i := len(mw) - 1; i >= 0; i-- {
		if mw[i] != nil {
			h = mw[i](h)
		}
	}
	return h
}
