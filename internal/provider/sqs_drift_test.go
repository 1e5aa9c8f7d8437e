package provider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// tag sets tags of a queue by hand.
func (b *sqsBundle) tag(queue string, tags map[string]string) {
	b.t.Helper()
	if _, err := b.client.TagQueue(b.t.Context(), &sqs.TagQueueInput{QueueUrl: aws.String(b.service.QueueURL(queue)), Tags: tags}); err != nil {
		b.t.Fatal(err)
	}
}

// drifted is an attribute that is changed by hand.
type drifted struct {
	// topic is behind the test's name, and more of the topic's configuration.
	topic, more string
	attribute   string
	changed     map[string]string
}

// TestSQSDrift changes every attribute by hand, each on a topic of its own: the plan shows which, and the apply sets them
// back in place.
func TestSQSDrift(t *testing.T) {
	b := setupSQS(t)
	const fifo, kms = "fifo = true", `kms_key = "alias/orders"`
	redriven := `dead_letter_queue = redeliver_sqs_dead_letter_queue.orders.name`
	dead := b.service.QueueARN(b.name("-dlq"))
	cases := []drifted{
		{"-a", "", "VisibilityTimeout", map[string]string{"VisibilityTimeout": "77"}},
		{"-b", "", "MessageRetentionPeriod", map[string]string{"MessageRetentionPeriod": "600"}},
		{"-c", "", "DelaySeconds", map[string]string{"DelaySeconds": "7"}},
		{"-d", "", "ReceiveMessageWaitTimeSeconds", map[string]string{"ReceiveMessageWaitTimeSeconds": "3"}},
		{"-e", "", "MaximumMessageSize", map[string]string{"MaximumMessageSize": "4096"}},
		{"-f", "", "SqsManagedSseEnabled", map[string]string{"SqsManagedSseEnabled": "false"}},
		{"-g", kms, "KmsMasterKeyId", map[string]string{"KmsMasterKeyId": "alias/other"}},
		{"-h", kms, "KmsDataKeyReusePeriodSeconds", map[string]string{"KmsDataKeyReusePeriodSeconds": "60"}},
		{"-i", "", "Policy", map[string]string{"Policy": `{"Version":"2012-10-17","Statement":[{"Sid":"x","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111122223333:root"},"Action":"sqs:SendMessage","Resource":"` + b.service.QueueARN(b.name("-i")) + `"}]}`}},
		{"-j", redriven, "RedrivePolicy", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":3}`}},
		{"-k", redriven, "RedrivePolicy", map[string]string{"RedrivePolicy": ""}},
		{"-l", "", "RedriveAllowPolicy", map[string]string{"RedriveAllowPolicy": `{"redrivePermission":"denyAll"}`}},
		{"-m", fifo, "ContentBasedDeduplication", map[string]string{"ContentBasedDeduplication": "true"}},
		{"-n", fifo, "DeduplicationScope", map[string]string{"DeduplicationScope": "messageGroup"}},
		{"-o", fifo, "FifoThroughputLimit", map[string]string{"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}},
	}
	config := sqsDeadLetters("delete_non_empty = true")
	for _, d := range cases {
		config += fmt.Sprintf(`
resource "redeliver_sqs_topic" "on%s" {
  name                 = "TOPIC%s"
  %s
  retry                = { max_retries = 0 }
  allow_message_loss   = true
  acknowledge_warnings = ["few_receives", "foreign_dead_end"]
  delete_non_empty     = true
}
`, d.topic, d.topic, d.more)
	}
	c := b.commandLine(b.config(config))
	c.apply()
	queue := func(d drifted) string {
		if d.more == fifo {
			return b.name(d.topic + ".fifo")
		}
		return b.name(d.topic)
	}
	want := map[string]topology.SQSAttributes{}
	for _, d := range cases {
		want[d.topic] = b.live(queue(d)).Managed()
		b.set(queue(d), d.changed)
	}
	out := c.plan()
	for _, d := range cases {
		expect(t, out, "redeliver_sqs_topic.on"+d.topic+" will be updated in-place", fmt.Sprintf("%q", d.attribute))
	}
	expect(t, out, fmt.Sprintf("0 to add, %d to change, 0 to destroy", len(cases)))
	expect(t, c.apply(), fmt.Sprintf("0 added, %d changed, 0 destroyed", len(cases)))
	for _, d := range cases {
		if differences := topology.DiffSQSAttributes(want[d.topic], b.live(queue(d))); len(differences) > 0 {
			t.Errorf("%s: %v", d.attribute, differences)
		}
	}
	expect(t, c.plan(), "No changes")
	c.apply("-destroy")
}

// TestSQSRemovingUnsets: what is no longer configured is what it is by default again, encryption included.
func TestSQSRemovingUnsets(t *testing.T) {
	b := setupSQS(t)
	c := b.commandLine(b.config(sqsOrders(`
  visibility_timeout = "2m"
  retention          = "7d"
  delay              = "10s"
  receive_wait       = "20s"
  max_message_size   = 2048
  kms_key            = "alias/orders"
  kms_data_key_reuse = "1h"
  tags               = { a = "b" }
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Sid = "events", Effect = "Allow", Principal = { Service = "events.amazonaws.com" }, Action = "sqs:SendMessage", Resource = "arn:aws:sqs:us-east-1:000000000000:TOPIC" }]
  })
`)))
	c.apply()
	bare := b.config(sqsOrders(""))
	c.configure(bare)
	expect(t, c.apply(), "0 added, 1 changed, 0 destroyed")
	want := topology.SQSAttributes{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":11}`, b.service.QueueARN(b.name("-dlq")))}
	if differences := topology.DiffSQSAttributes(want, b.live(b.topic)); len(differences) > 0 {
		t.Errorf("%v", differences)
	}
	if tags := b.tags(b.topic); len(tags) > 0 {
		t.Errorf("tags %v are left", tags)
	}
	expect(t, c.plan(), "No changes")
	c.apply("-destroy")
}

// TestSQSPolicyByMeaning: a policy that is written in another way is the same one.
func TestSQSPolicyByMeaning(t *testing.T) {
	b := setupSQS(t)
	config := func(policy string) string { return b.config(sqsOrders("policy = " + hcl(policy))) }
	const one = `{"Version":"2012-10-17","Statement":[{"Sid":"x","Effect":"Allow","Principal":{"AWS":"111122223333"},"Action":["sqs:SendMessage"],"Resource":"arn:aws:sqs:us-east-1:000000000000:TOPIC"}]}`
	const same = `{ "Statement" : { "Resource" : ["arn:aws:sqs:us-east-1:000000000000:TOPIC"], "Action" : "sqs:SendMessage", "Principal" : { "AWS" : ["arn:aws:iam::111122223333:root"] }, "Effect" : "Allow", "Sid" : "x" }, "Version" : "2012-10-17" }`
	c := b.commandLine(config(one))
	c.apply()
	c.configure(config(same))
	expect(t, c.plan(), "No changes")
	c.configure(config(strings.Replace(same, "SendMessage", "ReceiveMessage", 1)))
	expect(t, c.plan(), `"Policy"`, "0 to add, 1 to change")
	c.configure(config("no JSON"))
	expect(t, c.planFails(), "Invalid topic", "it is not JSON")
	c.configure(config(one))
	c.apply("-destroy")
}

// TestSQSDeletedByHand: what is gone is planned again.
func TestSQSDeletedByHand(t *testing.T) {
	b := setupSQS(t)
	c := b.commandLine(b.config(sqsOrders("")))
	c.apply()
	b.drop(b.topic)
	b.drop(b.name("-parked"))
	out := c.plan()
	expect(t, out, "2 to add, 0 to change, 0 to destroy")
	expectNot(t, out, "exists already")
	c.apply("-destroy")
}
