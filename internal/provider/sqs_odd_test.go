package provider

import "testing"

// TestSQSOddValues: values that say nothing are as if they were not written, or are refused.
func TestSQSOddValues(t *testing.T) {
	b := setupSQS(t)
	c := b.commandLine(b.config(sqsDeadLetters("tags = { team = \"shop\", left_out = null }\n  delete_non_empty = true")))
	c.apply()
	expect(t, c.plan(), "No changes")
	c.configure(b.config(sqsDeadLetters(`name = ""`)))
	expect(t, c.planFails(), "string length must be at least 1")
	c.configure(b.config(sqsDeadLetters("")))
	c.apply("-destroy")
}

// TestSQSAdoptedTwice: two resources that both take over one queue would set each other's settings back for ever.
func TestSQSAdoptedTwice(t *testing.T) {
	b := setupSQS(t)
	c := b.commandLine(b.config(sqsDeadLetters("adopt_existing = true") + `
resource "redeliver_sqs_dead_letter_queue" "again" {
  topic          = "TOPIC"
  adopt_existing = true
  retention      = "1d"
}
`))
	expect(t, c.applyFails(), "made or adopted by this very apply for another resource", "two resources have one name")
	c.apply("-destroy")
}
