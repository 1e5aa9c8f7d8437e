package provider

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// objects are everything in the vhost that RabbitMQ did not make itself, in order.
func (b *bundle) objects() []string {
	b.t.Helper()
	var found []struct {
		Source, Destination, Name string
		RoutingKey                string `json:"routing_key"`
	}
	var out []string
	for _, kind := range []string{"queue", "exchange", "binding"} {
		if err := json.Unmarshal(b.request("GET", kind+"s/%s", nil), &found); err != nil {
			b.t.Fatal(err)
		}
		for _, f := range found {
			switch {
			case kind == "binding" && f.Source != "":
				out = append(out, fmt.Sprintf("binding %s -> %s (%s)", f.Source, f.Destination, f.RoutingKey))
			case kind != "binding" && f.Name != "" && !strings.HasPrefix(f.Name, "amq."):
				out = append(out, kind+" "+f.Name)
			}
		}
		found = nil
	}
	slices.Sort(out)
	return out
}

func (b *bundle) mustHave(objects ...string) {
	b.t.Helper()
	slices.Sort(objects)
	if got := b.objects(); !slices.Equal(got, objects) {
		b.t.Errorf("the vhost has\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(objects, "\n  "))
	}
}

var addressable = regexp.MustCompile(`(?m)^resource "(redeliver_\w+)" "(\w+)"`)

// mustImport imports every resource of a configuration, by the ids in this working directory's state, into another
// one, and checks that there is nothing left to plan.
func (c *commandLine) mustImport(config string) {
	c.b.t.Helper()
	imports, n := "", 0
	state := c.state()
	for _, found := range addressable.FindAllStringSubmatch(config, -1) {
		address := found[1] + "." + found[2]
		imports += fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", address, state[address].Values["id"])
		n++
	}
	other := c.b.commandLine(config + imports)
	expect(c.b.t, other.plan(), fmt.Sprintf("Plan: %d to import, 0 to add, 0 to change, 0 to destroy", n))
}

// TestEveryConvention provisions everything a convention has, and looks at it on the broker.
func TestEveryConvention(t *testing.T) {
	for name, test := range map[string]struct {
		config  string
		objects []string
		// left is what a destroy leaves.
		left []string
	}{
		"redeliver": {
			config: `
resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }
resource "redeliver_rabbitmq_parked_queue" "orders" { topic = "orders" }
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic         = "orders"
  delays        = ["500ms", "2m"]
  jitter_shards = 2
  jitter_factor = 0.2
}
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  parked_queue      = redeliver_rabbitmq_parked_queue.orders.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.orders.queues
  bindings          = [{ exchange = "amq.topic", routing_key = "order.*" }, { exchange = "amq.fanout", routing_key = "" }]
}
`,
			objects: []string{
				"queue orders", "queue orders-dlq", "queue orders-parked", "queue orders-hold-500ms", "queue orders-hold-500ms.s1",
				"queue orders-hold-120s", "queue orders-hold-120s.s1", "exchange orders-retry",
				"binding orders-retry -> orders-dlq (orders-dlq)", "binding orders-retry -> orders-parked (orders-parked)",
				"binding orders-retry -> orders-hold-500ms (orders-hold-500ms)", "binding orders-retry -> orders-hold-500ms.s1 (orders-hold-500ms.s1)",
				"binding orders-retry -> orders-hold-120s (orders-hold-120s)", "binding orders-retry -> orders-hold-120s.s1 (orders-hold-120s.s1)",
				"binding amq.topic -> orders (order.*)", "binding amq.fanout -> orders ()",
			},
		},
		"shove with a consumer group and a dead-letter queue of another name": {
			config: `
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic          = "orders"
  name           = "the graveyard"
  convention     = "shove"
  consumer_group = "eu"
}
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic          = "orders"
  delays         = ["5s", "30s"]
  convention     = "shove"
  consumer_group = "eu"
}
resource "redeliver_rabbitmq_topic" "orders" {
  name                = "orders"
  convention          = "shove"
  consumer_group      = "eu"
  dead_letter_queue   = redeliver_rabbitmq_dead_letter_queue.orders.name
  hold_queues         = redeliver_rabbitmq_hold_ladder.orders.queues
}
`,
			objects: []string{"queue orders", "queue the graveyard", "queue orders-eu-hold-5s", "queue orders-eu-hold-30s"},
		},
		"acemq, whose shared exchanges stay": {
			config: `
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic      = "orders"
  convention = "acemq"
}
resource "redeliver_rabbitmq_parked_queue" "orders" {
  topic      = "orders"
  convention = "acemq"
}
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic      = "orders"
  delays     = ["1s", "1m30s", "5m"]
  convention = "acemq"
}
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  convention        = "acemq"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  parked_queue      = redeliver_rabbitmq_parked_queue.orders.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.orders.queues
}
`,
			objects: []string{
				"queue orders", "queue orders.dlq", "queue orders.parked", "queue orders.retry.1s", "queue orders.retry.90s", "queue orders.retry.5m",
				"exchange acemq.dlx", "exchange acemq.retry", "binding acemq.dlx -> orders.dlq (orders.dlq)", "binding acemq.dlx -> orders.parked (orders.parked)",
				"binding acemq.retry -> orders (orders)",
			},
			left: []string{"exchange acemq.dlx", "exchange acemq.retry"},
		},
		"rabbitkit, one hold queue per attempt and shard, on a classic work queue": {
			config: `
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic           = "orders"
  convention      = "rabbitkit"
  work_queue_type = "classic"
}
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic         = "orders"
  delays        = ["1s", "5s"]
  convention    = "rabbitkit"
  jitter_shards = 3
  jitter_factor = 0.5
}
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  convention        = "rabbitkit"
  queue_type        = "classic"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.orders.queues
  retry             = { last_delay_repeats = true }
  extra_arguments   = { "x-max-length" = 10000 }
}
`,
			objects: []string{
				"queue orders", "queue orders.dlq", "queue orders.retry.1", "queue orders.retry.1.s1", "queue orders.retry.1.s2",
				"queue orders.retry.2", "queue orders.retry.2.s1", "queue orders.retry.2.s2",
			},
		},
		"queuey, a topic without a ladder": {
			config: `
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic      = "orders"
  convention = "queuey"
}
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  convention        = "queuey"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  retry             = { delays = ["5s", "1m"] }
  max_priority      = 5
}
`,
			objects: []string{"queue orders", "queue orders.dead"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			config := b.provider + losing(test.config)
			c := b.commandLine(config)
			expectNot(t, c.plan(), "known after apply")
			c.apply()
			b.mustHave(test.objects...)
			expect(t, c.plan(), "No changes")
			// What an import cannot tell is what only the configuration says: then it is an update in place.
			if !strings.Contains(config, "retry  ") {
				c.mustImport(b.provider + test.config)
			}
			c.apply("-destroy")
			b.mustHave(test.left...)
		})
	}
}

func TestConventionIsTheProvidersUnlessTheResourceSaysOtherwise(t *testing.T) {
	b := setup(t)
	provider := strings.Replace(b.provider, `provider "redeliver" {`, "provider \"redeliver\" {\n  convention = \"shove\"\n  consumer_group = \"eu\"\n", 1)
	config := provider + losing(`
resource "redeliver_rabbitmq_dead_letter_queue" "a" { topic = "a" }
resource "redeliver_rabbitmq_dead_letter_queue" "b" {
  topic      = "b"
  convention = "acemq"
}
`)
	c := b.commandLine(config)
	c.apply()
	b.mustExist("queues/%s/a-eu-dlq", "queues/%s/b.dlq")
	expect(t, c.plan(), "No changes")
	// Another default is another object.
	c.configure(strings.Replace(config, `convention = "shove"`, `convention = "redeliver"`, 1))
	out := c.apply()
	expect(t, out, `- consumer_group = "eu" -> null # forces replacement`, `~ convention = "shove" -> "redeliver" # forces replacement`, "1 added, 0 changed, 1 destroyed")
	b.mustExist("queues/%s/a-dlq")
	b.mustBeGone("queues/%s/a-eu-dlq")
}
