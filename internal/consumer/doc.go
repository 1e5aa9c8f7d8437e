// Package consumer is the engine behind the public packages redeliver/rabbitmq
// and its siblings: it takes deliveries from a transport, hands them to a
// handler and settles them as the topic's manifest says.
//
// What happens to a message whose handler said Retry is decided by one pure
// function, [Policy.Decide] (decide.go). Everything else carries that out:
//
//	transport.go   what the engine needs from a broker; rabbitmq/, sqs/ and memory/ implement it
//	policy.go      the manifest and the configuration, as the decision needs them
//	decide.go      outcome -> action, under every strategy
//	copy.go        the headers of a copy: count, reason, how long it still waits
//	engine.go      the Consumer: bind, run, close
//	shards.go      several engines for the queues of one topic
//	serve.go       sessions: receive, lose, reconnect
//	task.go        a delivery in the engine, and its session; tasks that are done are used again
//	queue.go       what waits for a worker
//	work.go        workers: call the handler, carry out the action
//	place.go       quick handlers are called by the goroutine that receives
//	hold.go        waiting deliveries: one goroutine and one timer for all
//	lanes.go       sequenced topics: one message of a key at a time
//	health.go      what is wrong, in words for an operator
//	drain.go       shutdown under one deadline
//	dead.go        messages of a dead-letter queue, and how they got there
//	motion.go      whether anything goes on, for a clock that a test moves
//
// # Ownership
//
// A delivery is a [task], and a task is in exactly one place at a time: in the
// lane of its key, in the ready queue, with a worker (or the receiver in a worker's
// place), among the held, or with the publisher while its copy is being confirmed.
// Whoever takes it out of its place owns it, and only the owner settles it. That is
// why nothing is settled twice and nothing is handed to two handlers at once. A
// task whose delivery was acknowledged is used again for another one, so nobody but
// its owner keeps one.
//
// A task knows its session. When a session ends, its tasks are taken out of the
// ready queue and from among the held and forgotten, since the broker has taken
// them back; those with a worker are forgotten when the handler returns, and
// that outcome is counted as dropped. A settlement can reach no other channel
// than the one its delivery came from, because the session is the channel.
//
// A broker that lends messages for a time (Amazon SQS) may take back a single one:
// its session is a [Leaser] then. Such a task is dropped by its owner when that
// comes to settle it, or before a handler gets it.
//
// # What this package must not do
//
// It does not know a broker's protocol, and it neither spells nor computes a
// queue's name or an argument: the manifest says them. It imports no broker
// client, no management client and nothing of Terraform.
package consumer
