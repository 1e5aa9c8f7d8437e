package amqp

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// benchQueue declares a quorum queue, and returns a message for it.
func benchQueue(b *testing.B) (*brokertest.Broker, string, amqp091.Publishing) {
	b.Helper()
	broker := brokertest.Shared(b)
	vhost := brokertest.VHost(b, broker)
	declare(b, broker, vhost, "orders", amqp091.Table{"x-queue-type": "quorum"})
	return broker, vhost, amqp091.Publishing{
		Body: make([]byte, 256), DeliveryMode: amqp091.Persistent, MessageId: "0123456789", Headers: amqp091.Table{"x-redeliver-retry-count": int32(1)},
	}
}

// BenchmarkBare is the simplest pipelined loop over amqp091-go that knows of
// every message that it was confirmed.
func BenchmarkBare(b *testing.B) {
	broker, vhost, msg := benchQueue(b)
	ch := brokertest.Channel(b, broker, vhost)
	if err := ch.Confirm(false); err != nil {
		b.Fatal(err)
	}
	flight := make(chan *amqp091.DeferredConfirmation, DefaultWindow)
	wait := func() {
		if confirm := <-flight; !confirm.Wait() {
			b.Fatal("refused")
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if len(flight) == DefaultWindow {
			wait()
		}
		confirm, err := ch.PublishWithDeferredConfirm("", "orders", true, false, msg)
		if err != nil {
			b.Fatal(err)
		}
		flight <- confirm
	}
	for len(flight) > 0 {
		wait()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
}

// BenchmarkPublisher publishes the same messages, with at most 1,000 of them
// handed over and not confirmed, as a consumer would.
func BenchmarkPublisher(b *testing.B) {
	broker, vhost, msg := benchQueue(b)
	p := NewPublisher(Options{Dial: dialer(b, broker, vhost), PerKey: true})
	defer p.Close(context.Background())
	slots := make(chan struct{}, 1000)
	var all sync.WaitGroup
	var failed atomic.Int64
	done := func(err error) {
		if err != nil {
			failed.Add(1)
		}
		<-slots
		all.Done()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		slots <- struct{}{}
		all.Add(1)
		p.Publish("", "orders", msg, done)
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	if failed.Load() > 0 {
		b.Errorf("%d messages failed", failed.Load())
	}
}
