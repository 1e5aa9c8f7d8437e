package redeliverotel

import (
	"errors"
	"fmt"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// errorType is the kind of the error that an outcome stands for; empty where it
// is none. It is one of few values: a type, and no text.
func errorType(o redeliver.Outcome) string {
	switch o.Kind() {
	case redeliver.OutcomeAck, redeliver.OutcomeDefer:
		return ""
	}
	err := o.Err()
	if err == nil {
		return semconv.ErrorTypeOther.Value.AsString()
	}
	for {
		switch err.(type) { //nolint:errorlint // the loop walks the chain
		case *redeliver.DecodeError, *redeliver.SizeError, *redeliver.PanicError, *redeliver.TimeoutError, *redeliver.DelayError:
			return fmt.Sprintf("%T", err) // says more than what it wraps
		}
		inner := unwrap(err)
		if inner == nil {
			return fmt.Sprintf("%T", err)
		}
		err = inner
	}
}

// unwrap is the next error of a chain; of several errors it is the first.
func unwrap(err error) error {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		if list := several.Unwrap(); len(list) > 0 {
			return list[0]
		}
		return nil
	}
	return errors.Unwrap(err)
}
