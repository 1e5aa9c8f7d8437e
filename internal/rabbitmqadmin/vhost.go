package rabbitmqadmin

import (
	"context"
	"fmt"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
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
