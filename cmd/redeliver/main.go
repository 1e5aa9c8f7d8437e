// Command redeliver is for the people who are on call: it holds manifests against a live broker, shows the state of
// topics, and looks into dead-letter and parked queues, replays, moves and purges them.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redeliver/terraform-provider-redeliver/internal/command"
)

// version is set when a release is built.
var version = "dev"

func main() {
	os.Exit(run())
}

// run ends in good order at the first Ctrl-C, and at once at the second.
func run() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go func() {
		<-signals
		cancel(command.ErrInterrupted)
		<-signals
		os.Exit(command.ExitFailed)
	}()
	return command.Run(ctx, version, os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}
