package main

import (
	"context"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redeliverotel"
)

// watched is the loop of this module with metrics and traces on, every message
// sampled. What is told goes nowhere: exporting costs what an exporter costs.
func watched(cfg redeliver.Config) loop {
	return func(ctx context.Context, t *topic, m *meter) error {
		telemetry, err := redeliverotel.New(redeliverotel.Config{
			MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithSpanProcessor(nowhere{})),
		})
		if err != nil {
			return err
		}
		cfg := cfg
		cfg.Telemetry = telemetry
		return consumer(cfg, redeliver.Ack())(ctx, t, m)
	}
}

// nowhere forgets spans.
type nowhere struct{}

var _ sdktrace.SpanProcessor = nowhere{}

func (nowhere) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (nowhere) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (nowhere) Shutdown(context.Context) error                  { return nil }
func (nowhere) ForceFlush(context.Context) error                { return nil }
