package rabbitmqadmin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// LiveQueue is a queue as the broker has it.
type LiveQueue struct {
	Name, VHost                    string
	Type                           topology.QueueType
	Durable, AutoDelete, Exclusive bool
	// Owner is the connection that an exclusive queue belongs to, as the broker names it: "10.0.0.7:51234 -> 10.0.0.1:5672". ""
	// for any other queue, and in lists.
	Owner string
	// Arguments are those it was declared with. 4.x adds x-queue-type where it was left out.
	Arguments topology.Arguments
	// Policy is the name of the policy that applies; "" without one. [Client.Queue] has it from the statistics, up to 10 s late.
	Policy string
	// State is what the broker says of the queue's process: "running" where all is well, "down" or "minority" where its
	// messages are out of reach; "" where it does not say.
	State string
	// Consumers is from the statistics: up to 10 s late, and 0 in lists.
	Consumers int
	// Subscribed are the consumers, as far as the broker knows and shows them; nil is unknown: in lists.
	Subscribed []Consumer
	// Messages (all of them, those that wait to be dead-lettered included), Ready and Unacknowledged are from the
	// statistics: up to 10 s late. nil is unknown: on a fresh queue, and in lists.
	Messages, Ready, Unacknowledged *int64
}

// wireQueue is a queue in the API's JSON. rabbit-hole's type cannot tell an absent count from 0 and rounds integers.
type wireQueue struct {
	Name           string             `json:"name"`
	VHost          string             `json:"vhost"`
	Type           topology.QueueType `json:"type"`
	Durable        boolean            `json:"durable"`
	AutoDelete     boolean            `json:"auto_delete"`
	Exclusive      boolean            `json:"exclusive"`
	Owner          connectionName     `json:"owner_pid_details"`
	Arguments      topology.Arguments `json:"arguments"`
	Policy         string             `json:"policy"`
	State          string             `json:"state"`
	Consumers      int                `json:"consumers"`
	Subscribed     []wireConsumer     `json:"consumer_details"`
	Messages       *int64             `json:"messages"`
	Ready          *int64             `json:"messages_ready"`
	Unacknowledged *int64             `json:"messages_unacknowledged"`
}

// boolean reads a boolean that some versions write as null or "undefined".
type boolean bool

func (f *boolean) UnmarshalJSON(text []byte) error {
	*f = string(text) == "true"
	return nil
}

// connectionName reads a connection's name from its details, which are "" or "none" where there is no connection.
type connectionName string

func (n *connectionName) UnmarshalJSON(text []byte) error {
	var details struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(text, &details) // other than an object has no name
	*n = connectionName(details.Name)
	return nil
}

var (
	_ json.Unmarshaler = (*boolean)(nil)
	_ json.Unmarshaler = (*connectionName)(nil)
)

const (
	columnsList   = "name,vhost,type,durable,auto_delete,exclusive,arguments,policy,state"
	columnsSingle = columnsList + ",owner_pid_details,consumers,consumer_details,messages,messages_ready,messages_unacknowledged"
)

func (w wireQueue) live() LiveQueue {
	return LiveQueue{
		Name: w.Name, VHost: w.VHost, Type: w.Type,
		Durable: bool(w.Durable), AutoDelete: bool(w.AutoDelete), Exclusive: bool(w.Exclusive), Owner: string(w.Owner),
		Arguments: w.Arguments, Policy: w.Policy, State: w.State, Consumers: w.Consumers,
		Messages: w.Messages, Ready: w.Ready, Unacknowledged: w.Unacknowledged,
	}
}

// Queue reads one queue. A queue that is not there is [ErrNotFound].
func (c *Client) Queue(ctx context.Context, vhost, name string) (LiveQueue, error) {
	got, err := c.queue(ctx, vhost, name)
	live := got.live()
	if err == nil {
		live.Subscribed = got.subscribed()
	}
	return live, err
}

func (c *Client) queue(ctx context.Context, vhost, name string) (wireQueue, error) {
	var got wireQueue
	x := c.newCall(ctx, opRead, queueObject(name), vhost)
	x.into = &got
	if err := x.run(func(rh *rabbithole.Client) error {
		_, err := rh.GetQueueWithParameters(vhost, name, query("columns", columnsSingle))
		return err
	}); err != nil {
		return wireQueue{}, err
	}
	if got.Name != name || got.VHost != vhost {
		return wireQueue{}, x.somethingElse(got.Name, got.VHost)
	}
	c.sawVHost(x.answered, vhost)
	if got.Arguments == nil {
		got.Arguments = topology.Arguments{}
	}
	return got, nil
}

// somethingElse is the error when an answer is about another object than was asked for.
func (x *call) somethingElse(name, vhost string) error {
	e := x.failure(nil, 0, fmt.Errorf("the answer is about %q in vhost %q", name, vhost))
	e.Advice = "is the endpoint RabbitMQ's management API, and does a proxy in between change paths?"
	return e
}

// query makes the query string of pairs of names and values.
func query(pairs ...string) url.Values {
	out := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		out.Set(pairs[i], pairs[i+1])
	}
	return out
}
