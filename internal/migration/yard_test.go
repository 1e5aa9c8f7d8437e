package migration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// quick is a broker whose counts are young, so that it is soon known that a queue is empty.
func quick(t *testing.T) *brokertest.Broker {
	t.Helper()
	return brokertest.Dedicated(t, brokertest.Options{Settings: []string{"quorum_tick_interval 1000", "collect_statistics_interval 1000"}})
}

// statisticsInterval is quick's.
const statisticsInterval = time.Second

// yard is a vhost with a queue whose arguments are to change.
type yard struct {
	t     *testing.T
	b     *brokertest.Broker
	vhost string
	kind  topology.QueueType
	// interval is the broker's statistics interval, 0 for the default.
	interval time.Duration
	// bindings are the queue's before anything happens.
	bindings []topology.Binding
}

// before and after are the queue "orders" as it is and as it is to be.
func (y *yard) before() topology.Queue {
	return y.queue(topology.Arguments{topology.ArgMessageTTL: int64(7200000), topology.ArgMaxLengthBytes: int64(1 << 41)})
}

func (y *yard) after() topology.Queue {
	return y.queue(topology.Arguments{topology.ArgMessageTTL: int64(3600000), topology.ArgMaxLengthBytes: int64(1 << 41), topology.ArgMaxLength: int64(1 << 40)})
}

func (y *yard) queue(args topology.Arguments) topology.Queue {
	args[topology.ArgQueueType] = string(y.kind)
	return topology.Queue{Name: "orders", Type: y.kind, Arguments: args}
}

// newYard makes the queue as before, bound to exchanges of all types.
func newYard(t *testing.T, b *brokertest.Broker, kind topology.QueueType, interval time.Duration) *yard {
	t.Helper()
	y := &yard{t: t, b: b, vhost: brokertest.VHost(t, b), kind: kind, interval: interval}
	c := y.client(b.ManagementURL(), b.Address())
	must(t, c.CreateQueue(t.Context(), y.vhost, y.before()))
	for _, exchange := range []string{"direct", "fanout", "topic", "headers"} {
		must(t, c.CreateExchange(t.Context(), y.vhost, rabbitmqadmin.LiveExchange{Name: exchange, Type: exchange, Durable: true}))
		keys := map[string]topology.Arguments{exchange: {}}
		switch exchange {
		case "topic":
			keys = map[string]topology.Arguments{"order.*": {}, "order.#": {}}
		case "headers":
			keys = map[string]topology.Arguments{"": {"x-match": "any", "kind": "order", "n": int64(5)}}
		}
		for key, args := range keys {
			must(t, c.Bind(t.Context(), y.vhost, topology.Binding{Source: exchange, Destination: "orders", DestinationType: topology.BindingToQueue, RoutingKey: key, Arguments: args}))
		}
	}
	y.bindings = y.bound(c)
	return y
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// client makes a client of the broker as a run has one, at these addresses; "" is no AMQP.
func (y *yard) client(management, amqp string) *rabbitmqadmin.Client {
	y.t.Helper()
	cfg := rabbitmqadmin.Config{Endpoints: []string{management}, Username: y.b.Username(), Password: y.b.Password(), StatisticsInterval: y.interval, MaxRetries: -1}
	if amqp != "" {
		cfg.AMQPEndpoints = []string{"amqp://" + amqp}
	}
	c, err := rabbitmqadmin.New(cfg)
	must(y.t, err)
	y.t.Cleanup(c.Close)
	return c
}

// options are those of a run that goes to the broker itself.
func (y *yard) options() Options {
	y.t.Helper()
	return Options{Client: y.client(y.b.ManagementURL(), y.b.Address()), VHost: y.vhost, Queue: y.after()}
}

func (y *yard) bound(c *rabbitmqadmin.Client) []topology.Binding {
	y.t.Helper()
	got, err := c.QueueBindings(y.t.Context(), y.vhost, "orders")
	must(y.t, err)
	return got
}

// message is one with everything that a message can have.
func message(id string) amqp091.Publishing {
	return amqp091.Publishing{
		MessageId: id, Body: []byte("body of " + id), ContentType: "application/json", ContentEncoding: "identity", DeliveryMode: amqp091.Persistent, Priority: 3,
		CorrelationId: "c" + id, ReplyTo: "r" + id, Expiration: "3600000", Timestamp: time.Unix(1_700_000_000, 0), Type: "order", AppId: "test",
		Headers: amqp091.Table{
			"x-redeliver-retry-count": int64(3), "nested": amqp091.Table{"a": []any{int64(1), "b"}}, "CC": []any{"nobody"},
			"x-death":                []any{amqp091.Table{"count": int64(2), "queue": "other", "exchange": "x", "reason": "rejected", "routing-keys": []any{"k"}, "time": time.Unix(1_700_000_000, 0)}},
			"x-first-death-reason":   "rejected",
			"x-redeliver-expiration": "7",
		},
	}
}

// fill publishes messages through an exchange, and returns their ids.
func (y *yard) fill(n int) []string {
	y.t.Helper()
	ids, messages := make([]string, n), make([]amqp091.Publishing, n)
	for i := range n {
		ids[i] = fmt.Sprintf("m%05d", i)
		messages[i] = message(ids[i])
	}
	brokertest.Publish(y.t, y.b, y.vhost, "topic", "order.made", messages...)
	brokertest.WaitDepth(y.t, y.b, y.vhost, "orders", n)
	return ids
}

// settled checks that nothing is left of a migration, and that the queue has these arguments and its bindings.
func (y *yard) settled(want topology.Queue) {
	y.t.Helper()
	c := y.client(y.b.ManagementURL(), y.b.Address())
	live, err := c.Queue(y.t.Context(), y.vhost, "orders")
	must(y.t, err)
	if d := topology.DiffArguments(want.Arguments, live.Arguments); topology.Breaking(d) || live.Type != want.Type {
		y.t.Errorf("the queue is %v of type %s, and is to be %v: %v", live.Arguments, live.Type, want.Arguments, d)
	}
	if missing, surplus := topology.DiffBindings(y.bindings, y.bound(c)); len(missing)+len(surplus) > 0 {
		y.t.Errorf("bindings are missing: %v; are there and were not: %v", missing, surplus)
	}
	names := want.Migrating()
	for _, path := range []string{"queues/%s/" + names.Queue.Name, "exchanges/%s/" + names.Switch, "exchanges/%s/" + names.Branch} {
		if status, _ := y.request(http.MethodGet, path, nil); status != http.StatusNotFound {
			y.t.Errorf("%s is still there (%d)", path, status)
		}
	}
}

func (y *yard) request(method, format string, body any) (int, []byte) {
	y.t.Helper()
	return brokertest.Request(y.t, y.b, method, "/api/"+fmt.Sprintf(format, url.PathEscape(y.vhost)), body)
}

// deliveries takes everything out of the queue.
func (y *yard) deliveries() []amqp091.Delivery {
	y.t.Helper()
	n := brokertest.Depth(y.t, y.b, y.vhost, "orders")
	if n == 0 {
		return nil
	}
	ch := brokertest.Channel(y.t, y.b, y.vhost)
	from, err := ch.Consume("orders", "", true, false, false, false, nil)
	must(y.t, err)
	got := make([]amqp091.Delivery, 0, n)
	for d := range from {
		if got = append(got, d); len(got) == n {
			break
		}
	}
	must(y.t, ch.Close())
	return got
}

// givenBack waits until the broker has put back what a run held that is no more: with its consumers goes what they had.
func (y *yard) givenBack() {
	y.t.Helper()
	for _, queue := range []string{"orders", y.after().Migrating().Queue.Name} {
		brokertest.WaitFor(y.t, func() (bool, string) {
			q, err := brokertest.Channel(y.t, y.b, y.vhost).QueueDeclarePassive(queue, true, false, false, false, nil)
			return err != nil || q.Consumers == 0, fmt.Sprintf("queue %q has %d consumers", queue, q.Consumers)
		})
	}
}

// inAnyOrder sorts messages where their order is not promised: what had been moved comes back behind what had not.
func inAnyOrder(got []amqp091.Delivery) []amqp091.Delivery {
	slices.SortStableFunc(got, func(a, b amqp091.Delivery) int { return strings.Compare(a.MessageId, b.MessageId) })
	return got
}

// exactly checks that the messages are those, in their order, which is that of the first where there are two of one, and that so
// many at most are there twice. It returns how many are.
func (y *yard) exactly(got []amqp091.Delivery, want []string, doubles int) int {
	y.t.Helper()
	seen := map[string]bool{}
	var ids []string
	for _, d := range got {
		if !seen[d.MessageId] {
			ids = append(ids, d.MessageId)
		}
		seen[d.MessageId] = true
	}
	if doubled := len(got) - len(ids); doubled > doubles {
		y.t.Errorf("%d messages are there twice, and at most %d may be", doubled, doubles)
	}
	if !slices.Equal(ids, want) {
		at := 0
		for at < min(len(ids), len(want)) && ids[at] == want[at] {
			at++
		}
		y.t.Errorf("%d messages, want %d; from the %dth on %.8q, want %.8q", len(ids), len(want), at, ids[at:min(len(ids), at+8)], want[at:min(len(want), at+8)])
	}
	return len(got) - len(ids)
}

// untouched checks that a message is what was published.
func (y *yard) untouched(got amqp091.Delivery) {
	y.t.Helper()
	want := message(got.MessageId)
	if got.RoutingKey != "order.made" {
		y.t.Errorf("the routing key is %q", got.RoutingKey)
	}
	delete(got.Headers, topology.HeaderDeliveryCount)
	have := []any{string(got.Body), got.ContentType, got.ContentEncoding, got.DeliveryMode, got.Priority, got.CorrelationId, got.ReplyTo, got.Expiration, got.Timestamp.UTC(), got.Type, got.AppId, got.Headers}
	wanted := []any{string(want.Body), want.ContentType, want.ContentEncoding, want.DeliveryMode, want.Priority, want.CorrelationId, want.ReplyTo, want.Expiration, want.Timestamp.UTC(), want.Type, want.AppId, want.Headers}
	if a, b := text(have), text(wanted); a != b {
		y.t.Errorf("message %s was changed:\n got %s\nwant %s", got.MessageId, a, b)
	}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(b), "+00:00", "Z")
}

// runTo runs to the end.
func (y *yard) runTo(o Options) Report {
	y.t.Helper()
	return y.runWithin(o, 5*time.Minute)
}

func (y *yard) runWithin(o Options, limit time.Duration) Report {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), limit)
	defer cancel()
	r, err := Run(ctx, o)
	if err != nil {
		y.t.Fatalf("%v (%+v)", err, r)
	}
	return r
}
