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

// TestQueueIsMigratedAlsoWhileSomethingIsNotKnownYet: what is not known makes no replacement of a migration, with which
// delete_non_empty would lose the messages.
func TestQueueIsMigratedAlsoWhileSomethingIsNotKnownYet(t *testing.T) {
	b := setup(t)
	config := func(key, limit, stated, ttl string) string {
		return b.provider + pending("key", fmt.Sprintf("%q", key)) + pending("limit", limit) + pending("ttl", ttl) + fmt.Sprintf(`
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic              = "orders"
  delete_non_empty   = true
  on_argument_change = "migrate"
  extra_arguments    = { "x-message-ttl" = terraform_data.ttl.output }
}
resource "redeliver_rabbitmq_topic" "orders" {
  name               = "orders"
  dead_letter_queue  = redeliver_rabbitmq_dead_letter_queue.orders.name
  retry              = { delays = ["5s"] }
  bindings           = [{ exchange = "amq.topic", routing_key = "order.*" }, { exchange = "amq.direct", routing_key = terraform_data.key.output }]
  delete_non_empty   = true
  on_argument_change = "migrate"
  delivery_limit     = %s
}
`, stated)
	}
	c := b.commandLine(config("a", "1", "100", "7200000"))
	c.apply()
	b.send(0, 10)
	c.configure(config("b", "1", "200", "7200000"))
	expect(t, c.apply(), `Queue "orders" was migrated`)
	b.limited(200)
	c.configure(config("b", "300", "terraform_data.limit.output", "3600000"))
	out := c.apply()
	for _, queue := range []string{"orders", "orders-dlq"} {
		expect(t, out, fmt.Sprintf("Queue %q may have to be migrated", queue))
		expect(t, out, fmt.Sprintf("Queue %q was migrated", queue))
	}
	b.limited(300)
	expect(t, c.plan(), "No changes")
	b.holdsEach("orders", 10)
}
