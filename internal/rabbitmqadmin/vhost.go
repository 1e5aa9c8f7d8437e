package rabbitmqadmin

import (
	"context"
	"fmt"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// vhostAt is a vhost as seen through one endpoint. They are told apart because one endpoint of several may have a
// wrong path prefix, behind which everything is "not found".
type vhostAt struct {
	endpoint int
	vhost    string
}

// vhostObject is the object of a question about the vhost itself.
const vhostObject = "its contents"

// everyVHostHas is an exchange that RabbitMQ makes in every vhost and lets nobody delete. GET /api/vhosts/NAME would be
// the obvious question, but only administrators may ask it.
const everyVHostHas = "amq.direct"

// vhostReadable succeeds when the endpoint lets the user read the vhost. A success is remembered.
func (c *Client) vhostReadable(ctx context.Context, endpoint int, vhost string) error {
	c.mu.Lock()
	known := c.readable[vhostAt{endpoint, vhost}]
	c.mu.Unlock()
	if known {
		return nil
	}
	var got wireExchange
	x := c.newCall(ctx, opRead, vhostObject, vhost)
	x.into, x.endpoint = &got, endpoint
	if err := x.run(func(rh *rabbithole.Client) error {
		_, err := rh.GetExchange(vhost, everyVHostHas)
		return err
	}); err != nil {
		return err
	}
	if got.Name != everyVHostHas || got.VHost != vhost {
		return fmt.Errorf("asked for exchange %q in vhost %q, %s answered about %q in %q: is that RabbitMQ's management API?",
			everyVHostHas, vhost, c.endpoints[endpoint], got.Name, got.VHost)
	}
	c.sawVHost(endpoint, vhost)
	return nil
}

// sawVHost remembers that an endpoint showed an object of the vhost.
func (c *Client) sawVHost(endpoint int, vhost string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readable[vhostAt{endpoint, vhost}] = true
}

// VHost is what the broker says about a vhost.
type VHost struct {
	// DefaultQueueType is what a queue becomes that is declared without a type; "" is a classic queue.
	DefaultQueueType topology.QueueType
	// Nodes are the nodes of the cluster that run the vhost or should.
	Nodes int
}

// listVHosts lists the vhosts that the user may see, by name. Of a single one only administrators may read this.
func (c *Client) listVHosts(ctx context.Context) (map[string]VHost, error) {
	var got []struct {
		Name             string            `json:"name"`
		DefaultQueueType string            `json:"default_queue_type"`
		ClusterState     map[string]string `json:"cluster_state"`
	}
	x := c.newCall(ctx, opList, "the vhosts", "")
	x.into = &got
	x.query = query("columns", "name,default_queue_type,cluster_state")
	err := x.run(func(rh *rabbithole.Client) error {
		_, err := rh.ListVhosts()
		return err
	})
	out := make(map[string]VHost, len(got))
	for _, w := range got {
		v := VHost{Nodes: len(w.ClusterState)}
		if w.DefaultQueueType != "undefined" { // what brokers before 4.0 say
			v.DefaultQueueType = topology.QueueType(w.DefaultQueueType)
		}
		out[w.Name] = v
	}
	return out, err
}
