package consumer

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// firehose is a session that delivers n messages as fast as they are taken, up
// to prefetch unsettled ones.
type firehose struct {
	n       int64
	window  chan struct{} // one for each delivery that may still be sent
	settled atomic.Int64
	sent    int64
	over    chan struct{} // closed when everything is settled
	stopped chan struct{}
	// id names a message; nil is one name for all.
	id func(n int64) string
	// verdict is told of every settlement; may be nil.
	verdict func(*Delivery, Verb)
}

func newFirehose(n int64, prefetch int) *firehose {
	f := &firehose{n: n, window: make(chan struct{}, 2*prefetch), over: make(chan struct{}), stopped: make(chan struct{})}
	for range prefetch {
		f.window <- struct{}{}
	}
	return f
}

func (f *firehose) Subscribe(context.Context, int) (Session, error) { return f, nil }

func (f *firehose) Receive(d *Delivery) error {
	if f.sent == f.n {
		<-f.stopped
		return io.EOF
	}
	select {
	case <-f.window:
	case <-f.stopped:
		return io.EOF
	}
	f.sent++
	d.Tag = uint64(f.sent) //nolint:gosec // a test's count
	d.Received = time.Now()
	d.Message.ID = "m"
	if f.id != nil {
		d.Message.ID = f.id(f.sent)
	}
	return nil
}

func (f *firehose) Settle(d *Delivery, verb Verb, _ time.Duration) error {
	if f.verdict != nil {
		f.verdict(d, verb)
	}
	if f.settled.Add(1) == f.n {
		close(f.over)
	}
	f.window <- struct{}{}
	return nil
}

func (f *firehose) Unsent() int                 { return 0 }
func (f *firehose) Hold(*Delivery)              {}
func (f *firehose) Diagnose(lost error) error   { return lost }
func (f *firehose) Stop(context.Context) error  { close(f.stopped); return nil }
func (f *firehose) Close(context.Context) error { return nil }

// BenchmarkEngine is what the engine itself costs for each message that is
// acknowledged: no broker and no client library.
func BenchmarkEngine(b *testing.B) {
	manifest, err := topology.DecodeManifest([]byte(benchManifest(b)))
	if err != nil {
		b.Fatal(err)
	}
	for _, workers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			b.ReportAllocs()
			const prefetch = 1000
			f := newFirehose(int64(b.N), prefetch)
			c, err := New(Options{
				Manifest: manifest,
				Handler:  redeliver.HandlerFunc(func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() }),
				Config:   redeliver.Config{Workers: workers, Prefetch: prefetch, Logger: slog.New(slog.DiscardHandler)},
				Connect: func(topology.Manifest, topology.ManifestQueue, []*topology.ManifestTarget) (Transport, Publisher, error) {
					return f, nil, nil
				},
			})
			if err != nil {
				b.Fatal(err)
			}
			if err := c.Bind(b.Context()); err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- c.Run(ctx) }()
			<-f.over
			b.StopTimer()
			cancel()
			if err := <-done; err != nil {
				b.Error(err)
			}
		})
	}
}

func benchManifest(b testing.TB) string {
	spec := topology.Spec{
		Identity: topology.Identity{Topic: "orders"}, DeadLetterQueue: "orders-dlq",
		Retry: topology.RetryPolicy{MaxRetries: 10, Delays: []time.Duration{time.Second}},
	}
	m, err := spec.Manifest()
	if err != nil {
		b.Fatal(err)
	}
	return string(m.Encode())
}
