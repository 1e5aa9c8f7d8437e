package consumer

import (
	"fmt"
	"sync"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

const (
	// lookAgainAfter is how long a hold queue that is missing is not looked for.
	lookAgainAfter = time.Minute
	// troubleLasts is how long a failure to set a message aside is a reason to look.
	troubleLasts = 5 * time.Minute
)

// vitals are what the health of a consumer is read from.
type vitals struct {
	mu sync.Mutex
	// connected says whether there is a session, since when, and why not.
	connected bool
	since     time.Time
	lost      error
	attempts  int
	// phase is why no messages are taken in spite of a session: not running yet, shutting down, closed.
	phase string
	// missing are hold queues that are not there, and when each is looked for again.
	missing map[string]time.Time
	// setAside are targets that did not take a message, with the failures and the last of them.
	setAside map[string]*setAsideTrouble
	// toldFull is when the log said last that max_held is reached.
	toldFull time.Time
}

type setAsideTrouble struct {
	count uint64
	last  time.Time
	err   error
}

const (
	phaseOpened   = "it is subscribed and Run was not called yet"
	phaseDraining = "it is shutting down"
	phaseClosed   = "it is closed"
	phaseNew      = "it is not subscribed yet"
)

func newVitals() *vitals {
	return &vitals{phase: phaseNew, missing: make(map[string]time.Time), setAside: make(map[string]*setAsideTrouble)}
}

func (v *vitals) connect(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.connected, v.since, v.lost, v.attempts = true, now, nil, 0
	if v.phase == phaseNew {
		v.phase = phaseOpened
	}
}

func (v *vitals) lose(now time.Time, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.connected, v.since, v.lost = false, now, why
}

func (v *vitals) fail(attempt int, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.attempts, v.lost = attempt, why
}

// enter begins a phase; "" is the one in which messages are taken.
func (v *vitals) enter(phase string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.phase = phase
}

// miss remembers that a hold queue is not there. Messages that wait here because of that do not put off the next look.
func (v *vitals) miss(queue string, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.missing[queue]; !known {
		v.missing[queue] = now.Add(lookAgainAfter)
	}
}

// took forgets what was wrong with a queue that took a copy. The failures stay
// counted.
func (v *vitals) took(queue string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.missing, queue)
	if t := v.setAside[queue]; t != nil {
		t.last = time.Time{}
	}
}

// isMissing says whether a hold queue is known to be missing. When it is time to
// look for it again, one message is let through.
func (v *vitals) isMissing(queue string, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	again, missing := v.missing[queue]
	if !missing {
		return false
	}
	if now.Before(again) {
		return true
	}
	v.missing[queue] = now.Add(lookAgainAfter)
	return false
}

// failSetAside counts a failure to set a message aside.
func (v *vitals) failSetAside(target string, now time.Time, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.setAside[target]
	if t == nil {
		t = &setAsideTrouble{}
		v.setAside[target] = t
	}
	t.count++
	t.last, t.err = now, err
}

// setAsideFailures are the failures by target; nil without any.
func (v *vitals) setAsideFailures() map[string]uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.setAside) == 0 {
		return nil
	}
	counts := make(map[string]uint64, len(v.setAside))
	for target, t := range v.setAside {
		counts[target] = t.count
	}
	return counts
}

// Health says how the consumer is.
func (c *Consumer) Health() redeliver.Health {
	now := c.clock.Now()
	h := redeliver.Health{Status: redeliver.HealthOK, Topic: c.manifest.Topic}
	down := func(format string, args ...any) {
		h.Status = redeliver.HealthDown
		h.Reasons = append(h.Reasons, fmt.Sprintf(format, args...))
	}
	degraded := func(format string, args ...any) {
		if h.Status == redeliver.HealthOK {
			h.Status = redeliver.HealthDegraded
		}
		h.Reasons = append(h.Reasons, fmt.Sprintf(format, args...))
	}
	v := c.health
	v.mu.Lock()
	defer v.mu.Unlock()
	h.Since = v.since
	if v.phase != "" {
		down("%s", v.phase)
	}
	if !v.connected && v.phase != phaseClosed && v.phase != phaseNew {
		down("it is not subscribed to queue %q and connects again (failed attempts: %d): %v", c.queue.Name, v.attempts, v.lost)
	}
	for queue, again := range v.missing {
		if now.Sub(again) > troubleLasts { // nobody has needed it for long
			delete(v.missing, queue)
			continue
		}
		degraded("hold queue %q is missing: its waits happen in the consumer; apply the Terraform configuration that has the topic's ladder", queue)
	}
	for target, t := range v.setAside {
		if now.Sub(t.last) < troubleLasts {
			degraded("messages could not be set aside in queue %q (%d so far): %v", target, t.count, t.err)
		}
	}
	if full, inHand := c.holds.full(); full && inHand > 0 {
		degraded("as many messages wait as may (max_held %d), %d of them deferred: what they wait for may be behind them in the queue; "+
			"raise MaxHeld, or Reject what waits too long", c.cfg.MaxHeld, inHand)
	} else if full {
		degraded("as many messages wait as may (max_held %d): workers wait with theirs, and take in no more", c.cfg.MaxHeld)
	}
	if c.lanes != nil {
		if n := c.lanes.waiting(); n > c.cfg.Prefetch/2 {
			degraded("%d of %d prefetched messages wait behind others of their keys, and keep messages of other keys from being delivered; raise Prefetch, or look at why the first ones fail",
				n, c.cfg.Prefetch)
		}
		if n := c.lanes.failedKeys(); n > 0 {
			degraded("%d keys failed: their messages are dead-lettered until the keys are reset", n)
		}
	}
	m := c.monitored()
	for _, reason := range m.Down {
		down("%s", reason)
	}
	for _, reason := range m.Degraded {
		degraded("%s", reason)
	}
	if c.publisher != nil {
		if reason, blocked := c.publisher.Blocked(); blocked {
			degraded("the broker takes no copies (%s): messages that are to be published wait", reason)
		}
	}
	return h
}

// tellFull logs, now and then, that no more messages can be held.
func (c *Consumer) tellFull() {
	now := c.clock.Now()
	c.health.mu.Lock()
	tell := now.Sub(c.health.toldFull) >= time.Minute
	if tell {
		c.health.toldFull = now
	}
	c.health.mu.Unlock()
	if tell {
		_, deferred := c.holds.full()
		c.log.Warn("as many messages wait as may: workers wait with theirs until one of them is due; what deferred messages wait for may be behind them in the queue",
			"max_held", c.cfg.MaxHeld, "deferred", deferred)
	}
}
