package consumer

import (
	"math"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// DeliveryCount is how often RabbitMQ says in a message's headers that it was
// delivered before. A publisher can forge it; anything that is no number is 0.
func DeliveryCount(headers map[string]any) int64 {
	count, _ := topology.HeaderInteger(headers[topology.HeaderDeliveryCount])
	return count
}

// firstSeen is the time in a header that carries milliseconds since 1970, where
// the convention has one, else a message's timestamp.
func firstSeen(m *redeliver.Message, header string) time.Time {
	if header != "" {
		if ms, ok := topology.HeaderInteger(m.Headers[header]); ok && ms > 0 && ms < math.MaxInt64/int64(time.Millisecond) {
			return time.UnixMilli(ms)
		}
	}
	if m.Timestamp.Unix() > 0 {
		return m.Timestamp
	}
	return time.Time{}
}
