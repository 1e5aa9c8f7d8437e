package redelivertest

import (
	"context"
	"math"
	"sync"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// Consumer is a consumer that runs until the test ends, or until it is closed.
type Consumer struct {
	b     *Broker
	queue string
	run   *consumer.Shards

	ended  chan struct{} // closed when Run has returned, what is result then
	result error
	mu     sync.Mutex
	closed bool // by the test, which knows the result
}

// Consume consumes the topic's work queue, or the shards of a sequenced topic,
// until the test ends. The engine is the one of production, and so are cfg's
// defaults: Workers is 8, so that messages are handled at the same time and in
// no order; set it to 1 where a test is about order. Two settings are measured
// by the machine's clock and not by the broker's: HandlerTimeout and
// DrainTimeout. Where cfg has no Logger, the test's output is one.
func (b *Broker) Consume(cfg redeliver.Config, handler redeliver.Handler) *Consumer {
	b.t.Helper()
	return b.consume(consumer.Options{Config: cfg, Handler: handler}, b.doc.WorkQueues()...)
}

// HandleDead consumes the topic's dead-letter queue until the test ends, as
// HandleDead of package redeliver/rabbitmq does.
func (b *Broker) HandleDead(handler redeliver.DeadHandler) *Consumer {
	b.t.Helper()
	if b.doc.DeadLetter == nil {
		b.t.Fatalf("topic %q has no dead-letter queue", b.doc.Topic)
	}
	o := consumer.Options{Dead: true, Handler: consumer.DeadHandler(b.doc, handler), Config: redeliver.Config{MaxMessageSize: math.MaxInt}}
	return b.consume(o, b.doc.DeadLetter.ManifestQueue)
}

func (b *Broker) consume(o consumer.Options, queues ...topology.ManifestQueue) *Consumer {
	b.t.Helper()
	if o.Config.Logger == nil {
		o.Config.Logger = b.logger
	}
	o.Manifest = b.doc
	client := b.memory.Client()
	run, err := consumer.Open(b.t.Context(), client.Attach(o), queues...)
	if err != nil {
		b.t.Fatalf("consuming queue %q: %v", queues[0].Name, err)
	}
	c := &Consumer{b: b, queue: queues[0].Name, run: run, ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		defer client.Leave()
		c.result = run.Run(context.Background())
	}()
	b.t.Cleanup(c.end)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.consumers = append(b.consumers, c)
	return c
}

// Stats are the consumer's counters; those of all shards together.
func (c *Consumer) Stats() redeliver.Stats {
	c.b.t.Helper()
	c.b.Wait()
	return c.run.Stats()
}

// Health says how the consumer is.
func (c *Consumer) Health() redeliver.Health {
	c.b.t.Helper()
	c.b.Wait()
	return c.run.Health()
}

// ResetSequence lets the messages of a key be handled again; see
// redeliver.FailAll. It returns false when none of them had failed.
func (c *Consumer) ResetSequence(key string) bool {
	c.b.t.Helper()
	c.b.Wait()
	return c.run.ResetSequence(key)
}

// Close shuts the consumer down as the end of a program does, and returns what
// its Run returned: a *redeliver.DrainError when a handler did not return.
func (c *Consumer) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.close()
}

func (c *Consumer) close() error {
	_ = c.run.Close() // as Run
	<-c.ended
	return c.result
}

// end closes the consumer with the test, which fails when that is not clean.
func (c *Consumer) end() {
	err := c.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && !c.closed {
		c.b.t.Errorf("the consumer of queue %q: %v", c.queue, err)
	}
}
