package redeliver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// childVariable makes this test's program the child that the signals go to.
const childVariable = "REDELIVER_TEST_SIGNAL_CHILD"

// TestSignalChild is no test: it is a service that hangs in its shutdown, or
// one that stops listening to signals.
func TestSignalChild(t *testing.T) {
	role := os.Getenv(childVariable)
	if role == "" {
		t.Skip("only as a child of the tests of ShutdownSignals")
	}
	ctx, stop := redeliver.ShutdownSignals(context.Background())
	defer fmt.Println("deferred") // which a second signal does not run
	if role == "stopped" {
		stop()
		stop()
		fmt.Println(ctx.Err())
		select {}
	}
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println(context.Cause(ctx))
	if role == "clean" {
		stop()
		return
	}
	select {}
}

// child is the program of this test, playing a role.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func newChild(t *testing.T, role string) *child {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSignalChild$")
	cmd.Env = append(os.Environ(), childVariable+"="+role)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &child{t, cmd, bufio.NewScanner(out)}
}

func (c *child) says(want string) {
	c.t.Helper()
	if !c.lines.Scan() || c.lines.Text() != want {
		c.t.Fatalf("the child says %q, want %q (%v)", c.lines.Text(), want, c.lines.Err())
	}
}

func (c *child) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// ended waits for the child and returns how it ended and what it said in the end.
func (c *child) ended() (state *os.ProcessState, rest string) {
	c.t.Helper()
	for c.lines.Scan() {
		rest += c.lines.Text() + "\n"
	}
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, io.EOF) {
		c.t.Fatal(err)
	}
	return c.cmd.ProcessState, rest
}

// The first signal ends the context, the second the process, whichever they are.
func TestShutdownSignals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		first, second syscall.Signal
		cause         string
		status        int
	}{
		{syscall.SIGTERM, syscall.SIGTERM, `shutting down: received the signal "terminated"`, 143},
		{syscall.SIGINT, syscall.SIGINT, `shutting down: received the signal "interrupt"`, 130},
		{syscall.SIGTERM, syscall.SIGINT, `shutting down: received the signal "terminated"`, 130},
	} {
		c := newChild(t, "hangs")
		c.says("ready")
		c.signal(tt.first)
		c.says(tt.cause)
		c.signal(tt.second)
		if state, rest := c.ended(); state.ExitCode() != tt.status || rest != "" {
			t.Errorf("%v, %v: ended with %v, %q", tt.first, tt.second, state, rest)
		}
	}
}

// A shutdown that is done in time is the program's own.
func TestShutdownSignalsClean(t *testing.T) {
	t.Parallel()
	c := newChild(t, "clean")
	c.says("ready")
	c.signal(syscall.SIGTERM)
	c.says(`shutting down: received the signal "terminated"`)
	c.says("deferred")
	if state, _ := c.ended(); !state.Success() {
		t.Error(state)
	}
}

// After stop the signals have their usual effect again.
func TestShutdownSignalsStop(t *testing.T) {
	t.Parallel()
	c := newChild(t, "stopped")
	c.says("context canceled")
	c.signal(syscall.SIGTERM)
	state, _ := c.ended()
	if status, ok := state.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Error(state)
	}
}

func TestShutdownSignalsEndsWithItsParent(t *testing.T) {
	t.Parallel()
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, stop := redeliver.ShutdownSignals(parent)
	defer stop()
	cancel(errBoom)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), errBoom) {
		t.Error(context.Cause(ctx))
	}
}
