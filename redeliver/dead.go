package redeliver

import (
	"context"
	"time"
)

// DeadMessage is a message of a dead-letter or parked queue, with what is known
// about how it got there.
type DeadMessage struct {
	Message

	// Reason is why it was set aside: the convention's reason header where the consumer published it, else what the broker
	// says: "rejected", "expired", "maxlen" or "delivery_limit"; "max_receives" where Amazon SQS moved it, whose redrive
	// policy knows no other reason. Empty where nothing says so.
	Reason string
	// LastError is what the convention's reason header says, wherever Reason comes from: the error of the last attempt that
	// was published, which a message that the broker set aside after that still carries. Empty without one.
	LastError string
	// OriginalQueue is the queue that it failed in, OriginalExchange and OriginalRoutingKey what it had been published
	// with when it came there, which after a hop through a hold queue are those of the hop. Empty where nothing says so.
	OriginalQueue, OriginalExchange, OriginalRoutingKey string
	// DeathCount is how often the message was dead-lettered for any reason, expired in a hold queue included, by the
	// broker's history; 0 where a consumer published it here.
	DeathCount int64
	// Attempts is how often it was handed to a handler, as far as the convention's headers say; 0 where they do not. The
	// message's RetryCount goes with it.
	Attempts int
	// Deaths is the broker's history (x-death), newest first.
	Deaths []Death
}

// Death is one entry of a message's dead-letter history.
type Death struct {
	// Queue is the queue it left, and Reason why: "rejected", "expired", "maxlen" or "delivery_limit".
	Queue, Reason string
	// Exchange and RoutingKeys are what it had been published to that queue with.
	Exchange    string
	RoutingKeys []string
	// Count is how often that happened.
	Count int64
	// Time is when it last did, in whole seconds.
	Time time.Time
}

// DeadHandler handles messages of a dead-letter queue. A message is
// acknowledged, and so gone, when it returns nil; else the message waits and is
// handed out again, after pauses that grow.
type DeadHandler func(ctx context.Context, msg *DeadMessage) error
