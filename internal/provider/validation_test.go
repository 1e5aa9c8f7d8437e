package provider

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

// TestErrorsPointAtTheirAttribute, which the command line then shows with its line.
func TestErrorsPointAtTheirAttribute(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]path.Path{
		"max_priority 5: leave it out":                  path.Root("max_priority"),
		"retry.max_retries -1: use 0":                   path.Root("retry").AtName("max_retries"),
		"retry.delays: delay 2 repeats 5s":              path.Root("retry").AtName("delays"),
		`topic "orders" has no dead-letter queue`:       path.Empty(),
		"x-message-ttl is wrong":                        path.Empty(),
		"refusing to delete queue \"max_priority 5\"":   path.Empty(),
		"amqp://127.0.0.1:5672/: connection refused":    path.Empty(),
		"retry strategy \"in_place\" waits in delivery": path.Empty(),
	} {
		var diags diag.Diagnostics
		addError(&diags, "Invalid topic", errors.New(text))
		at := path.Empty()
		if d, ok := diags[0].(diag.DiagnosticWithPath); ok {
			at = d.Path()
		}
		if !at.Equal(want) {
			t.Errorf("%s: at %q, want %q", text, at, want)
		}
	}
}

// TestRefusals plans what cannot be, and reads what is said about it: what, why, and what to do instead.
func TestRefusals(t *testing.T) {
	b := setup(t)
	topic := func(attributes string) string {
		return "resource \"redeliver_rabbitmq_topic\" \"orders\" {\n" + attributes + "\n}\n"
	}
	good := "name = \"orders\"\ndead_letter_queue = \"orders-dlq\"\n"
	holds := `hold_queues = [{ delay = "5s", name = "orders-hold-5s" }]` + "\n"
	refusals := map[string]struct{ config, says string }{
		"no dead-letter queue":           {topic(`name = "orders"` + "\n" + `retry = { delays = ["5s"] }`), "allow_message_loss = true"},
		"no delays":                      {topic(good), "retries 10 times but has no delays; hand it a ladder's queues (hold_queues), set retry.delays, or set retry.max_retries = 0"},
		"delays given twice":             {topic(good + holds + `retry = { delays = ["7s"] }`), "Delays are given twice"},
		"hold_from of zero":              {topic(good + holds + `retry = { strategy = "hybrid", hold_from = "0s" }`), `retry.hold_from is 0s: leave it out for the default; always and never are the strategies "republish" and "in_place"`},
		"hold_from without hybrid":       {topic(good + `retry = { delays = ["5s"], hold_from = "5s" }`), "retry.hold_from is for the hybrid strategy"},
		"give_up_after of zero":          {topic(good + `retry = { delays = ["5s"], give_up_after = "0s" }`), "would never retry: use retry.max_retries = 0 for that"},
		"descending delays":              {topic(good + `retry = { delays = ["30s", "5s"] }`), "is shorter than"},
		"a delay twice":                  {topic(good + `retry = { delays = ["5s", "5s"] }`), "5s"},
		"a delay that is none":           {topic(good + `retry = { delays = ["5 s"] }`), `Duration "5 s"`},
		"a delay that is null":           {topic(good + `retry = { delays = ["1s", null] }`), "Delay number 2 is null"},
		"a delay of zero":                {topic(good + `retry = { delays = ["0s"] }`), "delay"},
		"a delay too long in place":      {topic(good + `retry = { delays = ["25m"] }`), `of RabbitMQ's consumer timeout of 30m only 22m30s may be used; shorten it, use the strategy "republish" or "hybrid"`},
		"a strategy that is none":        {topic(good + `retry = { delays = ["5s"], strategy = "sometimes" }`), `value must be one of: ["in_place" "broker_delayed" "republish" "hybrid"]`},
		"republish without hold queues":  {topic(good + `retry = { delays = ["5s"], strategy = "republish" }`), `Retry strategy "republish" waits in hold queues and topic "orders" was handed none`},
		"broker_delayed with delays":     {topic(good + `retry = { strategy = "broker_delayed", delays = ["5s"], delay_min = "1s", delay_max = "1m" }`), "set retry.delay_min and retry.delay_max instead"},
		"broker_delayed of zero":         {topic(good + `retry = { strategy = "broker_delayed", delay_min = "0s", delay_max = "1m" }`), "retry.delay_min is 0s, by which no broker delays: use a positive duration"},
		"broker_delayed without a max":   {topic(good + `retry = { strategy = "broker_delayed", delay_min = "1s" }`), "retry.delay_max 0s"},
		"broker_delayed, max below min":  {topic(good + `retry = { strategy = "broker_delayed", delay_min = "1m", delay_max = "1s" }`), "needs one from retry.delay_min (1m)"},
		"delay_min without its strategy": {topic(good + `retry = { delays = ["5s"], delay_min = "1s" }`), "retry.delay_min and retry.delay_max are for the broker_delayed strategy, not in_place"},
		"broker_delayed on classic": {
			topic(good + "convention = \"shove\"\n" + `retry = { strategy = "broker_delayed", delay_min = "1s", delay_max = "1m" }`),
			`only quorum queues delay returned messages and the work queue of topic "orders" is classic`,
		},
		"sequenced by copies":      {topic(good + "sequenced = true\n" + holds + `retry = { strategy = "republish" }`), `topic "orders" is sequenced, and the copy of a retried message comes back behind those of its key`},
		"sequenced under queuey":   {topic(`name = "orders"` + "\nsequenced = true\nconvention = \"queuey\"\ndead_letter_queue = \"orders.dead\"\n" + `retry = { delays = ["5s"] }`), "A sequenced topic under the queuey convention is refused"},
		"sequenced without shards": {topic(good + "sequenced = true\nconvention = \"shove\"\n" + `retry = { delays = ["5s"] }`), `Topic "orders" is sequenced and has no sequence_shards`},
		"shards elsewhere":         {topic(good + "sequenced = true\nsequence_shards = 2\n" + `retry = { delays = ["5s"] }`), "only shove has shards; leave it out"},
		"shards of no sequence":    {topic(good + "sequence_shards = 2\nconvention = \"shove\"\n" + `retry = { delays = ["5s"] }`), "not sequenced; set sequenced = true"},
		"no shards":                {topic(good + "sequenced = true\nsequence_shards = 0\nconvention = \"shove\"\n" + `retry = { delays = ["5s"] }`), "between 1 and 1000"},
		"shards without the plugin": {
			topic(good + "sequenced = true\nsequence_shards = 2\nconvention = \"shove\"\n" + `retry = { delays = ["5s"] }`),
			`Topic "orders" is spread over 2 shards by an exchange of type "x-consistent-hash", which this broker does not have: enable the plugin rabbitmq_consistent_hash_exchange`,
		},
		"a ladder without the topic's shards": {
			topic(good + "sequenced = true\nsequence_shards = 2\nconvention = \"shove\"\n" + holds), `hand over the queues of this topic's own ladder, whose sequence_shards have to be the topic's`,
		},
		"retries that one delivery cannot hold": {
			topic(good + "convention = \"shove\"\n" + `retry = { delays = ["2m"], max_retries = 50 }`),
			`retry.max_retries 50 cannot all be waited in place: on a classic queue, which counts no deliveries, all retries of a message live in one delivery, with jitter they take up to 2h together`,
		},
		"negative retries":             {topic(good + `retry = { delays = ["5s"], max_retries = -1 }`), "at least 0"},
		"more retries than the limits": {topic(good + `retry = { delays = ["5s"], max_retries = 2000 }`), "set delivery_limit to at least 2010"},
		"a limit below the retries":    {topic(good + "delivery_limit = 5\n" + `retry = { delays = ["5s"] }`), "the broker would dead-letter messages that still have retries"},
		"jitter of one":                {topic(good + `retry = { delays = ["5s"], jitter = 1 }`), "use 0 (none) to below 1"},
		"park without a parked queue":  {topic(good + "park = \"publish\"\n" + `retry = { delays = ["5s"] }`), "parked_queue"},
		"priority on a quorum queue":   {topic(good + "max_priority = 5\n" + `retry = { delays = ["5s"] }`), "quorum queues refuse it on every version"},
		"another queue type":           {topic(good + "queue_type = \"classic\"\n" + `retry = { delays = ["5s"] }`), "classic"},
		"a reserved name":              {topic(`name = "orders-dlq"`), `belongs to what is derived from another topic, "orders"`},
		"amq.":                         {topic(`name = "amq.orders"`), `names that start with "amq." are reserved`},
		"a name too long":              {topic(`name = "` + strings.Repeat("x", 250) + `"`), "bytes and RabbitMQ allows 255; shorten the topic's name by"},
		"another topic's hold queues":  {topic(good + `hold_queues = [{ delay = "5s", name = "invoices-hold-5s" }]`), `topic "orders" has "orders-hold-5s" there`},
		"a binding to the default":     {topic(good + "bindings = [{ exchange = \"\", routing_key = \"a\" }]\n" + `retry = { delays = ["5s"] }`), "default exchange"},
		"a group without convention":   {topic(good + "consumer_group = \"eu\"\n" + `retry = { delays = ["5s"] }`), "has no consumer groups, only shove has"},
		"a convention that is none":    {topic(good + `convention = "kafka"`), `value must be one of: ["redeliver" "shove" "acemq" "rabbitkit" "queuey"]`},
		"rabbitkit's one per attempt": {
			topic(`name = "orders"` + "\nconvention = \"rabbitkit\"\ndead_letter_queue = \"orders.dlq\"\n" + `hold_queues = [{ delay = "5s", name = "orders.retry.1" }]`),
			"one hold queue per attempt: 10 retries need 10 delays and there are 1; add delays, lower retry.max_retries, or set retry.last_delay_repeats = true",
		},
		"queuey's ladder": {`
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic      = "orders"
  convention = "queuey"
  delays     = ["5s"]
}`, "its applications declare hold queues that expire by themselves, on demand"},
		"shove's whole seconds": {`
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic      = "orders"
  convention = "shove"
  delays     = ["500ms"]
}`, "whole seconds"},
		"shards without a factor": {`
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic         = "orders"
  delays        = ["5s"]
  jitter_shards = 3
}`, "with jitter_shards it is above 0 and below 1"},
		"shove's parked queue": {`
resource "redeliver_rabbitmq_parked_queue" "orders" {
  topic      = "orders"
  convention = "shove"
}`, "its libraries have none; unreadable messages go to the dead-letter queue"},
		"a dead-letter queue called like the topic": {`
resource "redeliver_rabbitmq_dead_letter_queue" "orders" {
  topic = "orders"
  name  = "orders"
}`, "itself uses this name for another of its queues"},
		"a binding of the default exchange": {`
resource "redeliver_rabbitmq_binding" "orders" {
  source      = ""
  destination = "orders"
}`, "every queue is bound to the default exchange by its own name already"},
		"an exchange called amq.": {`
resource "redeliver_rabbitmq_exchange" "orders" {
  name = "amq.orders"
  type = "topic"
}`, "are reserved"},
		"an extra argument of the contract's": {
			topic(good + "extra_arguments = { \"x-delivery-limit\" = 5 }\n" + `retry = { delays = ["5s"] }`),
			`extra_arguments "x-delivery-limit": queue "orders" has it from the contract, as 50; change what it is computed from, or leave it out`,
		},
		"an extra argument that expires": {
			topic(good + "extra_arguments = { \"x-expires\" = 60000 }\n" + `retry = { delays = ["5s"] }`),
			"RabbitMQ would delete the queue with its messages",
		},
		"an extra argument of null":   {topic(good + "extra_arguments = { a = null }\n" + `retry = { delays = ["5s"] }`), `argument "a" is null or holds one`},
		"extra arguments of text":     {topic(good + "extra_arguments = \"text\"\n" + `retry = { delays = ["5s"] }`), `It must be an object such as { "x-max-length" = 10000 }, not "text"`},
		"an extra argument too large": {topic(good + "extra_arguments = { a = 123456789012345678901234567 }\n" + `retry = { delays = ["5s"] }`), "is out of range"},
		"a warning that is none":      {topic(good + "acknowledge_warnings = [\"all\"]\n" + `retry = { delays = ["5s"] }`), "foreign_dead_end"},
	}
	open := map[string]string{} // case names by address
	for name, test := range refusals {
		open[strings.Join(addressable.FindStringSubmatch(test.config)[1:2], "")+"."+label(name)] = name
	}
	// All at once: what a validation refuses is not planned, so that a second plan has the others.
	c := b.commandLine("")
	for range 2 {
		config := b.provider
		for _, name := range open {
			config += strings.Replace(refusals[name].config, `"orders" {`, fmt.Sprintf("%q {", label(name)), 1) + "\n"
		}
		c.configure(config)
		for address, said := range errorsByAddress(c.planFails()) {
			name := open[address]
			switch {
			case name == "":
				t.Errorf("%s: an error twice, or a stranger's: %q", address, said)
			case len(said) != 1:
				t.Errorf("%s: %d errors, want one: %q", name, len(said), said)
			case !says(refusals[name].says).MatchString(said[0]):
				t.Errorf("%s: want %q, got %s", name, refusals[name].says, said[0])
			}
			delete(open, address)
		}
	}
	for _, name := range open {
		t.Errorf("%s: not refused", name)
	}
}

// label makes a resource's name of a sentence.
func label(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, text)
}

var withAddress = regexp.MustCompile(`(?m)^\s*with (redeliver_\S+),$`)

// errorsByAddress takes a command's errors apart by the resource that each is about.
func errorsByAddress(out string) map[string][]string {
	found := map[string][]string{}
	for _, text := range strings.Split(out, "\nError: ")[1:] {
		address := ""
		if match := withAddress.FindStringSubmatch(text); match != nil {
			address = match[1]
		}
		found[address] = append(found[address], text)
	}
	return found
}

func TestStandingWarningsUntilTheyAreAcknowledged(t *testing.T) {
	b := setup(t)
	config := func(more string) string {
		return b.provider + fmt.Sprintf(`
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = "invoices-dlq"
  parked_queue      = "the-parking-lot"
  retry             = { delays = ["5s"] }
  %s
}
`, more)
	}
	c := b.commandLine(config(""))
	out := c.plan()
	expect(t, out, "Warning: The queue looks like another topic's", `sets its messages aside in "invoices-dlq", which looks like topic "invoices"'s`, `acknowledge_warnings = ["foreign_dead_end"]`)
	expectNot(t, out, "the-parking-lot\", which")
	c.configure(config(`acknowledge_warnings = ["foreign_dead_end"]`))
	out = c.plan()
	expectNot(t, out, "looks like another topic's")
	expect(t, out, "Warning: Nothing is parked", `parked queue "the-parking-lot"`, `park = "publish"`, `acknowledge_warnings = ["unused_parked_queue"]`)
	for _, settled := range []string{`park = "publish"`, `acknowledge_warnings = ["unused_parked_queue"]`} {
		c.configure(config(settled))
		expectNot(t, c.plan(), "Nothing is parked")
	}
}

func TestDeadEndThatDropsMessagesIsWarnedOf(t *testing.T) {
	b := setup(t)
	config := func(kind, arguments, more string) string {
		return b.provider + fmt.Sprintf(`
resource "redeliver_rabbitmq_%s" "orders" {
  topic           = "orders"
  extra_arguments = { %s }
  %s
}
`, kind, arguments, more)
	}
	c := b.commandLine(config("dead_letter_queue", `"x-max-length" = 1000, "x-message-ttl" = 86400000`, ""))
	const summary = "Warning: Messages that were set aside can be dropped"
	expect(t, c.plan(), summary, `By x-max-length and x-message-ttl the broker drops messages from the dead-letter queue "orders-dlq"`, "x-dead-letter-exchange", `acknowledge_warnings = ["messages_dropped"]`)
	c.configure(config("parked_queue", `"x-max-length-bytes" = 1000`, ""))
	expect(t, c.plan(), summary, `By x-max-length-bytes the broker drops messages from the parked queue "orders-parked"`)
	for _, settled := range [][2]string{
		{`"x-max-length" = 1000`, `acknowledge_warnings = ["messages_dropped"]`},
		{`"x-max-length" = 1000, "x-overflow" = "reject-publish"`, ""},
		{`"x-message-ttl" = 86400000, "x-dead-letter-exchange" = "archive"`, ""},
		{`"x-queue-leader-locator" = "balanced"`, ""},
	} {
		c.configure(config("dead_letter_queue", settled[0], settled[1]))
		expectNot(t, c.plan(), summary)
	}
}

func TestRetryPolicyDefaultsAndUnset(t *testing.T) {
	b := setup(t)
	config := func(more string) string {
		return b.provider + losing(strings.Replace(orders(more), `["5s", "30s", "2m"]`, `["5s"]`, 1))
	}
	c := b.commandLine(config(`retry = { strategy = "hybrid", max_retries = 3, hold_from = "5s", give_up_after = "1d", jitter = 0 }` + "\npark = \"publish\""))
	c.apply()
	values := c.state()["redeliver_rabbitmq_topic.orders"].Values
	if got := fmt.Sprint(values["retry"]); got != "map[delay_max:<nil> delay_min:<nil> delays:[5s] give_up_after:1d hold_from:5s jitter:0 last_delay_repeats:<nil> max_retries:3 strategy:hybrid]" {
		t.Errorf("retry is %s", got)
	}
	// What the configuration leaves out is the default again, in place.
	c.configure(config(""))
	out := c.apply()
	expect(t, out, "0 added, 1 changed, 0 destroyed")
	values = c.state()["redeliver_rabbitmq_topic.orders"].Values
	if got := fmt.Sprint(values["retry"]); got != "map[delay_max:<nil> delay_min:<nil> delays:[5s] give_up_after:<nil> hold_from:<nil> jitter:0.2 last_delay_repeats:<nil> max_retries:10 strategy:in_place]" {
		t.Errorf("retry is %s", got)
	}
	if values["park"] != "reject" {
		t.Errorf("park is %v", values["park"])
	}
	expect(t, c.plan(), "No changes")
}
