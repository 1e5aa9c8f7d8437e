package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// hold takes n messages out of a queue and acknowledges none of them.
func (b *bundle) hold(queue string, n int) *amqp091.Channel {
	b.t.Helper()
	channel := brokertest.Channel(b.t, b.broker, b.vhost)
	deliveries, err := channel.ConsumeWithContext(b.t.Context(), queue, "", false, false, false, false, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for range n {
		<-deliveries
	}
	return channel
}

// TestQueueWithMessagesIsNotDestroyed is about messages that are ready, with exact depths and with statistics alone.
func TestQueueWithMessagesIsNotDestroyed(t *testing.T) {
	for name, provider := range map[string]func(*bundle) string{
		"with AMQP endpoints":    func(b *bundle) string { return b.provider },
		"without AMQP endpoints": func(b *bundle) string { return b.block("") },
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			config := provider(b) + orders(`bindings = [{ exchange = "amq.topic", routing_key = "order.*" }]`)
			c := b.commandLine(config)
			c.apply()
			before := b.objects()
			b.publish("orders", 3)
			b.publish("orders-hold-120s", 1)
			b.waitCounted("orders", 3)
			b.waitCounted("orders-hold-120s", 1)
			out := c.plan("-destroy")
			expect(t, out, `Warning: Queue "orders" holds messages`, `queue "orders" holds 3 messages (3 ready, 0 unacknowledged)`,
				`queue "orders-hold-120s" holds 1 message`, "This is to be destroyed. Apply will refuse while they are there")
			expect(t, out, `Warning: Queue "orders-hold-120s" holds messages`)
			out = c.applyFails("-destroy")
			expect(t, out, "Could not delete the topic", "Refusing to delete", `queue "orders" holds 3 messages (3 ready, 0 unacknowledged)`, "delete_non_empty = true")
			b.mustHave(before...)

			// The hold queue's message would come home to nothing.
			brokertest.Drain(t, b.broker, b.vhost, "orders")
			expect(t, c.applyFails("-destroy", "-target=redeliver_rabbitmq_topic.orders"), "Refusing to delete", `queue "orders-hold-120s" holds 1 message`)
			b.mustHave(before...)

			brokertest.Drain(t, b.broker, b.vhost, "orders-hold-120s")
			c.apply("-destroy")
			b.mustHave()
		})
	}
}

func TestQueueWithUnacknowledgedMessagesIsNotDestroyed(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + pair(`bindings = [{ exchange = "amq.topic", routing_key = "order.*" }]`))
	c.apply()
	before := b.objects()
	b.publish("orders", 2)
	channel := b.hold("orders", 2)
	b.waitCounted("orders", 2)
	expect(t, c.plan("-destroy"), `queue "orders" holds 2 messages (0 ready, 2 unacknowledged)`)
	expect(t, c.applyFails("-destroy"), "Could not delete the topic", `queue "orders" holds 2 messages`)
	b.mustHave(before...)
	if err := channel.Ack(2, true); err != nil {
		t.Fatal(err)
	}
	// A consumer that holds nothing is no reason to refuse.
	c.apply("-destroy")
	b.mustHave()
}

// TestQueueWhoseMessagesWaitToBeDeadLetteredIsNotDestroyed is about messages that are neither ready nor unacknowledged.
func TestQueueWhoseMessagesWaitToBeDeadLetteredIsNotDestroyed(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + pair(""))
	c.apply()
	b.request("DELETE", "bindings/%s/e/orders-retry/q/orders-dlq/orders-dlq", nil)
	b.publish("orders", 1)
	channel := b.hold("orders", 1)
	if err := channel.Reject(1, false); err != nil {
		t.Fatal(err)
	}
	if err := channel.Close(); err != nil {
		t.Fatal(err)
	}
	// What is neither ready nor unacknowledged shows in the statistics alone: see the race that rabbitmqadmin documents.
	b.waitCounted("orders", 1)
	const waiting = `queue "orders" holds 1 message (0 ready, 0 unacknowledged, 1 waiting to be dead-lettered`
	expect(t, c.plan("-destroy"), `Warning: Queue "orders" holds messages`, waiting, "This is to be destroyed")
	c.configure(b.provider + pair("delivery_limit = 60"))
	expect(t, c.plan("-refresh=false"), `Warning: Queue "orders" holds messages`, waiting, "This is to be replaced")
	c.configure(b.provider + pair(""))
	out := c.applyFails("-destroy", "-refresh=false")
	expect(t, out, "Could not delete the topic", waiting)
	b.mustExist("queues/%s/orders")
}

// TestPlanSaysWhatItCouldNotCount: counts that a broker does not have, and a list of them that fails.
func TestPlanSaysWhatItCouldNotCount(t *testing.T) {
	b := setup(t)
	p := newProxy(t, b.broker, "")
	c := b.commandLine(b.blockAt(p.URL, b.broker.Username(), b.broker.Password(), "max_retries = 0") + losing(pair("")))
	c.apply()
	counts := func(status int, body string) {
		p.answer(func(w http.ResponseWriter, r *http.Request) bool {
			if !r.URL.Query().Has("enable_queue_totals") {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, body)
			return true
		})
	}
	none := `[{"name":"orders","type":"quorum","state":"down"},{"name":"orders-dlq","type":"quorum","state":"running"}]`
	counts(http.StatusOK, none)
	out := c.plan("-destroy")
	for _, queue := range []string{"orders", "orders-dlq"} {
		expect(t, out, fmt.Sprintf(`Warning: Queue %q may hold messages`, queue), fmt.Sprintf(`queue %q may hold messages (no count): the broker has no counts`, queue), "This is to be destroyed")
	}
	expectNot(t, out, "was not checked")
	counts(http.StatusInternalServerError, `{"error":"Internal Server Error","reason":"out of sorts"}`)
	expect(t, c.plan("-destroy"), "Warning: The plan was not checked against the broker", "out of sorts", "how many messages are in queues that it destroys or replaces")
	p.answerNoMore()
	expectNot(t, c.apply("-destroy"), "was not checked")
}

func TestLadderWithMessagesInOneTierIsNotDestroyed(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + `
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic  = "orders"
  delays = ["5s", "30s", "1h"]
}
`)
	c.apply()
	before := b.objects()
	b.publish("orders-hold-3600s", 2)
	out := c.applyFails("-destroy")
	_, refusal, _ := strings.Cut(out, "Error: Could not delete the hold ladder")
	expect(t, refusal, `queue "orders-hold-3600s" holds 2 messages`)
	expectNot(t, refusal, "orders-hold-5s")
	b.mustHave(before...)
}

func TestDeadLetterQueueIsNotDestroyedWhileAQueuePointsAtIt(t *testing.T) {
	b := setup(t)
	topic := `
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = "orders-dlq"
  retry             = { delays = ["5s"] }
}
`
	c := b.commandLine(b.provider + `resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }` + topic)
	c.apply()
	before := b.objects()
	c.configure(b.provider + topic)
	expect(t, c.applyFails(), "Could not delete the dead-letter queue", `Refusing to delete queue "orders-dlq"`, `queue "orders" dead-letters to it`, "delete or change that queue first")
	b.mustHave(before...)
}

func TestQueueWithMessagesIsReplacedOnlyWhenToldTo(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + pair(""))
	c.apply()
	before := b.objects()
	b.publish("orders", 4)
	b.waitCounted("orders", 4)
	c.configure(b.provider + pair("delivery_limit = 60"))
	out := c.plan()
	expect(t, out, `~ "x-delivery-limit" = "50" -> "60" # forces replacement`)
	expect(t, out, `Warning: Queue "orders" holds messages`, "holds 4 messages", "This is to be replaced. Apply will refuse")
	expect(t, c.applyFails(), "Could not delete the topic", "holds 4 messages")
	b.mustHave(before...)
	if n := brokertest.Depth(t, b.broker, b.vhost, "orders"); n != 4 {
		t.Errorf("%d messages are left, want 4", n)
	}
	// Said in the configuration, the same apply goes through; a refused one did not make that stick.
	c.configure(b.provider + pair("delivery_limit = 60\ndelete_non_empty = true"))
	expect(t, c.plan(), "holds 4 messages", "delete_non_empty is true: they will be lost")
	expect(t, c.apply(), "1 added, 0 changed, 1 destroyed")
	b.mustHave(before...)
	if n := brokertest.Depth(t, b.broker, b.vhost, "orders"); n != 0 {
		t.Errorf("%d messages are in the new queue", n)
	}
	expect(t, c.plan(), "No changes")
}

func TestDeleteNonEmptyNeedsAnApplyBeforeADestroy(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + shovePair(""))
	c.apply()
	b.publish("orders", 1)
	b.publish("orders-dlq", 1)
	losingConfig := b.provider + losing(shovePair(""))
	c.configure(losingConfig)
	// The state does not know of it yet.
	expect(t, c.applyFails("-destroy"), `queue "orders" holds 1 message`, "delete_non_empty = true lets it through", "where it is destroyed, after an apply of its own")
	c.apply()
	expect(t, c.apply("-destroy"), "delete_non_empty is true: they will be lost", "2 destroyed")
	b.mustHave()
}

func TestReplacedQueueGetsItsBindingsBack(t *testing.T) {
	b := setup(t)
	config := func(more string) string {
		return b.provider + shop + shovePair(more) + `
resource "redeliver_rabbitmq_binding" "orders" {
  source      = "amq.headers"
  destination = redeliver_rabbitmq_topic.orders.name
  arguments   = { x-match = "all", n = 5 }
}
`
	}
	c := b.commandLine(config(`bindings = [{ exchange = "amq.topic", routing_key = "kept" }, { exchange = "amq.topic", routing_key = "dropped" }]`))
	c.apply()
	b.request("POST", "bindings/%s/e/shop/q/orders", map[string]any{"routing_key": "foreign", "arguments": map[string]any{"a": "1"}})
	// Those of others, and those that the configuration still has.
	c.configure(config("max_priority = 5\n" + `bindings = [{ exchange = "amq.topic", routing_key = "kept" }, { exchange = "amq.topic", routing_key = "new" }]`))
	expect(t, c.apply(), "1 added, 0 changed, 1 destroyed")
	b.mustHave("queue orders", "queue orders-dlq", "exchange shop", "binding amq.topic -> orders (kept)", "binding amq.topic -> orders (new)",
		"binding shop -> orders (foreign)", "binding amq.headers -> orders ()")
	expect(t, c.plan(), "No changes")
}

func TestReplacedQueueWhoseExchangeIsGoneIsAWarning(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + shovePair(""))
	c.apply()
	// It goes with its last binding, which goes with the queue.
	b.request("PUT", "exchanges/%s/fleeting", map[string]any{"type": "topic", "durable": true, "auto_delete": true})
	b.request("POST", "bindings/%s/e/fleeting/q/orders", map[string]any{"routing_key": "a"})
	c.configure(b.provider + shovePair("max_priority = 5"))
	expect(t, c.apply(), "Warning: Bindings of a replaced queue are gone", `exchange "fleeting" to queue "orders" with key "a"`, "1 added, 0 changed, 1 destroyed")
}

func TestTierIsAddedInPlace(t *testing.T) {
	b := setup(t)
	config := func(delays string) string {
		return b.provider + losing(strings.Replace(orders(""), `["5s", "30s", "2m"]`, delays, 1))
	}
	c := b.commandLine(config(`["30s"]`))
	c.apply()
	c.configure(config(`["500ms", "30s", "5m"]`))
	out := c.plan()
	expect(t, out, `+ "orders-hold-300s" = {`, `+ "orders-hold-500ms" = {`, "Plan: 0 to add, 2 to change, 0 to destroy")
	expectNot(t, out, "known after apply", "forces replacement", "will be deleted")
	c.apply()
	b.mustExist("queues/%s/orders-hold-500ms", "queues/%s/orders-hold-300s", "bindings/%s/e/orders-retry/q/orders-hold-300s")
	expect(t, c.plan(), "No changes")
}

func TestTierThatExistsAlreadyIsNotAdded(t *testing.T) {
	b := setup(t)
	config := func(delays string) string {
		return b.provider + fmt.Sprintf("resource \"redeliver_rabbitmq_hold_ladder\" \"orders\" {\n  topic = \"orders\"\n  convention = \"shove\"\n  delays = %s\n}\n", delays)
	}
	c := b.commandLine(config(`["5s"]`))
	c.apply()
	b.request("PUT", "queues/%s/orders-hold-30s", map[string]any{"durable": true})
	c.configure(config(`["30s", "1m"]`))
	expect(t, c.applyFails(), "Could not update the hold ladder", `Queue "orders-hold-30s"`, "exists already")
	b.mustHave("queue orders-hold-5s", "queue orders-hold-30s")
	b.request("DELETE", "queues/%s/orders-hold-30s", nil)
	c.apply()
	b.mustHave("queue orders-hold-30s", "queue orders-hold-60s")
}

func TestTierThatIsRemovedIsWaitedOut(t *testing.T) {
	b := setup(t)
	config := func(delays string) string {
		return b.provider + strings.Replace(orders(""), `["5s", "30s", "2m"]`, delays, 1)
	}
	c := b.commandLine(config(`["8s", "10m"]`))
	c.apply()
	c.configure(config(`["10m"]`))
	b.publish("orders-hold-8s", 2)
	out := c.apply()
	expect(t, out, `- "orders-hold-8s" = {`, "0 added, 2 changed, 0 destroyed")
	b.mustBeGone("queues/%s/orders-hold-8s")
	brokertest.WaitDepth(t, b.broker, b.vhost, "orders", 2)
	expect(t, c.plan(), "No changes")
}

func TestTierThatIsRemovedAndStuckIsKept(t *testing.T) {
	b := setup(t)
	config := func(delays, more string) string {
		return b.provider + fmt.Sprintf("resource \"redeliver_rabbitmq_hold_ladder\" \"orders\" {\n  topic = \"orders\"\n  delays = %s\n  %s\n}\n", delays, more)
	}
	c := b.commandLine(config(`["300ms", "1h"]`, ""))
	c.apply()
	// There is no work queue: at-least-once keeps the message.
	b.publish("orders-hold-300ms", 1)
	b.waitCounted("orders-hold-300ms", 1)
	c.configure(config(`["1h", "2h"]`, `timeouts = { update = "12s" }`))
	expect(t, c.plan(), `Warning: Queue "orders-hold-300ms" holds messages`, "waits until they are home")
	out := c.applyFails()
	expect(t, out, "Could not update the hold ladder", `messages of the removed hold queues ["orders-hold-300ms"]`, "to go home", `queue "orders-hold-300ms" holds 1 message`, "raise timeouts.update, or apply again later")
	b.mustExist("queues/%s/orders-hold-300ms", "bindings/%s/e/orders-retry/q/orders-hold-300ms")
	// The tier that was added is kept, and the next apply goes on from there.
	b.mustExist("queues/%s/orders-hold-7200s")
	expect(t, c.plan(), `- "orders-hold-300ms" = {`, "0 to add, 1 to change, 0 to destroy")
	c.configure(config(`["1h", "2h"]`, "delete_non_empty = true"))
	expect(t, c.apply(), "delete_non_empty is true: they will be lost")
	b.mustBeGone("queues/%s/orders-hold-300ms")
	expect(t, c.plan(), "No changes")
}

func TestTierThatIsRemovedIsKeptWhenTheApplyIsInterrupted(t *testing.T) {
	b := setup(t)
	config := func(delays string) string {
		return b.provider + fmt.Sprintf("resource \"redeliver_rabbitmq_hold_ladder\" \"orders\" {\n  topic = \"orders\"\n  delays = %s\n}\n", delays)
	}
	c := b.commandLine(config(`["1h", "2h"]`))
	c.apply()
	before := b.objects()
	b.publish("orders-hold-3600s", 1)
	c.configure(config(`["2h"]`))
	out := c.interrupt(func() bool { return !b.exists("bindings/%s/e/orders-retry/q/orders-hold-3600s") }, "apply", "-no-color", "-input=false", "-auto-approve")
	expect(t, out, "Could not update the hold ladder", "context canceled")
	b.mustHave(before...)
}

func TestTierThatDiffersAndHoldsMessagesIsRepairedOnlyWhenToldTo(t *testing.T) {
	b := setup(t)
	config := func(more string) string {
		return b.provider + fmt.Sprintf("resource \"redeliver_rabbitmq_hold_ladder\" \"orders\" {\n  topic = \"orders\"\n  convention = \"shove\"\n  delays = [\"5s\", \"1h\"]\n  %s\n}\n", more)
	}
	c := b.commandLine(config(""))
	c.apply()
	b.remake("orders-hold-3600s", map[string]any{})
	b.publish("orders-hold-3600s", 3)
	b.waitCounted("orders-hold-3600s", 3)
	expect(t, c.plan(), `Queue "orders-hold-3600s" holds messages`, "holds 3 messages", "This is to be deleted and made again. Apply will refuse")
	expect(t, c.applyFails(), "Could not update the hold ladder", `queue "orders-hold-3600s" holds 3 messages`)
	if n := brokertest.Depth(t, b.broker, b.vhost, "orders-hold-3600s"); n != 3 {
		t.Errorf("%d messages are left, want 3", n)
	}
	c.configure(config("delete_non_empty = true"))
	c.apply()
	if got := b.argumentsOf("orders-hold-3600s")["x-message-ttl"]; got != 3600000.0 {
		t.Errorf("repaired to a delay of %v", got)
	}
	expect(t, c.plan(), "No changes")
}

func TestExchangeInUseIsNotDeleted(t *testing.T) {
	b := setup(t)
	config := func(more string) string {
		return b.provider + fmt.Sprintf("resource \"redeliver_rabbitmq_exchange\" \"shop\" {\n  name = \"shop\"\n  type = \"direct\"\n  %s\n}\n", more)
	}
	c := b.commandLine(config(""))
	c.apply()
	// A dead-letter argument counts, which RabbitMQ itself does not look at.
	b.request("PUT", "queues/%s/other", map[string]any{"durable": true, "arguments": map[string]any{"x-dead-letter-exchange": "shop"}})
	expect(t, c.applyFails("-destroy"), "Could not delete the exchange", "is still used, so it was not deleted", `queue "other", whose x-dead-letter-exchange it is`, "delete_in_use = true")
	b.request("POST", "bindings/%s/e/shop/q/other", map[string]any{"routing_key": "a"})
	expect(t, c.applyFails("-replace=redeliver_rabbitmq_exchange.shop"), "is still used", `routing key "a"`)
	b.mustExist("exchanges/%s/shop", "bindings/%s/e/shop/q/other")
	// Replaced all the same, its bindings come back.
	c.configure(config("delete_in_use = true"))
	expect(t, c.apply("-replace=redeliver_rabbitmq_exchange.shop"), "1 added, 0 changed, 1 destroyed")
	b.mustExist("exchanges/%s/shop", "bindings/%s/e/shop/q/other")
	c.apply("-destroy")
	b.mustHave("queue other")
}
