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
	for name, route := range routes {
		points := route.exchange == "" && name != queue && !route.keeps
		if points && route.keepsKey {
			points, err = boundWithKey(ctx, fresh{c}, vhost, name, queue)
		} else if points {
			points = route.key == queue
		}
		if err != nil {
			return nil, err
		}
		if points {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// keepsUntilRouted: a queue that dead-letters at least once keeps a message that finds no target, and tries again after
// some minutes.
func keepsUntilRouted(q LiveQueue, definition topology.Arguments) bool {
	strategy, ok := q.Arguments[topology.ArgDeadLetterStrategy].(string)
	if !ok {
		strategy, _ = definition["dead-letter-strategy"].(string)
	}
	return q.Type == topology.Quorum && strategy == "at-least-once"
}
