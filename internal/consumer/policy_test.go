package consumer

import (
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func testManifest(t *testing.T, change func(*topology.Spec)) topology.Manifest {
	t.Helper()
	spec := topology.Spec{
		Identity:        topology.Identity{Topic: "orders"},
		DeadLetterQueue: "orders-dlq",
		Retry:           topology.RetryPolicy{MaxRetries: 10, Delays: []time.Duration{time.Second, time.Minute}, Jitter: 0.2},
	}
	if change != nil {
		change(&spec)
	}
	m, err := spec.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestNewPolicy(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec   func(*topology.Spec)
		config redeliver.Config
		check  func(Policy) bool
	}{
		"defaults": {nil, redeliver.Config{}, func(p Policy) bool {
			return p.MaxRetries == 10 && len(p.Delays) == 2 && p.HoldBound == 22*time.Minute+30*time.Second && p.BrokerCounts &&
				p.DeadLetter.Name == "orders-dlq" && !p.PublishFinal && p.Parked == nil && len(p.Targets()) == 0
		}},
		"lowered":     {nil, redeliver.Config{MaxRetries: 3}, func(p Policy) bool { return p.MaxRetries == 3 }},
		"not raised":  {nil, redeliver.Config{MaxRetries: 30}, func(p Policy) bool { return p.MaxRetries == 10 }},
		"none at all": {nil, redeliver.Config{MaxRetries: redeliver.NoRetries}, func(p Policy) bool { return p.MaxRetries == 0 }},
		"no dead-letter queue": {
			func(s *topology.Spec) { s.DeadLetterQueue, s.AllowMessageLoss = "", true },
			redeliver.Config{},
			func(p Policy) bool { return p.DeadLetter == nil && len(p.Targets()) == 0 },
		},
		"parked queue without publishing": {
			func(s *topology.Spec) { s.ParkedQueue = "orders-parked" },
			redeliver.Config{},
			func(p Policy) bool { return p.Parked == nil && len(p.Targets()) == 0 },
		},
		"parked queue": {
			func(s *topology.Spec) { s.ParkedQueue, s.Park = "orders-parked", topology.ParkPublish },
			redeliver.Config{},
			func(p Policy) bool {
				return p.Parked.Name == "orders-parked" && p.Parked.Exchange == "orders-retry" && len(p.Targets()) == 1
			},
		},
		"queuey publishes final outcomes": {
			func(s *topology.Spec) { s.Convention, s.DeadLetterQueue = topology.Queuey, "orders.dead" },
			redeliver.Config{},
			func(p Policy) bool {
				return p.PublishFinal && !p.BrokerCounts && p.DeadLetter.Name == "orders.dead" && len(p.Targets()) == 1
			},
		},
	}
	for name, tt := range tests {
		p := NewPolicy(testManifest(t, tt.spec), tt.config)
		if !tt.check(p) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestEffectivePrefetch: where the broker delays what comes back, a lost
// connection delays every prefetched message, so that only the workers' own are
// prefetched, whatever the configuration says.
func TestEffectivePrefetch(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		strategy                   topology.Strategy
		config                     redeliver.Config
		workers, maxHeld, prefetch int
	}{
		"in_place":                   {topology.InPlace, redeliver.Config{}, 8, 64, 72},
		"in_place, more":             {topology.InPlace, redeliver.Config{Workers: 3, Prefetch: 500}, 3, 497, 500},
		"broker_delayed":             {topology.BrokerDelayed, redeliver.Config{}, 8, 8, 8},
		"broker_delayed, workers":    {topology.BrokerDelayed, redeliver.Config{Workers: 3}, 3, 3, 3},
		"broker_delayed, everything": {topology.BrokerDelayed, redeliver.Config{Workers: 3, MaxHeld: 20, Prefetch: 500}, 3, 3, 3},
	} {
		c := effectiveConfig(tt.config, Policy{Strategy: tt.strategy})
		if c.Workers != tt.workers || c.MaxHeld != tt.maxHeld || c.Prefetch != tt.prefetch {
			t.Errorf("%s: %d workers, max_held %d, prefetch %d; want %d, %d and %d", name, c.Workers, c.MaxHeld, c.Prefetch, tt.workers, tt.maxHeld, tt.prefetch)
		}
	}
}
