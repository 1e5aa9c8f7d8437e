package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

func TestCreateOverWhatExistsIsRefused(t *testing.T) {
	b := setup(t)
	b.request("PUT", "queues/%s/orders", map[string]any{"durable": true, "arguments": map[string]any{
		"x-queue-type": "classic", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders-dlq",
	}})
	b.request("PUT", "queues/%s/orders-hold-30s", map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "classic", "x-message-ttl": 31000}})
	b.request("PUT", "exchanges/%s/shop", map[string]any{"type": "direct", "durable": true})
	b.request("POST", "bindings/%s/e/amq.topic/q/orders", map[string]any{"routing_key": "a"})
	c := b.commandLine(b.provider + strings.ReplaceAll(shovePair(""), "redeliver_rabbitmq_dead_letter_queue.orders.name", `"orders-dlq"`) + shop + `
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic      = "orders"
  convention = "shove"
  delays     = ["5s", "30s"]
}
resource "redeliver_rabbitmq_binding" "orders" {
  source      = "amq.topic"
  destination = "orders"
  routing_key = "a"
}
`)
	out := c.applyFails()
	// Equal: the import command, and what may have caused it.
	expect(t, out, "Could not create the topic", `Queue "orders" in vhost`, "exists already, so it was not created and nothing was changed", "Its arguments are those of the configuration",
		"made by hand, by an application, or by an earlier apply that was killed; or create_before_destroy, which a resource also inherits", "import { to = redeliver_rabbitmq_topic.NAME",
		fmt.Sprintf(`id = "%s/orders?convention=shove"`, b.vhost), "or set adopt_existing = true")
	// Different: what differs as well, and no tier is made.
	expect(t, out, "Could not create the hold ladder", `Queue "orders-hold-30s"`, "exists already", "Its arguments differ from the configuration",
		"x-dead-letter-routing-key: want \"orders\", live absent", "x-message-ttl: want 30000, live 31000", "import { to = redeliver_rabbitmq_hold_ladder.NAME")
	b.mustBeGone("queues/%s/orders-hold-5s")
	expect(t, out, "Could not create the exchange", `Exchange "shop"`, "exists already as direct, durable", "import { to = redeliver_rabbitmq_exchange.NAME")
	expect(t, out, "Could not create the binding", "exists already", "import { to = redeliver_rabbitmq_binding.NAME",
		fmt.Sprintf(`id = "%s/amq.topic/queue/orders?routing_key=a"`, b.vhost))
	if state := c.state(); len(state) != 1 {
		t.Errorf("the state has %v, want the dead-letter queue alone", state)
	}
	expectNot(t, out, "This very apply made it")
}

func TestTwoResourcesWithOneNameInOneApply(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + `
resource "redeliver_rabbitmq_dead_letter_queue" "one" { topic = "orders" }
resource "redeliver_rabbitmq_dead_letter_queue" "two" { topic = "orders" }
`)
	out := c.applyFails()
	expect(t, out, "Could not create the dead-letter queue", "This very apply made it for another resource: two resources have one name")
	if n := strings.Count(out, "Error:"); n != 1 {
		t.Errorf("%d errors, want one:\n%s", n, out)
	}
	b.mustHave("queue orders-dlq", "exchange orders-retry", "binding orders-retry -> orders-dlq (orders-dlq)")
}

func TestReplaceUnderAnInheritedCreateBeforeDestroy(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + shovePair("lifecycle { create_before_destroy = true }"))
	c.apply()
	// The dead-letter queue inherits it from the topic that depends on it.
	out := c.applyFails("-replace=redeliver_rabbitmq_dead_letter_queue.orders")
	expect(t, out, "+/- create replacement and then destroy", `Queue "orders-dlq"`, "exists already, so it was not created and nothing was changed",
		"create_before_destroy, which a resource also inherits from one that depends on it")
	b.mustHave("queue orders", "queue orders-dlq")
	expect(t, c.plan(), "No changes")
	// Not inherited, the queue is replaced.
	c.configure(b.provider + shovePair(""))
	c.apply()
	out = c.apply("-replace=redeliver_rabbitmq_topic.orders")
	expect(t, out, "1 added, 0 changed, 1 destroyed")
}

func TestAdoptExistingTakesOverWhatIsEqual(t *testing.T) {
	b := setup(t)
	b.request("PUT", "queues/%s/orders-hold-30s", map[string]any{"durable": true, "arguments": map[string]any{
		"x-message-ttl": 30000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders", "x-queue-mode": "lazy", "x-made-up": 1,
	}})
	b.publish("orders-hold-30s", 1)
	b.request("PUT", "exchanges/%s/shop", map[string]any{"type": "topic", "durable": true})
	b.request("POST", "bindings/%s/e/shop/q/orders-hold-30s", map[string]any{"routing_key": "a"})
	config := func(ignore string) string {
		return b.provider + `
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic          = "orders"
  convention     = "shove"
  delays         = ["5s", "30s"]
  adopt_existing = true
  ` + ignore + `
}
resource "redeliver_rabbitmq_exchange" "shop" {
  name           = "shop"
  type           = "topic"
  adopt_existing = true
}
resource "redeliver_rabbitmq_binding" "shop" {
  source         = redeliver_rabbitmq_exchange.shop.name
  destination    = "orders-hold-30s"
  routing_key    = "a"
  adopt_existing = true
}
`
	}
	c := b.commandLine(config(""))
	out := c.applyFails()
	expect(t, out, `Queue "orders-hold-30s"`, "exists and cannot be adopted", "x-made-up: want absent, live 1", "Accept a difference with ignore_arguments")
	expectNot(t, out, "x-queue-mode")
	b.mustBeGone("queues/%s/orders-hold-5s")
	c.configure(config(`ignore_arguments = ["x-made-up"]`))
	c.apply()
	expect(t, c.plan(), "No changes")
	if n := brokertest.Depth(t, b.broker, b.vhost, "orders-hold-30s"); n != 1 {
		t.Errorf("the adopted queue holds %d messages, want 1", n)
	}
	b.mustExist("queues/%s/orders-hold-5s")
}

func TestAdoptExistingRefusesAnExchangeThatDiffers(t *testing.T) {
	b := setup(t)
	b.request("PUT", "exchanges/%s/shop", map[string]any{"type": "topic", "durable": true, "auto_delete": true, "arguments": map[string]any{"a": "1"}})
	c := b.commandLine(b.provider + `
resource "redeliver_rabbitmq_exchange" "shop" {
  name            = "shop"
  type            = "topic"
  internal        = true
  extra_arguments = { a = 1 }
  adopt_existing  = true
}
`)
	expect(t, c.applyFails(), `it is topic, durable, auto-delete, with {"a":"1"} and the configuration says topic, durable, internal, with {"a":1}`)
}

// TestCreateThatFailsRemovesWhatItMade fails on a binding, the last thing that is made.
func TestCreateThatFailsRemovesWhatItMade(t *testing.T) {
	b := setup(t)
	config := func(more string) string {
		return b.provider + `
resource "redeliver_rabbitmq_topic" "orders" {
  name               = "orders"
  allow_message_loss = true
  convention         = "acemq"
  retry              = { delays = ["5s"] }
  bindings           = [{ exchange = "amq.topic", routing_key = "a" }, { exchange = "nowhere", routing_key = "a" }]
  ` + more + `
}
`
	}
	c := b.commandLine(config(""))
	out := c.applyFails()
	expect(t, out, "Could not create the topic", `no exchange 'nowhere'`)
	expectNot(t, out, "was not removed again")
	// An exchange that other topics share stays.
	b.mustHave("exchange acemq.retry")
	if state := c.state(); len(state) > 0 {
		t.Errorf("the state has %v", state)
	}
	// Once the exchange is there the same apply goes through.
	b.request("PUT", "exchanges/%s/nowhere", map[string]any{"type": "topic", "durable": true})
	c.apply()
	expect(t, c.plan(), "No changes")
}

func TestCreateThatFailsKeepsWhatHoldsMessages(t *testing.T) {
	b := setup(t)
	p := newProxy(t, b.broker, "")
	b.request("PUT", "queues/%s/orders-hold-300s", map[string]any{"durable": true, "arguments": map[string]any{
		"x-message-ttl": 300000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders",
	}})
	b.publish("orders-hold-300s", 1)
	// A message arrives between the second queue and the third, which cannot be made.
	p.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/orders-hold-900s") {
			return false
		}
		b.publish("orders-hold-600s", 1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"not_authorised","reason":"Access refused."}`))
		return true
	})
	c := b.commandLine(b.blockAt(p.URL, b.broker.Username(), b.broker.Password(), "max_retries = 0") + `
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic          = "orders"
  convention     = "shove"
  delays         = ["5m", "10m", "15m"]
  adopt_existing = true
}
`)
	out := c.applyFails()
	expect(t, out, "Could not create the hold ladder", "lacks a permission", "what this apply had made was not removed again", `queue "orders-hold-600s" holds 1 message`)
	b.mustHave("queue orders-hold-300s", "queue orders-hold-600s")
	if r, ok := c.state()["redeliver_rabbitmq_hold_ladder.orders"]; !ok || !r.Tainted {
		t.Errorf("the ladder is not in state, or not tainted: %v", c.state())
	}
	p.answerNoMore()
	// It is replaced as soon as nothing is lost, and not before.
	expect(t, c.applyFails(), "is tainted, so", "must be replaced", "Could not delete the hold ladder", `"orders-hold-600s" holds 1 message`)
	b.mustHave("queue orders-hold-300s", "queue orders-hold-600s")
	brokertest.Drain(t, b.broker, b.vhost, "orders-hold-600s")
	expect(t, c.apply(), "1 added, 0 changed, 1 destroyed")
	b.mustHave("queue orders-hold-300s", "queue orders-hold-600s", "queue orders-hold-900s")
	// The queue that was adopted was never touched.
	if n := brokertest.Depth(t, b.broker, b.vhost, "orders-hold-300s"); n != 1 {
		t.Errorf("the adopted queue holds %d messages, want 1", n)
	}
	expect(t, c.plan(), "No changes")
}

func TestCreateWhoseAnswerIsLostLeavesNothing(t *testing.T) {
	b := setup(t)
	p := newProxy(t, b.broker, "", func(s *httptest.Server) { s.Config.ErrorLog = quietLog() })
	p.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/orders-hold-30s") {
			b.request("PUT", "queues/%s/orders-hold-30s", map[string]any{"durable": true}) // made, and nobody hears of it
			panic(http.ErrAbortHandler)
		}
		return false
	})
	c := b.commandLine(b.blockAt(p.URL, b.broker.Username(), b.broker.Password(), "max_retries = 0") + `
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic      = "orders"
  convention = "shove"
  delays     = ["5s", "30s"]
}
`)
	expect(t, c.applyFails(), "Could not create the hold ladder", `Cannot create queue "orders-hold-30s"`, "no endpoint answers", "rabbitmq.endpoints")
	b.mustHave()
	if state := c.state(); len(state) > 0 {
		t.Errorf("the state has %v", state)
	}
}

func TestTaintedResourceIsReplacedWithDeleteNonEmptyOfTheSameApply(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + shovePair(""))
	c.apply()
	b.publish("orders", 2)
	c.must("taint", "redeliver_rabbitmq_topic.orders")
	expect(t, c.applyFails(), `queue "orders" holds 2 messages`)
	c.configure(b.provider + shovePair("delete_non_empty = true"))
	c.apply()
	if n := brokertest.Depth(t, b.broker, b.vhost, "orders"); n != 0 {
		t.Errorf("the new queue holds %d messages", n)
	}
}

func TestCreateThatFailsNeverDeletesWhatItAdopted(t *testing.T) {
	b := setup(t)
	b.request("PUT", "queues/%s/orders", map[string]any{"durable": true})
	b.request("POST", "bindings/%s/e/amq.topic/q/orders", map[string]any{"routing_key": "mine"})
	c := b.commandLine(b.provider + `
resource "redeliver_rabbitmq_topic" "orders" {
  name               = "orders"
  allow_message_loss = true
  convention         = "shove"
  retry              = { delays = ["5s"] }
  bindings           = [{ exchange = "amq.topic", routing_key = "mine" }, { exchange = "amq.topic", routing_key = "new" }, { exchange = "nowhere", routing_key = "a" }]
  adopt_existing     = true
}
`)
	expect(t, c.applyFails(), `no exchange 'nowhere'`)
	b.mustHave("queue orders", "binding amq.topic -> orders (mine)")
}

// TestCreateWithoutPermissionOnOneQueue removes the others again, and makes all of them once it may.
func TestCreateWithoutPermissionOnOneQueue(t *testing.T) {
	b := setup(t)
	user, password := brokertest.User(t, b.broker, b.vhost, "^orders(-retry|-hold-5s|-hold-30s)$", ".*", ".*", "management")
	ladder := `
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic  = "orders"
  delays = ["5s", "30s", "2m"]
}
`
	c := b.commandLine(b.blockAt(b.broker.ManagementURL(), user, password, fmt.Sprintf("amqp_endpoints = [%q]", b.amqpEndpoint())) + ladder)
	out := c.applyFails()
	expect(t, out, `Cannot create queue "orders-hold-120s"`, fmt.Sprintf("user %q lacks a permission", user), "creating a queue takes configure on it")
	b.mustHave()
	if state := c.state(); len(state) > 0 {
		t.Errorf("the state has %v", state)
	}
	c.configure(b.provider + losing(ladder))
	c.apply()
	b.mustExist("queues/%s/orders-hold-5s", "queues/%s/orders-hold-30s", "queues/%s/orders-hold-120s")
}

func TestDeletingWhatIsGoneSucceeds(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + everything)
	c.apply()
	for _, queue := range []string{"orders", "orders-dlq", "orders-parked", "orders-hold-5s", "orders-hold-60s"} {
		b.request("DELETE", "queues/%s/"+queue, nil)
	}
	b.request("DELETE", "exchanges/%s/shop", nil)
	b.request("DELETE", "exchanges/%s/orders-retry", nil)
	expect(t, c.apply("-destroy", "-refresh=false"), "0 added, 0 changed, 6 destroyed")
}

func TestTopicWhoseDeadEndItsRouteDoesNotReachIsRefused(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + losing(`
resource "redeliver_rabbitmq_dead_letter_queue" "shared" {
  topic = "invoices"
  name  = "all-failures"
}
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.shared.name
  retry             = { delays = ["5s"] }
}
`))
	expect(t, c.applyFails(), `Queue "all-failures" in vhost`, `not bound to exchange "orders-retry"`, "would be stranded; nothing was changed", "redeliver_rabbitmq_binding")
	b.mustBeGone("queues/%s/orders", "exchanges/%s/orders-retry")
	// Bound to this topic's route as well, it is reached.
	b.request("PUT", "exchanges/%s/orders-retry", map[string]any{"type": "direct", "durable": true})
	b.request("POST", "bindings/%s/e/orders-retry/q/all-failures", map[string]any{"routing_key": "all-failures"})
	expect(t, c.apply(), "1 added, 0 changed, 0 destroyed")
}
