package sqs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest/fake"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/sqs"
)

func acks(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() }

// TestBind: what is missing is said at once, with the IAM action and the queue.
func TestBind(t *testing.T) {
	for name, test := range map[string]struct {
		action string // that fails
		err    *fake.Error
		kind   error
		iam    string
	}{
		"receive":  {"ReceiveMessage", fake.AccessDenied("sqs:ReceiveMessage", "x"), redeliver.ErrPermission, "sqs:ReceiveMessage"},
		"delete":   {"DeleteMessageBatch", fake.AccessDenied("sqs:DeleteMessage", "x"), redeliver.ErrPermission, "sqs:DeleteMessage"},
		"change":   {"ChangeMessageVisibilityBatch", fake.AccessDenied("sqs:ChangeMessageVisibility", "x"), redeliver.ErrPermission, "sqs:ChangeMessageVisibility"},
		"send":     {"SendMessageBatch", fake.AccessDenied("sqs:SendMessage", "x"), redeliver.ErrPermission, "sqs:SendMessage"},
		"throttle": {"ReceiveMessage", fake.Throttled(), redeliver.ErrRefused, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inFake(t, func(w *world) {
				w.publish("x")
				w.fake.Fail(test.action, -1, test.err)
				_, err := sqs.Open(w.t.Context(), w.config(redeliver.HandlerFunc(acks), redeliver.Config{}))
				var bind *redeliver.BindError
				if !errors.As(err, &bind) || !errors.Is(err, test.kind) || bind.Action != test.iam || !strings.HasPrefix(bind.ARN, "arn:aws:sqs:") {
					t.Fatalf("%v", err)
				}
				if test.iam != "" && !strings.Contains(err.Error(), test.iam+" on "+bind.ARN) {
					t.Errorf("%v", err)
				}
				if m := w.fake.Messages("orders"); len(m) != 1 || m[0].Receives != 0 {
					t.Errorf("%+v", m)
				}
				if m := w.fake.Messages("orders-dlq"); len(m) != 0 {
					t.Errorf("asking sent %+v", m)
				}
			}, sending)
		})
	}
}

// TestBindToNothing: the queue is not there.
func TestBindToNothing(t *testing.T) {
	inFake(t, func(w *world) {
		w.deleteQueue()
		_, err := sqs.Open(w.t.Context(), w.config(redeliver.HandlerFunc(acks), redeliver.Config{}))
		if !errors.Is(err, redeliver.ErrQueueNotFound) || !strings.Contains(err.Error(), `"orders"`) {
			t.Errorf("%v", err)
		}
	})
}

func (w *world) deleteQueue() {
	w.t.Helper()
	if _, err := w.client.DeleteQueue(w.t.Context(), &awssqs.DeleteQueueInput{QueueUrl: &w.doc.WorkQueue.URL}); err != nil {
		w.t.Fatal(err)
	}
}

// TestAccessTakenAway: the session is lost, with the reason, and comes back with
// the permission.
func TestAccessTakenAway(t *testing.T) {
	inFake(t, func(w *world) {
		l := w.consume(redeliver.Config{}, acks)
		w.fake.Fail("ReceiveMessage", 3, fake.AccessDenied("sqs:ReceiveMessage", "x"))
		pass(2 * time.Minute)
		w.publish("x")
		pass(time.Minute)
		if s := l.Stats(); s.SessionsLost != 1 || s.Reconnects != 1 || s.Acked != 1 {
			t.Errorf("%+v", s)
		}
		if gone := l.of(redeliver.EventDisconnected); len(gone) != 1 || !strings.Contains(gone[0].Err.Error(), "access denied") {
			t.Errorf("%+v", gone)
		}
		l.mustStop()
	})
}

// TestQueueDeleted: the same where the queue is deleted and made again.
func TestQueueDeleted(t *testing.T) {
	inFake(t, func(w *world) {
		l := w.consume(redeliver.Config{}, acks)
		pass(time.Minute)
		w.deleteQueue()
		pass(time.Minute)
		if h := l.Health(); h.Status != redeliver.HealthDown {
			t.Errorf("%+v", h)
		}
		attributes, err := w.spec.Attributes()
		w.create("orders", attributes, err)
		w.publish("x")
		pass(2 * time.Minute)
		if s := l.Stats(); s.SessionsLost != 1 || s.Reconnects != 1 || s.Acked != 1 {
			t.Errorf("%+v", s)
		}
		l.mustStop()
	})
}

// TestIdle: a consumer with nothing to do makes three requests a minute.
func TestIdle(t *testing.T) {
	inFake(t, func(w *world) {
		l := w.consume(redeliver.Config{Workers: 64}, acks)
		w.publish(ids(100)...)
		pass(2 * time.Minute)
		before := w.fake.Requests()
		pass(time.Hour)
		for action, n := range w.fake.Requests() {
			if more := n - before[action]; more > 180 || action != "ReceiveMessage" && more > 0 {
				t.Errorf("%d requests %s in an idle hour", more, action)
			}
		}
		l.mustStop()
	})
}

// TestRequestsPerMessage: at full batches a message costs 0.2 requests.
func TestRequestsPerMessage(t *testing.T) {
	inFake(t, func(w *world) {
		const n = 2000
		w.publish(ids(n)...)
		before := w.fake.Requests()
		l := w.consume(redeliver.Config{}, func(context.Context, *redeliver.Message) redeliver.Outcome {
			time.Sleep(20 * time.Millisecond)
			return redeliver.Ack()
		})
		pass(20 * time.Second)
		requests := 0
		for action, count := range w.fake.Requests() {
			requests += count - before[action]
		}
		if s := l.Stats(); s.Acked != n || len(w.fake.Messages("orders")) != 0 {
			t.Errorf("%+v", s)
		}
		if per := float64(requests) / n; per > 0.25 {
			t.Errorf("%.3f requests a message: %v", per, w.fake.Requests())
		}
		l.mustStop()
	})
}

// TestOtherManifest: a manifest of RabbitMQ is refused.
func TestOtherManifest(t *testing.T) {
	t.Parallel()
	doc, err := topology.Spec{
		Identity: topology.Identity{Topic: "orders"}, DeadLetterQueue: "orders-dlq", Retry: topology.RetryPolicy{MaxRetries: 1, Delays: []time.Duration{time.Second}},
	}.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := redeliver.ParseManifest(doc.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqs.Open(t.Context(), sqs.Config{Manifest: manifest, Handler: redeliver.HandlerFunc(acks)}); err == nil || !strings.Contains(err.Error(), "RabbitMQ") {
		t.Errorf("%v", err)
	}
}
