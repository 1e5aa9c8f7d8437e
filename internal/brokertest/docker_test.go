package brokertest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestDockerRunArgs(t *testing.T) {
	t.Parallel()
	dir := &workDir{path: "/w/redeliver-broker-7"}
	args := docker{image: "rabbitmq:4.3-management"}.runArgs(dir, "redeliver-broker-7", ports{amqp: 20001, management: 20002, secure: 20003}, Options{Settings: []string{"a 1", "b 2"}})
	line := strings.Join(args, " ")
	for _, want := range []string{
		"run --rm --interactive",
		"--cidfile /w/redeliver-broker-7/container",
		"--publish 127.0.0.1:20001:5672",
		"--publish 127.0.0.1:20002:15672",
		"--publish 127.0.0.1:20003:5671",
		"--volume /w/redeliver-broker-7:/mnt:ro",
		"--env RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS= -rabbit a 1 -rabbit b 2",
		"--volume redeliver-broker-7:/var/lib/rabbitmq",
		"--entrypoint sh rabbitmq:4.3-management -c",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is missing in %q", want, line)
		}
	}
	if i := slices.Index(args, "--publish"); i < 0 || strings.HasPrefix(args[i+1], "0.0.0.0") {
		t.Errorf("a port is published beyond the loopback interface: %v", args)
	}
}

// TestContainerScript runs the container's script here, with a stand-in for the image's entry point.
func TestContainerScript(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, server string
		end          func(t *testing.T, cmd *exec.Cmd, stdin io.Closer)
		output       string
		code         int
	}{
		{
			name:   "our end stops the server",
			server: "trap 'echo stopped; exit 0' TERM; echo ready; while :; do sleep 0.05; done",
			end: func(t *testing.T, _ *exec.Cmd, stdin io.Closer) {
				if err := stdin.Close(); err != nil {
					t.Error(err)
				}
			},
			output: "ready\nstopped\n",
		},
		{
			name:   "TERM stops the server",
			server: "trap 'echo stopped; exit 3' TERM; echo ready; while :; do sleep 0.05; done",
			end: func(t *testing.T, cmd *exec.Cmd, _ io.Closer) {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Error(err)
				}
			},
			output: "ready\nstopped\n",
			code:   3,
		},
		{
			name:   "the server's end ends the container",
			server: "echo ready; exit 5",
			end:    func(*testing.T, *exec.Cmd, io.Closer) {},
			output: "ready\n",
			code:   5,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			if err := os.WriteFile(filepath.Join(bin, "docker-entrypoint.sh"), []byte("#!/bin/sh\n"+test.server+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/bin/sh", "-c", containerScript)
			cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var out syncWriter
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			WaitFor(t, func() (bool, string) {
				return strings.Contains(out.String(), "ready"), "the script did not run the server"
			})
			test.end(t, cmd, stdin)
			state, err := cmd.Process.Wait() // not cmd.Wait, which closes stdin
			if err != nil {
				t.Fatal(err)
			}
			_ = stdin.Close()
			_ = cmd.Wait()
			if state.ExitCode() != test.code || out.String() != test.output {
				t.Errorf("exit status %d, output %q; want %d, %q", state.ExitCode(), out.String(), test.code, test.output)
			}
		})
	}
}
