package rabbitmqadmin

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// What is said of a pattern that Go cannot read is what the broker does, or that it is not known.
func TestLivePatternsThatGoCannotRead(t *testing.T) {
	t.Parallel()
	c, _, vhost := live(t, nil)
	names := []string{"orders", "orders-migrating", "amqx.x", "shop-a1", "ORDERS"}
	for _, name := range names {
		makeQueue(t, c, vhost, name, topology.Classic, nil)
	}
	for pattern, unread := range map[string]bool{
		`^(?!amqx\.).*`: false, `^(?!amqx\.|shop)`: false, `(?<!s)$`: false, `(?<=orders)-`: false, `^(?>orders)$`: false, `(?i)^(?=ORD)`: false,
		`^(.)\1`: false, `(?!x)^\w+$`: false, `^(?!\d)[[:alpha:]]+$`: false, `^(?P<n>o)(?!x)`: false, `(?!x)^\S\s?$`: false,
		`^o++rders(?!-)`: true, `^(o(?1)?)`: true,
	} {
		p := topology.Policy{Name: "p", Pattern: pattern, ApplyTo: "queues", Definition: topology.Arguments{"max-length": int64(5)}}
		must(t, c.PutPolicy(t.Context(), vhost, p))
		policies, err := c.Policies(t.Context(), vhost)
		must(t, err)
		queues, err := c.Queues(t.Context(), vhost)
		must(t, err)
		for _, live := range queues {
			q := topology.Queue{Name: live.Name, Type: live.Type}
			applies, known := len(q.Policies(policies, "")) > 0, !policies[0].MayMatch(q)
			if known == unread || known && applies != (live.Policy == "p") {
				t.Errorf("%q on %q: applies %t, known %t; the broker says %q", pattern, live.Name, applies, known, live.Policy)
			}
		}
	}
}

func TestLivePolicies(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	for _, name := range []string{"orders", "a.b", "ü-漢", "a\tb", "(x)+", "a b", "a/b", strings.Repeat("x", topology.MaxNameBytes), "^a", `a\b`, "[z]", "\x7fx", `a"b`, "a$"} {
		q := topology.Queue{Name: name, Type: topology.Quorum, Arguments: topology.Arguments{topology.ArgQueueType: "quorum", topology.ArgMaxLength: int64(5), topology.ArgDeliveryLimit: int64(7)}}.ViaPolicy()
		must(t, c.PutPolicy(t.Context(), vhost, *q.Policy))
		must(t, c.CreateQueue(t.Context(), vhost, q))
		// What the broker says applies is the policy, whatever characters are in the name.
		queues, err := c.Queues(t.Context(), vhost)
		must(t, err)
		at := slices.IndexFunc(queues, func(l LiveQueue) bool { return l.Name == name })
		if at < 0 || queues[at].Policy != q.Policy.Name {
			t.Errorf("queue %q has the policy %+v", name, queues[at])
		}
		policies, err := c.Policies(t.Context(), vhost)
		must(t, err)
		if own := topology.OwnPolicy(name, policies); own == nil || !maps.Equal(own.Canonical(), q.Policy.Canonical()) || len(q.Policies(policies, "")) != 1 {
			t.Errorf("the policy of %q is %+v", name, own)
		}
		must(t, c.DeleteQueue(t.Context(), vhost, name))
		must(t, c.DeletePolicy(t.Context(), vhost, q.Policy.Name))
		must(t, c.DeletePolicy(t.Context(), vhost, q.Policy.Name)) // it is gone
	}
	if left, err := c.Policies(t.Context(), vhost); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	invalid := topology.Policy{Name: "p", Pattern: "a", ApplyTo: "queues", Definition: topology.Arguments{"message-ttl": "soon"}}
	if err := c.PutPolicy(t.Context(), vhost, invalid); err == nil || !strings.Contains(err.Error(), `cannot create policy "p"`) || !strings.Contains(err.Error(), "is not a valid message TTL") {
		t.Error(err)
	}
	if err := c.PutPolicy(t.Context(), vhost, topology.Policy{Name: "op", Operator: true}); err == nil {
		t.Error("an operator policy is made as a policy")
	}

	for tag, may := range map[string]bool{"management": false, "monitoring": false, "policymaker": true, "administrator": true} {
		user, password := brokertest.User(t, b, vhost, ".*", ".*", ".*", tag)
		u := as(t, b, user, password)
		if got, err := u.MayWritePolicies(t.Context()); err != nil || got != may {
			t.Errorf("%s: %v, %v", tag, got, err)
		}
		p := topology.Policy{Name: "p", Pattern: "a", ApplyTo: "queues", Definition: topology.Arguments{"max-length": int64(1)}}
		for what, err := range map[string]error{"put": u.PutPolicy(t.Context(), vhost, p), "delete": u.DeletePolicy(t.Context(), vhost, "p")} {
			if may != (err == nil) || !may && (!errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), `takes the user tag "policymaker"`)) {
				t.Errorf("%s as %s: %v", what, tag, err)
			}
		}
	}
}

// TestLivePoliciesOfAView: a write changes what a view knows, and takes no list.
func TestLivePoliciesOfAView(t *testing.T) {
	t.Parallel()
	c, _, vhost := live(t, nil)
	policy := func(name string, length int64) topology.Policy {
		return topology.Policy{Name: name, Pattern: "^" + name + "$", ApplyTo: "queues", Definition: topology.Arguments{"max-length": length}}
	}
	known := func(want ...string) {
		t.Helper()
		got, err := c.View().Policies(t.Context(), vhost)
		must(t, err)
		var texts []string
		for _, p := range got {
			texts = append(texts, p.Name+topology.CanonicalJSON(p.Definition["max-length"]))
		}
		slices.Sort(texts)
		if !slices.Equal(texts, want) {
			t.Errorf("known are %q, want %q", texts, want)
		}
	}
	known()
	before := c.Requests()
	must(t, c.PutPolicy(t.Context(), vhost, policy("a", 1)))
	first, err := c.View().Policies(t.Context(), vhost)
	must(t, err)
	must(t, c.PutPolicy(t.Context(), vhost, policy("b", 1)))
	must(t, c.PutPolicy(t.Context(), vhost, policy("a", 2)))
	known("a2", "b1")
	must(t, c.DeletePolicy(t.Context(), vhost, "a"))
	must(t, c.DeletePolicy(t.Context(), vhost, "gone"))
	known("b1")
	if len(first) != 1 || first[0].Definition["max-length"] != int64(1) {
		t.Errorf("what was given out before changed: %v", first)
	}
	if n := c.Requests() - before; n > 6 { // five writes, and whether the vhost is readable
		t.Errorf("it took %d requests", n)
	}
	// After a write that failed it is read again.
	if err := c.PutPolicy(t.Context(), vhost, topology.Policy{Name: "c", Pattern: "c", ApplyTo: "queues", Definition: topology.Arguments{"made-up": int64(1)}}); err == nil {
		t.Error("a policy that the broker does not know is made")
	}
	before = c.Requests()
	known("b1")
	if n := c.Requests() - before; n != 2 {
		t.Errorf("it took %d requests, want the two lists", n)
	}
}

// TestLiveDeadLetterRoutesOfOwnPolicies: a queue that is pointed at by a policy is pointed at.
func TestLiveDeadLetterRoutesOfOwnPolicies(t *testing.T) {
	t.Parallel()
	c, _, vhost := live(t, nil)
	hold := topology.Queue{Name: "orders-hold-5s", Type: topology.Quorum, Arguments: topology.Arguments{
		topology.ArgQueueType: "quorum", topology.ArgMessageTTL: int64(5000), topology.ArgDeadLetterExchange: "", topology.ArgDeadLetterKey: "orders",
	}}.ViaPolicy()
	work := topology.Queue{Name: "orders", Type: topology.Quorum, Arguments: topology.Arguments{
		topology.ArgQueueType: "quorum", topology.ArgDeadLetterExchange: "", topology.ArgDeadLetterKey: "orders-hold-5s",
	}}.ViaPolicy()
	plan := NewPlan()
	plan.Add(topology.Objects{Queues: []topology.Queue{hold, work}})
	if cycle, err := c.View().DeadLetterCycle(t.Context(), vhost, "orders", plan); err != nil || !slices.Equal(cycle, []string{"orders", "orders-hold-5s"}) {
		t.Errorf("planned, the circle is %q, %v", cycle, err)
	}
	for _, q := range []topology.Queue{hold, work} {
		must(t, c.PutPolicy(t.Context(), vhost, *q.Policy))
		must(t, c.CreateQueue(t.Context(), vhost, q))
	}
	if by, err := c.PointingAt(t.Context(), vhost, "orders"); err != nil || !slices.Equal(by, []string{"orders-hold-5s"}) {
		t.Errorf("pointed at by %q, %v", by, err)
	}
	if cycle, err := c.View().DeadLetterCycle(t.Context(), vhost, "orders-hold-5s", NewPlan()); err != nil || len(cycle) != 2 {
		t.Errorf("there, the circle is %q, %v", cycle, err)
	}
	_, err := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"orders"}, NotPointedAt: true})
	var pointed *PointedAtError
	if !errors.As(err, &pointed) {
		t.Errorf("deleted: %v", err)
	}
}

// TestLiveDelayThatChangesUnderMessages: a message keeps the TTL that the policy had when it came, and those behind it
// wait for it.
func TestLiveDelayThatChangesUnderMessages(t *testing.T) {
	t.Parallel()
	for _, kind := range []topology.QueueType{topology.Classic, topology.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			c, b, vhost := live(t, nil)
			makeQueue(t, c, vhost, "home", topology.Classic, nil)
			hold := func(ttl int64) {
				t.Helper()
				q := topology.Queue{Name: "hold", Type: kind, Arguments: topology.Arguments{
					topology.ArgQueueType: string(kind), topology.ArgMessageTTL: ttl, topology.ArgDeadLetterExchange: "", topology.ArgDeadLetterKey: "home",
				}}.ViaPolicy()
				must(t, c.PutPolicy(t.Context(), vhost, *q.Policy))
				must(t, c.CreateQueue(t.Context(), vhost, q))
			}
			hold(1500)
			brokertest.Publish(t, b, vhost, "", "hold", amqp091.Publishing{Body: []byte("first")})
			came := time.Now()
			hold(600_000)
			brokertest.WaitDepth(t, b, vhost, "home", 1)
			if away := time.Since(came); away < time.Second || away > 10*time.Second {
				t.Errorf("after the TTL was raised the message came home after %s and not after 1.5s", away)
			}
			hold(3000)
			brokertest.Publish(t, b, vhost, "", "hold", amqp091.Publishing{Body: []byte("second")})
			came = time.Now()
			hold(100)
			brokertest.Publish(t, b, vhost, "", "hold", amqp091.Publishing{Body: []byte("third")})
			brokertest.WaitDepth(t, b, vhost, "home", 3)
			if away := time.Since(came); away < 2500*time.Millisecond || away > 12*time.Second {
				t.Errorf("after the TTL was lowered the messages came home after %s and not after 3s", away)
			}
		})
	}
}
