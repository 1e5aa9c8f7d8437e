package rabbitmqadmin

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const (
	argAlternateExchange = "alternate-exchange"
	// A policy's names for what the arguments of a queue can say too.
	policyDeadLetterExchange = "dead-letter-exchange"
	policyDeadLetterKey      = "dead-letter-routing-key"
)

// deadLetterRoute is where a queue sends what it dead-letters.
type deadLetterRoute struct {
	exchange string
	key      string
	// keepsKey: there is no routing key of the queue's own, so that messages keep theirs, whatever they are.
	keepsKey bool
}

// PointingAt names the queues whose dead letters can get to queue, in alphabetical order. A queue's own arguments count,
// else its policy. Through the default exchange they get there if the key is the
// queue's name; through another exchange if its bindings lead there for that key: exactly for direct, fanout and topic
// exchanges, and on the assumption that every binding matches for all other types, for queues that keep the messages'
// own keys, and for alternate exchanges.
//
// In a vhost whose lists take long to read they may be some seconds old: see [sharedRead.recent].
func (c *Client) PointingAt(ctx context.Context, vhost, queue string) ([]string, error) {
	at := &recent{Client: c}
	by, err := pointingAt(ctx, at, vhost, queue)
	if err != nil || !at.aged {
		return by, err
	}
	if left, err := c.still(ctx, vhost, by); err != nil || len(left) == 0 {
		return nil, err
	}
	return pointingAt(ctx, fresh{c}, vhost, queue)
}

// still are those of the queues that are there: what a list says that is some seconds old may have been deleted since.
func (c *Client) still(ctx context.Context, vhost string, queues []string) ([]string, error) {
	var left []string
	for _, name := range queues {
		switch _, err := c.Queue(ctx, vhost, name); {
		case err == nil:
			left = append(left, name)
		case gone(err) != nil:
			return nil, err
		}
	}
	return left, nil
}

// PointingAt is [Client.PointingAt] as the view knows it.
func (v *View) PointingAt(ctx context.Context, vhost, queue string) ([]string, error) {
	return pointingAt(ctx, v, vhost, queue)
}

// sight is where the objects of a vhost are seen: fresh ones, for those who delete, or those of a view.
type sight interface {
	Queues(ctx context.Context, vhost string) ([]LiveQueue, error)
	exchanges(ctx context.Context, vhost string) ([]LiveExchange, error)
	QueueBindings(ctx context.Context, vhost, queue string) ([]topology.Binding, error)
	ExchangeBindings(ctx context.Context, vhost, exchange string) (source, destination []topology.Binding, err error)
	// definitions are those of the policies by name.
	definitions(ctx context.Context, vhost string) (map[string]topology.Arguments, error)
}

// recent is a sight whose lists may be some seconds old, if it takes long to read them. aged says that one was.
type recent struct {
	*Client
	aged bool
}

func (r *recent) Queues(ctx context.Context, vhost string) ([]LiveQueue, error) {
	all, aged, err := r.queues.recent(ctx, vhost)
	r.aged = r.aged || aged
	return all, err
}

func (r *recent) exchanges(ctx context.Context, vhost string) ([]LiveExchange, error) {
	all, aged, err := r.exchangeList.recent(ctx, vhost)
	r.aged = r.aged || aged
	return all, err
}

func (r *recent) definitions(ctx context.Context, vhost string) (map[string]topology.Arguments, error) {
	return fresh{r.Client}.definitions(ctx, vhost)
}

// fresh is a sight that reads when it is asked.
type fresh struct{ *Client }

func (f fresh) Queues(ctx context.Context, vhost string) ([]LiveQueue, error) {
	return f.queues.notBefore(ctx, vhost, time.Now())
}

func (f fresh) exchanges(ctx context.Context, vhost string) ([]LiveExchange, error) {
	return f.exchangeList.notBefore(ctx, vhost, time.Now())
}

func (f fresh) definitions(ctx context.Context, vhost string) (map[string]topology.Arguments, error) {
	policies, err := f.Policies(ctx, vhost)
	return definitionsOf(policies), err
}

func (v *View) exchanges(ctx context.Context, vhost string) ([]LiveExchange, error) {
	return v.Exchanges(ctx, vhost)
}

func (v *View) definitions(ctx context.Context, vhost string) (map[string]topology.Arguments, error) {
	policies, err := v.Policies(ctx, vhost)
	return definitionsOf(policies), err
}

// definitionsOf leaves operator policies out, which set nothing that routes.
func definitionsOf(policies []topology.Policy) map[string]topology.Arguments {
	out := make(map[string]topology.Arguments, len(policies))
	for _, p := range policies {
		if !p.Operator {
			out[p.Name] = p.Definition
		}
	}
	return out
}

func pointingAt(ctx context.Context, at sight, vhost, queue string) ([]string, error) {
	all, err := at.Queues(ctx, vhost)
	if err != nil {
		return nil, err
	}
	routes, err := deadLetterRoutes(ctx, at, vhost, all)
	if err != nil || len(routes) == 0 {
		return nil, err
	}
	inbound, err := inboundRouting(ctx, at, vhost, queue)
	if err != nil {
		return nil, err
	}
	var out []string
	for name, route := range routes {
		var points bool
		switch {
		case name == queue:
		case route.exchange != "":
			points = inbound.reaches(route.exchange, route.key, route.keepsKey, nil)
		case !route.keepsKey:
			points = route.key == queue
		default:
			// The default exchange with the messages' own keys: it gets here what the queue receives by this queue's name.
			if points, err = boundWithKey(ctx, at, vhost, name, queue); err != nil {
				return nil, err
			}
		}
		if points {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}

func boundWithKey(ctx context.Context, at sight, vhost, queue, key string) (bool, error) {
	bindings, err := at.QueueBindings(ctx, vhost, queue)
	return slices.ContainsFunc(bindings, func(b topology.Binding) bool { return b.RoutingKey == key }), err
}

// deadLetterRoutes are the queues that dead-letter, by name.
func deadLetterRoutes(ctx context.Context, at sight, vhost string, queues []LiveQueue) (map[string]deadLetterRoute, error) {
	var policies map[string]topology.Arguments
	out := map[string]deadLetterRoute{}
	for _, q := range queues {
		exchange, hasExchange := q.Arguments[topology.ArgDeadLetterExchange].(string)
		key, hasKey := q.Arguments[topology.ArgDeadLetterKey].(string)
		if q.Policy != "" && (!hasExchange || !hasKey) {
			if policies == nil {
				var err error
				if policies, err = at.definitions(ctx, vhost); err != nil {
					return nil, err
				}
			}
			definition := policies[q.Policy]
			if !hasExchange {
				exchange, hasExchange = definition[policyDeadLetterExchange].(string)
			}
			if !hasKey {
				key, hasKey = definition[policyDeadLetterKey].(string)
			}
		}
		if hasExchange {
			out[q.Name] = deadLetterRoute{exchange: exchange, key: key, keepsKey: !hasKey}
		}
	}
	return out, nil
}

// inbound is every exchange from which messages can get to one queue, and how.
type inbound struct {
	kinds map[string]string // exchange types
	edges map[string][]inboundEdge
}

// inboundEdge is one step towards the queue: through a binding, or to an alternate exchange.
type inboundEdge struct {
	key string
	// to is the next exchange; atQueue says that there is none.
	to        string
	atQueue   bool
	alternate bool
}

// inboundRouting walks from the queue back to every exchange that leads to it.
func inboundRouting(ctx context.Context, at sight, vhost, queue string) (inbound, error) {
	out := inbound{kinds: map[string]string{}, edges: map[string][]inboundEdge{}}
	bindings, err := at.QueueBindings(ctx, vhost, queue)
	if err != nil || len(bindings) == 0 {
		return out, err
	}
	exchanges, err := at.exchanges(ctx, vhost)
	if err != nil {
		return out, err
	}
	alternates := map[string][]string{}
	for _, e := range exchanges {
		out.kinds[e.Name] = e.Type
		if to, ok := e.Arguments[argAlternateExchange].(string); ok {
			alternates[to] = append(alternates[to], e.Name)
		}
	}
	var next []string
	step := func(from string, edge inboundEdge) {
		if _, seen := out.edges[from]; !seen {
			next = append(next, from)
		}
		out.edges[from] = append(out.edges[from], edge)
	}
	for _, b := range bindings {
		step(b.Source, inboundEdge{key: b.RoutingKey, atQueue: true})
	}
	for len(next) > 0 {
		exchange := next[0]
		next = next[1:]
		_, incoming, err := at.ExchangeBindings(ctx, vhost, exchange)
		if err != nil {
			return out, err
		}
		for _, b := range incoming {
			step(b.Source, inboundEdge{key: b.RoutingKey, to: exchange})
		}
		for _, from := range alternates[exchange] {
			step(from, inboundEdge{to: exchange, alternate: true})
		}
	}
	return out, nil
}

// reaches reports whether a message that is published to exchange with key (any key, if anyKey) can get to the queue.
func (in inbound) reaches(exchange, key string, anyKey bool, visited []string) bool {
	if slices.Contains(visited, exchange) {
		return false
	}
	visited = append(visited, exchange)
	for _, edge := range in.edges[exchange] {
		if !anyKey && !edge.alternate && !routes(in.kinds[exchange], edge.key, key) {
			continue
		}
		if edge.atQueue || in.reaches(edge.to, key, anyKey, visited) {
			return true
		}
	}
	return false
}

// routes reports whether an exchange of this type can send a message with key through a binding.
func routes(kind, bindingKey, key string) bool {
	switch kind {
	case "direct":
		return bindingKey == key
	case "topic":
		return topicMatches(strings.Split(bindingKey, "."), strings.Split(key, "."))
	default:
		// Fanout always does; the others decide by headers, hashes or what a plugin knows.
		return true
	}
}

// topicMatches compares word by word: * is one word, # any number of them.
func topicMatches(pattern, words []string) bool {
	if len(pattern) == 0 {
		return len(words) == 0
	}
	if pattern[0] == "#" {
		return topicMatches(pattern[1:], words) || len(words) > 0 && topicMatches(pattern, words[1:])
	}
	return len(words) > 0 && (pattern[0] == "*" || pattern[0] == words[0]) && topicMatches(pattern[1:], words[1:])
}
