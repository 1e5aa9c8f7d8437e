package redeliver

import "time"

// Message is one message as it is handed to a handler. The struct is the
// handler's own; what Body and Headers refer to is shared with the library,
// which still needs it when the message is handed out again or copied to the
// parked queue: do not modify their contents.
//
// All fields are exported, so that an application's tests can make one.
type Message struct {
	// Topic is the manifest's topic.
	Topic string
	// Body is the payload as it was published, at most Config.MaxMessageSize bytes.
	Body []byte
	// Headers are the message's headers. Integers have the Go type of their AMQP width (int8 to int64, byte, uint16,
	// uint32); tables are map[string]any, arrays []any and timestamps time.Time. On Amazon SQS they are the message attributes, each
	// an int64, a float64, a string, bytes or an Attribute. Nil where there are none.
	Headers map[string]any

	// Exchange and RoutingKey are what the message was published with. After a hop through a hold queue or a replay they
	// are those of the hop. On Amazon SQS the routing key is the message group, where there is one.
	Exchange, RoutingKey string

	// The message's properties; the zero value where the publisher set none.
	ID              string // the message id
	Type            string // the application's name for the type of message
	ContentType     string // such as "application/json"
	ContentEncoding string // such as "gzip"
	CorrelationID   string
	ReplyTo         string
	AppID           string
	UserID          string // the publisher's broker user, checked by the broker
	Expiration      string // per-message time to live in milliseconds, as text
	Timestamp       time.Time
	Priority        uint8

	// RetryCount is how often the message was retried, from 0 to max_retries. In place on a quorum queue the broker counts,
	// and counts every delivery that came back: one lost with a connection too. On a classic queue this process counts, and
	// starts from 0 when the message comes from the broker again. Where messages wait in hold queues, a header carries the
	// count. On Amazon SQS it is how often the message was received before, whatever became of it, and in a FIFO queue how
	// often it was retried here on top of that.
	RetryCount int
	// Redelivered says that the broker has delivered this message before. On RabbitMQ 4 it stays set through
	// dead-lettering, so it does not tell a first delivery.
	Redelivered bool
	// FirstSeen is when the message first came to a consumer or, where nobody recorded that, its Timestamp. It is zero
	// when unknown. AMQP timestamps have whole seconds.
	FirstSeen time.Time
}

// Attribute is a message attribute of Amazon SQS that no type of Go says it all of:
// one with a type of its own, such as "Number.int", or a number that is written
// unlike Go does, such as "1.50". Others are a string, an int64, a float64 or
// bytes. Among the headers of a message, it becomes the same attribute again
// where the message is copied.
type Attribute struct {
	// Type is the data type, with its label.
	Type string
	// Text is the value; the bytes of one of a binary type.
	Text string
}

// Attempt is which attempt this is, from 1.
func (m *Message) Attempt() int { return m.RetryCount + 1 }

// Age is how old the message is at now, by FirstSeen. It is false when the age
// is not known. The age of a message from a clock that is ahead is 0.
func (m *Message) Age(now time.Time) (age time.Duration, known bool) {
	if m.FirstSeen.IsZero() {
		return 0, false
	}
	return max(0, now.Sub(m.FirstSeen)), true
}
