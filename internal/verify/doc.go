// Package verify holds a topic's manifest against a live broker: which of its
// queues, exchanges and bindings are there, which differ from what the manifest
// says and what that means for messages, and what nobody could look at. The
// answer is data, for a plan, a check in CI or a command to show.
//
// It changes nothing, knows no Terraform and computes no name and no argument:
// what must exist is [topology.Manifest.Objects], the comparison of a queue is
// [topology.DiffQueue], and what policies make of it is [topology.Queue.Effects].
// What it reads it reads through [rabbitmqadmin.View], so that the number of
// requests does not grow with the number of manifests.
//
// It works with the least permission that answers. What the broker refuses to
// show is [Unknown] and never taken for missing; [Report.Unseen] says what that
// is, and why.
//
// [Manifest] is for RabbitMQ, and [SQS] for Amazon SQS, whose attributes
// [topology.DiffSQSAttributes] compares.
package verify
