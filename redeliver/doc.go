// Package redeliver is the API with which an application consumes a topic whose
// retry topology is infrastructure: the queues, their arguments and the retry
// policy are provisioned by Terraform (provider redeliver/redeliver), written
// down in a [Manifest], and obeyed here. Nothing in this package or below it
// declares, changes or deletes anything on a broker.
//
// A consumer is a [Handler] and a manifest. The handler says what is to become
// of a message by returning an [Outcome], and the library carries it out:
//
//	Ack()                done
//	Retry(err)           again after the next delay of the policy; counts toward max_retries
//	RetryAfter(d, err)   the same, but not before d
//	Reject(err)          failed for good: to the dead-letter queue
//	Defer()              not now: again after the first delay, without counting
//	DeferFor(d)          the same, but not before d
//	Park(err)            nobody can read this: to the parked queue, where there is one
//
// [FromError] turns an ordinary error into an outcome, with [Permanent] to mark
// the errors that no retry will cure. [JSON] decodes bodies before the handler
// sees them, and parks what does not decode; [Typed] does so with a [Codec] of
// your own. [Chain] puts [Middleware] around a handler, and a [Group] runs the
// consumers of several topics with one shutdown, which [ShutdownSignals] begins.
//
// To open a consumer on RabbitMQ, go on with package redeliver/rabbitmq, on Amazon
// SQS with redeliver/sqs; their examples are complete programs. The package you are reading has the types that
// every broker shares: outcomes, [Message], handlers, [Config], [Stats], [Event]
// and the errors.
//
// # Delivery is at least once
//
// A message is acknowledged after its handler returned, so a crash or a lost
// connection in between hands it out again. While a connection is lost, its
// handlers run on: the outcome of each is dropped and counted
// ([Stats].Dropped), because the broker has taken the message back and gives it
// to somebody else. Handlers must tolerate that. On Amazon SQS a single message
// can be lost that way: its handler's context is cancelled with [ErrLeaseLost].
//
// # Where a retry waits
//
// The manifest's strategy says it, and the handler need not know.
//
//   - in_place, the default: in this process, unacknowledged on the broker. It occupies a prefetch slot and no worker;
//     [Config].MaxHeld bounds how many do. Nothing is published, so the consumer's user needs read permission on one queue
//     and nothing else. On a quorum queue the broker counts the retries, and other consumers of the queue see the same
//     count. A classic queue counts nothing: there the retry is handed to a handler of this same process, and the count is
//     lost with the process.
//   - broker_delayed: in the work queue itself (RabbitMQ 4.3, quorum). Nothing is published, and no slot is occupied except
//     by messages that ask for a delay of their own: as many of them as there are workers let the others wait.
//   - republish: as a copy in a hold queue, confirmed by the broker before the message is acknowledged. The count is in a
//     header of the topic's convention, where consumers in other languages find it.
//   - hybrid: short waits in place, long ones in a hold queue.
//
// On Amazon SQS, in_place means the queue itself: the message is invisible for the
// delay, and the service counts every delivery, a deferred one too.
//
// # Order
//
// The messages of a sequenced topic that have the same key ([Config].Sequence)
// are handled one at a time and in order, retries included. Other keys go on, as
// long as [Config].Prefetch has room for them: the successors of a message that
// waits are delivered too, and [Health] says when they take up most of it.
//
// # Watching it
//
// [Stats] counts everything, [Config].OnEvent tells of it as it happens,
// [Health] is for readiness probes and for people, and [Config].Telemetry is for
// OpenTelemetry (package redeliver/redeliverotel). Package
// redeliver/redelivertest runs handlers against a broker in memory whose clock a
// test moves.
package redeliver
