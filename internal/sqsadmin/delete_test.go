package sqsadmin

import (
	"encoding/json"
	"errors"
	"testing"
)

// count is an answer in which so many messages are counted.
func count(visible, inFlight, delayed string) answer {
	return attributes("ApproximateNumberOfMessages", visible, "ApproximateNumberOfMessagesNotVisible", inFlight, "ApproximateNumberOfMessagesDelayed", delayed)
}

// redriving is the answer of a queue that redrives to orders.
func redriving(name, to string) answer {
	policy, _ := json.Marshal(map[string]any{"deadLetterTargetArn": to, "maxReceiveCount": 3})
	return attributes("QueueArn", "arn:aws:sqs:eu-west-1:123456789012:"+name, "RedrivePolicy", string(policy))
}

// TestDelete deletes what is empty in several reads and what nobody redrives to, and nothing else.
func TestDelete(t *testing.T) {
	t.Parallel()
	none, sources := count("0", "0", "0"), answer{body: map[string]any{"queueUrls": []string{"http://x/123456789012/mails"}}}
	orders := "arn:aws:sqs:eu-west-1:123456789012:orders"
	for name, test := range map[string]struct {
		reads     []answer
		sources   answer
		nonEmpty  bool
		wantError []string
		deleted   bool
	}{
		"empty":             {reads: []answer{none, none, none, none, missing()}, deleted: true},
		"waiting":           {reads: []answer{count("2", "0", "0")}, wantError: []string{`queue "orders"`, "holds about 2 messages (2 waiting)"}},
		"in flight":         {reads: []answer{none, count("0", "1", "0")}, wantError: []string{"about 1 message (1 in flight)"}},
		"delayed":           {reads: []answer{none, none, count("0", "0", "3")}, wantError: []string{"3 delayed"}},
		"whatever it holds": {reads: []answer{count("2", "0", "0"), missing()}, nonEmpty: true, deleted: true},
		"redriven to":       {reads: []answer{none, none, none, redriving("mails", orders)}, sources: sources, wantError: []string{"is the dead-letter queue of arn:aws:sqs:eu-west-1:123456789012:mails"}},
		// The list of sources lags.
		"no longer redriven to": {reads: []answer{none, none, none, redriving("mails", "arn:aws:sqs:eu-west-1:123456789012:other"), missing()}, sources: sources, deleted: true},
		"the source is gone":    {reads: []answer{none, none, none, missing()}, sources: sources, deleted: true},
		// It is deleted beside this one.
		"the source goes":    {reads: []answer{none, none, none, redriving("mails", orders), missing(), none, none, none, missing()}, sources: sources, deleted: true},
		"redriven meanwhile": {reads: []answer{none, none, none, redriving("mails", orders), missing(), count("1", "0", "0")}, sources: sources, wantError: []string{"1 waiting"}},
		"gone already":       {reads: []answer{missing()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.sources.body == nil {
				test.sources = answer{body: map[string]any{"queueUrls": []string{}}}
			}
			s := newService(t, map[string][]answer{"GetQueueAttributes": test.reads, "ListDeadLetterSourceQueues": {test.sources}})
			err := s.client(&lines{}).Delete(t.Context(), Deletion{Address: s.orders(), DeleteNonEmpty: test.nonEmpty})
			if test.wantError != nil {
				mentions(t, err, test.wantError...)
				var notEmpty *NotEmptyError
				var pointedAt *PointedAtError
				if !errors.As(err, &notEmpty) && !errors.As(err, &pointedAt) {
					t.Errorf("%T", err)
				}
			} else if err != nil {
				t.Error(err)
			}
			if deleted := s.count("DeleteQueue") > 0; deleted != test.deleted {
				t.Errorf("deleted: %v, want %v", deleted, test.deleted)
			}
		})
	}
}
