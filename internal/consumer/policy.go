package consumer

import (
	"math"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// deferWithoutDelays is how long a deferred message waits under a policy that
// has no delays, which is only possible with max_retries = 0.
const deferWithoutDelays = time.Second

// maxNotBefore bounds a delay that is asked for, and how far ahead the time may be
// that a message waits for: a header that says more was not written by a consumer.
const maxNotBefore = 366 * 24 * time.Hour

// Policy is what a topic's manifest and the consumer's configuration say about
// settling messages. It does not change.
type Policy struct {
	// Strategy says where a message waits; "" is in_place.
	Strategy topology.Strategy
	// MaxRetries is the number of Retry outcomes that are honoured.
	MaxRetries int
	// Delays are the tiers, shortest first. Under broker_delayed, which has none, the broker waits DelayMin for every
	// retry, up to DelayMax.
	Delays             []time.Duration
	DelayMin, DelayMax time.Duration
	// Holds are the hold queues of each tier; empty where nothing is republished.
	Holds []holdTier
	// HoldFrom is the shortest delay that waits in a hold queue, where there are any: 0 is all of them.
	HoldFrom time.Duration
	// Jitter is the factor by which the tiers' delays vary both ways, where they are waited in the consumer.
	Jitter float64
	// GiveUpAfter is the age at which a message is retried no more; 0 is never.
	GiveUpAfter time.Duration
	// HoldBound is how long after its delivery a message may be held.
	HoldBound time.Duration
	// BrokerWaits says that the broker waits with a message that is given back (Amazon SQS: invisible), so that nothing is
	// held here, and that it counts every delivery, whatever became of it. The messages of a sequenced topic wait here all
	// the same: one that waited there would have its successors delivered, counted and given back each time.
	BrokerWaits bool
	// BrokerCounts says that the broker counts a requeued message (a quorum queue). Where it does not, a retry that waits in
	// place is handed to a handler of this process, and the count lives with the delivery.
	BrokerCounts bool
	// Sequenced says that the messages of a key stay in order: a retry is handed to a handler of this process, since a
	// requeue would put it behind successors that were already delivered.
	Sequenced bool
	// NeverGivesUp says that whatever is not acknowledged comes back: a message of a dead-letter queue has nowhere else to
	// go. See [DeadPolicy].
	NeverGivesUp bool
	// DeadLetter is where messages go that failed for good; nil discards them.
	DeadLetter *topology.ManifestTarget
	// PublishFinal says that such a message is published there.
	PublishFinal bool
	// BrokerDeadLetters says that the work queue has a dead-letter exchange: a message that is rejected is not lost.
	BrokerDeadLetters bool
	// Parked is where messages are published that nobody could read; nil treats them as failed for good.
	Parked *topology.ManifestTarget
	// DeferPriority is the priority of a deferred copy; nil keeps the message's.
	DeferPriority *uint8
	// Headers are where the convention keeps a message's history. They are read and written where messages are republished.
	Headers topology.Headers
}

// holdTier are the hold queues of one tier.
type holdTier []holdShard

// holdShard is a hold queue and its delay.
type holdShard struct {
	delay  time.Duration
	target *topology.ManifestTarget
}

// NewPolicy derives the policy.
func NewPolicy(m topology.Manifest, cfg redeliver.Config) Policy {
	p := Policy{
		Strategy:     m.Retry.Strategy,
		MaxRetries:   cfg.EffectiveMaxRetries(m.Retry.MaxRetries),
		Delays:       make([]time.Duration, len(m.Retry.Delays)),
		DelayMin:     time.Duration(m.Retry.DelayMin),
		DelayMax:     time.Duration(m.Retry.DelayMax),
		Jitter:       m.Retry.Jitter,
		GiveUpAfter:  time.Duration(m.Retry.GiveUpAfter),
		HoldBound:    topology.InPlaceBound(time.Duration(m.Retry.ConsumerTimeout)),
		BrokerCounts: m.WorkQueue.Type == topology.Quorum || m.Broker == topology.BrokerSQS,
		BrokerWaits:  m.Broker == topology.BrokerSQS,
		DeadLetter:   m.DeadLetter,
		PublishFinal: m.Final == topology.FinalPublish,
		Sequenced:    m.Sequence != nil,
		Headers:      m.Headers,
	}
	for i, delay := range m.Retry.Delays {
		p.Delays[i] = time.Duration(delay)
	}
	if m.Park == topology.ParkPublish {
		p.Parked = m.Parked
	}
	_, p.BrokerDeadLetters = m.WorkQueue.Arguments[topology.ArgDeadLetterExchange]
	if p.BrokerWaits {
		p.HoldBound, p.BrokerDeadLetters = topology.SQSHoldBound, m.DeadLetter != nil
	}
	if p.republishes() {
		p.Holds = holdTiers(m)
		p.HoldFrom = time.Duration(m.Retry.HoldFrom)
	}
	if top, ok := m.WorkQueue.Arguments[topology.ArgMaxPriority].(int64); ok && top > 0 {
		priority := uint8(min(top, math.MaxUint8))
		p.DeferPriority = &priority
	}
	return p
}

// deadPauses bound the pauses before a message of a dead-letter queue is handed
// out again.
const (
	deadPauseFirst = time.Second
	deadPauseLast  = 5 * time.Minute
)

// DeadPolicy is the policy of a consumer of a dead-letter or parked queue. A
// message that was not dealt with is handed out again here, after pauses that
// double, and goes back to the broker when the consumer timeout is near: given
// back at once, it would spend the queue's delivery limit in no time.
// Where the broker waits, the pauses are waited there.
func DeadPolicy(m topology.Manifest) Policy {
	p := Policy{
		NeverGivesUp: true, MaxRetries: math.MaxInt32,
		HoldBound: topology.InPlaceBound(topology.DefaultConsumerTimeout), Jitter: topology.DefaultJitter, Headers: m.Headers,
	}
	if m.Broker == topology.BrokerSQS {
		p.BrokerWaits, p.BrokerCounts, p.HoldBound = true, true, topology.SQSHoldBound
	}
	for pause := deadPauseFirst; pause < deadPauseLast; pause *= 2 {
		p.Delays = append(p.Delays, pause)
	}
	p.Delays = append(p.Delays, deadPauseLast)
	return p
}

// holdTiers arranges the manifest's hold queues by tier and shard.
func holdTiers(m topology.Manifest) []holdTier {
	tiers := make([]holdTier, len(m.Retry.Delays))
	for _, q := range m.HoldQueues {
		tiers[q.Tier] = append(tiers[q.Tier], holdShard{
			delay:  time.Duration(q.Delay),
			target: &topology.ManifestTarget{ManifestQueue: q.ManifestQueue, Exchange: m.RetryExchange, RoutingKey: q.Name},
		})
	}
	return tiers
}

// republishes says whether messages may wait in hold queues.
func (p *Policy) republishes() bool {
	return p.Strategy == topology.Republish || p.Strategy == topology.Hybrid
}

// Targets are the queues that messages may be published to: none under most
// manifests.
func (p *Policy) Targets() []*topology.ManifestTarget {
	var targets []*topology.ManifestTarget
	for _, tier := range p.Holds {
		for _, shard := range tier {
			targets = append(targets, shard.target)
		}
	}
	if p.PublishFinal && p.DeadLetter != nil {
		targets = append(targets, p.DeadLetter)
	}
	if p.Parked != nil {
		targets = append(targets, p.Parked)
	}
	return targets
}

// RetryCount is the retry count of a message as it comes from the broker.
// Neither the broker's count nor a header is taken on trust: a publisher can
// forge both.
func (p *Policy) RetryCount(d *Delivery) int {
	var count int64
	if p.republishes() {
		count = p.headerCount(d.Message.Headers)
	}
	// In a sequenced topic the broker counts sessions that ended and no retries: those happen here. Where it counts every
	// delivery, and gives a message up by that, the handler is to know.
	if p.BrokerCounts && p.Strategy != topology.Republish && (!p.Sequenced || p.BrokerWaits) {
		count += clamp(d.Count, p.MaxRetries) // each is bounded, so that the sum cannot overflow
	}
	return int(clamp(count, p.MaxRetries))
}

func clamp(count int64, most int) int64 { return max(0, min(count, int64(most))) }

// headerCount is what the convention's header says; a malformed one is 0.
func (p *Policy) headerCount(headers map[string]any) int64 {
	for _, name := range append([]string{p.Headers.RetryCount}, p.Headers.RetryCountAlso...) {
		if value, ok := headers[name]; ok && name != "" {
			count, ok := topology.HeaderInteger(value)
			if !ok {
				return 0
			}
			return clamp(clamp(count, math.MaxInt32)-int64(p.Headers.RetryCountFrom), p.MaxRetries)
		}
	}
	return 0
}

// FirstSeen is when a message first came to a consumer: the convention's
// header, where messages are republished, or the publisher's timestamp; zero
// where neither says.
func (p *Policy) FirstSeen(m *redeliver.Message) time.Time {
	if p.republishes() {
		return firstSeen(m, p.Headers.FirstSeen)
	}
	return firstSeen(m, "")
}

// Remaining is how much longer a message waits that asked for a delay longer
// than every hold queue's; 0 where it may be handed out.
func (p *Policy) Remaining(m *redeliver.Message, now time.Time) time.Duration {
	if !p.republishes() || len(m.Headers) == 0 {
		return 0
	}
	ms, ok := topology.HeaderInteger(m.Headers[topology.HeaderNotBefore])
	if !ok || ms <= 0 || ms > now.Add(maxNotBefore+time.Hour).UnixMilli() {
		return 0
	}
	return max(0, time.UnixMilli(ms).Sub(now))
}

// delay is the delay of the tier for a retry count where it is waited in the
// consumer. r in [0, 1) places it within the jitter.
func (p *Policy) delay(retryCount int, r float64) time.Duration {
	switch {
	case p.Strategy == topology.BrokerDelayed:
		return p.brokerDelay(retryCount + 1)
	case len(p.Delays) == 0:
		return deferWithoutDelays
	default:
		return topology.Jitter(p.Delays[topology.TierFor(retryCount, len(p.Delays))], p.Jitter, r)
	}
}

// brokerDelay is how long RabbitMQ 4.3 delays a message that came back
// deliveries times.
func (p *Policy) brokerDelay(deliveries int) time.Duration {
	if deliveries > 1 && p.DelayMin > p.DelayMax/time.Duration(deliveries) {
		return p.DelayMax
	}
	return min(p.DelayMin*time.Duration(max(1, deliveries)), p.DelayMax)
}

// holdShard is the hold queue in which a message of a retry count waits that
// asks for no delay of its own; ok is false where it waits in place. One that
// has no room to wait in place waits in a hold queue in any case.
func (p *Policy) holdShard(retryCount int, messageID string, noRoom bool) (shard holdShard, ok bool) {
	if len(p.Holds) == 0 {
		return holdShard{}, false
	}
	k := topology.TierFor(retryCount, len(p.Holds))
	tier := p.Holds[k]
	if len(tier) == 0 || p.Delays[k] < p.HoldFrom && !noRoom {
		return holdShard{}, false
	}
	return tier[topology.ShardOf(messageID, len(tier))], true
}

// hop is the hold queue in which a message waits next that has to wait for
// remaining; the wait is over after it where last. Only a tier's first shard
// has the tier's very delay, and no delay that was asked for ends early.
func (p *Policy) hop(remaining time.Duration) (shard holdShard, last, ok bool) {
	if len(p.Holds) == 0 {
		return holdShard{}, false, false
	}
	tier := p.Holds[topology.NextHop(p.Delays, remaining)]
	if len(tier) == 0 {
		return holdShard{}, false, false
	}
	return tier[0], tier[0].delay >= remaining, true
}
