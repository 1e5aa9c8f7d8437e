package redeliver_test

import (
	"context"
	"slices"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

type callKey struct{}

func TestChain(t *testing.T) {
	t.Parallel()
	var calls []string
	note := func(name string) redeliver.Middleware {
		return func(next redeliver.Handler) redeliver.Handler {
			return redeliver.HandlerFunc(func(ctx context.Context, msg *redeliver.Message) redeliver.Outcome {
				calls = append(calls, "to "+name)
				defer func() { calls = append(calls, "from "+name) }()
				return next.Handle(context.WithValue(ctx, callKey{}, name), msg)
			})
		}
	}
	deny := func(redeliver.Handler) redeliver.Handler {
		return redeliver.HandlerFunc(func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Reject(errBoom) })
	}
	var last any
	handler := redeliver.HandlerFunc(func(ctx context.Context, _ *redeliver.Message) redeliver.Outcome {
		last = ctx.Value(callKey{})
		return redeliver.Ack()
	})
	if o := redeliver.Chain(handler, note("a"), nil, note("b")).Handle(t.Context(), &redeliver.Message{}); o != redeliver.Ack() ||
		!slices.Equal(calls, []string{"to a", "to b", "from b", "from a"}) || last != "b" {
		t.Errorf("%v, %q, %v", o, calls, last)
	}
	calls, last = nil, nil
	if o := redeliver.Chain(handler, note("a"), deny).Handle(t.Context(), &redeliver.Message{}); o.Kind() != redeliver.OutcomeReject || last != nil || len(calls) != 2 {
		t.Errorf("%v, %q, %v", o, calls, last)
	}
	if o := redeliver.Chain(handler).Handle(t.Context(), &redeliver.Message{}); o != redeliver.Ack() {
		t.Error(o)
	}
}
