// Package topology is the contract: from one [Spec] it computes every queue,
// exchange and binding of a topic's retry topology, with names and arguments,
// and everything that follows from them: the retry schedule, the manifest, the
// least-privilege permissions, the comparison with what a broker reports and
// the picture.
//
// The Terraform provider creates what this package computes and the consumer
// library binds to what it computed, so the two cannot disagree. Nothing
// outside this package spells a derived queue name or an "x-" argument.
//
// The package is pure: no I/O, no clock, no randomness, no broker client.
// The same input gives the same output on every machine and in every release
// of one manifest version; testdata/contract pins it.
//
// Where to start: [Convention] and its scheme (convention.go) say what the
// conventions are, [Identity] (names.go) what a queue is called, [Spec]
// (spec.go) what can be asked for, validate.go and validate_retry.go what is
// refused and why, and [Spec.Build] (build.go) which arguments come out;
// sequence.go is about topics that keep messages of one key in order, broker.go
// about what a broker must be able to do. From there: [Manifest] is what a
// consumer is told, [DiffQueue] what drifted and what that means for messages
// (explain.go), [Permissions] what a user needs.
//
// Amazon SQS has the same conventions, policies and manifest, and its own files,
// sqs*.go: [SQSSpec] is what can be asked for there, [SQSIdentity] what its
// queues are called, [SQSAttributes] what they have, [DiffSQSAttributes] what
// drifted, [IAMPolicy] what a role needs. Nothing outside this package spells
// the name of an attribute that is managed, or of an action.
package topology
