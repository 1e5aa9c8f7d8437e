package redeliver

import (
	"errors"
	"fmt"
)

// ErrorType is the kind of an error, for headers and metrics: the Go type at the
// end of its chain, such as "*net.OpError", or the first type of this package that
// says more than what it wraps, such as "*redeliver.TimeoutError". It is one of few
// values, and no text of the error. It is empty for nil.
func ErrorType(err error) string {
	if err == nil {
		return ""
	}
	for {
		switch err.(type) { //nolint:errorlint // the loop walks the chain
		case *DecodeError, *SizeError, *PanicError, *TimeoutError, *DelayError:
			return fmt.Sprintf("%T", err)
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
