package provider

import (
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// TestIdentity imports every kind of resource by its id and by its identity, with the same outcome, and keeps the identity
// over a refresh.
func TestIdentity(t *testing.T) {
	b := setup(t)
	config := b.provider + losing(orders("")) + shop + `
resource "redeliver_rabbitmq_dead_letter_queue" "mails" {
  topic          = "mails"
  convention     = "shove"
  consumer_group = "eu"
  name           = "the graveyard"
}
resource "redeliver_rabbitmq_exchange" "events" {
  name = "shop/events"
  type = "topic"
}
resource "redeliver_rabbitmq_binding" "plain" {
  source           = "amq.topic"
  destination_type = "exchange"
  destination      = redeliver_rabbitmq_exchange.events.name
}
resource "redeliver_rabbitmq_binding" "typed" {
  source      = "amq.headers"
  destination = redeliver_rabbitmq_topic.orders.name
  routing_key = "a b"
  arguments   = { "x-match" = "all", n = 5 }
}
`
	c := b.commandLine(config)
	c.apply()
	state := c.state()
	p := b.protocol()
	topic := map[string]any{"vhost": b.vhost, "topic": "orders", "convention": "redeliver", "consumer_group": nil}
	with := func(base map[string]any, more map[string]any) map[string]any {
		out := map[string]any{}
		for _, m := range []map[string]any{base, more} {
			for key, value := range m {
				out[key] = value
			}
		}
		return out
	}
	for address, want := range map[string]map[string]any{
		"redeliver_rabbitmq_topic.orders":             {"vhost": b.vhost, "name": "orders", "convention": "redeliver", "consumer_group": nil},
		"redeliver_rabbitmq_hold_ladder.orders":       topic,
		"redeliver_rabbitmq_parked_queue.orders":      with(topic, map[string]any{"name": nil}),
		"redeliver_rabbitmq_dead_letter_queue.orders": with(topic, map[string]any{"name": nil}),
		"redeliver_rabbitmq_dead_letter_queue.mails":  {"vhost": b.vhost, "topic": "mails", "convention": "shove", "consumer_group": "eu", "name": "the graveyard"},
		"redeliver_rabbitmq_exchange.events":          {"vhost": b.vhost, "name": "shop/events"},
		"redeliver_rabbitmq_binding.plain": {
			"vhost": b.vhost, "source": "amq.topic", "destination_type": "exchange", "destination": "shop/events", "routing_key": nil, "arguments": nil,
		},
		"redeliver_rabbitmq_binding.typed": {
			"vhost": b.vhost, "source": "amq.headers", "destination_type": "queue", "destination": "orders", "routing_key": "a b", "arguments": `{"n":5,"x-match":"all"}`,
		},
	} {
		name := address[:len(address)-len(resourceName(address))-1]
		id, _ := state[address].Values["id"].(string)
		byID := p.importResource(name, id, nil)
		if !reflect.DeepEqual(byID.identity, want) {
			t.Errorf("the identity of %s is %v, want %v", address, byID.identity, want)
		}
		byIdentity := p.importResource(name, "", want)
		if a, z := p.plainJSON(byIdentity), p.plainJSON(byID); a != z {
			t.Errorf("%s by identity is\n%s, by id\n%s", address, a, z)
		}
		if byID.state["id"] != id {
			t.Errorf("%s is imported with the id %v, want %s", address, byID.state["id"], id)
		}
		if again := p.read(name, byID.raw, byID.rawIdentity, nil); !reflect.DeepEqual(again.identity, want) {
			t.Errorf("after a refresh the identity of %s is %v", address, again.identity)
		}
		// A state of before there were identities gets one.
		if again := p.read(name, byID.raw, nil, nil); !reflect.DeepEqual(again.identity, want) {
			t.Errorf("the identity that a refresh gives %s is %v", address, again.identity)
		}
	}
	// What defaults to redeliver need not be said.
	short := p.importResource("redeliver_rabbitmq_topic", "", map[string]any{"vhost": b.vhost, "name": "orders"})
	if short.identity["convention"] != "redeliver" {
		t.Errorf("the identity is %v", short.identity)
	}
	got, err := p.server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
		TypeName: "redeliver_rabbitmq_topic",
		Identity: &tfprotov6.ResourceIdentityData{IdentityData: p.value(p.identities["redeliver_rabbitmq_topic"], map[string]any{"vhost": b.vhost, "name": "orders", "convention": "nope"})},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.fails(got.Diagnostics, "Invalid import id", `Convention "nope" is not known`)
	// What is gone is identified too, in a state that has no identity yet.
	dead := p.importResource("redeliver_rabbitmq_parked_queue", b.idIn("orders"), nil)
	c.apply("-destroy")
	gone, err := b.protocol().server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: "redeliver_rabbitmq_parked_queue", CurrentState: dead.raw})
	if err != nil {
		t.Fatal(err)
	}
	p.noErrors(gone.Diagnostics)
}

func resourceName(address string) string {
	for i := len(address) - 1; i >= 0; i-- {
		if address[i] == '.' {
			return address[i+1:]
		}
	}
	return address
}
