package provider

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflogtest"
	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/migration"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
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
	b.sendTo("amq.topic", "order.made", from, to)
}

func (b *bundle) sendTo(exchange, key string, from, to int) {
	b.t.Helper()
	messages := make([]amqp091.Publishing, to-from)
	for i := range messages {
		messages[i] = amqp091.Publishing{MessageId: fmt.Sprint(from + i), DeliveryMode: amqp091.Persistent}
	}
	brokertest.Publish(b.t, b.broker, b.vhost, exchange, key, messages...)
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

// interruptible is a kind of resource whose migration can be interrupted.
type interruptible struct {
	noun, queue, argument string
	exchange, key         string // what leads to the queue
	// config has that argument of the queue be n.
	config func(n int, more string) string
}

func interruptibles() []interruptible {
	deadEnd := func(noun, resource, queue string) interruptible {
		return interruptible{noun, queue, "x-max-length", "orders-retry", queue, func(n int, more string) string {
			return fmt.Sprintf("resource %q \"orders\" {\n topic = \"orders\"\n extra_arguments = { \"x-max-length\" = %d, \"x-overflow\" = \"reject-publish\" }\n %s\n}\n", resource, n, more)
		}}
	}
	return []interruptible{
		{"topic", "orders", "x-delivery-limit", "amq.topic", "order.made", func(n int, more string) string {
			return pair(fmt.Sprintf("delivery_limit = %d\n bindings = [{ exchange = \"amq.topic\", routing_key = \"order.*\" }]\n %s", n, more))
		}},
		deadEnd("dead-letter queue", "redeliver_rabbitmq_dead_letter_queue", "orders-dlq"),
		deadEnd("parked queue", "redeliver_rabbitmq_parked_queue", "orders-parked"),
	}
}

const migrateIt = `on_argument_change = "migrate"`

// interrupted is a resource whose migration was cut off at the worst moment, when there is no queue, with 500 messages.
type interrupted struct {
	*bundle
	interruptible
	p      *proxy
	c      *commandLine
	before []string
}

// throughProxy is the block of a provider that reaches the broker through a proxy, without trying again.
func (b *bundle) throughProxy(p *proxy) string {
	return b.blockAt(p.URL, b.broker.Username(), b.broker.Password(), fmt.Sprintf("max_retries = 0\n amqp_endpoints = [%q]", b.amqpEndpoint()))
}

// isOfQueue reports whether a request is about a queue itself.
func isOfQueue(r *http.Request, queue string) bool {
	return strings.HasPrefix(r.URL.Path, "/api/queues/") && strings.HasSuffix(r.URL.Path, "/"+queue)
}

// madeAgain calls what is to happen when a queue was deleted and is to be made again. Where that returns true nothing goes
// through from then on.
func (p *proxy) madeAgain(queue string, then func() (cut bool)) {
	var deleted, cut atomic.Bool
	p.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if isOfQueue(r, queue) && r.Method == http.MethodPut && deleted.Load() && !cut.Load() {
			cut.Store(then())
		}
		deleted.Store(deleted.Load() || isOfQueue(r, queue) && r.Method == http.MethodDelete)
		if cut.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return cut.Load()
	})
}

func interrupt(t *testing.T, kind interruptible) *interrupted {
	t.Helper()
	i := &interrupted{bundle: setup(t), interruptible: kind}
	i.p = newProxy(t, i.broker, "")
	i.c = i.commandLine("")
	i.configure(1000, migrateIt)
	i.c.apply()
	i.before = i.objects()
	i.sendTo(i.exchange, i.key, 0, 500)
	i.p.madeAgain(i.queue, func() bool { return true })
	i.configure(2000, migrateIt)
	expect(t, i.c.applyFails(), "Could not update the "+i.noun, fmt.Sprintf("the arguments of queue %q", i.queue), "503", "500 messages were moved out of queue",
		fmt.Sprintf("What is not back yet is in queue %q", i.migrating()), "apply again, which goes on from there")
	i.p.answerNoMore()
	i.mustExist("queues/%s/"+i.migrating(), "exchanges/%s/"+i.migrating())
	i.mustBeGone("queues/%s/" + i.queue)
	return i
}

func (i *interrupted) migrating() string { return i.queue + "-migrating" }

func (i *interrupted) configure(n int, more string) {
	i.t.Helper()
	i.c.configure(i.throughProxy(i.p) + i.config(n, more))
}

func (i *interrupted) is(n int) {
	i.t.Helper()
	if got := i.argumentsOf(i.queue)[i.argument]; got != float64(n) {
		i.t.Errorf("%s is %v, want %d", i.argument, got, n)
	}
}

// finished checks that nothing is left of the migration and that each of the messages is there, once.
func (i *interrupted) finished(n int) {
	i.t.Helper()
	i.mustBeGone("queues/%s/"+i.migrating(), "exchanges/%s/"+i.migrating())
	i.mustHave(i.before...)
	expect(i.t, i.c.plan(), "No changes")
	i.holdsEach(i.queue, n)
}

func TestInterruptedMigrationIsFinished(t *testing.T) {
	for _, kind := range interruptibles() {
		for name, finish := range map[string]func(i *interrupted){
			"by the same configuration": func(i *interrupted) {
				expect(i.t, i.c.apply(), fmt.Sprintf("Warning: Queue %q was migrated", i.queue), "went on with what an earlier apply had begun")
				i.is(2000)
			},
			"by one that was taken back": func(i *interrupted) {
				i.configure(1000, "")
				out := i.c.plan()
				expect(i.t, out, `migrating`, `true -> null`)
				expect(i.t, i.c.apply(), fmt.Sprintf("Warning: Queue %q was migrated", i.queue))
				i.is(1000)
			},
			"before a destroy, which is refused": func(i *interrupted) {
				expect(i.t, i.c.applyFails("-destroy"), "Could not delete the "+i.noun, fmt.Sprintf("queue %q holds 600 messages", i.queue))
				i.is(1000) // as it was: nobody said that it is to be another one
				i.c.apply()
				i.is(2000)
			},
		} {
			t.Run(kind.noun+"/"+name, func(t *testing.T) {
				i := interrupt(t, kind)
				out := i.c.plan()
				expect(t, out, fmt.Sprintf("An interrupted migration of queue %q is to be finished", i.queue), fmt.Sprintf("in queue %q", i.migrating()))
				expectNot(t, out, "will be created")
				i.sendTo(i.exchange, i.key, 500, 600) // a queue takes it whatever is interrupted
				finish(i)
				i.finished(600)
			})
		}
	}
}

// TestUnreadableMigration: a queue that is not there is no reason to forget the resource, or to call it destroyed, while it
// cannot be told whether a migration has its messages elsewhere.
func TestUnreadableMigration(t *testing.T) {
	for _, kind := range interruptibles() {
		t.Run(kind.noun, func(t *testing.T) {
			i := interrupt(t, kind)
			i.p.answer(func(w http.ResponseWriter, r *http.Request) bool {
				// The list too: a provider reads one by one what it cannot list.
				unreadable := r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/api/exchanges/") && (strings.HasSuffix(r.URL.Path, "/"+i.migrating()) || strings.Count(r.URL.Path, "/") == 3)
				if unreadable {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				return unreadable
			})
			says := []string{fmt.Sprintf("cannot be told whether a migration of queue %q was interrupted", i.queue), i.migrating(), "503", "nothing was changed"}
			known := len(i.c.state())
			expect(t, i.c.planFails(), append([]string{"Could not read the " + i.noun}, says...)...)
			expect(t, i.c.applyFails("-destroy", "-refresh=false"), append([]string{"Could not delete the " + i.noun}, says...)...)
			if got := len(i.c.state()); got != known {
				t.Errorf("%d resources are left in state, want %d", got, known)
			}
			i.p.answerNoMore()
			i.c.apply()
			i.is(2000)
			i.finished(500)
		})
	}
}

// TestMigrationThatBeginsDuringADelete: the resource is kept when its queue was deleted under a migration of another apply.
func TestMigrationThatBeginsDuringADelete(t *testing.T) {
	b := setup(t)
	p := newProxy(t, b.broker, "")
	c := b.commandLine(b.throughProxy(p) + migratingOrders("delivery_limit = 100"))
	c.apply()
	names := topology.Queue{Name: "orders"}.Migrating()
	arguments := names.SwitchArguments(topology.Arguments{"x-queue-type": "quorum", "x-delivery-limit": 100})
	var began atomic.Bool
	p.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if isOfQueue(r, "orders") && r.Method == http.MethodDelete && !began.Swap(true) {
			b.request(http.MethodPut, "exchanges/%s/"+names.Switch, map[string]any{"type": "fanout", "durable": true, "arguments": arguments})
		}
		return false
	})
	expect(t, c.applyFails("-destroy"), "Could not delete the topic", `Queue "orders" in vhost`, "while another apply began to migrate it", `queue "orders-migrating"`, "destroy again")
	if _, kept := c.state()["redeliver_rabbitmq_topic.orders"]; !kept {
		t.Error("the topic is not in the state any more")
	}
	b.mustBeGone("queues/%s/orders")
	c.apply("-destroy")
	b.mustHave()
}

// TestTimeoutsBoundAMigration: somebody holds a message of the migrating queue, and so neither an apply nor a destroy can end.
func TestTimeoutsBoundAMigration(t *testing.T) {
	b := setup(t)
	p := newProxy(t, b.broker, "")
	config := func(limit int) string {
		return b.throughProxy(p) + migratingOrders(fmt.Sprintf("delivery_limit = %d\n timeouts = { update = \"60s\", delete = \"20s\" }", limit))
	}
	c := b.commandLine(config(100))
	c.apply()
	before := b.objects()
	b.send(0, 100)
	ch := brokertest.Channel(t, b.broker, b.vhost)
	var held amqp091.Delivery
	p.madeAgain("orders", func() bool {
		d, ok, err := ch.Get("orders-migrating", false)
		if !ok || err != nil {
			t.Errorf("no message is in the migrating queue: %v", err)
		}
		held = d
		return false
	})
	c.configure(config(200))
	expect(t, c.applyFails(), "Could not update the topic", `queue "orders-migrating" holds 1 message (0 ready, 1 unacknowledged)`, "its consumers have to settle what they hold",
		`100 messages were moved out of queue "orders" and 99 back into it`, `What is not back yet is in queue "orders-migrating"`, "apply again, which goes on from there; timeouts.update is 1m0s")
	p.answerNoMore()
	b.mustExist(migratingQueue, migratingSwitch, "queues/%s/orders")
	expect(t, c.applyFails("-destroy"), "Could not delete the topic", "An interrupted migration has to be finished before the queue is deleted", "holds 1 message", "timeouts.delete is 20s")
	b.mustExist(migratingQueue, migratingSwitch, "queues/%s/orders")
	if err := ch.Reject(held.DeliveryTag, true); err != nil {
		t.Fatal(err)
	}
	expect(t, c.apply(), `Warning: Queue "orders" was migrated`, "0 messages were moved out", "1 back into it")
	b.limited(200)
	b.mustHave(before...)
	b.holdsEach("orders", 100)
}

// TestProgressIsLogged: each step is, and how far it came, however short it was.
func TestProgressIsLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	progress := logProgress(tflogtest.RootLogger(t.Context(), &out), "orders")
	for _, p := range []migration.Progress{
		{Step: migration.StepEmpty, Left: 5},
		{Step: migration.StepEmpty, Moved: 2, Left: 3},
		{Step: migration.StepEmpty, Moved: 5},
		{Step: migration.StepReplace, Moved: 5},
		{Step: migration.StepReturn},
		{Step: migration.StepReturn, Moved: 4, Waiting: "one"},
	} {
		progress(p)
	}
	lines, err := tflogtest.MultilineJSONDecode(&out)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range lines {
		got = append(got, fmt.Sprint(line["@level"], " ", line["@message"], " ", line["queue"], " ", line["moved"], " ", line["left"], line["waiting"]))
	}
	want := []string{
		"info migrating a queue: moving messages to the migrating queue orders 0 5",
		"info migrating a queue: moving messages to the migrating queue orders 5 0",
		"info migrating a queue: replacing the queue orders 5 0",
		"info migrating a queue: moving messages back orders 0 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("logged:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestMovedTopicIsRefusedWhileItHoldsMessages: nothing moves messages to another name or vhost.
func TestMovedTopicIsRefusedWhileItHoldsMessages(t *testing.T) {
	for name, change := range map[string]func(b *bundle, other string) string{
		"to another name":  func(*bundle, string) string { return `name = "purchases"` },
		"to another vhost": func(_ *bundle, other string) string { return fmt.Sprintf("name = \"orders\"\n vhost = %q", other) },
	} {
		for _, on := range []string{onChangeReplace, onChangeMigrate} {
			t.Run(name+", "+on, func(t *testing.T) {
				b := setup(t)
				config := func(identity string) string {
					return b.provider + fmt.Sprintf(`
resource "redeliver_rabbitmq_topic" "orders" {
  %s
  allow_message_loss = true
  retry              = { delays = ["5s"] }
  bindings           = [{ exchange = "amq.topic", routing_key = "order.*" }]
  on_argument_change = %q
}
`, identity, on)
				}
				c := b.commandLine(config(`name = "orders"`))
				c.apply()
				before := b.objects()
				b.send(0, 1)
				b.waitCounted("orders", 1)
				c.configure(config(change(b, brokertest.VHost(t, b.broker))))
				out := c.plan()
				expect(t, out, "forces replacement", "1 to add, 0 to change, 1 to destroy")
				expect(t, out, `Warning: Queue "orders" holds messages`, "holds 1 message", "This is to be replaced. Apply will refuse", "drain or move them first")
				expectNot(t, out, "is to be migrated")
				expect(t, c.applyFails(), "Could not delete the topic", fmt.Sprintf(`Refusing to delete from vhost %q: queue "orders" holds 1 message`, b.vhost), "Let consumers drain it, move or purge the messages")
				b.mustHave(before...)
				b.send(1, 2) // its bindings are as they were
				b.holdsEach("orders", 2)
				expect(t, c.apply(), "1 added, 0 changed, 1 destroyed")
			})
		}
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
		text := b.throughProxy(p) + migratingOrders(fmt.Sprintf("delivery_limit = %d", limit))
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
		cut := r.Method == http.MethodPut && isOfQueue(r, "orders")
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
