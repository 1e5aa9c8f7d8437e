package rabbitmqadmin

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// TestLiveViewTakesTheManagementTagAlone: what plans look at is open to who may use the management API at all.
func TestLiveViewTakesTheManagementTagAlone(t *testing.T) {
	t.Parallel()
	admin, b, vhost := live(t, nil)
	makeQueue(t, admin, vhost, "q", topology.Quorum, nil)
	putPolicy(t, b, vhost, "p", `{"pattern":"^q$","apply-to":"queues","definition":{"max-length":10}}`)
	status, answer := brokertest.Request(t, b, http.MethodPut, "/api/operator-policies/"+url.PathEscape(vhost)+"/op",
		map[string]any{"pattern": "^q$", "apply-to": "queues", "definition": map[string]any{"max-length": 9}})
	if status >= http.StatusMultipleChoices {
		t.Fatalf("operator policy: %d %s", status, answer)
	}
	channel := brokertest.Channel(t, b, vhost)
	if _, err := channel.ConsumeWithContext(t.Context(), "q", "someone", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	user, password := brokertest.User(t, b, vhost, ".*", ".*", ".*", "management")
	v := as(t, b, user, password).View()
	policies, err := v.Policies(t.Context(), vhost)
	if err != nil || len(policies) != 2 || policies[0].Name != "p" || policies[1].Name != "op" || !policies[1].Operator {
		t.Errorf("policies %+v, %v", policies, err)
	}
	awaitConsumer := func(c *Client, known func(Consumer) bool) {
		brokertest.WaitFor(t, func() (bool, string) {
			all, err := c.listConsumers(t.Context(), vhost)
			must(t, err)
			return len(all["q"]) == 1 && known(all["q"][0]), fmt.Sprintf("consumers %+v", all["q"])
		})
	}
	// The broker knows of a consumer before it knows its connection.
	awaitConsumer(admin, func(c Consumer) bool { return c.Tag == "someone" && c.Connection != "" })
	// A user who sees no connections sees how many there are.
	awaitConsumer(as(t, b, user, password), func(c Consumer) bool { return c.Tag == "" })
	// What is read of a queue by itself tells everybody.
	for _, c := range []*Client{as(t, b, user, password), liveClient(t, b, nil)} {
		got, err := c.View().Consumers(t.Context(), vhost, "q")
		if err != nil || len(got) != 1 || got[0].Queue != "q" || got[0].Tag != "someone" || got[0].Connection == "" {
			t.Errorf("consumers %+v, %v", got, err)
		}
		if n := c.Requests(); n != 1 {
			t.Errorf("%d requests for the consumers of one queue, want 1", n)
		}
	}
	about, err := v.VHost(t.Context(), vhost)
	if err != nil || about.Nodes != 1 {
		t.Errorf("vhost %+v, %v", about, err)
	}
}

// TestLiveViewListsWhatSingleReadsSay compares both ways of reading.
func TestLiveViewListsWhatSingleReadsSay(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	makeExchange(t, c, vhost, "e", "topic")
	makeExchange(t, c, vhost, "f", "headers")
	for i := range 3 * queuesAlone {
		name := fmt.Sprintf("q%d", i)
		makeQueue(t, c, vhost, name, []topology.QueueType{topology.Classic, topology.Quorum}[i%2], topology.Arguments{"x-message-ttl": int64(1000 + i)})
		bind(t, c, vhost, bindingTo("e", name, "a.*"))
	}
	bind(t, c, vhost, topology.Binding{Source: "e", Destination: "f", DestinationType: toExchange, RoutingKey: "#"})
	v := liveClient(t, b, nil).View()
	same := func(what string, got, want any) {
		t.Helper()
		if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b {
			t.Errorf("%s in the view is\n%s\nand by itself\n%s", what, a, b)
		}
	}
	for i := range 3 * queuesAlone {
		name := fmt.Sprintf("q%d", i)
		got, err := v.Queue(t.Context(), vhost, name)
		must(t, err)
		want, err := c.Queue(t.Context(), vhost, name)
		must(t, err)
		same("queue "+name, [3]any{got.Type, got.Durable, got.Arguments}, [3]any{want.Type, want.Durable, want.Arguments})
		gotBindings, err := v.QueueBindings(t.Context(), vhost, name)
		must(t, err)
		wantBindings, err := c.QueueBindings(t.Context(), vhost, name)
		must(t, err)
		same("bindings of "+name, gotBindings, wantBindings)
	}
	for _, name := range []string{"amq.direct", "amq.topic", "e", "f"} {
		got, err := v.Exchange(t.Context(), vhost, name)
		must(t, err)
		want, err := c.Exchange(t.Context(), vhost, name)
		must(t, err)
		same("exchange "+name, got, want)
		gotFrom, gotTo, err := v.ExchangeBindings(t.Context(), vhost, name)
		must(t, err)
		wantFrom, wantTo, err := c.ExchangeBindings(t.Context(), vhost, name)
		must(t, err)
		same("bindings of exchange "+name, [2]any{gotFrom, gotTo}, [2]any{wantFrom, wantTo})
	}
}

// TestLiveViewAfterWrites compares what a view knows after the client's writes with fresh reads.
func TestLiveViewAfterWrites(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	makeExchange(t, c, vhost, "e", "topic")
	makeExchange(t, c, vhost, "f", "topic")
	queues := []string{"kept", "redeclared", "deleted", "new"}
	for _, name := range queues[:3] {
		makeQueue(t, c, vhost, name, topology.Classic, topology.Arguments{"x-made-up": "was"})
		bind(t, c, vhost, bindingTo("e", name, "a"), bindingTo("f", name, "a"))
	}
	compare := func(when string) {
		t.Helper()
		fresh, v := liveClient(t, b, nil), c.View()
		same := func(what string, got, want any) {
			t.Helper()
			if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b {
				t.Errorf("%s, %s in the view is\n%s\nand by itself\n%s", when, what, a, b)
			}
		}
		gotAll, err := v.Queues(t.Context(), vhost)
		must(t, err)
		wantAll, err := fresh.Queues(t.Context(), vhost)
		must(t, err)
		names := func(all []LiveQueue) (out []string) {
			for _, q := range all {
				out = append(out, fmt.Sprint(q.Name, q.Arguments))
			}
			slices.Sort(out)
			return out
		}
		same("the queues", names(gotAll), names(wantAll))
		for _, name := range queues {
			got, err := v.QueueBindings(t.Context(), vhost, name)
			must(t, err)
			want, err := fresh.QueueBindings(t.Context(), vhost, name)
			must(t, err)
			same("bindings of "+name, got, want)
		}
		for _, name := range []string{"e", "f"} {
			got, gotErr := v.Exchange(t.Context(), vhost, name)
			want, wantErr := fresh.Exchange(t.Context(), vhost, name)
			same("exchange "+name, [2]any{got, gotErr == nil}, [2]any{want, wantErr == nil})
			gotFrom, gotTo, err := v.ExchangeBindings(t.Context(), vhost, name)
			must(t, err)
			wantFrom, wantTo, err := fresh.ExchangeBindings(t.Context(), vhost, name)
			must(t, err)
			same("bindings of exchange "+name, [2]any{gotFrom, gotTo}, [2]any{wantFrom, wantTo})
		}
	}
	compare("before")
	// The broker compares no argument that it does not know: this succeeds and changes nothing.
	makeQueue(t, c, vhost, "redeclared", topology.Classic, topology.Arguments{"x-made-up": "is"})
	makeQueue(t, c, vhost, "new", topology.Quorum, nil)
	bind(t, c, vhost, topology.Binding{Source: "e", Destination: "new", RoutingKey: "b"},
		topology.Binding{Source: "f", Destination: "e", DestinationType: toExchange, RoutingKey: "#"})
	must(t, c.Unbind(t.Context(), vhost, bindingTo("e", "kept", "a")))
	compare("after writes")
	must(t, c.DeleteQueue(t.Context(), vhost, "deleted"))
	compare("without a queue")
	must(t, c.DeleteExchange(t.Context(), vhost, "f"))
	compare("without an exchange")
}

func TestLiveDeadLetterCycles(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	makeExchange(t, c, vhost, "dlx", "direct")
	makeExchange(t, c, vhost, "onwards", "topic")
	dead := func(exchange, key string) topology.Arguments {
		args := topology.Arguments{topology.ArgDeadLetterExchange: exchange}
		if key != "" {
			args[topology.ArgDeadLetterKey] = key
		}
		return args
	}
	makeQueue(t, c, vhost, "straight", topology.Classic, dead("", "end"))
	makeQueue(t, c, vhost, "end", topology.Classic, nil)
	makeQueue(t, c, vhost, "self", topology.Classic, dead("", "self"))
	makeQueue(t, c, vhost, "a", topology.Classic, dead("dlx", "x.y"))
	makeQueue(t, c, vhost, "b", topology.Classic, dead("", "a"))
	makeQueue(t, c, vhost, "own-key", topology.Classic, dead("onwards", ""))
	makeQueue(t, c, vhost, "by-policy", topology.Classic, nil)
	bind(t, c, vhost, topology.Binding{Source: "dlx", Destination: "onwards", DestinationType: toExchange, RoutingKey: "x.y"},
		bindingTo("onwards", "b", "x.*"), bindingTo("onwards", "own-key", "z"))
	putPolicy(t, b, vhost, "p", `{"pattern":"^by-policy$","apply-to":"queues","definition":{"dead-letter-exchange":"","dead-letter-routing-key":"by-policy"}}`)
	plan := NewPlan()
	plan.Add(topology.Objects{Queues: []topology.Queue{
		{Name: "planned", Type: topology.Classic, Arguments: dead("new", "k")},
		{Name: "straight", Type: topology.Classic}, // as it is going to be
	}, Exchanges: []topology.Exchange{{Name: "new", Type: "direct"}}, Bindings: []topology.Binding{bindingTo("new", "planned", "k")}})
	v := liveClient(t, b, nil).View()
	for queue, want := range map[string][]string{
		"straight": nil, "end": nil, "missing": nil, "self": {"self"}, "a": {"a", "b"}, "b": {"b", "a"},
		"own-key": {"own-key"}, "by-policy": {"by-policy"}, "planned": {"planned"},
	} {
		got, err := v.DeadLetterCycle(t.Context(), vhost, queue, plan)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("from %s: %v, %v, want %v", queue, got, err, want)
		}
	}
}
