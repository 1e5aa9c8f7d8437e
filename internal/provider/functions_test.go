package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// call runs a function as the framework does.
func call(t *testing.T, fn function.Function, args ...attr.Value) (attr.Value, *function.FuncError) {
	t.Helper()
	var definition function.DefinitionResponse
	fn.Definition(t.Context(), function.DefinitionRequest{}, &definition)
	empty, err := definition.Definition.Return.NewResultData(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	resp := function.RunResponse{Result: empty}
	fn.Run(t.Context(), function.RunRequest{Arguments: function.NewArgumentsData(args)}, &resp)
	return resp.Result.Value(), resp.Error
}

func texts(values ...string) attr.Value {
	elements := make([]attr.Value, len(values))
	kinds := make([]attr.Type, len(values))
	for i, value := range values {
		elements[i], kinds[i] = types.StringValue(value), types.StringType
	}
	return types.TupleValueMust(kinds, elements)
}

func TestBuildNames(t *testing.T) {
	t.Parallel()
	delays := map[string]attr.Value{"delays": texts("500ms", "30s", "90s", "5m")}
	sharded := map[string]attr.Value{"delays": texts("1s", "5s"), "jitter_shards": num("3"), "jitter_factor": num("0.5")}
	for name, test := range map[string]struct {
		topic, convention string
		options           map[string]attr.Value
		want              string
	}{
		"redeliver": {"orders", "redeliver", delays, `{"dead_letter_queue":"orders-dlq","hold_queues":["orders-hold-500ms","orders-hold-30s","orders-hold-90s","orders-hold-300s"],` +
			`"parked_queue":"orders-parked","retry_exchange":"orders-retry","sequence_exchange":null,"work_queue":"orders","work_queues":["orders"]}`},
		"shove": {
			"orders", "shove",
			map[string]attr.Value{"delays": texts("5s", "2m"), "consumer_group": types.StringValue("eu")},
			`{"dead_letter_queue":"orders-eu-dlq","hold_queues":["orders-eu-hold-5s","orders-eu-hold-120s"],"parked_queue":null,"retry_exchange":null,"sequence_exchange":null,"work_queue":"orders","work_queues":["orders"]}`,
		},
		"acemq": {"orders", "acemq", delays, `{"dead_letter_queue":"orders.dlq","hold_queues":["orders.retry.500ms","orders.retry.30s","orders.retry.90s","orders.retry.5m"],` +
			`"parked_queue":"orders.parked","retry_exchange":null,"sequence_exchange":null,"work_queue":"orders","work_queues":["orders"]}`},
		"rabbitkit": {"orders", "rabbitkit", sharded, `{"dead_letter_queue":"orders.dlq","hold_queues":["orders.retry.1","orders.retry.1.s1","orders.retry.1.s2","orders.retry.2","orders.retry.2.s1","orders.retry.2.s2"],` +
			`"parked_queue":null,"retry_exchange":null,"sequence_exchange":null,"work_queue":"orders","work_queues":["orders"]}`},
		"shove, over shards": {
			"orders", "shove",
			map[string]attr.Value{"delays": texts("5s"), "sequence_shards": num("2")},
			`{"dead_letter_queue":"orders-dlq","hold_queues":["orders-seq-0-hold-5s","orders-seq-1-hold-5s"],"parked_queue":null,"retry_exchange":null,"sequence_exchange":"orders-seq-hash",` +
				`"work_queue":"orders-seq-0","work_queues":["orders-seq-0","orders-seq-1"]}`,
		},
		"sqs": {
			"orders", "redeliver",
			map[string]attr.Value{"broker": types.StringValue("sqs")},
			`{"dead_letter_queue":"orders-dlq","hold_queues":[],"parked_queue":"orders-parked","retry_exchange":null,"sequence_exchange":null,"work_queue":"orders","work_queues":["orders"]}`,
		},
		"sqs, shove, in order": {
			"orders", "shove",
			map[string]attr.Value{"broker": types.StringValue("sqs"), "fifo": types.BoolValue(true), "consumer_group": types.StringValue("eu")},
			`{"dead_letter_queue":"orders-eu-dlq.fifo","hold_queues":[],"parked_queue":null,"retry_exchange":null,"sequence_exchange":null,"work_queue":"orders.fifo","work_queues":["orders.fifo"]}`,
		},
		"queuey": {"orders", "queuey", map[string]attr.Value{}, `{"dead_letter_queue":"orders.dead","hold_queues":[],"parked_queue":null,"retry_exchange":null,"sequence_exchange":null,"work_queue":"orders","work_queues":["orders"]}`},
	} {
		got, funcErr := call(t, buildNamesFunction{}, types.StringValue(test.topic), types.StringValue(test.convention), object(test.options))
		if funcErr != nil {
			t.Errorf("%s: %v", name, funcErr)
			continue
		}
		decoded, _, err := dynamicValue(got)
		if text := topology.CanonicalJSON(decoded); err != nil || text != test.want {
			t.Errorf("%s:\n got %s\nwant %s (%v)", name, text, test.want, err)
		}
	}
}

func TestBuildNamesRefusals(t *testing.T) {
	t.Parallel()
	for says, test := range map[string]struct {
		topic, convention string
		options           types.Dynamic
		argument          int64
	}{
		`Convention "nope" is not known`:                {"orders", "nope", types.DynamicNull(), 1},
		"names that start with \"amq.\" are reserved":   {"amq.orders", "redeliver", types.DynamicNull(), 0},
		`belongs to what is derived from another topic`: {"orders-dlq", "redeliver", types.DynamicNull(), 0},
		`Option "delay" does not exist here; there are broker, consumer_group, delays, jitter_factor, jitter_shards`: {"orders", "redeliver", object(map[string]attr.Value{"delay": types.StringValue("5s")}), 2},
		`Option delays must be a list of durations; it is`:                                                           {"orders", "redeliver", object(map[string]attr.Value{"delays": types.StringValue("5s")}), 2},
		`Option delays: 5 is not a duration`:                                                                         {"orders", "redeliver", object(map[string]attr.Value{"delays": types.TupleValueMust([]attr.Type{types.NumberType}, []attr.Value{num("5")})}), 2},
		`Option delays: "5x" is not a duration`:                                                                      {"orders", "redeliver", object(map[string]attr.Value{"delays": texts("5x")}), 2},
		"is shorter than":                                                                                            {"orders", "redeliver", object(map[string]attr.Value{"delays": texts("5s", "1s")}), 2},
		`Option jitter_shards must be a whole number`:                                                                {"orders", "redeliver", object(map[string]attr.Value{"jitter_shards": num("1.5")}), 2},
		`Option jitter_factor must be a number; it is "x"`:                                                           {"orders", "redeliver", object(map[string]attr.Value{"jitter_factor": types.StringValue("x")}), 2},
		`Option broker: "kafka" is not known; use "rabbitmq" or "sqs"`:                                               {"orders", "redeliver", object(map[string]attr.Value{"broker": types.StringValue("kafka")}), 2},
		`Option "fifo" does not exist here`:                                                                          {"orders", "redeliver", object(map[string]attr.Value{"fifo": types.BoolValue(true)}), 2},
		`Option "delays" does not exist here; there are broker, consumer_group, fifo`:                                {"orders", "redeliver", object(map[string]attr.Value{"broker": types.StringValue("sqs"), "delays": texts("5s")}), 2},
		`Option fifo must be true or false`:                                                                          {"orders", "redeliver", object(map[string]attr.Value{"broker": types.StringValue("sqs"), "fifo": types.StringValue("x")}), 2},
		`Convention "none" is not known`:                                                                             {"orders", "none", object(map[string]attr.Value{"broker": types.StringValue("sqs")}), 1},
		`names on SQS have no dots`:                                                                                  {"orders", "acemq", object(map[string]attr.Value{"broker": types.StringValue("sqs")}), 0},
		`set fifo = true and call the topic "orders"`:                                                                {"orders.fifo", "redeliver", object(map[string]attr.Value{"broker": types.StringValue("sqs")}), 0},
		"has no consumer groups":                                                                                     {"orders", "acemq", object(map[string]attr.Value{"consumer_group": types.StringValue("eu")}), 0},
		"under the queuey convention is refused":                                                                     {"orders", "queuey", object(map[string]attr.Value{"delays": texts("5s")}), 2},
		"Options must be an object, such as {}; it is 5":                                                             {"orders", "redeliver", types.DynamicValue(num("5")), 2},
	} {
		_, err := call(t, buildNamesFunction{}, types.StringValue(test.topic), types.StringValue(test.convention), test.options)
		if err == nil || !strings.Contains(err.Text, says) {
			t.Errorf("want %q, got %v", says, err)
			continue
		}
		if err.FunctionArgument == nil || *err.FunctionArgument != test.argument {
			t.Errorf("%q is about argument %v, want %d", says, err.FunctionArgument, test.argument)
		}
	}
}

func TestBuildSchedule(t *testing.T) {
	t.Parallel()
	exponential := func(attempts, initial, longest string) map[string]attr.Value {
		return map[string]attr.Value{"attempts": num(attempts), "initial": types.StringValue(initial), "max": types.StringValue(longest)}
	}
	rounded := exponential("4", "1500ms", "1m")
	rounded["granularity"] = types.StringValue("1s")
	for want, test := range map[string]struct {
		kind    string
		options map[string]attr.Value
	}{
		`["1s","2s","4s","8s"]`:               {"exponential", exponential("5", "1s", "60s")},
		`["10s","20s","40s","1m20s","2m40s"]`: {"exponential", exponential("6", "10s", "5m")},
		`["10s","20s","40s","1m","1m"]`:       {"exponential", exponential("6", "10s", "1m")},
		`["2s","3s","6s"]`:                    {"exponential", rounded},
		`["30s","30s"]`:                       {"fixed", map[string]attr.Value{"attempts": num("3"), "delay": types.StringValue("30s")}},
		`["30s"]`:                             {"fixed", map[string]attr.Value{"attempts": num("2"), "delay": types.StringValue("29500ms"), "broker": types.StringValue("sqs")}},
		`[]`:                                  {"fixed", map[string]attr.Value{"attempts": num("1"), "delay": types.StringValue("30s")}},
	} {
		got, funcErr := call(t, buildScheduleFunction{}, types.StringValue(test.kind), object(test.options))
		if funcErr != nil {
			t.Errorf("%s: %v", want, funcErr)
			continue
		}
		decoded, _, err := dynamicValue(got)
		if text := topology.CanonicalJSON(decoded); err != nil || text != want {
			t.Errorf("got %s, want %s (%v)", text, want, err)
		}
	}
	for says, test := range map[string]struct {
		kind    string
		options map[string]attr.Value
	}{
		`Kind "linear": use "fixed" or "exponential"`: {"linear", nil},
		"Attempts 0": {"fixed", map[string]attr.Value{"delay": types.StringValue("30s")}},
		`Option "initial" does not exist here; there are attempts, broker, delay, granularity`: {"fixed", exponential("5", "1s", "60s")},
		"Delay 0s: a delay must be positive":                                                   {"fixed", map[string]attr.Value{"attempts": num("2")}},
		`Option initial: duration "1 s"`:                                                       {"exponential", exponential("5", "1 s", "60s")},
		"Delay 12h cannot be waited on SQS":                                                    {"fixed", map[string]attr.Value{"attempts": num("2"), "delay": types.StringValue("12h"), "broker": types.StringValue("sqs")}},
		"is shorter than the initial one":                                                      {"exponential", exponential("5", "2m", "60s")},
	} {
		if _, err := call(t, buildScheduleFunction{}, types.StringValue(test.kind), object(test.options)); err == nil || !strings.Contains(err.Text, says) {
			t.Errorf("want %q, got %v", says, err)
		}
	}
}

func TestBuildPermissionsAndRenderGraphRefuseWhatIsNoManifest(t *testing.T) {
	t.Parallel()
	manifest := exampleManifest(t)
	for _, text := range []string{"", "{}", "orders", strings.Replace(manifest, `"version": 1`, `"version": 2`, 1)} {
		if _, err := call(t, buildPermissionsFunction{}, types.StringValue(text), types.StringValue("consumer")); err == nil || *err.FunctionArgument != 0 {
			t.Errorf("build_permissions(%q): %v", text, err)
		}
		if _, err := call(t, buildIAMPolicyFunction{}, types.StringValue(text), types.StringValue("consumer")); err == nil || *err.FunctionArgument != 0 {
			t.Errorf("build_iam_policy(%q): %v", text, err)
		}
		if _, err := call(t, renderGraphFunction{}, types.StringValue(text)); err == nil || *err.FunctionArgument != 0 {
			t.Errorf("render_graph(%q): %v", text, err)
		}
	}
	_, err := call(t, buildPermissionsFunction{}, types.StringValue(manifest), types.StringValue("admin"))
	if err == nil || *err.FunctionArgument != 1 || !strings.Contains(err.Text, `use one of "consumer", "publisher", "operator"`) {
		t.Errorf("an unknown role: %v", err)
	}
}

func TestBuildPermissionsOfAConsumerInPlace(t *testing.T) {
	t.Parallel()
	got, funcErr := call(t, buildPermissionsFunction{}, types.StringValue(exampleManifest(t)), types.StringValue("consumer"))
	if funcErr != nil {
		t.Fatal(funcErr)
	}
	decoded, _, err := dynamicValue(got)
	if text := topology.CanonicalJSON(decoded); err != nil || text != `{"configure":"^$","notes":[],"read":"^orders$","write":"^$"}` {
		t.Errorf("got %s (%v)", text, err)
	}
}

func TestFunctionsOnAManifestOfSQS(t *testing.T) {
	t.Parallel()
	spec := topology.SQSSpec{SQSIdentity: topology.SQSIdentity{Topic: "orders", Region: "eu-central-1", Account: "123456789012"}, DeadLetterQueue: "orders-dlq"}
	m, err := spec.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	manifest := types.StringValue(string(m.Encode()))
	got, funcErr := call(t, buildIAMPolicyFunction{}, manifest, types.StringValue("consumer"))
	if funcErr != nil {
		t.Fatal(funcErr)
	}
	decoded, _, err := dynamicValue(got)
	policy, _ := decoded.(map[string]any)
	document, _ := policy["document"].(string)
	canonical, policyErr := topology.CanonicalPolicy(document)
	want := `{"Statement":[{"Action":["sqs:ChangeMessageVisibility","sqs:DeleteMessage","sqs:ReceiveMessage"],"Effect":"Allow","Resource":["arn:aws:sqs:eu-central-1:123456789012:orders"],"Sid":"Consume"}],"Version":"2012-10-17"}`
	if err != nil || policyErr != nil || canonical != want || topology.CanonicalJSON(policy["notes"]) != "[]" {
		t.Errorf("got %v (%v, %v)\n%s", decoded, err, policyErr, canonical)
	}
	if _, err := call(t, buildIAMPolicyFunction{}, manifest, types.StringValue("admin")); err == nil || *err.FunctionArgument != 1 {
		t.Errorf("an unknown role: %v", err)
	}
	if picture, err := call(t, renderGraphFunction{}, manifest); err != nil || contains(picture.String(), "flowchart", "orders-dlq", "moved after 1 receives") != nil {
		t.Errorf("%v, %v", picture, err)
	}
	if _, err := call(t, buildPermissionsFunction{}, manifest, types.StringValue("consumer")); err == nil || *err.FunctionArgument != 0 || contains(err.Text, "is on Amazon SQS", "or use build_iam_policy") != nil {
		t.Errorf("build_permissions of a topic on SQS: %v", err)
	}
	if _, err := call(t, buildIAMPolicyFunction{}, types.StringValue(exampleManifest(t)), types.StringValue("consumer")); err == nil || contains(err.Text, "is on RabbitMQ", "or use build_permissions") != nil {
		t.Errorf("build_iam_policy of a topic on RabbitMQ: %v", err)
	}
}

func exampleManifest(t *testing.T) string {
	t.Helper()
	spec := topology.Spec{Identity: topology.Identity{Topic: "orders"}, DeadLetterQueue: "orders-dlq"}
	manifest, err := spec.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return string(manifest.Encode())
}

// TestFunctionsInAConfiguration calls every function the way a configuration does, on a manifest that is planned. Options that
// are null are for the tests above: OpenTofu calls no function with a null that has no type, and returns null itself.
func TestFunctionsInAConfiguration(t *testing.T) {
	b := setup(t)
	output := func(name, path string, check knownvalue.Check) statecheck.StateCheck {
		return statecheck.ExpectKnownOutputValueAtPath(name, jsonPath(path), check)
	}
	b.run(resource.TestStep{
		Config: b.provider + losing(orders(`retry = { strategy = "hybrid" }`)) + `
output "names" { value = provider::redeliver::build_names("orders", "rabbitkit", { delays = ["5s", "30s"] }) }
output "bare" { value = provider::redeliver::build_names("orders", "redeliver", {}) }
output "schedule" { value = distinct(provider::redeliver::build_schedule("exponential", { attempts = 6, initial = "10s", max = "1m" })) }
output "consumer" { value = provider::redeliver::build_permissions(redeliver_rabbitmq_topic.orders.manifest, "consumer") }
output "operator" { value = provider::redeliver::build_permissions(redeliver_rabbitmq_topic.orders.manifest, "operator") }
output "graph" { value = provider::redeliver::render_graph(redeliver_rabbitmq_topic.orders.manifest) }
`,
		ConfigStateChecks: []statecheck.StateCheck{
			output("names", "hold_queues", knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("orders.retry.1"), knownvalue.StringExact("orders.retry.2")})),
			output("bare", "parked_queue", knownvalue.StringExact("orders-parked")),
			statecheck.ExpectKnownOutputValue("schedule", knownvalue.ListSizeExact(4)),
			output("consumer", "configure", knownvalue.StringExact("^$")),
			output("consumer", "write", knownvalue.StringExact("^orders-retry$")),
			output("consumer", "read", knownvalue.StringExact("^orders$")),
			output("operator", "notes", knownvalue.ListSizeExact(3)),
			statecheck.ExpectKnownOutputValue("graph", knownvalue.StringFunc(func(graph string) error {
				return contains(graph, "flowchart", "orders-hold-120s", "orders-dlq", "orders-parked")
			})),
		},
	})
}
