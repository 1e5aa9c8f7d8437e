package redeliver

import "time"

// Event is something that happened in a consumer; see [Config].OnEvent.
type Event struct {
	// Kind says what happened.
	Kind EventKind
	// Time is when it happened.
	Time time.Time
	// Topic is the consumer's topic.
	Topic string
	// Message is the message it happened to, nil where it is about a connection. It must not be modified.
	Message *Message
	// Delay is how long the message waits from now on; zero where it does not wait.
	Delay time.Duration
	// Target is the queue that a copy was for, "" where the event is about no copy.
	Target string
	// Err is why, or nil.
	Err error
}

// EventKind tells events apart.
type EventKind string

// The kinds of events.
const (
	// EventConnected: the consumer is subscribed, for the first time or again.
	EventConnected EventKind = "connected"
	// EventDisconnected: the subscription ended without being asked to. Err says why.
	EventDisconnected EventKind = "disconnected"
	// EventAcked: the message was acknowledged.
	EventAcked EventKind = "acked"
	// EventRetried: the message waits for Delay and is then retried.
	EventRetried EventKind = "retried"
	// EventDeferred: the message waits for Delay and then comes back, uncounted except on Amazon SQS, which
	// counts every receive.
	EventDeferred EventKind = "deferred"
	// EventDeadLettered: the message went to the dead-letter queue.
	EventDeadLettered EventKind = "dead_lettered"
	// EventParked: the message went to the parked queue.
	EventParked EventKind = "parked"
	// EventDiscarded: the message failed for good and the topic has no dead-letter queue.
	EventDiscarded EventKind = "discarded"
	// EventHandedBack: the message was given back to the broker before its wait was over or before it was started.
	EventHandedBack EventKind = "handed_back"
	// EventDropped: the session of the message's delivery had ended, or its lease was lost, so that its outcome could not be
	// carried out.
	EventDropped EventKind = "dropped"
	// EventSetAsideFailed: a copy was not taken by Target. The message waits for Delay and is published again; where Delay
	// is zero it was rejected instead.
	EventSetAsideFailed EventKind = "set_aside_failed"
	// EventHoldQueueMissing: Target is a hold queue that is not there. The message waits for Delay in this process.
	EventHoldQueueMissing EventKind = "hold_queue_missing"
)
