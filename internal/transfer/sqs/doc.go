// Package sqs moves messages from one queue of Amazon SQS to another: for a
// replay. It knows neither Terraform nor consumers.
//
//	options.go   what is moved where, and the report
//	task.go      the service's own message-move task
//	move.go      one run by send: receive, send, delete
//	kept.go      the messages that stay: invisible until the run is over
//
// # Two ways
//
// A message-move task is the service's: it moves everything, at its own pace or
// at so many messages in a second, and goes on whatever becomes of this process
// unless it is cancelled. It moves messages of dead-letter queues only, to one
// destination, and cannot choose.
//
// A run by send can choose, stop after so many, or only look. A message is
// deleted when the service has taken its copy, and not before: nothing is lost,
// whatever is killed when. A message may be there twice whose copy was taken and
// which was not deleted; the report says so.
//
// Either way what arrives is a new message, with a new id, that was never
// received.
package sqs
