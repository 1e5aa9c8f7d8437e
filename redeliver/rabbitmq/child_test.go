package rabbitmq_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
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
	Name      string
	URL       string
	Addresses []string
	Manifest  json.RawMessage
	Sequenced bool
	Seed      uint64
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

// childSays is what a line of a consumer in a process of its own says, after its name: one of these, and about which
// message.
type childSays string

const (
	childConnected childSays = "connected"
	// childHandles comes with the kind of the outcome.
	childHandles childSays = "handles"
	childSettled childSays = "settled"
	// childDies and childGone are what the test itself writes, before it kills the process and when that can write no more.
	childDies childSays = "dies"
	childGone childSays = "gone"
)

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
	book := newLedger(cfg.Seed, cfg.Sequenced)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	say := func(what childSays, id string, kind redeliver.OutcomeKind) {
		if _, err := fmt.Printf("%s %s %q %d\n", cfg.Name, what, id, kind); err != nil {
			panic(err) // the test has ended
		}
	}
	c, err := rabbitmq.Open(ctx, rabbitmq.Config{
		URL: cfg.URL, Addresses: cfg.Addresses, Manifest: manifest,
		Consumer: redeliver.Config{
			Logger: slog.New(slog.DiscardHandler), Sequence: book.sequence(),
			OnEvent: func(e redeliver.Event) {
				switch e.Kind {
				case redeliver.EventConnected:
					say(childConnected, "", 0)
				case redeliver.EventAcked, redeliver.EventDeadLettered:
					say(childSettled, e.Message.ID, 0)
				}
			},
		},
		Handler: redeliver.HandlerFunc(func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			o, boom := book.decide(m)
			say(childHandles, m.ID, o.Kind())
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

// hear notes what consumers in processes of their own say.
func (b *ledger) hear(from io.Reader) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		var by, id string
		var what childSays
		var kind redeliver.OutcomeKind
		if _, err := fmt.Sscanf(lines.Text(), "%s %s %q %d", &by, &what, &id, &kind); err != nil {
			panic(fmt.Sprintf("a consumer said %q: %v", lines.Text(), err))
		}
		switch what {
		case childConnected:
			b.connected(by)
		case childHandles:
			b.begin(by, id, kind)
			b.end(id)
		case childSettled:
			b.settled(id)
		case childDies:
			b.dies(by)
		case childGone:
			b.ends(by)
		}
	}
}

// hearing returns the pipe that all consumers of the trial in processes of their own write to: what one of them wrote
// before another is read before it.
func (tr *trial) hearing() *os.File {
	tr.Helper()
	if tr.pipe != nil {
		return tr.pipe
	}
	from, to, err := os.Pipe()
	if err != nil {
		tr.Fatal(err)
	}
	tr.pipe = to
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		tr.book.hear(from)
	}()
	tr.Cleanup(func() {
		_ = to.Close()
		<-heard
		_ = from.Close()
	})
	return to
}

// child starts a consumer in a process of its own. It returns when that has subscribed, with what kills it.
func (tr *trial) child() (kill func()) {
	tr.Helper()
	pipe := tr.hearing()
	tr.children++
	name := fmt.Sprintf("child%d", tr.children)
	text, err := json.Marshal(childConfig{
		Name: name, URL: tr.w.url(), Addresses: tr.w.cluster.Addresses(), Manifest: tr.w.doc.Encode(), Sequenced: tr.w.spec.Sequenced, Seed: rand.Uint64(),
	})
	if err != nil {
		tr.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+string(text))
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = pipe, &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tr.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tr.Fatal(err)
	}
	write := func(what childSays) {
		if _, err := fmt.Fprintf(pipe, "%s %s %q %d\n", name, what, "", 0); err != nil {
			tr.Error(err)
		}
	}
	dead := false
	kill = func() {
		if dead {
			return
		}
		dead = true
		write(childDies)
		_ = cmd.Process.Kill()
		_ = stdin.Close() // after that: its end would shut the consumer down
		_ = cmd.Wait()
		if said.Len() > 0 {
			tr.Errorf("a consumer's process said: %s", said.String())
		}
		write(childGone)
		tr.wait(func() (bool, string) { return tr.book.heard(name), "not everything was read that " + name + " wrote" })
		tr.spare += tr.prefetch() // whatever it had comes again
	}
	tr.Cleanup(kill)
	tr.kills = append(tr.kills, kill)
	tr.wait(func() (bool, string) { return tr.book.sessions(name) > 0, name + " does not subscribe" })
	return kill
}

// killAll kills all consumers in processes of their own.
func (tr *trial) killAll() {
	tr.Helper()
	for _, kill := range tr.kills {
		kill()
	}
}
