package rabbitmqadmin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// LiveExchange is an exchange as the broker has it, or as it is to be declared.
type LiveExchange struct {
	Name, VHost string
	// Type is "direct", "fanout", "topic", "headers" or a plugin's.
	Type                          string
	Durable, AutoDelete, Internal bool
	Arguments                     topology.Arguments
}

type wireExchange struct {
	Name       string             `json:"name"`
	VHost      string             `json:"vhost"`
	Type       string             `json:"type"`
	Durable    boolean            `json:"durable"`
	AutoDelete boolean            `json:"auto_delete"`
	Internal   boolean            `json:"internal"`
	Arguments  topology.Arguments `json:"arguments"`
}

const columnsExchange = "name,vhost,type,durable,auto_delete,internal,arguments"

func (w wireExchange) live() LiveExchange {
	if w.Arguments == nil {
		w.Arguments = topology.Arguments{}
	}
	return LiveExchange{
		Name: w.Name, VHost: w.VHost, Type: w.Type, Durable: bool(w.Durable), AutoDelete: bool(w.AutoDelete),
		Internal: bool(w.Internal), Arguments: w.Arguments,
	}
}

// Exchange reads one exchange. One that is not there is [ErrNotFound].
func (c *Client) Exchange(ctx context.Context, vhost, name string) (LiveExchange, error) {
	var got wireExchange
	x := c.newCall(ctx, opRead, exchangeObject(name), vhost)
	x.into = &got
	x.query = query("columns", columnsExchange)
	if err := x.run(func(rh *rabbithole.Client) error {
		_, err := rh.GetExchange(vhost, name)
		return err
	}); err != nil {
		return LiveExchange{}, err
	}
	if got.Name != name || got.VHost != vhost {
		return LiveExchange{}, x.somethingElse(got.Name, got.VHost)
	}
	c.sawVHost(x.answered, vhost)
	return got.live(), nil
}

// listExchanges lists the exchanges of a vhost, the built-in ones included.
func (c *Client) listExchanges(ctx context.Context, vhost string) ([]LiveExchange, error) {
	got, err := listing[wireExchange]{
		c: c, what: "the exchanges", vhost: vhost, params: query("columns", columnsExchange, "disable_stats", "true"),
		total: func(b Broker) int { return b.Exchanges },
		send: func(rh *rabbithole.Client) error {
			_, err := rh.ListExchangesIn(vhost)
			return err
		},
	}.read(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]LiveExchange, len(got))
	for i, w := range got {
		out[i] = w.live()
	}
	return out, nil
}

// CreateExchange is [Client.DeclareExchange] for those who need not know whether the exchange was there before.
func (c *Client) CreateExchange(ctx context.Context, vhost string, e LiveExchange) error {
	_, err := c.DeclareExchange(ctx, vhost, e)
	return err
}

// DeclareExchange creates an exchange; one that exists and is the same is fine. One that differs is an
// [*InequivalentError]. It waits for other writes of this client to the same exchange.
func (c *Client) DeclareExchange(ctx context.Context, vhost string, e LiveExchange) (Outcome, error) {
	if e.Name == "" {
		return Unknown, fmt.Errorf("cannot create the default exchange in vhost %q: it always exists", vhost)
	}
	if err := checkName(exchangeObject(e.Name), vhost, e.Name); err != nil {
		return Unknown, err
	}
	unlock, err := c.exchanges.write(ctx, vhost, e.Name)
	if err != nil {
		return Unknown, err
	}
	defer unlock()
	x := c.newCall(ctx, opCreate, exchangeObject(e.Name), vhost)
	// rabbit-hole's settings have no field for internal.
	if x.body, err = json.Marshal(struct {
		rabbithole.ExchangeSettings
		Internal bool `json:"internal,omitempty"`
	}{rabbithole.ExchangeSettings{Type: e.Type, Durable: e.Durable, AutoDelete: e.AutoDelete, Arguments: e.Arguments}, e.Internal}); err != nil {
		return Unknown, x.failure(nil, 0, err)
	}
	defer c.view.declaredExchange(vhost, e.Name)
	err = x.write(func(rh *rabbithole.Client) (*http.Response, error) {
		return rh.DeclareExchange(vhost, e.Name, rabbithole.ExchangeSettings{})
	})
	if reason, ok := inequivalent(err); ok {
		return Existed, &InequivalentError{VHost: vhost, Exchange: e.Name, Reason: reason}
	}
	return x.outcome(err), err
}

// DeleteExchange deletes an exchange whatever it is used for; one that is gone is fine.
func (c *Client) DeleteExchange(ctx context.Context, vhost, name string) error {
	unlock, err := c.exchanges.write(ctx, vhost, name)
	if err != nil {
		return err
	}
	defer unlock()
	return gone(c.deleteExchange(ctx, vhost, name, false))
}

func (c *Client) deleteExchange(ctx context.Context, vhost, name string, ifUnused bool) error {
	x := c.newCall(ctx, opDelete, exchangeObject(name), vhost)
	if name == "" || strings.HasPrefix(name, "amq.") {
		return fmt.Errorf("cannot delete %s in vhost %q: it is RabbitMQ's own", x.object, vhost)
	}
	defer c.view.deletedExchange(vhost, name)
	if ifUnused {
		x.query = query("if-unused", "true")
	}
	return x.write(func(rh *rabbithole.Client) (*http.Response, error) { return rh.DeleteExchange(vhost, name) })
}
