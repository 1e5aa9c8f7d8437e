// Command provider measures what a large estate costs: a real terraform applies, plans and destroys thousands of queues
// with the provider, and the same requests are then sent bare, in the same run, to the same broker.
//
//	make bench-provider
//	bin/withbroker -- bin/bench-provider -provider bin/terraform-provider-redeliver -topics 50
//
// Between the provider and the broker is a proxy that counts requests and remembers them. What an apply wrote is then
// sent to another vhost, through the same proxy, by as many senders as terraform has walkers, which is the bare time. What terraform itself
// takes for a configuration of this size is measured with a provider that has the same schemas, leaves the same states and
// does nothing (idle.go). So the time of an apply is set against the sum of the two.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/redeliver/terraform-provider-redeliver/bench/results"
)

const exitUsage = 64

// options say what is measured.
type options struct {
	provider, terraform, output string
	topics, parallelism         int
	// keep leaves the estate to the deletion of its vhost: no destroy is measured.
	keep bool
}

func main() {
	if isPlugin() {
		if err := serveIdle(); err != nil {
			fmt.Fprintln(os.Stderr, "bench-provider:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flags := flag.NewFlagSet("bench-provider", flag.ContinueOnError)
	flags.StringVar(&o.provider, "provider", "", "the provider's `program`")
	flags.StringVar(&o.terraform, "terraform", "terraform", "the `program` that applies, terraform or tofu")
	flags.IntVar(&o.topics, "topics", 1000, "how many topics, each with three tiers, a dead-letter queue and a parked queue")
	flags.IntVar(&o.parallelism, "parallelism", 10, "how many walkers terraform has, and how many senders the bare run")
	flags.BoolVar(&o.keep, "no-destroy", false, "measure no destroy, the longest of the three")
	flags.StringVar(&o.output, "o", "", "write the results to this `file`, as JSON")
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(exitUsage)
	}
	if o.provider == "" || o.topics < 1 || o.parallelism < 1 {
		fmt.Fprintln(os.Stderr, "bench-provider: -provider names the provider's program; -topics and -parallelism are at least 1")
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-provider:", err)
		os.Exit(1)
	}
}

// run measures everything, prints the table to out, writes the results and tells of progress on messages.
func run(ctx context.Context, o options, out, messages io.Writer) (err error) {
	b, err := openBroker()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "redeliver-bench-")
	if err != nil {
		return fmt.Errorf("making a directory to work in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.provider, err = filepath.Abs(o.provider); err != nil {
		return fmt.Errorf("finding the provider: %w", err)
	}
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, which is the idle provider too: %w", err)
	}

	states := filepath.Join(dir, "states.json")
	fmt.Fprintf(messages, "bench-provider: RabbitMQ %s, load average %s; with the provider\n", b.version, results.LoadAverage())
	proxy, err := b.openProxy(ctx)
	if err != nil {
		return err
	}
	defer proxy.close()
	real, err := measure(ctx, o, messages, b, filepath.Join(dir, "real"), o.provider, states, proxy)
	if err != nil {
		return err
	}
	fmt.Fprintf(messages, "bench-provider: load average %s; the same requests, bare\n", results.LoadAverage())
	vhost := vhostPrefix + "bare"
	if err := b.makeVHost(ctx, vhost); err != nil {
		return err
	}
	// The queues stay: quorum queues take some processor time when idle, which terraform had to do without while the real
	// provider was measured, and so it has now.
	defer func() { err = errors.Join(err, b.deleteVHost(ctx, vhost)) }()
	bare, err := replay(ctx, b.behind(proxy), o.parallelism, real, vhost)
	if err != nil {
		return fmt.Errorf("sending the same requests bare: %w", err)
	}
	fmt.Fprintf(messages, "bench-provider: load average %s; terraform alone\n", results.LoadAverage())
	idle, err := measure(ctx, o, messages, b, filepath.Join(dir, "idle"), own, states, nil)
	if err != nil {
		return fmt.Errorf("with a provider that does nothing: %w", err)
	}
	return report(o, out, b, real, idle, bare)
}
