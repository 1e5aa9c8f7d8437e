package redeliverotel

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Units.
const (
	unitMessage = "{message}"
	unitSession = "{session}"
	unitRequest = "{request}"
)

// counter is a metric that is read from Stats.
type counter struct {
	name, unit, description string
	value                   func(s *redeliver.Stats) uint64
}

// counters are all of them. doc.go has the same list, for people.
var counters = []counter{
	{"messaging.client.consumed.messages", unitMessage, "Messages that the broker sent, redeliveries included.", func(s *redeliver.Stats) uint64 { return s.Delivered }},
	{"redeliver.handled", unitMessage, "Calls of handlers, retries in this process included.", func(s *redeliver.Stats) uint64 { return s.Handled }},
	{"redeliver.acked", unitMessage, "Messages that were acknowledged.", func(s *redeliver.Stats) uint64 { return s.Acked }},
	{"redeliver.retried", unitMessage, "Retries that were honoured.", func(s *redeliver.Stats) uint64 { return s.Retried }},
	{"redeliver.deferred", unitMessage, "Deferrals.", func(s *redeliver.Stats) uint64 { return s.Deferred }},
	{"redeliver.dead_lettered", unitMessage, "Messages sent to the dead-letter queue, whatever the reason.", func(s *redeliver.Stats) uint64 { return s.DeadLettered }},
	{"redeliver.parked", unitMessage, "Messages sent to the parked queue.", func(s *redeliver.Stats) uint64 { return s.Parked }},
	{"redeliver.discarded", unitMessage, "Messages dropped for good, because there is no dead-letter queue.", func(s *redeliver.Stats) uint64 { return s.Discarded }},
	{"redeliver.exhausted", unitMessage, "Messages given up because their retries were spent.", func(s *redeliver.Stats) uint64 { return s.Exhausted }},
	{"redeliver.too_old", unitMessage, "Messages given up because they were as old as give_up_after.", func(s *redeliver.Stats) uint64 { return s.TooOld }},
	{"redeliver.delay_too_long", unitMessage, "Messages given up because they asked for a delay that cannot be waited.", func(s *redeliver.Stats) uint64 { return s.DelayTooLong }},
	{"redeliver.undecodable", unitMessage, "Bodies that did not decode.", func(s *redeliver.Stats) uint64 { return s.Undecodable }},
	{"redeliver.oversized", unitMessage, "Bodies over MaxMessageSize.", func(s *redeliver.Stats) uint64 { return s.Oversized }},
	{"redeliver.panicked", unitMessage, "Handler calls that panicked.", func(s *redeliver.Stats) uint64 { return s.Panicked }},
	{"redeliver.timed_out", unitMessage, "Handler calls that exceeded HandlerTimeout.", func(s *redeliver.Stats) uint64 { return s.TimedOut }},
	{"redeliver.republished", unitMessage, "Copies that a hold queue took.", func(s *redeliver.Stats) uint64 { return s.Republished }},
	{"redeliver.hopped", unitMessage, "Messages that went from one hold queue into the next.", func(s *redeliver.Stats) uint64 { return s.Hopped }},
	{"redeliver.retry.hold_queue_missing", unitMessage, "Waits in the consumer because the hold queue was not there.", func(s *redeliver.Stats) uint64 { return s.HoldQueueMissing }},
	{"redeliver.handed_back", unitMessage, "Messages given back to the broker before their time.", func(s *redeliver.Stats) uint64 { return s.HandedBack }},
	{"redeliver.dropped", unitMessage, "Outcomes that were lost with their connection.", func(s *redeliver.Stats) uint64 { return s.Dropped }},
	{"redeliver.sessions_lost", unitSession, "Subscriptions that ended without being asked to.", func(s *redeliver.Stats) uint64 { return s.SessionsLost }},
	{"redeliver.reconnects", unitSession, "Subscriptions that followed on a lost one.", func(s *redeliver.Stats) uint64 { return s.Reconnects }},
	{"redeliver.leases_lost", unitMessage, "Messages that may have gone to another consumer while this one had them (Amazon SQS).", func(s *redeliver.Stats) uint64 { return s.LeasesLost }},
	{"redeliver.throttled", unitRequest, "Requests that the service refused because there were too many (Amazon SQS).", func(s *redeliver.Stats) uint64 { return s.Throttled }},
	{"redeliver.requests_failed", unitRequest, "Requests that failed otherwise, and were made again (Amazon SQS).", func(s *redeliver.Stats) uint64 { return s.RequestsFailed }},
}

// durationBounds are the buckets, in seconds, that the semantic conventions
// recommend.
var durationBounds = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10}

// metrics are the instruments, and the series that are reported with them: one
// for each queue that was consumed since the process started.
type metrics struct {
	duration       metric.Float64Histogram
	counters       []metric.Int64ObservableCounter // as the table
	setAsideFailed metric.Int64ObservableCounter
	held, waiting  metric.Int64ObservableUpDownCounter
	running        metric.Int64ObservableUpDownCounter
	inFlight       metric.Int64ObservableUpDownCounter
	health         metric.Int64ObservableGauge

	mu     sync.Mutex
	series map[seriesKey]*series
}

type seriesKey struct{ system, vhost, topic, queue string }

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{series: make(map[seriesKey]*series)}
	var err error
	if m.duration, err = meter.Float64Histogram("messaging.process.duration", metric.WithUnit("s"),
		metric.WithDescription("How long handlers took."), metric.WithExplicitBucketBoundaries(durationBounds...)); err != nil {
		return nil, err
	}
	var observed []metric.Observable
	for _, c := range counters {
		made, err := meter.Int64ObservableCounter(c.name, metric.WithUnit(c.unit), metric.WithDescription(c.description))
		if err != nil {
			return nil, err
		}
		m.counters, observed = append(m.counters, made), append(observed, made)
	}
	if m.setAsideFailed, err = meter.Int64ObservableCounter("redeliver.set_aside_failed", metric.WithUnit(unitMessage),
		metric.WithDescription("Copies that the target did not take.")); err != nil {
		return nil, err
	}
	if m.held, err = meter.Int64ObservableUpDownCounter("redeliver.held", metric.WithUnit(unitMessage),
		metric.WithDescription("Messages that wait in the consumer at this moment.")); err != nil {
		return nil, err
	}
	if m.waiting, err = meter.Int64ObservableUpDownCounter("redeliver.waiting", metric.WithUnit(unitMessage),
		metric.WithDescription("Messages of a sequenced topic that wait behind another of their key at this moment.")); err != nil {
		return nil, err
	}
	if m.running, err = meter.Int64ObservableUpDownCounter("redeliver.running", metric.WithUnit(unitMessage),
		metric.WithDescription("Handlers that run at this moment.")); err != nil {
		return nil, err
	}
	if m.inFlight, err = meter.Int64ObservableUpDownCounter("redeliver.in_flight", metric.WithUnit(unitMessage),
		metric.WithDescription("Messages that the service counts as in flight at this moment because of the consumer (Amazon SQS).")); err != nil {
		return nil, err
	}
	if m.health, err = meter.Int64ObservableGauge("redeliver.health", metric.WithUnit("1"),
		metric.WithDescription("How the consumer is: 0 ok, 1 degraded, 2 down.")); err != nil {
		return nil, err
	}
	_, err = meter.RegisterCallback(m.observe, append(observed, m.setAsideFailed, m.held, m.waiting, m.running, m.inFlight, m.health)...)
	return m, err
}

// watch adds a consumer to the series of its queue.
func (m *metrics) watch(p *probe) {
	c := p.watched
	key := seriesKey{c.System, c.VHost, c.Topic, c.Queue}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.series[key] == nil {
		m.series[key] = m.newSeries(append(place(c), system(c), semconv.MessagingDestinationName(c.Queue))...)
	}
	p.series = m.series[key]
	p.series.live = append(p.series.live, p)
}

// forget takes a consumer that has ended out of its series. What it counted
// stays: a counter that vanished before its last collection would lose what was
// counted in between, and one that started again from zero would be a reset.
func (m *metrics) forget(p *probe) {
	stats := p.watched.Stats()
	stats.Held, stats.Running, stats.InFlight = 0, 0, 0
	m.mu.Lock()
	defer m.mu.Unlock()
	s := p.series
	s.live = slices.DeleteFunc(s.live, func(other *probe) bool { return other == p })
	s.ended = s.ended.Add(stats)
}

// observe reports every series. It is called by each reader of the provider,
// from goroutines of theirs.
func (m *metrics) observe(_ context.Context, o metric.Observer) error {
	type copied struct {
		*series
		stats redeliver.Stats
		live  []*probe
	}
	m.mu.Lock()
	all := make([]copied, 0, len(m.series))
	for _, s := range m.series {
		all = append(all, copied{s, s.ended, slices.Clone(s.live)})
	}
	m.mu.Unlock() // consumers are asked without it: they have locks of their own
	for _, s := range all {
		level := 0
		for _, p := range s.live {
			s.stats = s.stats.Add(p.watched.Stats())
			level = max(level, p.watched.Health().Status.Level())
		}
		for i, c := range counters {
			with := s.attributes
			if i == 0 {
				with = s.consumed
			}
			o.ObserveInt64(m.counters[i], signed(c.value(&s.stats)), with)
		}
		for target, n := range s.stats.SetAsideFailures {
			o.ObserveInt64(m.setAsideFailed, signed(n), s.attributes, metric.WithAttributes(targetKey.String(target)))
		}
		if len(s.live) > 0 {
			o.ObserveInt64(m.held, int64(s.stats.Held), s.attributes)
			o.ObserveInt64(m.waiting, int64(s.stats.Waiting), s.attributes)
			o.ObserveInt64(m.running, int64(s.stats.Running), s.attributes)
			o.ObserveInt64(m.inFlight, int64(s.stats.InFlight), s.attributes)
			o.ObserveInt64(m.health, int64(level), s.attributes)
		}
	}
	return nil
}
