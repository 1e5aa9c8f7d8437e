package sqstest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startTimeout bounds a start. It takes a second; the rest is for machines that run a test suite meanwhile.
	startTimeout = time.Minute
	// stopTimeout is how long an emulator may take to end by itself.
	stopTimeout = 10 * time.Second
	// ready is how an emulator's program says that it serves, followed by its port.
	ready = "ready "
)

// process is an emulator's process. It ends when its standard input does: when stop closes that, or when this process
// has ended, however it did.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   *tail
	done  chan struct{} // closed when the process was waited for
	err   error         // of Wait; valid after done
}

var errEnded = errors.New("its process has ended")

// startProcess runs a program in dir and waits until it serves.
func startProcess(ctx context.Context, dir, script string) (*process, string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cmd := exec.Command(nodeIn(dir), "--no-warnings", script) //nolint:noctx // it outlives the start
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NODE_ENV=production", "NO_COLOR=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in the terminal reaches us and not the emulator
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	p := &process{cmd: cmd, stdin: stdin, log: &tail{}, done: make(chan struct{})}
	serves := make(chan string, 1)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, p.log
	go p.read(out, serves)
	if err := cmd.Start(); err != nil {
		_ = in.Close()
		return nil, "", err
	}
	go func() {
		p.err = cmd.Wait()
		_ = in.Close()
		close(p.done)
	}()
	select {
	case port := <-serves:
		return p, "http://127.0.0.1:" + port, nil
	case <-p.done:
		err = fmt.Errorf("it ended at once: %w", errors.Join(errEnded, p.err))
	case <-ctx.Done():
		err = errors.Join(fmt.Errorf("it did not say that it serves: %w", ctx.Err()), p.stop())
	}
	return nil, "", fmt.Errorf("%s %s: %w\n%s", cmd.Path, script, err, p.log)
}

// read reads what the program prints: that it serves, and then its log.
func (p *process) read(out io.Reader, serves chan<- string) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if port, ok := strings.CutPrefix(lines.Text(), ready); ok {
			serves <- port
			break
		}
		_, _ = io.WriteString(p.log, lines.Text()+"\n")
	}
	_, _ = io.Copy(p.log, out)
}

// stop ends the process and waits for it. Stopping again does nothing.
func (p *process) stop() error {
	_ = p.stdin.Close()
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending process %d (%s): %w", p.cmd.Process.Pid, p.cmd.Path, err)
	}
	<-p.done
	return nil
}

// nodeIn is the Node that runs the programs: the one that is installed beside them, or the machine's. fauxqs needs 22.5.
func nodeIn(dir string) string {
	if path := filepath.Join(dir, "node_modules", "node-"+runtime.GOOS+"-x64", "bin", "node"); exists(path) {
		return path
	}
	return "node"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// tailBytes is how much a tail keeps.
const tailBytes = 8 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - tailBytes; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

// String is what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
