package command_test

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// terminal is a run of the command on a terminal of its own.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	file *os.File
	done chan struct{}

	mu  sync.Mutex
	out strings.Builder
}

func (b *bundle) terminal(args ...string) *terminal {
	b.t.Helper()
	term := &terminal{t: b.t, cmd: b.command(args...), done: make(chan struct{})}
	var err error
	if term.file, err = pty.StartWithSize(term.cmd, &pty.Winsize{Rows: 40, Cols: 160}); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = term.file.Close() })
	go func() {
		defer close(term.done)
		buffer := make([]byte, 4096)
		for {
			n, err := term.file.Read(buffer)
			term.mu.Lock()
			term.out.Write(buffer[:n])
			term.mu.Unlock()
			if err != nil {
				return // the terminal goes with the command
			}
		}
	}()
	return term
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.out.String()
}

// waitFor waits until the terminal shows a text so many times.
func (term *terminal) waitFor(text string, times int) {
	term.t.Helper()
	brokertest.WaitFor(term.t, func() (bool, string) {
		out := term.text()
		return strings.Count(out, text) >= times, out
	})
}

func (term *terminal) types(text string) {
	term.t.Helper()
	if _, err := term.file.WriteString(text); err != nil {
		term.t.Fatal(err)
	}
}

// exits waits for the end.
func (term *terminal) exits(code int) string {
	term.t.Helper()
	_ = term.cmd.Wait()
	select {
	case <-term.done:
	case <-time.After(10 * time.Second):
	}
	if got := term.cmd.ProcessState.ExitCode(); got != code {
		term.t.Fatalf("exit code %d, want %d: %s", got, code, term.text())
	}
	return term.text()
}

const ctrlC = "\x03"

func TestWatch(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.settled(nil)
	term := b.terminal("status", "--watch", "--interval", "200ms", "orders.json")
	term.waitFor("\x1b[H", 3)
	term.waitFor("orders-hold-120s", 2)
	b.publish("orders-dlq", "one")
	term.waitFor("holds 1 message", 1)
	// screen is what is seen after the last drawing.
	screen := func(out string) string {
		drawings := strings.Split(out, "\x1b[H")
		seen, _, _ := strings.Cut(drawings[len(drawings)-1], "\x1b[J")
		return strings.NewReplacer("\x1b[K", "", "\r", "").Replace(seen)
	}
	if err := pty.Setsize(term.file, &pty.Winsize{Rows: 6, Cols: 30}); err != nil {
		t.Fatal(err)
	}
	term.waitFor("more lines: the terminal", 1)
	large, _, _ := strings.Cut(term.text(), "more lines: the terminal")
	large = screen(large[:strings.LastIndex(large, "\x1b[H")])
	large = regexp.MustCompile(`^\d\d:\d\d:\d\d`).ReplaceAllString(large, "HH:MM:SS")
	large = regexp.MustCompile(`(?m) +(\d+\.\d +)*(\d+\.\d)?$`).ReplaceAllString(large, "") // the rates
	b.golden("watch", result{t, large, "", 0})
	term.types(ctrlC)
	out := term.exits(0)
	if !strings.Contains(out, "\x1b[?25h") || !strings.Contains(out, "\x1b[31m") {
		t.Errorf("the cursor is not shown again, or nothing is red: %q", out)
	}
	small := strings.Split(strings.TrimSuffix(screen(out), "\n"), "\n")
	for _, line := range small {
		if text := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(line, ""); utf8.RuneCountInString(text) > 30 || len(small) > 5 {
			t.Errorf("%q is not on a terminal of 6 lines of 30", small)
		}
	}
	// Without a terminal each state is printed after the other.
	cmd := b.command("status", "--watch", "--interval", "200ms", "orders.json")
	plain, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	states := 0
	for lines := bufio.NewScanner(plain); lines.Scan(); {
		if strings.Contains(lines.Text(), "\x1b") {
			t.Errorf("a terminal's command where there is none: %q", lines.Text())
		}
		if strings.Contains(lines.Text(), "topic orders") {
			if states++; states == 2 {
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it was ended, and says %v", err)
	}
}

func TestPrompts(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.publish("orders-dlq", "one", "two")
	term := b.terminal("dlq", "purge", "orders.json")
	term.waitFor("Discard 2 messages", 1)
	term.types("n\r")
	if out := term.exits(1); !strings.Contains(out, "Nothing was discarded") {
		t.Error(out)
	}
	b.waitDepth("orders-dlq", 2)
	term = b.terminal("dlq", "purge", "orders.json")
	term.waitFor("[y/N]", 1)
	term.types(ctrlC)
	if out := term.exits(2); !strings.Contains(out, "Ctrl-C") {
		t.Error(out)
	}
	b.waitDepth("orders-dlq", 2)
	term = b.terminal("dlq", "purge", "orders.json")
	term.waitFor("[y/N]", 1)
	term.types("y\r")
	term.exits(0)
	b.waitDepth("orders-dlq", 0)

	// The password is asked for, and not shown.
	var env []string
	for _, variable := range b.env {
		if !strings.HasPrefix(variable, "REDELIVER_RABBITMQ_PASSWORD=") {
			env = append(env, variable)
		}
	}
	b.env = env
	term = b.terminal("dlq", "list", "orders.json")
	term.waitFor("Password of user", 1)
	term.types(ctrlC)
	term.exits(2)
	term = b.terminal("dlq", "list", "orders.json")
	term.waitFor("Password of user", 1)
	term.types(b.broker.Password() + "\r")
	if out := term.exits(0); strings.Contains(out, b.broker.Password()) {
		t.Error("the password was shown")
	}
}

// progressShown is a bar that says how many of how many messages, how fast, and how long it has taken and will take.
var progressShown = regexp.MustCompile(`orders-dlq +\d+% .*\([1-9]\d*/60, \d+ msg/s\) \[\d+s:\d+s\]`)

func TestProgressBar(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.publish("orders-dlq", numbered("m", 60)...)
	term := b.terminal("dlq", "replay", "orders.json", "--rate", "50")
	if out := term.exits(0); !strings.Contains(out, "60 replayed") || !progressShown.MatchString(out) {
		t.Errorf("%q", out)
	}
	// NO_COLOR is heard.
	b.publish("orders-dlq", "one")
	b.env = append(b.env, "NO_COLOR=1")
	if text := b.terminal("dlq", "list", "orders.json").exits(0); strings.Contains(text, "\x1b[1m") {
		t.Errorf("%q", text)
	}
}
