package brokertest

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// envHelper makes the test binary play a process that starts something, says what, and waits to be killed.
const envHelper = "BROKERTEST_HELPER"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(envHelper) {
	case "":
		os.Exit(m.Run())
	case "process":
		err = helpWithProcess()
	case "broker":
		err = helpWithBroker()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.ReadAll(os.Stdin) // until the test kills this process, or ends
}

// helpWithProcess starts a program that is reached through a chain of execs, as the Erlang VM is.
func helpWithProcess() error {
	cmd := exec.Command("/bin/sh", "-c", "exec env sleep 1000")
	p, err := startProcess(cmd, true, os.DevNull, nil)
	if err != nil {
		return err
	}
	fmt.Println(p.cmd.Process.Pid)
	return nil
}

// helpWithBroker starts a node.
func helpWithBroker() error {
	n, err := startHelperNode()
	if err != nil {
		return err
	}
	fmt.Println(n.server.cmd.Process.Pid, n.epmd.cmd.Process.Pid, n.dir.path)
	return nil
}
