package brokertest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

//go:embed scripts/apt-install.sh
var aptInstallScript string

// aptInstall installs Debian packages without starting any service. It runs as root, or through sudo where
// that asks for no password.
func aptInstall(ctx context.Context, progress io.Writer, packages ...string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("cannot install it here: there is no apt-get")
	}
	line := append([]string{"/bin/sh", "-c", aptInstallScript, "apt-install"}, packages...)
	if os.Geteuid() != 0 {
		if err := exec.CommandContext(ctx, "sudo", "-n", "true").Run(); err != nil {
			return errors.New("cannot install it here: that needs root, or sudo without a password")
		}
		line = append([]string{"sudo", "-n"}, line...)
	}
	fmt.Fprintf(progress, "installing %v with apt-get; no service is started\n", packages)
	if err := runScript(ctx, progress, line); err != nil {
		return fmt.Errorf("installing %v with apt-get: %w", packages, err)
	}
	return nil
}

// runScript runs a command line and ends all its processes with ctx. It shows the command's output only if
// that fails: apt's says nothing that a reader of test results wants to know.
func runScript(ctx context.Context, progress io.Writer, line []string) error {
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	out, err := cmd.CombinedOutput()
	if err != nil {
		fmt.Fprintf(progress, "%s\n", lastBytes(out, tailBytes))
		return errors.Join(err, ctx.Err())
	}
	return nil
}
