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
		m, err := b.newMessage(q, copyOf(c, q))
		if err != nil {
			return err
		}
		b.arrive(q, m)
	}
	return nil
}

// copyOf is what arrives of a copy: body, properties and headers, without what
// belonged to the delivery.
func copyOf(c consumer.Copy, q *queue) redeliver.Message {
	m := *c.Message
	if q.sqs != nil { // where the routing key is the message group
		m.ID, m.Headers = "", attributesOf(c)
		return m
	}
	m.Exchange, m.RoutingKey = c.Target.Exchange, c.Target.RoutingKey
	if c.Priority != nil {
		m.Priority = *c.Priority
	}
	m.Headers, m.Expiration, m.UserID = topology.CopyHeaders(m.Headers, m.Expiration, m.UserID, c.Set, c.Unset), "", ""
	return m
}
