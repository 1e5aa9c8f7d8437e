// Command onsqs is an application that consumes the topic "orders" on Amazon
// SQS, and what has failed there for good.
//
//	terraform output -raw orders_manifest > orders.manifest.json
//	cd examples/consumer && go run ./onsqs -manifest /path/to/orders.manifest.json
//
// Credentials come from where the AWS SDK finds them; build_iam_policy says the
// little that they must allow. The handlers are what they would be on RabbitMQ:
// only Open is another package's.
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
	"github.com/redeliver/terraform-provider-redeliver/redeliver/sqs"
)

func main() {
	manifest := flag.String("manifest", "orders.manifest.json", "file with the topic resource's manifest attribute")
	flag.Parse()

	ctx, stop := redeliver.ShutdownSignals(context.Background())
	err := run(ctx, *manifest)
	stop()
	if err != nil {
		slog.Error("the consumer ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, manifestPath string) error {
	manifest, err := redeliver.LoadManifest(manifestPath)
	if err != nil {
		return err
	}
	// A handler may take longer than the queue's visibility timeout: that is extended as long as the handler runs.
	orders, err := sqs.Open(ctx, sqs.Config{
		Manifest: manifest,
		Handler:  redeliver.JSON(handle),
		Consumer: redeliver.Config{HandlerTimeout: 5 * time.Minute},
	})
	if err != nil {
		return err
	}
	dead, err := sqs.HandleDead(ctx, sqs.Config{Manifest: manifest}, tell)
	if err != nil {
		return errors.Join(err, orders.Close())
	}
	return redeliver.NewGroup(orders, dead).Run(ctx)
}

// order is a message's body.
type order struct {
	ID      string `json:"id"`
	Address string `json:"address"`
}

// handle says what becomes of an order.
func handle(ctx context.Context, o order, _ *redeliver.Message) redeliver.Outcome {
	if o.Address == "" {
		return redeliver.Reject(errors.New("the order has no address"))
	}
	// On SQS every receive counts, those after a Defer and after a crash included.
	return redeliver.FromError(ship(ctx, o)) // nil: done; an error: again after the next delay
}

// errClosed is why an order cannot be shipped on Sundays.
var errClosed = errors.New("the warehouse is closed")

func ship(_ context.Context, o order) error {
	if o.ID == "sunday" {
		return errClosed
	}
	return nil
}

// tell hears of a message that failed for good. It is gone from the dead-letter
// queue when tell returns nil.
func tell(_ context.Context, msg *redeliver.DeadMessage) error {
	slog.Error("an order was not shipped", "body", fmt.Sprintf("%.200s", msg.Body), "reason", msg.Reason)
	return nil
}
