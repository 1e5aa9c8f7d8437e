package redelivertest_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redelivertest"
)

// onSQS makes a broker that is Amazon SQS. Of a handler nothing changes.
func onSQS(t *testing.T, topic redelivertest.Topic) *redelivertest.Broker {
	t.Helper()
	topic.Broker = "sqs"
	return redelivertest.New(t, redelivertest.Manifest(t, topic))
}

// journal is a handler that writes down what it gets.
type journal struct {
	mu      sync.Mutex
	entries []string
	says    func(msg *redeliver.Message) redeliver.Outcome
}

func (j *journal) Handle(_ context.Context, msg *redeliver.Message) redeliver.Outcome {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, msg.ID)
	return j.says(msg)
}

func (j *journal) check(t *testing.T, want ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Equal(j.entries, want) {
		t.Errorf("handled %q, want %q", j.entries, want)
	}
}

// TestSQSRetry: a message waits in its queue, invisible.
func TestSQSRetry(t *testing.T) {
	t.Parallel()
	b := onSQS(t, redelivertest.Topic{}) // 5s, 30s, 2m
	w := &warehouse{closed: true}
	c := b.Consume(redeliver.Config{}, redeliver.HandlerFunc(w.handle))
	b.Publish(redeliver.Message{ID: "1"})
	b.Advance(5 * time.Second)
	if held := b.Held(); len(held) != 1 || !held[0].Redelivered {
		t.Errorf("%+v", held)
	}
	w.open(true)
	b.Advance(30*time.Second - time.Millisecond)
	if len(w.shipped) > 0 {
		t.Error("shipped before the second delay was over")
	}
	b.Advance(time.Millisecond)
	if s := c.Stats(); s.Handled != 3 || s.Retried != 2 || s.Acked != 1 || s.Delivered != 3 {
		t.Errorf("%+v", s)
	}
}

// TestSQSRedrive: what failed for good, whenever that was, SQS moves to the
// dead-letter queue by itself, and a handler sees nothing of that.
func TestSQSRedrive(t *testing.T) {
	t.Parallel()
	b := onSQS(t, redelivertest.Topic{MaxRetries: 3})
	j := &journal{says: func(msg *redeliver.Message) redeliver.Outcome {
		if msg.ID == "rejected" {
			return redeliver.Reject(errBoom)
		}
		return redeliver.Retry(errBoom)
	}}
	b.Consume(redeliver.Config{}, j)
	b.Publish(redeliver.Message{ID: "rejected"})
	b.Wait()
	if len(b.Dead()) != 1 {
		t.Error("it was not dead-lettered at once")
	}
	b.Publish(redeliver.Message{ID: "failing"})
	if took := b.Finish(); took != 5*time.Second+30*time.Second+2*time.Minute {
		t.Errorf("given up after %s", took)
	}
	j.check(t, "rejected", "failing", "failing", "failing", "failing")
	dead := b.Dead()
	if len(dead) != 2 || dead[0].OriginalQueue != "orders" {
		t.Errorf("%+v", dead)
	}
	c := b.HandleDead(func(context.Context, *redeliver.DeadMessage) error { return nil })
	if n := c.Stats().Handled; n != 2 || len(b.Dead()) != 0 {
		t.Errorf("handled %d dead letters, and %d are left", n, len(b.Dead()))
	}
}

// TestSQSSend: the consumer sends what failed for good to the dead-letter queue,
// with the reason.
func TestSQSSend(t *testing.T) {
	t.Parallel()
	b := onSQS(t, redelivertest.Topic{DeadLetterVia: "send", ParkedQueue: true})
	b.Consume(redeliver.Config{}, &journal{says: func(msg *redeliver.Message) redeliver.Outcome {
		if msg.ID == "unread" {
			return redeliver.Park(errBoom)
		}
		return redeliver.Reject(errBoom)
	}})
	b.Publish(redeliver.Message{ID: "1", Body: []byte("one"), Headers: map[string]any{"n": 1}}, redeliver.Message{ID: "unread"})
	dead := b.Dead()
	if len(dead) != 1 || dead[0].LastError != "rejected: boom" || string(dead[0].Body) != "one" || dead[0].Headers["n"] != int64(1) {
		t.Errorf("%+v", dead)
	}
	if parked := b.Parked(); len(parked) != 1 || parked[0].LastError != "unreadable: boom" {
		t.Errorf("%+v", parked)
	}
}

// TestSQSDeferCounts: on SQS every receive counts, whatever the handler said.
func TestSQSDeferCounts(t *testing.T) {
	t.Parallel()
	b := onSQS(t, redelivertest.Topic{MaxRetries: 2})
	c := b.Consume(redeliver.Config{}, always(redeliver.Defer()))
	b.Publish(redeliver.Message{ID: "1"})
	b.Finish()
	if s := c.Stats(); s.Handled != 3 || s.Deferred != 2 || len(b.Dead()) != 1 {
		t.Errorf("%+v", s)
	}
}

// TestSQSGone: the messages of a process that is gone come back when their
// visibility timeout is over, and have been received once more.
func TestSQSGone(t *testing.T) {
	t.Parallel()
	b := onSQS(t, redelivertest.Topic{VisibilityTimeout: time.Minute})
	begun, goOn := make(chan struct{}), make(chan struct{})
	var counts []int
	b.Consume(redeliver.Config{}, redeliver.HandlerFunc(func(_ context.Context, msg *redeliver.Message) redeliver.Outcome {
		if counts = append(counts, msg.RetryCount); len(counts) == 1 {
			close(begun)
			<-goOn
		}
		return redeliver.Ack()
	}))
	b.Publish(redeliver.Message{ID: "1"})
	<-begun
	b.Disconnect()
	close(goOn)
	b.Advance(time.Minute - time.Millisecond)
	if len(counts) != 1 {
		t.Errorf("handled %d times before the visibility timeout was over", len(counts))
	}
	b.Advance(time.Millisecond)
	if !slices.Equal(counts, []int{0, 1}) {
		t.Errorf("handled with the retry counts %v", counts)
	}
}

// TestSQSRetention: a message that is older than the retention is gone, silently.
func TestSQSRetention(t *testing.T) {
	t.Parallel()
	b := onSQS(t, redelivertest.Topic{Retention: time.Hour})
	b.Publish(redeliver.Message{ID: "1"})
	b.Advance(time.Hour - time.Second)
	if len(b.Messages("orders")) != 1 {
		t.Error("it is gone before its time")
	}
	b.Advance(time.Second)
	if len(b.Messages("orders")) != 0 {
		t.Error("it is still there")
	}
}

// TestSQSOrder: the messages of a group are handled in order, whatever fails, and
// groups do not wait for each other.
func TestSQSOrder(t *testing.T) {
	t.Parallel()
	b := onSQS(t, redelivertest.Topic{Sequenced: true, MaxRetries: 2})
	failures := map[string]int{"a1": 2, "a2": 1, "a3": 99}
	j := &journal{says: func(msg *redeliver.Message) redeliver.Outcome {
		if failures[msg.ID]--; failures[msg.ID] >= 0 {
			return redeliver.Retry(errBoom)
		}
		return redeliver.Ack()
	}}
	b.Consume(redeliver.Config{Workers: 1}, j)
	for _, id := range []string{"a1", "a2", "a3", "a4", "b1"} {
		b.Publish(redeliver.Message{ID: id, RoutingKey: id[:1]})
	}
	b.Wait()
	j.check(t, "a1", "b1")
	b.Finish()
	j.check(t, "a1", "b1", "a1", "a1", "a2", "a2", "a3", "a3", "a3", "a4")
	if dead := b.Dead(); len(dead) != 1 || dead[0].ID != "a3" {
		t.Errorf("%+v", dead)
	}
}
