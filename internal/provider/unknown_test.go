package provider

import (
	"fmt"
	"strings"
	"testing"
)

// pending is a value that is not known while an apply changes it.
func pending(name, value string) string {
	return fmt.Sprintf("resource \"terraform_data\" %q {\n  triggers_replace = %s\n  input            = %s\n}\n", name, value, value)
}

func TestRetriesThatAreNotKnownYetReplaceTheQueueWhoseLimitFollows(t *testing.T) {
	b := setup(t)
	config := func(retries, more string) string {
		return b.provider + pending("retries", retries) + losing(fmt.Sprintf(`
resource "redeliver_rabbitmq_topic" "orders" {
  name               = "orders"
  allow_message_loss = true
  retry              = { delays = ["5s"], max_retries = terraform_data.retries.output }
  %s
}
`, more))
	}
	c := b.commandLine(config("10", ""))
	c.apply()
	c.configure(config("60", ""))
	expect(t, c.apply(), "2 added, 0 changed, 2 destroyed")
	expect(t, c.plan(), "No changes")
	// Where the limit is stated nothing follows from it.
	c.configure(config("60", "delivery_limit = 100"))
	expect(t, c.apply(), "0 added, 1 changed, 0 destroyed")
	c.configure(config("70", "delivery_limit = 100"))
	expect(t, c.apply(), "1 added, 1 changed, 1 destroyed")
}

func TestDriftIsPlannedWhileABindingIsNotKnownYet(t *testing.T) {
	b := setup(t)
	config := func(key string) string {
		return b.provider + pending("key", fmt.Sprintf("%q", key)) +
			losing(strings.Replace(shovePair(`bindings = [{ exchange = "amq.topic", routing_key = terraform_data.key.output }]`), `["5s"]`, `["1s"], max_retries = 1000`, 1))
	}
	c := b.commandLine(config("a"))
	c.apply()
	b.remake("orders", map[string]any{"x-queue-type": "classic", "x-max-priority": 3})
	c.configure(config("b"))
	expect(t, c.plan(), `- "x-max-priority"`, "forces replacement")
	expect(t, c.apply(), "2 added, 0 changed, 2 destroyed")
	b.mustHave("queue orders", "queue orders-dlq", "binding amq.topic -> orders (b)")
	expect(t, c.plan(), "No changes")
}

func TestDifferenceIsNotPlannedWhileIgnoreArgumentsIsNotKnownYet(t *testing.T) {
	b := setup(t)
	config := func(ignored string) string {
		return b.provider + pending("ignored", fmt.Sprintf("[%q]", ignored)) + losing(`
resource "redeliver_rabbitmq_parked_queue" "orders" {
  topic            = "orders"
  ignore_arguments = terraform_data.ignored.output
}
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic            = "orders"
  delays           = ["5s"]
  ignore_arguments = terraform_data.ignored.output
}
`)
	}
	c := b.commandLine(config("a"))
	c.apply()
	b.remake("orders-parked", map[string]any{"x-queue-type": "quorum", "x-delivery-limit": 7})
	c.configure(config("x-delivery-limit"))
	expect(t, c.apply(), "1 added, 2 changed, 1 destroyed")
	// Nothing was deleted for what turns out to be accepted.
	if got := b.argumentsOf("orders-parked")["x-delivery-limit"]; got != float64(7) {
		t.Errorf("x-delivery-limit is %v", got)
	}
	expect(t, c.plan(), "No changes")
}
