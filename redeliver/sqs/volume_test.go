package sqs_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

var errBoom = errors.New("boom")

// TestNothingIsLostOrStuck: 10,000 messages, every outcome at random, the
// consumer stopped and started three times in between. Every message ends in one
// place, by its body, and none is with two handlers at a time.
func TestNothingIsLostOrStuck(t *testing.T) {
	t.Parallel()
	tests := map[string][]func(*topology.SQSSpec){
		"redrive":      nil,
		"send parking": {parking},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const n = 10_000
			w := onFaux(t, change...)
			v := &volume{with: make(map[string]int), ended: make(map[string]redeliver.EventKind)}
			all := ids(n)
			w.publish(all...)
			for restart := range 4 {
				l := w.consume(redeliver.Config{Workers: 32}, v.handle)
				v.await(l, n*(restart+1)/4)
				l.mustStop()
				v.read(t, l, w.doc.Final == topology.FinalBroker)
			}
			if v.overlapped != 0 {
				t.Errorf("%d messages were with two handlers at a time", v.overlapped)
			}
			expect := map[redeliver.EventKind][]string{}
			for id, kind := range v.ended {
				expect[kind] = append(expect[kind], id)
			}
			for _, list := range expect {
				slices.Sort(list)
			}
			t.Logf("%d handler calls; acked %d, dead-lettered %d, parked %d; %d were handled again that the redrive policy had yet to move", v.handled,
				len(expect[redeliver.EventAcked]), len(expect[redeliver.EventDeadLettered]), len(expect[redeliver.EventParked]), v.again)
			if got := slices.Sorted(maps.Keys(v.ended)); !slices.Equal(got, all) {
				t.Errorf("%d messages ended, want %d", len(got), n)
			}
			// The redrive policy moves what is left when it is received.
			left := bodies(w.drained(w.doc.WorkQueue))
			dead := bodies(w.drained(w.doc.DeadLetter.ManifestQueue))
			if w.doc.Final == topology.FinalPublish && len(left) > 0 {
				t.Errorf("%d messages are left in the work queue", len(left))
			}
			dead = append(dead, left...)
			slices.Sort(dead)
			if !slices.Equal(dead, expect[redeliver.EventDeadLettered]) {
				t.Errorf("%d messages are dead, want %d", len(dead), len(expect[redeliver.EventDeadLettered]))
			}
			if w.doc.Parked != nil {
				if parked := bodies(w.drained(w.doc.Parked.ManifestQueue)); !slices.Equal(parked, expect[redeliver.EventParked]) {
					t.Errorf("%d messages are parked, want %d", len(parked), len(expect[redeliver.EventParked]))
				}
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
	again      int
}

func (v *volume) handle(_ context.Context, m *redeliver.Message) redeliver.Outcome {
	body := string(m.Body)
	v.mu.Lock()
	v.handled++
	if v.with[body]++; v.with[body] > 1 {
		v.overlapped++
	}
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		v.with[body]--
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

func finalKinds() []redeliver.EventKind {
	return []redeliver.EventKind{redeliver.EventAcked, redeliver.EventDeadLettered, redeliver.EventParked, redeliver.EventDiscarded}
}

// await waits until about n messages have ended, those of earlier consumers
// included; the last consumer has to end exactly all of them.
func (v *volume) await(l *live, n int) {
	l.t.Helper()
	l.until(func() bool {
		ended := make(map[string]bool)
		for body := range v.ended {
			ended[body] = true
		}
		s := l.Stats()
		if len(ended)+int(s.Acked+s.DeadLettered+s.Parked+s.Discarded) < n { //nolint:gosec // a number of messages
			return false
		}
		for _, kind := range finalKinds() {
			for _, e := range l.of(kind) {
				ended[string(e.Message.Body)] = true
			}
		}
		return len(ended) >= n
	}, "enough messages ended")
}

// read takes over which messages a consumer that has stopped has ended. One that
// the redrive policy had yet to move may have ended before.
func (v *volume) read(t *testing.T, l *live, redrive bool) {
	t.Helper()
	for _, kind := range finalKinds() {
		for _, e := range l.of(kind) {
			body := string(e.Message.Body)
			if was, twice := v.ended[body]; twice && redrive && was == redeliver.EventDeadLettered {
				v.again++
			} else if twice {
				t.Errorf("message %s ended twice: %s and %s", body, was, kind)
			}
			v.ended[body] = kind
		}
	}
}
