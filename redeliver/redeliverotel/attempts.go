package redeliverotel

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/trace"
)

// attempts are the spans of messages that will come again, by message id: a
// message that waits in place comes back as it was published, and where its
// producer sent no trace context nothing else connects its attempts. They are the
// latest ones of this process, and no more than attemptsKept of each generation.
type attempts struct {
	some       atomic.Bool // there is one, so that most messages need no lock
	mu         sync.Mutex
	young, old map[string]trace.SpanContext
}

const attemptsKept = 4096

// keep remembers the span of an attempt that another one follows on.
func (a *attempts) keep(id string, span trace.SpanContext) {
	if id == "" || !span.IsValid() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.young == nil || len(a.young) >= attemptsKept {
		a.old, a.young = a.young, make(map[string]trace.SpanContext)
	}
	a.young[id] = span
	a.some.Store(true)
}

// take is the span of the attempt before; it is forgotten.
func (a *attempts) take(id string) trace.SpanContext {
	if id == "" || !a.some.Load() {
		return trace.SpanContext{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	span, ok := a.young[id]
	if !ok {
		span = a.old[id]
	}
	delete(a.young, id)
	delete(a.old, id)
	a.some.Store(len(a.young)+len(a.old) > 0)
	return span
}
