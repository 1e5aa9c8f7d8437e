package provider

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// declared is what an application declares over AMQP when it starts.
type declared struct {
	queues    map[string]amqp091.Table
	exchanges map[string]string // types by name
	bindings  [][3]string       // source, key, queue
}

func (b *bundle) declare(d declared) {
	b.t.Helper()
	ch := brokertest.Channel(b.t, b.broker, b.vhost)
	for name, kind := range d.exchanges {
		if err := ch.ExchangeDeclare(name, kind, true, false, false, false, nil); err != nil {
			b.t.Fatal(err)
		}
	}
	for name, arguments := range d.queues {
		if _, err := ch.QueueDeclare(name, true, false, false, false, arguments); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, binding := range d.bindings {
		if err := ch.QueueBind(binding[2], binding[1], binding[0], false, nil); err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestImportWritesAConfiguration imports the topologies that other tools made, has the command line write the
// configuration, and finds nothing to change: neither when they are imported nor afterwards.
func TestImportWritesAConfiguration(t *testing.T) {
	quorum := func(more amqp091.Table) amqp091.Table {
		table := amqp091.Table{"x-queue-type": "quorum"}
		for key, value := range more {
			table[key] = value
		}
		return table
	}
	hold := func(ttl int32, exchange, key string) amqp091.Table {
		return amqp091.Table{"x-message-ttl": ttl, "x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": key}
	}
	kitHold := func(ttl int32) amqp091.Table {
		table := hold(ttl, "", "orders")
		table["x-queue-type"] = "classic"
		return table
	}
	const all = "dead_letter_queue=orders hold_ladder=orders topic=orders"
	for name, test := range map[string]struct {
		params, imports string
		objects         declared
		says            []string
	}{
		"shove": {
			params: "convention=shove", imports: all,
			objects: declared{queues: map[string]amqp091.Table{
				"orders":     {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders-dlq"},
				"orders-dlq": nil, "orders-hold-5s": hold(5000, "", "orders"), "orders-hold-30s": hold(30000, "", "orders"),
			}},
			says: []string{`convention`, `"shove"`},
		},
		"shove with a consumer group": {
			params: "convention=shove&consumer_group=eu", imports: all,
			objects: declared{queues: map[string]amqp091.Table{
				"orders":        {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders-eu-dlq"},
				"orders-eu-dlq": nil, "orders-eu-hold-5s": hold(5000, "", "orders"),
			}},
		},
		"acemq": {
			params: "convention=acemq", imports: all + " parked_queue=orders",
			objects: declared{
				exchanges: map[string]string{"acemq.retry": "direct", "acemq.dlx": "direct"},
				queues: map[string]amqp091.Table{
					"orders":     quorum(amqp091.Table{"x-dead-letter-exchange": "acemq.dlx", "x-dead-letter-routing-key": "orders.dlq"}),
					"orders.dlq": nil, "orders.parked": nil, "orders.retry.500ms": hold(500, "acemq.retry", "orders"), "orders.retry.90s": hold(90000, "acemq.retry", "orders"),
				},
				bindings: [][3]string{{"acemq.retry", "orders", "orders"}, {"acemq.dlx", "orders.dlq", "orders.dlq"}, {"acemq.dlx", "orders.parked", "orders.parked"}},
			},
		},
		"rabbitkit on quorum queues": {
			params: "convention=rabbitkit", imports: all,
			objects: declared{queues: map[string]amqp091.Table{
				"orders":     quorum(amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dlq"}),
				"orders.dlq": quorum(nil), "orders.retry.1": kitHold(1000), "orders.retry.2": kitHold(5000), "orders.retry.3": kitHold(30000),
			}},
		},
		"rabbitkit on classic queues with jitter": {
			params: "convention=rabbitkit", imports: all,
			objects: declared{queues: map[string]amqp091.Table{
				"orders":     {"x-queue-type": "classic", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dlq"},
				"orders.dlq": {"x-queue-type": "classic"}, "orders.retry.1": kitHold(1000), "orders.retry.1.s1": kitHold(1200), "orders.retry.2": kitHold(5000), "orders.retry.2.s1": kitHold(6000),
			}},
		},
		"queuey, whose hold queues are its applications' own": {
			params: "convention=queuey", imports: "dead_letter_queue=orders topic=orders",
			objects: declared{queues: map[string]amqp091.Table{"orders": {"x-max-priority": int32(10)}, "orders.dead": nil}},
			says:    []string{"max_retries", "0"},
		},
		"by hand": {
			imports: all + " parked_queue=orders",
			objects: declared{
				exchanges: map[string]string{"orders-retry": "direct", "shop": "topic"},
				queues: map[string]amqp091.Table{
					"orders": quorum(amqp091.Table{
						"x-dead-letter-exchange": "orders-retry", "x-dead-letter-routing-key": "orders-dlq", "x-dead-letter-strategy": "at-least-once",
						"x-overflow": "reject-publish", "x-delivery-limit": int32(50), "x-max-length": int32(10000), "x-queue-leader-locator": "balanced",
					}),
					"orders-dlq": quorum(amqp091.Table{"x-delivery-limit": int32(1000000)}), "orders-parked": quorum(amqp091.Table{"x-delivery-limit": int32(1000000)}),
					"orders-hold-10s": quorum(amqp091.Table{
						"x-message-ttl": int32(10000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
					}),
				},
				bindings: [][3]string{
					{"orders-retry", "orders-dlq", "orders-dlq"},
					{"orders-retry", "orders-parked", "orders-parked"},
					{"orders-retry", "orders-hold-10s", "orders-hold-10s"},
					{"shop", "order.*", "orders"},
				},
			},
			says: []string{"x-max-length", "10000", "x-queue-leader-locator", "balanced"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.declare(test.objects)
			before := b.objects()
			config, n := b.provider, 0
			for _, one := range strings.Fields(test.imports) {
				kind, topic, _ := strings.Cut(one, "=")
				id := b.idIn(topic)
				if test.params != "" {
					id += "?" + test.params
				}
				config += fmt.Sprintf("import {\n  to = redeliver_rabbitmq_%s.orders\n  id = %q\n}\n", kind, id)
				n++
			}
			c := b.commandLine(config)
			out := c.generate()
			expect(t, out, fmt.Sprintf("Plan: %d to import, 0 to add, 0 to change, 0 to destroy", n))
			generated, err := os.ReadFile(filepath.Join(c.dir, "generated.tf"))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, string(generated), test.says...)
			c.apply()
			expect(t, c.plan("-detailed-exitcode"), "No changes")
			b.mustHave(before...)
		})
	}
}

// generate plans with the command line writing a configuration for what is imported.
func (c *commandLine) generate() string {
	c.b.t.Helper()
	out, err := c.try("plan", "-no-color", "-input=false", "-generate-config-out=generated.tf")
	if err != nil {
		generated, _ := os.ReadFile(filepath.Join(c.dir, "generated.tf"))
		c.b.t.Fatalf("%v\n%s\n%s", err, out, generated)
	}
	return out
}

// TestImportOfALadderWithAGap: a hold queue that a convention numbers and that is missing leaves a gap, whose delay the
// import id says.
func TestImportOfALadderWithAGap(t *testing.T) {
	b := setup(t)
	hold := func(ttl int32) amqp091.Table {
		return amqp091.Table{"x-queue-type": "classic", "x-message-ttl": ttl, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}
	}
	b.declare(declared{queues: map[string]amqp091.Table{"orders.retry.1": hold(1000), "orders.retry.3": hold(30000)}})
	imports := func(id string) string {
		return b.provider + fmt.Sprintf("import {\n  to = redeliver_rabbitmq_hold_ladder.orders\n  id = %q\n}\n", id)
	}
	id := b.idIn("orders?convention=rabbitkit")
	c := b.commandLine(imports(id))
	expect(t, c.generate(), "1 to import, 0 to add, 0 to change", `Warning: Hold queue "orders.retry.3" is not imported`, "&delays=1s,MISSING,30s")

	c = b.commandLine(imports(id + "&delays=1s,5s,30s"))
	expect(t, c.generate(), `+ "orders.retry.2"`, "Plan: 1 to import, 0 to add, 1 to change, 0 to destroy")
	c.apply()
	b.mustHave("queue orders.retry.1", "queue orders.retry.2", "queue orders.retry.3")
	expect(t, c.plan("-detailed-exitcode"), "No changes")
	expect(t, b.commandLine(imports(id+"&delays=often")).planFails("-generate-config-out=x.tf"), "Invalid import id", `Duration "often"`)
}
