// Package sqstest gives tests an Amazon SQS without an AWS account: two emulators, and a small double of the service for
// what no emulator does (package fake).
//
// No emulator is faithful enough to be the only judge, so a test says what it runs against. [Local] (local-aws-sqs) is
// for the control plane: creation, validation, attributes, tags, move tasks. [Faux] (fauxqs) is for the data plane: long
// polls, visibility, receive counts, redrive, the order of FIFO queues. What each does otherwise than AWS is in
// deviations.go, and a test proves that it still does; a test that cannot hold on an emulator says so with
// [Service.SkipDeviation].
//
// A third one, kumo, was tried for batches of FIFO messages (v0.33.1) and cannot judge them: what it gives out has no
// MessageGroupId, so that no consumer knows a group, and its long polls do not end when a group is free again.
//
// An emulator is a Node program that is started once for a test binary, on a free port of 127.0.0.1, and that ends with
// it, even when that is killed: it reads its standard input, whose other end the kernel closes then. All tests of a
// binary use it at once and take names of their own from [UniqueName].
//
// The programs are npm packages, pinned by npm/package-lock.json and installed below npm/node_modules by
// scripts/npm-install.sh, which "make test" and, where TF_ACC is set, the tests themselves call. Without TF_ACC a test
// whose emulator is not installed is skipped, so that a plain "go test ./..." needs nothing.
//
// This package must not import any other package of this module: it is what they are tested with.
//
// Start reading at [Start] in service.go.
package sqstest
