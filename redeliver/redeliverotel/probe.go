package redeliverotel

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// probe follows the messages of one consumer.
type probe struct {
	watched redeliver.Watched
	common  [4]attribute.KeyValue // of all spans

	tracer     trace.Tracer // nil: off
	propagator propagation.TextMapPropagator
	newTrace   bool
	spanName   string
	start      []trace.SpanStartOption
	attempts   attempts

	metrics *metrics // nil: off
	series  *series
	closed  sync.Once
}

var _ redeliver.Probe = (*probe)(nil)

// Begin starts the message's span.
func (p *probe) Begin(ctx context.Context, msg *redeliver.Message) context.Context {
	if p.tracer == nil {
		return ctx
	}
	around := trace.SpanContextFromContext(ctx) // of the context that the consumer runs with
	if len(msg.Headers) > 0 {
		ctx = p.propagator.Extract(ctx, carrier(msg.Headers))
	}
	if trace.SpanContextFromContext(ctx).Equal(around) { // the message carries none
		if before := p.attempts.take(msg.ID); before.IsValid() {
			ctx = trace.ContextWithSpanContext(ctx, before)
		}
	}
	if p.newTrace {
		ctx, _ = p.tracer.Start(ctx, p.spanName, p.start[0], trace.WithNewRoot(), trace.WithLinks(trace.LinkFromContext(ctx)))
		return ctx
	}
	ctx, _ = p.tracer.Start(ctx, p.spanName, p.start...)
	return ctx
}

// End ends the span that Begin started, and records how long the handler took.
func (p *probe) End(ctx context.Context, msg *redeliver.Message, o redeliver.Outcome, took time.Duration) {
	failure := errorType(o)
	if p.metrics != nil {
		p.series.record(ctx, took, o.Kind(), failure) // before the span ends, which it may be an exemplar of
	}
	if p.tracer == nil {
		return
	}
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		p.describe(span, msg, o, failure)
	}
	span.End()
	if comesAgain(o.Kind()) && !trace.SpanContextFromContext(p.propagator.Extract(context.Background(), carrier(msg.Headers))).IsValid() {
		p.attempts.keep(msg.ID, span.SpanContext())
	}
}

// comesAgain says that an outcome asks for another attempt.
func comesAgain(kind redeliver.OutcomeKind) bool {
	switch kind {
	case redeliver.OutcomeRetry, redeliver.OutcomeDefer, redeliver.OutcomeNone:
		return true
	default:
		return false
	}
}

// attributes are buffers for SetAttributes, which copies what it is given.
var attributes = sync.Pool{New: func() any { return new([maxAttributes]attribute.KeyValue) }}

// maxAttributes is how many attributes describe sets. A span of the SDK that has
// at most eight costs three allocations less: the ninth and tenth are for
// messages that were retried and for those that failed.
const maxAttributes = 10

// describe sets everything there is to say about a message, at once: each further
// time would cost an allocation.
func (p *probe) describe(span trace.Span, msg *redeliver.Message, o redeliver.Outcome, failure string) {
	buffer, _ := attributes.Get().(*[maxAttributes]attribute.KeyValue)
	defer attributes.Put(buffer)
	list := buffer[:copy(buffer[:], p.common[:])]
	list = append(list, semconv.MessagingMessageBodySize(len(msg.Body)), outcomeKey.String(o.Kind().String()))
	if msg.ID != "" {
		list = append(list, semconv.MessagingMessageID(msg.ID))
	}
	if msg.RoutingKey != "" && p.watched.System == systemRabbitMQ {
		list = append(list, semconv.MessagingRabbitMQDestinationRoutingKey(msg.RoutingKey))
	}
	if msg.RetryCount > 0 {
		list = append(list, retryCountKey.Int(msg.RetryCount))
	}
	if failure != "" {
		list = append(list, semconv.ErrorTypeKey.String(failure))
		description := o.Kind().String()
		if err := o.Err(); err != nil {
			description = err.Error()
		}
		span.SetStatus(codes.Error, description)
	}
	span.SetAttributes(list...)
}

// Copy writes the context of a message's span to the headers of its copy.
func (p *probe) Copy(ctx context.Context, _ string, headers map[string]any) {
	if p.tracer != nil && headers != nil {
		p.propagator.Inject(ctx, carrier(headers))
	}
}

// Close takes the consumer's last counts.
func (p *probe) Close() {
	p.closed.Do(func() {
		if p.metrics != nil {
			p.metrics.forget(p)
		}
	})
}

// carrier reads and writes a trace context in the headers of a message. Some
// clients write headers as bytes.
type carrier map[string]any

var _ propagation.TextMapCarrier = carrier(nil)

// Get returns the text of a header.
func (c carrier) Get(key string) string {
	switch value := c[key].(type) {
	case string:
		return value
	case []byte:
		return string(value)
	default:
		return ""
	}
}

// Set sets a header.
func (c carrier) Set(key, value string) { c[key] = value }

// Keys lists the headers.
func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for key := range c {
		keys = append(keys, key)
	}
	return keys
}
