package redeliver_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func TestHealthErr(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		health redeliver.Health
		want   string
	}{
		{redeliver.Health{Status: redeliver.HealthOK, Topic: "orders"}, ""},
		{redeliver.Health{Status: redeliver.HealthDegraded, Topic: "orders", Reasons: []string{"slow"}}, ""},
		{redeliver.Health{Status: redeliver.HealthDown, Topic: "orders", Reasons: []string{"it is closed", "and more"}}, `topic "orders": down: it is closed; and more`},
		{redeliver.Health{Status: redeliver.HealthDown, Reasons: []string{"orders: it is closed"}}, "down: orders: it is closed"},
		{redeliver.Health{Status: redeliver.HealthDown}, "down"},
	} {
		got := ""
		if err := tt.health.Err(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.health, got, tt.want)
		}
	}
}

func TestHealthLevel(t *testing.T) {
	t.Parallel()
	for status, want := range map[redeliver.HealthStatus]int{redeliver.HealthOK: 0, redeliver.HealthDegraded: 1, redeliver.HealthDown: 2, "": 2} {
		if got := status.Level(); got != want {
			t.Errorf("%q: %d, want %d", status, got, want)
		}
	}
}

func TestJoinHealth(t *testing.T) {
	t.Parallel()
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	ok := redeliver.Health{Status: redeliver.HealthOK, Topic: "a", Since: late}
	degraded := redeliver.Health{Status: redeliver.HealthDegraded, Topic: "b", Since: early, Reasons: []string{"slow", "full"}}
	down := redeliver.Health{Status: redeliver.HealthDown, Topic: "c", Reasons: []string{"closed"}}
	shard := redeliver.Health{Status: redeliver.HealthDown, Topic: "orders", Reasons: []string{"closed"}}
	for name, tt := range map[string]struct {
		topic   string
		parts   []redeliver.Health
		status  redeliver.HealthStatus
		reasons []string
		since   time.Time
	}{
		"nothing":        {"", nil, redeliver.HealthOK, nil, time.Time{}},
		"one":            {"", []redeliver.Health{ok}, redeliver.HealthOK, nil, late},
		"worst of three": {"", []redeliver.Health{degraded, down, ok}, redeliver.HealthDown, []string{"b: slow", "b: full", "c: closed"}, late},
		"degraded":       {"", []redeliver.Health{ok, degraded}, redeliver.HealthDegraded, []string{"b: slow", "b: full"}, late},
		"shards":         {"orders", []redeliver.Health{shard}, redeliver.HealthDown, []string{"closed"}, time.Time{}},
		"nested":         {"", []redeliver.Health{redeliver.JoinHealth("", down)}, redeliver.HealthDown, []string{"c: closed"}, time.Time{}},
	} {
		h := redeliver.JoinHealth(tt.topic, tt.parts...)
		if h.Status != tt.status || h.Topic != tt.topic || !slices.Equal(h.Reasons, tt.reasons) || !h.Since.Equal(tt.since) || len(h.Parts) != len(tt.parts) {
			t.Errorf("%s: %+v", name, h)
		}
	}
}
