package redeliver

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// ShutdownSignals returns a context that ends with the first SIGINT or SIGTERM,
// which begins the shutdown of what runs with it; context.Cause names the signal.
// A second one is from somebody who does not want to wait for the drain timeout:
// it ends the process at once, with the exit status that a shell gives to a
// process that was killed by it (130 or 143) and without running deferred
// functions. What was being handled is delivered again by the broker.
//
//	ctx, stop := redeliver.ShutdownSignals(context.Background())
//	defer stop()
//	return consumer.Run(ctx)
//
// stop ends the context and gives the signals back their usual effect. It may be
// called more than once.
func ShutdownSignals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2) // room for both: Notify drops what nobody is ready for
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for first := true; ; first = false {
			select {
			case s := <-signals:
				if !first {
					os.Exit(killedBy(s))
				}
				cancel(fmt.Errorf("shutting down: received the signal %q", s))
			case <-quit:
				return
			}
		}
	}()
	return ctx, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(quit)
		<-ended
		cancel(nil)
	})
}

// killedBy is the exit status of a process that a signal ended, as a shell has it.
func killedBy(s os.Signal) int {
	const status = 128
	if number, ok := s.(syscall.Signal); ok {
		return status + int(number)
	}
	return 1
}
