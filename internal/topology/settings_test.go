package topology

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSettingsViaPolicy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind      QueueType
		arguments Arguments
		want      string // arguments
		policy    string // definition; "" is no policy
	}{
		"a work queue": {
			Quorum,
			Arguments{ArgQueueType: "quorum", ArgDeadLetterExchange: "orders-retry", ArgDeadLetterKey: "orders-dlq", ArgDeadLetterStrategy: "at-least-once", ArgOverflow: "reject-publish", ArgDeliveryLimit: int64(50)},
			`{"x-queue-type":"quorum"}`,
			`{"dead-letter-exchange":"orders-retry","dead-letter-routing-key":"orders-dlq","dead-letter-strategy":"at-least-once","delivery-limit":50,"overflow":"reject-publish"}`,
		},
		"delays of the broker": {
			Quorum,
			Arguments{ArgQueueType: "quorum", ArgDelayedRetryType: "all", ArgDelayedRetryMin: int64(1), ArgDelayedRetryMax: int64(2), ArgConsumerTimeout: int64(3)},
			`{"x-queue-type":"quorum"}`, `{"consumer-timeout":3,"delayed-retry-max":2,"delayed-retry-min":1,"delayed-retry-type":"all"}`,
		},
		"a classic hold queue": {
			Classic,
			Arguments{ArgQueueType: "classic", ArgMessageTTL: int64(5000), ArgDeadLetterExchange: "", ArgDeadLetterKey: "orders"},
			`{"x-queue-type":"classic"}`, `{"dead-letter-exchange":"","dead-letter-routing-key":"orders","message-ttl":5000}`,
		},
		"bounds": {
			Classic,
			Arguments{ArgQueueType: "classic", ArgMaxLength: int64(1), ArgMaxLengthBytes: int64(2), ArgExpires: int64(3)},
			`{"x-queue-type":"classic"}`, `{"expires":3,"max-length":1,"max-length-bytes":2}`,
		},
		"what no policy can set": {
			Classic,
			Arguments{ArgQueueType: "classic", ArgMaxPriority: int64(10), ArgSingleActiveConsumer: true, "x-queue-mode": "lazy", "x-made-up": "1"},
			`{"x-made-up":"1","x-max-priority":10,"x-queue-mode":"lazy","x-queue-type":"classic","x-single-active-consumer":true}`, "",
		},
		"what would make a policy of a classic queue apply to nothing": {
			Classic,
			Arguments{ArgQueueType: "classic", ArgDeliveryLimit: int64(5), ArgDeadLetterStrategy: "at-most-once", ArgMaxLength: int64(1)},
			`{"x-dead-letter-strategy":"at-most-once","x-delivery-limit":5,"x-queue-type":"classic"}`, `{"max-length":1}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := maps.Clone(test.arguments)
			q := Queue{Name: "a.b", Type: test.kind, Arguments: test.arguments}
			got := q.ViaPolicy()
			if text := CanonicalJSON(got.Arguments); text != test.want {
				t.Errorf("arguments %s, want %s", text, test.want)
			}
			switch {
			case test.policy == "" && got.Policy != nil:
				t.Errorf("it has the policy %v", got.Policy.Canonical())
			case test.policy == "":
			case CanonicalJSON(got.Policy.Definition) != test.policy:
				t.Errorf("policy %s, want %s", CanonicalJSON(got.Policy.Definition), test.policy)
			case got.Policy.Name != "redeliver:a.b" || got.Policy.Pattern != `^a\.b$` || got.Policy.ApplyTo != "queues":
				t.Errorf("policy %v", got.Policy.Canonical())
			}
			if all := CanonicalJSON(got.Settings()); all != CanonicalJSON(q.Arguments) || CanonicalJSON(before) != all {
				t.Errorf("together they are %s and not %s", all, CanonicalJSON(q.Arguments))
			}
			if again := got.ViaPolicy(); CanonicalJSON(again.Arguments) != test.want || again.Policy != nil && CanonicalJSON(again.Policy.Definition) != test.policy {
				t.Errorf("done again it is %+v", again)
			}
		})
	}
}

func TestMergingAnotherPolicy(t *testing.T) {
	t.Parallel()
	q := Queue{Name: "orders", Type: Quorum, Arguments: Arguments{ArgQueueType: "quorum", ArgDeliveryLimit: int64(50), ArgOverflow: "reject-publish"}}.ViaPolicy()
	policy := func(name string, priority int, definition Arguments) Policy {
		return Policy{Name: name, Pattern: ".*", ApplyTo: "all", Priority: priority, Definition: definition}
	}
	all := []Policy{
		*q.Policy, policy("low", 1, Arguments{"max-length": int64(1)}), policy("high", 5000, Arguments{"max-length": int64(7), "overflow": "drop-head", "delivery-limit": int64(50)}),
		policy("mirrored", 9000, Arguments{"ha-mode": "all"}),
		{Name: "op", Pattern: ".*", Operator: true, Priority: 9999, Definition: Arguments{"max-length": int64(3)}},
		{Name: "exchanges", Pattern: ".*", ApplyTo: "exchanges", Priority: 9999},
		*Queue{Name: "other", Type: Quorum, Arguments: Arguments{ArgMaxLength: int64(1)}}.ViaPolicy().Policy,
	}
	others := q.Others(all, "")
	if names := []string{others[0].Name, others[1].Name}; len(others) != 2 || !slices.Equal(names, []string{"high", "low"}) {
		t.Fatalf("the others are %v", others)
	}
	merged, kept, err := q.Merge(others)
	if err != nil || CanonicalJSON(merged.Policy.Definition) != `{"delivery-limit":50,"max-length":7,"overflow":"reject-publish"}` || merged.Policy.Priority != 5001 {
		t.Errorf("merged %v, %v", merged.Policy.Canonical(), err)
	}
	if len(kept) != 1 || kept[0].Key != "overflow" || kept[0].Want != `"reject-publish"` || kept[0].Live != `"drop-head"` {
		t.Errorf("kept %v", kept)
	}
	if q.Policy.Priority != 1000 || len(q.Policy.Definition) != 2 {
		t.Errorf("merging changed the policy it began with: %v", q.Policy.Canonical())
	}
	// The queue's own is the only one that applies, and an operator's bounds it.
	var effects []string
	for _, e := range merged.Contradictions(merged.Effects(all, "high")) {
		effects = append(effects, e.Key+"="+e.Effective+" by "+e.Policy.Name)
	}
	if got := strings.Join(effects, " "); got != "x-max-length=3 by op" {
		t.Errorf("what contradicts is %q", got)
	}
	if _, _, err := q.Merge([]Policy{policy("a", 1, Arguments{"expires": int64(1)}), policy("b", 1, nil)}); err == nil || !strings.Contains(err.Error(), `policy "a" and policy "b" match queue "orders" with the same priority 1`) {
		t.Errorf("two of one priority: %v", err)
	}
	if same, kept, err := q.Merge(nil); err != nil || kept != nil || CanonicalJSON(same.Policy.Definition) != CanonicalJSON(q.Policy.Definition) {
		t.Error("without others it changed")
	}
}

func TestDiffPolicy(t *testing.T) {
	t.Parallel()
	objects, err := Spec{Identity: Identity{Topic: "orders"}, HoldDelays: []time.Duration{5 * time.Second}}.BuildLadder()
	if err != nil {
		t.Fatal(err)
	}
	own := objects.ViaPolicy().Queues[0].Policy
	if d := DiffPolicy(own, own.Canonical()); len(d) > 0 {
		t.Errorf("it differs from itself: %v", d)
	}
	gone := DiffPolicy(own, nil)
	if len(gone) != 5 || !strings.Contains(gone[3].String(), "message-ttl: want 5000, live absent: messages stay here until they are consumed instead of leaving after 5s") {
		t.Errorf("without it: %v", gone)
	}
	live := own.Canonical()
	live["pattern"], live["max-length"] = `"^x"`, "5"
	delete(live, "overflow")
	var keys []string
	for _, d := range DiffPolicy(own, live) {
		keys = append(keys, d.Key)
		if d.Explanation == "" {
			t.Errorf("nothing is said of %s", d.Key)
		}
	}
	if got := strings.Join(keys, " "); got != "max-length overflow pattern" {
		t.Errorf("what differs is %q", got)
	}
	if left := DiffPolicy(nil, own.Canonical()); len(left) != 5 || left[0].Want != "" {
		t.Errorf("one too many: %v", left)
	}
	parsed, err := ParsePolicy(own.Canonical())
	if err != nil || !maps.Equal(parsed.Canonical(), own.Canonical()) || len(parsed.Definition) != 5 {
		t.Errorf("read back it is %+v, %v", parsed, err)
	}
	if none, err := ParsePolicy(nil); err != nil || none.Name != "" || len(none.Over(Arguments{"x-a": "b"})) != 1 {
		t.Errorf("nothing read is %+v, %v", none, err)
	}
}

func TestOwnPolicies(t *testing.T) {
	t.Parallel()
	own := *Queue{Name: "a", Type: Quorum, Arguments: Arguments{ArgMaxLength: int64(1)}}.ViaPolicy().Policy
	wider, operator := own, own
	wider.Pattern, operator.Operator = "^a", true
	if got := OwnPolicies([]Policy{wider, operator, own}); len(got) != 1 || got["a"].Pattern != "^a$" {
		t.Errorf("got %v", got)
	}
	if OwnPolicy("a", []Policy{operator}) != nil || OwnPolicy("a", []Policy{wider}) == nil {
		t.Error("a queue's own policy is known by its name")
	}
}

func FuzzOwnPolicyMatchesOnlyItsQueue(f *testing.F) {
	for _, name := range []string{"orders", "a.b", "(x)+", "^a$", `a\b`, "[z]", "ü-漢", "a\tb", "\x7f", "x\\E", "a|b", "a b"} {
		f.Add(name, "orders-dlq")
		f.Add(name, name+"x")
	}
	f.Fuzz(func(t *testing.T, name, other string) {
		if ValidateName("queue", name) != nil || ValidateName("queue", other) != nil {
			t.Skip()
		}
		p := Queue{Name: name, Type: Quorum, Arguments: Arguments{ArgMaxLength: int64(1)}}.ViaPolicy().Policy
		pattern, err := regexp.Compile(p.Pattern)
		if err != nil {
			t.Fatalf("pattern %q: %v", p.Pattern, err)
		}
		for _, against := range []string{name, other, name + other, other + name, "x" + name, name + "x"} {
			if got := pattern.MatchString(against); got != (against == name) {
				t.Errorf("pattern %q matches %q: %v", p.Pattern, against, got)
			}
			if got, known := p.Compiled(nil).matches(Queue{Name: against, Type: Quorum}); got != (against == name) || !known {
				t.Errorf("the policy of %q matches %q: %v", name, against, got)
			}
		}
	})
}
