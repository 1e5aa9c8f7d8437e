package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// faults are scenes in which something is missing or ends. Amazon SQS has no
// connections that could: what can be missing or end there is redeliver/sqs's to
// test.
func faults() []scene {
	return []scene{
		{name: "hold queue missing", skip: func(v variant) bool { return !v.holds() }, act: holdQueueMissing},
		{name: "dead-letter queue missing", skip: variant.sqs, act: deadLetterQueueMissing},
		{name: "parked queue missing", skip: func(v variant) bool { return v.sqs() || !v.convention.HasParkedQueue() }, topic: func(s *topology.Spec) {
			s.ParkedQueue, s.Park = s.ParkedQueueName(), topology.ParkPublish
		}, act: parkedQueueMissing},
		{name: "session lost while held", skip: func(v variant) bool {
			return v.strategy != topology.InPlace && v.strategy != topology.Hybrid
		}, topic: func(s *topology.Spec) {
			s.Retry.Delays = []time.Duration{50 * time.Second, time.Minute} // longer than a session takes to be lost
			if len(s.HoldDelays) > 0 {
				s.HoldDelays, s.Retry.HoldFrom = s.Retry.Delays, 55*time.Second
			}
		}, act: lostWhileHeld},
		{name: "session lost while handled", skip: variant.sqs, act: lostWhileHandled},
	}
}

// holdQueueMissing: the second retry finds its hold queue missing. Under hybrid
// that wait happens in the consumer; under republish the copy is published again
// until it is taken.
func holdQueueMissing(w *world) {
	s := story{id: "a", outcomes: says(redeliver.Retry(errBoom), redeliver.Retry(errBoom), redeliver.Ack())}
	hold := w.doc.HoldQueues[1].Name
	w.Remove(hold)
	c := w.consume(redeliver.Config{}, s)
	w.publish(s)
	want := expect(w.v, w.doc, redeliver.Config{}, s)
	want.stats.HoldQueueMissing = 1
	if w.v.strategy == topology.Hybrid {
		want.stats.Republished--
		if !w.v.counts() {
			want.stats.Delivered--
		}
	} else {
		w.until(redeliver.EventHoldQueueMissing)
		w.Restore(hold)
	}
	w.untilEnded(s)
	w.closed(c)
	got := c.Stats()
	if w.v.strategy == topology.Republish {
		w.checkAtLeast("hold queues that were missing", &got.HoldQueueMissing, 1)
		want.waits[1].lasts *= 2 // once in the consumer, and then in the hold queue
		if !w.Exact() {
			want.waits[1].lasts /= 2
		}
	}
	w.check(s, want)
	w.checkStats(got, want.stats)
}

// checkAtLeast checks a counter whose value depends on how long something took,
// and then sets it to the least that it may be.
func (w *world) checkAtLeast(what string, got *uint64, least uint64) {
	w.t.Helper()
	if *got < least {
		w.t.Errorf("%s: %d, want at least %d", what, *got, least)
	}
	*got = least
}

// deadLetterQueueMissing: a message that is given up has nowhere to go. Where it
// is published, and the work queue has a dead-letter exchange of its own, it is
// rejected once; without, it waits until the queue is there.
func deadLetterQueueMissing(w *world) {
	s := story{id: "a", outcomes: says(redeliver.Reject(errBoom))}
	w.Remove(w.doc.DeadLetter.Name)
	c := w.consume(redeliver.Config{}, s)
	w.publish(s)
	want := expect(w.v, w.doc, redeliver.Config{}, s)
	_, rejects := w.doc.WorkQueue.Arguments[topology.ArgDeadLetterExchange]
	waits := w.doc.Final == topology.FinalPublish && !rejects
	if waits {
		w.until(redeliver.EventSetAsideFailed)
		w.Restore(w.doc.DeadLetter.Name)
	}
	w.untilEnded(s)
	w.check(s, want)
	if err := c.Close(); err != nil {
		w.t.Error(err)
	}
	got := c.Stats()
	if w.doc.Final == topology.FinalPublish {
		want.stats.SetAsideFailed = 1
		want.stats.SetAsideFailures = map[string]uint64{w.doc.DeadLetter.Name: 1}
		w.checkSetAside(&got, w.doc.DeadLetter.Name)
	}
	w.checkStats(got, want.stats)
	switch keeps := w.doc.WorkQueue.Arguments[topology.ArgDeadLetterStrategy] == "at-least-once"; {
	case waits:
		w.find(w.doc.DeadLetter, []string{"a"})
	case keeps && w.Exact(): // a real broker looks for the queue after three minutes
		w.Restore(w.doc.DeadLetter.Name)
		w.find(w.doc.DeadLetter, []string{"a"})
	}
}

// checkSetAside is checkAtLeast for the failures to set messages aside in a queue.
func (w *world) checkSetAside(got *redeliver.Stats, queue string) {
	w.t.Helper()
	if got.SetAsideFailures[queue] != got.SetAsideFailed {
		w.t.Errorf("failures by queue %v, want %d in %q", got.SetAsideFailures, got.SetAsideFailed, queue)
	}
	w.checkAtLeast("failures to set a message aside", &got.SetAsideFailed, 1)
	got.SetAsideFailures = map[string]uint64{queue: got.SetAsideFailed}
}

// parkedQueueMissing: a message that cannot be parked is dead-lettered where the
// strategy republishes, and waits until the queue is there where it does not.
func parkedQueueMissing(w *world) {
	s := story{id: "a", outcomes: says(redeliver.Park(errBoom))}
	w.Remove(w.doc.Parked.Name)
	c := w.consume(redeliver.Config{}, s)
	w.publish(s)
	want := expect(w.v, w.doc, redeliver.Config{}, s)
	if w.v.holds() {
		want.fate = dead
		want.stats.Parked, want.stats.DeadLettered = 0, 1
	} else {
		w.until(redeliver.EventSetAsideFailed)
		w.Restore(w.doc.Parked.Name)
	}
	w.untilEnded(s)
	w.check(s, want)
	if want.fate == dead {
		w.find(w.doc.DeadLetter, []string{"a"})
	} else {
		w.find(w.doc.Parked, []string{"a"})
	}
	w.closed(c)
	got := c.Stats()
	want.stats.SetAsideFailed, want.stats.SetAsideFailures = 1, map[string]uint64{w.doc.Parked.Name: 1}
	w.checkSetAside(&got, w.doc.Parked.Name)
	w.checkStats(got, want.stats)
}

// afterLoss is the retry count of a message that was lost with a session: where
// the broker counts, that spends a retry.
func (v variant) afterLoss() int {
	if v.counts() {
		return 1
	}
	return 0
}

// lostWhileHeld: a message that waits in the consumer comes back at once.
func lostWhileHeld(w *world) {
	s := story{id: "a", outcomes: says(redeliver.Retry(errBoom), redeliver.Ack())}
	c := w.consume(redeliver.Config{}, s)
	w.publish(s)
	w.until(redeliver.EventRetried)
	w.Disconnect()
	w.untilEnded(s)
	w.checkLoss(c, redeliver.Stats{
		Delivered: 2, Handled: 2, Retried: 1, Acked: 1, Dropped: 1, SessionsLost: 1, Reconnects: 1,
	})
}

// lostWhileHandled: the outcome of a handler whose session was lost is dropped,
// and the message is handed out again.
func lostWhileHandled(w *world) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	c := w.Consume(redeliver.Config{OnEvent: w.note}, redeliver.HandlerFunc(func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		if w.called(m) == 0 {
			close(begun)
			<-goOn
		}
		return redeliver.Ack()
	}))
	s := story{id: "a"}
	w.publish(s)
	select {
	case <-begun:
	case <-time.After(waitForEvent):
		w.t.Fatal("the handler was not called")
	}
	w.Disconnect()
	w.await(redeliver.EventDisconnected)
	close(goOn)
	w.untilEnded(s)
	w.checkLoss(c, redeliver.Stats{Delivered: 2, Handled: 2, Acked: 1, Dropped: 1, SessionsLost: 1, Reconnects: 1})
}

func (w *world) checkLoss(c Consumer, want redeliver.Stats) {
	w.t.Helper()
	w.closed(c)
	w.mu.Lock()
	calls := w.seen.calls["a"]
	w.mu.Unlock()
	if got, want := fmt.Sprint(calls[0].msg.RetryCount, calls[1].msg.RetryCount), fmt.Sprint(0, w.v.afterLoss()); got != want || len(calls) != 2 {
		w.t.Errorf("handled %d times, with the retry counts %s, want %s", len(calls), got, want)
	}
	w.checkStats(c.Stats(), want)
}
