package amqp

import (
	"maps"
	"strings"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// CopyHeaders are the headers of a copy of a message: its own, without those
// that belong to the old delivery and those in unset, and with those in set. An
// expiration and a user id, which a copy cannot have as properties, are kept as
// headers. The message's own table is not changed.
func CopyHeaders(headers map[string]any, expiration, userID string, set map[string]any, unset []string) amqp091.Table {
	made := make(amqp091.Table, len(headers)+len(set)+2)
	for key, value := range headers {
		if !belongsToDelivery(key) {
			made[key] = table(value)
		}
	}
	if expiration != "" {
		made[topology.HeaderOriginalExpiration] = expiration
	}
	if userID != "" {
		made[topology.HeaderOriginalUserID] = userID
	}
	for _, key := range unset {
		delete(made, key)
	}
	maps.Copy(made, set)
	return made
}

// Copy is the publishing that copies a delivery: body, properties and headers,
// without what [CopyHeaders] leaves out.
func Copy(d *amqp091.Delivery) amqp091.Publishing {
	return amqp091.Publishing{
		Headers:         CopyHeaders(d.Headers, d.Expiration, d.UserId, nil, nil),
		ContentType:     d.ContentType,
		ContentEncoding: d.ContentEncoding,
		DeliveryMode:    amqp091.Persistent,
		Priority:        d.Priority,
		CorrelationId:   d.CorrelationId,
		ReplyTo:         d.ReplyTo,
		MessageId:       d.MessageId,
		Timestamp:       d.Timestamp,
		Type:            d.Type,
		AppId:           d.AppId,
		Body:            d.Body,
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

// table replaces maps by the client library's tables, deep. What needs no
// replacing is not copied.
func table(value any) any {
	switch v := value.(type) {
	case map[string]any:
		made := make(amqp091.Table, len(v))
		for key, inner := range v {
			made[key] = table(inner)
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, inner := range v {
			made[i] = table(inner)
		}
		return made
	default:
		return value
	}
}
