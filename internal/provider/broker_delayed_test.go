package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// delayed is a topic whose retries the broker delays.
func delayed(shortest, longest, more string) string {
	return strings.Replace(pair(more), `{ delays = ["5s"] }`, fmt.Sprintf(`{ strategy = "broker_delayed", delay_min = %q, delay_max = %q }`, shortest, longest), 1)
}

const viaArguments = `settings_via = "arguments"`

func TestBrokerDelayed(t *testing.T) {
	b := setup(t)
	config := func(shortest, longest string) string {
		return b.provider + losing(delayed(shortest, longest, viaArguments))
	}
	c := b.commandLine(config("1s", "1m"))
	if !brokertest.HasVersion(b.broker, topology.BrokerDelayedSince) {
		// An older broker would take the arguments and do nothing.
		expect(t, c.planFails(), "Error: The broker cannot carry the topic", "redeliver_rabbitmq_topic.orders",
			`Retry strategy "broker_delayed" of topic "orders" needs RabbitMQ 4.3 or later and this broker is `+b.broker.Version(), `use "in_place"`, `"republish" or "hybrid" with hold queues`)
		b.mustHave()
		return
	}
	expectNot(t, c.plan(), "known after apply")
	c.apply()
	expect(t, c.plan(), "No changes")
	want := map[string]any{"x-delayed-retry-type": "all", "x-delayed-retry-min": 1000.0, "x-delayed-retry-max": 60000.0}
	for key, value := range want {
		if got := b.argumentsOf("orders")[key]; got != value {
			t.Errorf("%s is %v, want %v", key, got, value)
		}
	}
	manifest, err := topology.DecodeManifest([]byte(fmt.Sprint(c.state()["redeliver_rabbitmq_topic.orders"].Values["manifest"])))
	if err != nil || manifest.Retry.Strategy != topology.BrokerDelayed || manifest.Retry.DelayMin.String() != "1s" || manifest.Retry.DelayMax.String() != "1m" {
		t.Errorf("the manifest's retry policy is %+v, %v", manifest.Retry, err)
	}
	c.mustImport(b.provider + delayed("1s", "1m", viaArguments))

	// Every argument of it that differs shows, one that the broker takes without a word included.
	arguments := b.argumentsOf("orders")
	arguments["x-delayed-retry-min"], arguments["x-delayed-retry-type"] = "soon", "disabled"
	b.remake("orders", arguments)
	out := c.apply()
	expect(t, out, `~ "x-delayed-retry-min" = "\"soon\"" -> "1000" # forces replacement`, `~ "x-delayed-retry-type" = "\"disabled\"" -> "\"all\"" # forces replacement`,
		"1 added, 0 changed, 1 destroyed")
	expect(t, c.plan(), "No changes")

	c.configure(config("2s", "1m"))
	expect(t, c.apply(), `~ "x-delayed-retry-min" = "1000" -> "2000" # forces replacement`, `~ delay_min = "1s" -> "2s"`, "1 added, 0 changed, 1 destroyed")
	c.configure(b.provider + losing(pair(viaArguments)))
	expect(t, c.apply(), `- "x-delayed-retry-max" = "60000" -> null # forces replacement`, "1 added, 0 changed, 1 destroyed")
	expect(t, c.plan(), "No changes")
}

// A broker that a plan could not ask is asked before anything is made.
func TestBrokerDelayedIsRefusedBeforeAnythingIsMade(t *testing.T) {
	b := setup(t)
	// The address is only known while it is applied, so that the plan has nobody to ask.
	late := strings.Replace(b.provider, fmt.Sprintf("[%q]", b.broker.ManagementURL()), "[terraform_data.endpoint.output]", 1)
	c := b.commandLine(late + pending("endpoint", fmt.Sprintf("%q", b.broker.ManagementURL())) + delayed("1s", "1m", "") + `
resource "redeliver_rabbitmq_topic" "first" {
  name               = "first"
  allow_message_loss = true
  retry              = { strategy = "broker_delayed", delay_min = "1s", delay_max = "1m" }
}
`)
	if brokertest.HasVersion(b.broker, topology.BrokerDelayedSince) {
		c.apply()
		b.mustExist("queues/%s/orders", "queues/%s/first")
		return
	}
	out := c.applyFails()
	expect(t, out, "Plan: 4 to add", "Error: The broker cannot carry the topic", "needs RabbitMQ 4.3 or later")
	b.mustBeGone("queues/%s/orders", "queues/%s/first")
}

// TestBrokerDelayedViaPolicy: the delays are in a policy unless something else is said, and change in place.
func TestBrokerDelayedViaPolicy(t *testing.T) {
	b := setup(t)
	config := func(shortest, longest string) string { return b.provider + delayed(shortest, longest, "") }
	c := b.commandLine(config("400ms", "2s"))
	if !brokertest.HasVersion(b.broker, topology.BrokerDelayedSince) {
		expect(t, c.planFails(), "needs RabbitMQ 4.3 or later")
		return
	}
	c.apply()
	expect(t, c.plan(), "No changes")
	b.sets("orders", `{"dead-letter-exchange":"orders-retry","dead-letter-routing-key":"orders-dlq","dead-letter-strategy":"at-least-once",`+
		`"delayed-retry-max":2000,"delayed-retry-min":400,"delayed-retry-type":"all","delivery-limit":50,"overflow":"reject-publish"}`)
	c.mustImport(config("400ms", "2s"))

	// comesBack rejects a message and measures how long it is away.
	ch := brokertest.Channel(t, b.broker, b.vhost)
	b.publish("orders", 1)
	deliveries, err := ch.Consume("orders", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	next := <-deliveries
	comesBack := func() time.Duration {
		rejected := time.Now()
		if err := next.Reject(true); err != nil {
			t.Fatal(err)
		}
		next = <-deliveries
		return time.Since(rejected)
	}
	if away := comesBack(); away < 350*time.Millisecond || away > 1500*time.Millisecond {
		t.Errorf("it was away for %s and not for 400ms", away)
	}
	// Changed under a queue with a message in it.
	c.configure(config("1600ms", "1600ms"))
	expect(t, c.apply(), `~ "delayed-retry-max" = "2000" -> "1600"`, `~ "delayed-retry-min" = "400" -> "1600"`, "0 added, 1 changed, 0 destroyed")
	if away := comesBack(); away < 1500*time.Millisecond || away > 5*time.Second {
		t.Errorf("it was away for %s and not for 1.6s", away)
	}
	// Another strategy is a change in place as well.
	c.configure(b.provider + pair(""))
	expect(t, c.apply(), `- "delayed-retry-max" = "1600" -> null`, "0 added, 1 changed, 0 destroyed")
	if away := comesBack(); away > time.Second {
		t.Errorf("without a delay it was away for %s", away)
	}
	if err := next.Ack(false); err != nil {
		t.Fatal(err)
	}
	if err := ch.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, c.plan(), "No changes")
	c.must("destroy", "-auto-approve")
	if left := b.policies(); len(left) > 0 {
		t.Errorf("policies are left: %v", left)
	}
}

// What the queue's settings follow from is not known while something is applied: arguments are replaced, a policy changes.
func TestBrokerDelayedThatIsNotKnownYet(t *testing.T) {
	b := setup(t)
	config := func(shortest, more string) string {
		return b.provider + pending("shortest", fmt.Sprintf("%q", shortest)) +
			losing(strings.Replace(delayed("X", "1m", more), `"X"`, "terraform_data.shortest.output", 1))
	}
	c := b.commandLine(config("1s", viaArguments))
	if !brokertest.HasVersion(b.broker, topology.BrokerDelayedSince) {
		expect(t, c.applyFails(), "needs RabbitMQ 4.3 or later")
		b.mustBeGone("queues/%s/orders")
		return
	}
	c.apply()
	expect(t, c.plan(), "No changes")
	c.configure(config("2s", viaArguments))
	expect(t, c.apply(), "2 added, 0 changed, 2 destroyed")
	if got := b.argumentsOf("orders")["x-delayed-retry-min"]; got != 2000.0 {
		t.Errorf("x-delayed-retry-min is %v", got)
	}
	expect(t, c.plan(), "No changes")

	c.configure(config("2s", `settings_via = "policy"`))
	c.apply()
	c.configure(config("3s", `settings_via = "policy"`))
	expect(t, c.apply(), "1 added, 1 changed, 1 destroyed")
	if got := b.policies()[topology.OwnPolicyName("orders")].Definition["delayed-retry-min"]; got != 3000.0 {
		t.Errorf("delayed-retry-min is %v", got)
	}
	expect(t, c.plan(), "No changes")
}
