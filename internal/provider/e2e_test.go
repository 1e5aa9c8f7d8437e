package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
)

// fates are the messages of the end-to-end test, by id: what its handler makes of each, and where it ends.
var fates = map[string]struct {
	ends    string // "dlq", "parked", or "" where it is acknowledged
	calls   int    // how often the handler sees it
	outcome func(call int) redeliver.Outcome
}{
	"ack":         {"", 1, func(int) redeliver.Outcome { return redeliver.Ack() }},
	"fourth time": {"", 4, func(call int) redeliver.Outcome { return ackFrom(4, call, redeliver.Retry(errors.New("not yet"))) }},
	"hopeless":    {"dlq", 11, func(int) redeliver.Outcome { return redeliver.Retry(errors.New("never")) }},
	"rejected":    {"dlq", 1, func(int) redeliver.Outcome { return redeliver.Reject(errors.New("no such article")) }},
	"permanent": {"dlq", 1, func(int) redeliver.Outcome {
		return redeliver.FromError(redeliver.Permanent(errors.New("no such article")))
	}},
	"early": {"", 3, func(call int) redeliver.Outcome { return ackFrom(3, call, redeliver.Defer()) }},
	"later": {"", 2, func(call int) redeliver.Outcome { return ackFrom(2, call, redeliver.DeferFor(30*time.Millisecond)) }},
	"retry later": {"", 2, func(call int) redeliver.Outcome {
		return ackFrom(2, call, redeliver.RetryAfter(30*time.Millisecond, errors.New("busy")))
	}},
	"unknown version": {"parked", 1, func(int) redeliver.Outcome { return redeliver.Park(errors.New("version 9")) }},
}

func ackFrom(last, call int, before redeliver.Outcome) redeliver.Outcome {
	if call >= last {
		return redeliver.Ack()
	}
	return before
}

// TestEndToEnd applies a topic, consumes it through every outcome with the permissions that the provider computes,
// counts on the broker where every message ended, and destroys everything.
func TestEndToEnd(t *testing.T) {
	for park, parkedIn := range map[string]string{"reject": "orders-dlq", "publish": "orders-parked"} {
		t.Run("park = "+park, func(t *testing.T) {
			b := setup(t)
			config := b.provider + fmt.Sprintf(`
resource "redeliver_rabbitmq_exchange" "shop" {
  name = "shop.events"
  type = "topic"
}
resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }
resource "redeliver_rabbitmq_parked_queue" "orders" { topic = "orders" }
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic  = "orders"
  delays = ["5ms", "30ms", "120ms"]
}
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  parked_queue      = redeliver_rabbitmq_parked_queue.orders.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.orders.queues
  park              = %q
  bindings          = [{ exchange = redeliver_rabbitmq_exchange.shop.name, routing_key = "order.*" }]
}
locals {
  consumer  = provider::redeliver::build_permissions(redeliver_rabbitmq_topic.orders.manifest, "consumer")
  publisher = provider::redeliver::build_permissions(redeliver_rabbitmq_topic.orders.manifest, "publisher")
}
output "manifest" { value = redeliver_rabbitmq_topic.orders.manifest }
output "consumer" { value = [local.consumer.configure, local.consumer.write, local.consumer.read] }
output "publisher" { value = [local.publisher.configure, local.publisher.write, local.publisher.read] }
`, park)
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories(),
				Steps: []resource.TestStep{
					{Config: config, Check: func(s *terraform.State) error {
						b.consumeEverything(s.RootModule().Outputs, parkedIn)
						return nil
					}},
					unchanged(config),
				},
				CheckDestroy: func(*terraform.State) error {
					b.mustHave()
					return nil
				},
			})
		})
	}
}

// userWith makes a user with the permissions in an output.
func (b *bundle) userWith(output *terraform.OutputState) (user, password string) {
	b.t.Helper()
	patterns, ok := output.Value.([]any)
	if !ok || len(patterns) != 3 {
		b.t.Fatalf("permissions are %v", output.Value)
	}
	return brokertest.User(b.t, b.broker, b.vhost, fmt.Sprint(patterns[0]), fmt.Sprint(patterns[1]), fmt.Sprint(patterns[2]))
}

func (b *bundle) consumeEverything(outputs map[string]*terraform.OutputState, parkedIn string) {
	b.t.Helper()
	manifest, err := redeliver.ParseManifest([]byte(fmt.Sprint(outputs["manifest"].Value)))
	if err != nil {
		b.t.Fatal(err)
	}
	b.publishAs(outputs["publisher"])

	var mu sync.Mutex
	calls := map[string]int{}
	ended := make(chan string, 100)
	user, password := b.userWith(outputs["consumer"])
	consumer, err := rabbitmq.Open(b.t.Context(), rabbitmq.Config{
		URL: b.broker.AMQPURLAs(b.vhost, user, password), Manifest: manifest,
		Handler: redeliver.JSON(func(_ context.Context, _ map[string]any, m *redeliver.Message) redeliver.Outcome {
			mu.Lock()
			defer mu.Unlock()
			calls[m.ID]++
			return fates[m.ID].outcome(calls[m.ID])
		}),
		Consumer: redeliver.Config{Logger: slog.New(slog.DiscardHandler), OnEvent: func(e redeliver.Event) {
			switch e.Kind {
			case redeliver.EventAcked, redeliver.EventDeadLettered, redeliver.EventParked:
				ended <- e.Message.ID
			}
		}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- consumer.Run(b.t.Context()) }()
	for n := range len(fates) + 1 {
		select {
		case <-ended:
		case <-time.After(time.Minute):
			b.t.Fatalf("%d messages ended, want %d; calls: %v", n, len(fates)+1, calls)
		}
	}
	if err := errors.Join(consumer.Close(), <-done); err != nil {
		b.t.Error(err)
	}

	// Every message is where it belongs, once, and nowhere else.
	want := map[string][]string{"orders-dlq": {}, "orders-parked": {}}
	want[parkedIn] = append(want[parkedIn], "unreadable")
	for id, fate := range fates {
		switch fate.ends {
		case "dlq":
			want["orders-dlq"] = append(want["orders-dlq"], id)
		case "parked":
			want[parkedIn] = append(want[parkedIn], id)
		}
		if calls[id] != fate.calls {
			b.t.Errorf("%q: the handler saw it %d times, want %d", id, calls[id], fate.calls)
		}
	}
	for _, queue := range []string{"orders", "orders-dlq", "orders-parked", "orders-hold-5ms", "orders-hold-30ms", "orders-hold-120ms"} {
		brokertest.WaitDepth(b.t, b.broker, b.vhost, queue, len(want[queue]))
		var found []string
		for _, d := range brokertest.Drain(b.t, b.broker, b.vhost, queue) {
			found = append(found, d.MessageId)
		}
		slices.Sort(found)
		slices.Sort(want[queue])
		if !slices.Equal(found, want[queue]) && len(found)+len(want[queue]) > 0 {
			b.t.Errorf("queue %q has %q, want %q", queue, found, want[queue])
		}
	}
}

// publishAs publishes one message of every fate, and one that nobody can read, the way an application does.
func (b *bundle) publishAs(permissions *terraform.OutputState) {
	b.t.Helper()
	user, password := b.userWith(permissions)
	conn, err := amqp091.Dial(b.broker.AMQPURLAs(b.vhost, user, password))
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err == nil {
		err = channel.Confirm(false)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	publish := func(id, body string) {
		confirmation, err := channel.PublishWithDeferredConfirmWithContext(b.t.Context(), "shop.events", "order.placed", true, false,
			amqp091.Publishing{MessageId: id, Body: []byte(body), DeliveryMode: amqp091.Persistent})
		if err != nil {
			b.t.Fatal(err)
		}
		if ok, err := confirmation.WaitContext(b.t.Context()); err != nil || !ok {
			b.t.Fatalf("publishing %q: %v, %v", id, ok, err)
		}
	}
	for id := range fates {
		publish(id, `{}`)
	}
	publish("unreadable", "not JSON")
}
