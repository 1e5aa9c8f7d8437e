package rabbitmq_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func (w *world) deleteQueue(name string) {
	w.t.Helper()
	if _, err := brokertest.Channel(w.t, w.broker, w.vhost).QueueDelete(name, false, false, false); err != nil {
		w.t.Fatal(err)
	}
}

// TestHoldQueueDeleted: while a hold queue is missing its waits happen in the consumer, which says so, and looks for
// the queue again: under hybrid after a minute, under republish with the next message.
func TestHoldQueueDeleted(t *testing.T) {
	t.Parallel()
	underStrategies(t, func(t *testing.T, change func(*topology.Spec)) {
		tr := begin(newWorld(t, change), true)
		tr.goOn(200)
		tr.account() // what is in a queue is deleted with it
		tr.w.deleteQueue("orders-hold-300ms")
		tr.feed()
		missing := tr.live.await(redeliver.EventHoldQueueMissing, 5)
		if missing[0].Target != "orders-hold-300ms" || !strings.Contains(fmt.Sprint(missing[0].Err), "no queue took it") {
			t.Errorf("event %+v", missing[0])
		}
		tr.awaitHealth(redeliver.HealthDegraded, `hold queue "orders-hold-300ms" is missing`)
		tr.w.declare()
		missed := tr.live.Stats().HoldQueueMissing
		tr.wait(func() (bool, string) {
			h := tr.live.Health()
			return !strings.Contains(fmt.Sprint(h.Reasons), "missing"), fmt.Sprintf("%+v", h)
		})
		tr.end()
		s := tr.live.Stats()
		if s.HoldQueueMissing < 5 || s.SessionsLost != 0 || s.HandedBack != 0 {
			t.Errorf("%+v", s)
		}
		t.Logf("%d waits happened in place when the queue was there again, %d in the end", missed, s.HoldQueueMissing)
	}, topology.Republish, topology.Hybrid)
}

// hurried makes a broker's queues publish a dead letter again that was not confirmed, because its target is missing or
// lost its leader, after 3 s instead of 3 minutes.
func hurried() brokertest.Options {
	return brokertest.Options{Settings: []string{"dead_letter_worker_publisher_confirm_timeout 3000"}}
}

// TestDeadLetterQueueDeleted: under republish a message that cannot be set aside is rejected once, visibly, and not
// looped: the broker keeps it until the queue is there again.
func TestDeadLetterQueueDeleted(t *testing.T) {
	t.Parallel()
	b := brokertest.Dedicated(t, hurried())
	w := newWorldOn(t, b, strategies[topology.Republish])
	tr := begin(w, true)
	tr.goOn(200)
	tr.account()
	w.deleteQueue(w.spec.DeadLetterQueue)
	tr.feed()
	failed := tr.live.await(redeliver.EventSetAsideFailed, 10)
	tr.awaitHealth(redeliver.HealthDegraded, `could not be set aside in queue "orders-dlq"`)
	tr.stop()
	w.declare()
	tr.end()
	s := tr.live.Stats()
	seen := make(map[string]bool)
	for _, e := range tr.live.of(redeliver.EventSetAsideFailed) {
		if e.Target != "orders-dlq" || e.Delay != 0 {
			t.Errorf("event %+v", e)
		}
		if seen[e.Message.ID] {
			t.Errorf("message %s was looped", e.Message.ID)
		}
		seen[e.Message.ID] = true
	}
	if s.SetAsideFailures["orders-dlq"] != s.SetAsideFailed || s.SetAsideFailed < uint64(len(failed)) || s.SessionsLost != 0 || s.HandedBack != 0 {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(tr.live.log.String(), "could not be set aside: it is rejected") {
		t.Error("the log does not say so")
	}
}

// permit changes the permissions of the consumer's user.
func (w *world) permit(write, read string) {
	w.t.Helper()
	status, answer := brokertest.Request(w.t, w.broker, http.MethodPut, "/api/permissions/"+w.vhost+"/"+w.user,
		map[string]string{"configure": "^$", "write": write, "read": read})
	if status >= 300 {
		w.t.Fatalf("changing permissions: %d %s", status, answer)
	}
}

// TestPermissionsRevoked: without write permission copies wait in the consumer, or are rejected; without read
// permission it takes no messages. Both end when the permission is back.
func TestPermissionsRevoked(t *testing.T) {
	t.Parallel()
	underStrategies(t, func(t *testing.T, change func(*topology.Spec)) {
		w := newWorld(t, change)
		may, err := topology.Permissions(w.doc, topology.AccessConsumer)
		if err != nil {
			t.Fatal(err)
		}
		tr := begin(w, true)
		tr.alive = true
		tr.goOn(100)
		if len(w.doc.HoldQueues) > 0 {
			w.permit("^$", may.Read)
			w.closeConnections() // permissions are cached for each channel
			tr.awaitHealth(redeliver.HealthDegraded, "403 ACCESS_REFUSED")
			w.permit(may.Write, may.Read)
			before := tr.live.Stats().Republished
			tr.wait(func() (bool, string) {
				after := tr.live.Stats().Republished
				return after > before, "nothing is republished again"
			})
		}
		w.permit(may.Write, "^$")
		w.closeConnections()
		tr.awaitHealth(redeliver.HealthDown, "403 ACCESS_REFUSED", "read permission")
		w.permit(may.Write, may.Read)
		tr.awaitUp()
		tr.goOn(100)
		tr.end()
	})
}
