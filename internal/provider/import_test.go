package provider

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// odd are names that a path, a query, a regular expression or HCL may get wrong.
var odd = []string{
	"a@b", "a/b/", "100%", "%2F", "a#b", "a?b=c", "a;b", "a&b=c+d", " sp ace ", `quo"te's`, "back\\slash", "ünïcödé 日本", "$${x}", "a,b", "*.#", "(a|b)[c]",
}

// TestOddNames provisions and imports names that hold what AMQP allows: as topic, dead-letter queue, exchange, routing
// key, argument and vhost.
func TestOddNames(t *testing.T) {
	b := setup(t)
	b.vhost += ` /@%?#;ü"'`
	path := "/api/vhosts/" + url.PathEscape(b.vhost)
	b.request("PUT", "vhosts/%s", map[string]any{})
	t.Cleanup(func() { brokertest.Request(t, b.broker, "DELETE", path, nil) })
	b.request("PUT", "permissions/%s/"+url.PathEscape(b.broker.Username()), map[string]string{"configure": ".*", "write": ".*", "read": ".*"})

	quoted := make([]string, len(odd))
	for i, name := range odd {
		quoted[i] = hcl(strings.ReplaceAll(name, "$${", "${"))
	}
	provider := strings.Replace(b.block(""), fmt.Sprintf("%q", b.vhost), hcl(b.vhost), 1)
	config := provider + `
locals { names = toset([` + strings.Join(quoted, ", ") + `]) }
resource "redeliver_rabbitmq_exchange" "odd" {
  for_each        = local.names
  name            = "x ${each.key}"
  type            = "headers"
  extra_arguments = { (each.key) = each.key }
}
resource "redeliver_rabbitmq_dead_letter_queue" "odd" {
  for_each         = local.names
  topic            = each.key
  name             = "dead ${each.key}"
  convention       = "shove"
  delete_non_empty = true
}
resource "redeliver_rabbitmq_hold_ladder" "odd" {
  for_each         = local.names
  topic            = each.key
  convention       = "rabbitkit"
  delays           = ["1s"]
  delete_non_empty = true
}
resource "redeliver_rabbitmq_topic" "odd" {
  for_each          = local.names
  name              = each.key
  convention        = "shove"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.odd[each.key].name
  retry             = { max_retries = 0 }
  bindings          = [{ exchange = redeliver_rabbitmq_exchange.odd[each.key].name, routing_key = each.key }]
  delete_non_empty  = true
}
resource "redeliver_rabbitmq_binding" "odd" {
  for_each    = local.names
  source      = redeliver_rabbitmq_exchange.odd[each.key].name
  destination = redeliver_rabbitmq_topic.odd[each.key].name
  routing_key = "key ${each.key}"
  arguments   = { (each.key) = each.key, nested = { list = [each.key, 5, true] } }
}
output "ids" {
  value = [for r in ["exchange", "dead_letter_queue", "hold_ladder", "binding"] : { for name in local.names : name => {
    exchange          = redeliver_rabbitmq_exchange.odd[name].id
    dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.odd[name].id
    hold_ladder       = redeliver_rabbitmq_hold_ladder.odd[name].id
    binding           = redeliver_rabbitmq_binding.odd[name].id
  }[r] }]
}
`
	c := b.commandLine(config)
	c.apply()
	for _, name := range odd {
		name = url.PathEscape(strings.ReplaceAll(name, "$${", "${"))
		b.mustExist("queues/%s/"+escaped(name), "queues/%s/dead%%20"+escaped(name), "queues/%s/"+escaped(name)+".retry.1", "exchanges/%s/x%%20"+escaped(name))
	}
	expect(t, c.plan(), "No changes")

	ids := c.must("output", "-json", "ids")
	imports := fmt.Sprintf("locals { ids = jsondecode(%s) }\n", hcl(ids))
	for i, kind := range []string{"exchange", "dead_letter_queue", "hold_ladder", "binding"} {
		imports += fmt.Sprintf("import {\n  for_each = local.ids[%d]\n  to       = redeliver_rabbitmq_%s.odd[each.key]\n  id       = each.value\n}\n", i, kind)
	}
	// Any encoding will do that can be read back.
	imports += "import {\n  for_each = local.names\n  to       = redeliver_rabbitmq_topic.odd[each.key]\n  id       = \"" +
		importID{segments: []string{b.vhost}}.String() + "/${replace(urlencode(each.key), \"+\", \"%20\")}?convention=shove\"\n}\n"
	other := b.commandLine(config + imports)
	// All that is left to change is what no broker knows: delete_non_empty, and the retry policy.
	n := len(odd)
	expect(t, other.plan(), fmt.Sprintf("Plan: %d to import, 0 to add, %d to change, 0 to destroy", 5*n, 3*n))
	c.apply("-destroy")
	b.mustHave()
}

// hcl quotes a text for a configuration.
func hcl(text string) string {
	quoted := strings.NewReplacer("\\", "\\\\", "\"", "\\\"", "\n", "\\n", "${", "$${", "%{", "%%{").Replace(text)
	return `"` + quoted + `"`
}

// escaped makes a text safe for a format.
func escaped(text string) string { return strings.ReplaceAll(text, "%", "%%") }

func TestImportRefusesIDsItCannotRead(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + orders("") + shop + `
resource "redeliver_rabbitmq_binding" "shop" {
  source      = "amq.topic"
  destination = "shop"
}
`)
	for _, test := range []struct{ address, id, says string }{
		{"redeliver_rabbitmq_topic.orders", "orders", "has 1 parts separated by slashes and 2 are expected"},
		{"redeliver_rabbitmq_topic.orders", "shop/orders?convention=nope", `Convention "nope" is not known`},
		{"redeliver_rabbitmq_topic.orders", "shop/orders?name=x", `parameter "name" is not known`},
		{"redeliver_rabbitmq_hold_ladder.orders", "shop/orders-dlq", `belongs to what is derived from another topic`},
		{"redeliver_rabbitmq_dead_letter_queue.orders", "shop/orders?name=orders", "itself uses this name for another of its queues"},
		{"redeliver_rabbitmq_parked_queue.orders", "shop/orders?convention=shove", "its libraries have none"},
		{"redeliver_rabbitmq_exchange.shop", "//", "write it as VHOST/NAME"},
		{"redeliver_rabbitmq_binding.shop", "v/amq.topic/topic/shop", `the destination's type is "topic"; it is "queue" or "exchange"`},
		{"redeliver_rabbitmq_binding.shop", "v/amq.topic/queue/shop?arguments=5", "not a JSON object"},
	} {
		expect(t, c.mustNot("import", "-no-color", test.address, test.id), "Invalid import id", test.says)
	}
	// What is not there is not imported.
	for address, id := range map[string]string{
		"redeliver_rabbitmq_topic.orders": "orders", "redeliver_rabbitmq_hold_ladder.orders": "orders", "redeliver_rabbitmq_parked_queue.orders": "orders",
		"redeliver_rabbitmq_exchange.shop": "shop", "redeliver_rabbitmq_binding.shop": "amq.topic/queue/shop",
	} {
		expect(t, c.mustNot("import", "-no-color", address, b.vhost+"/"+id), "Cannot import non-existent remote object")
	}
}

func TestImportOfAQueueThatDiffersShowsWhatDiffers(t *testing.T) {
	b := setup(t)
	b.request("PUT", "queues/%s/orders", map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "classic", "x-message-ttl": 1000}})
	b.request("PUT", "queues/%s/orders-dlq", map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "quorum", "x-delivery-limit": 5}})
	c := b.commandLine(b.provider + `
resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  retry             = { delays = ["5s"] }
}
` + fmt.Sprintf(`
import {
  to = redeliver_rabbitmq_topic.orders
  id = "%[1]s/orders"
}
import {
  to = redeliver_rabbitmq_dead_letter_queue.orders
  id = "%[1]s/orders"
}
`, b.vhost))
	out := c.plan()
	expect(t, out, `- "x-message-ttl" = "1000" -> null # forces replacement`, `~ "x-queue-type" = "\"classic\"" -> "\"quorum\"" # forces replacement`)
	expect(t, out, `~ "x-delivery-limit" = "5" -> "1000000" # forces replacement`)
	expect(t, out, "Plan: 2 to import, 2 to add, 0 to change, 2 to destroy")
	// What a run imports it does not delete, empty or not.
	expect(t, out, `Queue "orders" is imported and would be replaced`)
	expect(t, out, `Queue "orders-dlq" is imported and would be replaced`)
	out = c.mustNot("apply", "-auto-approve", "-no-color")
	expect(t, out, `is imported and was not replaced`, "?convention=shove")
	if q := b.request("GET", "queues/%s/orders", nil); !strings.Contains(string(q), `"x-message-ttl":1000`) {
		t.Errorf("the queue was replaced: %s", q)
	}
	// The next run is like any other: the import is done.
	c.apply()
	expect(t, c.plan(), "No changes")
}

// TestImportKeepsBindings imports a topic whose bindings belong to a resource of their own, or to nobody: they stay.
func TestImportKeepsBindings(t *testing.T) {
	b := setup(t)
	config := b.provider + losing(orders("")) + `
resource "redeliver_rabbitmq_binding" "shop" {
  source      = "amq.topic"
  destination = redeliver_rabbitmq_topic.orders.name
  routing_key = "order.*"
}
`
	c := b.commandLine(config)
	c.apply()
	b.request("POST", "bindings/%s/e/amq.topic/q/orders", map[string]any{"routing_key": "by.hand"})
	c.must("state", "rm", "redeliver_rabbitmq_topic.orders", "redeliver_rabbitmq_binding.shop")
	c.configure(config + fmt.Sprintf(`
import {
  to = redeliver_rabbitmq_topic.orders
  id = "%[1]s/orders"
}
import {
  to = redeliver_rabbitmq_binding.shop
  id = "%[1]s/amq.topic/queue/orders?routing_key=order.%%2A"
}
`, b.vhost))
	expect(t, c.plan(), `Topic "orders" keeps bindings that are not its own`)
	c.apply()
	for _, key := range []string{"order.*", "by.hand"} {
		if all := b.request("GET", "queues/%s/orders/bindings", nil); !strings.Contains(string(all), `"`+key+`"`) {
			t.Errorf("the binding with key %q is gone: %s", key, all)
		}
	}
	expect(t, c.plan(), "No changes")
}

// TestImportWhileTheBrokerIsAway: every import fails for the reason that is one.
func TestImportWhileTheBrokerIsAway(t *testing.T) {
	b := setup(t)
	config := b.blockAt("http://127.0.0.1:1", "guest", "guest", "")
	for _, topic := range []string{"orders", "bills"} {
		config += fmt.Sprintf(`
resource "redeliver_rabbitmq_dead_letter_queue" %[1]q { topic = %[1]q }
import {
  to = redeliver_rabbitmq_dead_letter_queue.%[1]s
  id = "%%2F/%[1]s"
}
`, topic)
	}
	out := b.commandLine(config).planFails()
	if all, say := strings.Count(out, "Error: "), strings.Count(out, "Error: RabbitMQ does not answer"); all != 2 || say != 2 {
		t.Errorf("want an error that the broker does not answer for each import, and no other:\n%s", out)
	}
}

// TestImportStateVerify imports one of each kind the way plugin-testing does, which compares every attribute.
func TestImportStateVerify(t *testing.T) {
	b := setup(t)
	b.run(
		resource.TestStep{Config: b.provider + `
resource "redeliver_rabbitmq_exchange" "shop" {
  name            = "shop"
  type            = "headers"
  durable         = false
  auto_delete     = true
  internal        = true
  extra_arguments = { "alternate-exchange" = "amq.fanout", n = 5000, s = "5000", b = true, l = [1, "1"], m = { x = 1.5 } }
}
resource "redeliver_rabbitmq_binding" "shop" {
  source           = "amq.topic"
  destination      = redeliver_rabbitmq_exchange.shop.name
  destination_type = "exchange"
  routing_key      = "a.*"
  arguments        = { "x-match" = "all", n = 5000, s = "5000", l = [true, { a = 1 }] }
}
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic           = "orders"
  extra_arguments = { "x-max-length" = 5000, "x-made-up" = "5000" }
}
`},
		resource.TestStep{ResourceName: "redeliver_rabbitmq_exchange.shop", ImportState: true, ImportStateVerify: true},
		resource.TestStep{ResourceName: "redeliver_rabbitmq_binding.shop", ImportState: true, ImportStateVerify: true},
		resource.TestStep{ResourceName: "redeliver_rabbitmq_dead_letter_queue.orders", ImportState: true, ImportStateVerify: true},
	)
}
