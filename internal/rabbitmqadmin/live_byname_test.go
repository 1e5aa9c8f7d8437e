package rabbitmqadmin

import (
	"slices"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func TestLiveDeadLetteringByName(t *testing.T) {
	t.Parallel()
	c, _, vhost := live(t, nil)
	makeQueue(t, c, vhost, "orders", topology.Classic, nil)
	makeExchange(t, c, vhost, "direct", "direct")
	bind(t, c, vhost, bindingTo("direct", "orders", "orders"))
	makeQueue(t, c, vhost, "to-another", topology.Classic, deadLettersTo("", "other"))
	makeQueue(t, c, vhost, "by-exchange", topology.Classic, deadLettersTo("direct", "orders"))
	sets := func(more ...string) topology.Arguments {
		args := topology.Arguments{}
		for i := 0; i < len(more); i += 2 {
			args[more[i]] = more[i+1]
		}
		return args
	}
	const strategy, overflow = "dead-letter-strategy", "overflow"
	var want []string
	for name, test := range map[string]struct {
		kind              topology.QueueType
		arguments, policy topology.Arguments
		loses             bool
	}{
		"by-name":                         {topology.Classic, nil, nil, true},
		"keeps":                           {topology.Quorum, sets(strategy, "at-least-once", overflow, "reject-publish"), nil, false},
		"drops-head":                      {topology.Quorum, sets(strategy, "at-least-once"), nil, true},
		"keeps-by-policy":                 {topology.Quorum, nil, sets(strategy, "at-least-once", overflow, "reject-publish"), false},
		"keeps-by-both":                   {topology.Quorum, sets(strategy, "at-least-once"), sets(overflow, "reject-publish"), false},
		"drops-head-by-policy":            {topology.Quorum, sets(strategy, "at-least-once", overflow, "reject-publish"), sets(overflow, "drop-head"), true},
		"at-most-once-by-policy":          {topology.Quorum, sets(strategy, "at-least-once", overflow, "reject-publish"), sets(strategy, "at-most-once"), true},
		"strategy-by-policy-without-room": {topology.Quorum, nil, sets(strategy, "at-least-once"), true},
	} {
		args := deadLettersTo("", "orders")
		for key, value := range test.arguments {
			args["x-"+key] = value
		}
		makeQueue(t, c, vhost, name, test.kind, args)
		if test.policy != nil {
			must(t, c.PutPolicy(t.Context(), vhost, topology.Policy{Name: name, Pattern: "^" + name + "$", ApplyTo: "queues", Definition: test.policy}))
		}
		if test.loses {
			want = append(want, name)
		}
	}
	slices.Sort(want)

	if got, err := c.DeadLetteringByName(t.Context(), vhost, "orders"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if got, err := c.DeadLetteringByName(t.Context(), vhost, "none"); err != nil || len(got) != 0 {
		t.Errorf("a queue that does not exist: %q, %v", got, err)
	}
}
