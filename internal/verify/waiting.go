package verify

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// waiting finds queues whose messages wait to be dead-lettered where the target is not there. A quorum queue that
// dead-letters at least once keeps them and tries again, every three minutes: they are neither ready nor handed out, and
// only the total has them.
func (v *verification) waiting(objects topology.Objects) {
	for i := range v.report.Objects {
		o := &v.report.Objects[i]
		if o.Kind != Queue || o.Messages == nil {
			continue
		}
		n := o.Messages.Total - o.Messages.Ready - o.Messages.Unacknowledged
		at := slices.IndexFunc(objects.Queues, func(q topology.Queue) bool { return q.Name == o.Name })
		if n <= 0 || at < 0 {
			continue
		}
		missing := v.missingTarget(objects.Queues[at], objects)
		if missing == "" {
			continue
		}
		o.Status = Drifted
		o.Differences = append(o.Differences, topology.Difference{
			Key: KeyWaiting, Want: "0", Live: strconv.FormatInt(n, 10), Meaning: topology.ChangesBehaviour,
			Explanation: fmt.Sprintf("these messages have left the queue for %s, which is not there: nobody receives them, and RabbitMQ tries again every few minutes until it is", missing),
		})
	}
}

// missingTarget names what a queue dead-letters to, or through, and is missing; "" where nothing is known to be.
func (v *verification) missingTarget(q topology.Queue, objects topology.Objects) string {
	exchange, routed := q.Arguments[topology.ArgDeadLetterExchange].(string)
	key, _ := q.Arguments[topology.ArgDeadLetterKey].(string)
	missing := func(kind Kind, name string) bool {
		return slices.ContainsFunc(v.report.Objects, func(o Object) bool { return o.Kind == kind && o.Name == name && o.Status == Missing })
	}
	switch {
	case !routed:
		return ""
	case exchange != "" && missing(Exchange, exchange):
		return fmt.Sprintf("exchange %q", exchange)
	case missing(Queue, key):
		return fmt.Sprintf("queue %q", key)
	}
	for _, b := range objects.Bindings {
		if b.Source == exchange && b.RoutingKey == key && missing(Binding, describe(b)) {
			return fmt.Sprintf("queue %q through a binding of exchange %q", b.Destination, exchange)
		}
	}
	return ""
}
