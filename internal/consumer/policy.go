package consumer

import (
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// deferWithoutDelays is how long a deferred message waits under a policy that
// has no delays, which is only possible with max_retries = 0.
const deferWithoutDelays = time.Second

// Policy is what a topic's manifest and the consumer's configuration say about
// settling messages. It does not change.
type Policy struct {
	// MaxRetries is the number of Retry outcomes that are honoured.
	MaxRetries int
	// Delays are the tiers, shortest first.
	Delays []time.Duration
	// Jitter is the factor by which the tiers' delays vary both ways.
	Jitter float64
	// GiveUpAfter is the age at which a message is retried no more; 0 is never.
	GiveUpAfter time.Duration
	// HoldBound is how long after its delivery a message may be held.
	HoldBound time.Duration
	// BrokerCounts says that the broker counts a requeued message (a quorum queue). Where it does not, a retry is handed to
	// a handler of this process, and the count lives with the delivery.
	BrokerCounts bool
	// DeadLetter is where messages go that failed for good; nil discards them.
	DeadLetter *topology.ManifestTarget
	// PublishFinal says that such a message is published there, because the queue has no dead-letter exchange.
	PublishFinal bool
	// Parked is where messages are published that nobody could read; nil treats them as failed for good.
	Parked *topology.ManifestTarget
}

// NewPolicy derives the policy. A manifest whose strategy is not carried out
// yet is refused with a *redeliver.StrategyError.
func NewPolicy(m topology.Manifest, cfg redeliver.Config) (Policy, error) {
	if m.Retry.Strategy != topology.InPlace {
		return Policy{}, &redeliver.StrategyError{Topic: m.Topic, Strategy: string(m.Retry.Strategy)}
	}
	p := Policy{
		MaxRetries:   cfg.EffectiveMaxRetries(m.Retry.MaxRetries),
		Delays:       make([]time.Duration, len(m.Retry.Delays)),
		Jitter:       m.Retry.Jitter,
		GiveUpAfter:  time.Duration(m.Retry.GiveUpAfter),
		HoldBound:    topology.InPlaceBound(time.Duration(m.Retry.ConsumerTimeout)),
		BrokerCounts: m.WorkQueue.Type == topology.Quorum,
		DeadLetter:   m.DeadLetter,
		PublishFinal: m.Final == topology.FinalPublish,
	}
	for i, delay := range m.Retry.Delays {
		p.Delays[i] = time.Duration(delay)
	}
	if m.Park == topology.ParkPublish {
		p.Parked = m.Parked
	}
	return p, nil
}

// Targets are the queues that messages may be published to: none under most
// manifests.
func (p *Policy) Targets() []*topology.ManifestTarget {
	var targets []*topology.ManifestTarget
	if p.PublishFinal && p.DeadLetter != nil {
		targets = append(targets, p.DeadLetter)
	}
	if p.Parked != nil {
		targets = append(targets, p.Parked)
	}
	return targets
}

// RetryCount is the retry count of a message that comes from the broker, whose
// word is not taken on trust: a publisher can forge it.
func (p *Policy) RetryCount(brokerCount int64) int {
	if !p.BrokerCounts {
		return 0
	}
	return int(max(0, min(brokerCount, int64(p.MaxRetries))))
}

// delay is the delay of the tier for a retry count. r in [0, 1) places it
// within the jitter.
func (p *Policy) delay(retryCount int, r float64) time.Duration {
	if len(p.Delays) == 0 {
		return deferWithoutDelays
	}
	return topology.Jitter(p.Delays[topology.TierFor(retryCount, len(p.Delays))], p.Jitter, r)
}
