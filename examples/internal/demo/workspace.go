package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// CLI is the Terraform or OpenTofu that is installed.
type CLI struct{ Name, Path string }

// FindCLI looks for it on the PATH.
func FindCLI() (CLI, error) {
	for _, name := range []string{"terraform", "tofu"} {
		if path, err := exec.LookPath(name); err == nil {
			return CLI{name, path}, nil
		}
	}
	return CLI{}, errors.New("neither terraform nor tofu is on the PATH: install one of them (https://developer.hashicorp.com/terraform/install or https://opentofu.org/docs/intro/install)")
}

// Workspace is a copy of an example's configuration with the provider built beside it.
type Workspace struct {
	cli  CLI
	root string
	env  []string
}

// providerVersion is the version under which the freshly built provider is installed.
const providerVersion = "0.0.1"

// New makes a workspace of examples/EXAMPLE, and initialises it. Terraform and the provider get env beside the
// environment of this process.
func New(ctx context.Context, c CLI, example string, env ...string) (*Workspace, error) {
	root, err := os.MkdirTemp("", "redeliver-demo-")
	if err != nil {
		return nil, err
	}
	ws := &Workspace{cli: c, root: root, env: append(append(os.Environ(), "GOTMPDIR="+root), env...)}
	if err := ws.prepare(ctx, example); err != nil {
		return nil, errors.Join(err, ws.Close())
	}
	return ws, nil
}

// Close removes it. What was applied stays.
func (ws *Workspace) Close() error { return os.RemoveAll(ws.root) }

func (ws *Workspace) dir() string { return filepath.Join(ws.root, "configuration") }

// prepare builds the provider into a filesystem mirror, where Terraform looks instead of in a registry.
func (ws *Workspace) prepare(ctx context.Context, example string) error {
	if err := os.CopyFS(ws.dir(), os.DirFS(filepath.Join("examples", example))); err != nil {
		return fmt.Errorf("run the demo from the repository's root: %w", err)
	}
	mirror := filepath.Join(ws.root, "mirror")
	config := fmt.Sprintf("provider_installation {\n  filesystem_mirror { path = %q }\n}\n", mirror)
	configFile := filepath.Join(ws.root, "cli.tfrc")
	if err := os.WriteFile(configFile, []byte(config), 0o600); err != nil {
		return err
	}
	fmt.Println("building the provider ...")
	binary := filepath.Join(ws.root, "terraform-provider-redeliver_v"+providerVersion)
	if err := ws.run(ctx, ".", "go", "build", "-trimpath", "-o", binary, "."); err != nil {
		return err
	}
	for _, registry := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		home := filepath.Join(mirror, registry, "redeliver", "redeliver", providerVersion, runtime.GOOS+"_"+runtime.GOARCH)
		if err := os.MkdirAll(home, 0o700); err != nil {
			return err
		}
		if err := os.Link(binary, filepath.Join(home, filepath.Base(binary))); err != nil {
			return err
		}
	}
	ws.env = append(ws.env,
		"TF_CLI_CONFIG_FILE="+configFile, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1",
	)
	return ws.Run(ctx, "init", "-input=false", "-no-color")
}

// Show runs a command of the CLI and shows what it prints, up to its outputs: the manifest among them is long.
func (ws *Workspace) Show(ctx context.Context, command string, args ...string) error {
	args = append([]string{command, "-input=false"}, args...)
	if terminal, err := os.Stdout.Stat(); err != nil || terminal.Mode()&os.ModeCharDevice == 0 || os.Getenv("NO_COLOR") != "" {
		args = append(args, "-no-color")
	}
	fmt.Printf("$ %s %s\n", ws.cli.Name, strings.Join(args, " "))
	cmd := ws.command(ctx, ws.dir(), ws.cli.Path, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	shown := true
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if shown = shown && !strings.HasSuffix(lines.Text(), "Outputs:"); shown {
			fmt.Println(lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s %s: %w", ws.cli.Name, command, err)
	}
	return nil
}

// Run runs a command of the CLI, and shows what it printed only where it failed.
func (ws *Workspace) Run(ctx context.Context, args ...string) error {
	return ws.run(ctx, ws.dir(), ws.cli.Path, args...)
}

// run runs a command and shows what it printed only where it failed.
func (ws *Workspace) run(ctx context.Context, dir, name string, args ...string) error {
	if out, err := ws.command(ctx, dir, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func (ws *Workspace) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, ws.env
	// Ctrl-C reaches every process of the terminal's group: the command is told once, by Cancel.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

// Outputs reads the outputs of what was applied: into is a pointer to a struct with a field for each that is wanted.
func (ws *Workspace) Outputs(ctx context.Context, into any) error {
	text, err := ws.command(ctx, ws.dir(), ws.cli.Path, "output", "-json", "-no-color").Output()
	if err != nil {
		return fmt.Errorf("%s output: %w", ws.cli.Name, err)
	}
	return json.Unmarshal(text, into)
}
