package redeliver_test

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// rowCodec reads bodies that are a row of comma-separated values.
type rowCodec struct{}

func (rowCodec) Decode(msg *redeliver.Message) ([]string, error) {
	return csv.NewReader(strings.NewReader(string(msg.Body))).Read()
}

// A codec of an application's own has one method.
func ExampleTyped() {
	handler := redeliver.Typed(rowCodec{}, func(_ context.Context, row []string, _ *redeliver.Message) redeliver.Outcome {
		fmt.Printf("%q\n", row)
		return redeliver.Ack()
	})
	fmt.Println(handler.Handle(context.Background(), &redeliver.Message{Body: []byte(`7,"a, b"`)}))
	fmt.Println(handler.Handle(context.Background(), &redeliver.Message{Body: []byte(`7,"a`)}).Kind())
	// Output:
	// ["7" "a, b"]
	// ack
	// park
}

// unavailable is an error that knows what is to become of the message.
type unavailable struct{ err error }

func (u unavailable) Error() string              { return u.err.Error() }
func (u unavailable) Outcome() redeliver.Outcome { return redeliver.Retry(u) }

// An error that says more than "undecodable" is obeyed: the message is fine, and
// the schema registry does not answer.
func ExampleCodecFunc() {
	codec := redeliver.CodecFunc[string](func(*redeliver.Message) (string, error) {
		return "", unavailable{errors.New("the schema registry does not answer")}
	})
	handler := redeliver.Typed(codec, func(context.Context, string, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() })
	fmt.Println(handler.Handle(context.Background(), &redeliver.Message{}))
	// Output: retry: the schema registry does not answer
}

// Middleware sees the message before the handler and the outcome after it.
func ExampleChain() {
	loud := func(next redeliver.Handler) redeliver.Handler {
		return redeliver.HandlerFunc(func(ctx context.Context, msg *redeliver.Message) redeliver.Outcome {
			outcome := next.Handle(ctx, msg)
			fmt.Println(msg.ID, outcome.Kind())
			return outcome
		})
	}
	patient := func(next redeliver.Handler) redeliver.Handler {
		return redeliver.HandlerFunc(func(ctx context.Context, msg *redeliver.Message) redeliver.Outcome {
			if outcome := next.Handle(ctx, msg); outcome.Kind() != redeliver.OutcomeReject {
				return outcome
			}
			return redeliver.Defer() // while the catalogue is being imported, nothing is given up
		})
	}
	handler := redeliver.Chain(redeliver.HandlerFunc(func(context.Context, *redeliver.Message) redeliver.Outcome {
		return redeliver.Reject(errors.New("no such article"))
	}), loud, patient)
	handler.Handle(context.Background(), &redeliver.Message{ID: "m1"})
	// Output: m1 defer
}
