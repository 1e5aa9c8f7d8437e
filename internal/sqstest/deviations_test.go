package sqstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// TestDeviations: each rule holds on an emulator, or is listed as one that does not. So the list is true, and nothing is
// missing of what is tried here.
func TestDeviations(t *testing.T) {
	t.Parallel()
	for _, service := range []func(testing.TB) *Service{Local, Faux} {
		s := service(t)
		for rule, try := range trials() {
			t.Run(string(s.Name())+"/"+string(rule), func(t *testing.T) {
				t.Parallel()
				broken := try(&trial{t, s, s.Client(t)})
				listed, deviates := s.deviation(rule)
				switch {
				case broken != "" && !deviates:
					t.Errorf("%s breaks a rule and is not listed: %s", s.Name(), broken)
				case broken == "" && deviates:
					t.Errorf("%s keeps the rule: take this off the list: %+v", s.Name(), listed)
				case deviates:
					t.Log(broken)
				}
			})
		}
	}
}

// TestDeviationsAreSaid: what is listed has a reason, once, and a trial.
func TestDeviationsAreSaid(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, d := range Deviations() {
		key := string(d.Emulator) + "/" + string(d.Rule)
		if trials()[d.Rule] == nil || d.AWS == "" || d.Instead == "" || seen[key] {
			t.Errorf("%+v", d)
		}
		seen[key] = true
	}
}

// trial tries a rule on an emulator.
type trial struct {
	t      *testing.T
	s      *Service
	client *sqs.Client
}

// trials say how a rule is broken; "" is not at all.
func trials() map[Rule]func(*trial) string {
	return map[Rule]func(*trial) string{
		RedriveAllowed: (*trial).redriveAllowed, QueuePolicyEnforced: (*trial).policyEnforced, TotalVisibility: (*trial).totalVisibility,
		ReceiveAttempt: (*trial).receiveAttempt, GroupBlocks: (*trial).groupBlocks, CountsOnce: (*trial).countsOnce,
		LongPollReturns: (*trial).longPollReturns, Depths: (*trial).depths, SystemAttributeNames: (*trial).systemAttributeNames,
		RedriveValidated: (*trial).redriveValidated, BatchErrors: (*trial).batchErrors, MoveTasks: (*trial).moveTasks,
		EntryFails: (*trial).entryFails, DeadLetterSource: (*trial).deadLetterSource, DeadLetterSources: (*trial).deadLetterSources,
	}
}

func (tr *trial) create(name string, attributes map[string]string) (string, error) {
	out, err := tr.client.CreateQueue(tr.t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		return "", err
	}
	return *out.QueueUrl, nil
}

// queue makes a queue of its own.
func (tr *trial) queue(attributes map[string]string) (url string) {
	tr.t.Helper()
	name := UniqueName(tr.t)
	if attributes["FifoQueue"] == "true" {
		name += ".fifo"
	}
	url, err := tr.create(name, attributes)
	tr.must(err)
	return url
}

func (tr *trial) fifo() string {
	tr.t.Helper()
	return tr.queue(map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
}

func (tr *trial) must(err error) {
	tr.t.Helper()
	if err != nil {
		tr.t.Fatal(err)
	}
}

// send sends messages whose group, in a FIFO queue, is their first letter.
func (tr *trial) send(url string, bodies ...string) {
	tr.t.Helper()
	for _, body := range bodies {
		in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}
		if strings.HasSuffix(url, ".fifo") {
			in.MessageGroupId = aws.String(body[:1])
		}
		_, err := tr.client.SendMessage(tr.t.Context(), in)
		tr.must(err)
	}
}

func (tr *trial) receive(url string, change func(*sqs.ReceiveMessageInput)) []types.Message {
	tr.t.Helper()
	in := &sqs.ReceiveMessageInput{QueueUrl: &url, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll}}
	if change != nil {
		change(in)
	}
	out, err := tr.client.ReceiveMessage(tr.t.Context(), in)
	tr.must(err)
	return out.Messages
}

// one receives a message that has to be there.
func (tr *trial) one(url string) types.Message {
	tr.t.Helper()
	msgs := tr.receive(url, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds = 5 })
	if len(msgs) != 1 {
		tr.t.Fatalf("received %d messages, want 1", len(msgs))
	}
	return msgs[0]
}

func (tr *trial) hide(url string, m types.Message, seconds int32) error {
	_, err := tr.client.ChangeMessageVisibility(tr.t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: seconds})
	return err
}

// eventually looks again and again, for some seconds, whether something comes true.
func (tr *trial) eventually(look func() bool) bool {
	ctx, cancel := context.WithTimeout(tr.t.Context(), 3*time.Second)
	defer cancel()
	for !look() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
	return true
}

func redriveTo(arn string, most int) map[string]string {
	return map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, arn, most)}
}

// arn is that of the queue of a URL.
func (tr *trial) arn(url string) string { return tr.s.QueueARN(url[strings.LastIndex(url, "/")+1:]) }

func (tr *trial) redriveAllowed() string {
	dead := tr.queue(map[string]string{"RedriveAllowPolicy": `{"redrivePermission":"denyAll"}`})
	if _, err := tr.create(UniqueName(tr.t), redriveTo(tr.arn(dead), 1)); err == nil {
		return "a queue that allows no redrive was taken for a redrive policy"
	}
	return ""
}

func (tr *trial) policyEnforced() string {
	url := tr.queue(nil)
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:SendMessage","Resource":%q}]}`, tr.arn(url))
	_, err := tr.client.SetQueueAttributes(tr.t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"Policy": policy}})
	tr.must(err)
	if _, err := tr.client.SendMessage(tr.t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("a")}); err == nil {
		return "a message was taken that the queue's policy denies"
	}
	return ""
}

func (tr *trial) totalVisibility() string {
	url := tr.queue(nil)
	tr.send(url, "a")
	m := tr.one(url)
	if !tr.eventually(func() bool { return tr.hide(url, m, 43_200) != nil }) {
		return "a message may be hidden for 12 hours, seconds after it was received"
	}
	return ""
}

func (tr *trial) receiveAttempt() string {
	url := tr.fifo()
	tr.send(url, "a")
	attempt := func(in *sqs.ReceiveMessageInput) { in.ReceiveRequestAttemptId, in.WaitTimeSeconds = aws.String("1"), 1 }
	if first, second := tr.receive(url, attempt), tr.receive(url, attempt); len(first) != 1 || len(second) != 1 {
		return fmt.Sprintf("a receive returned %d messages and its repetition %d", len(first), len(second))
	}
	return ""
}

func (tr *trial) groupBlocks() string {
	url := tr.fifo()
	tr.send(url, "a1", "a2")
	first := tr.one(url)
	if second := tr.receive(url, nil); len(second) > 0 {
		return fmt.Sprintf("%q was received while %q was in flight", *second[0].Body, *first.Body)
	}
	return ""
}

func (tr *trial) countsOnce() string {
	url := tr.queue(nil)
	tr.send(url, "a")
	tr.must(tr.hide(url, tr.one(url), 0))
	if count := tr.one(url).Attributes["ApproximateReceiveCount"]; count != "2" {
		return "the receive count of the second receive is " + count
	}
	return ""
}

func (tr *trial) longPollReturns() string {
	url := tr.queue(nil)
	tr.send(url, "a")
	begun := time.Now()
	got := tr.receive(url, func(in *sqs.ReceiveMessageInput) { in.WaitTimeSeconds, in.MaxNumberOfMessages = 4, 10 })
	if took := time.Since(begun); len(got) != 1 || took > 3*time.Second {
		return fmt.Sprintf("%d messages after %s, though one was there", len(got), took.Round(time.Second))
	}
	return ""
}

func (tr *trial) depths() string {
	url := tr.queue(nil)
	tr.send(url, "a", "b")
	tr.one(url)
	var last map[string]string
	if !tr.eventually(func() bool {
		out, err := tr.client.GetQueueAttributes(tr.t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"All"}})
		tr.must(err)
		last = out.Attributes
		return last["ApproximateNumberOfMessages"] == "1" && last["ApproximateNumberOfMessagesNotVisible"] == "1"
	}) {
		return fmt.Sprintf("of two messages one is in flight, and %q are visible and %q not", last["ApproximateNumberOfMessages"], last["ApproximateNumberOfMessagesNotVisible"])
	}
	return ""
}

func (tr *trial) systemAttributeNames() string {
	config := tr.s.Config()
	config.APIOptions = nil // the help
	url := tr.queue(nil)
	tr.send(url, "a")
	plain := &trial{tr.t, tr.s, sqs.NewFromConfig(config)}
	if plain.one(url).Attributes["ApproximateReceiveCount"] == "" {
		return "a message was received without the attributes that were asked for"
	}
	return ""
}

func (tr *trial) redriveValidated() string {
	if _, err := tr.create(UniqueName(tr.t), redriveTo(tr.s.QueueARN(UniqueName(tr.t)), 1)); err == nil {
		return "a redrive policy was taken whose queue does not exist"
	}
	if _, err := tr.create(UniqueName(tr.t), redriveTo(tr.arn(tr.fifo()), 1)); err == nil {
		return "a redrive policy of a standard queue was taken whose queue is FIFO"
	}
	if _, err := tr.create(UniqueName(tr.t), redriveTo(tr.arn(tr.queue(nil)), 1001)); err == nil {
		return "a redrive policy with a maxReceiveCount of 1001 was taken"
	}
	return ""
}

func (tr *trial) batchErrors() string {
	url := tr.queue(nil)
	entry := func(id string) types.SendMessageBatchRequestEntry {
		return types.SendMessageBatchRequestEntry{Id: &id, MessageBody: aws.String("a")}
	}
	var many []types.SendMessageBatchRequestEntry
	for i := range 11 {
		many = append(many, entry(fmt.Sprint(i)))
	}
	send := func(entries ...types.SendMessageBatchRequestEntry) error {
		_, err := tr.client.SendMessageBatch(tr.t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries})
		return err
	}
	if err := send(many...); !errors.As(err, new(*types.TooManyEntriesInBatchRequest)) {
		return fmt.Sprintf("a batch of 11 entries: %v", err)
	}
	if err := send(entry("a"), entry("a")); !errors.As(err, new(*types.BatchEntryIdsNotDistinct)) {
		return fmt.Sprintf("a batch with an id twice: %v", err)
	}
	if err := send([]types.SendMessageBatchRequestEntry{}...); !errors.As(err, new(*types.EmptyBatchRequest)) {
		return fmt.Sprintf("a batch without entries: %v", err)
	}
	if err := send(entry("not an id")); !errors.As(err, new(*types.InvalidBatchEntryId)) {
		return fmt.Sprintf("a batch with an id of spaces: %v", err)
	}
	return ""
}

func (tr *trial) moveTasks() string {
	dead := tr.queue(nil)
	url, err := tr.create(UniqueName(tr.t), redriveTo(tr.arn(dead), 1))
	tr.must(err)
	tr.send(dead, "a")
	_, err = tr.client.StartMessageMoveTask(tr.t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(tr.arn(dead)), DestinationArn: aws.String(tr.arn(url))})
	if err != nil {
		return err.Error()
	}
	if !tr.eventually(func() bool { return len(tr.receive(url, nil)) == 1 }) {
		return "the message was not moved"
	}
	return ""
}

func (tr *trial) deadLetterSource() string {
	dead := tr.queue(nil)
	url := tr.queue(redriveTo(tr.arn(dead), 1))
	tr.send(url, "a")
	tr.must(tr.hide(url, tr.one(url), 0))
	if n := len(tr.receive(url, nil)); n != 0 {
		return "a message was received more often than its redrive policy allows"
	}
	if source := tr.one(dead).Attributes["DeadLetterQueueSourceArn"]; source != tr.arn(url) {
		return fmt.Sprintf("a message that was redriven says that it came from %q", source)
	}
	return ""
}

func (tr *trial) deadLetterSources() string {
	dead := tr.queue(nil)
	url := tr.queue(redriveTo(tr.arn(dead), 1))
	out, err := tr.client.ListDeadLetterSourceQueues(tr.t.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dead})
	switch {
	case err != nil:
		return err.Error()
	case len(out.QueueUrls) != 1 || out.QueueUrls[0] != url:
		return fmt.Sprintf("listed %q, and %q redrives there", out.QueueUrls, url)
	}
	return ""
}

func (tr *trial) entryFails() string {
	url := tr.queue(nil)
	tr.send(url, "a")
	m := tr.one(url)
	out, err := tr.client.DeleteMessageBatch(tr.t.Context(), &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: []types.DeleteMessageBatchRequestEntry{
		{Id: aws.String("good"), ReceiptHandle: m.ReceiptHandle}, {Id: aws.String("bad"), ReceiptHandle: aws.String("none")},
	}})
	switch {
	case err != nil:
		return err.Error()
	case len(out.Successful) != 1 || len(out.Failed) != 1 || *out.Failed[0].Code != "ReceiptHandleIsInvalid":
		return fmt.Sprintf("of a good and a bad handle %d succeeded and %d failed (%v)", len(out.Successful), len(out.Failed), out.Failed)
	}
	return ""
}
