package rabbitmqadmin

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/dlclark/regexp2"
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

// policyWritesAtOnce is how many policies are written at the same time. For each of them the broker compares every queue of
// the vhost with every policy, one write after the other: those that wait there would run out of time.
const policyWritesAtOnce = 1

// matchTimeout is for patterns that take for ever with some names, which RabbitMQ gives up as well.
const matchTimeout = time.Second

// readPattern compiles patterns that Go's own package does not, such as those that look around. It is not topology's, whom
// applications link.
func readPattern(pattern string) (topology.Matcher, error) {
	re, err := regexp2.Compile(pattern, regexp2.RE2)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = matchTimeout
	return re, nil
}

func policyObject(name string) string { return fmt.Sprintf("policy %q", name) }

// PutPolicy makes a policy or changes the one of its name, which must be no operator policy. The queues that it matches
// have its settings when it returns. It takes the tag "policymaker".
func (c *Client) PutPolicy(ctx context.Context, vhost string, p topology.Policy) (err error) {
	x := c.newCall(ctx, opCreate, policyObject(p.Name), vhost)
	if p.Operator {
		return fmt.Errorf("cannot create operator policy %q in vhost %q as a policy", p.Name, vhost)
	}
	if err := take(ctx, c.policyWrites); err != nil {
		return x.failure(nil, 0, err)
	}
	defer release(c.policyWrites, 1)
	defer func() { c.view.wrotePolicy(vhost, p.Name, &p, err) }()
	return x.write(func(rh *rabbithole.Client) (*http.Response, error) {
		return rh.PutPolicy(vhost, p.Name, rabbithole.Policy{
			Vhost: vhost, Name: p.Name, Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority, Definition: rabbithole.PolicyDefinition(p.Definition),
		})
	})
}

// DeletePolicy deletes a policy; one that is gone is fine. It takes the tag "policymaker".
func (c *Client) DeletePolicy(ctx context.Context, vhost, name string) (err error) {
	x := c.newCall(ctx, opDelete, policyObject(name), vhost)
	if err := take(ctx, c.policyWrites); err != nil {
		return x.failure(nil, 0, err)
	}
	defer release(c.policyWrites, 1)
	defer func() { c.view.wrotePolicy(vhost, name, nil, err) }()
	return gone(x.write(func(rh *rabbithole.Client) (*http.Response, error) { return rh.DeletePolicy(vhost, name) }))
}

// MayWritePolicies reports whether the user has a tag that policies are written with. The broker is asked once.
func (c *Client) MayWritePolicies(ctx context.Context) (bool, error) {
	tags, _, err := c.view.user.get(ctx, everything)
	return slices.Contains(tags, "policymaker") || slices.Contains(tags, "administrator"), err
}

// Policies lists the policies of a vhost, and its operator policies after them. Every user with the tag "management"
// and a permission in the vhost may see both, so that a refusal is an error like any other: who takes it for "there are
// none" overlooks where queues dead-letter to.
func (c *Client) Policies(ctx context.Context, vhost string) ([]topology.Policy, error) {
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
			}.Compiled(readPattern))
		}
	}
	return out, nil
}
