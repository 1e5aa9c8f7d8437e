package provider

import (
	"strings"
	"testing"
)

// sqsDeadLetters is a dead-letter queue that is kept while it holds messages; more goes into it.
func sqsDeadLetters(more string) string {
	return `
resource "redeliver_sqs_dead_letter_queue" "orders" {
  topic = "TOPIC"
` + more + `
}
`
}

// TestSQSMessagesAreKept: a queue that holds messages is neither destroyed nor replaced, unless that is asked for.
func TestSQSMessagesAreKept(t *testing.T) {
	b := setupSQS(t)
	c := b.commandLine(b.config(sqsDeadLetters("")))
	c.apply()
	dead := b.name("-dlq")
	b.send(dead)
	expect(t, c.plan("-destroy"), "Queue", dead, "holds messages", "It holds about 1 message (1 waiting)", "delete_non_empty = true")
	expect(t, c.applyFails("-destroy"), "Could not delete the dead-letter queue", dead, "holds about 1 message (1 waiting), and was not deleted", "after an apply of its own")
	if b.live(dead) == nil {
		t.Fatal("the queue is gone")
	}
	// A replacement would delete it too.
	other := b.config(sqsDeadLetters(`name = "TOPIC-graveyard"`))
	c.configure(other)
	expect(t, c.plan(), "must be replaced", "1 to add, 0 to change, 1 to destroy")
	expect(t, c.applyFails(), "holds about 1 message")
	// In the apply that replaces it, what the configuration says now counts.
	c.configure(strings.Replace(other, "topic ", "delete_non_empty = true\n  topic ", 1))
	expect(t, c.plan(), "delete_non_empty is true: they will be lost")
	expect(t, c.apply(), "1 added, 0 changed, 1 destroyed")
	if b.live(dead) != nil || b.live(b.name("-graveyard")) == nil {
		t.Error("the queue was not replaced")
	}
	c.apply("-destroy")
}

// TestSQSRedrivenTo: a dead-letter queue is not deleted while a queue redrives to it.
func TestSQSRedrivenTo(t *testing.T) {
	b := setupSQS(t)
	c := b.commandLine(b.config(sqsDeadLetters("")))
	c.apply()
	other := sqsOn(t, b.service)
	d := other.commandLine(other.config(`
resource "redeliver_sqs_topic" "orders" {
  name                 = "TOPIC"
  dead_letter_queue    = "` + b.name("-dlq") + `"
  acknowledge_warnings = ["foreign_dead_end"]
  retry                = { max_retries = 0 }
  delete_non_empty     = true
}
`))
	d.apply()
	expect(t, c.applyFails("-destroy"), "Could not delete the dead-letter queue", "is the dead-letter queue of", b.service.QueueARN(other.topic), "delete_non_empty = true")
	d.apply("-destroy")
	c.apply("-destroy")
}

// TestSQSReplaced: a topic is replaced under its own name, which SQS gives out again a minute after a deletion.
func TestSQSReplaced(t *testing.T) {
	b := setupSQS(t)
	c := b.commandLine(b.config(sqsOrders("")))
	c.apply()
	log := c.dir + "/log"
	c.env = append(c.env, "TF_LOG_PROVIDER=INFO", "TF_LOG_PATH="+log)
	expect(t, c.apply("-replace=redeliver_sqs_topic.orders"), "1 added, 0 changed, 1 destroyed")
	expect(t, readFile(t, log), "waiting until SQS lets the name of a deleted queue be used again")
	expect(t, c.plan(), "No changes")
	c.apply("-destroy")
}

// TestSQSExists: what is there is not taken over, unless that is asked for.
func TestSQSExists(t *testing.T) {
	b := setupSQS(t)
	c := b.commandLine(b.config(sqsOrders("")))
	c.apply()
	other := b.commandLine(b.config(sqsOrders(`visibility_timeout = "2m"`)))
	id := b.service.QueueARN(b.topic)
	expect(t, other.plan(), "exists already", "VisibilityTimeout", "to = redeliver_sqs_topic.NAME", id)
	expect(t, other.applyFails(), "Could not create", "exists already, so it was not created and nothing was changed", "import {", "adopt_existing = true")
	if got := b.live(b.topic)["VisibilityTimeout"]; got != "30" {
		t.Errorf("the queue was changed: %s", got)
	}
	other.configure(strings.ReplaceAll(b.config(sqsOrders(`visibility_timeout = "2m"`)), "delete_non_empty", "adopt_existing = true\n  delete_non_empty"))
	expect(t, other.plan(), "exists and is adopted", "VisibilityTimeout")
	expect(t, other.apply(), "3 added")
	if got := b.live(b.topic)["VisibilityTimeout"]; got != "120" {
		t.Errorf("the timeout is %s", got)
	}
	expect(t, other.plan(), "No changes")
	other.apply("-destroy")
	expect(t, c.plan(), "3 to add")
}
