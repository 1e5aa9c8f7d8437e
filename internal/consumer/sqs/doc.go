// Package sqs is the Amazon SQS transport of the consumer engine. It decides
// nothing about messages and creates nothing.
//
//	broker.go     what outlives a session: the client, counters, what is wrong
//	bind.go       a subscription begins: what the caller may do, and the first receive
//	session.go    one subscription: receive, settle, stop, close
//	poll.go       long polls, as many as there is room and work for
//	lease.go      visibility: extended while a message is here, and lost
//	batch.go      deletes and changes of visibility, up to ten in a request
//	settle.go     carrying those requests out, entry by entry
//	buried.go     messages that the redrive policy has yet to move
//	publisher.go  copies for the dead-letter and the parked queue
//	message.go    messages and their attributes, both ways
//	errors.go     what a refusal means, and what to do about it
//
// # Leases
//
// SQS lends a message for its visibility timeout. A heartbeat extends that while
// the message is here, whether a handler has it or it waits, up to the service's
// 12 hours in total. By the clock here, which starts when the answer came and so
// after the service's, a lease is lost some time before the service ends it; from
// then on its handle is not used. The context of its handler is cancelled.
//
// # Requests
//
// The SDK does not retry: throttled requests are counted, and made again here
// with growing pauses, as long as the message's lease lasts. A batch is looked at
// entry by entry.
package sqs
