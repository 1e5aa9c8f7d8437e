package rabbitmqadmin

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// awkward are names that any layer in between may get wrong.
var awkward = []string{
	"plain", "a b", " lead", "trail ", "a/b", "/", "a//b", "%2F", "100%", "a@b", "a#b", "a?b=c&d", "a;b", "a+b", "a:b",
	`a"b`, "a'b", `a\b`, "ünïcödé", "日本", "€/x", "a.b", "...", "*", "#", "(a)", "[a]", "<a>", "a,b", "a|b", "a`b", "a^b", "{a}", "a$b", "a!b", "tab\t", "a\x7fb",
}

func TestLiveNamesRoundTrip(t *testing.T) {
	t.Parallel()
	c, _, vhost := live(t, nil)
	ctx := t.Context()
	makeExchange(t, c, vhost, "plain-exchange", "topic")
	for _, name := range awkward {
		t.Run(name, func(t *testing.T) {
			exchange := name + "-x"
			if outcome, err := c.DeclareQueue(ctx, vhost, topology.Queue{Name: name}); err != nil || outcome != Created {
				t.Fatalf("creating: %v, %v", outcome, err)
			}
			if outcome, err := c.DeclareQueue(ctx, vhost, topology.Queue{Name: name}); err != nil || outcome != Existed {
				t.Fatalf("creating again: %v, %v", outcome, err)
			}
			q, err := c.Queue(ctx, vhost, name)
			if err != nil || q.Name != name || q.VHost != vhost || !q.Durable {
				t.Fatalf("reading the queue: %+v, %v", q, err)
			}
			must(t, c.CreateExchange(ctx, vhost, LiveExchange{Name: exchange, Type: "direct", Durable: true}))
			e, err := c.Exchange(ctx, vhost, exchange)
			if err != nil || e.Name != exchange || e.Type != "direct" || !e.Durable || e.Internal {
				t.Fatalf("reading the exchange: %+v, %v", e, err)
			}
			b := topology.Binding{Source: exchange, Destination: name, DestinationType: "queue", RoutingKey: name, Arguments: topology.Arguments{}}
			e2e := topology.Binding{Source: exchange, Destination: "plain-exchange", DestinationType: "exchange", RoutingKey: name, Arguments: topology.Arguments{"x": name}}
			bind(t, c, vhost, b, b, e2e)
			bindings, err := c.QueueBindings(ctx, vhost, name)
			if err != nil || !reflect.DeepEqual(bindings, []topology.Binding{b}) {
				t.Fatalf("bindings of the queue: %+v, %v", bindings, err)
			}
			from, to, err := c.ExchangeBindings(ctx, vhost, exchange)
			if err != nil || !reflect.DeepEqual(from, []topology.Binding{e2e, b}) || len(to) != 0 {
				t.Fatalf("bindings of the exchange: %+v, %+v, %v", from, to, err)
			}
			if _, to, err = c.ExchangeBindings(ctx, vhost, "plain-exchange"); err != nil || !reflect.DeepEqual(to, []topology.Binding{e2e}) {
				t.Fatalf("bindings to the exchange: %+v, %v", to, err)
			}
			for range 2 { // the second time they are gone already
				must(t, c.Unbind(ctx, vhost, b))
				must(t, c.Unbind(ctx, vhost, e2e))
			}
			if from, _, err = c.ExchangeBindings(ctx, vhost, exchange); err != nil || len(from) != 0 {
				t.Fatalf("bindings that are left: %+v, %v", from, err)
			}
			for range 2 {
				must(t, c.DeleteQueue(ctx, vhost, name))
				must(t, c.DeleteExchange(ctx, vhost, exchange))
			}
			if _, err := c.Queue(ctx, vhost, name); !errors.Is(err, ErrNotFound) {
				t.Fatalf("reading the deleted queue: %v", err)
			}
			if _, err := c.Exchange(ctx, vhost, exchange); !errors.Is(err, ErrNotFound) {
				t.Fatalf("reading the deleted exchange: %v", err)
			}
		})
	}
}

func TestLineBreaksInNamesAreRefused(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t, nil, "http://localhost:1")
	if _, err := c.DeclareQueue(t.Context(), "v", topology.Queue{Name: "a\n"}); err == nil {
		t.Error("a queue is not refused")
	}
	if err := c.CreateExchange(t.Context(), "v", LiveExchange{Name: "a\rb", Type: "direct"}); err == nil {
		t.Error("an exchange is not refused")
	}
}

func TestLiveVHostNamesRoundTrip(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	c := liveClient(t, b, nil)
	for _, name := range awkward {
		t.Run(name, func(t *testing.T) {
			vhost := brokertest.VHost(t, b) + name
			for path, body := range map[string]any{
				"/api/vhosts/" + url.PathEscape(vhost): struct{}{},
			} {
				if status, answer := brokertest.Request(t, b, http.MethodPut, path, body); status >= 300 {
					t.Fatalf("making the vhost: %d %s", status, answer)
				}
			}
			t.Cleanup(func() {
				if status, answer := brokertest.Request(t, b, http.MethodDelete, "/api/vhosts/"+url.PathEscape(vhost), nil); status >= 300 {
					t.Errorf("deleting the vhost: %d %s", status, answer)
				}
			})
			permissions := map[string]string{"configure": ".*", "write": ".*", "read": ".*"}
			brokertest.Request(t, b, http.MethodPut, "/api/permissions/"+url.PathEscape(vhost)+"/"+b.Username(), permissions)
			must(t, c.CreateQueue(t.Context(), vhost, topology.Queue{Name: "q"}))
			queues, err := c.Queues(t.Context(), vhost)
			if err != nil || len(queues) != 1 || queues[0].Name != "q" || queues[0].VHost != vhost {
				t.Fatalf("listing: %+v, %v", queues, err)
			}
			if _, err := c.Queue(t.Context(), vhost, "none"); !errors.Is(err, ErrNotFound) {
				t.Fatalf("reading what is not there: %v", err)
			}
			must(t, c.DeleteQueue(t.Context(), vhost, "q"))
		})
	}
}

func TestLiveArgumentsKeepTheirTypes(t *testing.T) {
	t.Parallel()
	c, _, vhost := live(t, nil)
	args := topology.Arguments{
		"x-queue-type": "classic", "x-message-ttl": int64(5000), "x-string": "5000", "x-true": true, "x-false": false, "x-float": 0.25,
		"x-big": int64(math.MaxInt64), "x-small": int64(math.MinInt64 + 1), "x-beyond-float": int64(1<<53 + 1), "x-empty": "",
		"x-list": []any{int64(1), "1", true, []any{}}, "x-table": map[string]any{"a": map[string]any{"b": int64(1)}, "ü": "€"},
		"x-odd key/%": "v",
	}
	must(t, c.CreateQueue(t.Context(), vhost, topology.Queue{Name: "q", Arguments: args}))
	q, err := c.Queue(t.Context(), vhost, "q")
	must(t, err)
	if got, want := topology.CanonicalJSON(q.Arguments), topology.CanonicalJSON(args); got != want {
		t.Errorf("queue arguments\n got %s\nwant %s", got, want)
	}
	queues, err := c.Queues(t.Context(), vhost)
	must(t, err)
	if got, want := topology.CanonicalJSON(queues[0].Arguments), topology.CanonicalJSON(args); got != want {
		t.Errorf("listed queue arguments\n got %s\nwant %s", got, want)
	}
	must(t, c.CreateExchange(t.Context(), vhost, LiveExchange{Name: "e", Type: "headers", Durable: true, Internal: true, Arguments: args}))
	e, err := c.Exchange(t.Context(), vhost, "e")
	must(t, err)
	if got, want := topology.CanonicalJSON(e.Arguments), topology.CanonicalJSON(args); got != want || !e.Internal {
		t.Errorf("exchange arguments (internal %v)\n got %s\nwant %s", e.Internal, got, want)
	}
	b := topology.Binding{Source: "e", Destination: "q", DestinationType: "queue", Arguments: args}
	other := b
	other.Arguments = topology.Arguments{"x-string": int64(5000)}
	bind(t, c, vhost, b, other)
	must(t, c.Unbind(t.Context(), vhost, topology.Binding{Source: "e", Destination: "q", Arguments: topology.Arguments{"x-string": "5000"}})) // neither
	bindings, err := c.QueueBindings(t.Context(), vhost, "q")
	must(t, err)
	if len(bindings) != 2 {
		t.Fatalf("bindings: %+v", bindings)
	}
	must(t, c.Unbind(t.Context(), vhost, b))
	bindings, err = c.QueueBindings(t.Context(), vhost, "q")
	if err != nil || !reflect.DeepEqual(bindings, []topology.Binding{other}) {
		t.Fatalf("bindings after one was removed: %+v, %v", bindings, err)
	}
}

func TestBindRefusesWhatTheAPICannotHandle(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]topology.Binding{
		"default exchange":     {Destination: "q", RoutingKey: "q"},
		"tilde with arguments": {Source: "e", Destination: "q", RoutingKey: "a~b", Arguments: topology.Arguments{"x": int64(1)}},
		"one dot":              {Source: "e", Destination: "q", RoutingKey: "."},
		"two dots":             {Source: "e", Destination: "q", RoutingKey: ".."},
		"wrong kind":           {Source: "e", Destination: "q", DestinationType: "topic"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fake(t, func(http.ResponseWriter, *http.Request) {})
			c, _ := newClient(t, nil, f.URL)
			if err := c.Bind(t.Context(), "v", b); err == nil {
				t.Error("accepted")
			}
			if f.count() != 0 {
				t.Errorf("requests: %v", f.requests())
			}
		})
	}
}
