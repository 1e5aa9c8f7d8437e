package migration

import (
	"errors"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
)

// ErrNoAMQP says that messages cannot be moved, because the client knows no AMQP address.
var ErrNoAMQP = errors.New("messages are moved over AMQP, and no amqp_endpoints are configured: set the provider's rabbitmq.amqp_endpoints")

// Broker is how to reach the client's broker over AMQP, as the same user. It connects to nothing.
func Broker(client *rabbitmqadmin.Client, vhost string) (*amqp.Broker, error) {
	endpoints, secure, sasl := client.AMQP()
	if len(endpoints) == 0 {
		return nil, ErrNoAMQP
	}
	cfg := amqp.Config{URL: endpoints[0].String(), SASL: sasl, VHost: vhost, Name: "redeliver"}
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
