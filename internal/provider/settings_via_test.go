package provider

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

var eachResource = regexp.MustCompile(`(?m)^(resource "redeliver_rabbitmq_\w+" "\w+" \{)`)

// viaPolicy has every resource keep its settings in policies; more goes into each of them.
func viaPolicy(config string, more ...string) string {
	config = oneLine.ReplaceAllString(config, "$1\n  $2\n}")
	return eachResource.ReplaceAllString(config, "$1\n  settings_via = \"policy\"\n  "+strings.Join(more, "\n  "))
}

// livePolicy is a policy as the management API shows it.
type livePolicy struct {
	Name       string         `json:"name"`
	Pattern    string         `json:"pattern"`
	Priority   int            `json:"priority"`
	Definition map[string]any `json:"definition"`
}

// policies are those of the vhost, by name.
func (b *bundle) policies() map[string]livePolicy {
	b.t.Helper()
	var all []livePolicy
	if err := json.Unmarshal(b.request("GET", "policies/%s", nil), &all); err != nil {
		b.t.Fatal(err)
	}
	out := map[string]livePolicy{}
	for _, p := range all {
		out[p.Name] = p
	}
	return out
}

// sets checks what a queue's own policy sets, as JSON.
func (b *bundle) sets(queue, want string) {
	b.t.Helper()
	got, err := json.Marshal(b.policies()[topology.OwnPolicyName(queue)].Definition)
	if err != nil || string(got) != want {
		b.t.Errorf("the policy of %q sets %s (%v), want %s", queue, got, err, want)
	}
}

func (b *bundle) changePolicy(queue string, change func(definition map[string]any)) {
	b.t.Helper()
	name := topology.OwnPolicyName(queue)
	p := b.policies()[name]
	change(p.Definition)
	b.request("PUT", "policies/%s/"+url.PathEscape(name), map[string]any{"pattern": p.Pattern, "apply-to": "queues", "priority": p.Priority, "definition": p.Definition})
}

func TestSettingsViaPolicyChangeInPlace(t *testing.T) {
	b := setup(t)
	config := func(more string) string { return b.provider + viaPolicy(orders(more)) }
	c := b.commandLine(config(""))
	expectNot(t, c.plan(), "known after apply")
	c.apply()
	expect(t, c.plan(), "No changes")
	for _, queue := range []string{"orders", "orders-dlq", "orders-parked", "orders-hold-5s"} {
		if got := b.argumentsOf(queue); len(got) != 1 || got["x-queue-type"] != "quorum" {
			t.Errorf("the arguments of %q are %v", queue, got)
		}
	}
	b.sets("orders", `{"dead-letter-exchange":"orders-retry","dead-letter-routing-key":"orders-dlq","dead-letter-strategy":"at-least-once","delivery-limit":50,"overflow":"reject-publish"}`)
	b.sets("orders-hold-5s", `{"dead-letter-exchange":"","dead-letter-routing-key":"orders","dead-letter-strategy":"at-least-once","message-ttl":5000,"overflow":"reject-publish"}`)
	b.sets("orders-dlq", `{"delivery-limit":1000000}`)
	manifest, err := topology.DecodeManifest([]byte(fmt.Sprint(c.state()["redeliver_rabbitmq_topic.orders"].Values["manifest"])))
	if err != nil || manifest.WorkQueue.Arguments["x-dead-letter-exchange"] != "orders-retry" {
		t.Errorf("the manifest's arguments are %v, %v", manifest.WorkQueue.Arguments, err)
	}

	c.mustImport(config(""))

	b.publish("orders", 20)
	c.configure(config("delivery_limit = 77\n extra_arguments = { \"x-max-length\" = 1000 }"))
	out := c.apply()
	expect(t, out, `~ "delivery-limit" = "50" -> "77"`, `+ "max-length" = "1000"`, `Warning: Policy "redeliver:orders" differs from the configuration`, "changed in place",
		"delivery-limit: want 77, live 50: the broker takes a message away after 50 redeliveries instead of 77", "0 added, 1 changed, 0 destroyed")
	expectNot(t, out, "forces replacement", "holds messages")
	b.sets("orders", `{"dead-letter-exchange":"orders-retry","dead-letter-routing-key":"orders-dlq","dead-letter-strategy":"at-least-once","delivery-limit":77,"max-length":1000,"overflow":"reject-publish"}`)
	if n := brokertest.Depth(t, b.broker, b.vhost, "orders"); n != 20 {
		t.Errorf("%d messages are left of 20", n)
	}
	expect(t, c.plan(), "No changes")

	// A message that is rejected goes where the policy says.
	ch := brokertest.Channel(t, b.broker, b.vhost)
	d, ok, err := ch.Get("orders", false)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := d.Reject(false); err != nil {
		t.Fatal(err)
	}
	brokertest.WaitDepth(t, b.broker, b.vhost, "orders-dlq", 1)

	// Neither another dead-letter queue nor none takes a new queue.
	c.configure(config("delivery_limit = 77") + viaPolicy("\nresource \"redeliver_rabbitmq_dead_letter_queue\" \"other\" {\n  topic = \"orders\"\n  name = \"orders-failed\"\n}\n"))
	c.apply()
	c.configure(strings.Replace(config("delivery_limit = 77")+viaPolicy("\nresource \"redeliver_rabbitmq_dead_letter_queue\" \"other\" {\n  topic = \"orders\"\n  name = \"orders-failed\"\n}\n"),
		"redeliver_rabbitmq_dead_letter_queue.orders.name", "redeliver_rabbitmq_dead_letter_queue.other.name", 1))
	expect(t, c.apply(), `~ "dead-letter-routing-key" = "\"orders-dlq\"" -> "\"orders-failed\""`, "0 added, 1 changed, 0 destroyed")
	expect(t, c.plan(), "No changes")

	for _, queue := range []string{"orders", "orders-dlq", "orders-failed"} {
		brokertest.Drain(t, b.broker, b.vhost, queue)
	}
	c.must("destroy", "-auto-approve")
	b.mustHave()
	if left := b.policies(); len(left) > 0 {
		t.Errorf("policies are left: %v", left)
	}
}

func TestDriftOfPoliciesIsRepaired(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + viaPolicy(losing(orders(""))))
	c.apply()
	want := b.policies()
	b.changePolicy("orders", func(d map[string]any) {
		delete(d, "dead-letter-exchange")
		d["delivery-limit"] = 7
		d["expires"] = 999_999_999
	})
	b.request("DELETE", "policies/%s/"+url.PathEscape(topology.OwnPolicyName("orders-hold-5s")), nil)
	b.request("PUT", "policies/%s/"+url.PathEscape(topology.OwnPolicyName("orders-dlq")), map[string]any{
		"pattern": "^orders-dlq", "apply-to": "all", "priority": 1, "definition": map[string]any{"delivery-limit": 1000000},
	})
	out := c.plan()
	expect(t, out, `~ "apply-to" = "\"all\"" -> "\"queues\""`, `~ "pattern" = "\"^orders-dlq\"" -> "\"^orders-dlq$\""`, `~ "priority" = "1" -> "1000"`)
	expect(t, out, `+ "dead-letter-exchange" = "\"orders-retry\""`, `~ "delivery-limit" = "7" -> "50"`, `- "expires" = "999999999" -> null`)
	expect(t, out, `+ "orders-hold-5s" = {`, `+ "message-ttl" = "5000"`)
	expect(t, out, `dead-letter-exchange: want "orders-retry", live absent: rejected and expired messages are discarded instead of going to exchange "orders-retry"`)
	expect(t, out, `message-ttl: want 5000, live absent: messages stay here until they are consumed instead of leaving after 5s: what is in a hold queue never goes home`)
	expectNot(t, out, "forces replacement")
	expect(t, c.apply(), "0 added, 3 changed, 0 destroyed")
	if got := b.policies(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("repaired to %v, want %v", got, want)
	}
	expect(t, c.plan(), "No changes")

	// A queue that is deleted by hand is made again under its policy.
	b.request("DELETE", "queues/%s/orders", nil)
	expect(t, c.apply(), `Warning: Policy "redeliver:orders" is left of a queue that is gone`, "1 added, 0 changed, 0 destroyed")
	expect(t, c.plan(), "No changes")
	// One that somebody else made with arguments has to go: policies do not take these away.
	b.remake("orders", map[string]any{"x-queue-type": "quorum", "x-delivery-limit": 5})
	expect(t, c.apply(), `- "x-delivery-limit" = "5" -> null # forces replacement`, "1 added, 0 changed, 1 destroyed")
	expect(t, c.plan(), "No changes")
}

func TestOtherPoliciesBesideAQueuesOwn(t *testing.T) {
	b := setup(t)
	config := func(more ...string) string { return b.provider + viaPolicy(losing(pair("")), more...) }
	b.policy("policies", "everything", ".*", map[string]any{"max-length": 5000, "overflow": "drop-head"})
	b.policy("policies", "lazy", ".*", map[string]any{"queue-mode": "lazy"}) // applies to no quorum queue
	c := b.commandLine(config())
	expect(t, c.planFails(), "Error: Another policy matches the queue", `Policy "everything" (pattern ".*", priority 1, which sets max-length, overflow) matches queue "orders-dlq"`,
		"RabbitMQ applies only one policy to a queue, and the queue's own would displace what that one sets", "set merge_policy = true")
	b.mustHave()

	c.configure(config("merge_policy = true"))
	out := c.apply()
	expect(t, out, "Warning: A merged policy contradicts the configuration", `queue "orders": policy "everything" sets overflow to "drop-head", and the queue's own policy keeps "reject-publish"`)
	b.sets("orders", `{"dead-letter-exchange":"orders-retry","dead-letter-routing-key":"orders-dlq","dead-letter-strategy":"at-least-once","delivery-limit":50,"max-length":5000,"overflow":"reject-publish"}`)
	b.sets("orders-dlq", `{"delivery-limit":1000000,"max-length":5000,"overflow":"drop-head"}`)
	expect(t, c.plan(), "No changes")
	c.mustImport(b.provider + viaPolicy(`resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }`+"\n", "merge_policy = true"))

	// Drift is that of both.
	b.request("PUT", "policies/%s/everything", map[string]any{"pattern": ".*", "apply-to": "queues", "priority": 2000, "definition": map[string]any{"max-length": 6000}})
	expect(t, c.plan(), "max-length: want 6000, live 5000", `overflow: want absent, live "drop-head"`, "priority: want 2001, live 1000")
	c.apply()
	if p := b.policies()[topology.OwnPolicyName("orders")]; p.Priority != 2001 || p.Definition["max-length"] != 6000.0 {
		t.Errorf("the policy is %+v", p)
	}
	expect(t, c.plan(), "No changes")

	// One that comes later and would take the settings away is refused; one that the queue's own displaces is said.
	c.configure(config())
	expect(t, c.planFails(), `Policy "everything"`, "that one would displace the queue's own, and with it the queue's settings")
	b.policy("policies", "everything", ".*", map[string]any{"max-length": 6000})
	expect(t, c.plan(), `- "max-length" = "6000" -> null`, "Warning: Another policy is displaced", "comes before it")
	c.apply()
	c.configure(config(`acknowledge_warnings = ["policy"]`))
	expectNot(t, c.plan(), "Another policy is displaced")
	c.apply()
	expect(t, c.plan(), "No changes")
}

func TestPoliciesTakeATag(t *testing.T) {
	b := setup(t)
	user, password := brokertest.User(t, b.broker, b.vhost, ".*", ".*", ".*", "management")
	as := b.blockAt(b.broker.ManagementURL(), user, password, "")
	c := b.commandLine(as + viaPolicy(pair("")))
	expect(t, c.planFails(), "Error: Policies cannot be written", `lacks the tag "policymaker"`, "set_user_tags NAME management policymaker")
	b.mustHave()

	// What is there is planned by whoever may read, and destroyed by nobody who would leave half of it.
	c.configure(b.provider + viaPolicy(pair("")))
	c.apply()
	c.configure(as + viaPolicy(pair("")))
	expect(t, c.plan(), "No changes")
	out, err := c.try("destroy", "-auto-approve", "-no-color")
	if err == nil {
		t.Error("destroyed")
	}
	expect(t, out, `lacks the tag "policymaker"`, "nothing was changed")
	b.mustExist("queues/%s/orders")

	maker, secret := brokertest.User(t, b.broker, b.vhost, ".*", ".*", ".*", "policymaker")
	c.configure(b.blockAt(b.broker.ManagementURL(), maker, secret, "") + viaPolicy(pair("delivery_limit = 60")))
	expect(t, c.apply(), "0 added, 1 changed, 0 destroyed")
	c.must("destroy", "-auto-approve")
	b.mustHave()
}

// A create that fails after the policy was written leaves no policy.
func TestPolicyOfAQueueThatIsNotMade(t *testing.T) {
	b := setup(t)
	user, password := brokertest.User(t, b.broker, b.vhost, "^orders-retry$", ".*", ".*", "policymaker")
	c := b.commandLine(b.blockAt(b.broker.ManagementURL(), user, password, "") + viaPolicy(`resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }`+"\n"))
	expect(t, c.applyFails(), `Cannot create queue "orders-dlq"`)
	b.mustHave()
	if left := b.policies(); len(left) > 0 {
		t.Errorf("policies are left: %v", left)
	}
}

func TestSwitchingSettingsViaReplaces(t *testing.T) {
	b := setup(t)
	arguments := b.provider + shovePair("")
	policy := b.provider + viaPolicy(shovePair(""))
	c := b.commandLine(arguments)
	c.apply()
	b.publish("orders", 3)
	b.waitCounted("orders", 3)
	c.configure(policy)
	expect(t, c.plan(), "redeliver_rabbitmq_topic.orders must be replaced", `~ settings_via = "arguments" -> "policy" # forces replacement`, `Warning: Queue "orders" holds messages`)
	expect(t, c.applyFails(), "Could not delete the topic", `queue "orders"`)
	if n := brokertest.Depth(t, b.broker, b.vhost, "orders"); n != 3 || len(b.argumentsOf("orders")) < 2 {
		t.Errorf("%d messages, %v", n, b.argumentsOf("orders"))
	}
	brokertest.Drain(t, b.broker, b.vhost, "orders")
	c.apply()
	expect(t, c.plan(), "No changes")
	b.sets("orders", `{"dead-letter-exchange":"","dead-letter-routing-key":"orders-dlq"}`)

	// Without the attribute it stays what it is; back takes another replacement.
	c.configure(arguments)
	expect(t, c.plan(), "No changes")
	c.configure(b.provider + strings.ReplaceAll(viaPolicy(shovePair("")), `"policy"`, `"arguments"`))
	expect(t, c.apply(), `~ settings_via = "policy" -> "arguments" # forces replacement`)
	expect(t, c.plan(), "No changes")
	if left := b.policies(); len(left) > 0 {
		t.Errorf("policies are left: %v", left)
	}
}

// What waits in a hold queue while its delay changes comes home.
func TestHoldQueuesWhoseDelayChangesInPlace(t *testing.T) {
	b := setup(t)
	config := func(delay string) string {
		return b.provider + viaPolicy(fmt.Sprintf(`
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic      = "orders"
  convention = "rabbitkit"
  delays     = [%q]
}
resource "redeliver_rabbitmq_topic" "orders" {
  name               = "orders"
  convention         = "rabbitkit"
  hold_queues        = redeliver_rabbitmq_hold_ladder.orders.queues
  retry              = { strategy = "republish", max_retries = 1 }
  allow_message_loss = true
}
`, delay))
	}
	c := b.commandLine(config("3s"))
	c.apply()
	b.publish("orders.retry.1", 50)
	c.configure(config("1s"))
	expect(t, c.apply(), `~ "message-ttl" = "3000" -> "1000"`, "0 added, 2 changed, 0 destroyed")
	b.publish("orders.retry.1", 50)
	brokertest.WaitDepth(t, b.broker, b.vhost, "orders", 100)
	c.configure(config("2s"))
	c.apply()
	b.publish("orders.retry.1", 50)
	brokertest.WaitDepth(t, b.broker, b.vhost, "orders", 150)
	expect(t, c.plan(), "No changes")
	brokertest.Drain(t, b.broker, b.vhost, "orders")
	c.must("destroy", "-auto-approve")
	b.mustHave()
}

func TestShardsWithPolicies(t *testing.T) {
	b := withPlugin(t)
	config := func(more string) string {
		return b.provider + viaPolicy(fmt.Sprintf(`
resource "redeliver_rabbitmq_topic" "orders" {
  name               = "orders"
  convention         = "shove"
  sequenced          = true
  sequence_shards    = 2
  retry              = { delays = ["5s"] }
  allow_message_loss = true
  %s
}
`, more))
	}
	c := b.commandLine(config(`extra_arguments = { "x-max-length" = 100 }`))
	c.apply()
	expect(t, c.plan(), "No changes")
	b.sets("orders-seq-1", `{"max-length":100}`)
	c.configure(config(`extra_arguments = { "x-max-length" = 200 }`))
	expect(t, c.apply(), `~ "orders-seq-0" = { ~ "max-length" = "100" -> "200"`, "0 added, 1 changed, 0 destroyed")
	b.request("DELETE", "queues/%s/orders-seq-1", nil)
	c.apply()
	expect(t, c.plan(), "No changes")
	c.configure(config(""))
	expect(t, c.apply(), `- "max-length" = "200"`, "0 added, 1 changed, 0 destroyed")
	if left := b.policies(); len(left) > 0 {
		t.Errorf("policies are left: %v", left)
	}
}
