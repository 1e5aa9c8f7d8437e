// Command redeliver is for the people who are on call: it holds manifests against a live broker, shows the state of
// topics, and looks into dead-letter and parked queues, replays, moves and purges them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/command"
)

// version is set when a release is built.
var version = "dev"

func main() {
	os.Exit(run())
}

// hintAfter is how long after Ctrl-C it is said that there is a quicker end.
const hintAfter = time.Second

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
		hint := time.After(hintAfter)
		for {
			select {
			case <-hint:
				fmt.Fprintln(os.Stderr, "redeliver: ending in good order; Ctrl-C again ends at once")
			case <-signals:
				os.Exit(command.ExitFailed)
			}
		}
	}()
	return command.Run(ctx, version, os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}
