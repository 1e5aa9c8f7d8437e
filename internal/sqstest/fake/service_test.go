package fake

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// scene is a queue of the double, and a client, in a bubble where time is moved by waiting.
type scene struct {
	t       *testing.T
	service *Service
	client  *sqs.Client
	queue   string
}

// in plays a scene on a queue with these attributes.
func in(t *testing.T, attributes map[string]string, play func(t *testing.T, s *scene)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scene{t: t, service: New()}
		s.client = s.service.Client()
		name := "orders"
		if attributes["FifoQueue"] == "true" {
			name = "orders.fifo"
		}
		s.queue = s.service.CreateQueue(t, name, attributes)
		play(t, s)
	})
}

func (s *scene) send(queue string, bodies ...string) {
	s.t.Helper()
	for _, body := range bodies {
		message := &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: &body}
		if strings.HasSuffix(queue, ".fifo") {
			message.MessageGroupId, message.MessageDeduplicationId = aws.String(body[:1]), &body
		}
		if _, err := s.client.SendMessage(s.t.Context(), message); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *scene) receive(queue string, change ...func(*sqs.ReceiveMessageInput)) []types.Message {
	s.t.Helper()
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &queue, MaxNumberOfMessages: 10, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	}
	for _, c := range change {
		c(in)
	}
	out, err := s.client.ReceiveMessage(s.t.Context(), in)
	if err != nil {
		s.t.Fatal(err)
	}
	return out.Messages
}

func bodies(msgs []types.Message) string {
	var list []string
	for _, m := range msgs {
		list = append(list, *m.Body)
	}
	return strings.Join(list, " ")
}

func receives(m types.Message) string { return m.Attributes["ApproximateReceiveCount"] }

func (s *scene) hide(m types.Message, seconds int32) error {
	_, err := s.client.ChangeMessageVisibility(s.t.Context(), &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &s.queue, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds,
	})
	return err
}

func (s *scene) delete(m types.Message) error {
	_, err := s.client.DeleteMessage(s.t.Context(), &sqs.DeleteMessageInput{QueueUrl: &s.queue, ReceiptHandle: m.ReceiptHandle})
	return err
}

// code is the code of the service's error.
func code(err error) string {
	var failed smithy.APIError
	if !errors.As(err, &failed) {
		return fmt.Sprint(err)
	}
	return failed.ErrorCode()
}

func (s *scene) want(what, got, want string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestVisibility(t *testing.T) {
	in(t, map[string]string{"VisibilityTimeout": "30"}, func(t *testing.T, s *scene) {
		s.send(s.queue, "a")
		first := s.receive(s.queue)
		s.want("received", bodies(first), "a")
		s.want("receive count", receives(first[0]), "1")
		s.want("while it is in flight", bodies(s.receive(s.queue)), "")
		begun := time.Now()
		second := s.receive(s.queue, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 20 })
		s.want("a long poll that ends empty", bodies(second)+time.Since(begun).String(), "20s")
		second = s.receive(s.queue, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 20 })
		s.want("after the timeout", bodies(second)+time.Since(begun).String(), "a30s")
		s.want("receive count", receives(second[0]), "2")
		if err := s.hide(second[0], 0); err != nil {
			t.Fatal(err)
		}
		third := s.receive(s.queue)
		s.want("made visible at once", bodies(third), "a")
		if err := s.hide(third[0], 100); err != nil {
			t.Fatal(err)
		}
		begun = time.Now()
		for len(s.receive(s.queue, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 20 })) == 0 {
		}
		s.want("hidden for", time.Since(begun).String(), "1m40s")
	})
}

// TestTwelveHours: a message may stay invisible 12 hours in total from its receive.
func TestTwelveHours(t *testing.T) {
	in(t, nil, func(t *testing.T, s *scene) {
		s.send(s.queue, "a")
		m := s.receive(s.queue)[0]
		for range 11 {
			if err := s.hide(m, 3700); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		s.want("an hour and more before the end", code(s.hide(m, 3700)), "InvalidParameterValue")
		s.want("the hour that is left", code(s.hide(m, 3600)), "<nil>")
		s.want("out of range", code(s.hide(m, 43201)), "InvalidParameterValue")
	})
}

func TestStandardHandles(t *testing.T) {
	in(t, nil, func(t *testing.T, s *scene) {
		s.send(s.queue, "a", "b", "c")
		got := s.receive(s.queue)
		time.Sleep(time.Minute)
		s.want("changing an expired one", code(s.hide(got[1], 10)), "<nil>")
		s.want("deleting an expired one", code(s.delete(got[0])), "<nil>")
		s.want("deleting twice", code(s.delete(got[0])), "<nil>")
		s.want("changing a deleted one", code(s.hide(got[0], 10)), "InvalidParameterValue")
		s.want("what is left", bodies(s.receive(s.queue)), "c")
		s.want("deleting by the handle of an older receive", code(s.delete(got[2])), "<nil>")
		if n := len(s.service.Messages("orders")); n != 2 {
			t.Errorf("%d messages, want 2", n)
		}
		s.want("no handle", code(s.delete(types.Message{ReceiptHandle: aws.String("x")})), "ReceiptHandleIsInvalid")
	})
}

func TestFIFO(t *testing.T) {
	in(t, map[string]string{"FifoQueue": "true"}, func(t *testing.T, s *scene) {
		s.send(s.queue, "a1", "a2", "b1", "a1")
		one := func(in *sqs.ReceiveMessageInput) { in.MaxNumberOfMessages = 1 }
		a1 := s.receive(s.queue, one)
		s.want("the head", bodies(a1), "a1")
		b1 := s.receive(s.queue)
		s.want("a message in flight blocks its group", bodies(b1), "b1")
		if err := s.hide(a1[0], 0); err != nil {
			t.Fatal(err)
		}
		again := s.receive(s.queue)
		s.want("a failed head comes first again", bodies(again), "a1 a2")
		if err := s.delete(again[0]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.want("deleting an expired one", code(s.delete(again[1])), "InvalidParameterValue")
		s.want("changing an expired one", code(s.hide(again[1], 10)), "InvalidParameterValue")
		s.want("deleting twice", code(s.delete(again[0])), "<nil>")
		attempt := func(in *sqs.ReceiveMessageInput) { in.ReceiveRequestAttemptId = aws.String("1") }
		first := s.receive(s.queue, attempt)
		s.want("what is left", bodies(first), "a2 b1")
		repeated := s.receive(s.queue, attempt)
		s.want("a receive that is repeated", bodies(repeated)+receives(repeated[0])+*repeated[0].ReceiptHandle, bodies(first)+receives(first[0])+*first[0].ReceiptHandle)
		if err := s.delete(first[0]); err != nil {
			t.Fatal(err)
		}
		s.want("when something has become of it", bodies(s.receive(s.queue, attempt)), "")
	})
}

// TestRedrive: a message moves on the receive after the limit, with its count and, from a standard queue, the time at
// which it was sent.
func TestRedrive(t *testing.T) {
	in(t, nil, func(t *testing.T, s *scene) {
		dead := s.service.CreateQueue(t, "orders-dlq", map[string]string{"MessageRetentionPeriod": "1000"})
		_, err := s.client.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &s.queue, Attributes: map[string]string{
			"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"2"}`, QueueARN("orders-dlq")),
		}})
		if err != nil {
			t.Fatal(err)
		}
		s.send(s.queue, "a")
		for range 2 {
			s.want("received", bodies(s.receive(s.queue)), "a")
			time.Sleep(30 * time.Second)
		}
		s.want("too often", bodies(s.receive(s.queue)), "")
		got := s.receive(dead)
		s.want("dead-lettered", bodies(got), "a")
		s.want("its receive count", receives(got[0]), "3")
		s.want("where it comes from", got[0].Attributes["DeadLetterQueueSourceArn"], QueueARN("orders"))
		time.Sleep(930 * time.Second)
		s.want("its age goes along", bodies(s.receive(dead)), "a")
		time.Sleep(20 * time.Second)
		if n := len(s.service.Messages("orders-dlq")); n != 0 {
			t.Error("it is older than the retention and there")
		}
	})
}

// TestInFlight: a short poll is refused at the limit, a long poll just waits.
func TestInFlight(t *testing.T) {
	in(t, nil, func(t *testing.T, s *scene) {
		s.service.LimitInFlight(2)
		s.send(s.queue, "a", "b", "c")
		s.receive(s.queue, func(in *sqs.ReceiveMessageInput) { in.MaxNumberOfMessages = 2 })
		_, err := s.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &s.queue})
		if over := new(types.OverLimit); !errors.As(err, &over) {
			t.Errorf("%v, want OverLimit", err)
		}
		begun := time.Now()
		got := s.receive(s.queue, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 20 })
		s.want("a long poll", bodies(got)+time.Since(begun).String(), "20s")
	})
}

func TestMoveTask(t *testing.T) {
	in(t, nil, func(t *testing.T, s *scene) {
		dead := s.service.CreateQueue(t, "dead", nil)
		start := func(destination *string) (*sqs.StartMessageMoveTaskOutput, error) {
			return s.client.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{
				SourceArn: aws.String(QueueARN("dead")), DestinationArn: destination, MaxNumberOfMessagesPerSecond: aws.Int32(1),
			})
		}
		list := func() string {
			t.Helper()
			out, err := s.client.ListMessageMoveTasks(t.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(QueueARN("dead"))})
			if err != nil || len(out.Results) != 1 {
				t.Fatal(out, err)
			}
			if r := out.Results[0]; (r.TaskHandle != nil) != (*r.Status == "RUNNING") {
				t.Errorf("a task that is %s has the handle %v", *r.Status, r.TaskHandle)
			}
			return *out.Results[0].Status
		}
		_, err := start(nil)
		s.want("no dead-letter queue", code(err), "InvalidParameterValue")
		_, err = s.client.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &s.queue, Attributes: map[string]string{
			"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":1}`, QueueARN("dead")),
		}})
		if err != nil {
			t.Fatal(err)
		}
		s.send(dead, "a", "b", "c")
		if _, err := start(nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.want("messages without a source", list(), "FAILED")
		task, err := start(aws.String(QueueARN("orders")))
		if err != nil {
			t.Fatal(err)
		}
		_, err = start(aws.String(QueueARN("orders")))
		s.want("a second task", code(err), "AWS.SimpleQueueService.UnsupportedOperation")
		synctest.Wait()
		if _, err := s.client.CancelMessageMoveTask(t.Context(), &sqs.CancelMessageMoveTaskInput{TaskHandle: task.TaskHandle}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		s.want("cancelled", list()+bodies(s.receive(s.queue)), "CANCELLEDa")
		if _, err := start(aws.String(QueueARN("orders"))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		s.want("to its end", list()+bodies(s.receive(s.queue)), "COMPLETEDb c")
	})
}

// TestScript: what tests let happen.
func TestScript(t *testing.T) {
	in(t, nil, func(t *testing.T, s *scene) {
		s.service.Fail("ReceiveMessage", 1, Throttled())
		_, err := s.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &s.queue})
		if throttled := new(types.RequestThrottled); !errors.As(err, &throttled) {
			t.Errorf("%v, want RequestThrottled", err)
		}
		s.service.Lose("SendMessage", 1)
		_, err = s.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &s.queue, MessageBody: aws.String("a")})
		if !errors.Is(err, ErrLost) {
			t.Errorf("%v, want %v", err, ErrLost)
		}
		s.send(s.queue, "b")
		got := s.receive(s.queue)
		s.want("taken, though the answer was lost", bodies(got), "a b")

		s.service.FailEntries("DeleteMessageBatch", func(body string) *Error {
			if body == "a" {
				return Internal()
			}
			return nil
		})
		var entries []types.DeleteMessageBatchRequestEntry
		for _, m := range got {
			entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: m.Body, ReceiptHandle: m.ReceiptHandle})
		}
		out, err := s.client.DeleteMessageBatch(t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &s.queue, Entries: entries})
		if err != nil || len(out.Successful) != 1 || len(out.Failed) != 1 || *out.Failed[0].Id != "a" || out.Failed[0].SenderFault {
			t.Errorf("%+v, %v", out, err)
		}
		s.want("left", s.service.Messages("orders")[0].Body, "a")
		if got := s.service.Requests(); got["DeleteMessageBatch"] != 1 || got["ReceiveMessage"] != 2 || got["SendMessage"] != 2 {
			t.Errorf("requests %v", got)
		}
		if got := s.service.Entries(); got["DeleteMessageBatch"] != 2 || got["ReceiveMessage"] != 2 {
			t.Errorf("entries %v", got)
		}
		none := s.queue + "-none"
		_, err = s.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &none})
		if missing := new(types.QueueDoesNotExist); !errors.As(err, &missing) {
			t.Errorf("%v, want QueueDoesNotExist", err)
		}
		s.want("its legacy code", code(err), "AWS.SimpleQueueService.NonExistentQueue")
		s.service.Fail("ReceiveMessage", -1, AccessDenied("sqs:receivemessage", QueueARN("orders")))
		for range 2 {
			_, err = s.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &s.queue})
			s.want("for ever", code(err), "AccessDenied")
		}
		s.service.Mend()
		s.receive(s.queue)
	})
}

// TestCancelledPoll: a long poll ends with its context.
func TestCancelledPoll(t *testing.T) {
	in(t, nil, func(t *testing.T, s *scene) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begun := time.Now()
		_, err := s.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &s.queue, WaitTimeSeconds: 20})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}

// TestOverHTTP: the same over a network.
func TestOverHTTP(t *testing.T) {
	t.Parallel()
	service := New()
	server := httptest.NewServer(service)
	t.Cleanup(server.Close)
	client := service.Client(func(o *sqs.Options) {
		o.BaseEndpoint, o.HTTPClient = &server.URL, server.Client()
	})
	out, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders"), Attributes: map[string]string{"DelaySeconds": "0"}})
	if err != nil || !strings.HasPrefix(*out.QueueUrl, server.URL) {
		t.Fatal(out, err)
	}
	_, err = client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders"), Attributes: map[string]string{"DelaySeconds": "1"}})
	if exists := new(types.QueueNameExists); !errors.As(err, &exists) {
		t.Errorf("%v, want QueueNameExists", err)
	}
	if names := service.Queues(); !slices.Equal(names, []string{"orders"}) {
		t.Errorf("queues %q", names)
	}
	_, err = client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: out.QueueUrl, MessageBody: aws.String("a"), MessageAttributes: map[string]types.MessageAttributeValue{
		"n": {DataType: aws.String("Number"), StringValue: aws.String("1")}, "b": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 1}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: out.QueueUrl, MessageAttributeNames: []string{"All"}})
	if err != nil || len(got.Messages) != 1 {
		t.Fatal(got, err)
	}
	if a := got.Messages[0].MessageAttributes; *a["n"].StringValue != "1" || string(a["b"].BinaryValue) != "\x00\x01" {
		t.Errorf("attributes %v", a)
	}
}
