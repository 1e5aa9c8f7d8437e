package provider

import (
	"strings"
	"testing"
)

// TestSQSRefusals: what SQS cannot carry, or would lose messages by, is refused by the plan with the way out.
func TestSQSRefusals(t *testing.T) {
	b := setupSQS(t)
	for _, test := range []struct{ old, with, want string }{
		{`["5s", "30s", "2m"]`, `["5s", "12h"]`, "cannot be waited on SQS"},
		{`["5s", "30s", "2m"]`, `["9h"]`, "SQS would delete it silently"},
		{`["5s", "30s", "2m"]`, `["500ms"]`, "whole seconds"},
		{`{ delays`, `{ max_retries = 1000, delays`, "after at most 1000"},
		{"retry ", "handler_timeout = \"1m\"\n  retry ", "is shorter than handler_timeout"},
		{"retry ", "visibility_timeout = \"0s\"\n  retry ", "visibility_timeout is 0s"},
		{"retry ", "convention = \"acemq\"\n  retry ", "names on SQS have no dots"},
		{"retry ", "fifo = true\n  retry ", "is FIFO, and SQS has the dead ends of a FIFO queue be FIFO too"},
		{`  dead_letter_queue = redeliver_sqs_dead_letter_queue.orders.name`, "", "no dead-letter queue"},
		// The dead-letter queue's own plan says how long it keeps messages.
		{`resource "redeliver_sqs_dead_letter_queue" "orders" {`, "resource \"redeliver_sqs_dead_letter_queue\" \"orders\" {\n  retention = \"1d\"\n", "keeps messages for 1d and topic"},
	} {
		out := b.commandLine(b.config(strings.Replace(sqsOrders(""), test.old, test.with, 1))).planFails()
		expect(t, out, test.want)
	}
}

// TestSQSStandingWarnings are shown until they are acknowledged.
func TestSQSStandingWarnings(t *testing.T) {
	b := setupSQS(t)
	few := strings.Replace(sqsOrders(""), "{ delays", "{ max_retries = 1, delays", 1)
	expect(t, b.commandLine(b.config(few)).plan(), "Every receive counts as a retry", `acknowledge_warnings = ["few_receives"]`)
	acknowledged := strings.Replace(few, "retry ", "acknowledge_warnings = [\"few_receives\"]\n  retry ", 1)
	expectNot(t, b.commandLine(b.config(acknowledged)).plan(), "Every receive counts")
}

// TestSQSShortDeadLife: a dead-letter queue that keeps messages for a shorter time than its topic is seen from its own plan
// too, and by an apply whose plan did not look.
func TestSQSShortDeadLife(t *testing.T) {
	b := setupSQS(t)
	config := b.config(sqsOrders(""))
	c := b.commandLine(config)
	c.apply()
	c.configure(strings.Replace(config, `"orders" {`, "\"orders\" {\n  retention = \"2d\"", 1))
	expect(t, c.plan("-target=redeliver_sqs_dead_letter_queue.orders"), "A dead letter may be deleted as it arrives", "keeps messages for 4d", "2d")
	c.configure(b.config(sqsOrders(`tags = { a = "b" }`)))
	b.set(b.name("-dlq"), map[string]string{"MessageRetentionPeriod": "86400"})
	expect(t, c.applyFails("-refresh=false"), "Could not apply the topic", "keeps messages for 1d and topic")
	if tags := b.tags(b.topic); len(tags) > 0 {
		t.Errorf("the topic was changed: %v", tags)
	}
	c.apply()
	c.apply("-destroy")
}

// TestSQSDeadLetterQueueMissing: nothing redrives to a queue that is not there.
func TestSQSDeadLetterQueueMissing(t *testing.T) {
	b := setupSQS(t)
	c := b.commandLine(b.config(`
resource "redeliver_sqs_topic" "orders" {
  name              = "TOPIC"
  dead_letter_queue = "TOPIC-dlq"
  retry             = { delays = ["5s"] }
}
`))
	expect(t, c.plan(), "Dead-letter queue", b.name("-dlq"), "does not exist", "Take the name from the resource of the queue")
	expect(t, c.applyFails(), "Could not apply the topic", b.name("-dlq"), "does not exist", "nothing was changed")
	if b.live(b.topic) != nil {
		t.Error("the topic was made")
	}
}

// TestSQSDeadLetterQueueRenamed: a dead-letter queue is replaced under its topic once the topic redrives elsewhere.
func TestSQSDeadLetterQueueRenamed(t *testing.T) {
	b := setupSQS(t)
	config := func(more string) string {
		return b.config(sqsDeadLetters(more) + `
resource "redeliver_sqs_topic" "orders" {
  name              = "TOPIC"
  dead_letter_queue = redeliver_sqs_dead_letter_queue.orders.name
  retry             = { delays = ["5s"] }
  delete_non_empty  = true
}
`)
	}
	c := b.commandLine(config(""))
	c.apply()
	c.configure(config(`name = "TOPIC-graveyard"`))
	expect(t, c.plan(), "is still redriven to", "create_before_destroy = true")
	expect(t, c.applyFails(), "is the dead-letter queue of", b.service.QueueARN(b.topic), "create_before_destroy = true")
	if b.live(b.name("-dlq")) == nil {
		t.Fatal("the queue is gone")
	}
	c.configure(config("name = \"TOPIC-graveyard\"\n  lifecycle { create_before_destroy = true }"))
	expect(t, c.apply(), "1 added, 1 changed, 1 destroyed")
	if target, _, _ := b.live(b.topic).RedriveTarget(); target != b.service.QueueARN(b.name("-graveyard")) || b.live(b.name("-dlq")) != nil {
		t.Errorf("the topic redrives to %s", target)
	}
	c.apply("-destroy")
}
