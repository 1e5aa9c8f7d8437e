package transfer

import (
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

func TestPurge(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	for kind, args := range queueKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, b)
			y.declare("dlq", args)
			y.fill("dlq", 7)
			dial := y.options("dlq", "").Dial
			if n, consumers, err := Ready(t.Context(), dial, "dlq"); n != 7 || consumers != 0 || err != nil {
				t.Errorf("%d ready, %d consumers, %v", n, consumers, err)
			}
			if n, err := Purge(t.Context(), dial, "dlq"); n != 7 || err != nil {
				t.Errorf("%d purged, %v", n, err)
			}
			brokertest.WaitDepth(t, b, y.vhost, "dlq", 0)
			if _, err := Purge(t.Context(), dial, "none"); err == nil || !strings.Contains(err.Error(), `queue "none"`) {
				t.Errorf("of a queue that is not there: %v", err)
			}
		})
	}
}

// TestEach is told of the messages that are wanted, and of no others.
func TestEach(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t))
	y.declare("from", queueKinds["quorum"])
	y.declare("to", queueKinds["quorum"])
	ids := y.fill("from", 20)
	for _, dry := range []bool{true, false} {
		o := y.options("from", "to")
		var seen []string
		o.DryRun, o.Limit = dry, 5
		o.Filter = func(d *amqp091.Delivery) bool { return d.MessageId >= "m00010" }
		o.Each = func(d *amqp091.Delivery) { seen = append(seen, d.MessageId) }
		report, err := Move(t.Context(), o)
		if err != nil || report.Moved != 5 || !slices.Equal(seen, ids[10:15]) {
			t.Errorf("dry run %v: %+v, %v, %q", dry, report, err, seen)
		}
	}
}
