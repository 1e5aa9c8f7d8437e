package migration

import (
	"errors"
	"strconv"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
)

// ErrNoAMQP says that messages cannot be moved, because the client knows no AMQP address.
var ErrNoAMQP = errors.New("messages are moved over AMQP, and no amqp_endpoints are configured: set the provider's rabbitmq.amqp_endpoints")

// heartbeat is short, so that the connections of a run whose machine or network is gone are soon gone too, and with them its
// lock and what it held of the queue. The client gives a silent connection up after one and a half of it, and the broker
// after two to three: where the network is gone in both directions, a run has stopped before another one can begin.
const heartbeat = 8 * time.Second

// Broker is how to reach the client's broker over AMQP, as the same user. It connects to nothing.
func Broker(client *rabbitmqadmin.Client, vhost string) (*amqp.Broker, error) {
	endpoints, secure, sasl := client.AMQP()
	if len(endpoints) == 0 {
		return nil, ErrNoAMQP
	}
	at := *endpoints[0]
	query := at.Query()
	query.Set("heartbeat", strconv.Itoa(int(heartbeat/time.Second)))
	at.RawQuery = query.Encode()
	cfg := amqp.Config{URL: at.String(), SASL: sasl, VHost: vhost, Name: "redeliver"}
	if endpoints[0].Scheme == "amqps" {
		cfg.TLS = secure
	}
	for _, other := range endpoints[1:] {
		if other.Scheme == endpoints[0].Scheme {
			cfg.Addresses = append(cfg.Addresses, other.Host)
		}
	}
	return amqp.NewBroker(cfg)
}
