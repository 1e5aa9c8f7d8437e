package migration

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// TestAstray: a run ends when somebody has the switch or its branch lead elsewhere, before or while messages are moved. When that
// is put right the next one goes on. What the run has made itself is put right by that.
func TestAstray(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	names := topology.Queue{Name: "orders"}.Migrating()
	for name, tc := range map[string]struct {
		step Step
		// moved is how many messages have been moved in the step at least.
		moved        int
		exchange, to string
		cut          string // what the exchange leads to no more
		healed       bool   // by the next run
		doubles      bool
		essentials   []string
	}{
		"the branch leads to the queue too, before anything is moved": {
			step: StepEmpty, exchange: names.Branch, to: "orders", healed: true, essentials: []string{`to queue "orders" and to queue "orders-migrating"`},
		},
		"the branch leads to the queue too, while messages are moved": {
			step: StepEmpty, moved: 1, exchange: names.Branch, to: "orders", healed: true, doubles: true, essentials: []string{`to queue "orders" and to queue "orders-migrating"`},
		},
		"the branch leads to a third queue": {
			step: StepEmpty, moved: 1, exchange: names.Branch, to: "audit", essentials: []string{`to queue "audit" and to queue "orders-migrating"`, "remove the bindings"},
		},
		"the branch leads to the migrating queue too, on the way back": {
			step: StepReturn, moved: 1, exchange: names.Branch, to: names.Queue.Name, healed: true, doubles: true, essentials: []string{`to queue "orders" and to queue "orders-migrating"`},
		},
		"the branch leads nowhere": {
			step: StepEmpty, exchange: names.Branch, cut: names.Queue.Name, healed: true, essentials: []string{"leads nowhere"},
		},
		"the switch leads to a third queue": {
			step: StepEmpty, exchange: names.Switch, to: "audit", essentials: []string{`to queue "audit"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, b, topology.Classic, 0)
			y.request(http.MethodPut, "queues/%s/audit", map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "classic"}})
			ids := y.fill(10_000)
			c := y.client(y.b.ManagementURL(), y.b.Address())
			o := y.options()
			done := false
			o.Progress = func(p Progress) {
				if done || p.Step != tc.step || p.Moved < tc.moved {
					return
				}
				done = true
				var err error
				if tc.to != "" {
					err = c.Bind(t.Context(), y.vhost, way(tc.exchange, tc.to))
				} else {
					err = c.Unbind(t.Context(), y.vhost, way(tc.exchange, tc.cut))
				}
				if err != nil {
					t.Error(err)
				}
			}
			_, err := Run(t.Context(), o)
			var astray *AstrayError
			var undone *UndoneError
			if !errors.As(err, &astray) || errors.As(err, &undone) {
				t.Fatalf("%v", err)
			}
			for _, text := range tc.essentials {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is not in: %v", text, err)
				}
			}
			if !tc.healed {
				if _, err := Run(t.Context(), y.options()); !errors.As(err, &astray) {
					t.Errorf("the next run: %v", err)
				}
				must(t, c.Unbind(t.Context(), y.vhost, way(tc.exchange, tc.to)))
			}
			y.runTo(y.options())
			y.settled(y.after())
			doubles, got := 0, y.deliveries()
			if tc.doubles {
				doubles, got = len(ids), inAnyOrder(got)
			}
			t.Logf("%d messages are there twice", y.exactly(got, ids, doubles))
		})
	}
}
