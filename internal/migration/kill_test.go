package migration

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/internal/transfer"
)

const killMessages = 300

// TestKilledAnywhere kills a run after its first request, its second and so on, until one is through before that. The next
// run finishes what that left, undoes it where the configuration was taken back, or does either where the queue is to be
// deleted after it: each after every third request, and after others with the other type of queue.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	b := quick(t)
	for _, kind := range []topology.QueueType{topology.Classic, topology.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			total := newKill(t, b, kind, 0).run()
			t.Logf("a run that is not killed sends %d requests and pieces", total)
			var mu sync.Mutex
			doubled := 0
			t.Run("at", func(t *testing.T) {
				for after := 1; after <= total+5; after++ {
					t.Run(strconv.Itoa(after), func(t *testing.T) {
						t.Parallel()
						k := newKill(t, b, kind, after)
						turn := after
						if kind == topology.Quorum {
							turn++
						}
						k.takenBack, k.kept = turn%3 == 1, turn%3 == 2
						k.run()
						mu.Lock()
						defer mu.Unlock()
						doubled += k.doubled
					})
				}
			})
			t.Logf("%d messages were there twice, of %d", doubled, (total+5)*killMessages)
		})
	}
}

type kill struct {
	*yard
	gate *gate
	ctx  context.Context //nolint:containedctx // it ends with what is killed
	// takenBack: the run after the kill wants the queue as it was.
	takenBack bool
	// kept: the run after the kill wants the queue as it is.
	kept    bool
	doubled int
}

func newKill(t *testing.T, b *brokertest.Broker, kind topology.QueueType, after int) *kill {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	k := &kill{yard: newYard(t, b, kind, statisticsInterval), ctx: ctx}
	k.gate = newGate(t, b, after, cancel)
	return k
}

// run returns how much the run that was killed had sent.
func (k *kill) run() int {
	k.t.Helper()
	ids := k.fill(killMessages)
	o := k.options()
	o.Client = k.client(k.gate.management, k.gate.amqp)
	o.AllowDefaultExchangeLoss = true
	_, err := Run(k.ctx, o)
	want := k.after()
	killed := k.gate.isShut() // the context ends a moment after the connections
	if !killed {
		must(k.t, err)
	} else {
		k.givenBack() // what comes back later comes behind what the next run has taken by then
		again := k.options()
		again.AllowDefaultExchangeLoss = true
		if k.takenBack {
			want = k.before()
			again.Queue = want
		}
		if k.kept {
			again.Queue, again.Keep = topology.Queue{Name: want.Name}, true
		}
		k.runTo(again)
		if k.kept {
			live, err := again.Client.Queue(k.t.Context(), k.vhost, want.Name)
			must(k.t, err)
			if topology.CanonicalJSON(live.Arguments) == topology.CanonicalJSON(k.before().Arguments) {
				want = k.before()
			}
		}
	}
	k.settled(want)
	got := k.deliveries()
	doubles := 0
	if killed {
		doubles = transfer.DefaultPrefetch
	}
	if k.takenBack || k.kept {
		got = inAnyOrder(got)
	}
	k.doubled = k.exactly(got, ids, doubles)
	for _, d := range got {
		k.untouched(d)
		if k.t.Failed() {
			break
		}
	}
	return k.gate.passed()
}
