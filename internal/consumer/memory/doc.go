// Package memory is a RabbitMQ in memory, or an Amazon SQS: a transport of the
// engine whose time passes only when a test moves it.
//
//	broker.go      queues, exchanges, and what moves between them
//	queue.go       a queue: which message is next, and what waits
//	settle.go      what becomes of a message that is settled, expires or is given up
//	message.go     a message with the headers that a real broker shows it with
//	sqs.go         queues of Amazon SQS: receives, visibility, redrive, message groups
//	sqs_message.go a message of Amazon SQS, and its attributes
//	client.go      a process that is connected: the engine's transport
//	session.go     a subscription
//	publisher.go   the publisher of copies
//	clock.go       time, which stands still
//	activity.go    whether anything goes on
//
// It does what the settle table needs, as the broker of the emulated version
// does it, and no more: the conformance suite (internal/consumer/conformance)
// runs on it and on real brokers, and where the two disagree this package is
// wrong. It checks no permissions, keeps no lengths, expires nothing by the
// message's own expiration, and knows direct exchanges only. Of SQS it does what
// the service and the engine's transport for it do together: a lease is always
// extended in time, and a message that was given up is given back until it is
// moved.
//
// # Rest
//
// [Broker.Wait] returns when nothing goes on any more: no message is on its way
// to a consumer, no handler runs, no copy is unconfirmed. What is left waits for
// the clock, or for somebody outside. [Activity] is how that is known: whoever
// begins something adds one, and takes it off when that is done; see motion.go
// in package consumer for the engine's part.
package memory
