// Package demo is what the demonstrations have in common: a program that cleans
// up after itself also when it is interrupted, and a working directory of
// Terraform with the provider as it is in this repository.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Main runs a demonstration until it ends or is interrupted, and says what went
// wrong. It exits where something did.
func Main(run func(ctx context.Context) error) {
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

// cleanupError says that something the demonstration made is still there.
type cleanupError struct{ error }

// CleanUp adds to err what went wrong while something was removed.
func CleanUp(err *error, remove func() error) {
	if failed := remove(); failed != nil {
		*err = errors.Join(*err, cleanupError{fmt.Errorf("cleaning up: %w", failed)})
	}
}

// Heading begins a part of the demonstration.
func Heading(text string) {
	fmt.Printf("\n%s\n%s\n", text, strings.Repeat("-", len(text)))
}
