// Command sqs counts the requests that a consumer makes on Amazon SQS, which are
// what it costs there, against an emulator (fauxqs).
//
//	make bench-sqs
//	bin/bench-sqs -messages 2000
//
// A request returns, deletes or changes up to 10 messages, so that 0.1 requests a
// message is the floor for each of these. Requests are counted on their way to the
// emulator: those for messages until the work queue is empty, and those of an idle
// consumer in a minute.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"

	"github.com/redeliver/terraform-provider-redeliver/bench/results"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest"
)

const exitUsage = 64

func main() {
	flags := flag.NewFlagSet("bench-sqs", flag.ContinueOnError)
	messages := flags.Int("messages", 10_000, "how many messages a run settles")
	output := flags.String("o", "", "write the results to this `file`, as JSON")
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *messages, *output, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-sqs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, messages int, output string, out io.Writer) (err error) {
	if err := sqstest.Install(ctx); err != nil {
		return err
	}
	service, err := sqstest.Start(ctx, sqstest.FauxQS)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, service.Stop()) }()
	var figures []results.Figure
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "run\tfigure\tvalue\tfloor\tunit\tgoal")
	for _, s := range scenes(messages) {
		counts, err := s.play(ctx, service)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		for _, f := range s.figures(counts) {
			fmt.Fprintf(w, "%s\t%s\t%.3f\t%.3f\t%s\t%s\n", s.name, f.Name, f.Value, f.Baseline, f.Unit, s.verdict(f))
			f.Name = s.name + "_" + f.Name
			figures = append(figures, f)
		}
	}
	if err := w.Flush(); err != nil || output == "" {
		return err
	}
	return results.Write(output, figures)
}
