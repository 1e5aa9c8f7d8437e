package rabbitmq_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
)

// TestHeadersThatFillAFrame: a message whose headers leave no room in an AMQP
// frame for what the broker adds to them is retried, dead-lettered, read from the
// dead-letter queue and replayed as any other one is, and holds up nothing.
func TestHeadersThatFillAFrame(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *topology.Spec) { s.Retry.MaxRetries = 2 })
	const overhead = 8 + 14 + 10 + 4 + 1 + len("fill") + 5 + 1 + len("large") + 1 + len("orders")
	w.send(amqp091.Publishing{MessageId: "large", DeliveryMode: amqp091.Persistent, Headers: amqp091.Table{"fill": strings.Repeat("x", 128<<10-overhead)}})
	w.publish(ids(50)...)
	var large atomic.Int32
	handler := func(_ context.Context, msg *redeliver.Message) redeliver.Outcome {
		if msg.ID != "large" {
			return redeliver.Ack()
		}
		if large.Add(1) > 3 {
			return redeliver.Ack()
		}
		return redeliver.Retry(errBoom)
	}
	l := w.consume(redeliver.Config{}, handler)
	l.await(redeliver.EventDeadLettered, 1)
	w.waitDepth("orders-dlq", 1)
	operator := w.operator()
	dead := w.handleDead(redeliver.Config{}, func(_ context.Context, msg *redeliver.DeadMessage) error {
		if msg.ID != "large" || msg.Reason != "rejected" || len(msg.Deaths) == 0 {
			t.Errorf("a dead letter is %q, %q, %v", msg.ID, msg.Reason, msg.Deaths)
		}
		return errBoom // it stays
	})
	dead.await(redeliver.EventRetried, 1)
	dead.mustStop()
	w.waitDepth("orders-dlq", 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	report, err := rabbitmq.Replay(ctx, operator, redeliver.ReplayOptions{})
	if err != nil || report.Replayed != 1 {
		t.Errorf("replay: %s, %v", report, err)
	}
	l.await(redeliver.EventAcked, 51)
	if s := l.Stats(); s.SessionsLost != 0 || s.Acked != 51 || s.DeadLettered != 1 {
		t.Errorf("%+v", s)
	}
	l.mustStop()
}
