package rabbitmq

import (
	"maps"
	"strings"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// fillDelivery translates a delivery. Body and headers are not copied.
func fillDelivery(d *consumer.Delivery, from *amqp091.Delivery, now time.Time) {
	d.Tag = from.DeliveryTag
	d.Received = now
	d.Count = deliveryCount(from.Headers)
	d.Message = redeliver.Message{
		Body:            from.Body,
		Headers:         messageHeaders(from.Headers),
		Exchange:        from.Exchange,
		RoutingKey:      from.RoutingKey,
		ID:              from.MessageId,
		Type:            from.Type,
		ContentType:     from.ContentType,
		ContentEncoding: from.ContentEncoding,
		CorrelationID:   from.CorrelationId,
		ReplyTo:         from.ReplyTo,
		AppID:           from.AppId,
		UserID:          from.UserId,
		Expiration:      from.Expiration,
		Timestamp:       from.Timestamp,
		Priority:        from.Priority,
		Redelivered:     from.Redelivered,
	}
}

// deliveryCount reads the broker's count. It is an integer of whatever width
// the broker, or a publisher that forged it, chose; anything else is 0.
func deliveryCount(headers amqp091.Table) int64 {
	switch n := headers[topology.HeaderDeliveryCount].(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	case int16:
		return int64(n)
	case int8:
		return int64(n)
	case uint8:
		return int64(n)
	case uint16:
		return int64(n)
	case uint32:
		return int64(n)
	default:
		return 0
	}
}

// messageHeaders is headers without the client library's types. The common
// case, no nested table, costs nothing.
func messageHeaders(headers amqp091.Table) map[string]any {
	if headers == nil {
		return nil
	}
	for _, value := range headers {
		if nests(value) {
			return plainValue(headers).(map[string]any)
		}
	}
	return headers
}

func nests(value any) bool {
	switch value.(type) {
	case amqp091.Table, []any:
		return true
	default:
		return false
	}
}

// plainValue replaces tables by maps, deep.
func plainValue(value any) any {
	switch v := value.(type) {
	case amqp091.Table:
		plain := make(map[string]any, len(v))
		for key, inner := range v {
			plain[key] = plainValue(inner)
		}
		return plain
	case []any:
		plain := make([]any, len(v))
		for i, inner := range v {
			plain[i] = plainValue(inner)
		}
		return plain
	default:
		return value
	}
}

// tableValue replaces maps by tables, deep: the inverse of plainValue.
func tableValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		table := make(amqp091.Table, len(v))
		for key, inner := range v {
			table[key] = tableValue(inner)
		}
		return table
	case []any:
		list := make([]any, len(v))
		for i, inner := range v {
			list[i] = tableValue(inner)
		}
		return list
	default:
		return value
	}
}

// copyOf is the publishing that copies a message: body, properties and headers
// as they are, persistent, without what belongs to the old delivery, and with
// the headers in set.
func copyOf(m *redeliver.Message, set map[string]any) amqp091.Publishing {
	headers := make(amqp091.Table, len(m.Headers)+len(set))
	for key, value := range m.Headers {
		if !belongsToDelivery(key) {
			headers[key] = tableValue(value)
		}
	}
	if m.Expiration != "" {
		headers[topology.HeaderOriginalExpiration] = m.Expiration
	}
	if m.UserID != "" {
		headers[topology.HeaderOriginalUserID] = m.UserID
	}
	maps.Copy(headers, set)
	return amqp091.Publishing{
		Headers:         headers,
		ContentType:     m.ContentType,
		ContentEncoding: m.ContentEncoding,
		DeliveryMode:    amqp091.Persistent,
		Priority:        m.Priority,
		CorrelationId:   m.CorrelationID,
		ReplyTo:         m.ReplyTo,
		MessageId:       m.ID,
		Timestamp:       m.Timestamp,
		Type:            m.Type,
		AppId:           m.AppID,
		Body:            m.Body,
	}
}

func belongsToDelivery(header string) bool {
	switch header {
	case topology.HeaderDeliveryCount, topology.HeaderAcquiredCount, topology.HeaderDeath, topology.HeaderCC, topology.HeaderBCC:
		return true
	default:
		return strings.HasPrefix(header, topology.PrefixFirstDeath) || strings.HasPrefix(header, topology.PrefixLastDeath)
	}
}
