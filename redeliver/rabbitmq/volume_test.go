package rabbitmq_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// TestNothingIsLostOrStuck: 10,000 messages, every outcome at random, the
// consumer stopped and started three times in between. Every message ends in
// exactly one place, by id, and none is with two handlers at a time.
func TestNothingIsLostOrStuck(t *testing.T) {
	t.Parallel()
	tests := map[string][]func(*topology.Spec){
		"quorum":         nil,
		"classic":        {onClassic},
		"quorum parking": {parking},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 10_000
			w := newWorld(t, append(change, func(s *topology.Spec) {
				s.Retry.Delays = []time.Duration{time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond}
			})...)
			v := &volume{with: make(map[string]int), ended: make(map[string]redeliver.EventKind)}
			all := ids(n)
			w.publish(all...)
			for restart := range 4 {
				l := w.consume(redeliver.Config{Workers: 16}, v.handle)
				stopAt := n * (restart + 1) / 4
				v.await(t, l, stopAt)
				if err := l.stopped(); err != nil {
					t.Fatal(err)
				}
				v.read(t, l)
			}
			if v.overlapped != 0 {
				t.Errorf("%d messages were with two handlers at a time", v.overlapped)
			}
			w.waitDepth("orders", 0)
			expect := map[redeliver.EventKind][]string{}
			for id, kind := range v.ended {
				expect[kind] = append(expect[kind], id)
			}
			t.Logf("%d handler calls; acked %d, dead-lettered %d, parked %d", v.handled,
				len(expect[redeliver.EventAcked]), len(expect[redeliver.EventDeadLettered]), len(expect[redeliver.EventParked]))
			w.drained(w.spec.DeadLetterQueue, expect[redeliver.EventDeadLettered]...)
			if w.spec.Park == topology.ParkPublish {
				w.drained("orders-parked", expect[redeliver.EventParked]...)
			}
			if got := slices.Sorted(maps.Keys(v.ended)); !slices.Equal(got, all) {
				t.Errorf("%d messages ended, want %d", len(got), n)
			}
			if depth := brokertest.Depth(t, w.broker, w.vhost, "orders"); depth != 0 {
				t.Errorf("%d messages left in the work queue", depth)
			}
		})
	}
}

// volume is a handler of random outcomes that notes what it sees.
type volume struct {
	mu         sync.Mutex
	with       map[string]int // handlers that have the message now
	handled    int
	overlapped int
	ended      map[string]redeliver.EventKind
}

func (v *volume) handle(_ context.Context, m *redeliver.Message) redeliver.Outcome {
	v.mu.Lock()
	v.handled++
	if v.with[m.ID]++; v.with[m.ID] > 1 {
		v.overlapped++
	}
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		v.with[m.ID]--
		v.mu.Unlock()
	}()
	switch rand.IntN(40) {
	case 0:
		panic("boom")
	case 1, 2, 3, 4, 5, 6:
		return redeliver.Retry(errBoom)
	case 7, 8:
		return redeliver.RetryAfter(time.Duration(rand.IntN(20))*time.Millisecond, errBoom)
	case 9, 10:
		return redeliver.Defer()
	case 11:
		return redeliver.DeferFor(time.Millisecond)
	case 12, 13:
		return redeliver.Reject(errors.New("rejected"))
	case 14:
		return redeliver.Reject(nil)
	case 15, 16:
		return redeliver.Park(errBoom)
	case 17:
		return redeliver.Outcome{}
	default:
		return redeliver.Ack()
	}
}

var finalKinds = []redeliver.EventKind{redeliver.EventAcked, redeliver.EventDeadLettered, redeliver.EventParked, redeliver.EventDiscarded}

// await waits until about n messages have ended, those of earlier consumers
// included; the last consumer has to end exactly all of them.
func (v *volume) await(t *testing.T, l *live, n int) {
	t.Helper()
	before := len(v.ended)
	timeout := time.After(4 * waitTimeout)
	for {
		l.mu.Lock()
		more := l.more
		l.mu.Unlock()
		s := l.Stats()
		if before+int(s.Acked+s.DeadLettered+s.Parked+s.Discarded) >= n {
			return
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("%d of %d ended: %+v", before, n, s)
		}
	}
}

// read takes over which messages a consumer that has stopped has ended.
func (v *volume) read(t *testing.T, l *live) {
	t.Helper()
	for _, kind := range finalKinds {
		for _, e := range l.of(kind) {
			if was, twice := v.ended[e.Message.ID]; twice {
				t.Errorf("message %s ended twice: %s and %s", e.Message.ID, was, kind)
			}
			v.ended[e.Message.ID] = kind
		}
	}
}
