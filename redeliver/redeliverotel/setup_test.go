package redeliverotel_test

import (
	"context"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redeliverotel"
)

// world is a telemetry whose metrics and spans a test can look at.
type world struct {
	t      *testing.T
	reader *sdkmetric.ManualReader
	spans  *tracetest.SpanRecorder
	*redeliverotel.Telemetry
}

func newWorld(t *testing.T, change ...func(*redeliverotel.Config)) *world {
	t.Helper()
	w := &world{t: t, reader: sdkmetric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	cfg := redeliverotel.Config{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader)),
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans)),
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if w.Telemetry, err = redeliverotel.New(cfg); err != nil {
		t.Fatal(err)
	}
	return w
}

// consumer is a consumer as a telemetry sees it.
type consumer struct {
	redeliver.Probe
	stats  atomic.Pointer[redeliver.Stats]
	health atomic.Pointer[redeliver.Health]
}

// watch opens a consumer of a queue.
func (w *world) watch(queue string, stats redeliver.Stats) *consumer {
	c := &consumer{}
	c.stats.Store(&stats)
	c.health.Store(&redeliver.Health{Status: redeliver.HealthOK})
	c.Probe = w.Watch(redeliver.Watched{
		System: "rabbitmq", Topic: "orders", Queue: queue, VHost: "shop",
		Stats:  func() redeliver.Stats { return *c.stats.Load() },
		Health: func() redeliver.Health { return *c.health.Load() },
	})
	return c
}

// handle lets a consumer handle a message.
func (c *consumer) handle(msg *redeliver.Message, handle func(context.Context) redeliver.Outcome) {
	ctx := c.Begin(context.Background(), msg)
	c.End(ctx, msg, handle(ctx), took)
}

// metric is what a collection has under a name.
func (w *world) metric(name string) metricdata.Metrics {
	w.t.Helper()
	for _, m := range w.collect() {
		if m.Name == name {
			return m
		}
	}
	return metricdata.Metrics{}
}

func (w *world) collect() []metricdata.Metrics {
	w.t.Helper()
	var got metricdata.ResourceMetrics
	if err := w.reader.Collect(context.Background(), &got); err != nil {
		w.t.Fatal(err)
	}
	var all []metricdata.Metrics
	for _, scope := range got.ScopeMetrics {
		if scope.Scope.Name != redeliverotel.ScopeName || scope.Scope.SchemaURL == "" {
			w.t.Errorf("scope %+v", scope.Scope)
		}
		all = append(all, scope.Metrics...)
	}
	return all
}

// points are the values of a counter or gauge.
func points(m metricdata.Metrics) []metricdata.DataPoint[int64] {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		return data.DataPoints
	case metricdata.Gauge[int64]:
		return data.DataPoints
	default:
		return nil
	}
}

// value is the only value of a counter or gauge; -1 where there is not one.
func (w *world) value(name string) int64 {
	w.t.Helper()
	if list := points(w.metric(name)); len(list) == 1 {
		return list[0].Value
	}
	return -1
}

// texts are attributes as text.
func texts(list []attribute.KeyValue) map[string]string {
	all := make(map[string]string)
	for _, a := range list {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}
