package amqp

import (
	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// copyHeaders are topology.CopyHeaders as the client library takes them: maps
// are replaced by its tables, deep.
func copyHeaders(headers map[string]any, expiration, userID string, set map[string]any, unset []string) amqp091.Table {
	made := topology.CopyHeaders(headers, expiration, userID, set, unset)
	for name, value := range made {
		switch value.(type) {
		case map[string]any, []any:
			made[name] = table(value)
		}
	}
	return made
}

// Copy is the publishing that copies a delivery: body, properties and headers,
// without what topology.CopyHeaders leaves out and the headers in unset, and with
// those in set.
func Copy(d *amqp091.Delivery, set map[string]any, unset []string) amqp091.Publishing {
	return amqp091.Publishing{
		Headers:         copyHeaders(d.Headers, d.Expiration, d.UserId, set, unset),
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

// PlainHeaders is headers without the client library's types. The common case, no
// nested table, costs nothing.
func PlainHeaders(headers amqp091.Table) map[string]any {
	if headers == nil {
		return nil
	}
	for _, value := range headers {
		if nests(value) {
			return plain(headers).(map[string]any)
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

// plain replaces tables by maps, deep.
func plain(value any) any {
	switch v := value.(type) {
	case amqp091.Table:
		made := make(map[string]any, len(v))
		for key, inner := range v {
			made[key] = plain(inner)
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, inner := range v {
			made[i] = plain(inner)
		}
		return made
	default:
		return value
	}
}

// table is the reverse of plain.
func table(value any) any {
	switch v := value.(type) {
	case map[string]any:
		made := make(amqp091.Table, len(v))
		for name, inner := range v {
			made[name] = table(inner)
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
