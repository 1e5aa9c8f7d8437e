package redeliverotel_test

import (
	"context"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redeliverotel"
)

// One telemetry is for all consumers of the process. The providers get readers
// and exporters of the application's choice.
func Example() {
	meters := sdkmetric.NewMeterProvider( /* sdkmetric.WithReader(...) */ )
	traces := sdktrace.NewTracerProvider( /* sdktrace.WithBatcher(...) */ )
	telemetry, err := redeliverotel.New(redeliverotel.Config{MeterProvider: meters, TracerProvider: traces})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = rabbitmq.Open(context.Background(), rabbitmq.Config{
		/* URL, Manifest, Handler */
		Consumer: redeliver.Config{Telemetry: telemetry},
	})
	fmt.Println(err)
	// Output: opening a consumer: there is no manifest: read one with redeliver.LoadManifest, ManifestFromEnv or ParseManifest
}
