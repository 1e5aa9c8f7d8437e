package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
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
	consumer, err := rabbitmq.Open(ctx, rabbitmq.Config{
		URL:      os.Getenv("AMQP_URL"),
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
	return redeliver.FromError(ship(ctx, o)) // nil: acknowledged; an error: retried
}

func ship(context.Context, order) error { return nil }

// What went wrong at start-up is matched by type.
func ExampleOpen_missingQueue() {
	_, err := rabbitmq.Open(context.Background(), rabbitmq.Config{ /* ... */ })
	var bind *redeliver.BindError
	switch {
	case errors.Is(err, redeliver.ErrQueueNotFound) && errors.As(err, &bind):
		fmt.Printf("apply the topic %q in vhost %q first\n", bind.Topic, bind.VHost)
	case err != nil:
		fmt.Println(err)
	}
	// Output: opening a consumer: there is no manifest: read one with redeliver.LoadManifest, ManifestFromEnv or ParseManifest
}
