package brokertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestProcessDiesWithItsParent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a process to its parent")
	}
	helper, line := startHelper(t, "process")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	if !alive(pid) {
		t.Fatalf("process %d is not there", pid)
	}
	killHelper(t, helper)
	WaitFor(t, func() (bool, string) { return !alive(pid), fmt.Sprintf("process %d outlives its parent", pid) })
}

func TestNodeDiesWithItsParent(t *testing.T) {
	t.Parallel()
	if os.Getenv(EnvAMQPURL) == "" {
		t.Skip(skipMessage)
	}
	helper, line := startHelper(t, "broker")
	var server, epmd int
	var dir string
	if _, err := fmt.Sscan(line, &server, &epmd, &dir); err != nil {
		t.Fatalf("the helper said %q: %v", line, err)
	}
	if !alive(server) || !alive(epmd) {
		t.Fatalf("server %d or epmd %d is not there", server, epmd)
	}
	children := descendants(t, server)
	killHelper(t, helper)
	for _, pid := range append(children, server, epmd) {
		WaitFor(t, func() (bool, string) { return !alive(pid), fmt.Sprintf("process %d outlives its parent", pid) })
	}
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || bytes.Contains(mounts, []byte(dir)) {
		t.Errorf("a mount of %s is left, or mounts cannot be read: %v", dir, err)
	}
	sweep(t.Context(), filepath.Dir(dir))
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next start does not remove the dead node's directory: %v", err)
	}
}

func TestProcessStop(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, script string }{
		{"one that obeys TERM", "echo ready; exec sleep 1000"},
		{"one that ignores TERM", "trap '' TERM; echo ready; exec sleep 1000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out syncWriter
			p, err := startProcess(exec.Command("/bin/sh", "-c", test.script), true, os.DevNull, &out)
			if err != nil {
				t.Fatal(err)
			}
			WaitFor(t, func() (bool, string) { return out.String() != "", "the program does not start" })
			if err := p.stop(100 * time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if !p.exited() || alive(p.cmd.Process.Pid) {
				t.Error("it runs after stop")
			}
			if err := errors.Join(p.stop(time.Millisecond), p.kill()); err != nil {
				t.Errorf("stopping it again: %v", err)
			}
		})
	}
}

func TestStartProcessSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := startProcess(exec.Command("/no/such/program"), true, os.DevNull, nil)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("got %v", err)
	}
}

// startHelperNode is what the helper process does; it inherits the version under test.
func startHelperNode() (*node, error) {
	opts := Options{Version: os.Getenv(EnvVersion), Progress: io.Discard}
	src, err := findSource(context.Background(), opts)
	if err != nil {
		return nil, err
	}
	return startNode(context.Background(), src, opts)
}

// startHelper runs this test binary as a helper and returns the line that it prints when it is ready.
func startHelper(t *testing.T, kind string) (*exec.Cmd, string) {
	t.Helper()
	if kind == "broker" {
		if _, isNative := mustFindSource(t).(native); !isNative {
			t.Skip("a container does not die at once, but when it notices")
		}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHelper+"="+kind)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // closes when this test dies
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var line []byte
	for one := make([]byte, 1); ; line = append(line, one[0]) {
		if _, err := stdout.Read(one); err != nil {
			t.Fatalf("the helper ended: %v", err)
		}
		if one[0] == '\n' {
			return cmd, string(line)
		}
	}
}

func mustFindSource(t *testing.T) source {
	t.Helper()
	src, err := findSource(t.Context(), Options{Version: os.Getenv(EnvVersion), Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func killHelper(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// processState returns the state letter and the parent of a process; ok is false when there is none.
func processState(pid int) (state string, parent int, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, false
	}
	rest := text[bytes.LastIndexByte(text, ')')+1:] // the name before may hold anything
	if _, err := fmt.Sscan(string(rest), &state, &parent); err != nil {
		return "", 0, false
	}
	return state, parent, true
}

// alive tells whether a process is there and not just waiting to be reaped.
func alive(pid int) bool {
	state, _, ok := processState(pid)
	return ok && state != "Z"
}

// descendants returns the processes below pid.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, name := range names {
		child, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if _, parent, ok := processState(child); ok && parent == pid {
			found = append(append(found, child), descendants(t, child)...)
		}
	}
	return found
}
