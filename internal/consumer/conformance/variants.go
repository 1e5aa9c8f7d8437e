package conformance

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// variant is a way in which a topic can be provisioned.
type variant struct {
	name       string
	convention topology.Convention
	queueType  topology.QueueType
	strategy   topology.Strategy
	// unit scales the delays: those of a convention that knows whole seconds only are not as short as others can be.
	unit    time.Duration
	since43 bool
	// via is how what failed for good reaches the dead-letter queue on Amazon SQS; "" is RabbitMQ. fifo: its queues are FIFO
	// queues.
	via  topology.DeadLetterVia
	fifo bool
}

const milliseconds = 25 * time.Millisecond

func variants() []variant {
	return []variant{
		{name: "in_place/quorum", strategy: topology.InPlace, queueType: topology.Quorum},
		{name: "in_place/classic", strategy: topology.InPlace, queueType: topology.Classic, convention: topology.RabbitKit},
		{name: "in_place/queuey", strategy: topology.InPlace, queueType: topology.Classic, convention: topology.Queuey},
		{name: "in_place/acemq", strategy: topology.InPlace, queueType: topology.Quorum, convention: topology.AceMQ},
		{name: "broker_delayed/quorum", strategy: topology.BrokerDelayed, queueType: topology.Quorum, since43: true},
		{name: "republish/quorum", strategy: topology.Republish, queueType: topology.Quorum},
		{name: "republish/classic", strategy: topology.Republish, queueType: topology.Classic, convention: topology.RabbitKit},
		{name: "republish/shove", strategy: topology.Republish, queueType: topology.Classic, convention: topology.Shove, unit: 500 * time.Millisecond},
		{name: "republish/acemq", strategy: topology.Republish, queueType: topology.Quorum, convention: topology.AceMQ},
		{name: "hybrid/quorum", strategy: topology.Hybrid, queueType: topology.Quorum},
		{name: "hybrid/classic", strategy: topology.Hybrid, queueType: topology.Classic, convention: topology.RabbitKit},
	}
}

func sqsVariants() []variant {
	const second = 500 * time.Millisecond // so that the tiers have whole ones, as SQS has
	return []variant{
		{name: "standard/redrive", via: topology.ViaRedrive, unit: second},
		{name: "standard/send", via: topology.ViaSend, unit: second},
		{name: "standard/shove", via: topology.ViaRedrive, unit: second, convention: topology.Shove},
		{name: "fifo/redrive", via: topology.ViaRedrive, unit: second, fifo: true},
		{name: "fifo/send", via: topology.ViaSend, unit: second, fifo: true},
	}
}

func (v variant) sqs() bool { return v.via != "" }

const (
	maxRetries  = 3
	giveUpAfter = 24 * time.Hour
)

func (v variant) tick() time.Duration {
	if v.unit == 0 {
		return milliseconds
	}
	return v.unit
}

// delays are the tiers.
func (v variant) delays() []time.Duration { return []time.Duration{2 * v.tick(), 6 * v.tick()} }

// delayMin, delayMax and holdFrom are what broker_delayed and hybrid have.
func (v variant) delayMin() time.Duration { return 2 * v.tick() }
func (v variant) delayMax() time.Duration { return 5 * v.tick() }
func (v variant) holdFrom() time.Duration { return 4 * v.tick() }

func (v variant) spec() topology.Spec {
	s := topology.Spec{
		Identity:  topology.Identity{Topic: "orders", Convention: v.convention},
		QueueType: v.queueType,
		Retry:     topology.RetryPolicy{Strategy: v.strategy, MaxRetries: maxRetries, GiveUpAfter: giveUpAfter, LastDelayRepeats: true},
	}
	switch v.strategy {
	case topology.BrokerDelayed:
		s.Retry.DelayMin, s.Retry.DelayMax = v.delayMin(), v.delayMax()
		return s
	case topology.Hybrid:
		s.Retry.HoldFrom = v.holdFrom()
	}
	s.Retry.Delays = v.delays()
	if v.holds() {
		s.HoldDelays = v.delays()
	}
	return s
}

// sqsSpec is a topic on Amazon SQS, which has a name of its own: accounts are not made for a test.
func (v variant) sqsSpec(common topology.Spec) topology.SQSSpec {
	s := topology.SQSSpec{
		SQSIdentity: topology.SQSIdentity{
			Topic: "conformance-" + strings.ToLower(rand.Text()), Convention: v.convention, FIFO: v.fifo, Region: "us-east-1", Account: "000000000000",
		},
		SQSQueueSettings: topology.SQSQueueSettings{ContentBasedDeduplication: v.fifo},
		AllowMessageLoss: common.AllowMessageLoss, Park: common.Park, Retry: common.Retry,
	}
	s.Retry.LastDelayRepeats = false
	if !s.AllowMessageLoss {
		s.DeadLetterQueue, s.DeadLetterVia = s.DeadLetterQueueName(), v.via
	}
	if common.ParkedQueue != "" {
		s.ParkedQueue = s.ParkedQueueName()
	}
	return s
}

// holds says that the topic has hold queues.
func (v variant) holds() bool {
	return v.strategy == topology.Republish || v.strategy == topology.Hybrid
}

// counts says that the broker counts what is given back.
func (v variant) counts() bool {
	if v.sqs() {
		return !v.fifo
	}
	return v.queueType == topology.Quorum && v.strategy != topology.Republish
}

// tooLong is a delay that nothing in a consumer can wait.
func (v variant) tooLong() time.Duration {
	if v.sqs() {
		return 13 * time.Hour
	}
	return time.Hour
}

// place is where a wait happens.
type place uint8

const (
	// again: in the consumer, and then the message is handed to a handler of the same process.
	again place = iota
	// requeued: in the consumer, and then the message is given back and delivered again.
	requeued
	// delayed: in the work queue.
	delayed
	// held: in a hold queue.
	held
)

// wait is a wait between two calls of a handler.
type wait struct {
	place place
	lasts time.Duration
	// queues is how many hold queues it is spent in, and hops how often the message came home too early.
	queues, hops int
}

// retryWait is the wait after the retry of a message that was retried count
// times; asked is the delay that was asked for, or 0.
func (v variant) retryWait(count int, asked time.Duration) wait {
	in := requeued
	if !v.counts() {
		in = again
	}
	if v.strategy == topology.BrokerDelayed {
		return wait{place: delayed, lasts: max(asked, min(v.delayMin()*time.Duration(count+1), v.delayMax()))}
	}
	return v.wait(in, v.delays()[min(count, 1)], asked)
}

// deferWait is the wait after a deferral.
func (v variant) deferWait(count int, asked time.Duration) wait {
	if v.sqs() { // where every delivery counts
		return v.wait(requeued, v.delays()[0], asked)
	}
	if v.strategy == topology.BrokerDelayed {
		if asked > 0 {
			return wait{place: again, lasts: asked}
		}
		return wait{place: delayed, lasts: min(v.delayMin()*time.Duration(max(1, count)), v.delayMax())}
	}
	return v.wait(again, v.delays()[0], asked)
}

func (v variant) wait(in place, tier, asked time.Duration) wait {
	lasts := tier
	if asked > 0 {
		lasts = asked
	}
	if v.sqs() && in == requeued {
		lasts = topology.RoundUp(lasts, time.Second)
	}
	if !v.holds() || v.strategy == topology.Hybrid && lasts < v.holdFrom() {
		return wait{place: in, lasts: lasts}
	}
	w := wait{place: held}
	for {
		w.lasts += v.hop(lasts - w.lasts)
		w.queues++
		remaining := lasts - w.lasts
		if remaining <= 0 {
			return w
		}
		w.hops++
		if v.strategy == topology.Hybrid && remaining < v.holdFrom() {
			w.lasts = lasts // the rest is waited in the consumer
			return w
		}
	}
}

// hop is the delay of the hold queue for a wait that has so long to go.
func (v variant) hop(remaining time.Duration) time.Duration {
	delays := v.delays()
	for _, delay := range delays {
		if delay >= remaining {
			return delay
		}
	}
	return delays[len(delays)-1]
}
