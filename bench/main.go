// Command bench compares a consumer of this module with bare amqp091-go loops
// that do the same work, on one broker, in one run.
//
//	make bench
//	bin/withbroker -- bin/bench -only ack_coalesced_p1000_w8 -messages 50000 -runs 3 -cpuprofile bin/cpu
//
// Absolute figures say little about another machine, or about this one an hour
// later: every figure is set against the bare loop's. The two take turns (ours,
// bare, ours, bare, ...), each run on a queue of its own that was filled before,
// and a figure's ratio is the median of the ratios of its pairs.
//
// The rates are rates of settlements that the queue has taken, not of calls that
// returned. A quorum queue sends a consumer with prefetch p message n + p when it
// has taken the n-th settlement, and not before. So a queue is filled with n + p
// messages, and the time runs from the first delivery to the one of message
// n + p. Then p more are published: when they too have come, every message
// before them was settled, and one that came twice would show in the count.
//
// See cases.go for what is compared with what.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/pprof"
	"syscall"

	"github.com/redeliver/terraform-provider-redeliver/bench/results"
	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

const exitUsage = 64

// options say how much is measured, and where the results go.
type options struct {
	url        string
	messages   int            // timed in each run
	held       int            // deliveries that are held at a time
	runs       int            // of each loop
	only       *regexp.Regexp // the figures to measure; nil is all of them
	output     string         // the file for the results; "" is none
	cpuProfile string
	memProfile string
}

func main() {
	o := options{held: heldDeliveries}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.url, "url", "", "the broker's AMQP `URL`, with the vhost to use (default: that of withbroker)")
	flags.IntVar(&o.messages, "messages", 200_000, "how many messages a run settles")
	flags.IntVar(&o.runs, "runs", 5, "how many runs each loop has")
	flags.StringVar(&o.output, "o", "", "write the results to this `file`, as JSON")
	flags.StringVar(&o.cpuProfile, "cpuprofile", "", "write CPU profiles of the last run of each loop to files whose names begin with this `prefix`")
	flags.StringVar(&o.memProfile, "memprofile", "", "write a profile of all allocations to this `file`")
	flags.Func("only", "measure the figures whose name matches this `regexp`", func(s string) (err error) {
		o.only, err = regexp.Compile(s)
		return err
	})
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(exitUsage)
	}
	if o.url == "" { // not a default of the flag, which would print the password
		o.url = os.Getenv(brokertest.EnvAMQPURL)
	}
	if err := o.validate(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(exitUsage)
	}
	if o.memProfile != "" {
		runtime.MemProfileRate = 4 << 10
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o options) validate() error {
	switch {
	case o.url == "":
		return fmt.Errorf("no broker: run it with bin/withbroker, or name one with -url or in %s", brokertest.EnvAMQPURL)
	case o.messages < 1 || o.held < 1 || o.runs < 1:
		return errors.New("-messages and -runs are at least 1")
	default:
		return nil
	}
}

// run measures, prints the table to out and tells of progress on messages.
func run(ctx context.Context, o options, out, messages io.Writer) error {
	selected := selectCases(o.only)
	if len(selected) == 0 {
		return fmt.Errorf("no figure's name matches %q", o.only)
	}
	p, err := openPlace(o)
	if err != nil {
		return err
	}
	defer p.close()
	before := results.LoadAverage()
	fmt.Fprintf(messages, "bench: RabbitMQ %s, load average %s; warming up\n", p.version, before)
	if err := warmUp(ctx, p); err != nil {
		return err
	}
	var rows []row
	for _, c := range selected {
		measured, err := c.measure(ctx, p, messages)
		if err != nil {
			return err
		}
		rows = append(rows, measured...)
	}
	if o.memProfile != "" {
		if err := writeAllocs(o.memProfile); err != nil {
			return err
		}
	}
	if err := printTable(out, p, before, rows); err != nil {
		return err
	}
	if o.output == "" {
		return nil
	}
	return writeResults(o.output, rows)
}

func writeAllocs(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("creating the memory profile: %w", err)
	}
	runtime.GC() // the profile is as of the last collection
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
