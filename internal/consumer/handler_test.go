package consumer

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func TestOversizeIsParkedUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(redeliver.Message{ID: "a", Body: make([]byte, 11)}, redeliver.Message{ID: "b", Body: make([]byte, 10)})
		r := run(t, setup{broker: b, config: redeliver.Config{MaxMessageSize: 10}, handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			if m.ID != "b" {
				t.Errorf("handled %q", m.ID)
			}
			return redeliver.Ack()
		}})
		synctest.Wait()
		if !slices.Equal(b.verbs("a"), []Verb{VerbDeadLetter}) || !slices.Equal(b.verbs("b"), []Verb{VerbAck}) {
			t.Errorf("settled: %v", b.settled)
		}
		if s := r.Stats(); s.Oversized != 1 || s.Handled != 1 {
			t.Errorf("%+v", s)
		}
		if err := r.wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestPanicInOnEventIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(message("a"))
		r := run(t, setup{broker: b, config: redeliver.Config{OnEvent: func(redeliver.Event) { panic(errBoom) }}, handler: func(context.Context, *redeliver.Message) redeliver.Outcome {
			return redeliver.Ack()
		}})
		synctest.Wait()
		if !slices.Equal(b.verbs("a"), []Verb{VerbAck}) {
			t.Errorf("settled: %v", b.settled)
		}
		if err := r.wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestPanicAndGoexitAreRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(message("a"), message("b"), message("c"), message("d"))
		r := run(t, setup{broker: b, config: redeliver.Config{Workers: 1}, handler: func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			if m.RetryCount == 0 {
				switch m.ID {
				case "a":
					panic(errBoom)
				case "b":
					runtime.Goexit()
				case "c":
					panic(nil) //nolint:govet // a panic all the same
				case "d":
					var nothing *fs.PathError // errors.Is calls its Unwrap, which panics
					return redeliver.Retry(nothing)
				}
			}
			return redeliver.Ack()
		}})
		pass(time.Minute)
		for _, id := range []string{"a", "b", "c", "d"} {
			if want := []Verb{VerbRequeue, VerbAck}; !slices.Equal(b.verbs(id), want) {
				t.Errorf("%s settled with %v, want %v", id, b.verbs(id), want)
			}
		}
		if s := r.Stats(); s.Panicked != 4 || s.Running != 0 {
			t.Errorf("%+v", s)
		}
		var panicked *redeliver.PanicError
		first := r.events.of(redeliver.EventRetried)[0]
		if !errors.As(first.Err, &panicked) || !errors.Is(first.Err, errBoom) || !strings.Contains(string(panicked.Stack), "handler_test.go") {
			t.Errorf("reason of the retry: %v", first.Err)
		}
		if err := r.wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestHandlerTimeout(t *testing.T) {
	obey := func(ctx context.Context) redeliver.Outcome {
		<-ctx.Done()
		return redeliver.Retry(context.Cause(ctx))
	}
	tests := map[string]struct {
		config  redeliver.Outcome
		handler func(context.Context) redeliver.Outcome
		verbs   []Verb
		settled time.Duration
	}{
		"retried by default": {redeliver.Outcome{}, obey, []Verb{VerbRequeue}, 6 * time.Second},
		"rejected":           {redeliver.Reject(nil), obey, []Verb{VerbDeadLetter}, 5 * time.Second},
		"parked":             {redeliver.Park(nil), obey, []Verb{VerbDeadLetter}, 5 * time.Second},
		"retried later":      {redeliver.RetryAfter(30*time.Second, nil), obey, []Verb{VerbRequeue}, 35 * time.Second},
		"no outcome": {redeliver.Reject(nil), func(ctx context.Context) redeliver.Outcome {
			<-ctx.Done()
			return redeliver.Outcome{}
		}, []Verb{VerbDeadLetter}, 5 * time.Second},
		"late work is done work": {redeliver.Reject(nil), func(ctx context.Context) redeliver.Outcome {
			<-ctx.Done()
			return redeliver.Ack()
		}, []Verb{VerbAck}, 5 * time.Second},
		"ignored context": {redeliver.Reject(nil), func(context.Context) redeliver.Outcome {
			time.Sleep(10 * time.Second)
			return redeliver.Retry(errBoom)
		}, []Verb{VerbDeadLetter}, 10 * time.Second},
		"in time": {redeliver.Reject(nil), func(context.Context) redeliver.Outcome {
			time.Sleep(4 * time.Second)
			return redeliver.Retry(errBoom)
		}, []Verb{VerbRequeue}, 5 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFakeBroker(message("a"))
				start := time.Now()
				var cause error
				r := run(t, setup{
					broker: b, config: redeliver.Config{HandlerTimeout: 5 * time.Second, TimeoutOutcome: tt.config},
					handler: func(ctx context.Context, m *redeliver.Message) redeliver.Outcome {
						if m.RetryCount > 0 {
							return redeliver.Ack()
						}
						o := tt.handler(ctx)
						cause = context.Cause(ctx)
						return o
					},
				})
				pass(time.Minute)
				verbs := b.verbs("a")
				if tt.verbs[0] == VerbRequeue {
					tt.verbs = append(slices.Clone(tt.verbs), VerbAck)
				}
				if !slices.Equal(verbs, tt.verbs) {
					t.Fatalf("settled with %v, want %v", verbs, tt.verbs)
				}
				if got := b.settled[0].at.Sub(start); got != tt.settled {
					t.Errorf("settled after %s, want %s", got, tt.settled)
				}
				var timedOut *redeliver.TimeoutError
				if want := name != "in time"; errors.As(cause, &timedOut) != want || errors.Is(cause, context.DeadlineExceeded) != want || (r.Stats().TimedOut == 1) != want {
					t.Errorf("cause %v, stats %+v", cause, r.Stats())
				}
				if err := r.wait(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
