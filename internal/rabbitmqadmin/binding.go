package rabbitmqadmin

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// The two kinds of binding, as the API calls them.
const (
	toQueue    = "queue"
	toExchange = "exchange"
)

type wireBinding struct {
	Source          string             `json:"source"`
	VHost           string             `json:"vhost"`
	Destination     string             `json:"destination"`
	DestinationType string             `json:"destination_type"`
	RoutingKey      string             `json:"routing_key"`
	Arguments       topology.Arguments `json:"arguments"`
	// PropertiesKey addresses the binding among those between the same two objects. RabbitMQ percent-encodes the routing
	// key in it, so that it is encoded twice in a path.
	PropertiesKey string `json:"properties_key"`
}

func (w wireBinding) binding() topology.Binding {
	args := w.Arguments
	if args == nil {
		args = topology.Arguments{}
	}
	return topology.Binding{
		Source: w.Source, Destination: w.Destination, DestinationType: w.DestinationType, RoutingKey: w.RoutingKey, Arguments: args,
	}
}

func bindingObject(b topology.Binding) string {
	text := fmt.Sprintf("binding from %s to %s %q with routing key %q", exchangeObject(b.Source), destinationType(b), b.Destination, b.RoutingKey)
	if len(b.Arguments) > 0 {
		text += " and arguments " + topology.CanonicalJSON(b.Arguments)
	}
	return text
}

func destinationType(b topology.Binding) string { return cmp.Or(b.DestinationType, toQueue) }

// sameBinding compares by value: source, destination, key and arguments.
func sameBinding(a, b topology.Binding) bool {
	return a.Source == b.Source && a.Destination == b.Destination && destinationType(a) == destinationType(b) &&
		a.RoutingKey == b.RoutingKey && sameArguments(a.Arguments, b.Arguments)
}

func sameArguments(a, b topology.Arguments) bool {
	if len(a) != len(b) {
		return false
	}
	return len(a) == 0 || topology.CanonicalJSON(a) == topology.CanonicalJSON(b)
}

// bindingsOf turns the API's list into bindings in a fixed order, without those of the default exchange, which every
// queue has and nobody can remove.
func bindingsOf(wire []wireBinding) []topology.Binding {
	out := make([]topology.Binding, 0, len(wire))
	for _, w := range wire {
		if w.Source != "" {
			out = append(out, w.binding())
		}
	}
	slices.SortFunc(out, func(a, b topology.Binding) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.DestinationType, b.DestinationType),
			cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.RoutingKey, b.RoutingKey),
			cmp.Compare(topology.CanonicalJSON(a.Arguments), topology.CanonicalJSON(b.Arguments)))
	})
	return out
}

// QueueBindings lists what leads to a queue, without the binding to the default exchange that every queue has. A queue
// that does not exist has none: RabbitMQ does not say that it is missing.
func (c *Client) QueueBindings(ctx context.Context, vhost, queue string) ([]topology.Binding, error) {
	var got []wireBinding
	x := c.newCall(ctx, opRead, "the bindings of "+queueObject(queue), vhost)
	x.into = &got
	err := x.run(func(rh *rabbithole.Client) error {
		_, err := rh.ListQueueBindings(vhost, queue)
		return err
	})
	return bindingsOf(got), err
}

// ExchangeBindings lists the bindings that start at an exchange and those that lead to it. An exchange that does not
// exist has none: RabbitMQ does not say that it is missing.
func (c *Client) ExchangeBindings(ctx context.Context, vhost, exchange string) (source, destination []topology.Binding, err error) {
	if source, err = c.BindingsFrom(ctx, vhost, exchange); err == nil {
		destination, err = c.exchangeBindings(ctx, vhost, exchange, rabbithole.BindingDestination)
	}
	return source, destination, err
}

// BindingsFrom lists the bindings that start at an exchange, none where it does not exist.
func (c *Client) BindingsFrom(ctx context.Context, vhost, exchange string) ([]topology.Binding, error) {
	return c.exchangeBindings(ctx, vhost, exchange, rabbithole.BindingSource)
}

// exchangeBindings lists the bindings of which an exchange is this end.
func (c *Client) exchangeBindings(ctx context.Context, vhost, exchange string, end rabbithole.BindingVertex) ([]topology.Binding, error) {
	var got []wireBinding
	x := c.newCall(ctx, opRead, "the bindings of "+exchangeObject(exchange), vhost)
	x.into = &got
	err := x.run(func(rh *rabbithole.Client) error {
		_, err := rh.ListExchangeBindings(vhost, exchange, end)
		return err
	})
	return bindingsOf(got), err
}

// listBindings lists the bindings of a vhost, without those to the default exchange.
func (c *Client) listBindings(ctx context.Context, vhost string) ([]topology.Binding, error) {
	var got []wireBinding
	x := c.newCall(ctx, opList, "the bindings", vhost)
	x.into = &got
	err := x.run(func(rh *rabbithole.Client) error {
		_, err := rh.ListBindingsIn(vhost)
		return err
	})
	return bindingsOf(got), err
}

// Bind creates a binding; one that exists with the same key and arguments is fine (RabbitMQ answers 201 both times). A
// missing exchange or queue is [ErrNotFound]: [Error.MissingExchange] tells which.
func (c *Client) Bind(ctx context.Context, vhost string, b topology.Binding) error {
	if err := checkBinding(vhost, b); err != nil {
		return err
	}
	unlock, err := c.exchanges.bind(ctx, vhost, bindingExchanges(b)...)
	if err != nil {
		return err
	}
	defer unlock()
	return c.bind(ctx, vhost, b)
}

func (c *Client) bind(ctx context.Context, vhost string, b topology.Binding) error {
	x := c.newCall(ctx, opBind, bindingObject(b), vhost)
	defer c.view.bound(vhost, b)
	return x.write(func(rh *rabbithole.Client) (*http.Response, error) { return rh.DeclareBinding(vhost, bindingInfo(b)) })
}

func bindingInfo(b topology.Binding) rabbithole.BindingInfo {
	return rabbithole.BindingInfo{
		Source: b.Source, Destination: b.Destination, DestinationType: destinationType(b), RoutingKey: b.RoutingKey,
		Arguments: b.Arguments,
	}
}

func bindingExchanges(b topology.Binding) []string {
	if destinationType(b) == toExchange {
		return []string{b.Source, b.Destination}
	}
	return []string{b.Source}
}

// checkBinding refuses what RabbitMQ takes and its API cannot handle afterwards (measured on 3.10 and 4.3).
func checkBinding(vhost string, b topology.Binding) error {
	var problem string
	switch kind := destinationType(b); {
	case kind != toQueue && kind != toExchange:
		problem = fmt.Sprintf("a binding leads to a %q or an %q, not to a %q", toQueue, toExchange, kind)
	case b.Source == "":
		problem = "every queue is bound to the default exchange by its own name, and nothing else can be; leave the binding out"
	case strings.Contains(b.RoutingKey, "~") && len(b.Arguments) > 0:
		problem = `RabbitMQ's management API answers 500 to every list that has a binding with arguments and a "~" in its routing key; use another key, or no arguments`
	case (b.RoutingKey == "." || b.RoutingKey == "..") && len(b.Arguments) == 0:
		problem = "RabbitMQ's management API cannot address a binding with this routing key, so that it could never be removed; use another key"
	default:
		return nil
	}
	return fmt.Errorf("cannot create %s in vhost %q: %s", bindingObject(b), vhost, problem)
}

// Unbind removes the binding that has the same source, destination, routing key and arguments. One that is gone is
// fine, and so is one whose exchange or queue is gone.
func (c *Client) Unbind(ctx context.Context, vhost string, b topology.Binding) error {
	_, err := c.unbind(ctx, vhost, b)
	return err
}

// unbind is Unbind that also reports whether the binding was there.
func (c *Client) unbind(ctx context.Context, vhost string, b topology.Binding) (was bool, err error) {
	unlock, err := c.exchanges.bind(ctx, vhost, bindingExchanges(b)...)
	if err != nil {
		return false, err
	}
	defer unlock()
	defer c.view.bound(vhost, b)
	live, found, err := c.findBinding(ctx, vhost, b)
	if err != nil || !found {
		return false, err
	}
	x := c.newCall(ctx, opUnbind, bindingObject(b), vhost)
	info := bindingInfo(b)
	info.PropertiesKey = live.PropertiesKey
	return true, gone(x.write(func(rh *rabbithole.Client) (*http.Response, error) { return rh.DeleteBinding(vhost, info) }))
}

func (c *Client) findBinding(ctx context.Context, vhost string, b topology.Binding) (wireBinding, bool, error) {
	var got []wireBinding
	x := c.newCall(ctx, opRead, bindingObject(b), vhost)
	x.into = &got
	err := x.run(func(rh *rabbithole.Client) error {
		var err error
		if destinationType(b) == toQueue {
			_, err = rh.ListQueueBindingsBetween(vhost, b.Source, b.Destination)
		} else {
			_, err = rh.ListExchangeBindingsBetween(vhost, b.Source, b.Destination)
		}
		return err
	})
	for _, w := range got {
		if sameBinding(w.binding(), b) {
			return w, true, nil
		}
	}
	return wireBinding{}, false, gone(err)
}
