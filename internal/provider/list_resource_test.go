package provider

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// listed is one result of a list.
type listed struct {
	name     string
	identity map[string]any
	state    map[string]any
}

// list asks as terraform query does.
func (p *protocol) list(name string, config map[string]any, limit int64, include bool) ([]listed, []*tfprotov6.Diagnostic) {
	p.t.Helper()
	server, ok := p.server.(tfprotov6.ListResourceServer)
	if !ok {
		p.t.Fatal("the server has no lists")
	}
	of := p.schemas.ListResourceSchemas[name].ValueType()
	stream, err := server.ListResource(p.t.Context(), &tfprotov6.ListResourceRequest{TypeName: name, Config: p.value(of, config), Limit: limit, IncludeResource: include})
	if err != nil {
		p.t.Fatal(err)
	}
	var out []listed
	var diagnostics []*tfprotov6.Diagnostic
	for result := range stream.Results {
		diagnostics = append(diagnostics, result.Diagnostics...)
		if result.Identity == nil {
			continue
		}
		one := listed{name: result.DisplayName, identity: p.identity(name, result.Identity)}
		if result.Resource != nil {
			one.state, _ = p.decoded(p.resourceType(name), result.Resource).(map[string]any)
		}
		out = append(out, one)
	}
	return out, diagnostics
}

func TestListResources(t *testing.T) {
	b := setup(t)
	const mails = `
resource "redeliver_rabbitmq_dead_letter_queue" "mails" {
  topic      = "mails"
  convention = "shove"
  name       = "graveyard"
}
resource "redeliver_rabbitmq_hold_ladder" "mails" {
  topic      = "mails"
  convention = "shove"
  delays     = ["5s"]
}
resource "redeliver_rabbitmq_topic" "mails" {
  name              = "mails"
  convention        = "shove"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.mails.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.mails.queues
}
resource "redeliver_rabbitmq_dead_letter_queue" "lost" { topic = "lost" }
`
	c := b.commandLine(b.provider + losing(orders(`bindings = [{ exchange = "amq.topic", routing_key = "order.*" }]`)+mails) + `
resource "redeliver_rabbitmq_exchange" "events" {
  name = "events"
  type = "topic"
}
`)
	c.apply()
	b.request("PUT", "queues/%s/stranger", map[string]any{"durable": true})
	p := b.protocol()
	for name, test := range map[string]struct {
		resource string
		config   map[string]any
		want     []string
	}{
		"topics":                       {"topic", nil, []string{"name=orders convention=redeliver"}},
		"topics of another convention": {"topic", map[string]any{"convention": "shove"}, []string{"name=mails convention=shove"}},
		"ladders":                      {"hold_ladder", nil, []string{"topic=orders convention=redeliver"}},
		"dead-letter queues":           {"dead_letter_queue", nil, []string{"topic=lost convention=redeliver", "topic=orders convention=redeliver"}},
		"dead-letter queues of other names": {
			"dead_letter_queue",
			map[string]any{"convention": "shove"},
			[]string{"topic=lost convention=shove", "topic=mails convention=shove name=graveyard"},
		},
		"parked queues": {"parked_queue", nil, []string{"topic=orders convention=redeliver"}},
		"exchanges":     {"exchange", nil, []string{"name=events", "name=lost-retry", "name=orders-retry"}},
	} {
		got, diagnostics := p.list("redeliver_rabbitmq_"+test.resource, test.config, 0, false)
		p.noErrors(diagnostics)
		var texts []string
		for _, one := range got {
			if one.identity["vhost"] != b.vhost || one.state != nil || one.name == "" {
				t.Errorf("%s: %+v", name, one)
			}
			text := ""
			for _, key := range []string{"topic", "name", "convention"} {
				if value := one.identity[key]; value != nil && (key != "name" || test.resource != "dead_letter_queue") {
					text += fmt.Sprintf(" %s=%s", key, value)
				}
			}
			if value := one.identity["name"]; value != nil && test.resource == "dead_letter_queue" {
				text += fmt.Sprintf(" name=%s", value)
			}
			texts = append(texts, text[1:])
		}
		if !reflect.DeepEqual(texts, test.want) {
			t.Errorf("%s: %q, want %q", name, texts, test.want)
		}
	}
	// With the resource: what an import of it has.
	for _, name := range []string{"redeliver_rabbitmq_topic", "redeliver_rabbitmq_hold_ladder", "redeliver_rabbitmq_dead_letter_queue", "redeliver_rabbitmq_parked_queue", "redeliver_rabbitmq_exchange"} {
		got, diagnostics := p.list(name, nil, 1, true)
		p.noErrors(diagnostics)
		if len(got) != 1 {
			t.Fatalf("a limit of 1 gives %d of %s", len(got), name)
		}
		if want := p.importResource(name, "", got[0].identity); !reflect.DeepEqual(got[0].state, want.state) {
			t.Errorf("listed %s is\n%v, imported\n%v", name, got[0].state, want.state)
		}
	}
	_, diagnostics := p.list("redeliver_rabbitmq_topic", map[string]any{"vhost": "nowhere"}, 0, false)
	p.fails(diagnostics, "Could not list", "nowhere")
	c.apply("-destroy")
}

// TestListSchemas: a list has the name of the resource that it lists, whose identity it yields.
func TestListSchemas(t *testing.T) {
	t.Parallel()
	p := newProtocol(t)
	for name := range p.schemas.ListResourceSchemas {
		if p.schemas.ResourceSchemas[name] == nil || p.identities[name] == nil || !p.identities[name].Is(tftypes.Object{}) {
			t.Errorf("list %s has no resource or no identity", name)
		}
	}
	if n := len(p.schemas.ListResourceSchemas); n != 8 {
		t.Errorf("%d lists", n)
	}
}
