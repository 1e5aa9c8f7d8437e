package redelivertest_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redelivertest"
)

var errBoom = errors.New("boom")

func TestFailTwice(t *testing.T) {
	for _, strategy := range []string{"in_place", "broker_delayed", "republish", "hybrid"} {
		t.Run(strategy, func(t *testing.T) {
			b := redelivertest.New(t, redelivertest.Manifest(t, redelivertest.Topic{Strategy: strategy}))
			var counts []int
			c := b.Consume(redeliver.Config{}, redeliver.HandlerFunc(func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
				counts = append(counts, m.RetryCount)
				if m.RetryCount < 2 {
					return redeliver.Retry(errBoom)
				}
				return redeliver.Ack()
			}))
			b.Publish(redeliver.Message{ID: "a"})
			if n := len(b.Held()); n != 1 {
				t.Fatal(n)
			}
			b.Advance(5 * time.Second)
			b.Advance(30 * time.Second)
			b.Wait()
			t.Log(counts)
			if s := c.Stats(); s.Acked != 1 || s.Retried != 2 || len(b.Held()) != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func BenchmarkHandlerTest(b *testing.B) {
	m := redelivertest.Manifest(b, redelivertest.Topic{})
	for b.Loop() {
		run(b, m)
	}
}

func run(b *testing.B, m redeliver.Manifest) {
	b.Helper()
	t := &tb{TB: b}
	defer t.end()
	broker := redelivertest.New(t, m)
	c := broker.Consume(redeliver.Config{}, redeliver.HandlerFunc(func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		if m.RetryCount < 2 {
			return redeliver.Retry(errBoom)
		}
		return redeliver.Ack()
	}))
	broker.Publish(redeliver.Message{ID: "a"})
	broker.Advance(5 * time.Second)
	broker.Advance(30 * time.Second)
	if s := c.Stats(); s.Acked != 1 {
		b.Fatalf("%+v", s)
	}
}

type tb struct {
	testing.TB
	cleanups []func()
}

func (t *tb) Output() io.Writer { return io.Discard }
func (t *tb) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *tb) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}
