package redeliver_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func TestConfigDefaults(t *testing.T) {
	t.Parallel()
	type sizes struct{ workers, held, prefetch int }
	for _, tt := range []struct {
		config redeliver.Config
		want   sizes
	}{
		{redeliver.Config{}, sizes{8, 64, 72}},
		{redeliver.Config{Workers: 100}, sizes{100, 64, 164}},
		{redeliver.Config{MaxHeld: 1000}, sizes{8, 1000, 1008}},
		{redeliver.Config{Prefetch: 20}, sizes{8, 12, 20}},
		{redeliver.Config{Prefetch: 8}, sizes{8, 0, 8}},
		{redeliver.Config{Workers: 2, MaxHeld: 3, Prefetch: 100}, sizes{2, 3, 100}},
	} {
		got := tt.config.WithDefaults()
		if (sizes{got.Workers, got.MaxHeld, got.Prefetch}) != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.config, got, tt.want)
		}
		again := got.WithDefaults()
		if again.MaxHeld != got.MaxHeld || again.Prefetch != got.Prefetch {
			t.Errorf("%+v: defaults of defaults differ: %+v", got, again)
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%+v: %v", tt.config, err)
		}
		if got.MaxMessageSize != 10<<20 || got.DrainTimeout != 20*time.Second || got.Logger == nil || got.HandlerTimeout != 0 ||
			got.TimeoutOutcome.Kind() != redeliver.OutcomeRetry {
			t.Errorf("%+v", got)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	t.Parallel()
	for field, config := range map[string]redeliver.Config{
		"Workers":                 {Workers: -1},
		"MaxHeld":                 {MaxHeld: -1},
		"Prefetch is 65536":       {Prefetch: 65536},
		"Prefetch is 10, below":   {Workers: 8, MaxHeld: 3, Prefetch: 10},
		"Prefetch is 4, below":    {Prefetch: 4},
		"MaxHeld is 922":          {MaxHeld: math.MaxInt},
		"Workers is 922":          {Workers: math.MaxInt},
		"MaxRetries":              {MaxRetries: -2},
		"HandlerTimeout":          {HandlerTimeout: -1},
		"TimeoutOutcome":          {TimeoutOutcome: redeliver.Ack()},
		"MaxMessageSize":          {MaxMessageSize: -1},
		"DrainTimeout":            {DrainTimeout: -1},
		"MaxReconnectAttempts":    {MaxReconnectAttempts: -1},
		"consumer config: Worker": {Workers: -5, MaxHeld: -1},
	} {
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestManifest(t *testing.T) {
	doc, err := topology.Spec{
		Identity:        topology.Identity{Topic: "orders", VHost: "shop"},
		DeadLetterQueue: "orders-dlq",
		Retry:           topology.RetryPolicy{MaxRetries: 2, Delays: []time.Duration{time.Second}},
	}.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	text := doc.Encode()
	path := filepath.Join(t.TempDir(), "orders.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ORDERS_MANIFEST", string(text))
	for how, read := range map[string]func() (redeliver.Manifest, error){
		"parse": func() (redeliver.Manifest, error) { return redeliver.ParseManifest(text) },
		"load":  func() (redeliver.Manifest, error) { return redeliver.LoadManifest(path) },
		"env":   func() (redeliver.Manifest, error) { return redeliver.ManifestFromEnv("ORDERS_MANIFEST") },
	} {
		m, err := read()
		if err != nil || m.Topic() != "orders" || m.VHost() != "shop" || m.WorkQueue() != "orders" || string(m.Bytes()) != string(text) {
			t.Errorf("%s: %+v, %v", how, m, err)
		}
	}
	edited := strings.Replace(string(text), `"orders-dlq"`, `"other-dlq"`, 1)
	t.Setenv("EDITED", edited)
	for how, tt := range map[string]struct {
		read func() (redeliver.Manifest, error)
		says string
	}{
		"edited":  {func() (redeliver.Manifest, error) { return redeliver.ManifestFromEnv("EDITED") }, "EDITED"},
		"unset":   {func() (redeliver.Manifest, error) { return redeliver.ManifestFromEnv("NO_SUCH_VARIABLE") }, "NO_SUCH_VARIABLE"},
		"absent":  {func() (redeliver.Manifest, error) { return redeliver.LoadManifest(path + ".absent") }, path},
		"garbage": {func() (redeliver.Manifest, error) { return redeliver.ParseManifest([]byte("{")) }, "JSON"},
	} {
		if _, err := tt.read(); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", how, err)
		}
	}
	if _, err := redeliver.LoadManifest(path + ".absent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	var many []redeliver.Stranded
	for i := range 13 {
		many = append(many, redeliver.Stranded{MessageID: fmt.Sprint(i), DeliveryTag: uint64(i), State: "handler"})
	}
	drain := (&redeliver.DrainError{Topic: "orders", Timeout: time.Second, Stranded: many}).Error()
	if !strings.Contains(drain, `13 message(s)`) || !strings.Contains(drain, `id "9" (delivery 9, handler)`) || strings.Contains(drain, `id "10"`) || !strings.HasSuffix(drain, "and 3 more") {
		t.Error(drain)
	}
	bind := &redeliver.BindError{Kind: redeliver.ErrVHost, Topic: "orders", Queue: "orders", VHost: "shop", User: "u", Address: "h:1", Advice: "do this"}
	if got := bind.Error(); got != `topic "orders": binding to queue "orders" in vhost "shop" at h:1 as user "u": the virtual host is not accessible; do this` {
		t.Error(got)
	}
	if !errors.Is(bind, redeliver.ErrVHost) || errors.Is(bind, redeliver.ErrPermission) {
		t.Error("a bind error matches the wrong kind")
	}
	if got := (&redeliver.PanicError{Value: errBoom}); !errors.Is(got, errBoom) {
		t.Error("the panic's error is not in the chain")
	}
}
