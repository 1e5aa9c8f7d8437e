package topology

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestWhichPolicyApplies(t *testing.T) {
	t.Parallel()
	policy := func(name, pattern, applyTo string, priority int) Policy {
		return Policy{Name: name, Pattern: pattern, ApplyTo: applyTo, Priority: priority}
	}
	operator := func(p Policy) Policy { p.Operator = true; return p }
	for name, test := range map[string]struct {
		policies []Policy
		live     string
		want     string
	}{
		"none":                  {nil, "", ""},
		"another name":          {[]Policy{policy("a", "^shop", "queues", 0)}, "", ""},
		"anywhere in the name":  {[]Policy{policy("a", "der", "all", 0)}, "", "a"},
		"the highest priority":  {[]Policy{policy("a", ".*", "queues", 1), policy("b", "^orders$", "queues", 9), policy("c", "", "queues", 5)}, "", "b"},
		"exchanges":             {[]Policy{policy("a", ".*", "exchanges", 1)}, "", ""},
		"another type of queue": {[]Policy{policy("a", ".*", "classic_queues", 2), policy("b", ".*", "quorum_queues", 1)}, "", "b"},
		"one of each kind":      {[]Policy{operator(policy("op", ".*", "queues", 0)), policy("a", ".*", "queues", 0)}, "", "a op"},
		"a pattern of Erlang's": {[]Policy{policy("a", "^(?!shop)", "queues", 0)}, "", ""},
		"the broker knows":      {[]Policy{policy("a", "^(?!shop)", "queues", 0)}, "a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var names []string
			for _, p := range (Queue{Name: "orders", Type: Quorum}).Policies(test.policies, test.live) {
				names = append(names, p.Name)
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// startsNot reads "^(?!x)" and finds no answer for names that end in a question mark.
type startsNot string

func readStartsNot(pattern string) (Matcher, error) {
	rest, ok := strings.CutPrefix(pattern, "^(?!")
	if !ok {
		return nil, errors.New("not of that kind")
	}
	return startsNot(strings.TrimSuffix(rest, ")")), nil
}

func (s startsNot) MatchString(name string) (bool, error) {
	if strings.HasSuffix(name, "?") {
		return false, errors.New("it took too long")
	}
	return !strings.HasPrefix(name, string(s)), nil
}

func TestPatternsThatGoCannotRead(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy         Policy
		read           ReadPattern
		queue          string
		applies, other bool
		hazard         string
	}{
		"read by another":             {Policy{Pattern: "^(?!shop)"}, readStartsNot, "orders", true, true, `policy "p" sets max-length`},
		"read, and another name":      {Policy{Pattern: "^(?!shop)"}, readStartsNot, "shop", false, false, ""},
		"read, and no answer":         {Policy{Pattern: "^(?!shop)"}, readStartsNot, "orders?", false, true, `policy "p" (if it applies: its pattern "^(?!shop)" cannot be read here) sets max-length`},
		"read by nobody":              {Policy{Pattern: "^a++(?!b)"}, readStartsNot, "orders", false, true, `policy "p" (if it applies: its pattern "^a++(?!b)" cannot be read here) sets max-length`},
		"without another reader":      {Policy{Pattern: "^(?!shop)"}, nil, "orders", false, true, "cannot be read here"},
		"for exchanges":               {Policy{Pattern: "^(?!shop)", ApplyTo: "exchanges"}, nil, "orders", false, false, ""},
		"for another type of queue":   {Policy{Pattern: "^(?!shop)", ApplyTo: "classic_queues"}, nil, "orders", false, false, ""},
		"with what keeps it off":      {Policy{Pattern: "^(?!shop)", Definition: Arguments{"max-length": int64(1), "ha-mode": "all"}}, nil, "orders", false, false, ""},
		"an operator's":               {Policy{Pattern: "^(?!shop)", Operator: true}, nil, "orders", false, false, `operator policy "p" (if it applies`},
		"one that changes no message": {Policy{Pattern: "^(?!shop)", Definition: Arguments{"queue-leader-locator": "balanced"}}, nil, "orders", false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := test.policy
			p.Name = "p"
			if p.Definition == nil {
				p.Definition = Arguments{"max-length": int64(1)}
			}
			policies := []Policy{p.Compiled(test.read)}
			q := Queue{Name: test.queue, Type: Quorum}
			if got := q.Policies(policies, ""); len(got) > 0 != test.applies {
				t.Errorf("%v applies", got)
			}
			others := q.Others(policies, "")
			if len(others) > 0 != test.other {
				t.Errorf("the others are %v", others)
			}
			var hazards []string
			for _, e := range q.Hazards(policies) {
				hazards = append(hazards, e.String())
			}
			if got := strings.Join(hazards, "; "); !strings.Contains(got, test.hazard) || (got == "") != (test.hazard == "") {
				t.Errorf("the hazards are %q, want %q", got, test.hazard)
			}
			own := Queue{Name: test.queue, Type: Quorum, Arguments: Arguments{ArgDeliveryLimit: int64(5)}}.ViaPolicy()
			merged, _, err := own.Merge(others)
			if doubt := test.other && !test.applies; doubt != (err != nil && strings.Contains(err.Error(), "cannot be read here")) {
				t.Errorf("merging: %v", err)
			}
			if _, copied := merged.Policy.Definition["max-length"]; copied != test.applies {
				t.Errorf("merged to %v", merged.Policy.Canonical())
			}
		})
	}
}

func TestContradictionsOfPolicies(t *testing.T) {
	t.Parallel()
	work := Arguments{
		ArgDeadLetterExchange: "orders-retry", ArgDeadLetterKey: "orders-dlq", ArgDeadLetterStrategy: "at-least-once",
		ArgOverflow: "reject-publish", ArgDeliveryLimit: int64(50),
	}
	hold := Arguments{ArgMessageTTL: int64(5000), ArgDeadLetterExchange: "", ArgDeadLetterKey: "orders"}
	for name, test := range map[string]struct {
		kind      QueueType
		arguments Arguments
		policy    Arguments
		operator  Arguments
		want      string // keys and effective values
	}{
		"a lower TTL":                       {Quorum, hold, Arguments{"message-ttl": int64(4000)}, nil, "x-message-ttl=4000"},
		"a higher TTL":                      {Quorum, hold, Arguments{"message-ttl": int64(6000)}, nil, ""},
		"a TTL where there is none":         {Quorum, work, Arguments{"message-ttl": int64(6000)}, nil, "x-message-ttl=6000"},
		"a length where there is none":      {Quorum, work, Arguments{"max-length": int64(10), "max-length-bytes": int64(5)}, nil, "x-max-length=10 x-max-length-bytes=5"},
		"a lower delivery limit":            {Quorum, work, Arguments{"delivery-limit": int64(5)}, nil, "x-delivery-limit=5"},
		"a delivery limit of a classic one": {Classic, hold, Arguments{"delivery-limit": int64(5)}, nil, ""},
		"an expiry":                         {Quorum, hold, Arguments{"expires": int64(5)}, nil, "x-expires=5"},
		"drop-head on quorum":               {Quorum, work, Arguments{"overflow": "drop-head"}, nil, `x-overflow="drop-head"`},
		"drop-head on classic":              {Classic, work, Arguments{"overflow": "drop-head"}, nil, ""},
		"drop-head, which is the default":   {Quorum, hold, Arguments{"overflow": "drop-head"}, nil, ""},
		"at most once":                      {Quorum, work, Arguments{"dead-letter-strategy": "at-most-once"}, nil, `x-dead-letter-strategy="at-most-once"`},
		"another dead-letter exchange":      {Quorum, work, Arguments{"dead-letter-exchange": "dlx", "dead-letter-routing-key": "k"}, nil, ""},
		"a dead-letter exchange for none":   {Quorum, Arguments{}, Arguments{"dead-letter-exchange": "dlx"}, nil, `x-dead-letter-exchange="dlx"`},
		"a key without an exchange":         {Quorum, Arguments{}, Arguments{"dead-letter-routing-key": "k"}, nil, ""},
		"a key for an exchange":             {Quorum, Arguments{ArgDeadLetterExchange: "x"}, Arguments{"dead-letter-routing-key": "k"}, nil, `x-dead-letter-routing-key="k"`},
		"the operator's is lower":           {Quorum, work, Arguments{"max-length": int64(10)}, Arguments{"max-length": int64(9)}, "x-max-length=9 (op)"},
		"the operator's is higher":          {Quorum, work, Arguments{"max-length": int64(10)}, Arguments{"max-length": int64(11)}, "x-max-length=10"},
		"the operator's overflow":           {Quorum, work, Arguments{"overflow": "reject-publish"}, Arguments{"overflow": "drop-head"}, `x-overflow="drop-head" (op)`},
		"what the queue asked for":          {Quorum, Arguments{"x-max-length": int64(5)}, Arguments{"max-length": int64(5)}, nil, ""},
		"what is nothing to the contract":   {Quorum, work, Arguments{"ha-mode": "all", "queue-mode": "lazy", "federation-upstream-set": "all"}, nil, ""},
		"a consumer timeout":                {Quorum, work, Arguments{"consumer-timeout": int64(5)}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := Queue{Name: "q", Type: test.kind, Arguments: test.arguments}
			policies := []Policy{{Name: "pol", ApplyTo: "queues", Definition: test.policy}}
			if test.operator != nil {
				policies = append(policies, Policy{Name: "op", ApplyTo: "queues", Operator: true, Definition: test.operator})
			}
			var got []string
			for _, e := range q.Contradictions(q.Effects(policies, "")) {
				text := e.Key + "=" + e.Effective
				if e.Policy.Operator {
					text += " (op)"
				}
				got = append(got, text)
				if s := e.String(); !strings.HasPrefix(s, e.Policy.String()+" sets ") || strings.Contains(s, "{") {
					t.Errorf("it reads %q", s)
				}
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("got %q, want %q", text, test.want)
			}
		})
	}
}

func TestPolicyThatShortensTheConsumerTimeout(t *testing.T) {
	t.Parallel()
	spec := Spec{Identity: Identity{Topic: "orders"}, AllowMessageLoss: true, Retry: RetryPolicy{MaxRetries: 1, Delays: []time.Duration{time.Minute}}}
	objects, err := spec.BuildWorkQueue()
	if err != nil {
		t.Fatal(err)
	}
	effects := func(ms int64) []Effect {
		return objects.Queues[0].Effects([]Policy{{Name: "short", ApplyTo: "queues", Definition: Arguments{"consumer-timeout": ms}}}, "")
	}
	if err := spec.CheckConsumerTimeout(effects(120_000)); err != nil {
		t.Errorf("a minute does not fit into two: %v", err)
	}
	err = spec.CheckConsumerTimeout(effects(60_000))
	if err == nil || !strings.Contains(err.Error(), `policy "short" sets consumer-timeout to 60000 ms for queue "orders": delay 1m cannot be waited in place`) {
		t.Errorf("got %v", err)
	}
}
