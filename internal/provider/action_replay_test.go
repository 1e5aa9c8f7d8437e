package provider

import (
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// invoke carries an action out as terraform apply does, and returns what it told on the way.
func (p *protocol) invoke(name string, config map[string]any) (progress []string, diagnostics []*tfprotov6.Diagnostic) {
	p.t.Helper()
	server, ok := p.server.(tfprotov6.ActionServer)
	if !ok {
		p.t.Fatal("the server has no actions")
	}
	value := p.value(p.schemas.ActionSchemas[name].Schema.ValueType(), config)
	valid, err := server.ValidateActionConfig(p.t.Context(), &tfprotov6.ValidateActionConfigRequest{ActionType: name, Config: value})
	if err != nil {
		p.t.Fatal(err)
	}
	p.noErrors(valid.Diagnostics)
	planned, err := server.PlanAction(p.t.Context(), &tfprotov6.PlanActionRequest{ActionType: name, Config: value})
	if err != nil {
		p.t.Fatal(err)
	}
	p.noErrors(planned.Diagnostics)
	stream, err := server.InvokeAction(p.t.Context(), &tfprotov6.InvokeActionRequest{ActionType: name, Config: value})
	if err != nil {
		p.t.Fatal(err)
	}
	for event := range stream.Events {
		switch e := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			progress = append(progress, e.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			diagnostics = append(diagnostics, e.Diagnostics...)
		}
	}
	return progress, diagnostics
}

func TestReplayAction(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + losing(orders(`park = "publish"`)) + `output "manifest" { value = redeliver_rabbitmq_topic.orders.manifest }`)
	c.apply()
	manifest := c.must("output", "-raw", "manifest")
	dead := func(n int) {
		messages := make([]amqp091.Publishing, n)
		for i := range messages {
			messages[i] = amqp091.Publishing{
				DeliveryMode: amqp091.Persistent, Body: []byte("dead"), MessageId: "m",
				Headers: amqp091.Table{"x-redeliver-retry-count": int32(10), "x-redeliver-error": "boom"},
			}
		}
		brokertest.Publish(t, b.broker, b.vhost, "", "orders-dlq", messages...)
	}
	dead(5)
	const action = "redeliver_rabbitmq_replay"
	p := b.protocol()
	progress, diagnostics := p.invoke(action, map[string]any{"manifest": manifest, "dry_run": true})
	p.noErrors(diagnostics)
	if last := progress[len(progress)-1]; !strings.Contains(last, "5 found, 5 moved") || !strings.Contains(progress[0], "dry run") {
		t.Errorf("a dry run told %q", progress)
	}
	brokertest.WaitDepth(t, b.broker, b.vhost, "orders-dlq", 5)

	progress, diagnostics = p.invoke(action, map[string]any{"manifest": manifest, "limit": 2})
	p.noErrors(diagnostics)
	if last := progress[len(progress)-1]; !strings.Contains(last, `queue "orders-dlq"`) || !strings.Contains(last, "2 moved") {
		t.Errorf("a limited replay told %q", progress)
	}
	brokertest.WaitDepth(t, b.broker, b.vhost, "orders", 2)
	for _, m := range brokertest.Drain(t, b.broker, b.vhost, "orders") {
		if _, counted := m.Headers["x-redeliver-retry-count"]; counted || m.Headers["x-redeliver-error"] != "boom" {
			t.Errorf("a replayed message has the headers %v", m.Headers)
		}
	}
	_, diagnostics = p.invoke(action, map[string]any{"manifest": manifest, "keep_count": true, "rate": 1000.0})
	p.noErrors(diagnostics)
	for _, m := range brokertest.Drain(t, b.broker, b.vhost, "orders") {
		if m.Headers["x-redeliver-retry-count"] != int32(10) {
			t.Errorf("a message that keeps its count has the headers %v", m.Headers)
		}
	}
	brokertest.WaitDepth(t, b.broker, b.vhost, "orders-dlq", 0)

	brokertest.Publish(t, b.broker, b.vhost, "", "orders-parked", amqp091.Publishing{Body: []byte("odd")})
	_, diagnostics = p.invoke(action, map[string]any{"manifest": manifest, "from": "parked_queue"})
	p.noErrors(diagnostics)
	brokertest.WaitDepth(t, b.broker, b.vhost, "orders", 1)

	// Without AMQP, and with a user who may not publish.
	_, diagnostics = b.protocolAs(b.broker.Username(), b.broker.Password(), nil).invoke(action, map[string]any{"manifest": manifest})
	p.fails(diagnostics, "Could not replay", "amqp_endpoints")
	dead(1)
	user, password := brokertest.User(t, b.broker, b.vhost, "^$", "^$", ".*", "management")
	_, diagnostics = b.protocolAs(user, password, []any{b.amqpEndpoint()}).invoke(action, map[string]any{"manifest": manifest})
	p.fails(diagnostics, "The replay ended early", "grant the user write permission", "Nothing is lost")
	brokertest.WaitDepth(t, b.broker, b.vhost, "orders-dlq", 1)
	c.apply("-destroy")
}

// TestReplayActionOfShards: messages of a topic that is sequenced over shards go back to the exchange that spreads them, by
// the key that they had.
func TestReplayActionOfShards(t *testing.T) {
	b := withPlugin(t)
	c := b.commandLine(b.provider + losing(`
resource "redeliver_rabbitmq_dead_letter_queue" "ledger" {
  topic      = "ledger"
  convention = "shove"
}
resource "redeliver_rabbitmq_topic" "ledger" {
  name              = "ledger"
  convention        = "shove"
  sequenced         = true
  sequence_shards   = 3
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.ledger.name
  retry             = { delays = ["1s"], max_retries = 1 }
}
`) + `output "manifest" { value = redeliver_rabbitmq_topic.ledger.manifest }`)
	c.apply()
	manifest := c.must("output", "-raw", "manifest")
	channel := brokertest.Channel(t, b.broker, b.vhost)
	for _, key := range []string{"a", "b", "c", "d"} {
		brokertest.Publish(t, b.broker, b.vhost, "ledger-seq-hash", key, amqp091.Publishing{DeliveryMode: amqp091.Persistent, Body: []byte(key)})
	}
	shards := []string{"ledger-seq-0", "ledger-seq-1", "ledger-seq-2"}
	was := map[string]string{}
	for _, shard := range shards {
		for {
			d, ok, err := channel.Get(shard, false)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			was[string(d.Body)] = shard
			if err := d.Reject(false); err != nil {
				t.Fatal(err)
			}
		}
	}
	brokertest.WaitDepth(t, b.broker, b.vhost, "ledger-dlq", 4)
	p := b.protocol()
	_, diagnostics := p.invoke("redeliver_rabbitmq_replay", map[string]any{"manifest": manifest})
	p.noErrors(diagnostics)
	is := map[string]string{}
	for _, shard := range shards {
		for _, d := range brokertest.Drain(t, b.broker, b.vhost, shard) {
			is[d.RoutingKey] = shard
		}
	}
	if !maps.Equal(is, was) {
		t.Errorf("messages are back in %v, and were in %v", is, was)
	}
	c.apply("-destroy")
}
