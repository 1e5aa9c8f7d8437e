package brokertest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child that dies with us.
//
// On Linux the kernel sends it SIGKILL when we end, even by SIGKILL (PR_SET_PDEATHSIG). Two things make
// that work. The signal is tied to the thread that forked the child, not to the process, so one goroutine
// keeps its thread from fork to wait. And the setting survives exec but not fork, so every program between
// us and the Erlang VM has to exec the next one: unshare, sh and chroot do, and the rabbitmq-server script
// does when it believes systemd started it (RUNNING_UNDER_SYSTEMD). A watchdog would need no such care, but
// would be one more process that somebody has to end.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child was waited for
	err  error         // of Wait; valid after done
}

// startProcess starts cmd in a process group of its own, so that a Ctrl-C in the terminal reaches us and
// not the broker. With tied, it dies with us. What it prints is appended to logFile, and copied to extra
// unless that is nil.
func startProcess(cmd *exec.Cmd, tied bool, logFile string, extra io.Writer) (*process, error) {
	output, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", cmd.Path, err)
	}
	cmd.Stdout = output
	if extra != nil {
		cmd.Stdout = io.MultiWriter(output, extra)
	}
	cmd.Stderr = cmd.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if tied {
		dieWithParent(cmd.SysProcAttr)
	}
	// A grandchild may hold our pipe for the node's output open; the node's own end is what counts.
	cmd.WaitDelay = 5 * time.Second

	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer output.Close()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("running %s: %w", cmd.Path, err)
	}
	return p, nil
}

// exited tells whether the child has ended.
func (p *process) exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// signal sends a signal to the child alone. A child that has ended is no error.
func (p *process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending %v to process %d (%s): %w", sig, p.cmd.Process.Pid, p.cmd.Path, err)
	}
	return nil
}

// wait waits until the child has ended and tells whether it did so in time.
func (p *process) wait(timeout time.Duration) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// stop sends TERM, waits, and kills the child when it does not end in time. It returns when the child is
// gone.
func (p *process) stop(timeout time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	if p.wait(timeout) {
		return nil
	}
	return p.kill()
}

// kill sends KILL and waits.
func (p *process) kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !p.wait(stopTimeout) {
		return fmt.Errorf("process %d (%s) is still there %v after SIGKILL", p.cmd.Process.Pid, p.cmd.Path, stopTimeout)
	}
	return nil
}
