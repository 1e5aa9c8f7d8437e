// Package sqsadmin is the control plane of Amazon SQS that the provider stands on: reads, writes that are waited for until
// they can be seen, and deletions that lose no message.
//
// It knows the service, not Terraform: it has no schema, no state and no diagnostics, and it computes no name and no
// attribute (that is package topology). It sends and receives no message.
//
// Start reading at [Client] in client.go, then queue.go (reads), write.go, delete.go, wait.go (how long a write is waited
// for) and errors.go (what an answer means).
//
// # Lazy
//
// [New] reads configuration: environment variables and the AWS SDK's shared files. No request is made, no credentials are
// looked for and no instance metadata is asked before the first call that needs the service.
//
// # Eventual consistency
//
// SQS answers a read from one of several servers, and documents up to 60 seconds until all of them know of a write. So a
// write has been seen when several reads in a row show it: an earlier one alone may be followed by one that does not. The
// deadline is the caller's context.
//
// # Empty
//
// SQS has no exact count of a queue's messages. [Client.Delete] takes a queue for empty when the three approximate counts
// (visible, in flight, delayed) are all zero in several reads some seconds apart. AWS documents that the counts are
// consistent about a minute after the last message was sent: a message that was sent within that minute may not be
// counted, so that whatever sends has to be stopped first.
package sqsadmin
