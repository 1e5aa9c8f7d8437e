package consumer

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// torrent is a consumer of a queue that never ends, whose messages are named by
// their number.
type torrent struct {
	*Consumer
	cancel context.CancelFunc
	ended  chan error

	mu      sync.Mutex
	settled map[string]Verb
	twice   []string
}

func startTorrent(t *testing.T, cfg redeliver.Config, handle func(c *Consumer, m *redeliver.Message) redeliver.Outcome) *torrent {
	t.Helper()
	manifest, err := topology.DecodeManifest([]byte(benchManifest(t)))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	x := &torrent{ended: make(chan error, 1), settled: map[string]Verb{}}
	f := newFirehose(math.MaxInt64, cfg.Prefetch)
	f.id = func(n int64) string { return strconv.FormatInt(n, 10) }
	f.verdict = func(d *Delivery, verb Verb) {
		x.mu.Lock()
		defer x.mu.Unlock()
		if _, again := x.settled[d.Message.ID]; again {
			x.twice = append(x.twice, d.Message.ID)
		}
		x.settled[d.Message.ID] = verb
	}
	x.Consumer, err = New(Options{
		Manifest: manifest, Config: cfg,
		Handler: redeliver.HandlerFunc(func(_ context.Context, m *redeliver.Message) redeliver.Outcome { return handle(x.Consumer, m) }),
		Connect: func(topology.Manifest, topology.ManifestQueue, []*topology.ManifestTarget) (Transport, Publisher, error) {
			return f, nil, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Bind(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x.cancel = cancel
	go func() { x.ended <- x.Run(ctx) }()
	t.Cleanup(func() { _ = x.Close() })
	return x
}

// byReceiver says whether the goroutine that receives called the handler that
// asks. Where that is certainly not so, it is quick.
func byReceiver(c *Consumer) bool {
	if c.slots[0].with.Load() == nil {
		return false
	}
	stack := make([]byte, 4<<10)
	return bytes.Contains(stack[:runtime.Stack(stack, false)], []byte(".handleHere("))
}

// finish shuts down and checks that every delivery was settled once.
func (x *torrent) finish(t *testing.T) {
	t.Helper()
	x.cancel()
	if err := <-x.ended; err != nil {
		t.Error(err)
	}
	if len(x.twice) > 0 {
		t.Errorf("settled twice: %q", x.twice)
	}
	if delivered := x.Stats().Delivered; uint64(len(x.settled)) != delivered {
		t.Errorf("%d of %d deliveries were settled", len(x.settled), delivered)
	}
}

// TestReceiverHandlesQuickMessages: the receiver takes a worker's place where
// handlers are quick, however many workers there are, and no more handlers run
// than there are workers.
func TestReceiverHandlesQuickMessages(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 3, 64} {
		t.Run(strconv.Itoa(workers), func(t *testing.T) {
			t.Parallel()
			var running, most atomic.Int64
			enough := make(chan struct{})
			var once sync.Once
			x := startTorrent(t, redeliver.Config{Workers: workers, Prefetch: 100}, func(c *Consumer, _ *redeliver.Message) redeliver.Outcome {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				if c.slots[0].handled.Load() > 5000 {
					once.Do(func() { close(enough) })
				}
				return redeliver.Ack()
			})
			<-enough
			x.finish(t)
			if most.Load() > int64(workers) {
				t.Errorf("%d handlers ran at a time, of %d workers", most.Load(), workers)
			}
			if s := x.Stats(); s.Handled != s.Acked {
				t.Errorf("%d handled, %d acknowledged", s.Handled, s.Acked)
			}
		})
	}
}

// TestSlowHandlerDoesNotKeepTheReceiver: messages are received, and with another
// worker handled, while the receiver is with a message that takes long.
func TestSlowHandlerDoesNotKeepTheReceiver(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 2} {
		t.Run(strconv.Itoa(workers), func(t *testing.T) {
			t.Parallel()
			slow, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			x := startTorrent(t, redeliver.Config{Workers: workers, Prefetch: 1000}, func(c *Consumer, _ *redeliver.Message) redeliver.Outcome {
				if byReceiver(c) {
					once.Do(func() {
						close(slow)
						<-release
					})
				}
				return redeliver.Ack()
			})
			<-slow
			before := x.Stats()
			brokertest.WaitFor(t, func() (bool, string) { return x.Stats().Delivered > before.Delivered+100, "nothing more is received" })
			if workers > 1 {
				brokertest.WaitFor(t, func() (bool, string) {
					return x.Stats().Handled > before.Handled+5000, "the other worker does not handle"
				})
			} else if s := x.Stats(); s.Running != 1 || s.Handled > before.Handled {
				t.Errorf("another handler ran beside the only worker's: %+v", s)
			}
			close(release)
			handled := x.Stats().Handled
			brokertest.WaitFor(t, func() (bool, string) { return x.Stats().Handled > handled+5000, "it does not go on" })
			x.finish(t)
		})
	}
}

// TestGoexitInTheReceiver: a handler that ends the receiver's goroutine ends
// neither the consumer nor its message.
func TestGoexitInTheReceiver(t *testing.T) {
	t.Parallel()
	var gone atomic.Pointer[string]
	x := startTorrent(t, redeliver.Config{Workers: 1, Prefetch: 100}, func(c *Consumer, m *redeliver.Message) redeliver.Outcome {
		if byReceiver(c) && gone.CompareAndSwap(nil, &m.ID) {
			runtime.Goexit()
		}
		return redeliver.Ack()
	})
	brokertest.WaitFor(t, func() (bool, string) { return gone.Load() != nil, "no handler was called by the receiver" })
	handled := x.Stats().Handled
	brokertest.WaitFor(t, func() (bool, string) { return x.Stats().Handled > handled+1000, "no others are handled" })
	brokertest.WaitFor(t, func() (bool, string) {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.settled[*gone.Load()] == VerbRequeue, "the message is not given back"
	})
	x.finish(t)
	if s := x.Stats(); s.Panicked != 1 || s.Retried != 1 {
		t.Errorf("%d panicked and %d retried, want 1", s.Panicked, s.Retried)
	}
}

// TestDrainNamesTheReceiversMessage: a handler that the receiver called, and
// that does not return, holds up a shutdown no longer than any other.
func TestDrainNamesTheReceiversMessage(t *testing.T) {
	t.Parallel()
	stuck, release := make(chan string, 1), make(chan struct{})
	t.Cleanup(func() { close(release) })
	var once sync.Once
	x := startTorrent(t, redeliver.Config{Workers: 2, Prefetch: 100, DrainTimeout: 500 * time.Millisecond}, func(c *Consumer, m *redeliver.Message) redeliver.Outcome {
		if byReceiver(c) {
			once.Do(func() {
				stuck <- m.ID
				<-release
			})
		}
		return redeliver.Ack()
	})
	id := <-stuck
	x.cancel()
	var drain *redeliver.DrainError
	if err := <-x.ended; !errors.As(err, &drain) || len(drain.Stranded) != 1 || drain.Stranded[0].MessageID != id {
		t.Errorf("got %v, want message %q left behind", err, id)
	}
}
