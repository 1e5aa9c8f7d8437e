package redeliverotel

import (
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// ScopeName is the name of the instrumentation scope of everything that is
// reported here.
const ScopeName = "github.com/redeliver/terraform-provider-redeliver/redeliver/redeliverotel"

// Attributes that the semantic conventions have no name for.
const (
	topicKey      = attribute.Key("redeliver.topic")
	vhostKey      = attribute.Key("redeliver.vhost")
	targetKey     = attribute.Key("redeliver.target")
	outcomeKey    = attribute.Key("redeliver.outcome")
	retryCountKey = attribute.Key("redeliver.retry_count")
)

// Config says where measurements go.
type Config struct {
	// MeterProvider makes the instruments.
	//
	// Defaults to none: there are no metrics.
	MeterProvider metric.MeterProvider

	// TracerProvider makes the spans.
	//
	// Defaults to none: there are no spans, and contexts are neither read from messages nor written to copies, which keep
	// what they have.
	TracerProvider trace.TracerProvider

	// Propagator reads a trace context from a message's headers and writes it to those of a copy.
	//
	// Defaults to W3C Trace Context and Baggage.
	Propagator propagation.TextMapPropagator

	// NewTrace starts a trace for every attempt and links it to the message's, instead of continuing the message's trace.
	// It is for traces that would otherwise last for days, or have thousands of spans.
	//
	// Defaults to false.
	NewTrace bool
}

// Telemetry is a redeliver.Telemetry.
type Telemetry struct {
	cfg     Config
	metrics *metrics // nil: off
}

var _ redeliver.Telemetry = (*Telemetry)(nil)

// New makes the instruments. It fails where the MeterProvider refuses one.
func New(cfg Config) (*Telemetry, error) {
	if cfg.Propagator == nil {
		cfg.Propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
	}
	t := &Telemetry{cfg: cfg}
	if cfg.MeterProvider != nil {
		m, err := newMetrics(cfg.MeterProvider.Meter(ScopeName, metric.WithSchemaURL(semconv.SchemaURL)))
		if err != nil {
			return nil, fmt.Errorf("registering the metrics of consumers: %w", err)
		}
		t.metrics = m
	}
	return t, nil
}

// Watch implements redeliver.Telemetry.
func (t *Telemetry) Watch(c redeliver.Watched) redeliver.Probe {
	p := &probe{propagator: t.cfg.Propagator, newTrace: t.cfg.NewTrace, metrics: t.metrics, watched: c}
	p.common = [4]attribute.KeyValue{system(c), semconv.MessagingDestinationName(c.Queue), semconv.MessagingOperationName(operation), semconv.MessagingOperationTypeProcess}
	if t.cfg.TracerProvider != nil {
		p.tracer = t.cfg.TracerProvider.Tracer(ScopeName, trace.WithSchemaURL(semconv.SchemaURL),
			trace.WithInstrumentationAttributes(place(c)...))
		p.spanName = operation + " " + c.Queue
		p.start = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer)}
	}
	if t.metrics != nil {
		t.metrics.watch(p)
	}
	return p
}

// The kinds of brokers, as a manifest calls them.
const (
	systemRabbitMQ = "rabbitmq"
	systemSQS      = "sqs"
)

// system is the kind of broker, as the semantic conventions call it.
func system(c redeliver.Watched) attribute.KeyValue {
	if c.System == systemSQS {
		return semconv.MessagingSystemAWSSQS
	}
	return semconv.MessagingSystemKey.String(c.System)
}

// place is the topic, and the vhost where there are any.
func place(c redeliver.Watched) []attribute.KeyValue {
	list := []attribute.KeyValue{topicKey.String(c.Topic)}
	if c.VHost != "" {
		list = append(list, vhostKey.String(c.VHost))
	}
	return list
}

// operation is what is measured: a handler that processes a message.
const operation = "process"
