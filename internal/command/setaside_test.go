package command_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// deadOrders are messages of all sorts, in the order in which they were dead-lettered.
func (b *bundle) deadOrders() {
	b.t.Helper()
	b.send("orders",
		amqp091.Publishing{MessageId: "json", ContentType: "application/json", Body: []byte(`{"region":"eu","amount":120,"lines":[{"sku":"a-1"}]}`), Headers: amqp091.Table{"tenant": "acme", "x-redeliver-retry-count": int64(5), "x-redeliver-error": "card declined"}},
		amqp091.Publishing{MessageId: "text", ContentType: "text/plain", Body: []byte("hello \x1b[31mred\nsecond line"), Headers: amqp091.Table{"tenant": "other"}},
		amqp091.Publishing{MessageId: "binary", Body: []byte{0, 1, 2, 0xff, 0xfe, 'a', 'b', 'c', 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}},
		amqp091.Publishing{MessageId: "long", Body: []byte(strings.Repeat("0123456789", 500))},
	)
	b.reject("orders", "orders-dlq", 4)
}

func TestInspect(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.run("dlq", "inspect", "orders.json").exits(0).says("0 messages")
	b.deadOrders()
	r := b.run("dlq", "inspect", "orders.json").exits(0).lacks("\x1b")
	r.out, _, _ = strings.Cut(r.out, "\nnote:") // what the version cannot promise: see TestInspectKeepsTheOrder
	b.golden("inspect", r)
	b.run("dlq", "inspect", "orders.json", "--full").exits(0).says(strings.Repeat("0123456789", 500)).lacks("--full shows all")
	var got struct {
		Found    int
		Messages []struct {
			ID, Reason, Error string
			Attempts          int
			BodyJSON          map[string]any `json:"body_json"`
			BodyBase64        string         `json:"body_base64"`
			BodyTruncated     bool           `json:"body_truncated"`
		}
		Failed int `json:"where_failed"`
	}
	if err := json.Unmarshal([]byte(b.run("dlq", "inspect", "orders.json", "-o", "json").exits(0).out), &got); err != nil {
		t.Fatal(err)
	}
	if m := got.Messages; got.Found != 4 || len(m) != 4 || m[0].BodyJSON["region"] != "eu" || m[0].Attempts != 6 || m[0].Error != "card declined" || m[0].Reason != "rejected" ||
		m[2].BodyBase64 == "" || !m[3].BodyTruncated {
		t.Errorf("%+v", got)
	}
	for filter, want := range map[string]string{
		"--filter tenant=acme":                              "json",
		"--filter x-redeliver-retry-count=5":                "json",
		"--reason rejected":                                 "json text binary long",
		"--reason declined":                                 "json",
		"--reason expired":                                  "",
		"--older-than 1h":                                   "",
		"--newer-than 1h":                                   "json text binary long",
		"--where body.amount>100":                           "json",
		"--where body.region==\"us\"":                       "",
		"--where headers.tenant==\"other\"":                 "text",
		"--where attempts==6&&queue==\"orders\"":            "json",
		"--where any(body.lines,.sku==\"a-1\")":             "json",
		"--where age<duration(\"1h\")&&id!=\"long\"":        "json text binary",
		"--filter tenant=acme --where body.amount>1000":     "",
		"--where type(body)==\"string\"&&len(body)==5000":   "long",
		"--reason rejected --limit 1":                       "json",
		"--limit 2":                                         "json text",
		"--where error==\"declined\" --newer-than 1h":       "",
		"--where type(body)==\"map\"&&(body.amount??0)>100": "json",
	} {
		args := append([]string{"dlq", "inspect", "orders.json", "-o", "json"}, strings.Split(filter, " ")...)
		got.Messages, got.Failed = nil, 0
		r := b.run(args...)
		if err := json.Unmarshal([]byte(r.out), &got); err != nil {
			t.Fatal(err, r.err)
		}
		if code := min(got.Failed, 1); r.code != code || (got.Failed > 0) != contains(r.out, `"where_error"`) {
			t.Errorf("%s: exit code %d, and it could not be evaluated on %d messages", filter, r.code, got.Failed)
		}
		var ids []string
		for _, m := range got.Messages {
			ids = append(ids, m.ID)
		}
		if text := strings.Join(ids, " "); text != want {
			t.Errorf("%s: %q, want %q", filter, text, want)
		}
	}
	b.run("dlq", "inspect", "orders.json", "--where", "body.").exits(2).says("--where")
	b.run("dlq", "inspect", "orders.json", "--where", "body.amount > 100").exits(1).says("could not be evaluated on 3 messages, which count as not wanted", "1 shown")
	b.run("dlq", "replay", "orders.json", "--dry-run", "--where", "body.amount > 100").exits(1).says("could not be evaluated on 3 messages", "1 would be replayed")
	b.run("dlq", "replay", "orders.json", "--dry-run", "--where", "body.amount > 100", "-o", "json").exits(1).says(`"where_failed": 3`, `"where_error": "`).lacks("could not be evaluated")
	b.run("dlq", "inspect", "orders.json", "--filter", "tenant").exits(2).says("NAME=VALUE")
	b.run("dlq", "inspect", "orders.json", "--limit", "-1").exits(2)
	if ids := b.drained("orders-dlq"); !slices.Equal(ids, []string{"json", "text", "binary", "long"}) {
		t.Errorf("after all these looks: %q", ids)
	}
	b.run("parked", "inspect", "orders.json").exits(0).says("orders-parked", "0 messages")
}

// TestInspectKeepsTheOrder looks again and again, at some and at all, and finds the messages in their order.
func TestInspectKeepsTheOrder(t *testing.T) {
	for name, change := range map[string]func(*topology.Spec){
		"quorum": func(*topology.Spec) {},
		"classic": func(s *topology.Spec) {
			s.Convention, s.ParkedQueue, s.Retry.Strategy = topology.Shove, "", topology.Republish
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.provision(b.spec(change))
			ids := numbered("m", 300)
			b.publish("orders-dlq", ids...)
			for _, limit := range []string{"20", "5", "0", "100", "1"} {
				r := b.run("dlq", "inspect", "orders.json", "--limit", limit).exits(0).says("300 messages", "m00000")
				if name == "quorum" && !brokertest.HasVersion(b.broker, "4.3") {
					r.says("counts a look as a delivery")
				} else {
					r.lacks("note:")
				}
				b.waitDepth("orders-dlq", 300)
			}
			if got := b.drained("orders-dlq"); !slices.Equal(got, ids) {
				t.Errorf("the order has changed: %q ...", got[:10])
			}
		})
	}
}

// TestInspectADeepQueue: of a queue that is too deep to be looked at as a whole, it says what that may mean.
func TestInspectADeepQueue(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.publish("orders-dlq", numbered("m", 10_001)...)
	b.run("dlq", "inspect", "orders.json", "--limit", "3").exits(0).says("10,001 messages, 3 looked at, 3 shown", "not all messages were looked at")
	b.waitDepth("orders-dlq", 10_001)
	brokertest.Get(t, b.broker, b.vhost, "orders-dlq")
	b.run("dlq", "inspect", "orders.json", "--limit", "3").exits(0).says("10,000 messages, 10000 looked at, 3 shown").lacks("not all")
}

// TestInspectRefuses what could lose a message: on a queue with RabbitMQ's own delivery limit.
func TestInspectRefuses(t *testing.T) {
	b := setup(t)
	b.provision(b.spec(func(s *topology.Spec) {
		s.Convention, s.QueueType, s.DeadLetterQueue, s.ParkedQueue, s.HoldDelays = topology.RabbitKit, topology.Quorum, "orders.dlq", "", nil
		s.Retry = topology.RetryPolicy{MaxRetries: 1, Delays: []time.Duration{time.Second}, LastDelayRepeats: true}
	}))
	b.publish("orders.dlq", "one")
	if !brokertest.HasVersion(b.broker, "4.0") { // it has none
		b.run("dlq", "inspect", "orders.json").exits(0).says("which has no limit")
		return
	}
	b.run("dlq", "inspect", "orders.json").exits(2).says("may lose messages", "after 20 deliveries", "--accept-loss")
	b.run("dlq", "replay", "orders.json", "--dry-run").exits(2).says("may lose messages").lacks("found", "left")
	b.run("dlq", "inspect", "orders.json", "--accept-loss").exits(0).says("one")
	b.request("PUT", "policies", "keep", map[string]any{"pattern": `^orders\.dlq$`, "apply-to": "queues", "definition": map[string]any{"delivery-limit": 1000000}})
	brokertest.WaitFor(t, func() (bool, string) {
		r := b.run("dlq", "inspect", "orders.json")
		return r.code == 0, r.err
	})
}

// TestInspectUnasked: without the management API nobody knows what the live queue and its policies allow, whatever the
// manifest says, and looks may use it up.
func TestInspectUnasked(t *testing.T) {
	b := setup(t)
	b.provision(b.spec()) // allows a million
	b.request("PUT", "policies", "strict", map[string]any{"pattern": "^orders-dlq$", "apply-to": "queues", "definition": map[string]any{"delivery-limit": 3}})
	b.publish("orders-dlq", "one")
	brokertest.WaitFor(t, func() (bool, string) {
		r := b.run("dlq", "inspect", "orders.json")
		return r.code == 2 && contains(r.err, "after 3 deliveries"), r.out + r.err
	})
	outsider, secret := brokertest.User(t, b.broker, b.vhost, "^$", ".*", ".*") // without the tag management
	for name, c := range map[string]struct {
		change func(*bundle)
		want   []string
	}{
		"no address":   {func(b *bundle) { b.setenv("endpoints", "") }, []string{"--management-url"}},
		"no answer":    {func(b *bundle) { b.setenv("endpoints", "http://127.0.0.1:1"); b.setenv("max_retries", "0") }, []string{"127.0.0.1:1"}},
		"not accepted": {func(b *bundle) { b.as(outsider, secret) }, []string{outsider}},
	} {
		t.Run(name, func(t *testing.T) {
			other := *b
			other.t, other.env = t, slices.Clone(b.env)
			c.change(&other)
			for range 5 {
				for _, args := range [][]string{{"inspect"}, {"replay", "--dry-run"}, {"replay", "--filter", "a=b"}, {"move", "--to", "orders", "--filter", "a=b"}} {
					args = append([]string{"dlq", args[0], "orders.json"}, args[1:]...)
					other.run(args...).exits(2).says(append(c.want, "may lose messages", "could not be asked", "the tag management", "--accept-loss")...).lacks("1,000,000", "found")
				}
			}
		})
	}
	b.setenv("endpoints", "")
	r := b.run("dlq", "inspect", "orders.json", "--accept-loss").exits(0).says("one")
	if !brokertest.HasVersion(b.broker, "4.3") {
		r.says("1,000,000", "is assumed to allow")
	}
	if ids := b.drained("orders-dlq"); !slices.Equal(ids, []string{"one"}) {
		t.Errorf("%q", ids)
	}
}

// TestFilterNotes: what a filter leaves was looked at too.
func TestFilterNotes(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.publish("orders-dlq", numbered("m", 3)...)
	counts := "counts a look as a delivery: "
	for args, looked := range map[string]string{"replay orders.json --dry-run": "3 messages", "move orders.json --to orders --filter a=b": "3 messages", "replay orders.json --where id!='m00000' --dry-run": "3 messages"} {
		r := b.run(append([]string{"dlq"}, strings.Fields(args)...)...).exits(0)
		if brokertest.HasVersion(b.broker, "4.3") {
			r.lacks(counts)
		} else {
			r.says(counts + looked)
		}
	}
	b.run("dlq", "replay", "orders.json", "--dry-run", "-o", "json").exits(0).says(`"notes": [`)
	b.run("dlq", "replay", "orders.json", "--where", "id!='m00000'").exits(0).says("2 replayed")
	b.run("dlq", "replay", "orders.json").exits(0).says("1 replayed").lacks("note:")
}

// TestMessagesGolden is what the commands that change something print.
func TestMessagesGolden(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.deadOrders()
	b.settled(map[string]int64{"orders-dlq": 4})
	b.golden("list", b.run("dlq", "list", "orders.json").exits(0))
	b.golden("list_coloured", result{t, strings.ReplaceAll(b.terminal("dlq", "list", "orders.json").exits(0), "\r", ""), "", 0})
	b.golden("move", b.run("dlq", "move", "orders.json", "--to", "orders-parked", "--limit", "1").exits(0))
	b.golden("replay", b.run("dlq", "replay", "orders.json", "--limit", "1").exits(0))
	b.golden("purge", b.run("dlq", "purge", "orders.json", "--yes").exits(0))
}

func TestReplay(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.deadOrders()
	b.run("dlq", "replay", "orders.json", "--dry-run").exits(0).says("4 found, 4 would be replayed, 4 left")
	b.run("dlq", "replay", "orders.json", "--filter", "tenant=acme").exits(0).says("4 found, 1 replayed, 3 not wanted by the filter, 3 left")
	got := brokertest.Drain(t, b.broker, b.vhost, "orders")
	if len(got) != 1 || got[0].MessageId != "json" || got[0].Headers["x-redeliver-retry-count"] != nil || got[0].Headers["tenant"] != "acme" {
		t.Errorf("%+v", got)
	}
	b.run("dlq", "replay", "orders.json", "--to", "orders-nowhere").exits(2).says("there is no such queue", "apply the Terraform configuration")
	b.run("dlq", "replay", "orders.json", "--limit", "2", "-o", "json").exits(0).says(`"moved": 2`, `"left": 1`)
	b.run("dlq", "replay", "orders.json").exits(0).says("1 found, 1 replayed, 0 left")
	b.run("dlq", "replay", "orders.json").exits(0).says("0 found, 0 replayed")
	if ids := b.drained("orders"); !slices.Equal(ids, []string{"text", "binary", "long"}) {
		t.Errorf("%q", ids)
	}
}

func TestReplayKeepsTheCount(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.deadOrders()
	b.run("dlq", "replay", "orders.json", "--keep-count", "--limit", "1").exits(0)
	got := brokertest.Drain(t, b.broker, b.vhost, "orders")
	if len(got) != 1 || got[0].Headers["x-redeliver-retry-count"] != int64(5) {
		t.Errorf("%+v", got)
	}
}

func TestMove(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.deadOrders()
	b.run("dlq", "move", "orders.json", "--to", "orders-parked", "--limit", "1").exits(0).says("1 moved, 3 left")
	b.run("parked", "move", "orders.json", "--to", "orders-dlq").exits(0).says("orders-parked", "1 moved")
	b.run("dlq", "move", "orders.json", "--to-exchange", "orders-retry", "--routing-key", "orders-parked").exits(0).says("4 moved")
	b.run("parked", "move", "orders.json", "--to-exchange", "none").exits(2).says("the exchange does not exist")
	b.run("parked", "move", "orders.json", "--to", "orders", "--to-exchange", "none").exits(2)
	b.run("parked", "move", "orders.json", "--to", "orders", "--routing-key", "x").exits(2)
	if n := len(b.drained("orders-parked")); n != 4 {
		t.Errorf("%d messages", n)
	}
	// One that no queue takes stays, and is counted.
	b.request("PUT", "exchanges", "loose", map[string]any{"type": "direct", "durable": true})
	b.publish("orders-dlq", "one")
	b.run("dlq", "move", "orders.json", "--to-exchange", "loose").exits(1).says("1 failed and stay", "no queue took it")
	b.waitDepth("orders-dlq", 1)
}

func TestPurge(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.publish("orders-dlq", "one", "two")
	b.run("dlq", "purge", "orders.json").exits(2).says("has 2 messages; say --yes")
	b.waitDepth("orders-dlq", 2)
	b.run("dlq", "purge", "orders.json", "--yes").exits(0).says("2 messages discarded")
	b.waitDepth("orders-dlq", 0)
	b.run("dlq", "purge", "orders.json", "-o", "json").exits(0).says(`"purged": 0`)
	b.request("DELETE", "queues", "orders-parked", nil)
	b.run("parked", "purge", "orders.json").exits(2).says("orders-parked", "NOT_FOUND", "redeliver verify says what else")
}

// TestHandedOut: what somebody has been handed is counted, and neither shown nor replayed nor purged.
func TestHandedOut(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.publish("orders-dlq", "one", "two", "three")
	ch := brokertest.Channel(t, b.broker, b.vhost)
	if err := ch.Qos(2, 0, false); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.Consume("orders-dlq", "busy", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	brokertest.WaitFor(t, func() (bool, string) { // a quorum queue's counts are late
		r := b.run("dlq", "inspect", "orders.json").exits(0)
		return contains(r.out, "2 messages that somebody has been handed, a consumer or another look, were not seen"), r.out
	})
	b.run("dlq", "inspect", "orders.json", "-o", "json").exits(0).says(`"handed_out": 2`, `"found": 1`)
	b.run("dlq", "replay", "orders.json", "--dry-run").exits(0).says("1 would be replayed", "2 more that somebody had been handed were not looked at")
	b.run("dlq", "replay", "orders.json", "--dry-run", "-o", "json").exits(0).says(`"handed_out": 2`)
	b.run("dlq", "purge", "orders.json").exits(2).says("has 1 message; say --yes to discard it; 2 messages that somebody has been handed stay")
	b.run("dlq", "purge", "orders.json", "--yes", "-o", "json").exits(0).says(`"purged": 1`, `"handed_out": 2`)
}

// TestAMQPRefusals: what the broker refuses over AMQP is said with the object and what to do.
func TestAMQPRefusals(t *testing.T) {
	b := setup(t)
	b.provision(b.spec())
	b.publish("orders-dlq", "one")
	for name, c := range map[string]struct {
		user, password, vhost string
		want                  []string
	}{
		"password":   {b.broker.Username(), "wrong", b.vhost, []string{"403", "--username", "--password-file"}},
		"no vhost":   {b.broker.Username(), b.broker.Password(), "nowhere-" + b.vhost, []string{"530", "nowhere-" + b.vhost, "--amqp-url", "add_vhost", "--role operator"}},
		"permission": {"", "", b.vhost, []string{"403", `queue 'orders-dlq'`, `lacks that permission on queue "orders-dlq"`, "--role operator", "--username"}},
	} {
		t.Run(name, func(t *testing.T) {
			other := *b
			other.t = t
			if c.user == "" {
				c.user, c.password = brokertest.User(t, b.broker, b.vhost, "^$", ".*", "^$")
			}
			other.as(c.user, c.password)
			other.setenv("endpoints", "")
			m := b.spec(func(s *topology.Spec) { s.VHost = c.vhost })
			manifest, err := m.Manifest()
			if err != nil {
				t.Fatal(err)
			}
			other.write("refused.json", manifest.Encode())
			for _, args := range [][]string{{"inspect", "--accept-loss"}, {"replay"}, {"replay", "--dry-run", "--accept-loss"}, {"purge", "--yes"}} {
				other.run(append([]string{"dlq", args[0], "refused.json"}, args[1:]...)...).exits(2).says(c.want...).lacks("0 found", "panic")
			}
		})
	}
}

// TestNoSuchQueue: a topic may have none.
func TestNoSuchQueue(t *testing.T) {
	b := setup(t)
	b.manifest(b.spec(func(s *topology.Spec) { s.ParkedQueue = "" }))
	b.run("parked", "inspect", "orders.json").exits(2).says(`topic "orders" has no parked queue`)
}
