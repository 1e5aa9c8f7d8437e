package rabbitmq_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redeliverotel"
)

// TestTelemetry follows one message with OpenTelemetry: from its producer through a retry in a hold queue to the
// dead-letter queue and out of that, in one trace.
func TestTelemetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *topology.Spec) {
		delays := []time.Duration{50 * time.Millisecond}
		s.Retry.Strategy, s.Retry.Delays, s.HoldDelays, s.Retry.Jitter = topology.Republish, delays, delays, 0
	})
	reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	telemetry, err := redeliverotel.New(redeliverotel.Config{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := redeliver.Config{Telemetry: telemetry, HandlerTimeout: waitTimeout}
	const producerTrace, producerSpan = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	w.send(amqp091.Publishing{
		MessageId: "m1", Body: []byte("12345"), DeliveryMode: amqp091.Persistent,
		Headers: amqp091.Table{"traceparent": "00-" + producerTrace + "-" + producerSpan + "-01", "tracestate": "vendor=1"},
	})
	l := w.consume(cfg, func(ctx context.Context, m *redeliver.Message) redeliver.Outcome {
		if got := trace.SpanContextFromContext(ctx); !got.IsValid() || got.TraceID().String() != producerTrace {
			t.Errorf("the handler's context has the span %v", got)
		}
		if m.RetryCount == 0 {
			return redeliver.Retry(errBoom)
		}
		return redeliver.Reject(errBoom)
	})
	l.await(redeliver.EventDeadLettered, 1)
	l.mustStop()
	dead := w.handleDead(cfg, func(context.Context, *redeliver.DeadMessage) error { return nil })
	dead.await(redeliver.EventAcked, 1)
	dead.mustStop()

	parent, names := producerSpan, []string(nil)
	for _, span := range spans.Ended() {
		names = append(names, span.Name())
		if got := span.Parent(); got.SpanID().String() != parent || got.TraceID().String() != producerTrace || got.TraceState().String() != "vendor=1" {
			t.Errorf("%s has the parent %v, want %s", span.Name(), got, parent)
		}
		parent = span.SpanContext().SpanID().String()
	}
	if want := []string{"process orders", "process orders", "process orders-dlq"}; !slices.Equal(names, want) {
		t.Errorf("spans %q, want %q", names, want)
	}

	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int64)
	for _, m := range got.ScopeMetrics[0].Metrics {
		if data, ok := m.Data.(metricdata.Sum[int64]); ok {
			for _, point := range data.DataPoints {
				queue, _ := point.Attributes.Value("messaging.destination.name")
				counts[m.Name+" "+queue.AsString()] = point.Value
			}
		}
	}
	for name, want := range map[string]int64{
		"messaging.client.consumed.messages orders": 2, "redeliver.handled orders": 2, "redeliver.retried orders": 1, "redeliver.republished orders": 1,
		"redeliver.dead_lettered orders": 1, "redeliver.acked orders": 0, "redeliver.acked orders-dlq": 1,
	} {
		if counts[name] != want {
			t.Errorf("%s is %d, want %d", name, counts[name], want)
		}
	}
}
