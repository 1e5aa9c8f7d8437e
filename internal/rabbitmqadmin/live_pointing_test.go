package rabbitmqadmin

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func deadLettersTo(exchange string, key ...string) topology.Arguments {
	args := topology.Arguments{topology.ArgDeadLetterExchange: exchange}
	if len(key) > 0 {
		args[topology.ArgDeadLetterKey] = key[0]
	}
	return args
}

func TestLivePointingAt(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	for name, kind := range map[string]string{"direct": "direct", "topic": "topic", "fanout": "fanout", "headers": "headers", "front": "direct", "unbound": "direct"} {
		makeExchange(t, c, vhost, name, kind)
	}
	must(t, c.CreateExchange(t.Context(), vhost, LiveExchange{Name: "falls-through", Type: "direct", Durable: true, Arguments: topology.Arguments{"alternate-exchange": "fanout"}}))
	makeQueue(t, c, vhost, "dlq", topology.Classic, deadLettersTo("", "dlq")) // pointing at itself is nobody's business
	bind(t, c, vhost, bindingTo("direct", "dlq", "hit"), bindingTo("topic", "dlq", "a.*.#"), bindingTo("fanout", "dlq", ""), bindingTo("headers", "dlq", "whatever"),
		topology.Binding{Source: "front", Destination: "direct", DestinationType: "exchange", RoutingKey: "hit"},
		topology.Binding{Source: "front", Destination: "direct", DestinationType: "exchange", RoutingKey: "miss"},
		topology.Binding{Source: "direct", Destination: "front", DestinationType: "exchange", RoutingKey: "circle"})
	sources := map[string]struct {
		args   topology.Arguments
		points bool
	}{
		"default exchange":               {deadLettersTo("", "dlq"), true},
		"default exchange, other key":    {deadLettersTo("", "other"), false},
		"default exchange, own keys":     {deadLettersTo(""), false},
		"default exchange, such own key": {deadLettersTo(""), true}, // by the binding below
		"direct":                         {deadLettersTo("direct", "hit"), true},
		"direct, other key":              {deadLettersTo("direct", "miss"), false},
		"direct, in circles":             {deadLettersTo("direct", "circle"), false},
		"direct, own keys":               {deadLettersTo("direct"), true},
		"topic":                          {deadLettersTo("topic", "a.b"), true},
		"topic, more words":              {deadLettersTo("topic", "a.b.c.d"), true},
		"topic, other key":               {deadLettersTo("topic", "a"), false},
		"fanout":                         {deadLettersTo("fanout", "anything"), true},
		"headers":                        {deadLettersTo("headers", "anything"), true},
		"through another":                {deadLettersTo("front", "hit"), true},
		"through another, stopped":       {deadLettersTo("front", "miss"), false},
		"alternate":                      {deadLettersTo("falls-through", "anything"), true},
		"unbound":                        {deadLettersTo("unbound", "hit"), false},
		"missing exchange":               {deadLettersTo("missing", "hit"), false},
		"none":                           {nil, false},
		"by policy":                      {nil, true},
		"policy beside arguments":        {deadLettersTo("", "other"), false}, // arguments win
	}
	var want []string
	for name, source := range sources {
		makeQueue(t, c, vhost, name, topology.Classic, source.args)
		if source.points {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	bind(t, c, vhost, bindingTo("topic", "default exchange, such own key", "dlq"))
	putPolicy(t, b, vhost, "dl", `{"pattern":"policy","apply-to":"queues","definition":{"dead-letter-exchange":"","dead-letter-routing-key":"dlq"}}`)

	got, err := c.PointingAt(t.Context(), vhost, "dlq")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n got %q\nwant %q", err, got, want)
	}
	if got, err := c.PointingAt(t.Context(), vhost, "does not exist"); err != nil || len(got) != 0 {
		t.Errorf("a queue that does not exist: %q, %v", got, err)
	}
}

func putPolicy(t *testing.T, b *brokertest.Broker, vhost, name, definition string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, b.ManagementURL()+"/api/policies/"+url.PathEscape(vhost)+"/"+name, strings.NewReader(definition))
	must(t, err)
	req.SetBasicAuth(b.Username(), b.Password())
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		t.Fatalf("policy: %s", res.Status)
	}
}

func TestLiveDeleteExchangeIfUnused(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	try := func(wantDeleted bool, wantUsedBy ...string) {
		t.Helper()
		deleted, usedBy, err := c.DeleteExchangeIfUnused(t.Context(), vhost, "e")
		must(t, err)
		if deleted != wantDeleted || len(usedBy) != len(wantUsedBy) {
			t.Fatalf("deleted %v, used by %q, want %v, %q", deleted, usedBy, wantDeleted, wantUsedBy)
		}
		for i, want := range wantUsedBy {
			if !strings.Contains(usedBy[i], want) {
				t.Errorf("used by %q, want something about %q", usedBy[i], want)
			}
		}
	}
	makeExchange(t, c, vhost, "e", "direct")
	makeExchange(t, c, vhost, "other", "direct")
	makeQueue(t, c, vhost, "q", topology.Classic, nil)

	from := bindingTo("e", "q", "k")
	bind(t, c, vhost, from)
	try(false, `to queue "q" with routing key "k"`)
	must(t, c.Unbind(t.Context(), vhost, from))

	to := topology.Binding{Source: "other", Destination: "e", DestinationType: "exchange", RoutingKey: "k"}
	bind(t, c, vhost, to)
	try(false, `from exchange "other" to exchange "e"`)
	must(t, c.Unbind(t.Context(), vhost, to))

	makeQueue(t, c, vhost, "source", topology.Quorum, deadLettersTo("e", "k"))
	try(false, `queue "source", whose x-dead-letter-exchange`)
	must(t, c.DeleteQueue(t.Context(), vhost, "source"))

	putPolicy(t, b, vhost, "dl", `{"pattern":"^q$","apply-to":"queues","definition":{"dead-letter-exchange":"e"}}`)
	try(false, `queue "q", whose x-dead-letter-exchange`)
	must(t, c.DeleteQueue(t.Context(), vhost, "q"))

	must(t, c.CreateExchange(t.Context(), vhost, LiveExchange{Name: "front", Type: "direct", Durable: true, Arguments: topology.Arguments{"alternate-exchange": "e"}}))
	try(false, `exchange "front", whose alternate-exchange`)
	must(t, c.DeleteExchange(t.Context(), vhost, "front"))

	try(true)
	try(true) // it is gone already
	if _, _, err := c.DeleteExchangeIfUnused(t.Context(), vhost, "amq.direct"); err == nil {
		t.Error("amq.direct is not refused")
	}
	if err := c.DeleteExchange(t.Context(), vhost, ""); err == nil {
		t.Error("the default exchange is not refused")
	}
}
