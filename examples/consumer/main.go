// Command consumer is an application that consumes the topic "orders" whose
// retry topology Terraform owns. It is a module of its own and uses the library
// as any application would.
//
//	terraform output -raw orders_manifest > orders.manifest.json
//	AMQP_URL=amqp://user:password@localhost:5672 go run . -manifest orders.manifest.json
//
// It ends on SIGINT or SIGTERM, after the handlers that run have returned. The
// folder service has a larger one: several topics, a codec, middleware, health
// and OpenTelemetry; deadletters handles what failed for good; onsqs is on Amazon
// SQS.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
)

func main() {
	manifest := flag.String("manifest", "orders.manifest.json", "file with the topic resource's manifest attribute")
	workers := flag.Int("workers", redeliver.DefaultWorkers, "messages that are handled at the same time")
	flag.Parse()

	ctx, stop := redeliver.ShutdownSignals(context.Background())
	err := run(ctx, os.Getenv("AMQP_URL"), *manifest, *workers)
	stop()
	if err != nil {
		slog.Error("the consumer ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, manifestPath string, workers int) error {
	manifest, err := redeliver.LoadManifest(manifestPath)
	if err != nil {
		return err
	}
	consumer, err := rabbitmq.Open(ctx, rabbitmq.Config{
		URL:      url,
		Manifest: manifest,
		Handler:  redeliver.JSON(handle),
		Consumer: redeliver.Config{Workers: workers, HandlerTimeout: 30 * time.Second},
	})
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}

// order is a message's body.
type order struct {
	ID      string `json:"id"`
	Version int    `json:"version"`
	Address string `json:"address"`
}

// newestVersion is the newest version of an order that this program can read.
const newestVersion = 2

// handle says what becomes of an order: one line for each outcome there is.
func handle(ctx context.Context, o order, msg *redeliver.Message) redeliver.Outcome {
	if o.Version > newestVersion {
		return redeliver.Park(fmt.Errorf("orders of version %d are not known here", o.Version))
	}
	if o.Address == "" {
		return redeliver.Reject(errors.New("the order has no address"))
	}
	switch paid, err := isPaid(ctx, o); {
	case err != nil:
		return redeliver.Retry(err)
	case !paid:
		return redeliver.Defer() // nothing failed: the payment is on its way
	}
	slog.InfoContext(ctx, "shipped", "order", o.ID, "attempt", msg.Attempt())
	return redeliver.Ack()
}

// isPaid stands for a call to another service.
func isPaid(ctx context.Context, o order) (bool, error) {
	return o.ID != "unpaid", ctx.Err()
}
