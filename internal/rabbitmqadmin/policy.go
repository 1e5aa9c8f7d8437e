package rabbitmqadmin

import (
	"context"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

type wirePolicy struct {
	Name       string             `json:"name"`
	Pattern    string             `json:"pattern"`
	ApplyTo    string             `json:"apply-to"`
	Priority   int                `json:"priority"`
	Definition topology.Arguments `json:"definition"`
}

// listPolicies lists the policies of a vhost, and its operator policies after them. Every user with the tag "management"
// and a permission in the vhost may see both, so that a refusal is an error like any other: who takes it for "there are
// none" overlooks where queues dead-letter to.
func (c *Client) listPolicies(ctx context.Context, vhost string) ([]topology.Policy, error) {
	var out []topology.Policy
	for _, operator := range []bool{false, true} {
		var got []wirePolicy
		what := "the policies"
		if operator {
			what = "the operator policies"
		}
		x := c.newCall(ctx, opList, what, vhost)
		x.into = &got
		if err := x.run(func(rh *rabbithole.Client) error {
			var err error
			if operator {
				_, err = rh.ListOperatorPoliciesIn(vhost)
			} else {
				_, err = rh.ListPoliciesIn(vhost)
			}
			return err
		}); err != nil {
			return nil, err
		}
		for _, w := range got {
			out = append(out, topology.Policy{
				Name: w.Name, Pattern: w.Pattern, ApplyTo: w.ApplyTo, Priority: w.Priority, Definition: w.Definition, Operator: operator,
			}.Compiled())
		}
	}
	return out, nil
}
