package redeliver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

type payment struct {
	Account string `json:"account"`
	Cents   int    `json:"cents"`
}

var errUnknownAccount = errors.New("unknown account")

func charge(context.Context, payment) (retryAfter time.Duration, err error) {
	return 0, errUnknownAccount
}

// A typed handler: bodies that do not decode are parked before it is called.
func ExampleJSON() {
	handler := redeliver.JSON(func(ctx context.Context, p payment, _ *redeliver.Message) redeliver.Outcome {
		switch wait, err := charge(ctx, p); {
		case err == nil:
			return redeliver.Ack()
		case errors.Is(err, errUnknownAccount):
			return redeliver.Reject(err) // no retry will cure it
		case wait > 0:
			return redeliver.RetryAfter(wait, err) // the service said how long
		default:
			return redeliver.Retry(err)
		}
	})
	fmt.Println(handler.Handle(context.Background(), &redeliver.Message{Body: []byte(`{"account": "a", "cents": 100}`)}))
	fmt.Println(handler.Handle(context.Background(), &redeliver.Message{Body: []byte(`{"account": 7}`)}).Kind())
	// Output:
	// reject: unknown account
	// park
}

// Errors that come from deep inside say themselves what is to be done.
func ExampleFromError() {
	fmt.Println(redeliver.FromError(nil))
	fmt.Println(redeliver.FromError(errors.New("connection reset")))
	fmt.Println(redeliver.FromError(redeliver.Permanent(errors.New("no such order"))))
	fmt.Println(redeliver.FromError(fmt.Errorf("calling the warehouse: %w", &httpError{Status: http.StatusTooManyRequests, RetryAfter: 90 * time.Second})))
	// Output:
	// ack
	// retry: connection reset
	// reject: no such order
	// retry after 1m30s: calling the warehouse: 429 Too Many Requests
}

// httpError is an application's error. Its Outcome makes it an Outcomer.
type httpError struct {
	Status     int
	RetryAfter time.Duration
}

func (e *httpError) Error() string { return fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status)) }

func (e *httpError) Outcome() redeliver.Outcome {
	if e.Status == http.StatusTooManyRequests {
		return redeliver.RetryAfter(e.RetryAfter, e)
	}
	return redeliver.Retry(e)
}

// A message whose prerequisite has not arrived waits. On RabbitMQ that is not counted; Amazon SQS
// counts every receive.
func ExampleDefer() {
	arrived := map[string]bool{}
	handler := redeliver.HandlerFunc(func(_ context.Context, msg *redeliver.Message) redeliver.Outcome {
		if !arrived[msg.CorrelationID] {
			return redeliver.Defer()
		}
		return redeliver.Ack()
	})
	fmt.Println(handler.Handle(context.Background(), &redeliver.Message{CorrelationID: "order-1"}))
	arrived["order-1"] = true
	fmt.Println(handler.Handle(context.Background(), &redeliver.Message{CorrelationID: "order-1"}))
	// Output:
	// defer
	// ack
}
