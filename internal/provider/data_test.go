package provider

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// data reads a data source through the protocol.
func (p *protocol) data(name string, config map[string]any) (map[string]any, []*tfprotov6.Diagnostic) {
	p.t.Helper()
	of := p.schemas.DataSourceSchemas[name].ValueType()
	got, err := p.server.ReadDataSource(p.t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: name, Config: p.value(of, config)})
	if err != nil {
		p.t.Fatal(err)
	}
	if got.State == nil {
		return nil, got.Diagnostics
	}
	fields, _ := p.decoded(of, got.State).(map[string]any)
	return fields, got.Diagnostics
}

// mustData is data without errors.
func (p *protocol) mustData(name string, config map[string]any) map[string]any {
	p.t.Helper()
	fields, diagnostics := p.data(name, config)
	p.noErrors(diagnostics)
	return fields
}

func TestQueueDataSource(t *testing.T) {
	b := setup(t)
	b.request("PUT", "queues/%s/jobs", map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "classic", "x-message-ttl": 60000, "x-note": "5000"}})
	b.request("PUT", "policies/%s/short", map[string]any{"pattern": "^jobs$", "apply-to": "queues", "definition": map[string]any{"message-ttl": 30000, "max-length": 10}})
	b.request("PUT", "operator-policies/%s/bounds", map[string]any{"pattern": "^jobs$", "apply-to": "queues", "definition": map[string]any{"max-length": 5}})
	b.publish("jobs", 3)
	b.hold("jobs", 3)
	b.waitCounted("jobs", 3)
	var got map[string]any
	brokertest.WaitFor(t, func() (bool, string) { // the policy and the consumer are in the broker's statistics some seconds later
		got = b.protocol().mustData("redeliver_rabbitmq_queue", map[string]any{"name": "jobs"})
		return got["consumers"] == 1.0 && got["state"] == "running", fmt.Sprint(got)
	})
	want := map[string]any{
		"vhost": b.vhost, "name": "jobs", "type": "classic", "durable": true, "auto_delete": false, "exclusive": false, "state": "running",
		"arguments":           map[string]any{"x-queue-type": `"classic"`, "x-message-ttl": "60000", "x-note": `"5000"`},
		"effective_arguments": map[string]any{"x-queue-type": `"classic"`, "x-message-ttl": "30000", "x-note": `"5000"`, "x-max-length": "5"},
		"policy":              "short", "operator_policy": "bounds",
		"overridden_by": []any{
			map[string]any{"key": "x-max-length", "argument": nil, "effective": "5", "policy": "bounds", "operator": true},
			map[string]any{"key": "x-message-ttl", "argument": "60000", "effective": "30000", "policy": "short", "operator": false},
		},
		"messages":  map[string]any{"total": 3.0, "ready": 0.0, "unacknowledged": 3.0, "dead_lettering": 0.0},
		"consumers": 1.0,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the queue shows as\n%v, want\n%v", got, want)
	}
	_, diagnostics := b.protocol().data("redeliver_rabbitmq_queue", map[string]any{"name": "nobody"})
	b.protocol().fails(diagnostics, "There is no such queue", `has no queue "nobody"`, "redeliver_rabbitmq_topology")
	_, diagnostics = b.protocol().data("redeliver_rabbitmq_queue", map[string]any{"name": "jobs", "vhost": "nowhere"})
	b.protocol().fails(diagnostics, "Could not read the queue", "nowhere")
	p := newProtocol(t)
	p.configure(map[string]any{})
	_, diagnostics = p.data("redeliver_rabbitmq_queue", map[string]any{"name": "x"})
	p.fails(diagnostics, "Could not read from RabbitMQ", "No RabbitMQ is configured")
}

// TestTopologyDataSource verifies a manifest in the configuration that owns the topic and, from a file, in one that does not.
func TestTopologyDataSource(t *testing.T) {
	b := setup(t)
	const check = `
data "redeliver_rabbitmq_topology" "orders" { manifest = %s }
check "orders" {
  assert {
    condition     = data.redeliver_rabbitmq_topology.orders.in_order
    error_message = "orders is not in order: ${join(", ", [for o in data.redeliver_rabbitmq_topology.orders.objects : "${o.kind} ${o.name} is ${o.status}" if o.status != "present"])}"
  }
}
`
	owner := b.commandLine(b.provider + losing(orders(`bindings = [{ exchange = "amq.topic", routing_key = "order.*" }]`)) + fmt.Sprintf(check, "redeliver_rabbitmq_topic.orders.manifest") +
		`output "manifest" { value = redeliver_rabbitmq_topic.orders.manifest }`)
	// The manifest is known while planning, and the topic is still to be created: the check waits.
	expectNot(t, owner.apply(), "not in order")
	expectNot(t, owner.plan(), "not in order")
	manifest := owner.must("output", "-raw", "manifest")

	user, password := brokertest.User(t, b.broker, b.vhost, "^$", "^$", ".*", "management")
	reader := b.commandLine(b.blockAt(b.broker.ManagementURL(), user, password, "") + fmt.Sprintf(check, `file("manifest.json")`))
	reader.write("manifest.json", manifest)
	expectNot(t, reader.plan(), "not in order")

	b.request("DELETE", "queues/%s/orders-parked", nil)
	b.remake("orders-hold-5s", map[string]any{"x-queue-type": "quorum", "x-message-ttl": 4000})
	b.request("DELETE", "bindings/%s/e/amq.topic/q/orders/order.%%2A", nil)
	b.request("PUT", "policies/%s/short", map[string]any{"pattern": "^orders-dlq$", "apply-to": "queues", "definition": map[string]any{"message-ttl": 1000}})
	b.hold("orders-hold-30s", 0)
	expect(t, reader.plan(), "Check block assertion failed", "queue orders-parked is missing", "queue orders-hold-5s is drifted", "binding amq.topic -> orders (order.*) is missing")

	var got map[string]any
	statuses := func() map[string]any {
		got = b.protocolAs(user, password, nil).mustData("redeliver_rabbitmq_topology", map[string]any{"manifest": manifest})
		out := map[string]any{}
		for _, object := range got["objects"].([]any) {
			o := object.(map[string]any)
			out[o["name"].(string)] = o
		}
		return out
	}
	var objects map[string]any
	brokertest.WaitFor(t, func() (bool, string) { // a user without the tag "monitoring" is told of consumers by statistics
		objects = statuses()
		o := objects["orders-hold-30s"].(map[string]any)
		return o["status"] == "drifted", fmt.Sprint(o)
	})
	for name, want := range map[string]string{
		"orders-retry": "present", "orders": "present", "orders-hold-120s": "present", "orders-retry -> orders-dlq (orders-dlq)": "present",
		"orders-parked": "missing", "orders-hold-5s": "drifted", "orders-hold-30s": "drifted", "orders-dlq": "drifted",
		"orders-retry -> orders-parked (orders-parked)": "missing", "orders-retry -> orders-hold-5s (orders-hold-5s)": "missing", "amq.topic -> orders (order.*)": "missing",
	} {
		if o, _ := objects[name].(map[string]any); o["status"] != want {
			t.Errorf("%s is %v, want %s", name, o, want)
		}
	}
	if got["in_order"] != false || len(got["unseen"].([]any)) != 0 || got["topic"] != "orders" || got["vhost"] != b.vhost {
		t.Errorf("in_order, unseen, topic and vhost of %v", got)
	}
	text := fmt.Sprint(objects)
	for _, part := range []string{
		"messages leave this queue after 4s instead of 5s", "rejected and expired messages are discarded instead of going to the default exchange",
		"what is taken out of a hold queue does not wait its delay", "key:x-message-ttl operator:false policy:short",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %s", part, text)
		}
	}
	owner.apply()
	b.request("DELETE", "policies/%s/short", nil)
	owner.apply("-destroy")
}

func TestTopologyDataSourceSaysWhatItCannotSee(t *testing.T) {
	b := setup(t)
	spec := topology.Spec{Identity: topology.Identity{Topic: "orders", VHost: b.vhost}, DeadLetterQueue: "orders-dlq"}
	m, err := spec.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	config := map[string]any{"manifest": string(m.Encode())}
	other := brokertest.VHost(t, b.broker)
	user, password := brokertest.User(t, b.broker, other, ".*", ".*", ".*", "management")
	got := b.protocolAs(user, password, nil).mustData("redeliver_rabbitmq_topology", config)
	for _, object := range got["objects"].([]any) {
		if o := object.(map[string]any); o["status"] != "unknown" || o["messages"] != nil || o["consumers"] != nil {
			t.Errorf("%v is not unknown", o)
		}
	}
	unseen := fmt.Sprint(got["unseen"])
	if got["in_order"] != false || !strings.Contains(unseen, "queues: cannot read") || !strings.Contains(unseen, b.vhost) {
		t.Errorf("in_order %v, unseen %s", got["in_order"], unseen)
	}
	_, diagnostics := b.protocol().data("redeliver_rabbitmq_topology", map[string]any{"manifest": strings.Replace(string(m.Encode()), "orders-dlq", "other-dlq", 1)})
	b.protocol().fails(diagnostics, "Invalid manifest", "fingerprint")
}
