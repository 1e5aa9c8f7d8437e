package main

import (
	"bytes"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"-version", "4.3"}, {"-no-such-flag", "--", "true"}} {
		if code := run(args, io.Discard); code != exitUsage {
			t.Errorf("run(%q) = %d, want %d", args, code, exitUsage)
		}
	}
}

func TestRunCommandReturnsTheStatus(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		line []string
		want int
	}{
		{[]string{"true"}, 0},
		{[]string{"sh", "-c", "exit 7"}, 7},
		{[]string{"sh", "-c", "kill -KILL $$"}, 128 + 9},
		{[]string{"sh", "-c", `test "$WITHBROKER_TEST" = yes`}, 0},
		{[]string{"/no/such/command"}, exitNoBroker},
	} {
		var messages bytes.Buffer
		if got := runCommand(test.line, []string{"WITHBROKER_TEST=yes"}, nil, &messages); got != test.want {
			t.Errorf("%q: exit status %d, want %d\n%s", test.line, got, test.want, &messages)
		}
	}
}

func TestRunCommandPassesSignalsToTheWholeGroup(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	// The inner sleep would keep the outer shell from ending if the signal reached the shell alone.
	if got := runCommand([]string{"sh", "-c", "sleep 1000; exit 3"}, nil, signals, io.Discard); got != 128+15 {
		t.Errorf("exit status %d, want %d", got, 128+15)
	}
}

func TestWithBroker(t *testing.T) {
	t.Parallel()
	if os.Getenv(brokertest.EnvAMQPURL) == "" {
		t.Skip("no broker: run make test")
	}
	version := os.Getenv(brokertest.EnvVersion)
	var messages bytes.Buffer
	code := withBroker(brokertest.Options{Version: version}, []string{"sh", "-c", `
		case $REDELIVER_TEST_AMQP_URL in amqp://*:*@127.0.0.1:*/%2F) ;; *) exit 11 ;; esac
		case $REDELIVER_TEST_MANAGEMENT_URL in http://*:*@127.0.0.1:*) ;; *) exit 12 ;; esac
		case $REDELIVER_RABBITMQ_ENDPOINTS in http://127.0.0.1:*) ;; *) exit 13 ;; esac
		test "$REDELIVER_DEMO_AMQP_URL" = "$REDELIVER_TEST_AMQP_URL" || exit 14
		test -n "$REDELIVER_RABBITMQ_USERNAME" -a -n "$REDELIVER_RABBITMQ_PASSWORD" || exit 15
		test -n "$REDELIVER_TEST_BROKER_VERSION" || exit 16
		exit 7`}, &messages)
	if code != 7 {
		t.Errorf("exit status %d, want 7\n%s", code, &messages)
	}
}
