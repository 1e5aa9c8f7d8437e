package rabbitmq

import (
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// fillDelivery translates a delivery. Body and headers are not copied.
func fillDelivery(d *consumer.Delivery, from *amqp091.Delivery, now time.Time) {
	d.Tag = from.DeliveryTag
	d.Received = now
	d.Count = consumer.DeliveryCount(from.Headers)
	d.Message = MessageOf(from)
}

// MessageOf is the message of a delivery. Body and headers are not copied.
func MessageOf(from *amqp091.Delivery) redeliver.Message {
	return redeliver.Message{
		Body:            from.Body,
		Headers:         amqp.PlainHeaders(from.Headers),
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

// copyOf is the publishing that is a copy.
func copyOf(c consumer.Copy) amqp091.Publishing {
	m := c.Message
	made := amqp.Copy(&amqp091.Delivery{
		Headers:         m.Headers,
		ContentType:     m.ContentType,
		ContentEncoding: m.ContentEncoding,
		Priority:        m.Priority,
		CorrelationId:   m.CorrelationID,
		ReplyTo:         m.ReplyTo,
		Expiration:      m.Expiration,
		MessageId:       m.ID,
		Timestamp:       m.Timestamp,
		Type:            m.Type,
		UserId:          m.UserID,
		AppId:           m.AppID,
		Body:            m.Body,
	}, c.Set, c.Unset)
	if c.Priority != nil {
		made.Priority = *c.Priority
	}
	return made
}
