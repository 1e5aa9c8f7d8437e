package sqs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest/fake"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/sqs"
)

// bury sends messages to the dead-letter queue.
func (w *world) bury(bodies ...string) {
	w.t.Helper()
	for batch := range slices.Chunk(bodies, 10) {
		entries := make([]types.SendMessageBatchRequestEntry, len(batch))
		for i, body := range batch {
			entries[i] = types.SendMessageBatchRequestEntry{
				Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String(body),
				MessageAttributes: map[string]types.MessageAttributeValue{"x-redeliver-error": {DataType: aws.String("String"), StringValue: aws.String("boom")}},
			}
		}
		w.send(w.doc.DeadLetter.URL, entries...)
	}
}

func (w *world) in(queue string) (list []string) {
	for _, m := range w.fake.Messages(queue) {
		list = append(list, m.Body)
	}
	slices.Sort(list)
	return list
}

func (w *world) replay(ctx context.Context, o redeliver.ReplayOptions) (redeliver.ReplayReport, error) {
	return sqs.Replay(ctx, w.config(nil, redeliver.Config{}), o)
}

// TestReplayAll: the service moves everything, with the destination named, and
// says how far it is.
func TestReplayAll(t *testing.T) {
	inFake(t, func(w *world) {
		w.bury(ids(50)...)
		var told []int
		report, err := w.replay(w.t.Context(), redeliver.ReplayOptions{Rate: 10, Progress: func(r redeliver.ReplayReport) { told = append(told, r.Replayed) }})
		if err != nil || report.Replayed != 50 || report.Left != 0 || report.RoutingKey != "orders" || report.From != "orders-dlq" {
			t.Errorf("%+v, %v", report, err)
		}
		if len(told) < 2 || !slices.IsSorted(told) {
			t.Errorf("told: %v", told)
		}
		if got := w.in("orders"); len(got) != 50 {
			t.Errorf("%d messages in the work queue", len(got))
		}
		if n := w.fake.Requests()["SendMessageBatch"]; n != 5 { // the test's own
			t.Errorf("%d batches were sent", n)
		}
	})
}

// TestReplayCancelled: what was moved stays moved, and the rest is still there.
func TestReplayCancelled(t *testing.T) {
	inFake(t, func(w *world) {
		w.bury(ids(50)...)
		ctx, cancel := context.WithTimeout(w.t.Context(), 2500*time.Millisecond)
		defer cancel()
		report, err := w.replay(ctx, redeliver.ReplayOptions{Rate: 5})
		if !errors.Is(err, context.DeadlineExceeded) || report.Replayed == 0 || report.Replayed == 50 {
			t.Errorf("%+v, %v", report, err)
		}
		moved := len(w.in("orders"))
		pass(time.Minute)
		if n := len(w.in("orders")); n != moved || n+len(w.in("orders-dlq")) != 50 {
			t.Errorf("%d moved, %d a minute later, %d left", moved, n, len(w.in("orders-dlq")))
		}
	})
}

// TestReplayStopped: what a run that is told to stop has not tried has not failed, and is there at once.
func TestReplayStopped(t *testing.T) {
	inFake(t, func(w *world) {
		w.bury(ids(20)...)
		ctx, stop := context.WithCancel(w.t.Context())
		defer stop()
		report, err := w.replay(ctx, redeliver.ReplayOptions{Filter: func(*redeliver.DeadMessage) bool { stop(); return true }})
		if !errors.Is(err, context.Canceled) || report.Replayed != 0 || report.Failed != 0 || report.Doubtful != 0 || report.Left != 20 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// TestReplayFiltered: what the filter wants is sent and deleted, and the rest is
// there again when the run is over.
func TestReplayFiltered(t *testing.T) {
	inFake(t, func(w *world) {
		w.bury(ids(35)...)
		odd := func(m *redeliver.DeadMessage) bool {
			if m.LastError != "boom" || m.Topic != "orders" {
				t.Errorf("%+v", m)
			}
			return m.Body[len(m.Body)-1]%2 == 1
		}
		report, err := w.replay(w.t.Context(), redeliver.ReplayOptions{Filter: odd, DryRun: true})
		if err != nil || report.Replayed != 17 || report.Skipped != 18 || report.Left != 35 || !report.DryRun {
			t.Errorf("dry: %+v, %v", report, err)
		}
		report, err = w.replay(w.t.Context(), redeliver.ReplayOptions{Filter: odd})
		if err != nil || report.Found != 35 || report.Replayed != 17 || report.Skipped != 18 || report.Left != 18 || report.Failed != 0 {
			t.Errorf("%+v, %v", report, err)
		}
		for _, m := range w.fake.Messages("orders") {
			if m.Body[len(m.Body)-1]%2 != 1 || m.Receives != 0 || m.Attributes["x-redeliver-error"] == nil {
				t.Errorf("%+v", m)
			}
		}
		report, err = w.replay(w.t.Context(), redeliver.ReplayOptions{Limit: 5})
		if err != nil || report.Replayed != 5 || report.Left != 13 {
			t.Errorf("limited: %+v, %v", report, err)
		}
	})
}

// TestReplayFails: a copy that is not taken leaves its message in the queue.
func TestReplayFails(t *testing.T) {
	inFake(t, func(w *world) {
		w.bury(ids(10)...)
		w.fake.FailEntries("SendMessageBatch", func(body string) *fake.Error {
			if body == "m00004" {
				return &fake.Error{Query: "InvalidMessageContents", Message: "no"}
			}
			return nil
		})
		report, err := w.replay(w.t.Context(), redeliver.ReplayOptions{Limit: 10})
		if err != nil || report.Replayed != 9 || report.Failed != 1 || report.Left != 1 || len(report.Failures) != 1 {
			t.Errorf("%+v, %v", report, err)
		}
		if got := w.in("orders-dlq"); !slices.Equal(got, []string{"m00004"}) {
			t.Errorf("left: %q", got)
		}
		w.fake.Mend()
		w.bury("again")
		w.fake.Lose("SendMessageBatch", 1)
		report, err = w.replay(w.t.Context(), redeliver.ReplayOptions{Limit: 10})
		if err == nil || report.Doubtful != 2 || report.Failed != 0 || !report.Failures[0].Unknown || len(w.in("orders-dlq")) != 2 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// TestReplayCountIsApproximate: what the service says a queue holds is a hint. Nothing is left behind because the count was
// too low, and nothing waits for messages that it only claims.
func TestReplayCountIsApproximate(t *testing.T) {
	for name, messages := range map[string]int{"too low": 0, "too high": 1000} {
		t.Run(name, func(t *testing.T) {
			inFake(t, func(w *world) {
				w.bury(ids(25)...)
				w.between = func(r *http.Request, next send) (*http.Response, error) {
					if asks(r, "GetQueueAttributes") {
						return says(http.StatusOK, fmt.Sprintf(`{"Attributes":{"ApproximateNumberOfMessages":"%d"}}`, messages))
					}
					return next(r)
				}
				all := func(*redeliver.DeadMessage) bool { return true }
				report, err := w.replay(w.t.Context(), redeliver.ReplayOptions{Filter: all})
				if err != nil || report.Replayed != 25 || len(w.in("orders")) != 25 || len(w.in("orders-dlq")) != 0 {
					t.Errorf("%+v, %v", report, err)
				}
				if want := max(messages, 25); report.Found != want { // more cannot have been looked at than were found
					t.Errorf("%d found, want %d", report.Found, want)
				}
			})
		})
	}
}

// TestReplayWhileAnotherRuns: SQS has one move task a queue. The one that runs goes on, and the error says what to do.
func TestReplayWhileAnotherRuns(t *testing.T) {
	inFake(t, func(w *world) {
		w.bury(ids(50)...)
		_, err := w.client.StartMessageMoveTask(w.t.Context(), &awssqs.StartMessageMoveTaskInput{
			SourceArn: &w.doc.DeadLetter.ARN, DestinationArn: &w.doc.WorkQueue.ARN, MaxNumberOfMessagesPerSecond: aws.Int32(5),
		})
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		report, err := w.replay(w.t.Context(), redeliver.ReplayOptions{})
		if err == nil || !strings.Contains(err.Error(), "already a task running") || !strings.Contains(err.Error(), "CancelMessageMoveTask") || report.Replayed != 0 || report.Left != 40 {
			t.Errorf("%+v, %v", report, err)
		}
		pass(time.Minute)
		if n := len(w.in("orders")); n != 50 {
			t.Errorf("%d messages were moved by the task that ran already", n)
		}
		w.bury("one more") // that one has ended, and is not taken for the next
		if report, err = w.replay(w.t.Context(), redeliver.ReplayOptions{}); err != nil || report.Replayed != 1 || report.Left != 0 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// TestReplayKeepsTheGroup: messages of a standard queue can have a group too, by which SQS shares it out fairly.
func TestReplayKeepsTheGroup(t *testing.T) {
	for name, o := range map[string]redeliver.ReplayOptions{"task": {}, "send": {Limit: 1}} {
		t.Run(name, func(t *testing.T) {
			inFake(t, func(w *world) {
				w.send(w.doc.DeadLetter.URL, types.SendMessageBatchRequestEntry{Id: aws.String("0"), MessageBody: aws.String("x"), MessageGroupId: aws.String("tenant 7")})
				report, err := w.replay(w.t.Context(), o)
				if err != nil || report.Replayed != 1 {
					t.Fatalf("%+v, %v", report, err)
				}
				if got := w.drained(w.doc.WorkQueue); len(got) != 1 || got[0].Attributes["MessageGroupId"] != "tenant 7" {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// TestReplaySlowly: at a rate that makes a run wait for longer than a message is lent to it, every message is there once,
// also in a FIFO queue, where a handle that is over deletes nothing.
func TestReplaySlowly(t *testing.T) {
	inFake(t, func(w *world) {
		for _, body := range ids(12) {
			w.send(w.doc.DeadLetter.URL, types.SendMessageBatchRequestEntry{
				Id: aws.String("0"), MessageBody: &body, MessageGroupId: aws.String("g"), MessageDeduplicationId: &body,
			})
		}
		begun := time.Now()
		report, err := w.replay(w.t.Context(), redeliver.ReplayOptions{Rate: 0.01})
		if err != nil || report.Replayed != 12 || report.Doubtful != 0 || report.Left != 0 {
			t.Errorf("%+v, %v", report, err)
		}
		if took := time.Since(begun); took < 1100*time.Second || took > 1300*time.Second {
			t.Errorf("12 messages at one in 100 s took %s", took)
		}
		if got := w.in("orders.fifo"); !slices.Equal(got, ids(12)) {
			t.Errorf("%q", got)
		}
	}, fifo)
}

// smallBatches is a service that takes three messages at a time.
func smallBatches(r *http.Request, next send) (*http.Response, error) {
	if asks(r, "SendMessageBatch") {
		body, err := io.ReadAll(r.Body)
		if err != nil || strings.Count(string(body), "MessageBody") > 3 {
			return says(http.StatusBadRequest, `{"__type":"com.amazonaws.sqs#BatchRequestTooLong","message":"Batch requests cannot be longer than 262144 bytes."}`)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return next(r)
}

// TestReplaySmallBatches: in a region where a batch has fewer bytes, messages go in smaller ones.
func TestReplaySmallBatches(t *testing.T) {
	inFake(t, func(w *world) {
		w.bury(ids(10)...)
		w.between = smallBatches
		report, err := w.replay(w.t.Context(), redeliver.ReplayOptions{Limit: 10})
		if err != nil || report.Replayed != 10 || report.Left != 0 {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

// TestReplayParked: a parked queue is no dead-letter queue of SQS's, so messages
// are sent.
func TestReplayParked(t *testing.T) {
	inFake(t, func(w *world) {
		w.send(w.doc.Parked.URL, types.SendMessageBatchRequestEntry{Id: aws.String("0"), MessageBody: aws.String("x")})
		report, err := w.replay(w.t.Context(), redeliver.ReplayOptions{From: redeliver.ReplayParked})
		if err != nil || report.Replayed != 1 || !slices.Equal(w.in("orders"), []string{"x"}) {
			t.Errorf("%+v, %v", report, err)
		}
	}, parking)
}

// TestReplayRefused: what SQS cannot do is said.
func TestReplayRefused(t *testing.T) {
	for name, test := range map[string]struct {
		options redeliver.ReplayOptions
		want    string
	}{
		"exchange": {redeliver.ReplayOptions{Exchange: "x"}, "exchanges"},
		"count":    {redeliver.ReplayOptions{KeepCount: true}, "KeepCount"},
		"parked":   {redeliver.ReplayOptions{From: redeliver.ReplayParked}, "parked_queue"},
		"slow":     {redeliver.ReplayOptions{Limit: 1, Rate: 1e-10}, "a day"},
		"no rate":  {redeliver.ReplayOptions{Limit: 1, Rate: math.NaN()}, "a day"},
		"itself":   {redeliver.ReplayOptions{RoutingKey: "orders-dlq"}, "already"},
	} {
		t.Run(name, func(t *testing.T) {
			inFake(t, func(w *world) {
				if _, err := w.replay(w.t.Context(), test.options); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v", err)
				}
			})
		})
	}
}
