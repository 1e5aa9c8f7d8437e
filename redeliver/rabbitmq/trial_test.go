package rabbitmq_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// strategies are the ways of settling that faults are tried under. Where messages are copied, unreadable ones are too.
var strategies = map[topology.Strategy]func(*topology.Spec){
	topology.InPlace: func(s *topology.Spec) {
		s.Retry.Delays = []time.Duration{20 * time.Millisecond, 300 * time.Millisecond}
	},
	topology.Republish: func(s *topology.Spec) {
		s.Retry.Strategy = topology.Republish
		s.HoldDelays = []time.Duration{100 * time.Millisecond, 300 * time.Millisecond}
		s.Retry.Delays = s.HoldDelays
		parking(s)
	},
	topology.Hybrid: func(s *topology.Spec) {
		s.Retry.Strategy, s.Retry.HoldFrom = topology.Hybrid, 200*time.Millisecond
		s.HoldDelays = []time.Duration{20 * time.Millisecond, 300 * time.Millisecond}
		s.Retry.Delays = s.HoldDelays
		parking(s)
	},
}

// underStrategies runs a test under these strategies; none are all.
func underStrategies(t *testing.T, test func(t *testing.T, change func(*topology.Spec)), only ...topology.Strategy) {
	for name, change := range strategies {
		if len(only) == 0 || slices.Contains(only, name) {
			t.Run(string(name), func(t *testing.T) { t.Parallel(); test(t, change) })
		}
	}
}

// trial is a topic under a fault: messages are published while it happens, a consumer handles them with random
// outcomes, and in the end every message has to be accounted for.
type trial struct {
	*testing.T
	w    *world
	book *ledger
	// live is the consumer in this process, nil without one.
	live *live
	stop func() // ends the publisher
	// spare is how many duplicates the faults may have caused beyond those that the consumer in this process knows of.
	spare int
	// alive: only connections are lost, so that the consumer knows of nearly all duplicates.
	alive bool
	// children counts the consumers in processes of their own, which write to pipe; kills ends each of them.
	children int
	pipe     *os.File
	kills    []func()
}

// begin starts a publisher and, with consume, a consumer.
func begin(w *world, consume bool) *trial {
	w.t.Helper()
	seed := rand.Uint64()
	w.t.Logf("seed %d", seed)
	tr := &trial{T: w.t, w: w, book: newLedger(seed, w.spec.Sequenced)}
	if consume {
		tr.consume()
	}
	tr.feed()
	return tr
}

func (tr *trial) consume() {
	tr.Helper()
	tr.live = tr.w.consume(redeliver.Config{Sequence: tr.book.sequence(), OnEvent: tr.book.told}, tr.book.handle)
}

// feed publishes from now on.
func (tr *trial) feed() {
	tr.Helper()
	urls := []string{tr.w.broker.AMQPURL(tr.w.vhost)}
	for _, b := range tr.w.cluster {
		urls = append(urls, b.AMQPURL(tr.w.vhost))
	}
	tr.stop = tr.book.feed(tr.T, tr.w.pace, "orders", urls...)
}

// wait polls a condition for as long as a test may wait.
func (tr *trial) wait(condition func() (ok bool, state string)) {
	tr.Helper()
	deadline := time.Now().Add(waitTimeout)
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, state := condition()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			tr.Fatalf("after %s: %s", waitTimeout, state)
		}
		<-ticker.C
	}
}

// goOn waits until handlers were called n times more.
func (tr *trial) goOn(n int) {
	tr.Helper()
	before := tr.book.handled()
	tr.wait(func() (bool, string) {
		after := tr.book.handled()
		return after >= before+n, fmt.Sprintf("handlers were called %d times, want %d more", after-before, n)
	})
}

// awaitHealth waits until the consumer is so, for a reason that has these words in it.
func (tr *trial) awaitHealth(status redeliver.HealthStatus, words ...string) {
	tr.Helper()
	tr.wait(func() (bool, string) {
		h := tr.live.Health()
		ok := h.Status == status
		for _, word := range words {
			ok = ok && strings.Contains(strings.Join(h.Reasons, "\n"), word)
		}
		return ok, fmt.Sprintf("health %+v, want %s with %q", h, status, words)
	})
}

// awaitUp waits until the consumer takes messages. It may be degraded for a while after copies were not confirmed.
func (tr *trial) awaitUp() {
	tr.Helper()
	tr.wait(func() (bool, string) {
		err := tr.live.Health().Err()
		return err == nil, fmt.Sprint(err)
	})
}

// account waits until every message has ended, with nothing on its way any more: the publisher is stopped first.
func (tr *trial) account() {
	tr.Helper()
	tr.stop()
	tr.wait(func() (bool, string) {
		tr.collect()
		n, such := tr.book.missing()
		return n == 0, fmt.Sprintf("%d messages ended nowhere, such as %s; %s", n, such, tr.state())
	})
	quiet := 0
	tr.wait(func() (bool, string) {
		if quiet++; tr.onTheWay() != 0 {
			quiet = 0
		}
		return quiet == 3, tr.state()
	})
	tr.collect()
}

// collect takes out what is in the dead-letter and the parked queue.
func (tr *trial) collect() {
	tr.Helper()
	w := tr.w
	tr.book.found(tr.book.dead, brokertest.Drain(tr.T, w.broker, w.vhost, w.spec.DeadLetterQueue))
	if w.spec.ParkedQueue != "" {
		tr.book.found(tr.book.parked, brokertest.Drain(tr.T, w.broker, w.vhost, w.spec.ParkedQueue))
	}
}

// waiting are the depths of the work queue and the hold queues.
func (tr *trial) waiting() map[string]int {
	tr.Helper()
	depths := make(map[string]int)
	for _, q := range tr.w.doc.WorkQueues() {
		depths[q.Name] = brokertest.Depth(tr.T, tr.w.broker, tr.w.vhost, q.Name)
	}
	for _, q := range tr.w.doc.HoldQueues {
		depths[q.Name] = brokertest.Depth(tr.T, tr.w.broker, tr.w.vhost, q.Name)
	}
	return depths
}

// onTheWay is how many messages have not ended, as far as can be seen.
func (tr *trial) onTheWay() (n int) {
	tr.Helper()
	for _, depth := range tr.waiting() {
		n += depth
	}
	if tr.live != nil {
		s := tr.live.Stats()
		n += s.Held + s.Running
	}
	return n
}

func (tr *trial) state() string {
	tr.Helper()
	state := fmt.Sprintf("waiting %v", tr.waiting())
	if tr.live != nil {
		state += fmt.Sprintf(", %+v", tr.live.Stats())
	}
	return state
}

// end accounts for everything: nothing is lost, nothing is stuck, and duplicates are those that at-least-once allows.
func (tr *trial) end() {
	tr.Helper()
	tr.stop()
	tr.account()
	tr.book.wrapUp() // what comes now is a duplicate
	tr.account()
	tr.live.mustStop()
	for queue, depth := range tr.waiting() {
		if depth != 0 {
			tr.Errorf("%d messages are stuck in queue %q", depth, queue)
		}
	}
	s := tr.live.Stats()
	all, publishers := tr.book.duplicates()
	// The broker delivers again what was unsettled when a session was lost, and whatever copy was not confirmed may have
	// been taken all the same. Of a broker that died nobody knows which acknowledgements it had taken.
	lost := int(s.SessionsLost) + tr.book.reconnects()
	allowed := publishers + tr.spare + int(s.SetAsideFailed)
	if tr.alive {
		allowed += int(s.Dropped) + lost*acksOnTheirWay //nolint:gosec // few
	} else {
		allowed += lost * tr.prefetch()
	}
	if all > allowed {
		tr.Errorf("%d messages ended more than once, at most %d may", all, allowed)
	}
	b := tr.book
	if b.overlapped > 0 && allowed == 0 {
		tr.Errorf("%d messages were with two handlers at a time, without a reason", b.overlapped)
	}
	tr.Logf("%d published, %d handler calls; acked %d, dead %d, parked %d; %d duplicates of %d that may be, %d of them the publisher's; "+
		"%d calls for messages that had ended, %d with two handlers; %+v",
		len(b.published), b.calls, len(b.acked), len(b.dead), len(b.parked), all, allowed, publishers, b.again, b.overlapped, s)
	if s.SessionsLost > 0 && !strings.Contains(tr.live.log.String(), "subscription lost") {
		tr.Error("the log does not say that the subscription was lost")
	}
	if dropped := len(tr.live.of(redeliver.EventDropped)); uint64(dropped) > s.Dropped {
		tr.Errorf("%d outcomes were dropped and %d counted", dropped, s.Dropped)
	}
	for id := range maps.Keys(b.parked) {
		if b.published[id] == 0 {
			tr.Errorf("%q was parked and never published", id)
		}
	}
	if b.order != nil {
		b.order.report(tr.T)
	}
}

// acksOnTheirWay is how many acknowledgements a broker may not have taken yet that closes a connection: what was written
// just before, and what a quorum queue forgets that is on its way from the channel to it. They were counted as sent.
const acksOnTheirWay = feedBatch

func (tr *trial) prefetch() int { return redeliver.Config{}.WithDefaults().Prefetch }
