package provider

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func TestTopicIsProvisionedWithItsLadderAndDeadEnds(t *testing.T) {
	b := setup(t)
	topic := "redeliver_rabbitmq_topic.orders"
	config := b.provider + orders(`bindings = [{ exchange = "amq.topic", routing_key = "order.*" }]`)
	b.run(
		resource.TestStep{
			Config: config,
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectKnownValue(topic, tfjsonpath.New("manifest"), knownvalue.StringFunc(func(text string) error {
					_, err := topology.DecodeManifest([]byte(text))
					return err
				})),
				plancheck.ExpectKnownValue(topic, tfjsonpath.New("arguments").AtMapKey("x-delivery-limit"), knownvalue.StringExact("50")),
				plancheck.ExpectKnownValue(topic, tfjsonpath.New("id"), knownvalue.StringExact(b.vhost+"/orders")),
				plancheck.ExpectKnownValue(topic, tfjsonpath.New("queue_type"), knownvalue.StringExact("quorum")),
				plancheck.ExpectKnownValue("redeliver_rabbitmq_hold_ladder.orders", tfjsonpath.New("queues").AtSliceIndex(2), knownvalue.ObjectExact(map[string]knownvalue.Check{
					"delay": knownvalue.StringExact("2m"), "name": knownvalue.StringExact("orders-hold-120s"), "shard": knownvalue.Int64Exact(0),
				})),
				plancheck.ExpectKnownValue("redeliver_rabbitmq_dead_letter_queue.orders", tfjsonpath.New("bindings"), knownvalue.SetExact([]knownvalue.Check{
					knownvalue.ObjectExact(map[string]knownvalue.Check{"exchange": knownvalue.StringExact("orders-retry"), "routing_key": knownvalue.StringExact("orders-dlq")}),
				})),
			}},
			Check: b.there("queues/%s/orders", "queues/%s/orders-dlq", "queues/%s/orders-parked", "queues/%s/orders-hold-5s",
				"queues/%s/orders-hold-30s", "queues/%s/orders-hold-120s", "exchanges/%s/orders-retry", "bindings/%s/e/amq.topic/q/orders"),
		},
		unchanged(config),
		resource.TestStep{ResourceName: topic, ImportState: true, ImportStateVerify: true},
		resource.TestStep{ResourceName: "redeliver_rabbitmq_hold_ladder.orders", ImportState: true, ImportStateVerify: true},
	)
	b.mustHave()
}

func TestTopicsBindingsChangeInPlace(t *testing.T) {
	b := setup(t)
	config := func(keys ...string) string {
		bindings := ""
		for _, key := range keys {
			bindings += fmt.Sprintf("{ exchange = \"amq.topic\", routing_key = %q },", key)
		}
		return b.provider + losing(shovePair("bindings = ["+bindings+"]"))
	}
	c := b.commandLine(config("kept", "removed"))
	c.apply()
	b.request("POST", "bindings/%s/e/amq.topic/q/orders", map[string]any{"routing_key": "foreign"})
	// They are not authoritative: what others made stays, and is nothing to plan.
	expect(t, c.plan(), "No changes")
	c.configure(config("kept", "added"))
	expect(t, c.apply(), "0 added, 1 changed, 0 destroyed")
	b.mustHave("queue orders", "queue orders-dlq", "binding amq.topic -> orders (kept)", "binding amq.topic -> orders (added)", "binding amq.topic -> orders (foreign)")
	// Removing the attribute removes what it made.
	c.configure(b.provider + losing(shovePair("")))
	c.apply()
	b.mustHave("queue orders", "queue orders-dlq", "binding amq.topic -> orders (foreign)")
	expect(t, c.plan(), "No changes")
}

func TestVHostIsTheProvidersUnlessTheResourceSaysOtherwise(t *testing.T) {
	b := setup(t)
	other := brokertest.VHost(t, b.broker)
	config := func(vhost string) string {
		return b.provider + losing(fmt.Sprintf(`
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic      = "orders"
  convention = "shove"
  %[1]s
}
resource "redeliver_rabbitmq_exchange" "orders" {
  name = "orders"
  type = "fanout"
  %[1]s
}
resource "redeliver_rabbitmq_binding" "orders" {
  source      = redeliver_rabbitmq_exchange.orders.name
  destination = redeliver_rabbitmq_dead_letter_queue.orders.name
  %[1]s
}
`, vhost))
	}
	c := b.commandLine(config(""))
	c.apply()
	b.mustExist("bindings/%s/e/orders/q/orders-dlq")
	c.configure(config(fmt.Sprintf("vhost = %q", other)))
	expect(t, c.apply(), "3 added, 0 changed, 3 destroyed")
	b.mustHave()
	if status, _ := brokertest.Request(t, b.broker, "GET", "/api/queues/"+url.PathEscape(other)+"/orders-dlq", nil); status != 200 {
		t.Errorf("the queue is not in the other vhost: %d", status)
	}
	expect(t, c.plan(), "No changes")
}

func TestDeadLetterQueueIsReplacedWhenItsNameChanges(t *testing.T) {
	b := setup(t)
	config := func(name string) string {
		return b.provider + losing(fmt.Sprintf(`
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic = "orders"
  %s
}
`, name))
	}
	c := b.commandLine(config(`name = "graveyard"`))
	c.apply()
	b.mustHave("queue graveyard", "exchange orders-retry", "binding orders-retry -> graveyard (graveyard)")
	c.configure(config(""))
	expect(t, c.apply(), `~ name = "graveyard" -> "orders-dlq" # forces replacement`, "1 added, 0 changed, 1 destroyed")
	b.mustHave("queue orders-dlq", "exchange orders-retry", "binding orders-retry -> orders-dlq (orders-dlq)")
}
