package redeliverotel_test

import (
	"context"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redeliverotel"
)

// dropped is a processor of spans that keeps none.
type dropped struct{}

func (dropped) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (dropped) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (dropped) Shutdown(context.Context) error                  { return nil }
func (dropped) ForceFlush(context.Context) error                { return nil }

// costCase is a message, how much of the SDK it meets, and the allocations that doc.go states.
type costCase struct {
	cfg    redeliverotel.Config
	msg    redeliver.Message
	budget float64
}

func costCases() map[string]costCase {
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	all := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithSpanProcessor(dropped{}))
	none := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()), sdktrace.WithSpanProcessor(dropped{}))
	plain := redeliver.Message{ID: "m1", RoutingKey: "orders", Body: make([]byte, 256), Headers: map[string]any{"x": "y"}}
	traced := plain
	traced.Headers = map[string]any{"traceparent": parent}
	return map[string]costCase{
		"metrics":              {redeliverotel.Config{MeterProvider: meters}, traced, 0},
		"not_sampled":          {redeliverotel.Config{MeterProvider: meters, TracerProvider: none}, plain, 2},
		"sampled":              {redeliverotel.Config{MeterProvider: meters, TracerProvider: all}, plain, 4},
		"sampled_with_context": {redeliverotel.Config{MeterProvider: meters, TracerProvider: all}, traced, 6},
	}
}

func (c costCase) probe(tb testing.TB) redeliver.Probe {
	tb.Helper()
	telemetry, err := redeliverotel.New(c.cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return telemetry.Watch(redeliver.Watched{
		System: "rabbitmq", Topic: "orders", Queue: "orders", VHost: "/",
		Stats: func() redeliver.Stats { return redeliver.Stats{} }, Health: func() redeliver.Health { return redeliver.Health{} },
	})
}

// TestAllocations cannot run beside other tests: they allocate too.
func TestAllocations(t *testing.T) {
	for name, c := range costCases() {
		p, ctx, ack := c.probe(t), context.Background(), redeliver.Ack()
		got := testing.AllocsPerRun(1000, func() {
			p.End(p.Begin(ctx, &c.msg), &c.msg, ack, took)
		})
		if raceDetector && c.budget > 2 {
			c.budget++
		}
		if got > c.budget {
			t.Errorf("%s: %.0f allocations, budget %.0f", name, got, c.budget)
		}
	}
}

func BenchmarkMessage(b *testing.B) {
	for name, c := range costCases() {
		b.Run(name, func(b *testing.B) {
			p, ctx, ack := c.probe(b), context.Background(), redeliver.Ack()
			b.ReportAllocs()
			for b.Loop() {
				p.End(p.Begin(ctx, &c.msg), &c.msg, ack, took)
			}
		})
	}
}
