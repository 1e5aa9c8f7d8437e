// Package redeliverotel reports what consumers do with OpenTelemetry: metrics,
// and a span for every message that a handler gets.
//
//	telemetry, err := redeliverotel.New(redeliverotel.Config{
//		MeterProvider:  meterProvider,
//		TracerProvider: tracerProvider,
//	})
//	...
//	consumer, err := rabbitmq.Open(ctx, rabbitmq.Config{
//		...
//		Consumer: redeliver.Config{Telemetry: telemetry},
//	})
//
// One [Telemetry] is for all consumers of a process. It uses the providers that
// it is given and no global ones; where one is nil, that half is off. Package
// redeliver does not link OpenTelemetry: an application that does not import this
// package does not either.
//
// Names and attributes follow the semantic conventions for messaging, version
// 1.43.0, whose status is "development"; what they have no name for begins with
// "redeliver.".
//
// # Metrics
//
// Counters count since the process started, for each queue, and go on where a
// consumer is closed and another one is opened on the same queue. They are read
// from the consumers' Stats when they are collected and cost nothing per message;
// the histogram is recorded with each call of a handler.
//
//	name                               kind           unit         counts
//	messaging.process.duration         histogram      s            how long handlers took
//	messaging.client.consumed.messages counter        {message}    messages that the broker sent, redeliveries included
//	redeliver.handled                  counter        {message}    calls of handlers: retries in this process included
//	redeliver.acked                    counter        {message}    acknowledged
//	redeliver.retried                  counter        {message}    retries that were honoured
//	redeliver.deferred                 counter        {message}    deferrals
//	redeliver.dead_lettered            counter        {message}    sent to the dead-letter queue, whatever the reason
//	redeliver.parked                   counter        {message}    sent to the parked queue
//	redeliver.discarded                counter        {message}    dropped for good: there is no dead-letter queue
//	redeliver.exhausted                counter        {message}    given up because their retries were spent
//	redeliver.too_old                  counter        {message}    given up because they were as old as give_up_after
//	redeliver.delay_too_long           counter        {message}    given up because they asked for a delay that cannot be waited
//	redeliver.undecodable              counter        {message}    bodies that did not decode
//	redeliver.oversized                counter        {message}    bodies over MaxMessageSize
//	redeliver.panicked                 counter        {message}    handler calls that panicked
//	redeliver.timed_out                counter        {message}    handler calls that exceeded HandlerTimeout
//	redeliver.republished              counter        {message}    copies that a hold queue took
//	redeliver.hopped                   counter        {message}    messages that went from one hold queue into the next
//	redeliver.retry.hold_queue_missing counter        {message}    waits in the consumer because the hold queue was not there
//	redeliver.set_aside_failed         counter        {message}    copies that redeliver.target did not take
//	redeliver.handed_back              counter        {message}    given back to the broker before their time
//	redeliver.dropped                  counter        {message}    outcomes that were lost with their connection
//	redeliver.sessions_lost            counter        {session}    subscriptions that ended without being asked to
//	redeliver.reconnects               counter        {session}    subscriptions that followed on a lost one
//	redeliver.leases_lost              counter        {message}    lost to another consumer, perhaps, while this one had them (Amazon SQS)
//	redeliver.throttled                counter        {request}    requests that the service refused because there were too many (Amazon SQS)
//	redeliver.requests_failed          counter        {request}    requests that failed otherwise, and were made again (Amazon SQS)
//	redeliver.held                     updowncounter  {message}    messages that wait in the consumer at this moment
//	redeliver.waiting                  updowncounter  {message}    messages of a sequenced topic that wait behind another of their key at this moment
//	redeliver.running                  updowncounter  {message}    handlers that run at this moment
//	redeliver.in_flight                updowncounter  {message}    messages that count as in flight because of the consumer (Amazon SQS)
//	redeliver.health                   gauge          1            0 ok, 1 degraded, 2 down
//
// All of them have the attributes messaging.system, messaging.destination.name
// (the queue), redeliver.topic and, on RabbitMQ, redeliver.vhost. The histogram has
// messaging.operation.name and messaging.operation.type ("process"),
// redeliver.outcome ("ack", "retry", "reject", "defer", "park" or "none") and,
// where a handler failed, error.type; messaging.client.consumed.messages has
// messaging.operation.name ("consume"), and redeliver.set_aside_failed has
// redeliver.target, the queue.
//
// # Traces
//
// The span "process <queue>", of kind consumer, lasts as long as the handler. Its
// parent is the span whose context is in the message's headers (traceparent and
// tracestate, of the producer or of the attempt that published the copy); see
// [Config].NewTrace for links instead. The handler's context carries the span and
// the baggage. Where the headers have none, the parent of a message's second
// attempt is the span of the first, and so on, as far as this process made that
// attempt and the message has an id: a message that waits in place comes back as
// it was published. A copy, on its way to a hold, dead-letter or parked queue, gets
// the context of the span of the attempt that failed.
//
// The span has the attributes messaging.system, messaging.destination.name (the
// queue alone: routing keys may hold ids, and are an attribute of their own),
// messaging.operation.name and .type, messaging.message.id,
// messaging.message.body.size, messaging.rabbitmq.destination.routing_key,
// redeliver.outcome and, on a message that was retried, redeliver.retry_count.
// Topic and vhost are attributes of the instrumentation scope. Retry, Reject, Park
// and no outcome at all make it an error with the error's text and an error.type:
// the Go type at the end of the error's chain, such as "*net.OpError", one of this
// module's such as "*redeliver.TimeoutError", or "_OTHER" where the handler gave no
// error. Attributes are set when the handler has returned, so a sampler sees the
// span's name and kind only.
//
// # What it costs
//
// With an SDK that samples every message: 4 allocations for one without a
// traceparent and 6 for one with it, all of them the SDK's own. Messages that are
// not sampled, and metrics, cost less.
package redeliverotel
