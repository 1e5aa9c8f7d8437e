package redeliver

import (
	"context"
	"time"
)

// Telemetry watches consumers, for metrics and traces; see [Config].Telemetry.
// Package redeliver/redeliverotel implements it with OpenTelemetry.
type Telemetry interface {
	// Watch is called when a consumer is opened. The consumer calls the returned Probe for every message, and closes it
	// when it has ended.
	Watch(c Watched) Probe
}

// Watched is a consumer as a [Telemetry] sees it.
type Watched struct {
	// System is the kind of broker, such as "rabbitmq".
	System string
	// Topic and Queue are the topic and the queue that is consumed; VHost holds them.
	Topic, Queue, VHost string
	// Stats and Health read the consumer's counters and its health. They may be called at any time, from any goroutine.
	Stats  func() Stats
	Health func() Health
}

// Probe follows one consumer's messages. Its methods are called from many
// goroutines.
type Probe interface {
	// Begin is called before a message is handed to the handler, which gets the context that Begin returns. It is called
	// again for every attempt.
	Begin(ctx context.Context, msg *Message) context.Context

	// End is called when the handler has returned or panicked, with the context that Begin returned and the outcome that is
	// carried out: a panic and a timeout have become a Retry by then. It is not called for a handler that ended its
	// goroutine, and after Close for one that a shutdown left behind.
	End(ctx context.Context, msg *Message, o Outcome, took time.Duration)

	// Copy is called before a copy of a message is published to a queue, with the context that Begin returned, and mostly
	// after End. It may add to the headers that are set on the copy, such as a trace context.
	Copy(ctx context.Context, queue string, headers map[string]any)

	// Close is called once, when the consumer has ended and its Stats are final.
	Close()
}
