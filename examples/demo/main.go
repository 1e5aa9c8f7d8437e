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
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
		return
	case !interrupted:
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
	case errors.As(err, new(cleanupError)):
		fmt.Fprintln(os.Stderr, "\ndemo: interrupted, and something was left:", err)
	default:
		fmt.Fprintln(os.Stderr, "\ndemo: interrupted; everything was cleaned up")
	}
	os.Exit(1)
}

// cleanupError says that something the demo made is still there.
type cleanupError struct{ error }

// cleanUp adds to err what went wrong while something was removed.
func cleanUp(err *error, remove func() error) {
	if failed := remove(); failed != nil {
		*err = errors.Join(*err, cleanupError{fmt.Errorf("cleaning up: %w", failed)})
	}
}

// delays are the quickstart's, shortened so that nobody has to wait for minutes.
const delays = `["500ms", "1s", "2s"]`

func run(ctx context.Context) (err error) {
	cli, err := findCLI()
	if err != nil {
		return err
	}
	heading("1. A broker")
	b, err := openBroker(ctx)
	if err != nil {
		return err
	}
	defer cleanUp(&err, b.close)
	fmt.Printf("RabbitMQ %s at %s, vhost %s\n", b.version, b.endpoint, b.vhost)

	heading("2. " + cli.name + " apply provisions the topology (examples/quickstart)")
	ws, err := newWorkspace(ctx, cli, b)
	if err != nil {
		return err
	}
	defer cleanUp(&err, ws.close)
	if err := ws.run(ctx, ws.dir(), cli.path, "plan", "-input=false", "-out=plan"); err != nil {
		return err
	}
	if err := ws.show(ctx, "apply", "plan"); err != nil {
		return err
	}
	manifest, permissions, err := ws.outputs(ctx)
	if err != nil {
		return err
	}

	heading("3. A consumer that may read one queue, and write to one exchange to park")
	fmt.Printf("its user's permissions: configure=%s  write=%s  read=%s\n\n", permissions.Configure, permissions.Write, permissions.Read)
	url, err := b.consumerURL(ctx, permissions)
	if err != nil {
		return err
	}
	if err := consume(ctx, b, url, manifest); err != nil {
		return err
	}

	heading("4. " + cli.name + " plan finds nothing to do")
	if err := ws.show(ctx, "plan"); err != nil {
		return err
	}

	heading("5. Somebody makes a hold queue anew by hand, with another x-message-ttl")
	if err := b.tamper(ctx, manifest.VHost(), "orders-hold-1s", 1500); err != nil {
		return err
	}
	if err := ws.show(ctx, "plan"); err != nil {
		return err
	}
	fmt.Println("\nThe plan names the argument, both values and what they mean for messages. Cleaning up.")
	return nil
}

func heading(text string) {
	fmt.Printf("\n%s\n%s\n", text, strings.Repeat("-", len(text)))
}

// since prints how long ago start was, as the demo's events are timed.
func since(start time.Time) string { return fmt.Sprintf("%7.3fs", time.Since(start).Seconds()) }
