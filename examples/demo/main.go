// Command demo shows the whole idea against a real broker: Terraform
// provisions a retry topology, a small consumer lives on it with read
// permission and little more, and a plan catches an argument that was changed
// by hand. It cleans up after itself, also when it fails or is interrupted.
//
// It uses the broker that REDELIVER_RABBITMQ_ENDPOINTS,
// REDELIVER_RABBITMQ_USERNAME, REDELIVER_RABBITMQ_PASSWORD and
// REDELIVER_DEMO_AMQP_URL name, in a vhost of its own, or starts a private one
// on loopback.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/examples/internal/demo"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func main() { demo.Main(run) }

// delays are the quickstart's, shortened so that nobody has to wait for minutes.
const delays = `["500ms", "1s", "2s"]`

func run(ctx context.Context) (err error) {
	cli, err := demo.FindCLI()
	if err != nil {
		return err
	}
	demo.Heading("1. A broker")
	b, err := openBroker(ctx)
	if err != nil {
		return err
	}
	defer demo.CleanUp(&err, b.close)
	fmt.Printf("RabbitMQ %s at %s, vhost %s\n", b.version, b.endpoint, b.vhost)

	demo.Heading("2. " + cli.Name + " apply provisions the topology (examples/quickstart)")
	ws, err := demo.New(ctx, cli, "quickstart",
		"TF_VAR_vhost="+b.vhost, "TF_VAR_delays="+delays,
		"REDELIVER_RABBITMQ_ENDPOINTS="+b.endpoint, "REDELIVER_RABBITMQ_USERNAME="+b.username, "REDELIVER_RABBITMQ_PASSWORD="+b.password,
	)
	if err != nil {
		return err
	}
	defer demo.CleanUp(&err, ws.Close)
	if err := ws.Run(ctx, "plan", "-input=false", "-out=plan"); err != nil {
		return err
	}
	if err := ws.Show(ctx, "apply", "plan"); err != nil {
		return err
	}
	manifest, permissions, err := outputs(ctx, ws)
	if err != nil {
		return err
	}

	demo.Heading("3. A consumer that may read one queue, and write to one exchange to park")
	fmt.Printf("its user's permissions: configure=%s  write=%s  read=%s\n\n", permissions.Configure, permissions.Write, permissions.Read)
	url, err := b.consumerURL(ctx, permissions)
	if err != nil {
		return err
	}
	if err := consume(ctx, b, url, manifest); err != nil {
		return err
	}

	demo.Heading("4. " + cli.Name + " plan finds nothing to do")
	if err := ws.Show(ctx, "plan"); err != nil {
		return err
	}

	demo.Heading("5. Somebody makes a hold queue anew by hand, with another x-message-ttl")
	if err := b.tamper(ctx, manifest.VHost(), "orders-hold-1s", 1500); err != nil {
		return err
	}
	if err := ws.Show(ctx, "plan"); err != nil {
		return err
	}
	fmt.Println("\nThe plan names the argument, both values and what they mean for messages. Cleaning up.")
	return nil
}

type permissions struct {
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// outputs reads what the applied configuration computed for the consumer.
func outputs(ctx context.Context, ws *demo.Workspace) (redeliver.Manifest, permissions, error) {
	var outputs struct {
		Manifest struct {
			Value string `json:"value"`
		} `json:"manifest"`
		Permissions struct {
			Value permissions `json:"value"`
		} `json:"consumer_permissions"`
	}
	if err := ws.Outputs(ctx, &outputs); err != nil {
		return redeliver.Manifest{}, permissions{}, err
	}
	manifest, err := redeliver.ParseManifest([]byte(outputs.Manifest.Value))
	return manifest, outputs.Permissions.Value, err
}

// since prints how long ago start was, as the demo's events are timed.
func since(start time.Time) string { return fmt.Sprintf("%7.3fs", time.Since(start).Seconds()) }
