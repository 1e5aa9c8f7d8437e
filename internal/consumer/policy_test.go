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
