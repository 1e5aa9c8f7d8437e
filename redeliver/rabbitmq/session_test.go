package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// gate is a handler that keeps each call until the test answers it.
type gate struct{ calls chan gateCall }

type gateCall struct {
	msg    redeliver.Message
	ctx    context.Context
	answer chan redeliver.Outcome
}

func newGate() *gate { return &gate{calls: make(chan gateCall)} }

func (g *gate) handle(ctx context.Context, m *redeliver.Message) redeliver.Outcome {
	call := gateCall{*m, ctx, make(chan redeliver.Outcome)}
	g.calls <- call
	return <-call.answer
}

// next waits for the handler to be called.
func (g *gate) next(t *testing.T) gateCall {
	t.Helper()
	select {
	case call := <-g.calls:
		return call
	case <-time.After(waitTimeout):
		t.Fatal("the handler was not called")
		return gateCall{}
	}
}

// closeConnections closes the connections of the world's user through the
// management API, as an operator would.
func (w *world) closeConnections() {
	w.t.Helper()
	if status, answer := brokertest.Request(w.t, w.broker, http.MethodDelete, "/api/connections/username/"+w.user, nil); status != http.StatusNoContent {
		w.t.Fatalf("closing the connections of %s: %d %s", w.user, status, answer)
	}
}

// TestLateOutcomeSettlesNothing: the outcome of a handler whose connection was
// lost is dropped. It reaches no delivery of the next session, although that
// has the same tag.
func TestLateOutcomeSettlesNothing(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, change func(*topology.Spec)) {
		w := newWorld(t, change)
		g := newGate()
		l := w.consume(redeliver.Config{Workers: 2}, g.handle)
		w.publish("a")
		late := g.next(t)
		w.closeConnections()
		l.await(redeliver.EventConnected, 2)
		again := g.next(t)
		if again.msg.ID != "a" || !again.msg.Redelivered {
			t.Fatalf("got %q (redelivered: %v) after the connection was lost", again.msg.ID, again.msg.Redelivered)
		}
		late.answer <- redeliver.Ack() // its tag, 1, is now that of the second delivery
		l.await(redeliver.EventDropped, 1)
		again.answer <- redeliver.Reject(errBoom)
		l.await(redeliver.EventDeadLettered, 1)
		l.mustStop()
		w.drained(w.spec.DeadLetterQueue, "a")
		if s := l.Stats(); s.Dropped != 1 || s.Acked != 0 || s.SessionsLost != 1 || s.Reconnects != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// TestLostConnectionCosts: a lost connection spends one count of every
// prefetched message, touched or not, and of no other.
func TestLostConnectionCosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newGate()
	l := w.consume(redeliver.Config{Workers: 1, MaxHeld: 4}, g.handle)
	w.publish(ids(20)...)
	first := g.next(t)
	w.waitDepth("orders", 15)
	w.closeConnections()
	l.await(redeliver.EventConnected, 2)
	first.answer <- redeliver.Ack()
	counted := 0
	for range 20 {
		call := g.next(t)
		counted += call.msg.RetryCount
		call.answer <- redeliver.Ack()
	}
	if counted != 5 {
		t.Errorf("%d counts were spent, want those of the 5 prefetched messages", counted)
	}
	l.await(redeliver.EventAcked, 20)
	l.mustStop()
}

// TestDrainKeepsCountsLow: stopping with many messages prefetched costs each
// one count at most, and none since 4.3. A consumer that gave them back before
// it cancelled would get them again and again.
func TestDrainKeepsCountsLow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n, stops = 100, 5
	w.publish(ids(n)...)
	for range stops {
		g := newGate()
		l := w.consume(redeliver.Config{Workers: 1, MaxHeld: n}, g.handle)
		call := g.next(t)
		w.waitDepth("orders", 0)
		l.stop()
		l.await(redeliver.EventHandedBack, n-1)
		call.answer <- redeliver.Defer() // and now it is given back too
		if err := l.ended(); err != nil {
			t.Fatal(err)
		}
		w.waitDepth("orders", n)
	}
	want := int64(stops)
	if brokertest.HasVersion(w.broker, "4.3") {
		want = 0
	}
	for _, d := range w.drained("orders", ids(n)...) {
		if count, _ := d.Headers["x-delivery-count"].(int64); count > want {
			t.Errorf("message %s has a delivery count of %d, want at most %d", d.MessageId, count, want)
		}
	}
	if depth := brokertest.Depth(t, w.broker, w.vhost, "orders-dlq"); depth != 0 {
		t.Errorf("%d messages were dead-lettered", depth)
	}
}

// TestForgedCountsAreClamped: whatever a publisher writes into the broker's
// header, a message gets at least one attempt and at most its budget. (The
// broker shows a forged count once and then counts from 1.)
func TestForgedCountsAreClamped(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, change func(*topology.Spec)) {
		w := newWorld(t, change, func(s *topology.Spec) { s.Retry.MaxRetries = 3 })
		var mu sync.Mutex
		counts := make(map[string][]int)
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			mu.Lock()
			defer mu.Unlock()
			counts[m.ID] = append(counts[m.ID], m.RetryCount)
			return redeliver.Retry(errBoom)
		})
		forged := map[string]any{
			"int8": int8(1), "byte": byte(2), "int16": int16(1), "int32": int32(2), "int64": int64(1), "string": "2", "negative": int64(-5),
			"huge": int64(1) << 60, "float": 1.5, "table": amqp091.Table{}, "nothing": nil,
		}
		for id, value := range forged {
			w.send(amqp091.Publishing{MessageId: id, Headers: amqp091.Table{"x-delivery-count": value}})
		}
		l.await(redeliver.EventDeadLettered, len(forged))
		l.mustStop()
		for id, got := range counts {
			if len(got) == 0 || len(got) > 4 || got[0] < 0 || got[len(got)-1] != 3 {
				t.Errorf("forged as %s: handled with the retry counts %v", id, got)
			}
		}
	})
}

// TestQueueDeleted: the consumer says that its queue is gone, keeps trying, and
// goes on when it is back.
func TestQueueDeleted(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, change func(*topology.Spec)) {
		w := newWorld(t, change)
		g := newGate()
		l := w.consume(redeliver.Config{Workers: 2}, g.handle)
		w.publish("lost with its queue")
		late := g.next(t)
		if _, err := brokertest.Channel(t, w.broker, w.vhost).QueueDelete("orders", false, false, false); err != nil {
			t.Fatal(err)
		}
		lost := l.await(redeliver.EventDisconnected, 1)
		if !strings.Contains(lost[0].Err.Error(), "queue deleted") {
			t.Errorf("disconnected because %v", lost[0].Err)
		}
		late.answer <- redeliver.Ack()
		l.await(redeliver.EventDropped, 1)
		brokertest.WaitFor(t, func() (bool, string) {
			return strings.Contains(l.log.String(), "the queue does not exist"), "the log does not say that the queue is missing"
		})
		w.declare()
		l.await(redeliver.EventConnected, 2)
		w.publish("new")
		if call := g.next(t); call.msg.ID != "new" {
			t.Errorf("got %q", call.msg.ID)
		} else {
			call.answer <- redeliver.Ack()
		}
		l.await(redeliver.EventAcked, 1)
		l.mustStop()
	})
}

// TestQueueMadeAgainAtOnce: consumers whose queue is deleted and there again in one moment go on, whatever the broker makes of
// it: 3.10 and 4.0 tell them nothing and send them nothing, 4.3 closes their connections.
func TestQueueMadeAgainAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ch := brokertest.Channel(t, w.broker, w.vhost)
	objects, err := w.spec.Build()
	if err != nil {
		t.Fatal(err)
	}
	few := redeliver.Config{Workers: 1, Prefetch: 2}
	each := few
	each.AckEach = true
	consumers := []*live{w.consume(few, acking), w.consume(each, acking)}
	sent, acked := 0, func() (n int) {
		for _, l := range consumers {
			n += len(l.of(redeliver.EventAcked))
		}
		return n
	}
	deliver := func() {
		t.Helper()
		for range 10 { // more than both have at once
			w.publish(fmt.Sprint(sent))
			sent++
		}
		brokertest.WaitFor(t, func() (bool, string) {
			return acked() == sent, fmt.Sprintf("%d messages are acknowledged, of %d", acked(), sent)
		})
	}
	deliver()
	silent := strings.HasPrefix(w.broker.Version(), "3.") || strings.HasPrefix(w.broker.Version(), "4.0.")
	for again := 1; ; again++ { // on a busy machine the queue may be away for so long that consumers are cancelled
		if _, err := ch.QueueDelete("orders", false, false, false); err != nil {
			t.Fatal(err)
		}
		for _, q := range objects.Queues {
			if _, err := ch.QueueDeclare(q.Name, true, false, false, false, amqp091.Table(q.Arguments)); err != nil {
				t.Fatal(err)
			}
		}
		deliver()
		if !silent || slices.ContainsFunc(consumers, func(l *live) bool { return strings.Contains(l.log.String(), "queue deleted and made again") }) {
			break
		}
		if again == 10 {
			t.Fatal("the broker noticed ten times")
		}
	}
	for _, l := range consumers {
		l.mustStop()
	}
}

// TestDrainDeadline: a handler that never returns does not keep the consumer
// from closing on time, and its message is delivered again.
func TestDrainDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newGate()
	l := w.consume(redeliver.Config{DrainTimeout: 2 * time.Second}, g.handle)
	w.publish("stuck")
	call := g.next(t)
	begun := time.Now()
	err := l.stopped()
	if took := time.Since(begun); took > 2500*time.Millisecond {
		t.Errorf("closed after %s", took)
	}
	if err == nil || !strings.Contains(err.Error(), `id "stuck"`) {
		t.Errorf("error: %v", err)
	}
	if !errors.Is(context.Cause(call.ctx), redeliver.ErrDraining) {
		t.Errorf("the handler's context: %v", context.Cause(call.ctx))
	}
	w.drained("orders", "stuck")
	call.answer <- redeliver.Ack()
	l.await(redeliver.EventDropped, 1)
}

// TestSetAsideMessagesSurviveInspection: a dead or parked message that is
// looked at and given back fifty times is still there.
func TestSetAsideMessagesSurviveInspection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, parking, func(s *topology.Spec) { s.Retry.MaxRetries = 3 })
	l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		switch m.ID {
		case "parked":
			return redeliver.Park(errBoom)
		case "exhausted":
			return redeliver.Retry(errBoom)
		default:
			return redeliver.Reject(errBoom)
		}
	})
	w.publish("rejected", "exhausted", "parked")
	l.await(redeliver.EventDeadLettered, 2)
	l.await(redeliver.EventParked, 1)
	l.mustStop()
	for queue, n := range map[string]int{"orders-dlq": 2, "orders-parked": 1} {
		w.waitDepth(queue, n)
		for i := range 50 {
			conn, err := amqp091.Dial(w.broker.AMQPURL(w.vhost))
			if err != nil {
				t.Fatal(err)
			}
			ch, err := conn.Channel()
			if err != nil {
				t.Fatal(err)
			}
			for range n {
				d, ok, err := ch.Get(queue, false)
				if err != nil || !ok {
					t.Fatalf("queue %q, look %d: %v, %v", queue, i, ok, err)
				}
				if i%2 == 0 { // half of them by closing the connection
					if err := d.Reject(true); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			w.waitDepth(queue, n)
		}
	}
}

// TestDrainLosesNoAcks: a quorum queue forgets acknowledgements that are still
// on their way to it when their channel is closed. A consumer that stops
// cleanly leaves it the time.
func TestDrainLosesNoAcks(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, change func(*topology.Spec)) {
		w := newWorld(t, change)
		const n = 500
		release := make(chan struct{})
		l := w.consume(redeliver.Config{Workers: n, MaxHeld: 1}, func(context.Context, *redeliver.Message) redeliver.Outcome {
			<-release
			return redeliver.Ack()
		})
		w.publish(ids(n)...)
		brokertest.WaitFor(t, func() (bool, string) {
			running := l.Stats().Running
			return running == n, fmt.Sprintf("%d handlers run", running)
		})
		l.stop()
		close(release)
		if err := l.ended(); err != nil {
			t.Error(err)
		}
		if s := l.Stats(); s.Acked != n {
			t.Errorf("%+v", s)
		}
		// Whatever the broker takes back, it has taken back when it answers for the queue on a new connection.
		w.waitDepth("orders", 0)
		second := w.consume(redeliver.Config{}, acking)
		w.publish("last")
		second.await(redeliver.EventAcked, 1)
		second.mustStop()
		if s := second.Stats(); s.Delivered != 1 {
			t.Errorf("%d of %d acknowledged messages came back", s.Delivered-1, n)
		}
	})
}
