// Package rabbitmq is the RabbitMQ transport of the consumer engine: it dials,
// subscribes, settles and publishes over AMQP 0-9-1. It decides nothing about
// messages and declares nothing on the broker; the one declare it sends is a
// passive one, which asks whether the work queue is there.
//
//	dial.go       connections: addresses, TLS, credentials that stay out of errors
//	session.go    one subscription: its own connection, channel and delivery tags
//	publisher.go  copies: mandatory, persistent, confirmed, on a second connection
//	message.go    AMQP deliveries to messages, and messages to copies
//	errors.go     what a broker's refusal means, and what to do about it
//
// # Why a session is a connection
//
// A delivery tag means something on one channel only. amqp091-go can recover a
// connection by itself, and when it does the recovered channel accepts an old
// tag and settles another message with it (measured, v1.16.0). So its recovery
// is not used: when a channel ends, for whatever reason, its session ends with
// it, its connection is closed, and the engine subscribes anew. A settlement
// for the old session fails in the client and reaches no broker.
//
// The consumer's connection never publishes, because RabbitMQ blocks a
// connection that published, acknowledgements included, while an alarm lasts.
package rabbitmq
