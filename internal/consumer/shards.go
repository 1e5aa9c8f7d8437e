package consumer

import (
	"context"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Shards consume the queues of one topic: its work queue, or the shards of a
// sequenced topic, each with an engine of its own and all with one shutdown.
type Shards struct {
	topic   string
	engines []*Consumer
	run     redeliver.Runner
}

var _ redeliver.Runner = (*Shards)(nil)

// Open makes and binds an engine for each queue. After an error none is left.
func Open(ctx context.Context, o Options, queues ...topology.ManifestQueue) (*Shards, error) {
	s := &Shards{topic: o.Manifest.Topic}
	runners := make([]redeliver.Runner, 0, len(queues))
	for _, queue := range queues {
		o.Queue = queue
		engine, err := New(o)
		if err == nil {
			err = engine.Bind(ctx)
		}
		if err != nil {
			for _, bound := range s.engines {
				_ = bound.Close() // it has handled nothing
			}
			return nil, err
		}
		s.engines = append(s.engines, engine)
		runners = append(runners, engine)
	}
	s.run = runners[0]
	if len(runners) > 1 {
		s.run = redeliver.NewGroup(runners...)
	}
	return s, nil
}

// Run runs all engines until ctx is done, Close is called or one of them gives
// up.
func (s *Shards) Run(ctx context.Context) error { return s.run.Run(ctx) }

// Close shuts all engines down and returns what Run returns.
func (s *Shards) Close() error { return s.run.Close() }

// Stats are the counters of all engines together.
func (s *Shards) Stats() redeliver.Stats {
	var sum redeliver.Stats
	for _, engine := range s.engines {
		sum = sum.Add(engine.Stats())
	}
	return sum
}

// Health is that of the one engine, or of all.
func (s *Shards) Health() redeliver.Health {
	if len(s.engines) == 1 {
		return s.engines[0].Health()
	}
	parts := make([]redeliver.Health, len(s.engines))
	for i, engine := range s.engines {
		parts[i] = engine.Health()
	}
	return redeliver.JoinHealth(s.topic, parts...)
}

// ResetSequence lets the messages of a key be handled again after one of them
// failed for good under redeliver.FailAll. It returns false when none had.
func (s *Shards) ResetSequence(key string) bool {
	reset := false
	for _, engine := range s.engines {
		reset = engine.ResetSequence(key) || reset
	}
	return reset
}
