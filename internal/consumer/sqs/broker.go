package sqs

import (
	"container/heap"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Config says which queue.
type Config struct {
	// Client makes the requests. Its own retries are not used.
	Client *sqs.Client
	// Topic and Queue are the manifest's.
	Topic string
	Queue topology.ManifestQueue
	// Headers are the manifest's.
	Headers topology.Headers
	// MaxReceives is the maxReceiveCount that the manifest states; 0 where the queue has no redrive policy.
	MaxReceives int
	// AckEach deletes every message by itself and at once.
	AckEach bool
	// Log is told of what an operator wants to know.
	Log *slog.Logger
}

// Broker is one queue of Amazon SQS. It implements consumer.Transport and
// consumer.Monitor.
type Broker struct {
	cfg        Config
	fifo       bool
	visibility time.Duration
	buried     *buried
	waits      waits

	inHand                     atomic.Int64
	lost, throttled, failed    atomic.Uint64
	trouble                    sync.Mutex
	throttling, over, settling problem
	polling                    problem
	unmovedSeen                time.Time // when a message was seen last that the redrive policy should have moved
}

var (
	_ consumer.Transport = (*Broker)(nil)
	_ consumer.Monitor   = (*Broker)(nil)
)

// minVisibility is the shortest lease: a shorter one could not be extended in time.
const minVisibility = 5 * time.Second

// NewBroker makes no request.
func NewBroker(cfg Config) *Broker {
	visibility := cfg.Queue.Attributes.VisibilityTimeout()
	if visibility == 0 {
		visibility = topology.DefaultVisibilityTimeout
	}
	return &Broker{cfg: cfg, fifo: cfg.Queue.Type == topology.FIFO, visibility: max(visibility, minVisibility), buried: newBuried()}
}

// problem is something that is wrong with requests, and goes by.
type problem struct {
	since, last time.Time
	count       uint64
	err         error
}

const (
	// problemLasts is how long something that was wrong is a reason to look.
	problemLasts = time.Minute
	// deafAfter is how long no receive may succeed before the consumer is down.
	deafAfter = 30 * time.Second
)

// note notes that a request failed.
func (b *Broker) note(p *problem, err error) {
	if sqsapi.Throttled(err) {
		b.throttled.Add(1)
	} else {
		b.failed.Add(1)
	}
	b.trouble.Lock()
	defer b.trouble.Unlock()
	now := time.Now()
	for _, p := range b.kinds(p, err) {
		if p.since.IsZero() || now.Sub(p.last) > problemLasts {
			p.since, p.count = now, 0
		}
		p.last, p.err = now, sqsapi.Said(err)
		p.count++
	}
}

func (b *Broker) kinds(p *problem, err error) []*problem {
	switch {
	case sqsapi.Throttled(err):
		return []*problem{p, &b.throttling}
	case sqsapi.OverLimit(err):
		return []*problem{&b.over}
	default:
		return []*problem{p}
	}
}

// fine notes that a request succeeded.
func (b *Broker) fine(p *problem) {
	b.trouble.Lock()
	defer b.trouble.Unlock()
	if !p.since.IsZero() {
		*p = problem{}
	}
}

// Monitor implements consumer.Monitor.
func (b *Broker) Monitor() consumer.Monitored {
	now := time.Now()
	waiting := b.waits.count(now)
	m := consumer.Monitored{
		InFlight: int(b.inHand.Load()) + waiting, LeasesLost: b.lost.Load(), Throttled: b.throttled.Load(), RequestsFailed: b.failed.Load(),
	}
	b.trouble.Lock()
	defer b.trouble.Unlock()
	recent := func(p problem) bool { return !p.since.IsZero() && now.Sub(p.last) < problemLasts }
	switch p := b.polling; {
	case recent(p) && now.Sub(p.since) >= deafAfter:
		m.Down = append(m.Down, fmt.Sprintf("no receive from queue %q has succeeded for %s: %v", b.cfg.Queue.Name, now.Sub(p.since).Round(time.Second), p.err))
	case recent(p) && p.count > 1:
		m.Degraded = append(m.Degraded, fmt.Sprintf("receives from queue %q fail (%d in a row): %v", b.cfg.Queue.Name, p.count, p.err))
	}
	if !b.unmovedSeen.IsZero() && now.Sub(b.unmovedSeen) < unmovedPause+problemLasts {
		m.Degraded = append(m.Degraded, fmt.Sprintf("queue %q has no redrive policy as the manifest states (maxReceiveCount %d): messages that failed for good stay in it; "+
			"apply the Terraform configuration that has the topic", b.cfg.Queue.Name, b.cfg.MaxReceives))
	}
	if p := b.settling; recent(p) {
		m.Degraded = append(m.Degraded, fmt.Sprintf("messages of queue %q could not be deleted or given back at once (%d requests): %v", b.cfg.Queue.Name, p.count, p.err))
	}
	if p := b.throttling; recent(p) {
		m.Degraded = append(m.Degraded, fmt.Sprintf("the service throttles requests for queue %q (%d in the last %s); ask AWS for more, or spread the load",
			b.cfg.Queue.Name, p.count, now.Sub(p.since).Round(time.Second)))
	}
	// A poll that waits is answered with nothing at the limit, and not with an error.
	if waiting > topology.MaxInFlight*9/10 && !recent(b.over) {
		m.Degraded = append(m.Degraded, fmt.Sprintf("%d messages of queue %q wait for their next attempt after this process gave them back (others have theirs), and are in flight, of which the queue may have %d: beyond that it delivers nothing; "+
			"shorten the delays, or Reject what fails for long", waiting, b.cfg.Queue.Name, topology.MaxInFlight))
	}
	if p := b.over; recent(p) {
		m.Degraded = append(m.Degraded, fmt.Sprintf("queue %q has as many messages in flight as it may have (%d) and delivers no more; of this consumer %d are in flight, "+
			"%d of which wait for their next attempt: shorten the delays, or Reject what fails for long: %v", b.cfg.Queue.Name, topology.MaxInFlight, m.InFlight, waiting, p.err))
	}
	return m
}

// waits are the ends of the waits of messages that were given back.
type waits struct {
	mu  sync.Mutex
	due dueHeap
}

func (w *waits) add(due time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(time.Now())
	heap.Push(&w.due, due)
}

// count is how many messages still wait.
func (w *waits) count(now time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(now)
	return len(w.due)
}

func (w *waits) forget(now time.Time) {
	for len(w.due) > 0 && !w.due[0].After(now) {
		heap.Pop(&w.due)
	}
}

// dueHeap implements heap.Interface.
type dueHeap []time.Time

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].Before(h[j]) }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *dueHeap) Push(x any) { *h = append(*h, x.(time.Time)) }

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
