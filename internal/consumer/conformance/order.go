package conformance

import (
	"slices"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// keyHeader is the header with the key of a sequenced message.
const keyHeader = "customer"

// ordered are scenes about the order of messages.
func ordered() []scene {
	var all []scene
	sequenced := func(name string, onFailure redeliver.SequenceFailure, act func(w *world, cfg redeliver.Config)) {
		all = append(all, scene{
			name:  "sequence/" + name,
			skip:  func(v variant) bool { return v.strategy != topology.InPlace && !v.fifo || v.convention != "" },
			topic: func(s *topology.Spec) { s.Sequenced = true },
			act: func(w *world) {
				w.v.queueType = topology.Classic // a retry stays in the consumer, as where nothing is counted
				sequence := redeliver.Sequence{Key: redeliver.KeyFromHeader(keyHeader), OnFailure: onFailure}
				if w.v.sqs() { // which knows the key: the message group
					sequence.Key = nil
				}
				act(w, redeliver.Config{Sequence: &sequence})
			},
		})
	}
	retry, ack := redeliver.Retry(errBoom), redeliver.Ack()
	sequenced("retried", "", func(w *world, cfg redeliver.Config) {
		w.tell(cfg, story{id: "a1", key: "a", outcomes: says(retry, retry, ack)}, story{id: "a2", key: "a", outcomes: says(ack)},
			story{id: "b1", key: "b", outcomes: says(ack)})
		w.inOrder("a1", "a1", "a1", "a2")
		w.inOrder("b1", "a2") // another key does not wait
	})
	sequenced("skip", redeliver.SkipFailed, func(w *world, cfg redeliver.Config) {
		w.tell(cfg, story{id: "a1", key: "a", outcomes: says(retry, redeliver.Reject(errBoom))}, story{id: "a2", key: "a", outcomes: says(ack)},
			story{id: "b1", key: "b", outcomes: says(ack)})
		w.inOrder("a1", "a1", "a2")
	})
	sequenced("fail all", redeliver.FailAll, failAll)
	sequenced("deferred", "", deferredInSequence)
	return append(all, scene{
		name:  "priority of a deferred copy",
		skip:  func(v variant) bool { return !v.holds() || v.convention != topology.RabbitKit },
		topic: func(s *topology.Spec) { top := 5; s.MaxPriority = &top },
		act: func(w *world) {
			w.tell(redeliver.Config{}, story{id: "a", priority: 2, outcomes: says(redeliver.RetryAfter(w.v.holdFrom(), errBoom), redeliver.DeferFor(w.v.holdFrom()), ack)})
			var priorities []uint8
			for _, c := range w.seen.calls["a"] {
				priorities = append(priorities, c.msg.Priority)
			}
			if want := []uint8{2, 2, 5}; !slices.Equal(priorities, want) {
				w.t.Errorf("handled with the priorities %v, want %v", priorities, want)
			}
		},
	})
}

// inOrder checks that calls happened in an order, among others.
func (w *world) inOrder(ids ...string) {
	w.t.Helper()
	next := 0
	for _, id := range w.seen.order {
		if next < len(ids) && id == ids[next] {
			next++
		}
	}
	if next < len(ids) {
		w.t.Errorf("handled in the order %q, want %q among that", w.seen.order, ids)
	}
}

// failAll: what follows on a message that failed for good is dead-lettered, and
// no handler sees it.
func failAll(w *world, cfg redeliver.Config) {
	ack := says(redeliver.Ack())
	all := []story{
		{id: "a1", key: "a", outcomes: says(redeliver.Reject(errBoom))},
		{id: "a2", key: "a", outcomes: ack},
		{id: "a3", key: "a", outcomes: ack},
		{id: "b1", key: "b", outcomes: ack},
	}
	c := w.consume(cfg, all...)
	for _, s := range all {
		w.publish(s)
	}
	w.untilEnded(all...)
	w.find(w.doc.DeadLetter, []string{"a1", "a2", "a3"})
	w.closed(c)
	w.checkStats(c.Stats(), redeliver.Stats{Delivered: 4, Handled: 2, Acked: 1, DeadLettered: 3})
}

// deferredInSequence: a message of a sequenced topic that is deferred is
// retried, because its successors wait for it.
func deferredInSequence(w *world, cfg redeliver.Config) {
	all := []story{
		{id: "a1", key: "a", outcomes: says(redeliver.Defer(), redeliver.Ack())}, {id: "a2", key: "a", outcomes: says(redeliver.Ack())},
	}
	c := w.consume(cfg, all...)
	for _, s := range all {
		w.publish(s)
	}
	w.untilEnded(all...)
	w.closed(c)
	w.inOrder("a1", "a1", "a2")
	if got := w.seen.calls["a1"][1].msg.RetryCount; got != 1 {
		w.t.Errorf("the deferred message came back with the retry count %d, want 1", got)
	}
	w.checkStats(c.Stats(), redeliver.Stats{Delivered: 2, Handled: 3, Acked: 2, Retried: 1})
}
