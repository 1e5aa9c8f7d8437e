package provider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// policy makes a policy or, with kind "operator-policies", an operator policy for all queues whose names match.
func (b *bundle) policy(kind, name, pattern string, definition map[string]any) {
	b.t.Helper()
	b.request("PUT", kind+"/%s/"+name, map[string]any{"pattern": pattern, "apply-to": "queues", "priority": 1, "definition": definition})
}

func TestPlanSaysWhatExistsAlready(t *testing.T) {
	b := setup(t)
	b.request("PUT", "queues/%s/orders-dlq", map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "classic"}})
	b.request("PUT", "queues/%s/orders-hold-5s", map[string]any{"durable": true, "arguments": map[string]any{
		"x-queue-type": "classic", "x-message-ttl": 5000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders",
	}})
	b.request("PUT", "queues/%s/orders-hold-30s", map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "classic", "x-message-ttl": 31000}})
	b.request("PUT", "exchanges/%s/shop", map[string]any{"type": "direct", "durable": true})
	b.request("POST", "bindings/%s/e/amq.topic/q/orders-dlq", map[string]any{"routing_key": "a"})
	config := func(adopt string) string {
		return b.provider + fmt.Sprintf(`
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic          = "orders"
  convention     = "shove"
  adopt_existing = %[1]s
}
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic          = "orders"
  convention     = "shove"
  delays         = ["5s", "30s"]
  adopt_existing = %[1]s
}
resource "redeliver_rabbitmq_exchange" "shop" {
  name           = "shop"
  type           = "topic"
  adopt_existing = %[1]s
}
resource "redeliver_rabbitmq_binding" "orders" {
  source         = "amq.topic"
  destination    = "orders-dlq"
  routing_key    = "a"
  adopt_existing = %[1]s
}
`, adopt)
	}
	c := b.commandLine(config("false"))
	out := c.plan()
	expect(t, out, `Warning: Queue "orders-dlq" exists already`, "Apply will refuse to create it in vhost", `The arguments of queue "orders-dlq" are those of the configuration`,
		"made by hand, by an application, or by an earlier apply that was killed; or create_before_destroy", "import { to = redeliver_rabbitmq_dead_letter_queue.NAME",
		fmt.Sprintf(`id = "%s/orders?convention=shove"`, b.vhost), "or set adopt_existing = true")
	expect(t, out, `Warning: Queue "orders-hold-5s" exists already`, `The arguments of queue "orders-hold-5s" are those of the configuration`,
		`The arguments of queue "orders-hold-30s" differ from the configuration`, `x-dead-letter-routing-key: want "orders", live absent`, "x-message-ttl: want 30000, live 31000",
		"import { to = redeliver_rabbitmq_hold_ladder.NAME")
	expect(t, out, `Warning: Exchange "shop" exists already`, "it is direct, durable, and the configuration says topic, durable", "import { to = redeliver_rabbitmq_exchange.NAME")
	expect(t, out, `Warning: Binding from exchange "amq.topic" to "orders-dlq" exists already`, "import { to = redeliver_rabbitmq_binding.NAME", "routing_key=a")

	c.configure(config("true"))
	out = c.plan()
	expect(t, out, `Warning: Queue "orders-dlq" exists and is adopted`, `apply takes over "orders-dlq" in vhost`)
	expect(t, out, `Warning: Queue "orders-hold-5s" exists and cannot be adopted`, "RabbitMQ cannot change a queue's arguments", "x-message-ttl: want 30000, live 31000", "Accept a difference with ignore_arguments")
	expect(t, out, `Warning: Exchange "shop" exists and cannot be adopted`, "it is direct, durable, and the configuration says topic, durable")
	expect(t, out, `Warning: Binding from exchange "amq.topic" to "orders-dlq" exists and is adopted`)
}

// TestPlanOfAReplacementSaysNothingOfWhatItReplaces: the old queue is there, and goes first.
func TestPlanOfAReplacementSaysNothingOfWhatItReplaces(t *testing.T) {
	b := setup(t)
	const more = `
resource "redeliver_rabbitmq_binding" "more" {
  source      = "amq.topic"
  destination = redeliver_rabbitmq_topic.orders.name
  routing_key = "more"
}
`
	c := b.commandLine(b.provider + losing(orders("")) + more)
	expectNot(t, c.apply(), "exists already")
	expectNot(t, c.plan("-replace=redeliver_rabbitmq_topic.orders", "-replace=redeliver_rabbitmq_hold_ladder.orders"), "exists already")
	expectNot(t, c.plan("-refresh=false", "-replace=redeliver_rabbitmq_topic.orders", "-replace=redeliver_rabbitmq_binding.more"), "exists already")
	// What is added to it is another matter.
	b.request("PUT", "queues/%s/orders-hold-60s", map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "classic"}})
	c.configure(b.provider + losing(strings.Replace(orders(""), `"2m"`, `"1m", "2m"`, 1)))
	expect(t, c.plan(), `Warning: Queue "orders-hold-60s" exists already`, `The arguments of queue "orders-hold-60s" differ from the configuration`)
	c.configure(b.provider + losing(orders("")) + more)
	c.must("taint", "redeliver_rabbitmq_topic.orders")
	out := c.apply()
	expectNot(t, out, "exists already")
	expect(t, out, "1 added, 0 changed, 1 destroyed")
}

func TestPlanSaysWhichPoliciesContradict(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + orders(""))
	expectNot(t, c.plan(), "A policy contradicts")
	b.policy("policies", "short-holds", "^orders-hold-", map[string]any{"message-ttl": 1000})
	out := c.plan()
	expect(t, out, "Warning: A policy contradicts the configuration", fmt.Sprintf("In vhost %q what applies is not what the configuration says", b.vhost),
		`queue "orders-hold-5s": policy "short-holds" sets message-ttl: the queue's own is 5000, and 1000 applies: messages leave this queue after 1s instead of 5s`,
		`queue "orders-hold-30s"`, `queue "orders-hold-120s"`, `acknowledge_warnings = ["policy"]`)
	b.request("DELETE", "policies/%s/short-holds", nil)

	b.policy("policies", "mean", "^orders$", map[string]any{"overflow": "drop-head", "delivery-limit": 5, "dead-letter-exchange": "another-dlx"})
	b.policy("operator-policies", "cap", "^orders$", map[string]any{"max-length": 10})
	out = c.apply()
	expect(t, out, `queue "orders": policy "mean" sets delivery-limit: the queue's own is 50, and 5 applies`,
		`queue "orders": operator policy "cap" sets max-length: the queue's own is absent, and 10 applies: the queue holds at most 10 messages`,
		`queue "orders": policy "mean" sets overflow: the queue's own is "reject-publish", and "drop-head" applies`)
	expectNot(t, out, "another-dlx") // the queue's own argument wins
	// Standing: a plan without changes says so too, until it is acknowledged.
	expect(t, c.plan(), "No changes", `policy "mean" sets delivery-limit`)
	c.configure(b.provider + orders(`acknowledge_warnings = ["policy"]`))
	expectNot(t, c.plan(), "A policy contradicts")

	b.policy("policies", "mean", "^orders-dlq$", map[string]any{"dead-letter-exchange": "another-dlx", "message-ttl": 60000})
	expect(t, c.plan(), `queue "orders-dlq": policy "mean" sets dead-letter-exchange: the queue's own is absent, and "another-dlx" applies: rejected and expired messages go to exchange "another-dlx"`,
		`sets message-ttl: the queue's own is absent, and 60000 applies`)
}

func TestPlanHoldsWaitsAgainstTheConsumerTimeoutOfAPolicy(t *testing.T) {
	b := setup(t)
	if !brokertest.HasVersion(b.broker, "3.12") {
		status, _ := brokertest.Request(t, b.broker, "PUT", b.path("policies/%s/short"), map[string]any{"pattern": "", "definition": map[string]any{"consumer-timeout": 60000}})
		if status < 400 {
			t.Error("this broker has policies for the consumer timeout")
		}
		return
	}
	b.policy("policies", "short", "^orders$", map[string]any{"consumer-timeout": 60000})
	c := b.commandLine(b.provider + `
resource "redeliver_rabbitmq_topic" "orders" {
  name               = "orders"
  allow_message_loss = true
  retry              = { delays = ["5s", "1m"] }
}
`)
	expect(t, c.planFails(), "Error: A policy shortens the consumer timeout", `"short" sets consumer-timeout to 60000 ms for queue "orders": delay 1m cannot be waited in place`,
		"of RabbitMQ's consumer timeout of 1m only 45s may be used")
}

func TestPlanRefusesArgumentsThatTheBrokerDoesNotCarryOut(t *testing.T) {
	b := setup(t)
	plan := func(extra string) (string, error) {
		return b.commandLine(b.provider+fmt.Sprintf(`
resource "redeliver_rabbitmq_topic" "orders" {
  name               = "orders"
  allow_message_loss = true
  retry              = { delays = ["5s"] }
  extra_arguments    = { %s }
}
`, extra)).try("plan", "-no-color", "-input=false")
	}
	for _, test := range []struct{ argument, since, needs string }{
		{`"x-consumer-timeout" = 7200000`, "3.12", "RabbitMQ 3.12 or later"},
		{`"x-delayed-retry-type" = "failed"`, "4.3", "RabbitMQ 4.3 or later"},
		{`"x-quorum-target-group-size" = 1`, "3.13", "RabbitMQ 3.13 or later"},
		{`"x-max-priority" = 5`, "", "a classic queue"},
		{`"x-queue-mode" = "lazy"`, "", "a classic queue"},
	} {
		out, err := plan(test.argument)
		if test.since != "" && brokertest.HasVersion(b.broker, test.since) {
			if err != nil {
				t.Errorf("%s is refused on %s:\n%s", test.argument, b.broker.Version(), out)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s is accepted", test.argument)
		}
		expect(t, out, "Error: The broker does not carry out an argument", "extra_arguments = {", `of queue "orders": it takes `+test.needs, "RabbitMQ "+b.broker.Version())
	}
}

func TestPlanRefusesMoreReplicasThanNodes(t *testing.T) {
	b := setup(t)
	if brokertest.HasVersion(b.broker, "3.13") {
		const topic = `
resource "redeliver_rabbitmq_dead_letter_queue" "mails" {
  topic           = "mails"
  extra_arguments = { %s }
}
`
		c := b.commandLine(b.provider + fmt.Sprintf(topic, `"x-quorum-target-group-size" = 5`))
		expect(t, c.planFails(), "Error: The cluster is too small", `x-quorum-target-group-size = 5 of queue "mails-dlq": the cluster has 1 node`)
		b.policy("policies", "replicated", "^mails", map[string]any{"target-group-size": 5})
		c.configure(b.provider + fmt.Sprintf(topic, ""))
		expect(t, c.plan(), "Warning: A policy contradicts the configuration", `queue "mails-dlq": policy "replicated" sets target-group-size to 5: the cluster has 1 node`)
	}
	c := b.commandLine(b.provider + `
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic           = "orders"
  extra_arguments = { "x-quorum-initial-group-size" = 3 }
}
`)
	expect(t, c.planFails(), "Error: The cluster is too small", `x-quorum-initial-group-size = 3 of queue "orders-dlq": the cluster has 1 node`)
}

func TestPlanSaysWhatAVHostsDefaultQueueTypeDoes(t *testing.T) {
	b := setup(t)
	config := func(more string) string {
		return b.provider + `
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic      = "orders"
  convention = "shove"
` + more + `
}
`
	}
	b.request("PUT", "vhosts/%s", map[string]any{"default_queue_type": "quorum"})
	c := b.commandLine(config(""))
	out := c.apply()
	if !brokertest.HasVersion(b.broker, "4.0") {
		expectNot(t, out, "default queue type")
		return
	}
	expect(t, out, "Warning: The vhost's default queue type is not classic", fmt.Sprintf("Vhost %q makes a quorum queue of what is declared without a type", b.vhost),
		`Queue "orders-dlq" is classic, and stays so`, "An application of the shove convention that declares it without is refused", `acknowledge_warnings = ["default_queue_type"]`)
	// That is so.
	if got := b.argumentsOf("orders-dlq")["x-queue-type"]; got != "classic" {
		t.Errorf("the queue is %v", got)
	}
	status, answer := brokertest.Request(t, b.broker, "PUT", b.path("queues/%s/orders-dlq"), map[string]any{"durable": true, "arguments": map[string]any{}})
	if status != http.StatusBadRequest {
		t.Errorf("declaring it without a type: %d %s, want a refusal", status, answer)
	}
	c.configure(config(`  acknowledge_warnings = ["default_queue_type"]`))
	expectNot(t, c.plan(), "default queue type")
}

func TestPlanSaysWhoConsumesAHoldQueue(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + orders(""))
	expectNot(t, c.apply(), "is consumed")
	b.hold("orders-hold-30s", 0)
	brokertest.WaitFor(t, func() (bool, string) { return b.exists("consumers/%s"), "no consumer yet" })
	expect(t, c.plan(), `Warning: Hold queue "orders-hold-30s" is consumed`, `hold queue "orders-hold-30s" has 1 consumer`, "what is taken out of it does not wait its 30s")
}

func TestPlanSaysThatRetriesInPlaceOnAClassicQueueAreNotCounted(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + shovePair(""))
	expect(t, c.plan(), "Warning: Retries in place on a classic queue", `Topic "orders" waits its retries in the consumer`, `acknowledge_warnings = ["in_place_on_classic"]`)
	c.configure(b.provider + shovePair(`acknowledge_warnings = ["in_place_on_classic"]`))
	expectNot(t, c.plan(), "Retries in place")
}

func TestPlanRefusesATopicWithoutADeadLetterQueue(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + `
resource "redeliver_rabbitmq_topic" "orders" {
  name  = "orders"
  retry = { delays = ["5s"] }
}
`)
	expect(t, c.planFails(), `"orders" has no dead-letter queue: rejected and exhausted messages would be discarded; set dead_letter_queue`, "allow_message_loss = true")
}

func TestPlanSaysWhereDeadLettersGoInACircle(t *testing.T) {
	b := setup(t)
	circle := func(more string) string {
		return b.provider + strings.Replace(orders(""), `"redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }`, `"redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic           = "orders"
  extra_arguments = { "x-message-ttl" = 60000, "x-dead-letter-exchange" = "", "x-dead-letter-routing-key" = "orders" }
`+more+`
}`, 1)
	}
	// Planned, before any of it is there.
	c := b.commandLine(circle(""))
	expect(t, c.plan(), "Warning: Dead letters go in a circle", `what queue "orders" dead-letters can come back to it: orders -> orders-dlq -> orders`,
		"without having been rejected by a consumer on the way", `acknowledge_warnings = ["dead_letter_cycle"]`)
	// There: by a policy, through an exchange.
	c.configure(b.provider + orders(""))
	expectNot(t, c.apply(), "in a circle")
	b.request("POST", "bindings/%s/e/amq.fanout/q/orders", map[string]any{"routing_key": ""})
	b.policy("policies", "again", "^orders-dlq$", map[string]any{"dead-letter-exchange": "amq.fanout"})
	out := c.plan()
	expect(t, out, "Warning: Dead letters go in a circle")
	if n := strings.Count(out, "can come back to it"); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, out)
	}
}

// counting counts the requests of a run.
type counting struct {
	mu   sync.Mutex
	seen []string
}

func (c *counting) record(_ http.ResponseWriter, r *http.Request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, r.Method+" "+r.URL.Path)
	return false
}

func (c *counting) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = nil
	return seen
}

func TestPlansTakeAFewRequestsWhateverTheirSize(t *testing.T) {
	b := setup(t)
	p := newProxy(t, b.broker, "")
	var requests counting
	p.answer(requests.record)
	topics := func(n int) string {
		config := b.blockAt(p.URL, b.broker.Username(), b.broker.Password(), "")
		for i := range n {
			config += strings.ReplaceAll(losing(orders(`bindings = [{ exchange = "amq.topic", routing_key = "orders" }]`)), "orders", fmt.Sprintf("orders%d", i))
		}
		return config
	}
	const most = 20
	c := b.commandLine(topics(12))
	c.plan() // of what is to be created
	if seen := requests.take(); len(seen) > most {
		t.Errorf("%d requests to plan 12 new topics, want at most %d:\n%s", len(seen), most, strings.Join(seen, "\n"))
	}
	c.apply()
	requests.take()
	expect(t, c.plan(), "No changes")
	if seen := requests.take(); len(seen) > most {
		t.Errorf("%d requests to plan no change of 12 topics, want at most %d:\n%s", len(seen), most, strings.Join(seen, "\n"))
	}
	c.plan("-destroy") // which the command line does in two runs: it refreshes by a plan of its own
	if seen := requests.take(); len(seen) > 2*most {
		t.Errorf("%d requests to plan a destroy of 12 topics, want at most %d:\n%s", len(seen), 2*most, strings.Join(seen, "\n"))
	}
	for _, target := range []string{"parked_queue", "hold_ladder"} {
		requests.take()
		expect(t, c.plan("-target=redeliver_rabbitmq_"+target+".orders3"), "No changes")
		for _, request := range requests.take() {
			if slices.Contains([]string{"GET " + b.path("queues/%s"), "GET " + b.path("bindings/%s"), "GET " + b.path("exchanges/%s"), "GET " + b.path("consumers/%s")}, request) {
				t.Errorf("a plan of one %s lists those of all: %s", target, request)
			}
		}
	}
	b.hold("orders3-hold-30s", 0)
	brokertest.WaitFor(t, func() (bool, string) { return b.exists("consumers/%s"), "no consumer yet" })
	expect(t, c.plan("-target=redeliver_rabbitmq_hold_ladder.orders3"), `Warning: Hold queue "orders3-hold-30s" is consumed`, `has 1 consumer: "ctag`, `of connection "`)
}

// TestAppliesReadNothingPerTopic: the plans inside an apply ask nothing once it writes, and what it creates it looks for in lists,
// so that it reads as much whatever the number of topics.
func TestAppliesReadNothingPerTopic(t *testing.T) {
	b := setup(t)
	p := newProxy(t, b.broker, "")
	var requests counting
	p.answer(requests.record)
	const topics = 12
	config := b.blockAt(p.URL, b.broker.Username(), b.broker.Password(), "")
	for i := range topics {
		config += strings.ReplaceAll(losing(orders(`bindings = [{ exchange = "amq.topic", routing_key = "orders" }]`)), "orders", fmt.Sprintf("orders%d", i))
	}
	c := b.commandLine(config)
	c.must("plan", "-no-color", "-input=false", "-out=planned")
	requests.take()
	// One resource at a time: none is planned beside the first write.
	c.must("apply", "-no-color", "-input=false", "-parallelism=1", "planned")
	seen := requests.take()
	first := slices.IndexFunc(seen, func(request string) bool { return strings.HasPrefix(request, "PUT ") })
	if first < 0 {
		t.Fatalf("nothing was created:\n%s", strings.Join(seen, "\n"))
	}
	isRead := func(request string) bool { return strings.HasPrefix(request, "GET ") }
	var before, after []string
	for i, request := range seen {
		switch {
		case !isRead(request):
		case i < first:
			before = append(before, request)
		default:
			after = append(after, request)
		}
	}
	// Of the plans inside the apply one comes before the first write. Creates look for queues and exchanges, the first few by
	// themselves and all others in a list each.
	const mostBefore, mostAfter = 12, 12
	if len(before) > mostBefore || len(after) > mostAfter {
		t.Errorf("%d reads before the first write of an apply of %d topics and %d after it, want at most %d and %d:\n%s", len(before), topics, len(after), mostBefore, mostAfter, strings.Join(seen, "\n"))
	}
	for _, request := range after {
		if !strings.HasPrefix(request, "GET "+b.path("queues/%s")) && !strings.HasPrefix(request, "GET "+b.path("exchanges/%s")) {
			t.Errorf("a plan inside an apply asks the broker: %s", request)
		}
	}
}

func TestAppliesAskNothingToPlan(t *testing.T) {
	t.Parallel()
	rt := newRuntime(types.StringNull(), types.StringNull())
	if !rt.asksLive(false) || rt.asksLive(true) {
		t.Error("before anything: what is new is looked at, and what exists was not refreshed")
	}
	_, _ = rt.reader(&diag.Diagnostics{})
	if !rt.asksLive(true) {
		t.Error("what was refreshed is not looked at")
	}
	_, _ = rt.admin()
	if rt.asksLive(false) || rt.asksLive(true) {
		t.Error("an apply looks")
	}
}

func TestPlanWithoutABrokerSaysWhatItDidNotCheck(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.blockAt("http://127.0.0.1:1", "guest", "guest", "max_retries = 0") + orders(""))
	out := c.plan()
	expect(t, out, "Plan: 4 to add")
	expect(t, out, "Warning: The plan was not checked against the broker", "no endpoint answers", "whether its objects exist already, which policies apply to them")
	if n := strings.Count(out, "The plan was not checked"); n != 1 {
		t.Errorf("it is said %d times:\n%s", n, out)
	}
	// An endpoint that another resource is about to tell.
	c.configure(pending("broker", `"`+b.broker.ManagementURL()+`"`) + strings.Replace(b.block(""), fmt.Sprintf("[%q]", b.broker.ManagementURL()), "[terraform_data.broker.output]", 1) + orders(""))
	expect(t, c.plan(), "Warning: The plan was not checked against the broker", "configuration is not known yet")
	c.apply()
	// A vhost that is not there yet.
	c = b.commandLine(strings.Replace(b.provider, fmt.Sprintf("%q", b.vhost), `"not-there-yet"`, 1) + orders(""))
	expect(t, c.plan(), "Warning: The plan was not checked against the broker", `vhost "not-there-yet" does not exist`)
}
