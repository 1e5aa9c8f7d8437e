package provider

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// pair is a topic with its dead-letter queue; more goes into the topic.
func pair(more string) string {
	return `
resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  retry             = { delays = ["5s"] }
  ` + more + `
}
`
}

// shovePair is the same on classic queues, whose counts are never late.
func shovePair(more string) string {
	return `
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic      = "orders"
  convention = "shove"
}
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  convention        = "shove"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  retry             = { delays = ["5s"] }
  ` + more + `
}
`
}

func TestDriftOfAWorkQueueShowsEveryArgumentAndIsRepaired(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + losing(pair(`bindings = [{ exchange = "amq.topic", routing_key = "order.*" }]`)))
	c.apply()
	want := b.argumentsOf("orders")
	b.remake("orders", map[string]any{
		"x-queue-type": "quorum", "x-delivery-limit": 20, "x-dead-letter-exchange": "orders-retry", "x-dead-letter-routing-key": "elsewhere",
		"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish", "x-made-up": "1",
	})
	out := c.plan()
	expect(t, out, "redeliver_rabbitmq_topic.orders must be replaced",
		`~ "x-dead-letter-routing-key" = "\"elsewhere\"" -> "\"orders-dlq\"" # forces replacement`,
		`~ "x-delivery-limit" = "20" -> "50" # forces replacement`,
		`- "x-made-up" = "\"1\"" -> null # forces replacement`,
		`~ bindings = [ + { + exchange = "amq.topic" + routing_key = "order.*" }`,
		"Plan: 1 to add, 0 to change, 1 to destroy",
		`Warning: Queue "orders" differs from the configuration`, "RabbitMQ cannot change a queue's arguments",
		`x-delivery-limit: want 50, live 20: the broker takes a message away after 20 redeliveries instead of 50`)
	c.apply()
	if got := b.argumentsOf("orders"); !reflect.DeepEqual(got, want) {
		t.Errorf("repaired to %v, want %v", got, want)
	}
	b.mustExist("bindings/%s/e/amq.topic/q/orders")
	expect(t, c.plan(), "No changes")
}

func TestDriftOfADeadLetterQueueIsRepaired(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + `resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }`)
	c.apply()
	b.remake("orders-dlq", map[string]any{"x-queue-type": "quorum", "x-message-ttl": 60000})
	out := c.apply()
	expect(t, out, `+ "x-delivery-limit" = "1000000" # forces replacement`, `- "x-message-ttl" = "60000" -> null # forces replacement`,
		`+ exchange = "orders-retry"`, "messages that wait here for 1m leave the queue")
	b.mustExist("bindings/%s/e/orders-retry/q/orders-dlq")
	expect(t, c.plan(), "No changes")
}

func TestDeadLetterQueueThatIsPointedAtIsReplacedOnlyWhenToldTo(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + pair(""))
	c.apply()
	b.remake("orders-dlq", map[string]any{"x-queue-type": "quorum"})
	b.request("POST", "bindings/%s/e/orders-retry/q/orders-dlq", map[string]any{"routing_key": "orders-dlq"})
	expect(t, c.plan(), `Warning: Queue "orders-dlq" is to be replaced and is still pointed at`, `dead-letter to "orders-dlq": ["orders"]`)
	out := c.applyFails()
	expect(t, out, "Could not delete the dead-letter queue", `Refusing to delete queue "orders-dlq"`, `"orders" dead-letters to it`)
	b.mustExist("queues/%s/orders-dlq")
	c.configure(b.provider + strings.Replace(pair(""), `{ topic = "orders" }`, "{\n  topic = \"orders\"\n  delete_non_empty = true\n}", 1))
	out = c.apply()
	expectNot(t, out, "still pointed at")
	expect(t, out, "1 added, 0 changed, 1 destroyed")
	expect(t, c.plan(), "No changes")
}

func TestDriftOfATierIsRepairedInPlace(t *testing.T) {
	b := setup(t)
	ladder := `
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic  = "orders"
  delays = ["5s", "10m", "1h"]
}
`
	c := b.commandLine(b.provider + ladder)
	c.apply()
	b.publish("orders-hold-3600s", 1)
	b.remake("orders-hold-5s", map[string]any{
		"x-queue-type": "quorum", "x-message-ttl": 9000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders",
		"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
	})
	b.remake("orders-hold-600s", map[string]any{"x-queue-type": "classic"})
	out := c.plan()
	expect(t, out, "redeliver_rabbitmq_hold_ladder.orders will be updated in-place", `~ "x-message-ttl" = "9000" -> "5000"`, `~ "x-queue-type" = "\"classic\"" -> "\"quorum\""`,
		"Plan: 0 to add, 1 to change, 0 to destroy")
	expect(t, out, `Warning: Hold queues of topic "orders" differ from the configuration`, "deleted, if they are empty, and made again in place",
		`"orders-hold-5s"`, "leave this queue after 9s instead of 5s", `"orders-hold-600s"`, "this is a classic queue and not a quorum one")
	c.apply()
	if got := b.argumentsOf("orders-hold-5s")["x-message-ttl"]; got != 5000.0 {
		t.Errorf("repaired to a delay of %v", got)
	}
	b.mustExist("bindings/%s/e/orders-retry/q/orders-hold-5s", "bindings/%s/e/orders-retry/q/orders-hold-600s")
	// The tier that did not differ kept its message.
	brokertest.WaitDepth(t, b.broker, b.vhost, "orders-hold-3600s", 1)
	expect(t, c.plan(), "No changes")
}

func TestTierThatIsMissingIsMadeAgain(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + losing(`
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic  = "orders"
  delays = ["5s", "10m"]
}
`))
	c.apply()
	b.request("DELETE", "queues/%s/orders-hold-5s", nil)
	expect(t, c.plan(), `+ "orders-hold-5s" = {`, `+ "x-message-ttl" = "5000"`, "Plan: 0 to add, 1 to change, 0 to destroy")
	c.apply()
	b.mustExist("queues/%s/orders-hold-5s", "bindings/%s/e/orders-retry/q/orders-hold-5s")
	expect(t, c.plan(), "No changes")

	// All of them: the ladder is gone.
	b.request("DELETE", "queues/%s/orders-hold-5s", nil)
	b.request("DELETE", "queues/%s/orders-hold-600s", nil)
	expect(t, c.plan(), "Plan: 1 to add, 0 to change, 0 to destroy")
}

func TestMissingRoutesAreShownAndRepaired(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + losing(orders(`bindings = [{ exchange = "amq.topic", routing_key = "order.*" }]`)))
	c.apply()
	unbind := func(exchange, queue, key string) {
		t.Helper()
		b.request("DELETE", fmt.Sprintf("bindings/%%s/e/%s/q/%s/%s", exchange, queue, key), nil)
	}
	unbind("amq.topic", "orders", "order.%%2A")
	unbind("orders-retry", "orders-dlq", "orders-dlq")
	unbind("orders-retry", "orders-parked", "orders-parked")
	unbind("orders-retry", "orders-hold-30s", "orders-hold-30s")
	out := c.plan()
	expect(t, out, "Plan: 0 to add, 4 to change, 0 to destroy")
	for _, key := range []string{"order.*", "orders-dlq", "orders-parked", "orders-hold-30s"} {
		expect(t, out, fmt.Sprintf("+ routing_key = %q", key))
	}
	c.apply()
	b.mustExist("bindings/%s/e/amq.topic/q/orders", "bindings/%s/e/orders-retry/q/orders-dlq", "bindings/%s/e/orders-retry/q/orders-parked",
		"bindings/%s/e/orders-retry/q/orders-hold-30s")

	b.request("DELETE", "exchanges/%s/orders-retry", nil)
	out = c.plan()
	expect(t, out, "redeliver_rabbitmq_topic.orders will be updated in-place", `~ exchanges = [ + "orders-retry", ]`)
	expect(t, out, "Plan: 0 to add, 4 to change, 0 to destroy")
	c.apply()
	b.mustExist("exchanges/%s/orders-retry", "bindings/%s/e/orders-retry/q/orders-dlq", "bindings/%s/e/orders-retry/q/orders-hold-120s")
	expect(t, c.plan(), "No changes")
}

func TestMissingWayHomeIsShownAndRepaired(t *testing.T) {
	b := setup(t)
	// A binding of the topic's own that repeats the convention's is still the convention's.
	c := b.commandLine(b.provider + losing(`
resource "redeliver_rabbitmq_topic" "orders" {
  name               = "orders"
  convention         = "acemq"
  allow_message_loss = true
  retry              = { delays = ["5s"] }
  bindings           = [{ exchange = "acemq.retry", routing_key = "orders" }]
}
`))
	c.apply()
	expect(t, c.plan(), "No changes")
	b.request("DELETE", "bindings/%s/e/acemq.retry/q/orders/orders", nil)
	expect(t, c.apply(), `~ home_bindings = [ + { + exchange = "acemq.retry" + routing_key = "orders" }`, "0 added, 1 changed, 0 destroyed")
	b.mustExist("bindings/%s/e/acemq.retry/q/orders")
	expect(t, c.plan(), "No changes")
}

func TestExchangeOfAnotherKindIsShown(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + losing(`resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }`))
	c.apply()
	b.request("DELETE", "exchanges/%s/orders-retry", nil)
	b.request("PUT", "exchanges/%s/orders-retry", map[string]any{"type": "fanout", "durable": true})
	expect(t, c.plan(), `~ exchanges = [ - "orders-retry (fanout)", + "orders-retry", ]`)
	expect(t, c.applyFails(), `exists as orders-retry (fanout) and the topology needs a durable direct exchange`, "delete the exchange if nothing else uses it")
	b.request("DELETE", "exchanges/%s/orders-retry", nil)
	c.apply()
	expect(t, c.plan(), "No changes")
}

func TestQueueThatIsDeletedByHandIsPlannedAgain(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + losing(pair("")))
	c.apply()
	b.request("DELETE", "queues/%s/orders", nil)
	b.request("DELETE", "queues/%s/orders-dlq", nil)
	expect(t, c.apply(), "Plan: 2 to add, 0 to change, 0 to destroy", "2 added")
	b.mustExist("queues/%s/orders", "queues/%s/orders-dlq")
	expect(t, c.plan(), "No changes")
}

func TestIgnoredArgumentsAreLeftAsTheyAre(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + losing(shovePair("")))
	c.apply()
	b.remake("orders", map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders-dlq", "x-max-priority": 5, "x-made-up": true})
	expect(t, c.plan(), `- "x-made-up" = "true" -> null # forces replacement`, `- "x-max-priority" = "5" -> null # forces replacement`)
	c.configure(b.provider + losing(shovePair(`ignore_arguments = ["x-made-up", "x-max-priority"]`)))
	expect(t, c.apply(), "+ ignore_arguments", "0 added, 1 changed, 0 destroyed")
	expect(t, c.plan(), "No changes")
	if got := b.argumentsOf("orders")["x-max-priority"]; got != 5.0 {
		t.Errorf("the queue was touched: x-max-priority is %v", got)
	}
	// Without it they are drift again.
	c.configure(b.provider + losing(shovePair(`ignore_arguments = ["x-made-up"]`)))
	expect(t, c.apply(), `- "x-max-priority" = "5" -> null # forces replacement`, "1 added, 0 changed, 1 destroyed")
	expect(t, c.plan(), "No changes")
}

func TestClassicQueueWithoutItsTypeWrittenOutIsNoDrift(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + losing(shovePair("")))
	c.apply()
	b.remake("orders", map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders-dlq"})
	b.remake("orders-dlq", map[string]any{"x-queue-mode": "lazy"})
	expect(t, c.plan("-detailed-exitcode"), "No changes")
}

func TestClassicQueueStaysClassicWhereTheVHostsDefaultIsQuorum(t *testing.T) {
	b := setup(t)
	b.request("PUT", "vhosts/%s", map[string]any{"default_queue_type": "quorum"})
	c := b.commandLine(b.provider + losing(shovePair("")))
	c.apply()
	expect(t, c.plan(), "No changes")
	if got := b.argumentsOf("orders")["x-queue-type"]; got != "classic" {
		t.Errorf("x-queue-type is %v", got)
	}
	// By hand the default does its work, where the broker has one, and that is drift.
	if !brokertest.HasVersion(b.broker, "4.0") {
		return
	}
	b.remake("orders", map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders-dlq"})
	expect(t, c.plan(), `~ "x-queue-type" = "\"quorum\"" -> "\"classic\"" # forces replacement`)
}

func TestExtraArgumentsKeepTheirTypes(t *testing.T) {
	b := setup(t)
	config := func(length string) string {
		return b.provider + losing(fmt.Sprintf(`
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic           = "orders"
  convention      = "shove"
  extra_arguments = {
    number = %s, text = "5000", yes = true, no = false, fraction = 1.5, list = [1, "1", [true]], map = { a = { b = 2 } }
    tolist = tolist(["x"]), tomap = tomap({ y = 1 })
  }
}
`, length))
	}
	c := b.commandLine(config("5000"))
	expectNot(t, c.plan(), "known after apply")
	c.apply()
	want := map[string]any{
		"x-queue-type": "classic", "number": 5000.0, "text": "5000", "yes": true, "no": false, "fraction": 1.5,
		"list": []any{1.0, "1", []any{true}}, "map": map[string]any{"a": map[string]any{"b": 2.0}}, "tolist": []any{"x"}, "tomap": map[string]any{"y": 1.0},
	}
	if got := b.argumentsOf("orders-dlq"); !reflect.DeepEqual(got, want) {
		t.Errorf("arguments %v, want %v", got, want)
	}
	expect(t, c.plan(), "No changes")
	// The text is not the number.
	c.configure(config(`"5000"`))
	expect(t, c.apply(), `~ "number" = "5000" -> "\"5000\"" # forces replacement`)
	if got := b.argumentsOf("orders-dlq")["number"]; got != "5000" {
		t.Errorf("number is %v (%T)", got, got)
	}
	// Removing it unsets it.
	c.configure(b.provider + losing(`
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic      = "orders"
  convention = "shove"
}
`))
	expect(t, c.apply(), `- "text" = "\"5000\"" -> null # forces replacement`)
	expect(t, c.plan(), "No changes")
}

func TestDriftOfAnExchange(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + `
resource "redeliver_rabbitmq_exchange" "shop" {
  name            = "shop"
  type            = "topic"
  extra_arguments = { "alternate-exchange" = "amq.fanout" }
}
`)
	c.apply()
	b.request("DELETE", "exchanges/%s/shop", nil)
	b.request("PUT", "exchanges/%s/shop", map[string]any{"type": "direct", "durable": false, "arguments": map[string]any{"x-made-up": 1}})
	expect(t, c.apply(), `+ "alternate-exchange" = "\"amq.fanout\"" # forces replacement`, `- "x-made-up" = "1" -> null # forces replacement`,
		`~ durable = false -> true # forces replacement`, `~ type = "direct" -> "topic" # forces replacement`, "1 added, 0 changed, 1 destroyed")
	expect(t, c.plan(), "No changes")
	b.request("DELETE", "exchanges/%s/shop", nil)
	expect(t, c.plan(), "Plan: 1 to add, 0 to change, 0 to destroy")
}

func TestBindingThatIsRemovedByHandIsPlannedAgain(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + shop + `
resource "redeliver_rabbitmq_binding" "shop" {
  source           = redeliver_rabbitmq_exchange.shop.name
  destination      = "amq.headers"
  destination_type = "exchange"
  routing_key      = "a"
  arguments        = { n = 5000 }
}
`)
	c.apply()
	b.request("DELETE", "bindings/%s/e/shop/e/amq.headers/a~"+b.hashOf("shop", "amq.headers"), nil)
	expect(t, c.apply(), "redeliver_rabbitmq_binding.shop will be created", "1 added, 0 changed, 0 destroyed")
	// One with an argument that only looks the same is another one.
	b.request("DELETE", "bindings/%s/e/shop/e/amq.headers/a~"+b.hashOf("shop", "amq.headers"), nil)
	b.request("POST", "bindings/%s/e/shop/e/amq.headers", map[string]any{"routing_key": "a", "arguments": map[string]any{"n": "5000"}})
	expect(t, c.plan(), "redeliver_rabbitmq_binding.shop will be created")
	// With its exchange it is gone too.
	b.request("DELETE", "exchanges/%s/shop", nil)
	expect(t, c.plan(), "Plan: 2 to add")
}

// hashOf is the part of a binding's address that stands for its arguments.
func (b *bundle) hashOf(source, destination string) string {
	b.t.Helper()
	_, answer := brokertest.Request(b.t, b.broker, http.MethodGet, b.path("bindings/%s/e/"+source+"/e/"+destination), nil)
	_, rest, _ := strings.Cut(string(answer), `"properties_key":"a~`)
	hash, _, _ := strings.Cut(rest, `"`)
	return hash
}
