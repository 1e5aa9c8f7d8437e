// Package transfer moves messages from a queue to another queue or to an
// exchange, on one broker: for a migration, a replay, the operator's command.
// It knows neither Terraform nor consumers.
//
//	options.go   what is moved where, and the report
//	move.go      one run: take, copy, settle
//	source.go    the queue that messages are taken from
//
// # What it promises
//
// A message is acknowledged when the broker has confirmed its copy and a queue
// has taken it, and not before. So nothing is lost, whatever is killed when; a
// message may be there twice whose copy was made and whose original was not
// acknowledged: at most those that were on their way when a run was killed, or
// when a connection was lost. A run that was interrupted is simply run again.
//
// A run looks at no more messages than the queue had when it began, so that one
// that comes back is not moved twice, and a queue can be moved to itself.
// Messages are published in the order in which the queue delivers them.
//
// # What stays in the queue
//
// What the filter does not want, what could not be copied, and in a dry run
// everything, is held unacknowledged until the end and then given back, in order
// and ahead of what was not looked at. A quorum queue puts it behind what had been
// given back before, though, and one of 3.10 that has no delivery limit behind
// everything (measured on 3.10, 4.0 and 4.3). AMQP has no way to look at a message
// without taking it, and this is the price:
//
//   - Before 4.3 every message that is given back has spent one delivery on a quorum
//     queue. That is why the contract's dead-letter queues have a delivery limit of
//     a million: with the default of 4.x, twenty looks later it is gone.
//   - While the run lasts, nobody else sees these messages.
//   - A run that holds messages must be over before the broker's consumer timeout (30
//     minutes unless configured). After that the broker takes them back by itself and
//     the run ends with an error, at no other loss.
//
// A held message takes eight bytes here.
package transfer
