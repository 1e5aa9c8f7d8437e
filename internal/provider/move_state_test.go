package provider

import (
	"encoding/json"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// TestMoveState moves the states of the community provider's resources in, as moved blocks do, and finds nothing to change in
// the refresh that follows.
func TestMoveState(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + losing(orders(`bindings = [{ exchange = "amq.topic", routing_key = "order.*" }]`)) + `
resource "redeliver_rabbitmq_exchange" "events" {
  name = "events"
  type = "topic"
}
resource "redeliver_rabbitmq_binding" "typed" {
  source      = "amq.headers"
  destination = redeliver_rabbitmq_topic.orders.name
  arguments   = { "x-match" = "all", n = 5 }
}
`)
	c.apply()
	p := b.protocol()
	move := func(address, from, to string, state map[string]any) (*tfprotov6.MoveResourceStateResponse, error) {
		text, err := json.Marshal(state)
		if err != nil {
			t.Fatal(err)
		}
		return p.server.MoveResourceState(t.Context(), &tfprotov6.MoveResourceStateRequest{
			SourceProviderAddress: address, SourceTypeName: from, SourceState: &tfprotov6.RawState{JSON: text}, TargetTypeName: to,
		})
	}
	queue := func(name string, settings map[string]any) map[string]any {
		return map[string]any{"id": name + "@" + b.vhost, "name": name, "vhost": b.vhost, "settings": []any{settings}}
	}
	quorum := map[string]any{"durable": true, "auto_delete": false, "arguments": nil, "arguments_json": `{"x-queue-type":"quorum","x-delivery-limit":1000000}`}
	for name, test := range map[string]struct {
		address, from, to string
		state             map[string]any
		id                string
	}{
		"a topic": {
			"registry.terraform.io/cyrilgdn/rabbitmq", "rabbitmq_queue", "redeliver_rabbitmq_topic",
			queue("orders", map[string]any{"durable": true, "auto_delete": false, "arguments": map[string]string{
				"x-queue-type": "quorum", "x-dead-letter-exchange": "orders-retry", "x-dead-letter-routing-key": "orders-dlq",
			}, "arguments_json": ""}), b.idIn("orders"),
		},
		"a dead-letter queue": {"registry.opentofu.org/cyrilgdn/rabbitmq", "rabbitmq_queue", "redeliver_rabbitmq_dead_letter_queue", queue("orders-dlq", quorum), b.idIn("orders")},
		"a parked queue":      {"registry.terraform.io/cyrilgdn/rabbitmq", "rabbitmq_queue", "redeliver_rabbitmq_parked_queue", queue("orders-parked", quorum), b.idIn("orders")},
		"an exchange":         {"registry.terraform.io/cyrilgdn/rabbitmq", "rabbitmq_exchange", "redeliver_rabbitmq_exchange", queue("events", nil), b.idIn("events")},
		"a binding with arguments": {
			"registry.terraform.io/cyrilgdn/rabbitmq", "rabbitmq_binding", "redeliver_rabbitmq_binding", map[string]any{
				"id": "x", "vhost": b.vhost, "source": "amq.headers", "destination": "orders", "destination_type": "queue", "routing_key": "", "properties_key": "y",
				"arguments": nil, "arguments_json": `{"n":5,"x-match":"all"}`,
			}, b.idIn("amq.headers/queue/orders?arguments=%7B%22n%22%3A5%2C%22x-match%22%3A%22all%22%7D"),
		},
	} {
		got, err := move(test.address, test.from, test.to, test.state)
		if err != nil {
			t.Fatal(err)
		}
		p.noErrors(got.Diagnostics)
		moved := p.read(test.to, got.TargetState, got.TargetIdentity, got.TargetPrivate)
		if moved.state["id"] != test.id {
			t.Errorf("%s: the moved state has the id %v, want %s", name, moved.state["id"], test.id)
		}
		imported := p.importResource(test.to, test.id, nil)
		if a, z := p.plainJSON(moved), p.plainJSON(imported); a != z {
			t.Errorf("%s: moved it is\n%s, imported\n%s", name, a, z)
		}
	}
	// What cannot be told is refused, and other providers are none of this one's business.
	got, err := move("registry.terraform.io/cyrilgdn/rabbitmq", "rabbitmq_queue", "redeliver_rabbitmq_dead_letter_queue", queue("graveyard", quorum))
	if err != nil {
		t.Fatal(err)
	}
	p.fails(got.Diagnostics, "Could not move the state", `State of rabbitmq_queue "graveyard"`, "its topic is not known", "Move it in by hand")
	got, err = move("registry.terraform.io/hashicorp/aws", "rabbitmq_queue", "redeliver_rabbitmq_topic", queue("orders", quorum))
	if err != nil {
		t.Fatal(err)
	}
	p.fails(got.Diagnostics, "Unable to Move Resource State")
	c.apply("-destroy")
}

func (p *protocol) plainJSON(i imported) string {
	p.t.Helper()
	text, err := json.Marshal([]any{i.state, i.identity})
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}
