package main

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

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// cli is the Terraform or OpenTofu that is installed.
type cli struct{ name, path string }

func findCLI() (cli, error) {
	for _, name := range []string{"terraform", "tofu"} {
		if path, err := exec.LookPath(name); err == nil {
			return cli{name, path}, nil
		}
	}
	return cli{}, errors.New("neither terraform nor tofu is on the PATH: install one of them (https://developer.hashicorp.com/terraform/install or https://opentofu.org/docs/intro/install)")
}

// workspace is a copy of the quickstart with the provider built beside it.
type workspace struct {
	cli  cli
	root string
	env  []string
}

// providerVersion is the version under which the freshly built provider is installed.
const providerVersion = "0.0.1"

func newWorkspace(ctx context.Context, c cli, b *broker) (*workspace, error) {
	root, err := os.MkdirTemp("", "redeliver-demo-")
	if err != nil {
		return nil, err
	}
	ws := &workspace{cli: c, root: root, env: append(os.Environ(), "GOTMPDIR="+root)}
	if err := ws.prepare(ctx, b); err != nil {
		return nil, errors.Join(err, ws.close())
	}
	return ws, nil
}

func (ws *workspace) close() error { return os.RemoveAll(ws.root) }

func (ws *workspace) dir() string { return filepath.Join(ws.root, "quickstart") }

// prepare builds the provider into a filesystem mirror, where Terraform looks instead of in a registry.
func (ws *workspace) prepare(ctx context.Context, b *broker) error {
	if err := os.CopyFS(ws.dir(), os.DirFS("examples/quickstart")); err != nil {
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
		"TF_VAR_vhost="+b.vhost, "TF_VAR_delays="+delays,
		"REDELIVER_RABBITMQ_ENDPOINTS="+b.endpoint, "REDELIVER_RABBITMQ_USERNAME="+b.username, "REDELIVER_RABBITMQ_PASSWORD="+b.password,
	)
	return ws.run(ctx, ws.dir(), ws.cli.path, "init", "-input=false", "-no-color")
}

// show runs a command of the CLI and shows what it prints, up to its outputs: the manifest among them is long.
func (ws *workspace) show(ctx context.Context, command string, args ...string) error {
	args = append([]string{command, "-input=false"}, args...)
	if terminal, err := os.Stdout.Stat(); err != nil || terminal.Mode()&os.ModeCharDevice == 0 || os.Getenv("NO_COLOR") != "" {
		args = append(args, "-no-color")
	}
	fmt.Printf("$ %s %s\n", ws.cli.name, strings.Join(args, " "))
	cmd := ws.command(ctx, ws.dir(), ws.cli.path, args...)
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
		return fmt.Errorf("%s %s: %w", ws.cli.name, command, err)
	}
	return nil
}

// run runs a command and shows what it printed only where it failed.
func (ws *workspace) run(ctx context.Context, dir, name string, args ...string) error {
	if out, err := ws.command(ctx, dir, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func (ws *workspace) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, ws.env
	// Ctrl-C reaches every process of the terminal's group: the command is told once, by Cancel.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

type permissions struct {
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// outputs reads what the applied configuration computed for the consumer.
func (ws *workspace) outputs(ctx context.Context) (redeliver.Manifest, permissions, error) {
	var outputs struct {
		Manifest struct {
			Value string `json:"value"`
		} `json:"manifest"`
		Permissions struct {
			Value permissions `json:"value"`
		} `json:"consumer_permissions"`
	}
	text, err := ws.command(ctx, ws.dir(), ws.cli.path, "output", "-json", "-no-color").Output()
	if err != nil {
		return redeliver.Manifest{}, permissions{}, fmt.Errorf("%s output: %w", ws.cli.name, err)
	}
	if err := json.Unmarshal(text, &outputs); err != nil {
		return redeliver.Manifest{}, permissions{}, err
	}
	manifest, err := redeliver.ParseManifest([]byte(outputs.Manifest.Value))
	return manifest, outputs.Permissions.Value, err
}
