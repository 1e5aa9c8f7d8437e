package sqsadmin

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// sixty is a queue whose visibility timeout is a minute.
func sixty(s *service) Queue {
	return Queue{Address: s.orders(), Attributes: topology.SQSAttributes{topology.AttrVisibilityTimeout: "60", topology.AttrPolicy: ""}}
}

// TestWaitsUntilReadsAgree: one read that shows a write may be followed by one that does not.
func TestWaitsUntilReadsAgree(t *testing.T) {
	t.Parallel()
	seen := attributes(topology.AttrVisibilityTimeout, "60")
	s := newService(t, map[string][]answer{
		"CreateQueue":        {{body: map[string]any{"QueueUrl": "http://x/123456789012/orders"}}},
		"GetQueueAttributes": {missing(), seen, attributes(topology.AttrVisibilityTimeout, "30"), seen, seen, seen},
	})
	var log lines
	made, err := s.client(&log).Create(t.Context(), sixty(s))
	if err != nil || !made {
		t.Fatalf("made %v, %v", made, err)
	}
	if n := s.count("GetQueueAttributes"); n != 6 {
		t.Errorf("%d reads, want 6", n)
	}
	for _, sees := range []string{"no such queue", "VisibilityTimeout"} {
		if !log.has("waiting until SQS shows what was written", "arn:aws:sqs:eu-west-1:123456789012:orders", sees) {
			t.Errorf("no line of the log says that it sees %q: %q", sees, log.text)
		}
	}
	if sent := s.inputs["CreateQueue"][0]["Attributes"]; !reflect.DeepEqual(sent, map[string]any{topology.AttrVisibilityTimeout: "60"}) {
		t.Errorf("the queue is made with %v", sent)
	}
}

// TestDeadline: the deadline of a wait is the caller's, and the error says what is seen instead.
func TestDeadline(t *testing.T) {
	t.Parallel()
	s := newService(t, map[string][]answer{
		"CreateQueue":        {{body: map[string]any{"QueueUrl": "http://x/123456789012/orders"}}},
		"GetQueueAttributes": {attributes(topology.AttrVisibilityTimeout, "30")},
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var log lines
	made, err := s.client(&log).Create(ctx, sixty(s))
	if !made {
		t.Error("the queue is there, and not said to be")
	}
	mentions(t, err, `queue "orders" in region eu-west-1 of account 123456789012`)
}

// TestDeletedRecently: a name is tried until SQS takes it again.
func TestDeletedRecently(t *testing.T) {
	t.Parallel()
	recently := answer{code: "QueueDeletedRecently", message: "You must wait 60 seconds after deleting a queue before you can create another with the same name."}
	s := newService(t, map[string][]answer{
		"CreateQueue":        {recently, recently, {body: map[string]any{"QueueUrl": "http://x/123456789012/orders"}}},
		"GetQueueAttributes": {attributes(topology.AttrVisibilityTimeout, "60")},
	})
	var log lines
	if _, err := s.client(&log).Create(t.Context(), sixty(s)); err != nil {
		t.Fatal(err)
	}
	if n := s.count("CreateQueue"); n != 3 {
		t.Errorf("%d tries, want 3", n)
	}
	if !log.has("waiting until SQS lets the name of a deleted queue be used again") {
		t.Errorf("the log does not say why it takes so long: %q", log.text)
	}

	s = newService(t, map[string][]answer{"CreateQueue": {recently}})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	made, err := s.client(&log).Create(ctx, sixty(s))
	if made {
		t.Error("nothing was made")
	}
	mentions(t, err, `cannot create queue "orders"`, "QueueDeletedRecently", "a minute after its queue was deleted", "timeouts.create")
}

// TestOtherAccount: a queue that was made in another account than the configured one is said, not waited for.
func TestOtherAccount(t *testing.T) {
	t.Parallel()
	s := newService(t, map[string][]answer{"CreateQueue": {{body: map[string]any{"QueueUrl": "http://x/999999999999/orders"}}}})
	_, err := s.client(&lines{}).Create(t.Context(), sixty(s))
	mentions(t, err, "http://x/999999999999/orders", "sqs.account_id")
}

// TestUpdate sets what differs and nothing else, tags included.
func TestUpdate(t *testing.T) {
	t.Parallel()
	tags := func(pairs map[string]string) answer { return answer{body: map[string]any{"Tags": pairs}} }
	s := newService(t, map[string][]answer{
		"GetQueueAttributes": {
			attributes(topology.AttrVisibilityTimeout, "30", topology.AttrDelay, "7", topology.AttrKMSKey, "alias/k", topology.AttrPolicy, `{"Statement":[]}`),
			attributes(topology.AttrVisibilityTimeout, "60"),
		},
		"ListQueueTags": {tags(map[string]string{"old": "1", "same": "2", "aws:cloudformation:stack": "x"}), tags(map[string]string{"new": "3", "same": "2"})},
	})
	q := sixty(s)
	q.Attributes[topology.AttrManagedSSE], q.Attributes[topology.AttrKMSKey], q.Attributes[topology.AttrDelay] = "true", "", "0"
	q.Tags = map[string]string{"new": "3", "same": "2"}
	c := s.client(&lines{})
	if err := c.Update(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for operation, want := range map[string]map[string]any{
		"SetQueueAttributes": {"Attributes": map[string]any{
			topology.AttrVisibilityTimeout: "60", topology.AttrDelay: "0", topology.AttrKMSKey: "", topology.AttrManagedSSE: "true", topology.AttrPolicy: "",
		}},
		"UntagQueue": {"TagKeys": []any{"old"}},
		"TagQueue":   {"Tags": map[string]any{"new": "3"}},
	} {
		if s.count(operation) != 1 {
			t.Errorf("%s was called %d times", operation, s.count(operation))
			continue
		}
		got := s.inputs[operation][0]
		delete(got, "QueueUrl")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s takes %v, want %v", operation, got, want)
		}
	}
	// A queue that is as it is to be is read, and that is all.
	before := len(s.calls)
	if err := c.Update(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if calls := s.calls[before:]; len(calls) != 2 {
		t.Errorf("nothing to do takes %q", calls)
	}
}
