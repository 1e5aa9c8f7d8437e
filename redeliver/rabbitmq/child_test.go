package rabbitmq_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
)

// envChild makes the test binary play a consumer in a process of its own. It holds a childConfig.
const envChild = "REDELIVER_TEST_CHILD"

type childConfig struct {
	URL      string
	Manifest json.RawMessage
	Seed     uint64
}

func TestMain(m *testing.M) {
	text := os.Getenv(envChild)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := runChild(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runChild consumes until it is killed, or until standard input ends because the test did. Before a handler returns it
// prints what it is going to say, so that the test knows of everything that was done.
func runChild(text string) error {
	var cfg childConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	manifest, err := redeliver.ParseManifest(cfg.Manifest)
	if err != nil {
		return err
	}
	book := newLedger(cfg.Seed)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	c, err := rabbitmq.Open(ctx, rabbitmq.Config{
		URL: cfg.URL, Manifest: manifest, Consumer: redeliver.Config{Logger: slog.New(slog.DiscardHandler)},
		Handler: redeliver.HandlerFunc(func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			o, boom := book.decide()
			if _, err := fmt.Printf("%s %d\n", m.ID, o.Kind()); err != nil {
				return redeliver.Retry(err)
			}
			if boom {
				panic("boom")
			}
			return o
		}),
	})
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// child starts a consumer in a process of its own and returns what kills it.
func (tr *trial) child() (kill func()) {
	tr.Helper()
	text, err := json.Marshal(childConfig{URL: tr.w.url(), Manifest: tr.w.doc.Encode(), Seed: uint64(tr.book.handled())})
	if err != nil {
		tr.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+string(text))
	var said strings.Builder
	cmd.Stderr = &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tr.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		tr.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tr.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var id string
			var kind redeliver.OutcomeKind
			if _, err := fmt.Sscan(lines.Text(), &id, &kind); err == nil {
				tr.book.begin(id, kind)
				tr.book.end(id)
			}
		}
	}()
	dead := false
	kill = func() {
		if dead {
			return
		}
		dead = true
		_ = cmd.Process.Kill()
		_ = stdin.Close() // after that: its end would shut the consumer down
		<-read            // everything that it printed
		_ = cmd.Wait()
		if said.Len() > 0 {
			tr.Errorf("a consumer's process said: %s", said.String())
		}
	}
	tr.Cleanup(kill)
	return kill
}
