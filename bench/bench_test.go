package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/bench/results"
	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// TestSmoke measures everything once, with so few messages that the figures mean
// nothing, so that the benchmark still works when somebody wants it.
func TestSmoke(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	o := options{
		url: b.AMQPURL(brokertest.VHost(t, b)), messages: 200, held: 1000, runs: 1,
		output: filepath.Join(t.TempDir(), "results.json"),
	}
	var table, messages strings.Builder
	if err := run(t.Context(), o, &table, &messages); err != nil {
		t.Fatalf("%v\n%s", err, &messages)
	}
	t.Logf("%s", &table)
	text, err := os.ReadFile(o.output)
	if err != nil {
		t.Fatal(err)
	}
	var figures []results.Figure
	if err := json.Unmarshal(text, &figures); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range figures {
		names = append(names, r.Name)
		if r.Unit == "" || r.Baseline <= 0 || r.Ratio <= 0 {
			t.Errorf("%s was not measured: %+v", r.Name, r)
		}
		if !strings.Contains(table.String(), r.Name) {
			t.Errorf("%s is not in the table", r.Name)
		}
	}
	// Others read these.
	for _, name := range []string{
		"ack_coalesced_p100_w8", "ack_coalesced_p1000_w1", "ack_coalesced_p1000_w8", "ack_coalesced_p1000_w64",
		"ack_each_p1000_w8", "allocs_per_message", "republish_retry", "held_10000_bytes",
	} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among the results: %q", name, names)
		}
	}
}

func TestOnly(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"^ack_coalesced_p1000_w8$": {"ack_coalesced_p1000_w8"},
		"^allocs_per_message$":     {"allocs_per_message"},
		"p100_":                    {"ack_coalesced_p100_w1", "ack_coalesced_p100_w8", "ack_coalesced_p100_w64", "ack_each_p100_w8"},
		"nothing":                  nil,
	}
	for only, want := range tests {
		var got []string
		for _, c := range selectCases(regexp.MustCompile(only)) {
			for _, f := range c.figures {
				got = append(got, f.name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("-only %s measures %q, want %q", only, got, want)
		}
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	r := row{figure: figure{goal: 0.95}, ours: []float64{90, 99, 40}, bare: []float64{100, 100, 50}}
	if r.value() != 90 || median(r.ratios()) != 0.9 || !strings.HasSuffix(r.verdict(), "MISSED") {
		t.Errorf("value %g, ratios %v, %s", r.value(), r.ratios(), r.verdict())
	}
	r = row{figure: figure{excess: true, goal: 3}, ours: []float64{28, 30, 29}, bare: []float64{27, 27, 26}}
	if r.value() != 3 || !strings.HasSuffix(r.verdict(), "reached") {
		t.Errorf("value %g, %s", r.value(), r.verdict())
	}
	if m := median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("the median of 1, 2, 3, 4 is %g", m)
	}
}
