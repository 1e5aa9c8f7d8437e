package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/bench/results"
	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// TestMain serves the idle provider where terraform started this program.
func TestMain(m *testing.M) {
	if isPlugin() {
		if err := serveIdle(); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// TestSmoke measures so few topics that the figures mean nothing, so that the benchmark still works when somebody wants
// it. What it counts means something: a plan without changes does not ask more for more.
func TestSmoke(t *testing.T) {
	t.Parallel()
	brokertest.Shared(t)
	if os.Getenv("TF_ACC") == "" {
		t.Skip("no TF_ACC: run make test")
	}
	dir := t.TempDir()
	o := options{
		provider: filepath.Join(dir, "terraform-provider-redeliver"), terraform: os.Getenv("TF_ACC_TERRAFORM_PATH"),
		topics: 5, parallelism: 10, output: filepath.Join(dir, "provider.json"),
	}
	if o.terraform == "" {
		o.terraform = "terraform"
	}
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", o.provider, "../..").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var table, messages strings.Builder
	if err := run(t.Context(), o, &table, &messages); err != nil {
		t.Fatalf("%v\n%s", err, &messages)
	}
	t.Logf("%s\n%s", &messages, &table)
	text, err := os.ReadFile(o.output)
	if err != nil {
		t.Fatal(err)
	}
	var figures []results.Figure
	if err := json.Unmarshal(text, &figures); err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range figures {
		if got[f.Name] = f.Value; f.Unit == "" || f.Value <= 0 || f.Baseline <= 0 {
			t.Errorf("%s was not measured: %+v", f.Name, f)
		}
	}
	for _, name := range []string{"plan_requests", "apply_wall", "plan_wall", "peak_memory"} { // others read these
		if got[name] == 0 {
			t.Errorf("%s is not among the results: %v", name, got)
		}
	}
	if got["plan_requests"] > goalRequests {
		t.Errorf("a plan without changes sent %.0f requests, want at most %d", got["plan_requests"], goalRequests)
	}
}
