package brokertest

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestHasVersion(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		have, want string
		expected   bool
	}{
		{"3.10.8", "3.10", true},
		{"3.10.8", "3.10.8", true},
		{"3.10.8", "3.10.9", false},
		{"3.10.8", "3.9", true},
		{"3.10.8", "4.0", false},
		{"4.3.6", "4.3", true},
		{"4.3.0-rc.1", "4.3", true},
		{"4.0.5+1", "4", true},
		{"4.0.5", "4.3", false},
	} {
		if got := HasVersion(&Broker{version: test.have}, test.want); got != test.expected {
			t.Errorf("HasVersion(%s, %s) = %v", test.have, test.want, got)
		}
	}
	if got := Series(&Broker{version: "4.0.5"}); got != "4.0" {
		t.Errorf("Series(4.0.5) = %s", got)
	}
}

func TestCheckSeries(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"4", "4.3", "3.10.8"} {
		if err := checkSeries(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "latest", "4.3/../..", "4.3.1.2", "-1", "4.3-rc.1"} {
		if err := checkSeries(bad); err == nil {
			t.Errorf("%q passes as a series", bad)
		}
	}
}

func TestPickPorts(t *testing.T) {
	t.Parallel()
	p, err := pickPorts()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	low, known := ephemeralLow()
	for _, port := range []int{p.amqp, p.management, p.distribution, p.epmd, p.secure} {
		if seen[port] {
			t.Errorf("port %d is picked twice", port)
		}
		seen[port] = true
		if port == 5672 || port == 15672 || port == 4369 || port == defaultDistributionPort {
			t.Errorf("port %d belongs to a RabbitMQ service", port)
		}
		if known && low > firstPort+1000 && port >= low {
			t.Errorf("port %d is in the kernel's own range, from %d", port, low)
		}
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Errorf("port %d is not free: %v", port, err)
			continue
		}
		l.Close()
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	b := newBroker("127.0.0.1:1", "127.0.0.1:2", "me", "p@ss")
	for _, test := range []struct{ got, want string }{
		{b.AMQPURL("/"), "amqp://me:p%40ss@127.0.0.1:1/%2F"},
		{b.AMQPURL("a/b c"), "amqp://me:p%40ss@127.0.0.1:1/a%2Fb%20c"},
		{b.AMQPURLAs("v", "you", "x"), "amqp://you:x@127.0.0.1:1/v"},
		{b.ManagementURL(), "http://127.0.0.1:2"},
	} {
		if test.got != test.want {
			t.Errorf("got %s, want %s", test.got, test.want)
		}
	}
}

func TestExternal(t *testing.T) {
	t.Parallel()
	b, err := external("amqp://a:b@127.0.0.1:1/%2F", "http://c:d@127.0.0.1:2/")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.ManagementURL(), "http://127.0.0.1:2"; got != want {
		t.Errorf("management at %s, want %s", got, want)
	}
	if b.Username() != "c" || b.Password() != "d" || b.Dir() != "" {
		t.Errorf("got %s:%s in %q", b.Username(), b.Password(), b.Dir())
	}
	if err := b.Stop(); err != nil {
		t.Errorf("Stop on a broker that is not ours: %v", err)
	}
	for name, err := range map[string]error{"Kill": b.Kill(), "Halt": b.Halt(), "Restart": b.Restart(t.Context())} {
		if !errors.Is(err, errNotOurs) {
			t.Errorf("%s on a broker that is not ours: %v", name, err)
		}
	}
	for _, urls := range [][2]string{
		{"http://a:b@h:1", "http://a:b@h:2"},
		{"amqp://a:b@h:1", "h:2"},
		{"amqp://h:1", "http://a:b@h:2"},
		{"amqp://a:b@h:1", "http://%zz"},
	} {
		if _, err := external(urls[0], urls[1]); err == nil || !strings.Contains(err.Error(), "REDELIVER_TEST_") {
			t.Errorf("external(%q): %v, want an error that names the variable", urls, err)
		}
	}
}

func TestWorkDirSweep(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := func(name string, files ...string) string {
		path := filepath.Join(parent, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(path, file), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	dead := dir("redeliver-broker-1", lockName, "console.log")
	foreign := dir("another-dir", lockName)
	fresh := dir("redeliver-broker-2")
	live, err := newWorkDir(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := live.remove(); err != nil {
			t.Error(err)
		}
	}()

	sweep(t.Context(), parent)
	sweep(t.Context(), filepath.Dir(live.path))
	for path, want := range map[string]bool{dead: false, foreign: true, fresh: true, live.path: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: there is %v, want %v", path, err == nil, want)
		}
	}
}

func TestUniqueName(t *testing.T) {
	t.Parallel()
	a, b := uniqueName("Test/with spaces&é"), uniqueName("Test/with spaces&é")
	if a == b {
		t.Errorf("%s came twice", a)
	}
	if strings.ContainsAny(a, "/ &é") || !strings.HasPrefix(a, "Test-with-spaces") {
		t.Errorf("%s needs escaping or is not readable", a)
	}
}

func TestUnknownSeriesIsRefused(t *testing.T) {
	t.Parallel()
	_, err := ensureRoot(t.Context(), "2.8", nil)
	if err == nil || !strings.Contains(err.Error(), "Docker") {
		t.Errorf("got %v, want an error that says what to do", err)
	}
	if _, err := Start(t.Context(), Options{Version: "../etc"}); err == nil {
		t.Error("a version that is a path was accepted")
	}
}

func TestLockFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockFile(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lockFile(ended, name); !errors.Is(err, context.Canceled) {
		t.Errorf("a second lock while the first is held: %v", err)
	}
	unlock()
	unlock, err = lockFile(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
