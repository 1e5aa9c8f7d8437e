package provider

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func TestSequencedTopicHasASingleActiveConsumer(t *testing.T) {
	b := setup(t)
	config := func(more string) string { return b.provider + losing(orders(more)) }
	c := b.commandLine(config("sequenced = true"))
	c.apply()
	if got := b.argumentsOf("orders")["x-single-active-consumer"]; got != true {
		t.Errorf("x-single-active-consumer is %v", got)
	}
	expect(t, c.plan(), "No changes")
	c.mustImport(b.provider + orders("sequenced = true"))

	// The argument cannot change on a live queue.
	c.configure(config(""))
	expect(t, c.apply(), `- "x-single-active-consumer" = "true" -> null # forces replacement`, "1 added, 0 changed, 1 destroyed")
	c.configure(config("sequenced = true"))
	expect(t, c.apply(), `+ "x-single-active-consumer" = "true" # forces replacement`, "1 added, 0 changed, 1 destroyed")
	expect(t, c.plan(), "No changes")
}

// shards is a sequenced topic of shove with a ladder.
func shards(n int, more string) string {
	return fmt.Sprintf(`
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic      = "orders"
  convention = "shove"
}
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic           = "orders"
  convention      = "shove"
  delays          = ["5s", "30s"]
  sequence_shards = %[1]d
}
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  convention        = "shove"
  sequenced         = true
  sequence_shards   = %[1]d
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.orders.queues
  %[2]s
}
`, n, more)
}

// withPlugin gives the test a broker of its own that has the consistent-hash exchange.
func withPlugin(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("no TF_ACC: run make test")
	}
	broker := brokertest.Dedicated(t, brokertest.Options{Plugins: []string{topology.ConsistentHashPlugin}})
	b := &bundle{t: t, broker: broker, vhost: brokertest.VHost(t, broker)}
	b.provider = b.block("amqp_endpoints = [" + fmt.Sprintf("%q", b.amqpEndpoint()) + "]")
	return b
}

func TestSequencedTopicOverShards(t *testing.T) {
	b := withPlugin(t)
	bound := `bindings = [{ exchange = "amq.topic", routing_key = "order.*" }]`
	config := func(n int, more string) string { return b.provider + losing(shards(n, more)) }
	c := b.commandLine(config(2, bound))
	expectNot(t, c.plan(), "known after apply")
	c.apply()
	expect(t, c.plan(), "No changes")
	objects := func(n int, bindings ...string) []string {
		list := append([]string{"queue orders-dlq", "exchange orders-seq-hash"}, bindings...)
		for shard := range n {
			list = append(list, fmt.Sprintf("queue orders-seq-%d", shard), fmt.Sprintf("queue orders-seq-%d-hold-5s", shard), fmt.Sprintf("queue orders-seq-%d-hold-30s", shard),
				fmt.Sprintf("binding orders-seq-hash -> orders-seq-%d (1)", shard))
		}
		return list
	}
	topicBinding := "binding amq.topic -> orders-seq-hash (order.*)"
	b.mustHave(objects(2, topicBinding)...)
	c.mustImport(b.provider + shards(2, bound))

	// Messages of one key go to one shard, whatever they came through.
	for i := range 20 {
		key := fmt.Sprintf("order.%d", i%10)
		brokertest.Publish(t, b.broker, b.vhost, "amq.topic", key, amqp091.Publishing{Body: []byte(key)})
		brokertest.Publish(t, b.broker, b.vhost, "orders-seq-hash", key, amqp091.Publishing{Body: []byte(key)})
	}
	where := map[string]string{}
	total := 0
	for _, shard := range []string{"orders-seq-0", "orders-seq-1"} {
		for _, message := range brokertest.Drain(t, b.broker, b.vhost, shard) {
			total++
			if other, seen := where[string(message.Body)]; seen && other != shard {
				t.Errorf("key %q is in %s and %s", message.Body, other, shard)
			}
			where[string(message.Body)] = shard
		}
	}
	if total != 40 || len(where) != 10 {
		t.Errorf("%d messages of %d keys arrived, want 40 of 10", total, len(where))
	}

	// A library of the convention declares all of it as it is.
	ch := brokertest.Channel(t, b.broker, b.vhost)
	if _, err := ch.QueueDeclare("orders-seq-1", true, false, false, false, amqp091.Table{
		"x-single-active-consumer": true, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders-dlq",
	}); err != nil {
		t.Errorf("the library is refused its shard: %v", err)
	}
	if err := ch.ExchangeDeclare("orders-seq-hash", "x-consistent-hash", true, false, false, false, nil); err != nil {
		t.Errorf("the library is refused its exchange: %v", err)
	}

	// Routes that are missing come back in place, and so does a shard.
	b.request("DELETE", "bindings/%s/e/amq.topic/e/orders-seq-hash/order.%%2A", nil)
	b.request("DELETE", "bindings/%s/e/orders-seq-hash/q/orders-seq-0/1", nil)
	b.request("DELETE", "queues/%s/orders-seq-1", nil)
	out := c.apply()
	expect(t, out, `~ bindings = [ + { + exchange = "amq.topic"`, `~ home_bindings = [ + { + exchange = "orders-seq-hash" + routing_key = "1"`, `+ "orders-seq-1" = {`, "0 added, 1 changed, 0 destroyed")
	b.mustHave(objects(2, topicBinding)...)
	expect(t, c.plan(), "No changes")

	// A difference replaces them all.
	b.remake("orders-seq-1", map[string]any{"x-queue-type": "classic", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders-dlq"})
	expect(t, c.apply(), `+ "x-single-active-consumer" = "true" # forces replacement`, `Warning: Shards such as "orders-seq-0" differ`, "All shards have to be replaced", "1 added, 0 changed, 1 destroyed")
	b.mustHave(objects(2, topicBinding)...)
	expect(t, c.plan(), "No changes")

	// So does another number of them; a foreign way in stays.
	b.request("POST", "bindings/%s/e/amq.direct/e/orders-seq-hash", map[string]any{"routing_key": "foreign"})
	c.configure(config(3, ""))
	out = c.apply()
	expect(t, out, "~ sequence_shards = 2 -> 3 # forces replacement")
	b.mustHave(objects(3, "binding amq.direct -> orders-seq-hash (foreign)")...)
	expect(t, c.plan(), "No changes")
	b.request("DELETE", "bindings/%s/e/amq.direct/e/orders-seq-hash/foreign", nil)
	c.apply("-destroy")
	b.mustHave()
}

func TestShardsThatHoldMessagesAreNotReplaced(t *testing.T) {
	b := withPlugin(t)
	c := b.commandLine(b.provider + shards(2, ""))
	c.apply()
	b.publish("orders-seq-1", 1)
	b.waitCounted("orders-seq-1", 1)
	c.configure(b.provider + shards(3, ""))
	expect(t, c.plan(), `Warning: Queue "orders-seq-1" holds messages`)
	expect(t, c.applyFails(), "Could not delete the topic", `"orders-seq-1"`)
	b.mustExist("queues/%s/orders-seq-0", "queues/%s/orders-seq-1", "bindings/%s/e/orders-seq-hash/q/orders-seq-0", "bindings/%s/e/orders-seq-hash/q/orders-seq-1")
	brokertest.WaitDepth(t, b.broker, b.vhost, "orders-seq-1", 1)
}

// What the plan could not ask, because the broker was not known, the apply asks before anything is made.
func TestShardsAreRefusedBeforeAnythingIsMade(t *testing.T) {
	b := setup(t)
	late := strings.Replace(b.provider, fmt.Sprintf("[%q]", b.broker.ManagementURL()), "[terraform_data.endpoint.output]", 1)
	c := b.commandLine(late + pending("endpoint", fmt.Sprintf("%q", b.broker.ManagementURL())) + `
resource "redeliver_rabbitmq_topic" "orders" {
  name               = "orders"
  convention         = "shove"
  sequenced          = true
  sequence_shards    = 2
  allow_message_loss = true
  retry              = { delays = ["5s"] }
}
`)
	expect(t, c.applyFails(), "Plan: 2 to add", "Error: The broker cannot carry the topic", "enable the plugin rabbitmq_consistent_hash_exchange")
	b.mustHave()
}

func TestShardsArePlannedWhileABindingIsNotKnownYet(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + pending("key", `"order.*"`) + shards(2, `bindings = [{ exchange = "amq.topic", routing_key = terraform_data.key.output }]`))
	out := c.plan()
	expect(t, out, "+ manifest = (known after apply)", `+ shard_arguments = { + "orders-seq-0" = {`, `+ "x-single-active-consumer" = "true"`, `+ "orders-seq-1" = {`)
}

// An argument that a library does not declare is refused to it: why queuey's topics cannot be sequenced.
func TestLibraryIsRefusedAQueueWithASingleActiveConsumer(t *testing.T) {
	b := setup(t)
	for _, kind := range []string{"classic", "quorum"} {
		b.request("PUT", "queues/%s/"+kind, map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": kind, "x-single-active-consumer": true}})
		_, err := brokertest.Channel(t, b.broker, b.vhost).QueueDeclare(kind, true, false, false, false, amqp091.Table{"x-queue-type": kind})
		if err == nil || !strings.Contains(err.Error(), "inequivalent arg 'x-single-active-consumer'") {
			t.Errorf("%s: declared without the argument: %v", kind, err)
		}
	}
}
