package sqs_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest/fake"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// notebook is a handler that notes what it sees.
type notebook struct {
	mu    sync.Mutex
	calls map[string][]int // the retry counts with which a message was handled
	order []string
}

func newNotebook() *notebook { return &notebook{calls: make(map[string][]int)} }

func (n *notebook) note(m *redeliver.Message) (calls int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	body := string(m.Body)
	n.calls[body] = append(n.calls[body], m.RetryCount)
	n.order = append(n.order, body)
	return len(n.calls[body])
}

func (n *notebook) of(body string) []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.calls[body])
}

func (n *notebook) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.order)
}

// TestOutcomes: what becomes of a message, for each outcome, under redrive.
func TestOutcomes(t *testing.T) {
	inFake(t, func(w *world) {
		book := newNotebook()
		w.publish("ack", "retry", "exhausted", "reject", "defer", "park", "long")
		begun := time.Now()
		var after time.Duration
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			first := book.note(m) == 1
			switch string(m.Body) {
			case "retry":
				if first {
					return redeliver.RetryAfter(time.Hour, errBoom)
				}
				after = time.Since(begun)
			case "exhausted":
				return redeliver.Retry(errBoom)
			case "reject":
				return redeliver.Reject(errBoom)
			case "park":
				return redeliver.Park(errBoom)
			case "defer":
				if first {
					return redeliver.Defer()
				}
			case "long":
				return redeliver.RetryAfter(13*time.Hour, errBoom)
			}
			return redeliver.Ack()
		})
		pass(10 * time.Second)
		if s := l.Stats(); s.InFlight < 1 { // "retry" waits, and nobody has it
			t.Errorf("%d messages in flight", s.InFlight)
		}
		pass(2 * time.Hour)
		for body, want := range map[string][]int{
			"ack": {0}, "retry": {0, 1}, "reject": {0}, "park": {0}, "defer": {0, 1}, "long": {0}, "exhausted": {0, 1, 2, 3},
		} {
			if got := book.of(body); !slices.Equal(got, want) {
				t.Errorf("%s was handled with the retry counts %v, want %v", body, got, want)
			}
		}
		if after < time.Hour || after > time.Hour+5*time.Second {
			t.Errorf("a message that asked for an hour came after %s", after)
		}
		if got := w.fake.Messages("orders"); len(got) > 0 {
			t.Errorf("left in the work queue: %+v", got)
		}
		var dead []string
		for _, m := range w.fake.Messages("orders-dlq") {
			dead = append(dead, m.Body)
			if !strings.HasSuffix(m.Source, ":orders") {
				t.Errorf("%s comes from %q", m.Body, m.Source)
			}
		}
		slices.Sort(dead)
		if want := []string{"exhausted", "long", "park", "reject"}; !slices.Equal(dead, want) {
			t.Errorf("dead letters: %q, want %q", dead, want)
		}
		if s := l.Stats(); s.Acked != 3 || s.DeadLettered != 4 || s.Exhausted != 1 || s.DelayTooLong != 1 || s.Deferred != 1 || s.Retried != 4 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
		l.mustStop()
	}, func(s *topology.SQSSpec) { s.Retry.MaxRetries = 3 })
}

// TestSent: with dead_letter_via = "send" a copy has the reason and the original
// attributes, each with its type.
func TestSent(t *testing.T) {
	inFake(t, func(w *world) {
		attributes := map[string]types.MessageAttributeValue{
			"text": {DataType: aws.String("String"), StringValue: aws.String("x")}, "whole": {DataType: aws.String("Number"), StringValue: aws.String("42")},
			"half": {DataType: aws.String("Number"), StringValue: aws.String("1.50")}, "own": {DataType: aws.String("Number.cents"), StringValue: aws.String("7")},
			"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
		}
		w.send(w.doc.WorkQueue.URL,
			types.SendMessageBatchRequestEntry{Id: aws.String("0"), MessageBody: aws.String("reject"), MessageAttributes: attributes},
			types.SendMessageBatchRequestEntry{Id: aws.String("1"), MessageBody: aws.String("park"), MessageAttributes: attributes},
			types.SendMessageBatchRequestEntry{Id: aws.String("2"), MessageBody: aws.String("full"), MessageAttributes: tenAttributes()})
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			if string(m.Body) == "park" {
				return redeliver.Park(errBoom)
			}
			if string(m.Body) == "reject" {
				if m.Headers["whole"] != int64(42) || m.Headers["own"] != (redeliver.Attribute{Type: "Number.cents", Text: "7"}) || m.Headers["text"] != "x" {
					t.Errorf("headers: %+v", m.Headers)
				}
			}
			return redeliver.Reject(errBoom)
		})
		pass(time.Minute)
		l.mustStop()
		for queue, wants := range map[string][]string{"orders-dlq": {"reject", "full"}, "orders-parked": {"park"}} {
			got := w.fake.Messages(queue)
			if len(got) != len(wants) {
				t.Fatalf("%d messages in %s, want %d", len(got), queue, len(wants))
			}
			for _, m := range got {
				want := attributes
				if m.Body == "full" {
					want = tenAttributes()
				} else if reason := string(m.Attributes["x-redeliver-error"]); !strings.Contains(reason, "boom") {
					t.Errorf("the reason of %s is %s", m.Body, reason)
				}
				for name, value := range want {
					var have struct {
						DataType, StringValue string
						BinaryValue           []byte
					}
					if err := json.Unmarshal(m.Attributes[name], &have); err != nil {
						t.Errorf("%s has no attribute %s: %v", m.Body, name, err)
					}
					if have.DataType != *value.DataType || have.StringValue != aws.ToString(value.StringValue) || !slices.Equal(have.BinaryValue, value.BinaryValue) {
						t.Errorf("the attribute %s of %s is %+v", name, m.Body, have)
					}
				}
			}
		}
		if got := w.fake.Messages("orders"); len(got) > 0 {
			t.Errorf("left in the work queue: %+v", got)
		}
	}, parking)
}

func tenAttributes() map[string]types.MessageAttributeValue {
	ten := make(map[string]types.MessageAttributeValue)
	for i := range 10 {
		ten["a"+strconv.Itoa(i)] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("x")}
	}
	return ten
}

// TestDiscarded: a topic without a dead-letter queue drops what failed for good.
func TestDiscarded(t *testing.T) {
	inFake(t, func(w *world) {
		w.publish("reject")
		l := w.consume(redeliver.Config{}, func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Reject(errBoom) })
		pass(time.Minute)
		l.mustStop()
		if s := l.Stats(); s.Discarded != 1 || s.Handled != 1 || len(w.fake.Messages("orders")) != 0 {
			t.Errorf("%+v", s)
		}
	}, func(s *topology.SQSSpec) { s.AllowMessageLoss = true })
}

// TestHandleDead: the handler learns where a message failed, and one that is not
// dealt with comes again.
func TestHandleDead(t *testing.T) {
	inFake(t, func(w *world) {
		w.publish("x")
		l := w.consume(redeliver.Config{}, func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Reject(errBoom) })
		pass(time.Minute)
		l.mustStop()
		var seen []redeliver.DeadMessage
		dead := w.run(redeliver.Config{}, func(cfg redeliver.Config) (*consumerType, error) {
			return handleDead(w, cfg, func(_ context.Context, m *redeliver.DeadMessage) error {
				seen = append(seen, *m)
				if len(seen) == 1 {
					return errBoom
				}
				return nil
			})
		})
		pass(time.Hour)
		dead.mustStop()
		if len(seen) != 2 || len(w.fake.Messages("orders-dlq")) != 0 {
			t.Fatalf("%d calls, %d left", len(seen), len(w.fake.Messages("orders-dlq")))
		}
		if m := seen[0]; m.OriginalQueue != "orders" || m.Reason != "max_receives" || m.RetryCount < worldRetries || string(m.Body) != "x" {
			t.Errorf("%+v", m)
		}
	})
}

// TestSendingFails: what could not be sent is kept here, and sent again.
func TestSendingFails(t *testing.T) {
	inFake(t, func(w *world) {
		w.publish("x")
		l := w.consume(redeliver.Config{}, func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Reject(errBoom) })
		w.fake.Fail("SendMessageBatch", 40, fake.Throttled())
		pass(20 * time.Second)
		if h := l.Health(); h.Status != redeliver.HealthDegraded {
			t.Errorf("%+v", h)
		}
		pass(5 * time.Minute)
		if s := l.Stats(); s.DeadLettered != 1 || s.Handled != 1 || s.SetAsideFailed != 40 || len(w.fake.Messages("orders")) != 0 || len(w.fake.Messages("orders-dlq")) != 1 {
			t.Errorf("%+v", s)
		}
		l.mustStop()
	}, sending)
}
