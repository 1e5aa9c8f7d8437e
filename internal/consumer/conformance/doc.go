// Package conformance is one suite of what becomes of messages, for every way
// in which topics can be provisioned. It runs on the broker in memory, and on
// real brokers (redeliver/rabbitmq) and an emulator of Amazon SQS (redeliver/sqs),
// which it compares: every message that a handler gets and that ends in a
// dead-letter or parked queue is the same on both, with its headers.
//
//	suite.go    the brokers it runs on, Run and RunSQS
//	variants.go strategy, convention and queue type: where a wait happens
//	stories.go  what handlers say about messages, and what is to come of it
//	expect.go   a story's end, computed from the design's settle table and not from the engine's
//	faults.go   queues that are missing, sessions that are lost
//	order.go    sequenced topics, priorities
//	world.go    one topic on one broker, and what is seen there
//	memory.go   the broker in memory
package conformance
