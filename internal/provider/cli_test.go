package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// built is the provider's binary, made once for all tests that run the command line itself: plugin-testing shows no
// warnings and no text of a plan.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// buildProvider returns the directory that holds the binary.
func buildProvider() (string, error) {
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "redeliver-provider-"); built.err != nil {
			return
		}
		build := exec.CommandContext(context.Background(), "go", "build", "-o", filepath.Join(built.dir, "terraform-provider-redeliver"), "../..")
		if out, err := build.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("building the provider: %w\n%s", err, out)
		}
	})
	return built.dir, built.err
}

func removeBuilt() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}

// commandLine is a working directory in which the real command line runs with the real provider.
type commandLine struct {
	b        *bundle
	dir, bin string
	env      []string
}

// commandLine makes a working directory with this configuration.
func (b *bundle) commandLine(config string) *commandLine {
	b.t.Helper()
	c := &commandLine{b: b, dir: b.t.TempDir(), bin: os.Getenv("TF_ACC_TERRAFORM_PATH")}
	for _, name := range []string{"terraform", "tofu"} {
		if c.bin == "" {
			c.bin, _ = exec.LookPath(name)
		}
	}
	if c.bin == "" {
		b.t.Skip("neither terraform nor tofu is on PATH")
	}
	provider, err := buildProvider()
	if err != nil {
		b.t.Fatal(err)
	}
	rc := filepath.Join(c.dir, "cli.tfrc")
	c.write("cli.tfrc", fmt.Sprintf("provider_installation {\n  dev_overrides { \"redeliver/redeliver\" = %q }\n  direct {}\n}\n", provider))
	for _, variable := range os.Environ() {
		// What the test's provider is configured with is in the test.
		if !strings.HasPrefix(variable, "REDELIVER_") && !strings.HasPrefix(variable, "TF_") {
			c.env = append(c.env, variable)
		}
	}
	c.env = append(c.env, "TF_CLI_CONFIG_FILE="+rc, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	c.configure(config)
	return c
}

// configure replaces the configuration.
func (c *commandLine) configure(config string) {
	c.b.t.Helper()
	c.write("main.tf", "terraform {\n  required_providers {\n    redeliver = { source = \"redeliver/redeliver\" }\n  }\n}\n"+config)
}

func (c *commandLine) write(name, content string) {
	c.b.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600); err != nil {
		c.b.t.Fatal(err)
	}
}

// try runs a command and returns what it printed.
func (c *commandLine) try(args ...string) (string, error) {
	c.b.t.Helper()
	cmd := exec.CommandContext(c.b.t.Context(), c.bin, args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// interrupt runs a command, presses Ctrl-C as soon as a condition holds, and returns what the command printed.
func (c *commandLine) interrupt(when func() bool, args ...string) string {
	c.b.t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(c.b.t.Context(), c.bin, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, &out, &out
	if err := cmd.Start(); err != nil {
		c.b.t.Fatal(err)
	}
	brokertest.WaitFor(c.b.t, func() (bool, string) { return when(), "not yet" })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		c.b.t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		c.b.t.Errorf("%s succeeded although it was interrupted", strings.Join(args, " "))
	}
	return out.String()
}

func (c *commandLine) must(args ...string) string {
	c.b.t.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.b.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (c *commandLine) mustNot(args ...string) string {
	c.b.t.Helper()
	out, err := c.try(args...)
	if err == nil {
		c.b.t.Fatalf("%s succeeded, and should not:\n%s", strings.Join(args, " "), out)
	}
	return out
}

// apply and plan run with these further arguments; those that end in Fails expect an error.
func (c *commandLine) apply(more ...string) string {
	c.b.t.Helper()
	return c.must(append([]string{"apply", "-no-color", "-input=false", "-auto-approve"}, more...)...)
}

func (c *commandLine) applyFails(more ...string) string {
	c.b.t.Helper()
	return c.mustNot(append([]string{"apply", "-no-color", "-input=false", "-auto-approve"}, more...)...)
}

func (c *commandLine) plan(more ...string) string {
	c.b.t.Helper()
	return c.must(append([]string{"plan", "-no-color", "-input=false"}, more...)...)
}

func (c *commandLine) planFails(more ...string) string {
	c.b.t.Helper()
	return c.mustNot(append([]string{"plan", "-no-color", "-input=false"}, more...)...)
}

// stateResource is a resource as the command line knows it.
type stateResource struct {
	Address string
	Tainted bool
	Values  map[string]any
}

// state is what the command line knows now, by address.
func (c *commandLine) state() map[string]stateResource {
	c.b.t.Helper()
	cmd := exec.CommandContext(c.b.t.Context(), c.bin, "show", "-json")
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.Output()
	if err != nil {
		c.b.t.Fatal(err)
	}
	var shown struct {
		Values struct {
			Root struct{ Resources []stateResource } `json:"root_module"`
		}
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		c.b.t.Fatal(err)
	}
	state := map[string]stateResource{}
	for _, r := range shown.Values.Root.Resources {
		state[r.Address] = r
	}
	return state
}

// expect checks that a text has the texts in it, in this order.
func expect(t *testing.T, text string, texts ...string) {
	t.Helper()
	if !says(texts...).MatchString(text) {
		t.Errorf("expected %q, in this order, in:\n%s", texts, shortened(text))
	}
}

// expectNot checks that a text does not have any of the texts in it.
func expectNot(t *testing.T, text string, texts ...string) {
	t.Helper()
	for _, unwanted := range texts {
		if says(unwanted).MatchString(text) {
			t.Errorf("did not expect %q in:\n%s", unwanted, shortened(text))
		}
	}
}

// shortened keeps the end of a long text, where a command says what came of it.
func shortened(text string) string {
	const keep = 12_000
	if len(text) <= keep {
		return text
	}
	return "[...]" + text[len(text)-keep:]
}
