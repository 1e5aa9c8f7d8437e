package rabbitmq_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func parkAll(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Park(errBoom) }

// TestParkedQueueMissing: messages that cannot be parked are kept, visibly, and
// parked when the queue is there.
func TestParkedQueueMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, parking)
	if _, err := brokertest.Channel(t, w.broker, w.vhost).QueueDelete("orders-parked", false, false, false); err != nil {
		t.Fatal(err)
	}
	l := w.consume(redeliver.Config{}, parkAll)
	w.publish("a", "b")
	failed := l.await(redeliver.EventSetAsideFailed, 6)
	if text := failed[0].Err.Error(); !strings.Contains(text, `"orders-parked"`) || !strings.Contains(text, "no queue took it") {
		t.Errorf("the failure reads %q", text)
	}
	if s := l.Stats(); s.Parked+s.DeadLettered+s.Acked+s.HandedBack != 0 {
		t.Errorf("%+v", s)
	}
	w.declare()
	l.await(redeliver.EventParked, 2)
	l.mustStop()
	w.drained("orders-parked", "a", "b")
	w.waitDepth("orders", 0)
	if s := l.Stats(); s.Parked != 2 || s.SetAsideFailed < 6 || s.SessionsLost != 0 {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(l.log.String(), "level=ERROR msg=\"a message could not be set aside") {
		t.Error("the log does not say so")
	}
}

// TestParkPermissionRevoked: a refused publish closes the publisher's channel
// and touches neither the consumer nor the message.
func TestParkPermissionRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, parking)
	l := w.consume(redeliver.Config{}, parkAll)
	permit := func(write string) {
		t.Helper()
		status, answer := brokertest.Request(t, w.broker, http.MethodPut, "/api/permissions/"+w.vhost+"/"+w.user,
			map[string]string{"configure": "^$", "write": write, "read": "^orders$"})
		if status >= 300 {
			t.Fatalf("changing permissions: %d %s", status, answer)
		}
	}
	w.publish("before")
	l.await(redeliver.EventParked, 1)
	permit("^$")
	w.closeConnections() // permissions are cached for each channel
	l.await(redeliver.EventConnected, 2)
	w.publish("without")
	failed := l.await(redeliver.EventSetAsideFailed, 1)
	if text := failed[len(failed)-1].Err.Error(); !strings.Contains(text, "403 ACCESS_REFUSED") {
		t.Errorf("the failure reads %q", text)
	}
	permit("^orders-retry$")
	brokertest.WaitFor(t, func() (bool, string) {
		parked := l.of(redeliver.EventParked)
		done := slices.ContainsFunc(parked, func(e redeliver.Event) bool { return e.Message.ID == "without" })
		return done, fmt.Sprintf("%d messages are parked", len(parked))
	})
	l.mustStop()
	parked := make(map[string]int)
	for _, d := range brokertest.Drain(t, w.broker, w.vhost, "orders-parked") {
		parked[d.MessageId]++
	}
	// The acknowledgement of the first one may have been lost with the connection.
	if parked["before"] == 0 || parked["without"] != 1 || len(parked) != 2 {
		t.Errorf("parked: %v", parked)
	}
	if s := l.Stats(); s.SessionsLost != 1 {
		t.Errorf("%+v", s)
	}
}

// TestParkedCopy: a copy is the message, minus what belonged to its delivery.
func TestParkedCopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, parking)
	original := amqp091.Publishing{
		Headers: amqp091.Table{
			"text": "é", "int": int64(-7), "small": int8(3), "float": 2.5, "bool": true, "null": nil, "bytes": []byte{0, 1, 255},
			"time": time.Unix(1700000000, 0), "table": amqp091.Table{"list": []any{int32(1), "two", amqp091.Table{"deep": "er"}}},
			"decimal": amqp091.Decimal{Scale: 2, Value: 314}, "x-redeliver-error": "an earlier reason",
			"x-delivery-count": int64(3), "x-acquired-count": int64(4), "CC": []any{"orders-dlq"}, "BCC": []any{"orders-dlq"},
			"x-death":             []any{amqp091.Table{"count": int64(7), "reason": "expired", "queue": "x", "exchange": "y", "routing-keys": []any{"z"}}},
			"x-first-death-queue": "x", "x-first-death-reason": "expired", "x-last-death-queue": "x",
		},
		ContentType: "application/x-thing", ContentEncoding: "identity", DeliveryMode: amqp091.Transient, Priority: 3, CorrelationId: "corr",
		ReplyTo: "reply", Expiration: "600000", MessageId: "id", Timestamp: time.Now().Truncate(time.Second), Type: "thing", UserId: w.broker.Username(),
		AppId: "app", Body: []byte{0, 'b', 255},
	}
	l := w.consume(redeliver.Config{}, parkAll)
	w.send(original)
	l.await(redeliver.EventParked, 1)
	l.mustStop()
	// CC made the original go to the dead-letter queue too; its copy must not have.
	w.waitDepth("orders-dlq", 1)
	got := w.drained("orders-parked", "id")[0]

	if got.Headers["x-delivery-count"] == int64(0) { // 3.10 says so with every get
		delete(got.Headers, "x-delivery-count")
	}
	want := maps.Clone(original.Headers)
	maps.DeleteFunc(want, func(key string, _ any) bool {
		return key == "x-delivery-count" || key == "x-acquired-count" || key == "CC" || key == "BCC" || strings.Contains(key, "death")
	})
	want["x-redeliver-error"] = "unreadable: boom"
	want["x-redeliver-expiration"], want["x-redeliver-user-id"] = "600000", w.broker.Username()
	if fmt.Sprint(got.Headers) != fmt.Sprint(want) {
		t.Errorf("headers\n got %v\nwant %v", got.Headers, want)
	}
	have := amqp091.Publishing{
		ContentType: got.ContentType, ContentEncoding: got.ContentEncoding, DeliveryMode: got.DeliveryMode, Priority: got.Priority,
		CorrelationId: got.CorrelationId, ReplyTo: got.ReplyTo, Expiration: got.Expiration, MessageId: got.MessageId, Timestamp: got.Timestamp,
		Type: got.Type, UserId: got.UserId, AppId: got.AppId, Body: got.Body,
	}
	original.Headers, original.DeliveryMode, original.Expiration, original.UserId = nil, amqp091.Persistent, "", ""
	if fmt.Sprintf("%+v", have) != fmt.Sprintf("%+v", original) {
		t.Errorf("properties and body\n got %+v\nwant %+v", have, original)
	}
}
