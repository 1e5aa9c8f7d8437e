package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/sqs"
)

type order struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
}

// A consumer as a service runs it: it ends on SIGTERM, after the handlers that
// run have returned, and at once on a second one.
func Example() {
	ctx, stop := redeliver.ShutdownSignals(context.Background())
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err) // at start-up it says what infrastructure has to provide
	}
}

func run(ctx context.Context) error {
	manifest, err := redeliver.LoadManifest("orders.manifest.json")
	if err != nil {
		return err
	}
	consumer, err := sqs.Open(ctx, sqs.Config{
		Manifest: manifest,
		Handler:  redeliver.JSON(handleOrder),
		Consumer: redeliver.Config{Workers: 16, HandlerTimeout: 30 * time.Second},
	})
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}

func handleOrder(ctx context.Context, o order, _ *redeliver.Message) redeliver.Outcome {
	if o.Version > 2 {
		return redeliver.Park(fmt.Errorf("version %d is not known", o.Version))
	}
	return redeliver.FromError(ship(ctx, o)) // nil: deleted; an error: retried
}

func ship(context.Context, order) error { return nil }

// What went wrong at start-up is matched by type.
func ExampleOpen_missingPermission() {
	_, err := sqs.Open(context.Background(), sqs.Config{ /* ... */ })
	var bind *redeliver.BindError
	switch {
	case errors.Is(err, redeliver.ErrPermission) && errors.As(err, &bind):
		fmt.Printf("allow %s on %s\n", bind.Action, bind.ARN)
	case err != nil:
		fmt.Println(err)
	}
	// Output: opening a consumer: there is no manifest: read one with redeliver.LoadManifest, ManifestFromEnv or ParseManifest
}
