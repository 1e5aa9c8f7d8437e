package provider

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// everything has one resource of each kind.
const everything = `
resource "redeliver_rabbitmq_exchange" "shop" {
  name = "shop"
  type = "topic"
}
resource "redeliver_rabbitmq_binding" "orders" {
  source      = redeliver_rabbitmq_exchange.shop.name
  destination = redeliver_rabbitmq_topic.orders.name
  arguments   = { a = 1 }
}
resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }
resource "redeliver_rabbitmq_parked_queue" "orders" { topic = "orders" }
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic  = "orders"
  delays = ["5s", "1m"]
}
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  parked_queue      = redeliver_rabbitmq_parked_queue.orders.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.orders.queues
  bindings          = [{ exchange = redeliver_rabbitmq_exchange.shop.name, routing_key = "order.*" }]
}
`

// independent says the same without references, so that every resource is refreshed although others fail.
var independent = strings.NewReplacer(
	"redeliver_rabbitmq_exchange.shop.name", `"shop"`, "redeliver_rabbitmq_topic.orders.name", `"orders"`,
	"redeliver_rabbitmq_dead_letter_queue.orders.name", `"orders-dlq"`, "redeliver_rabbitmq_parked_queue.orders.name", `"orders-parked"`,
	"redeliver_rabbitmq_hold_ladder.orders.queues", `[{ delay = "5s", name = "orders-hold-5s", shard = 0 }, { delay = "1m", name = "orders-hold-60s", shard = 0 }]`,
).Replace(everything)

// TestNotFoundOfSomebodyElseEmptiesNoState lets a proxy and a broker say "not found" about what is there.
func TestNotFoundOfSomebodyElseEmptiesNoState(t *testing.T) {
	b := setup(t)
	p := newProxy(t, b.broker, "")
	user, password := brokertest.User(t, b.broker, b.vhost, ".*", ".*", ".*", "management")
	provider := b.blockAt(p.URL, user, password, "max_retries = 0")
	c := b.commandLine(provider + everything)
	c.apply()
	c.configure(provider + independent)
	expect(t, c.plan(), "No changes")
	const resources = 6
	brokersWords := func(reason string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/api/overview" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(w, `{"error":"Object Not Found","reason":%q}`, reason)
			return true
		}
	}
	for name, step := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		errors int
		says   string
	}{
		"a proxy that has lost its routes": {notHere, 1, "check the endpoint and its path prefix"},
		"a proxy that has lost some of them": {func(w http.ResponseWriter, r *http.Request) bool {
			return r.URL.Path != "/api/overview" && notHere(w, r)
		}, resources, "did not come from where RabbitMQ keeps its objects"},
		"a broker that does not have the vhost":  {brokersWords("Not Found"), resources, "nothing is concluded about what is in it"},
		"a broker that names the vhost":          {brokersWords("vhost_not_found"), resources, "nothing is concluded about what is in it"},
		"a proxy that answers with another site": {func(w http.ResponseWriter, _ *http.Request) bool { _, _ = w.Write([]byte(`{"ok":true}`)); return true }, 1, ""},
		"a proxy that hides errors": {func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/api/overview" {
				return false
			}
			_, _ = w.Write([]byte(`{}`))
			return true
		}, resources, "the answer"},
	} {
		p.answer(step.answer)
		out := c.planFails()
		expect(t, out, step.says)
		expectNot(t, out, "will be created")
		if n := strings.Count(out, "Error:"); n != step.errors {
			t.Errorf("%s: %d errors, want %d:\n%s", name, n, step.errors, out)
		}
		if got := len(c.state()); got != resources {
			t.Errorf("%s: %d resources are left in state, want %d", name, got, resources)
		}
	}
	p.answerNoMore()

	// The user may not see the vhost any more. What RabbitMQ says then depends on its version.
	permissions := "permissions/%s/" + url.PathEscape(user)
	b.request("DELETE", permissions, nil)
	out := c.planFails()
	expect(t, out, fmt.Sprintf("user %q has no permissions in", user))
	if out, err := c.try("apply", "-refresh-only", "-auto-approve", "-no-color"); err == nil {
		t.Errorf("a refresh succeeded:\n%s", out)
	}
	if got := len(c.state()); got != resources {
		t.Errorf("without permissions: %d resources are left in state, want %d", got, resources)
	}
	b.request("PUT", permissions, map[string]string{"configure": ".*", "write": ".*", "read": ".*"})
	expect(t, c.plan(), "No changes")

	// And what RabbitMQ itself says to be gone is gone.
	for _, queue := range []string{"orders", "orders-dlq", "orders-parked", "orders-hold-5s", "orders-hold-60s"} {
		b.request("DELETE", "queues/%s/"+queue, nil)
	}
	b.request("DELETE", "exchanges/%s/shop", nil)
	expect(t, c.plan(), "Plan: 6 to add, 0 to change, 0 to destroy")
	// A destroy of what is gone succeeds, refreshed or not.
	expect(t, c.apply("-destroy", "-refresh=false"), "Resources: 0 added, 0 changed, 6 destroyed")
}

func TestDestroyOfAVHostThatIsGoneKeepsTheState(t *testing.T) {
	b := setup(t)
	c := b.commandLine(b.provider + losing(pair("")))
	c.apply()
	b.request("DELETE", "vhosts/%s", nil)
	out := c.planFails()
	expect(t, out, "does not exist, or user", "nothing is concluded about what is in it")
	if got := len(c.state()); got != 2 {
		t.Errorf("%d resources are left in state, want 2", got)
	}
}
