package redeliverotel

import (
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// errorType is the kind of the error that an outcome stands for; empty where it
// is none.
func errorType(o redeliver.Outcome) string {
	switch o.Kind() {
	case redeliver.OutcomeAck, redeliver.OutcomeDefer:
		return ""
	}
	if err := o.Err(); err != nil {
		return redeliver.ErrorType(err)
	}
	return semconv.ErrorTypeOther.Value.AsString()
}
