package rabbitmqadmin

import (
	"context"
	"errors"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
)

// Broker is what a broker says about itself.
type Broker struct {
	// Version is RabbitMQ's, such as "3.10.8".
	Version string
	// ClusterName is the same on all nodes of a cluster.
	ClusterName string
	// Node is the node that answered.
	Node string
	// ExchangeTypes are the types of exchange that can be declared, those of plugins included.
	ExchangeTypes []string
	// StatisticsDisabled: the broker is configured to keep no message statistics, so that counts are known from queue
	// totals alone.
	StatisticsDisabled bool
	// Queues and Exchanges are how many of them the user can see in all vhosts, when the broker was first asked.
	Queues, Exchanges int
}

type wireOverview struct {
	RabbitMQVersion string `json:"rabbitmq_version"`
	ClusterName     string `json:"cluster_name"`
	Node            string `json:"node"`
	DisableStats    bool   `json:"disable_stats"`
	ObjectTotals    struct {
		Queues    int `json:"queues"`
		Exchanges int `json:"exchanges"`
	} `json:"object_totals"`
	ExchangeTypes []struct {
		Name    string `json:"name"`
		Enabled bool   `json:"enabled"`
	} `json:"exchange_types"`
}

// Ping asks the broker who it is, which also proves that the endpoint and the credentials are right. The first answer is
// remembered.
func (c *Client) Ping(ctx context.Context) (Broker, error) {
	c.mu.Lock()
	known := c.broker
	c.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	var got wireOverview // asked for without parameters: disable_stats would show as the configuration of the broker
	x := c.newCall(ctx, opRead, "the broker's overview", "")
	x.into = &got
	err := x.run(func(rh *rabbithole.Client) error {
		_, err := rh.Overview()
		return err
	})
	if err == nil && got.RabbitMQVersion == "" {
		e := x.failure(nil, x.status, errors.New("no version in it"))
		e.Reason = "the overview names no RabbitMQ version"
		e.Advice = "is the endpoint RabbitMQ's management API?"
		err = e
	}
	if err != nil {
		return Broker{}, err
	}
	b := Broker{
		Version: got.RabbitMQVersion, ClusterName: got.ClusterName, Node: got.Node, StatisticsDisabled: got.DisableStats,
		Queues: got.ObjectTotals.Queues, Exchanges: got.ObjectTotals.Exchanges,
	}
	for _, t := range got.ExchangeTypes {
		if t.Enabled {
			b.ExchangeTypes = append(b.ExchangeTypes, t.Name)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broker = &b
	return b, nil
}
