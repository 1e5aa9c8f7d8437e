// Package rabbitmqadmin is the client of RabbitMQ's management API that the provider stands on: reads that never take a
// proxy's "not found" for the broker's, writes that can be repeated, and deletions that lose no message.
//
// It knows brokers, not Terraform: it has no schema, no state and no diagnostics, and it computes no name and no argument
// (that is package topology). rabbit-hole builds the paths and bodies of its requests; call.go is what carries them out,
// because rabbit-hole has no context, no second endpoint, no retries, and errors that cannot be told apart.
//
// Start reading at [Client] in client.go, then call.go (one request), refusal.go (what an answer means) and
// safedelete.go.
//
// # Requests
//
// Every try has a timeout, and everything ends with its context. A request that got no answer, a 429 or a 5xx is tried on
// the other endpoints and then again, after a growing pause with jitter or what Retry-After says (up to 30 s). No other
// answer is tried again. All writes of this package are idempotent, so that repeating one whose answer was lost is safe;
// only "created or existed before" cannot be told then, which [Client.DeclareQueue] says ([Unknown]).
//
// # Views
//
// [Client.View] is what a run knows: the first few objects of a kind are read by themselves, then the vhost's list is,
// once and without statistics, and the client's own writes change what is known. It is for refreshes and plans; whoever
// creates or deletes asks the broker anew. A list does not prove that a queue is gone (it leaves out what was led by a
// node that is down), so that a queue which is missing in it is asked for by itself.
//
// # Not found
//
// [ErrNotFound] means that the object is gone, and state may be dropped on its word. So it takes RabbitMQ's own words in
// the body, about an object, and a vhost that this client could read at the same endpoint in this run: RabbitMQ itself
// answers the same words to a wrong path, and (since 4.x) to a vhost that is hidden from the user.
//
// # Empty
//
// [Client.SafeDelete] takes a queue for empty when, after the own bindings were removed,
//   - the broker's total count is 0, which includes what is unacknowledged and what waits to be dead-lettered, in a count
//     that was read later than the removal by the statistics interval and a quarter (6.25 s), because a quorum queue
//     reports its counts every 5 s (measured: up to 5.1 s late);
//   - with AMQP endpoints, the exact depth of a passive declare is 0 as well. Where in addition no consumer is attached,
//     the count need not be that old: it shows everything that arrived more than an interval ago, in whatever state it
//     is now, and the exact depth shows what arrived since.
//
// Counts that the broker does not have (a quorum queue that is some seconds old, or has no leader) are waited for up to
// 15 s and then count as not empty. Deletions that run at the same time share their reads: one list of names and counts
// serves all that removed their bindings early enough.
//
// # The race that remains
//
// RabbitMQ cannot delete a quorum queue on the condition that it is empty. A message is lost that arrives between the
// count and the deletion: through a binding that is not the resource's own, or through the default exchange, which can
// publish to every queue by its name. Without AMQP endpoints that is what arrived at a quorum queue within the last 5 s
// before the count; with them it is the time between two requests, some milliseconds, and what arrived within the last
// 5 s and was at once taken without an acknowledgement by somebody who polls (basic.get), or expired or was rejected
// without a target. Classic queues are deleted with if-empty, which the broker checks itself; there the gap is open
// only for messages that are taken and not acknowledged. Stop publishers before a queue is deleted, and there is none.
// Whether other queues dead-letter to one that is deleted is looked at before that: a queue that somebody else makes since
// then is not seen, nor, in a vhost so large that its list takes longer than 250 ms, one that was made up to 5 s before.
//
// From the removal of the own bindings on, what is published to their exchanges is not routed to the queue: until the
// queue is deleted and made again, or the bindings are restored. Without AMQP endpoints that is about 7 s, and a queue that
// is made again is away for another second ([Client.DeclareQueue]).
package rabbitmqadmin
