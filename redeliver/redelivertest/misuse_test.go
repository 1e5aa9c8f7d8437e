package redelivertest

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	said     strings.Builder
	cleanups []func()
}

func (r *recorder) Helper()                      {}
func (r *recorder) Output() io.Writer            { return io.Discard }
func (r *recorder) Cleanup(f func())             { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(args ...any)            { fmt.Fprintln(&r.said, args...) }
func (r *recorder) Fatal(args ...any)            { r.Error(args...); runtime.Goexit() }
func (r *recorder) Errorf(f string, args ...any) { r.Error(fmt.Sprintf(f, args...)) }
func (r *recorder) Fatalf(f string, args ...any) { r.Fatal(fmt.Sprintf(f, args...)) }

// said runs a test, and returns how it failed.
func said(t *testing.T, test func(t testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(r.cleanups) - 1; i >= 0; i-- {
				r.cleanups[i]()
			}
		}()
		test(r)
	}()
	<-done
	return r.said.String()
}

// TestMisuse: a test that is wrong fails with words that help.
func TestMisuse(t *testing.T) {
	t.Parallel()
	ack := redeliver.HandlerFunc(func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() })
	broker := func(t testing.TB, topic Topic, opts ...Option) *Broker {
		t.Helper()
		return New(t, Manifest(t, topic), opts...)
	}
	for name, c := range map[string]struct {
		test func(t testing.TB)
		want string
	}{
		"a topic that Terraform refuses": {func(t testing.TB) { Manifest(t, Topic{Strategy: "never"}) }, `retry strategy "never"`},
		"no manifest":                    {func(t testing.TB) { New(t, redeliver.Manifest{}) }, "manifest"},
		"no version":                     {func(t testing.TB) { broker(t, Topic{}, Version("bunny")) }, `"bunny" is no version`},
		"too old for the strategy":       {func(t testing.TB) { broker(t, Topic{Strategy: "broker_delayed"}, Version("4.0")) }, "needs RabbitMQ 4.3"},
		"an unknown queue":               {func(t testing.TB) { broker(t, Topic{}).Messages("oders") }, `there is no queue "oders"; there are orders, orders-dlq`},
		"a removed queue": {func(t testing.TB) {
			b := broker(t, Topic{})
			b.Remove("orders-dlq")
			b.Dead()
		}, `queue "orders-dlq" was removed`},
		"no dead-letter queue": {func(t testing.TB) { broker(t, Topic{NoDeadLetterQueue: true}).Dead() }, "what fails for good is discarded"},
		"no parked queue":      {func(t testing.TB) { broker(t, Topic{}).Parked() }, "what nobody can read is dead-lettered"},
		"no handler":           {func(t testing.TB) { broker(t, Topic{}).Consume(redeliver.Config{}, nil) }, "there is no handler"},
		"no sequence":          {func(t testing.TB) { broker(t, Topic{Sequenced: true}).Consume(redeliver.Config{}, ack) }, "say in Config.Sequence"},
		"a header that AMQP cannot carry": {func(t testing.TB) {
			broker(t, Topic{}).Publish(redeliver.Message{ID: "1", Headers: map[string]any{"n": struct{}{}}})
		}, `publishing message "1" to queue "orders": header "n": AMQP cannot carry a struct {}`},
		"a handler that does not return": {func(t testing.TB) {
			b := broker(t, Topic{})
			b.patience = 20 * time.Millisecond
			stop := make(chan struct{})
			t.Cleanup(func() { close(stop) })
			b.Consume(redeliver.Config{DrainTimeout: time.Millisecond}, redeliver.HandlerFunc(func(context.Context, *redeliver.Message) redeliver.Outcome {
				<-stop
				return redeliver.Ack()
			}))
			b.Publish(redeliver.Message{ID: "1"})
			b.Wait()
		}, `queue "orders": 1 handlers run`},
		"messages for ever": {func(t testing.TB) {
			b := broker(t, Topic{})
			b.Consume(redeliver.Config{}, redeliver.HandlerFunc(func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Defer() }))
			b.Publish(redeliver.Message{ID: "1"})
			b.Finish()
		}, "is one deferred for ever?"},
		"back in time": {func(t testing.TB) { broker(t, Topic{}).Advance(-time.Second) }, "the clock cannot be moved back (by -1s)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := said(t, c.test); !strings.Contains(got, c.want) {
				t.Errorf("it says %q, want %q in it", got, c.want)
			}
		})
	}
}

// TestGoroutinesEnd: nothing is left of a broker when its test has ended.
func TestGoroutinesEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	if text := said(t, func(t testing.TB) {
		b := New(t, Manifest(t, Topic{Strategy: "republish"}))
		b.Consume(redeliver.Config{}, redeliver.HandlerFunc(func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Retry(nil) }))
		b.HandleDead(func(context.Context, *redeliver.DeadMessage) error { return io.EOF })
		b.Publish(redeliver.Message{ID: "1"}, redeliver.Message{ID: "2"})
		b.Advance(time.Hour)
		b.Disconnect()
	}); text != "" {
		t.Error(text)
	}
	brokertest.WaitFor(t, func() (bool, string) { // those that end have said so, and need a moment
		n := runtime.NumGoroutine()
		return n <= before, fmt.Sprintf("%d goroutines, and %d before", n, before)
	})
}

// BenchmarkHandlerTest is what a whole test costs: publish, fail twice, wait for
// it, be acknowledged.
func BenchmarkHandlerTest(b *testing.B) {
	m := Manifest(b, Topic{})
	for b.Loop() {
		r := &recorder{TB: b}
		broker := New(r, m)
		c := broker.Consume(redeliver.Config{}, redeliver.HandlerFunc(func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			if m.RetryCount < 2 {
				return redeliver.Retry(io.EOF)
			}
			return redeliver.Ack()
		}))
		broker.Publish(redeliver.Message{ID: "1"})
		broker.Advance(35 * time.Second)
		if s := c.Stats(); s.Acked != 1 || s.Retried != 2 {
			b.Fatalf("%+v", s)
		}
		for i := len(r.cleanups) - 1; i >= 0; i-- {
			r.cleanups[i]()
		}
	}
}
