// Package migration changes the arguments of a queue that is in use. RabbitMQ cannot do that: the queue is deleted and
// made again, and meanwhile another one, the migrating queue, holds its messages and takes what is published. It knows
// neither Terraform nor conventions.
//
//	migration.go  one run, from what is to what is to be, and what happens where the broker refuses
//	scene.go      how far a migration is: what the broker has, and nothing else
//	routes.go     where messages are led: the switch and its branch
//	move.go       moving messages, waiting for what cannot be moved, deleting what is empty
//	lock.go       one run at a time
//	astray.go     bindings of the migration's that somebody else has changed
//	check.go      what is refused before anything is changed
//	dial.go       the client's broker over AMQP
//
// # The switch
//
// A queue's bindings cannot be led to another queue in one step, and neither order of two will do: where the new binding
// is made first, a message between the two is delivered to both queues, and where the old one is removed first, to none. So
// two exchanges are put between. The switch is a fanout whose alternate exchange is another fanout, the branch: what the
// switch has a binding for goes there, and everything else to the branch.
//
//	publishers -> exchanges =(the bindings of the queue)=> switch -> queue
//	                                                         \
//	                                                          +- - - branch -> migrating queue
//
// Putting the switch in is invisible, because a message that reaches a queue by several ways is delivered once. And then one
// request, which removes the switch's binding to the queue, has everything go to the migrating queue: the broker routes
// each message either before or after it. The way back is the same: once the switch is bound to the migrating queue, the
// branch is free to be bound to the new queue, and to remove the switch's binding throws it.
//
// The branch is also what messages are moved through, so that they keep their routing keys.
//
// # Steps
//
// What a run does depends on what the broker has. Each line is what an interrupted run may have left, and what the next run
// does. "Undo" is the way back from where it is, with the old queue; it is taken where the queue is as wanted (a
// configuration that was taken back), the queue is not empty in time, the broker refuses the new one, or what is wanted by now
// would lose messages: a run that goes on with another checks as if it were the first.
//
//	switch  its binding  branch's    queue     | next
//	no                               as wanted | nothing
//	no                               other     | check, make the switch, which keeps the old arguments
//	yes     any          none        any       | without temp, or with an empty one, which was a probe: give the bindings back,
//	                                           | delete branch and switch, and begin anew
//	yes     none, queue  none, temp  old       | lead the bindings through the switch, move most messages, throw the switch,
//	                                           | move the rest and wait until the queue is empty, delete it; or undo
//	yes     none         temp        none      | make the queue; where that is refused, as it was
//	yes     none         temp        as wanted | bind the switch to temp, and the branch to the queue instead of temp
//	yes     temp         any         any       | the same; then move most messages back, throw the switch
//	yes     none         queue       any       | move the rest back, delete temp, give the bindings back, delete branch and switch
//
// # One run at a time
//
// Two runs at once would lead the branch to both queues, and each message that is moved would be two. So a run holds the lock, a
// queue that is exclusive to a connection of its own, from before it looks until it ends; the broker lets no other connection
// have it, on no node. What ends the connection ends the lock: a process that is killed at once, a machine or a network that is
// gone after two to three heartbeats. A run that learns that its lock is gone stops, which takes one and a half. Where the broker
// gives a connection up and the run does not know yet (a process that was suspended, a cluster that is split) two may be at
// it all the same: so no run moves messages unless the branch leads to the one queue that it is to lead to, which is looked at
// before each round and a few times in a second.
//
// # What it promises
//
// Nothing that is published through an exchange is lost or delivered twice, confirmed or not, whenever the run is killed. Of
// what is moved, a message may be there twice that was on its way when a run was killed or a connection was lost: at most
// [transfer.DefaultPrefetch] each time, and Report.Doubtful counts those of the run itself. The other messages that can be
// doubled are those that a binding and the switch both have, where an application makes the binding again while the switch
// leads to the migrating queue: until the run sees it, which looks before each move and, on the way back, a few times in a
// second. Nobody counts those.
//
// Messages keep their order where nobody takes any meanwhile and nothing is published. What is published while the switch
// is thrown, twice, overtakes the messages that are still to be moved then, a few as long as moving is faster than
// publishing. A message that a consumer gives back goes behind those that were moved before it. A run that was killed and is
// finished keeps the order too, of the first where a message is there twice; but what was on its way then, and not copied, may come
// behind as many others, where the next run begins before the broker has put it back. One that is undone, killed or not, does not: what
// it had moved comes back behind what it had not.
//
// A message keeps its body, properties, headers and routing key. It loses how often it was delivered (x-delivery-count,
// and with it the retries in place), which no publisher can set; its time to live begins again; the exchange it came
// through becomes the branch's name; and user_id becomes a header.
//
// # What it does not cover
//
// What is published to the queue by its name, through the default exchange, is lost between the deletion of the queue and
// its creation: about a second, so that its consumers are told (see rabbitmqadmin/recreate.go). A run refuses a queue that others
// dead-letter to in this way; that takes [Options.AllowDefaultExchangeLoss]. A queue that dead-letters at least once is no
// such publisher: it keeps what finds no target and tries again, after three minutes. No broker tells which applications
// publish by name; [transfer.Replay] is one of them, and loses what arrives between the last look and the deletion.
//
// A binding that somebody makes in the moment of the deletion is made again after it, at the switch.
package migration
