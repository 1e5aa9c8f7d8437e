package rabbitmqadmin

import (
	"context"
	"slices"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// DeadLetteringByName are the queues that dead-letter to a queue through the default exchange, by its name, and do not keep
// what finds no target: what they send while there is no such queue is lost. They are in alphabetical order. Who publishes
// in that way no broker tells.
func (c *Client) DeadLetteringByName(ctx context.Context, vhost, queue string) ([]string, error) {
	var out []string
	all, err := c.Queues(ctx, vhost)
	if err != nil {
		return nil, err
	}
	routes, err := deadLetterRoutes(ctx, fresh{c}, vhost, all)
	if err != nil {
		return nil, err
	}
	policies, err := c.Policies(ctx, vhost)
	if err != nil {
		return nil, err
	}
	for _, q := range all {
		route, dead := routes[q.Name]
		points := dead && route.exchange == "" && q.Name != queue && !keepsUntilRouted(q, policies)
		if points && route.keepsKey {
			points, err = boundWithKey(ctx, fresh{c}, vhost, q.Name, queue)
		} else if points {
			points = route.key == queue
		}
		if err != nil {
			return nil, err
		}
		if points {
			out = append(out, q.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// keepsUntilRouted: a queue that dead-letters at least once keeps a message that finds no target, and tries again after
// some minutes. Without overflow = reject-publish the broker takes the strategy and dead-letters at most once.
func keepsUntilRouted(q LiveQueue, policies []topology.Policy) bool {
	applies := q.Arguments.Canonical()
	for _, e := range (topology.Queue{Name: q.Name, Type: q.Type, Arguments: q.Arguments}).Effects(policies, q.Policy) {
		applies[e.Key] = e.Effective
	}
	return q.Type == topology.Quorum && applies[topology.ArgDeadLetterStrategy] == topology.CanonicalJSON("at-least-once") &&
		applies[topology.ArgOverflow] == topology.CanonicalJSON("reject-publish")
}
