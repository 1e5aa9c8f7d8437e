package command_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/transfer"
)

// TestInterruptedInspect ends looks by Ctrl-C and by SIGKILL: every message is still there, once.
func TestInterruptedInspect(t *testing.T) {
	const n = 8000
	b := setup(t)
	b.provision(b.spec())
	ids := numbered("m", n)
	b.publish("orders-dlq", ids...)
	ch := brokertest.Channel(t, b.broker, b.vhost)
	ready := func() int {
		q, err := ch.QueueDeclarePassive("orders-dlq", true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		return q.Messages
	}
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGKILL} {
		var out bytes.Buffer
		cmd := b.command("dlq", "inspect", "orders.json", "--limit", "0")
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ready() == n; {
			if time.Now().After(deadline) {
				t.Fatalf("nothing is looked at: %s", &out)
			}
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) {
			t.Fatalf("it ended with %v before %v", err, signal)
		}
		if text := out.String(); signal == os.Interrupt && (exit.ExitCode() != 2 || !strings.Contains(text, "Ctrl-C")) || strings.Contains(text, "m00000") {
			t.Errorf("%v: exit code %d, %s", signal, exit.ExitCode(), text)
		}
		b.waitDepth("orders-dlq", n)
	}
	if got := slices.Sorted(slices.Values(b.drained("orders-dlq"))); !slices.Equal(got, ids) {
		t.Errorf("%d messages are there, and not each once", len(got))
	}
}

// TestInterruptedReplay interrupts the replay of 50,000 messages twice, once by Ctrl-C and once by SIGKILL, and lets it
// end: every message is there, and no more of them twice than were on their way when it was killed.
func TestInterruptedReplay(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	const n = 50_000
	b := setup(t)
	b.provision(b.spec())
	b.publish("orders-dlq", numbered("m", n)...)
	ch := brokertest.Channel(t, b.broker, b.vhost)
	// replay runs until the topic's queue has so many messages, and then sends the signal.
	replay := func(until int, signal os.Signal) (*exec.Cmd, string) {
		t.Helper()
		var out bytes.Buffer
		cmd := b.command("dlq", "replay", "orders.json")
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(2 * time.Minute); ; {
			q, err := ch.QueueDeclarePassive("orders", true, false, false, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			if q.Messages >= until {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d messages are back: %s", q.Messages, &out)
			}
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) {
			t.Fatalf("it ended with %v before it was interrupted: %s", err, &out)
		}
		return cmd, out.String()
	}
	cmd, out := replay(1000, os.Interrupt)
	if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(out, "interrupted") || !strings.Contains(out, "nothing is lost") {
		t.Errorf("after Ctrl-C: exit code %d, %s", code, out)
	}
	// Nothing was on its way any more: what is not here is there.
	back := brokertest.Depth(t, b.broker, b.vhost, "orders")
	b.waitDepth("orders-dlq", n-back)
	_, _ = replay(back+1000, syscall.SIGKILL)
	b.run("dlq", "replay", "orders.json").exits(0).says("0 left")
	b.waitDepth("orders-dlq", 0)

	times := map[string]int{}
	total := brokertest.Depth(t, b.broker, b.vhost, "orders")
	deliveries, err := ch.Consume("orders", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range total {
		d := <-deliveries
		times[d.MessageId]++
	}
	duplicates := 0
	for _, k := range times {
		duplicates += k - 1
	}
	t.Logf("%d messages, %d of them twice", len(times), duplicates)
	if len(times) != n || duplicates > transfer.DefaultPrefetch {
		t.Errorf("%d of %d messages are there, %d of them twice", len(times), n, duplicates)
	}
}
