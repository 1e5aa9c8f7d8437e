package consumer

import (
	"math"
	"strconv"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// DeliveryCount is how often RabbitMQ says in a message's headers that it was
// delivered before. A publisher can forge it; anything that is no number is 0.
func DeliveryCount(headers map[string]any) int64 {
	count, _ := integer(headers[topology.HeaderDeliveryCount])
	return count
}

// firstSeen is the time in a header that carries milliseconds since 1970, where
// the convention has one, else a message's timestamp.
func firstSeen(m *redeliver.Message, header string) time.Time {
	if header != "" {
		if ms, ok := integer(m.Headers[header]); ok && ms > 0 && ms < math.MaxInt64/int64(time.Millisecond) {
			return time.UnixMilli(ms)
		}
	}
	if m.Timestamp.Unix() > 0 {
		return m.Timestamp
	}
	return time.Time{}
}

// integer reads a header's number: an integer of whatever width, or text, which
// some libraries write.
func integer(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int32:
		return int64(n), true
	case int16:
		return int64(n), true
	case int8:
		return int64(n), true
	case int:
		return int64(n), true
	case uint8:
		return int64(n), true
	case uint16:
		return int64(n), true
	case uint32:
		return int64(n), true
	case string:
		i, err := strconv.ParseInt(n, 10, 64)
		return i, err == nil
	case []byte:
		i, err := strconv.ParseInt(string(n), 10, 64)
		return i, err == nil
	default:
		return 0, false
	}
}
