package verify

import (
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

// bundle is a vhost of a test's own, and how to reach it.
type bundle struct {
	t      *testing.T
	broker *brokertest.Broker
	vhost  string
}

func setup(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	b := brokertest.Shared(t)
	return &bundle{t: t, broker: b, vhost: brokertest.VHost(t, b)}
}

func (b *bundle) client() *rabbitmqadmin.Client {
	b.t.Helper()
	c, err := rabbitmqadmin.New(rabbitmqadmin.Config{Endpoints: []string{b.broker.ManagementURL()}, Username: b.broker.Username(), Password: b.broker.Password()})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return c
}

// report is what a fresh client says of a manifest.
func (b *bundle) report(m topology.Manifest) Report {
	b.t.Helper()
	r, err := Manifest(b.t.Context(), b.client().View(), m)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// make makes everything that a manifest needs.
func (b *bundle) make(objects topology.Objects) {
	b.t.Helper()
	c := b.client()
	for _, e := range objects.Exchanges {
		b.must(c.CreateExchange(b.t.Context(), b.vhost, rabbitmqadmin.LiveExchange{Name: e.Name, Type: e.Type, Durable: true}))
	}
	for _, q := range objects.Queues {
		_, err := c.DeclareQueue(b.t.Context(), b.vhost, q)
		b.must(err)
	}
	for _, binding := range objects.Bindings {
		b.must(c.Bind(b.t.Context(), b.vhost, binding))
	}
}

func (b *bundle) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// request sends a request to the management API; the path is below the vhost's of the kind.
func (b *bundle) request(method, kind, name string, body any) {
	b.t.Helper()
	path := "/api/" + kind + "/" + url.PathEscape(b.vhost) + "/" + name
	if status, answer := brokertest.Request(b.t, b.broker, method, path, body); status >= http.StatusMultipleChoices {
		b.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
}

// statuses are the objects that are not present, with what they are.
func (r Report) statuses() []string {
	var out []string
	for _, o := range r.Objects {
		if o.Status != Present {
			keys := ""
			for _, d := range o.Differences {
				keys += " " + d.Key
			}
			for _, e := range o.OverriddenBy {
				keys += fmt.Sprintf(" %s=%s by %s", e.Key, e.Effective, e.Policy)
			}
			out = append(out, fmt.Sprintf("%s %s %s%s", o.Kind, o.Name, o.Status, keys))
		}
	}
	slices.Sort(out)
	return out
}

func spec(c topology.Convention, vhost string) topology.Spec {
	s := topology.Spec{
		Identity: topology.Identity{Topic: "orders", VHost: vhost, Convention: c}, HoldDelays: []time.Duration{time.Second, time.Minute},
		Retry: topology.RetryPolicy{MaxRetries: 2, Jitter: 0.2}, Bindings: []topology.Binding{{Source: "amq.topic", RoutingKey: "order.*"}},
	}
	if c == topology.Queuey {
		s.HoldDelays, s.Retry.Delays = nil, s.HoldDelays
	}
	s.DeadLetterQueue, s.ParkedQueue = s.DeadLetterQueueName(), s.ParkedQueueName()
	return s
}

func TestEveryConventionIsInOrder(t *testing.T) {
	for _, c := range topology.Conventions() {
		t.Run(string(c), func(t *testing.T) {
			b := setup(t)
			m, err := spec(c, b.vhost).Manifest()
			b.must(err)
			if r := b.report(m); r.InOrder() || len(r.statuses()) != len(r.Objects) || !strings.Contains(strings.Join(r.statuses(), " "), "queue orders missing") {
				t.Errorf("of a topology that is not there: %q", r.statuses())
			}
			objects, err := spec(c, b.vhost).Build()
			b.must(err)
			b.make(objects)
			r := b.report(m)
			if !r.InOrder() || r.Unseen != nil || len(r.Objects) != len(objects.Exchanges)+len(objects.Queues)+len(objects.Bindings) {
				t.Errorf("not in order: %q, %q", r.statuses(), r.Unseen)
			}
			for _, o := range r.Objects {
				if o.Kind == Queue && (o.Role == "" || o.Consumers == nil || *o.Consumers != 0) {
					t.Errorf("queue %+v", o)
				}
			}
		})
	}
}

// TestVHostThatNobodySees: of what is in a vhost that is not there, nothing is concluded.
func TestVHostThatNobodySees(t *testing.T) {
	b := setup(t)
	m, err := spec(topology.Redeliver, b.vhost+"-absent").Manifest()
	b.must(err)
	r := b.report(m)
	if len(r.Unseen) == 0 {
		t.Error("nothing is said to be unseen")
	}
	for _, o := range r.Objects {
		if o.Status != Unknown {
			t.Errorf("%s %s is %s", o.Kind, o.Name, o.Status)
		}
	}
}

func TestWhatDiffers(t *testing.T) {
	b := setup(t)
	s := spec(topology.Redeliver, b.vhost)
	m, err := s.Manifest()
	b.must(err)
	objects, err := s.Build()
	b.must(err)
	b.make(objects)
	b.request("DELETE", "queues", "orders-parked", nil)
	b.request("DELETE", "queues", "orders-hold-1s", nil)
	b.request("PUT", "queues", "orders-hold-1s", map[string]any{"durable": true, "arguments": map[string]any{
		"x-queue-type": "quorum", "x-message-ttl": 2000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
	}})
	b.request("PUT", "policies", "odd", map[string]any{"pattern": "^orders$", "apply-to": "queues", "definition": map[string]any{"max-length": 10}})
	want := []string{
		"binding orders-retry -> orders-hold-1s (orders-hold-1s) missing", "binding orders-retry -> orders-parked (orders-parked) missing",
		"queue orders drifted x-max-length=10 by policy \"odd\"", "queue orders-hold-1s drifted x-message-ttl", "queue orders-parked missing",
	}
	if got := b.report(m).statuses(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// Another kind of exchange.
	b.request("DELETE", "policies", "odd", nil)
	b.request("DELETE", "exchanges", "orders-retry", nil)
	b.request("PUT", "exchanges", "orders-retry", map[string]any{"type": "fanout", "durable": true})
	if got := strings.Join(b.report(m).statuses(), "; "); !strings.Contains(got, "exchange orders-retry drifted type") {
		t.Errorf("with another kind of exchange: %s", got)
	}
}

// TestMessagesThatWait: messages that were rejected to a queue that is not there have left the queue, and are in no other.
func TestMessagesThatWait(t *testing.T) {
	b := setup(t)
	s := spec(topology.Redeliver, b.vhost)
	m, err := s.Manifest()
	b.must(err)
	objects, err := s.Build()
	b.must(err)
	b.make(objects)
	b.request("DELETE", "queues", "orders-dlq", nil)
	brokertest.Publish(t, b.broker, b.vhost, "", "orders", amqp091.Publishing{}, amqp091.Publishing{})
	ch := brokertest.Channel(t, b.broker, b.vhost)
	for range 2 {
		d, ok, err := ch.Get("orders", false)
		b.must(err)
		if !ok {
			t.Fatal("there is no message")
		}
		b.must(d.Reject(false))
	}
	brokertest.WaitFor(t, func() (bool, string) { // counts are late
		got := strings.Join(b.report(m).statuses(), "; ")
		return strings.Contains(got, "queue orders drifted messages_waiting"), got
	})
}

// TestSettingsOfAPolicy: what a policy sets in the place of arguments is as good.
func TestSettingsOfAPolicy(t *testing.T) {
	b := setup(t)
	s := spec(topology.Redeliver, b.vhost)
	s.HoldDelays, s.Retry.Delays = nil, s.HoldDelays
	m, err := s.Manifest()
	b.must(err)
	objects, err := s.Build()
	b.must(err)
	var definition map[string]any
	for i, q := range objects.Queues {
		if q.Role != topology.RoleWork {
			continue
		}
		definition = map[string]any{}
		for key, value := range q.Arguments {
			if key != topology.ArgQueueType {
				definition[strings.TrimPrefix(key, "x-")] = value
			}
		}
		objects.Queues[i].Arguments = topology.Arguments{topology.ArgQueueType: "quorum"}
	}
	put := func(name string, definition map[string]any) {
		b.request("PUT", "policies", url.PathEscape(name), map[string]any{"pattern": "^orders$", "apply-to": "queues", "priority": 1000, "definition": definition})
	}
	put(topology.OwnPolicyName("orders"), definition)
	b.make(objects)
	if r := b.report(m); !r.InOrder() {
		t.Errorf("not in order: %q", r.statuses())
	}
	// What was merged into the queue's own policy is no contradiction; another value of one of its settings is.
	definition["max-length"] = 5000
	put(topology.OwnPolicyName("orders"), definition)
	if r := b.report(m); !r.InOrder() {
		t.Errorf("not in order with a merged policy: %q", r.statuses())
	}
	definition["delivery-limit"] = 3
	put(topology.OwnPolicyName("orders"), definition)
	if got := strings.Join(b.report(m).statuses(), "; "); !strings.HasPrefix(got, "queue orders drifted x-delivery-limit") {
		t.Errorf("with another limit: %s", got)
	}
	b.request("DELETE", "policies", url.PathEscape(topology.OwnPolicyName("orders")), nil)
	got := strings.Join(b.report(m).statuses(), "; ")
	for _, key := range []string{"x-dead-letter-exchange", "x-delivery-limit", "x-overflow"} {
		if !strings.Contains(got, key) {
			t.Errorf("without the policy: %s", got)
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	c, err := rabbitmqadmin.New(rabbitmqadmin.Config{Endpoints: []string{"http://127.0.0.1:1"}, MaxRetries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := spec(topology.Redeliver, "/").Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if r, err := Manifest(t.Context(), c.View(), m); err == nil {
		t.Errorf("a report without a broker: %q", r.statuses())
	}
}
