package memory

import (
	"maps"
	"strings"

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
	headers := make(map[string]any, len(m.Headers)+len(c.Set)+2)
	for key, value := range m.Headers {
		if !belongsToDelivery(key) {
			headers[key] = value
		}
	}
	if m.Expiration != "" {
		headers[topology.HeaderOriginalExpiration] = m.Expiration
	}
	if m.UserID != "" {
		headers[topology.HeaderOriginalUserID] = m.UserID
	}
	for _, key := range c.Unset {
		delete(headers, key)
	}
	maps.Copy(headers, c.Set)
	m.Headers, m.Expiration, m.UserID = headers, "", ""
	return m
}

func belongsToDelivery(header string) bool {
	switch header {
	case topology.HeaderDeliveryCount, topology.HeaderAcquiredCount, topology.HeaderDeath, topology.HeaderCC, topology.HeaderBCC:
		return true
	default:
		return strings.HasPrefix(header, topology.PrefixFirstDeath) || strings.HasPrefix(header, topology.PrefixLastDeath)
	}
}
