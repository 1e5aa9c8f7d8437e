package memory

import (
	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// publish puts a copy into its queue.
func (b *Broker) publish(c consumer.Copy) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	reached := b.route(c.Target.Exchange, c.Target.RoutingKey)
	if len(reached) == 0 {
		return consumer.ErrNoQueue
	}
	for _, q := range reached {
		m, err := newMessage(copyOf(c))
		if err != nil {
			return err
		}
		b.arrive(q, m)
	}
	return nil
}

// copyOf is what arrives of a copy: body, properties and headers, without what
// belonged to the delivery.
func copyOf(c consumer.Copy) redeliver.Message {
	m := *c.Message
	m.Exchange, m.RoutingKey = c.Target.Exchange, c.Target.RoutingKey
	if c.Priority != nil {
		m.Priority = *c.Priority
	}
	m.Headers, m.Expiration, m.UserID = topology.CopyHeaders(m.Headers, m.Expiration, m.UserID, c.Set, c.Unset), "", ""
	return m
}
