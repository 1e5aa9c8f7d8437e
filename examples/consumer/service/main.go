// Command service consumes two topics as one service: with a codec of its own,
// middleware, a health endpoint and OpenTelemetry.
//
//	terraform output -raw orders_manifest   > orders.manifest.json
//	terraform output -raw invoices_manifest > invoices.manifest.json
//	AMQP_URL=amqp://user:password@localhost:5672 go run ./service
//	curl localhost:8080/readyz
//
// The first SIGTERM or SIGINT begins one shutdown of both topics, the second
// ends the process at once.
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redeliverotel"
)

func main() {
	var s service
	flag.StringVar(&s.ordersManifest, "orders", "orders.manifest.json", "file with the manifest of the topic orders")
	flag.StringVar(&s.invoicesManifest, "invoices", "invoices.manifest.json", "file with the manifest of the topic invoices")
	listen := flag.String("listen", "localhost:8080", "where health is asked for")
	flag.Parse()
	s.url, s.log = os.Getenv("AMQP_URL"), slog.Default()
	if err := s.main(*listen); err != nil {
		slog.Error("the service ended", "error", err)
		os.Exit(1)
	}
}

// service is everything that the service needs from outside.
type service struct {
	url                              string
	ordersManifest, invoicesManifest string
	log                              *slog.Logger
	telemetry                        redeliverotel.Config
	ship                             func(context.Context, order) error
	book                             func(context.Context, invoice) error
}

func (s service) main(listen string) error {
	ctx, stop := redeliver.ShutdownSignals(context.Background())
	defer stop()

	// Add the exporters of your choice: sdkmetric.WithReader(...), sdktrace.WithBatcher(...).
	meters, traces := sdkmetric.NewMeterProvider(), sdktrace.NewTracerProvider()
	s.telemetry = redeliverotel.Config{MeterProvider: meters, TracerProvider: traces}
	s.ship = func(context.Context, order) error { return nil }
	s.book = func(context.Context, invoice) error { return nil }

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	err = s.run(ctx, listener)

	// Last of all: what consumers counted in their shutdown is exported too.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, meters.Shutdown(ctx), traces.Shutdown(ctx))
}

// run serves until ctx is done or a consumer gives up.
func (s service) run(ctx context.Context, listener net.Listener) error {
	group, err := s.open(ctx)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: healthHandler(group.Health), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }() // until it is closed
	defer server.Close()
	return group.Run(ctx)
}

// open opens a consumer for each topic. What is missing on the broker is an
// error here, at start-up, that says what infrastructure has to provide.
func (s service) open(ctx context.Context) (*redeliver.Group, error) {
	telemetry, err := redeliverotel.New(s.telemetry)
	if err != nil {
		return nil, err
	}
	orders, err := s.consumer(ctx, s.ordersManifest, redeliver.JSON(s.handleOrder), telemetry)
	if err != nil {
		return nil, err
	}
	invoices, err := s.consumer(ctx, s.invoicesManifest, redeliver.Typed(packedJSON[invoice]{}, s.handleInvoice), telemetry)
	if err != nil {
		return nil, errors.Join(err, orders.Close())
	}
	return redeliver.NewGroup(orders, invoices), nil
}

func (s service) consumer(ctx context.Context, manifestPath string, handler redeliver.Handler, telemetry redeliver.Telemetry) (*rabbitmq.Consumer, error) {
	manifest, err := redeliver.LoadManifest(manifestPath)
	if err != nil {
		return nil, err
	}
	return rabbitmq.Open(ctx, rabbitmq.Config{
		URL:      s.url,
		Manifest: manifest,
		Handler:  redeliver.Chain(handler, logged(s.log), new(once).middleware),
		Consumer: redeliver.Config{HandlerTimeout: 30 * time.Second, Logger: s.log, Telemetry: telemetry},
	})
}

// order and invoice are the bodies of messages.
type order struct {
	ID string `json:"id"`
}

type invoice struct {
	Number int `json:"number"`
	Cents  int `json:"cents"`
}

func (s service) handleOrder(ctx context.Context, o order, _ *redeliver.Message) redeliver.Outcome {
	return redeliver.FromError(s.ship(ctx, o))
}

func (s service) handleInvoice(ctx context.Context, i invoice, _ *redeliver.Message) redeliver.Outcome {
	if i.Cents < 0 {
		return redeliver.Reject(errors.New("the amount is negative"))
	}
	return redeliver.FromError(s.book(ctx, i))
}
