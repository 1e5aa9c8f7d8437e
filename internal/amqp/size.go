package amqp

import (
	"fmt"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

const (
	// frameOverhead is what a frame adds to its payload, and headerFixed the part of a header frame's payload that every
	// message has: class, weight, body size and the flags.
	frameOverhead = 8
	headerFixed   = 14
	// maxShort is the longest short string in bytes.
	maxShort = 255
)

// headerSize is how many bytes the frame with a message's properties and
// headers takes. It refuses what amqp091-go would fail to encode: it notices in
// the middle of a frame, which ends the connection.
func headerSize(exchange, key string, msg *amqp091.Publishing) (int, error) {
	size := frameOverhead + headerFixed
	for _, p := range [...]struct{ name, value string }{
		{"content type", msg.ContentType},
		{"content encoding", msg.ContentEncoding},
		{"correlation id", msg.CorrelationId},
		{"reply-to", msg.ReplyTo},
		{"expiration", msg.Expiration},
		{"message id", msg.MessageId},
		{"type", msg.Type},
		{"user id", msg.UserId},
		{"app id", msg.AppId},
		{"exchange", exchange},
		{"routing key", key},
	} {
		if len(p.value) > maxShort {
			return 0, fmt.Errorf("its %s has %d bytes and AMQP takes at most %d", p.name, len(p.value), maxShort)
		}
		if p.value != "" {
			size += 1 + len(p.value)
		}
	}
	size += 1 + 1 + 8 // delivery mode, priority, timestamp
	if len(msg.Headers) > 0 {
		table, err := tableSize(msg.Headers)
		if err != nil {
			return 0, err
		}
		size += table
	}
	return size, nil
}

func tableSize(table amqp091.Table) (int, error) {
	size := 4
	for key, value := range table {
		if len(key) > maxShort {
			return 0, fmt.Errorf("the name of its header %.40q has %d bytes and AMQP takes at most %d", key, len(key), maxShort)
		}
		n, err := fieldSize(value)
		if err != nil {
			return 0, fmt.Errorf("its header %q: %w", key, err)
		}
		size += 1 + len(key) + n
	}
	return size, nil
}

// fieldSize is how many bytes a header's value takes, with the byte that says its type.
func fieldSize(value any) (int, error) {
	switch v := value.(type) {
	case nil:
		return 1, nil
	case bool, byte, int8:
		return 2, nil
	case int16, uint16:
		return 3, nil
	case int, int32, uint32, float32:
		return 5, nil
	case amqp091.Decimal:
		return 6, nil
	case int64, float64, time.Time:
		return 9, nil
	case string:
		return 5 + len(v), nil
	case []byte:
		return 5 + len(v), nil
	case amqp091.Table:
		n, err := tableSize(v)
		return 1 + n, err
	case []any:
		size := 5
		for _, inner := range v {
			n, err := fieldSize(inner)
			if err != nil {
				return 0, err
			}
			size += n
		}
		return size, nil
	default:
		return 0, fmt.Errorf("AMQP has no type for a %T", value)
	}
}
