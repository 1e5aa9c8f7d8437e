package command_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// request changes something by the management API.
func (b *bundle) request(method, kind, name string, body any) {
	b.t.Helper()
	path := "/api/" + kind + "/" + url.PathEscape(b.vhost) + "/" + name
	if status, answer := brokertest.Request(b.t, b.broker, method, path, body); status >= http.StatusMultipleChoices {
		b.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
}

func TestVerify(t *testing.T) {
	b := setup(t)
	b.manifest(b.spec())
	b.run("verify", "orders.json").exits(1).says("not in order", "missing", "work queue")
	b.provision(b.spec())
	b.golden("verify_in_order", b.run("verify", "orders.json").exits(0))

	b.request("DELETE", "queues", "orders-parked", nil)
	b.request("DELETE", "queues", "orders-hold-5s", nil)
	b.request("PUT", "queues", "orders-hold-5s", map[string]any{"durable": true, "arguments": map[string]any{
		"x-queue-type": "quorum", "x-message-ttl": 7000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
	}})
	b.request("PUT", "policies", "odd", map[string]any{"pattern": "^orders$", "apply-to": "queues", "definition": map[string]any{"max-length": 10}})
	ch := brokertest.Channel(t, b.broker, b.vhost)
	if _, err := ch.Consume("orders-hold-30s", "curious", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	brokertest.WaitFor(t, func() (bool, string) { // the statistics are late
		r := b.run("verify", "orders.json").exits(1)
		return contains(r.out, "consumers: want 0, live 1"), r.out
	})
	b.golden("verify_findings", b.run("verify", "orders.json").exits(1))
	b.request("PUT", "operator-policies", "bounds", map[string]any{"pattern": "^orders$", "apply-to": "queues", "definition": map[string]any{"max-length": 5}})
	brokertest.WaitFor(t, func() (bool, string) {
		r := b.run("verify", "-o", "json", "orders.json").exits(1)
		return contains(r.out, `"operator": true`), r.out
	})
	b.run("verify", "orders.json").exits(1).says(`operator policy "bounds"`)
	var reports []struct {
		InOrder bool `json:"in_order"`
		Objects []struct{ Name, Status string }
	}
	if err := json.Unmarshal([]byte(b.run("verify", "-o", "json", "orders.json").exits(1).out), &reports); err != nil || len(reports) != 1 || reports[0].InOrder {
		t.Errorf("as JSON: %v, %+v", err, reports)
	}
}

// TestVerifyWithoutPermission: what a user may not see is unknown, and never missing.
func TestVerifyWithoutPermission(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	user, password := brokertest.User(t, b.broker, b.vhost, "^$", "^$", "^orders$", "management")
	b.as(user, password)
	b.run("verify", "orders.json").exits(0).says("in order")
	user, password = brokertest.User(t, b.broker, "/", "^$", "^$", "^$", "management")
	b.as(user, password)
	b.run("verify", "orders.json").exits(1).says("unknown", "not seen:").lacks("missing")
	if r := b.run("dlq", "list", "orders.json").exits(0); !contains(r.err, "not seen: ") || contains(r.out, "OLDEST") {
		t.Errorf("%s\n%s", r.out, r.err)
	}
	b.run("dlq", "list", "orders.json", "-o", "json").exits(0).says(`"messages": null`, `"unseen": "`)
	b.as(user, "wrong")
	b.run("verify", "orders.json").exits(2).says("RabbitMQ does not accept user")
}

// TestOperator: what permissions says for an operator is enough for everything.
func TestOperator(t *testing.T) {
	b := setup(t)
	m := b.provision(b.spec())
	may, err := topology.Permissions(m, topology.AccessOperator)
	if err != nil {
		t.Fatal(err)
	}
	user, password := brokertest.User(t, b.broker, b.vhost, may.Configure, may.Write, may.Read, "management")
	b.as(user, password)
	b.deadOrders()
	b.run("verify", "orders.json").exits(0)
	brokertest.WaitFor(t, func() (bool, string) { // counts are late
		r := b.run("status", "orders.json")
		return r.code == 1 && contains(r.out, `dead-letter queue "orders-dlq" holds 4 messages`) && !contains(r.out, "not seen"), r.out
	})
	b.run("dlq", "list", "orders.json").exits(0)
	b.run("dlq", "inspect", "orders.json").exits(0).says("card declined")
	b.run("dlq", "replay", "orders.json", "--limit", "1").exits(0).says("1 replayed")
	b.run("dlq", "move", "orders.json", "--to", "orders-parked", "--limit", "1").exits(0).says("1 moved")
	b.run("dlq", "purge", "orders.json", "--yes").exits(0).says("2 messages discarded")
	b.run("import-config", "--vhost", b.vhost).exits(0)
	// And what it lacks is said.
	user, password = brokertest.User(t, b.broker, b.vhost, "^$", "^$", "^orders-parked$", "management")
	b.as(user, password)
	b.run("parked", "replay", "orders.json").exits(2).says("may not write", "amq.default", "redeliver permissions --role operator")
}

// TestMessagesThatWaitForATarget: a dead-letter queue that is not there holds messages up in the queue that leads to it.
func TestMessagesThatWaitForATarget(t *testing.T) {
	b := setup(t)
	b.provision(b.spec(func(s *topology.Spec) { s.HoldDelays = []time.Duration{time.Second} }))
	b.request("DELETE", "queues", "orders-dlq", nil)
	b.publish("orders", "one", "two")
	ch := brokertest.Channel(t, b.broker, b.vhost)
	for range 2 {
		d, ok, err := ch.Get("orders", false)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if err := d.Reject(false); err != nil {
			t.Fatal(err)
		}
	}
	brokertest.WaitFor(t, func() (bool, string) { // the statistics are late
		r := b.run("verify", "orders.json")
		return r.code == 1 && contains(r.out, "messages_waiting: want 0, live 2"), r.out
	})
	brokertest.WaitFor(t, func() (bool, string) {
		r := b.run("status", "orders.json")
		return contains(r.out, "2 messages of queue \"orders\" wait to be dead-lettered"), r.out
	})
}

// settled waits until the broker's statistics, which are late, know of all queues, and of these many messages.
func (b *bundle) settled(depths map[string]int64) {
	b.t.Helper()
	brokertest.WaitFor(b.t, func() (bool, string) {
		r := b.run("status", "-o", "json", "orders.json")
		var views []struct {
			Queues []struct {
				Name                                       string
				Messages, Ready, Unacknowledged, Consumers *int64
			}
		}
		if err := json.Unmarshal([]byte(r.out), &views); err != nil {
			b.t.Fatalf("%v: %s", err, r.out)
		}
		settled := true
		for _, q := range views[0].Queues {
			want := depths[q.Name]
			settled = settled && q.Messages != nil && *q.Messages == want && q.Ready != nil && *q.Ready == want && q.Unacknowledged != nil && q.Consumers != nil
		}
		return settled, r.out
	})
}

func TestStatus(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.publish("orders", "a", "b", "c")
	b.publish("orders-dlq", "dead")
	b.settled(map[string]int64{"orders": 3, "orders-dlq": 1})
	r := b.run("status", "orders.json").exits(1)
	r.out = regexp.MustCompile(`(?m) +(\d+\.\d +)*(\d+\.\d)?$`).ReplaceAllString(r.out, "") // the rates
	b.golden("status", r)
	b.request("DELETE", "queues", "orders-parked", nil)
	b.run("status", "orders.json").exits(1).says("orders-parked", "missing")
	b.run("status", "orders.json", "--interval", "1ms").exits(2)
}

// TestOldest: classic queues tell how old the message at the head is.
func TestOldest(t *testing.T) {
	b := setup(t)
	b.provision(b.spec(func(s *topology.Spec) {
		s.Convention, s.DeadLetterQueue, s.ParkedQueue, s.Retry.Strategy = topology.Shove, "orders-dlq", "", topology.Republish
	}))
	b.send("orders-dlq", amqp091.Publishing{MessageId: "old", Timestamp: time.Now().Add(-2 * time.Hour)})
	brokertest.WaitFor(t, func() (bool, string) {
		r := b.run("dlq", "list", "orders.json").exits(0)
		return contains(r.out, "2h"), r.out
	})
}
