package redeliver

import "strconv"

// Sequence says how the messages of a sequenced topic are kept in order: those
// with the same key are handled one after the other, in the order in which they
// came, while messages with other keys go on.
type Sequence struct {
	// Key is the key of a message, such as [KeyFromHeader]("customer") or [KeyFromRoutingKey]. It must depend on the
	// message alone. Messages with the key "" are in order among themselves too.
	//
	// Required for a sequenced topic on RabbitMQ. On Amazon SQS it is the message group, and nothing else.
	Key func(*Message) string

	// OnFailure says what happens to the messages of a key after one that failed for good.
	//
	// Defaults to SkipFailed.
	OnFailure SequenceFailure
}

// SequenceFailure says what happens after a message that failed for good.
type SequenceFailure string

// The ways to go on.
const (
	// SkipFailed: the message is dead-lettered and the next one of its key is handled.
	SkipFailed SequenceFailure = "skip"
	// FailAll: the message is dead-lettered and so are all messages of its key that follow, until the key is reset. What
	// failed is remembered by this process only, and forgotten when its subscription ends: after a failover the messages of
	// the key are handled again.
	FailAll SequenceFailure = "fail_all"
)

// KeyFromHeader is the key that is the text of a header; a message without it
// has the key "". Numbers and booleans are written in decimal and as true and
// false, bytes are read as text, and a value of another type, such as a list, has
// the key "".
func KeyFromHeader(name string) func(*Message) string {
	return func(m *Message) string { return headerText(m.Headers[name]) }
}

// KeyFromRoutingKey is the key that is the message's routing key. A message that
// is replayed to a work queue has the queue's name for one; where dead letters
// are replayed, a header is the better key.
func KeyFromRoutingKey(m *Message) string { return m.RoutingKey }

// headerText is the text of a header's value, and the same for one number in
// whatever width a publisher sent it.
func headerText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	case int8:
		return strconv.FormatInt(int64(v), 10)
	case int16:
		return strconv.FormatInt(int64(v), 10)
	case int32:
		return strconv.FormatInt(int64(v), 10)
	case int64:
		return strconv.FormatInt(v, 10)
	case int:
		return strconv.Itoa(v)
	case uint8:
		return strconv.FormatUint(uint64(v), 10)
	case uint16:
		return strconv.FormatUint(uint64(v), 10)
	case uint32:
		return strconv.FormatUint(uint64(v), 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case float32:
		return strconv.FormatFloat(float64(v), 'f', -1, 32)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return ""
	}
}
