package sqstest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// envHelper makes the test binary play a process that starts an emulator, says where it is, and waits to be killed.
const envHelper = "SQSTEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(envHelper) == "" {
		os.Exit(m.Run())
	}
	s, err := startShared(FauxQS)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(strings.TrimPrefix(s.Endpoint(), "http://"))
	_, _ = io.ReadAll(os.Stdin) // until the test kills this process, or ends
}

// TestDiesWithUs: an emulator ends with the process that started it, even when that is killed.
func TestDiesWithUs(t *testing.T) {
	t.Parallel()
	Faux(t) // installed, or skipped
	helper := exec.Command(os.Args[0], "-test.run=^$")
	helper.Env = append(os.Environ(), envHelper+"=1")
	helper.Stderr = os.Stderr
	stdin, err := helper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the helper did not start an emulator")
	}
	address := lines.Text()
	if !listens(address) {
		t.Fatalf("nothing listens at %s", address)
	}
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = helper.Wait()
	for begun := time.Now(); listens(address); {
		if time.Since(begun) > 30*time.Second {
			t.Fatalf("the emulator at %s outlived the process that started it", address)
		}
	}
}

func listens(address string) bool {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// TestStop: a service that somebody started can be stopped, twice.
func TestStop(t *testing.T) {
	t.Parallel()
	Faux(t) // installed, or skipped
	s, err := Start(t.Context(), FauxQS)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if listens(strings.TrimPrefix(s.Endpoint(), "http://")) {
		t.Error("it still listens")
	}
	if _, err := Start(t.Context(), "none"); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("starting an emulator that there is not: %v", err)
	}
}
