package rabbitmqadmin

import (
	"context"
	"slices"
	"sync"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Plan is what is about to exist in a vhost, beside or in the place of what does. Its methods may be called from several
// goroutines.
type Plan struct {
	mu        sync.Mutex
	queues    map[string]topology.Queue
	exchanges map[string]string             // types
	bindings  map[string][]topology.Binding // by source
}

// NewPlan returns a plan without anything in it.
func NewPlan() *Plan {
	return &Plan{queues: map[string]topology.Queue{}, exchanges: map[string]string{}, bindings: map[string][]topology.Binding{}}
}

// Add plans objects.
func (p *Plan) Add(objects topology.Objects) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, q := range objects.Queues {
		p.queues[q.Name] = q
	}
	for _, e := range objects.Exchanges {
		p.exchanges[e.Name] = e.Type
	}
	for _, b := range objects.Bindings {
		p.bindings[b.Source] = append(p.bindings[b.Source], b)
	}
}

func (p *Plan) queue(name string) (topology.Queue, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q, ok := p.queues[name]
	return q, ok
}

// exchange is the type of a planned exchange and its planned bindings.
func (p *Plan) exchange(name string) (kind string, bindings []topology.Binding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exchanges[name], slices.Clone(p.bindings[name])
}

// DeadLetterCycle follows the dead letters of a queue through planned and live queues until they are back, and returns
// the queues on the way, the queue first; none where they do not come back.
func (v *View) DeadLetterCycle(ctx context.Context, vhost, queue string, plan *Plan) ([]string, error) {
	w := cycleWalk{v: v, vhost: vhost, plan: plan, seen: map[string]bool{}}
	return w.from(ctx, []string{queue})
}

// cycleWalk is a search in depth for the queue that it began with.
type cycleWalk struct {
	v     *View
	vhost string
	plan  *Plan
	seen  map[string]bool
}

func (w *cycleWalk) from(ctx context.Context, way []string) ([]string, error) {
	route, dead, err := w.routeOf(ctx, way[len(way)-1])
	if err != nil || !dead {
		return nil, err
	}
	targets, err := w.targets(ctx, route, nil)
	if err != nil {
		return nil, err
	}
	for _, next := range targets {
		if next == way[0] {
			return way, nil
		}
		if w.seen[next] {
			continue
		}
		w.seen[next] = true
		if cycle, err := w.from(ctx, append(slices.Clone(way), next)); err != nil || cycle != nil {
			return cycle, err
		}
	}
	return nil, nil
}

// routeOf is where a queue sends what it dead-letters; dead is false where that is nowhere.
func (w *cycleWalk) routeOf(ctx context.Context, name string) (route deadLetterRoute, dead bool, err error) {
	q, isPlanned := w.plan.queue(name)
	live := LiveQueue{Name: name, Arguments: q.Settings()}
	if !isPlanned {
		var found bool
		if live, found, err = w.v.FindQueue(ctx, w.vhost, name); err != nil || !found {
			return route, false, err
		}
		q = topology.Queue{Name: name, Type: live.Type, Arguments: live.Arguments}
	}
	policies, err := w.v.Policies(ctx, w.vhost)
	if err != nil {
		return route, false, err
	}
	exchange, dead := live.Arguments[topology.ArgDeadLetterExchange].(string)
	key, hasKey := live.Arguments[topology.ArgDeadLetterKey].(string)
	for _, p := range q.Policies(policies, live.Policy) {
		if set, ok := p.Definition[policyDeadLetterExchange].(string); ok && !dead {
			exchange, dead = set, true
		}
		if set, ok := p.Definition[policyDeadLetterKey].(string); ok && !hasKey {
			key, hasKey = set, true
		}
	}
	return deadLetterRoute{exchange: exchange, key: key, keepsKey: !hasKey}, dead, nil
}

// targets are the queues that a route leads to.
func (w *cycleWalk) targets(ctx context.Context, route deadLetterRoute, visited []string) ([]string, error) {
	if route.exchange == "" {
		if route.keepsKey {
			return nil, nil // to whom is in the messages
		}
		return []string{route.key}, nil
	}
	if slices.Contains(visited, route.exchange) {
		return nil, nil
	}
	kind, planned := w.plan.exchange(route.exchange)
	if kind == "" {
		live, err := w.v.Exchange(ctx, w.vhost, route.exchange)
		if err != nil {
			return nil, gone(err)
		}
		kind = live.Type
	}
	bindings, err := w.v.bindingsAt(ctx, w.vhost, fromExchange, route.exchange)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, b := range slices.Concat(bindings, planned) {
		if !route.keepsKey && !routes(kind, b.RoutingKey, route.key) {
			continue
		}
		if destinationType(b) == toQueue {
			out = append(out, b.Destination)
			continue
		}
		onwards := route
		onwards.exchange = b.Destination
		further, err := w.targets(ctx, onwards, append(slices.Clone(visited), route.exchange))
		if err != nil {
			return nil, err
		}
		out = append(out, further...)
	}
	return out, nil
}
