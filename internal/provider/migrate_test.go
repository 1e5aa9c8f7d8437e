package provider

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// migratingOrders is a topic whose queue is migrated, with its dead-letter queue.
func migratingOrders(more string) string {
	return pair(`on_argument_change = "migrate"
  bindings = [{ exchange = "amq.topic", routing_key = "order.*" }]
  ` + more)
}

// send publishes messages through the topic's exchange, from one number to the one before another.
func (b *bundle) send(from, to int) {
	b.t.Helper()
	messages := make([]amqp091.Publishing, to-from)
	for i := range messages {
		messages[i] = amqp091.Publishing{MessageId: fmt.Sprint(from + i), DeliveryMode: amqp091.Persistent}
	}
	brokertest.Publish(b.t, b.broker, b.vhost, "amq.topic", "order.made", messages...)
}

// holdsEach checks that a queue holds the messages up to a number, each once.
func (b *bundle) holdsEach(queue string, n int) {
	b.t.Helper()
	brokertest.WaitDepth(b.t, b.broker, b.vhost, queue, n)
	seen := map[string]int{}
	for _, d := range brokertest.Drain(b.t, b.broker, b.vhost, queue) {
		seen[d.MessageId]++
	}
	for i := range n {
		if seen[fmt.Sprint(i)] != 1 {
			b.t.Errorf("message %d is there %d times", i, seen[fmt.Sprint(i)])
		}
	}
}

const migratingQueue, migratingSwitch = "queues/%s/orders-migrating", "exchanges/%s/orders-migrating"

func TestQueueIsMigratedWhileMessagesArePublished(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + migratingOrders("delivery_limit = 100"))
	c.apply()
	before := b.objects()
	b.send(0, 1000)
	b.waitCounted("orders", 1000)
	c.configure(b.provider + migratingOrders("delivery_limit = 200"))
	out := c.plan()
	expect(t, out, "will be updated in-place", `"x-delivery-limit" = "100" -> "200"`)
	expect(t, out, `Warning: Queue "orders" is to be migrated`, "RabbitMQ cannot change a queue's arguments", "x-delivery-limit: want 200, live 100",
		`to queue "orders-migrating"`, "retries in place begin again", `Now queue "orders" holds 1000 messages`)
	expectNot(t, out, "has to be replaced")

	sent, end, ended := 1000, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		pace := time.NewTicker(50 * time.Millisecond)
		defer pace.Stop()
		for {
			select {
			case <-end:
				return
			case <-pace.C:
				b.send(sent, sent+20)
				sent += 20
			}
		}
	}()
	out = c.apply()
	close(end)
	<-ended
	expect(t, out, `Warning: Queue "orders" was migrated`, "messages were moved out of queue", "and", "back into it")
	if got := b.argumentsOf("orders")["x-delivery-limit"]; got != float64(200) {
		t.Errorf("the delivery limit is %v", got)
	}
	expect(t, c.plan(), "No changes")
	b.mustHave(before...)
	t.Logf("%d messages were published, %d of them after the first thousand", sent, sent-1000)
	b.holdsEach("orders", sent)
	c.apply("-destroy")
	b.mustHave()
}

// TestInterruptedMigrationIsFinished cuts the provider off at the worst moment, when there is no queue.
func TestInterruptedMigrationIsFinished(t *testing.T) {
	for name, finish := range map[string]func(b *bundle, c *commandLine){
		"by the same configuration": func(b *bundle, c *commandLine) {
			expect(b.t, c.apply(), `Warning: Queue "orders" was migrated`, "went on with what an earlier apply had begun")
			b.limited(200)
		},
		"by one that was taken back": func(b *bundle, c *commandLine) {
			c.configure(b.provider + pair("delivery_limit = 100\n bindings = [{ exchange = \"amq.topic\", routing_key = \"order.*\" }]"))
			out := c.plan()
			expect(b.t, out, `migrating`, `true -> null`)
			expect(b.t, c.apply(), `Warning: Queue "orders" was migrated`)
			b.limited(100)
		},
		"before a destroy, which is refused": func(b *bundle, c *commandLine) {
			expect(b.t, c.applyFails("-destroy"), "Could not delete the topic", `queue "orders" holds 600 messages`)
			b.limited(100) // as it was: nobody said that it is to be another one
			c.apply()
			b.limited(200)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			p := newProxy(t, b.broker, "")
			through := func(more string) string {
				return b.blockAt(p.URL, b.broker.Username(), b.broker.Password(), "max_retries = 0\n amqp_endpoints = ["+fmt.Sprintf("%q", b.amqpEndpoint())+"]") + migratingOrders(more)
			}
			c := b.commandLine(through("delivery_limit = 100"))
			c.apply()
			before := b.objects()
			b.send(0, 500)
			var deleted, cut atomic.Bool
			p.answer(func(w http.ResponseWriter, r *http.Request) bool {
				queue := strings.HasSuffix(r.URL.Path, "/orders") && strings.HasPrefix(r.URL.Path, "/api/queues/")
				if queue && r.Method == http.MethodPut && deleted.Load() {
					cut.Store(true)
				}
				deleted.Store(deleted.Load() || queue && r.Method == http.MethodDelete)
				if cut.Load() {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				return cut.Load()
			})
			c.configure(through("delivery_limit = 200"))
			expect(t, c.applyFails(), "Could not update the topic", `the arguments of queue "orders"`, "503", "500 messages were moved out of queue")
			p.answerNoMore()
			b.mustExist(migratingQueue, migratingSwitch)
			b.mustBeGone("queues/%s/orders")
			out := c.plan()
			expect(t, out, `An interrupted migration of queue "orders" is to be finished`, `in queue "orders-migrating"`)
			expectNot(t, out, "will be created")
			b.send(500, 600) // a queue takes it whatever is interrupted
			finish(b, c)
			b.mustBeGone(migratingQueue, migratingSwitch)
			b.mustHave(before...)
			expect(t, c.plan(), "No changes")
			b.holdsEach("orders", 600)
		})
	}
}

func (b *bundle) limited(want int) {
	b.t.Helper()
	if got := b.argumentsOf("orders")["x-delivery-limit"]; got != float64(want) {
		b.t.Errorf("the delivery limit is %v, want %d", got, want)
	}
}

func TestDriftIsRepairedByMigration(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + migratingOrders("delivery_limit = 100"))
	c.apply()
	b.remake("orders", map[string]any{"x-queue-type": "classic", "x-max-length": 100000})
	b.request("POST", "bindings/%s/e/amq.topic/q/orders", map[string]any{"routing_key": "order.*"})
	b.send(0, 300)
	expect(t, c.plan(), `Warning: Queue "orders" is to be migrated`, "x-queue-type")
	c.apply()
	b.limited(100)
	expect(t, c.plan(), "No changes")
	b.holdsEach("orders", 300)
}

// TestDeadLetterQueueIsMigrated migrates it under the topic that points at it, by its exchange.
func TestDeadLetterQueueIsMigrated(t *testing.T) {
	b := setup(t)
	config := func(more string) string {
		return b.provider + `
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic              = "orders"
  on_argument_change = "migrate"
  ` + more + `
}
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  retry             = { delays = ["5s"] }
}
`
	}
	c := b.commandLine(config(""))
	c.apply()
	before := b.objects()
	brokertest.Publish(t, b.broker, b.vhost, "orders-retry", "orders-dlq", amqp091.Publishing{MessageId: "0"}, amqp091.Publishing{MessageId: "1"})
	c.configure(config(`extra_arguments = { "x-max-length" = 100000, "x-overflow" = "reject-publish" }`))
	expect(t, c.apply(), `Queue "orders-dlq" was migrated`)
	if got := b.argumentsOf("orders-dlq")["x-max-length"]; got != float64(100000) {
		t.Errorf("x-max-length is %v", got)
	}
	b.mustHave(before...)
	expect(t, c.plan(), "No changes")
	b.holdsEach("orders-dlq", 2)
}

func TestSettingsMoveIntoAPolicyByMigration(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + migratingOrders("delivery_limit = 100"))
	c.apply()
	b.send(0, 100)
	for _, via := range []string{"policy", "arguments"} {
		c.configure(b.provider + migratingOrders("delivery_limit = 100\n settings_via = \""+via+"\""))
		expect(t, c.apply(), `Queue "orders" was migrated`)
		if _, has := b.argumentsOf("orders")["x-delivery-limit"]; has != (via == "arguments") {
			t.Errorf("settings_via = %q: the arguments are %v", via, b.argumentsOf("orders"))
		}
		expect(t, c.plan(), "No changes")
	}
	b.holdsEach("orders", 100)
}

func TestMigrationIsRefused(t *testing.T) {
	b := setup(t)
	shove := func(more string) string {
		return `
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic      = "orders"
  convention = "shove"
}
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic      = "orders"
  convention = "shove"
  delays     = ["5s"]
}
resource "redeliver_rabbitmq_topic" "orders" {
  name               = "orders"
  convention         = "shove"
  dead_letter_queue  = redeliver_rabbitmq_dead_letter_queue.orders.name
  hold_queues        = redeliver_rabbitmq_hold_ladder.orders.queues
  retry              = { strategy = "republish" }
  on_argument_change = "migrate"
  ` + more + `
}
`
	}
	c := b.commandLine(b.provider + shove(""))
	c.apply()
	longer := `extra_arguments = { "x-max-length" = 100000 }`
	c.configure(b.provider + shove(longer))
	expect(t, c.planFails(), "The queue cannot be migrated", `"orders" is dead-lettered to by its name`, `["orders-hold-5s"]`, "allow_default_exchange_loss accepts")
	c.configure(b.block("") + shove(longer+"\n allow_default_exchange_loss = true"))
	out := c.planFails()
	expect(t, out, "The queue cannot be migrated", "no amqp_endpoints are configured")
	expectNot(t, out, "allow_default_exchange_loss accepts")
	c.configure(b.provider + shove(longer+"\n allow_default_exchange_loss = true"))
	expect(t, c.apply(), `Queue "orders" was migrated`)
	expect(t, c.plan(), "No changes")
	c.configure(b.provider + shove(longer+"\n allow_default_exchange_loss = true\n settings_via = \"policy\""))
	expect(t, c.plan(), `x-dead-letter-routing-key: "orders-dlq" moves to policy "`, `x-max-length: 100000 moves to policy "`)

	c = b.commandLine(b.provider + migratingOrders("sequenced = true"))
	expect(t, c.planFails(), "A sequenced topic is not migrated", "replaced only while it is empty")
}

// TestBindingOfAnInterruptedMigration: the binding of a resource of its own is at the switch, and belongs to that resource
// there too.
func TestBindingOfAnInterruptedMigration(t *testing.T) {
	b := setup(t)
	p := newProxy(t, b.broker, "")
	config := func(limit int, bindings ...string) string {
		text := b.blockAt(p.URL, b.broker.Username(), b.broker.Password(), "max_retries = 0\n amqp_endpoints = ["+fmt.Sprintf("%q", b.amqpEndpoint())+"]") +
			migratingOrders(fmt.Sprintf("delivery_limit = %d", limit))
		for _, key := range bindings {
			text += fmt.Sprintf(`
resource "redeliver_rabbitmq_binding" %q {
  source      = "amq.direct"
  destination = redeliver_rabbitmq_topic.orders.name
  routing_key = %q
}
`, key, key)
		}
		return text
	}
	c := b.commandLine(config(100, "stays", "goes"))
	c.apply()
	p.answer(func(w http.ResponseWriter, r *http.Request) bool {
		cut := r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/orders") && strings.HasPrefix(r.URL.Path, "/api/queues/")
		if cut {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return cut
	})
	c.configure(config(200, "stays", "goes"))
	c.applyFails()
	p.answerNoMore()
	b.mustExist(migratingSwitch)
	c.configure(config(200, "stays"))
	expect(t, c.plan(), "0 to add, 1 to change, 1 to destroy")
	c.apply()
	b.limited(200)
	b.mustHave("queue orders", "queue orders-dlq", "exchange orders-retry", "binding orders-retry -> orders-dlq (orders-dlq)",
		"binding amq.topic -> orders (order.*)", "binding amq.direct -> orders (stays)")
	expect(t, c.plan(), "No changes")
}
