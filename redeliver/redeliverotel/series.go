package redeliverotel

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// series is what is reported about one queue, whichever consumers it has and had.
type series struct {
	duration metric.Float64Histogram
	common   []attribute.KeyValue
	// attributes and consumed are the attributes of the counters and gauges, and of the one counter that has one more.
	attributes, consumed metric.MeasurementOption

	// ended is what the consumers counted that have ended, and live are the others; metrics.mu guards both.
	ended redeliver.Stats
	live  []*probe

	// succeeded has the attributes of the outcomes that are no failures, so that they cost nothing per message; failed
	// collects those of the failures as they occur.
	succeeded map[redeliver.OutcomeKind][]metric.RecordOption
	mu        sync.Mutex
	failed    map[failure][]metric.RecordOption
}

// failure is a kind of outcome with the type of its error: few of them exist.
type failure struct {
	kind      redeliver.OutcomeKind
	errorType string
}

func (m *metrics) newSeries(common ...attribute.KeyValue) *series {
	s := &series{
		duration: m.duration, common: common,
		succeeded: make(map[redeliver.OutcomeKind][]metric.RecordOption), failed: make(map[failure][]metric.RecordOption),
	}
	s.attributes = s.with()
	s.consumed = s.with(semconv.MessagingOperationName("consume"))
	for _, kind := range []redeliver.OutcomeKind{redeliver.OutcomeAck, redeliver.OutcomeDefer} {
		s.succeeded[kind] = s.processed(kind)
	}
	return s
}

// record records how long a handler took.
func (s *series) record(ctx context.Context, took time.Duration, kind redeliver.OutcomeKind, errorType string) {
	options, ok := s.succeeded[kind]
	if !ok {
		key := failure{kind, errorType}
		s.mu.Lock()
		if options, ok = s.failed[key]; !ok {
			options = s.processed(kind, semconv.ErrorTypeKey.String(errorType))
			s.failed[key] = options
		}
		s.mu.Unlock()
	}
	s.duration.Record(ctx, took.Seconds(), options...)
}

// processed are the attributes of the histogram.
func (s *series) processed(kind redeliver.OutcomeKind, more ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{s.with(append(more, semconv.MessagingOperationName(operation), semconv.MessagingOperationTypeProcess,
		outcomeKey.String(kind.String()))...)}
}

func (s *series) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(append([]attribute.KeyValue(nil), s.common...), more...)...))
}

// signed is a count as OpenTelemetry has it.
func signed(n uint64) int64 { return int64(min(n, 1<<63-1)) } //nolint:gosec // it fits
