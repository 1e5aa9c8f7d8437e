package redeliverotel_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redeliverotel"
)

// parent is a producer's trace context.
const (
	parentTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	parentSpan  = "00f067aa0ba902b7"
	parent      = "00-" + parentTrace + "-" + parentSpan + "-01"
)

// only is the span of the only message that was handled.
func (w *world) only() sdktrace.ReadOnlySpan {
	w.t.Helper()
	spans := w.spans.Ended()
	if len(spans) != 1 {
		w.t.Fatalf("%d spans, want one", len(spans))
	}
	return spans[0]
}

func TestSpan(t *testing.T) {
	t.Parallel()
	base := map[string]string{
		"messaging.system": "rabbitmq", "messaging.destination.name": "orders-seq-0",
		"messaging.operation.name": "process", "messaging.operation.type": "process",
	}
	full := redeliver.Message{ID: "m1", Body: []byte("12345"), RoutingKey: "order.7", RetryCount: 2}
	for name, tt := range map[string]struct {
		msg    redeliver.Message
		o      redeliver.Outcome
		status sdktrace.Status
		want   map[string]string
	}{
		"ack": {
			full, redeliver.Ack(),
			sdktrace.Status{},
			map[string]string{
				"messaging.message.id": "m1", "messaging.message.body.size": "5", "messaging.rabbitmq.destination.routing_key": "order.7",
				"redeliver.retry_count": "2", "redeliver.outcome": "ack",
			},
		},
		"bare": {
			redeliver.Message{},
			redeliver.Defer(),
			sdktrace.Status{},
			map[string]string{"messaging.message.body.size": "0", "redeliver.outcome": "defer"},
		},
		"retry": {
			redeliver.Message{ID: "m1"},
			redeliver.Retry(fmt.Errorf("charging: %w", errBoom)),
			sdktrace.Status{Code: codes.Error, Description: "charging: boom"},
			map[string]string{
				"messaging.message.id": "m1", "messaging.message.body.size": "0", "redeliver.outcome": "retry", "error.type": "*errors.errorString",
			},
		},
		"reject nil": {
			redeliver.Message{},
			redeliver.Reject(nil),
			sdktrace.Status{Code: codes.Error, Description: "reject"},
			map[string]string{"messaging.message.body.size": "0", "redeliver.outcome": "reject", "error.type": "_OTHER"},
		},
		"none": {
			redeliver.Message{},
			redeliver.Outcome{},
			sdktrace.Status{Code: codes.Error, Description: "none"},
			map[string]string{"messaging.message.body.size": "0", "redeliver.outcome": "none", "error.type": "_OTHER"},
		},
	} {
		w := newWorld(t)
		w.watch("orders-seq-0", redeliver.Stats{}).handle(&tt.msg, func(ctx context.Context) redeliver.Outcome {
			trace.SpanFromContext(ctx).AddEvent("the handler's own")
			return tt.o
		})
		span, want := w.only(), maps.Clone(base)
		maps.Copy(want, tt.want)
		if got := texts(span.Attributes()); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if span.Name() != "process orders-seq-0" || span.SpanKind() != trace.SpanKindConsumer || span.Status() != tt.status || span.Parent().IsValid() ||
			len(span.Events()) != 1 {
			t.Errorf("%s: %q, %v, %+v, parent %v", name, span.Name(), span.SpanKind(), span.Status(), span.Parent())
		}
		scope := span.InstrumentationScope()
		topic, _ := scope.Attributes.Value(attribute.Key("redeliver.topic"))
		vhost, _ := scope.Attributes.Value(attribute.Key("redeliver.vhost"))
		if scope.Name != redeliverotel.ScopeName || topic.AsString() != "orders" || vhost.AsString() != "shop" || !strings.HasSuffix(scope.SchemaURL, "1.43.0") {
			t.Errorf("%s: scope %+v", name, scope)
		}
	}
}

// The context comes from the headers, whatever a publisher's client made of their text.
func TestParent(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		headers map[string]any
		parent  string
		state   string
		baggage string
	}{
		"none":           {nil, "", "", ""},
		"text":           {map[string]any{"traceparent": parent, "tracestate": "vendor=1", "baggage": "tenant=7", "other": int64(1)}, parentSpan, "vendor=1", "7"},
		"bytes":          {map[string]any{"traceparent": []byte(parent), "tracestate": []byte("vendor=1"), "baggage": []byte("tenant=7")}, parentSpan, "vendor=1", "7"},
		"baggage alone":  {map[string]any{"baggage": "tenant=7"}, "", "", "7"},
		"malformed":      {map[string]any{"traceparent": "00-zz"}, "", "", ""},
		"another type":   {map[string]any{"traceparent": int64(7), "baggage": []any{"x"}}, "", "", ""},
		"forged, nested": {map[string]any{"traceparent": map[string]any{"a": 1}}, "", "", ""},
	} {
		w := newWorld(t)
		tenant := ""
		w.watch("orders", redeliver.Stats{}).handle(&redeliver.Message{Headers: tt.headers}, func(ctx context.Context) redeliver.Outcome {
			tenant = baggage.FromContext(ctx).Member("tenant").Value()
			return redeliver.Ack()
		})
		span, id := w.only(), ""
		if span.Parent().IsValid() {
			id = span.Parent().SpanID().String()
		}
		if id != tt.parent || tenant != tt.baggage || span.SpanContext().TraceState().String() != tt.state || len(span.Links()) != 0 {
			t.Errorf("%s: parent %q, baggage %q, state %q", name, id, tenant, span.SpanContext().TraceState())
		}
		if tt.parent != "" && (span.SpanContext().TraceID().String() != parentTrace || !span.Parent().IsRemote()) {
			t.Errorf("%s: trace %v", name, span.SpanContext())
		}
	}
}

func TestNewTrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *redeliverotel.Config) { c.NewTrace = true })
	c := w.watch("orders", redeliver.Stats{})
	c.handle(&redeliver.Message{Headers: map[string]any{"traceparent": parent, "baggage": "tenant=7"}}, func(ctx context.Context) redeliver.Outcome {
		if got := baggage.FromContext(ctx).Member("tenant").Value(); got != "7" {
			t.Errorf("baggage %q", got)
		}
		return redeliver.Ack()
	})
	c.handle(&redeliver.Message{}, func(context.Context) redeliver.Outcome { return redeliver.Ack() })
	spans := w.spans.Ended()
	linked, bare := spans[0], spans[1]
	if linked.Parent().IsValid() || linked.SpanContext().TraceID().String() == parentTrace || len(linked.Links()) != 1 ||
		linked.Links()[0].SpanContext.SpanID().String() != parentSpan {
		t.Errorf("parent %v, links %+v", linked.Parent(), linked.Links())
	}
	if bare.Parent().IsValid() || len(bare.Links()) != 0 {
		t.Errorf("without a context: parent %v, links %+v", bare.Parent(), bare.Links())
	}
}

// A copy continues the trace at the attempt that failed, also after that attempt's span has ended.
func TestCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.watch("orders", redeliver.Stats{})
	first := &redeliver.Message{ID: "m1", Headers: map[string]any{"traceparent": parent, "baggage": "tenant=7"}}
	ctx := c.Begin(context.Background(), first)
	c.End(ctx, first, redeliver.Retry(errBoom), took)
	set := map[string]any{"x-redeliver-retry-count": int32(1)}
	c.Copy(ctx, "orders-hold-5s", set)
	if first.Headers["traceparent"] != parent || set["baggage"] != "tenant=7" || len(set) != 3 {
		t.Errorf("the copy gets %v, the message has %v", set, first.Headers)
	}
	c.handle(&redeliver.Message{ID: "m1", Headers: set}, func(context.Context) redeliver.Outcome { return redeliver.Ack() })
	spans := w.spans.Ended()
	if got := spans[1].Parent().SpanID(); got != spans[0].SpanContext().SpanID() || spans[1].SpanContext().TraceID().String() != parentTrace {
		t.Errorf("the second attempt's parent is %v, want %v", got, spans[0].SpanContext().SpanID())
	}
	c.Copy(ctx, "orders-dlq", nil) // nothing to write to
}

// A message that waits in place comes back without a trace context where its producer sent none: its attempts are one trace.
func TestAttemptsOfOneMessage(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*redeliverotel.Config){"one trace": func(*redeliverotel.Config) {}, "links": func(c *redeliverotel.Config) { c.NewTrace = true }} {
		w := newWorld(t, change)
		c := w.watch("orders", redeliver.Stats{})
		for _, attempt := range []struct {
			id string
			o  redeliver.Outcome
		}{
			{"m1", redeliver.Retry(errBoom)},
			{"m2", redeliver.Defer()},
			{"", redeliver.Retry(errBoom)},
			{"m1", redeliver.Outcome{}},
			{"m1", redeliver.Ack()},
			{"m1", redeliver.Ack()}, // another one with the same id
			{"m2", redeliver.Reject(errBoom)},
			{"", redeliver.Ack()},
		} {
			c.handle(&redeliver.Message{ID: attempt.id}, func(context.Context) redeliver.Outcome { return attempt.o })
		}
		spans := w.spans.Ended()
		for i, before := range []int{-1, -1, -1, 0, 3, -1, 1, -1} {
			follows := spans[i].Parent()
			if links := spans[i].Links(); len(links) > 0 {
				follows = links[0].SpanContext
			}
			var want trace.SpanID
			if before >= 0 {
				want = spans[before].SpanContext().SpanID()
			}
			if follows.SpanID() != want || name == "one trace" && before >= 0 && spans[i].SpanContext().TraceID() != spans[before].SpanContext().TraceID() {
				t.Errorf("%s: attempt %d follows on %v, want %v", name, i, follows.SpanID(), want)
			}
		}
	}
}

// What is remembered of attempts is bounded, and the latest ones are.
func TestAttemptsAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.watch("orders", redeliver.Stats{})
	const many = 10000
	for i := range many {
		c.handle(&redeliver.Message{ID: fmt.Sprint(i)}, func(context.Context) redeliver.Outcome { return redeliver.Retry(errBoom) })
	}
	for _, i := range []int{0, many - 4000} {
		c.handle(&redeliver.Message{ID: fmt.Sprint(i)}, func(context.Context) redeliver.Outcome { return redeliver.Ack() })
	}
	spans := w.spans.Ended()
	if forgotten, known := spans[many], spans[many+1]; forgotten.Parent().IsValid() || known.Parent().SpanID() != spans[many-4000].SpanContext().SpanID() {
		t.Errorf("parents %v and %v", forgotten.Parent(), known.Parent())
	}
}

// A context that is not sampled goes on with the message all the same.
func TestNotSampled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *redeliverotel.Config) {
		c.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
	})
	c := w.watch("orders", redeliver.Stats{})
	msg := &redeliver.Message{Headers: map[string]any{"traceparent": strings.TrimSuffix(parent, "01") + "00"}}
	ctx := c.Begin(context.Background(), msg)
	c.End(ctx, msg, redeliver.Retry(errBoom), took)
	set := make(map[string]any)
	c.Copy(ctx, "orders-dlq", set)
	if text, _ := set["traceparent"].(string); !strings.HasPrefix(text, "00-"+parentTrace) || !strings.HasSuffix(text, "-00") {
		t.Errorf("the copy gets %v", set)
	}
}

func TestErrorType(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"plain":     {errBoom, "*errors.errorString"},
		"wrapped":   {fmt.Errorf("a: %w", fmt.Errorf("b: %w", context.DeadlineExceeded)), "context.deadlineExceededError"},
		"permanent": {redeliver.Permanent(errBoom), "*errors.errorString"},
		"joined":    {errors.Join(context.Canceled, errBoom), "*errors.errorString"},
		"two":       {fmt.Errorf("%w: %w", &redeliver.TimeoutError{}, errBoom), "*redeliver.TimeoutError"},
		"decode":    {&redeliver.DecodeError{Err: errBoom}, "*redeliver.DecodeError"},
		"panic":     {fmt.Errorf("a: %w", &redeliver.PanicError{Value: errBoom}), "*redeliver.PanicError"},
		"size":      {&redeliver.SizeError{}, "*redeliver.SizeError"},
	} {
		w := newWorld(t)
		w.watch("orders", redeliver.Stats{}).handle(&redeliver.Message{}, func(context.Context) redeliver.Outcome { return redeliver.Retry(tt.err) })
		if got := texts(w.only().Attributes())["error.type"]; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
