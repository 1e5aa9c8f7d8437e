// Package sqs opens a consumer on Amazon SQS.
//
//	manifest, err := redeliver.LoadManifest("orders.manifest.json") // the topic resource's manifest attribute
//	...
//	consumer, err := sqs.Open(ctx, sqs.Config{
//		Manifest: manifest,
//		Handler:  redeliver.JSON(handleOrder),
//	})
//	...
//	return consumer.Run(ctx) // until ctx is done
//
// See the package example for a complete program, and package redeliver for
// handlers, outcomes and configuration. Credentials come from the AWS SDK's
// default chain unless Config says otherwise.
//
// [HandleDead] opens a consumer of the topic's dead-letter queue, and [Replay]
// moves messages from there back to the work queue.
//
// # What the caller needs
//
// sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility on the work
// queue and, where the manifest says dead_letter_via = "send" or park = "publish",
// sqs:SendMessage on the dead-letter or the parked queue. [Open] checks all of it,
// and its error names what is missing. The provider function build_iam_policy
// says what a manifest needs.
//
// # Waiting, and what it costs
//
// A message that is retried or deferred waits in its queue, invisible, for the
// policy's delay in whole seconds; no process holds it. It counts as in flight
// meanwhile, of which a standard queue can have 120,000 (Stats has the part of this
// consumer). In a FIFO queue it waits here, so that its group waits with it and
// stays in order; see below.
//
// SQS counts every receive: retries, deferrals, crashes and messages that were
// given back at a shutdown. That count is the retry count, and with
// dead_letter_via = "redrive" the service itself moves a message when it has been
// received max_retries + 1 times. So a message that fails for good early, such as
// one that is rejected, is given back at once and again until SQS moves it. This
// process does not hand it to the handler again; another one may.
//
// While a message is here its visibility is extended, up to 12 hours in total.
// Where that fails for too long, the handler's context is cancelled with
// redeliver.ErrLeaseLost as its cause, and what it returns is dropped.
//
// Deletes and changes of visibility wait for one another, for a tenth of a second
// at most, to share requests: 10 messages take one request to be received and one
// to be deleted. A process that is killed in that time leaves messages that are
// delivered again. One idle consumer makes three requests a minute.
//
// # FIFO queues
//
// One message of a group is handled at a time, and groups side by side. A message
// that is retried keeps its group waiting, in this process: given back, it would
// take the messages behind it along, and each of those would have been received
// once more in vain.
package sqs
