package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// logged logs what becomes of every message, those that do not decode included.
func logged(log *slog.Logger) redeliver.Middleware {
	return func(next redeliver.Handler) redeliver.Handler {
		return redeliver.HandlerFunc(func(ctx context.Context, msg *redeliver.Message) redeliver.Outcome {
			begun := time.Now()
			outcome := next.Handle(ctx, msg)
			log.InfoContext(ctx, "handled", "topic", msg.Topic, "id", msg.ID, "attempt", msg.Attempt(),
				"outcome", outcome.Kind().String(), "error", outcome.Err(), "took", time.Since(begun))
			return outcome
		})
	}
}

// once acknowledges a message that was dealt with before without handling it
// again: delivery is at least once. A real service keeps the ids where it keeps
// its results, in the same transaction.
type once struct {
	mu   sync.Mutex
	done map[string]bool
}

func (o *once) middleware(next redeliver.Handler) redeliver.Handler {
	return redeliver.HandlerFunc(func(ctx context.Context, msg *redeliver.Message) redeliver.Outcome {
		if o.has(msg) {
			return redeliver.Ack()
		}
		outcome := next.Handle(ctx, msg)
		if outcome.Kind() == redeliver.OutcomeAck {
			o.add(msg)
		}
		return outcome
	})
}

func (o *once) has(msg *redeliver.Message) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return msg.ID != "" && o.done[msg.ID]
}

func (o *once) add(msg *redeliver.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done == nil {
		o.done = make(map[string]bool)
	}
	o.done[msg.ID] = true
}
