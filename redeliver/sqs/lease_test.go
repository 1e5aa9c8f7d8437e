package sqs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest/fake"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/sqs"
)

type consumerType = sqs.Consumer

func handleDead(w *world, cfg redeliver.Config, handle redeliver.DeadHandler) (*sqs.Consumer, error) {
	return sqs.HandleDead(w.t.Context(), w.config(nil, cfg), handle)
}

// TestHeartbeat: visibility is extended while a handler runs and while messages
// wait for it, and not after that.
func TestHeartbeat(t *testing.T) {
	inFake(t, func(w *world) {
		book := newNotebook()
		w.publish("slow", "next", "last")
		l := w.consume(redeliver.Config{Workers: 1}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			book.note(m)
			if string(m.Body) == "slow" {
				time.Sleep(10 * time.Minute)
			}
			return redeliver.Ack()
		})
		pass(11 * time.Minute)
		if got, want := book.all(), []string{"slow", "next", "last"}; !slices.Equal(got, want) {
			t.Errorf("handled: %q, want %q", got, want)
		}
		if got := w.fake.Messages("orders"); len(got) > 0 {
			t.Errorf("left: %+v", got)
		}
		beats := w.fake.Requests()["ChangeMessageVisibilityBatch"] - 1 // one asked whether it may
		if beats < 20 || beats > 42 {                                  // every half of 30 s, one request for all
			t.Errorf("%d heartbeats in ten minutes", beats)
		}
		pass(time.Hour)
		if n := w.fake.Requests()["ChangeMessageVisibilityBatch"] - 1; n != beats {
			t.Errorf("%d heartbeats when nothing is here", n-beats)
		}
		l.mustStop()
	})
}

// TestTwelveHours: a message can be invisible for 12 hours in total. Before they
// are over its handler hears of it, and what that returns is dropped.
func TestTwelveHours(t *testing.T) {
	inFake(t, func(w *world) {
		begun := time.Now()
		var cause error
		var heard time.Duration
		calls := 0
		w.publish("x")
		l := w.consume(redeliver.Config{}, func(ctx context.Context, _ *redeliver.Message) redeliver.Outcome {
			if calls++; calls > 1 {
				return redeliver.Ack()
			}
			<-ctx.Done()
			cause, heard = context.Cause(ctx), time.Since(begun)
			return redeliver.Ack()
		})
		pass(13 * time.Hour)
		if !errors.Is(cause, redeliver.ErrLeaseLost) || heard < 12*time.Hour-time.Minute || heard >= 12*time.Hour {
			t.Errorf("after %s the handler heard %v", heard, cause)
		}
		if s := l.Stats(); calls != 2 || s.Dropped != 1 || s.LeasesLost != 1 || s.Acked != 1 {
			t.Errorf("%d calls, %+v", calls, s)
		}
		l.mustStop()
	})
}

// TestLeaseLost: a lease that the service does not extend, or not in time, is
// lost: the handler hears of it, and its handle is not used any more.
func TestLeaseLost(t *testing.T) {
	gone := &fake.Error{Shape: "x", Query: "InvalidParameterValue", Message: "Message does not exist or is not available for visibility timeout change."}
	for name, fail := range map[string]func(w *world){
		"refused": func(w *world) {
			w.fake.FailEntries("ChangeMessageVisibilityBatch", func(string) *fake.Error { return gone })
		},
		"throttled": func(w *world) { w.fake.Fail("ChangeMessageVisibilityBatch", -1, fake.Throttled()) },
	} {
		t.Run(name, func(t *testing.T) {
			inFake(t, func(w *world) {
				w.publish("x")
				var cause error
				calls := 0
				l := w.consume(redeliver.Config{}, func(ctx context.Context, _ *redeliver.Message) redeliver.Outcome {
					if calls++; calls > 1 {
						return redeliver.Ack()
					}
					<-ctx.Done()
					cause = context.Cause(ctx)
					return redeliver.Ack()
				})
				fail(w)
				pass(29 * time.Second)
				if !errors.Is(cause, redeliver.ErrLeaseLost) {
					t.Fatalf("the handler heard %v", cause)
				}
				if n := w.fake.Entries()["DeleteMessageBatch"]; n != 1 { // which asked whether it may
					t.Errorf("%d deletes with a handle that is lost", n-1)
				}
				w.fake.Mend()
				pass(time.Minute)
				if s := l.Stats(); calls != 2 || s.Dropped != 1 || s.LeasesLost != 1 || s.Acked != 1 || len(w.fake.Messages("orders")) != 0 {
					t.Errorf("%d calls, %+v", calls, s)
				}
				l.mustStop()
			})
		})
	}
}

// TestPartialBatches: the entries of a batch that fail are tried again, and only
// those.
func TestPartialBatches(t *testing.T) {
	inFake(t, func(w *world) {
		failed := false
		w.fake.FailEntries("DeleteMessageBatch", func(body string) *fake.Error {
			if body == "m00003" && !failed {
				failed = true
				return fake.Internal()
			}
			return nil
		})
		w.publish(ids(10)...)
		l := w.consume(redeliver.Config{}, func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() })
		pass(10 * time.Minute)
		if s := l.Stats(); s.Handled != 10 || s.Acked != 10 || s.RequestsFailed != 1 || len(w.fake.Messages("orders")) != 0 {
			t.Errorf("%+v", s)
		}
		if n := w.fake.Entries()["DeleteMessageBatch"]; n != 1+10+1 {
			t.Errorf("%d entries", n)
		}
		l.mustStop()
	})
}

// TestEntriesThatCannotSucceed are not tried again; their messages come back.
func TestEntriesThatCannotSucceed(t *testing.T) {
	inFake(t, func(w *world) {
		failed := false
		w.fake.FailEntries("DeleteMessageBatch", func(body string) *fake.Error {
			if body == "x" && !failed {
				failed = true
				return &fake.Error{Query: "ReceiptHandleIsInvalid", Message: "no"}
			}
			return nil
		})
		w.publish("x")
		l := w.consume(redeliver.Config{}, func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() })
		pass(10 * time.Minute)
		l.mustStop()
		if s := l.Stats(); s.Handled != 2 || s.Dropped != 1 || len(w.fake.Messages("orders")) != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestThrottling: throttled requests are counted, shown, and made again with
// pauses; nothing is handled twice.
func TestThrottling(t *testing.T) {
	inFake(t, func(w *world) {
		w.publish(ids(30)...)
		l := w.consume(redeliver.Config{}, func(context.Context, *redeliver.Message) redeliver.Outcome {
			time.Sleep(time.Second)
			return redeliver.Ack()
		})
		w.fake.Fail("ReceiveMessage", 3, fake.Throttled())
		w.fake.Fail("DeleteMessageBatch", 3, fake.Throttled())
		pass(20 * time.Second)
		if h := l.Health(); h.Status != redeliver.HealthDegraded || !strings.Contains(strings.Join(h.Reasons, " "), "throttles") {
			t.Errorf("%+v", h)
		}
		pass(10 * time.Minute)
		if s := l.Stats(); s.Throttled != 6 || s.Handled != 30 || s.Acked != 30 || len(w.fake.Messages("orders")) != 0 {
			t.Errorf("%+v", s)
		}
		if h := l.Health(); h.Status != redeliver.HealthOK {
			t.Errorf("%+v", h)
		}
		l.mustStop()
	})
}

// TestReceivesFail: a consumer that receives nothing says so, and goes on when
// it can.
func TestReceivesFail(t *testing.T) {
	inFake(t, func(w *world) {
		l := w.consume(redeliver.Config{}, func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() })
		w.fake.Fail("ReceiveMessage", -1, fake.Internal())
		pass(2 * time.Minute)
		if h := l.Health(); h.Status != redeliver.HealthDown {
			t.Errorf("%+v", h)
		}
		w.fake.Mend()
		w.publish("x")
		pass(time.Minute)
		if h, s := l.Health(), l.Stats(); h.Status != redeliver.HealthOK || s.Acked != 1 || s.SessionsLost != 0 {
			t.Errorf("%+v, %+v", h, s)
		}
		l.mustStop()
	})
}

// TestOverLimit: the limit of messages in flight is explained.
func TestOverLimit(t *testing.T) {
	inFake(t, func(w *world) {
		l := w.consume(redeliver.Config{}, func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() })
		w.fake.Fail("ReceiveMessage", 2, fake.OverLimit())
		pass(25 * time.Second)
		if text := fmt.Sprint(l.Health().Reasons); !strings.Contains(text, "in flight") || !strings.Contains(text, "120000") {
			t.Errorf("%s", text)
		}
		l.mustStop()
	})
}

// TestDrain: what was received and not started is visible again at once, and what
// handlers have is waited for.
func TestDrain(t *testing.T) {
	inFake(t, func(w *world) {
		w.publish(ids(10)...)
		release := make(chan struct{})
		l := w.consume(redeliver.Config{Workers: 1}, func(context.Context, *redeliver.Message) redeliver.Outcome {
			<-release
			return redeliver.Ack()
		})
		pass(time.Minute)
		time.AfterFunc(5*time.Second, func() { close(release) })
		l.stop()
		pass(2 * time.Second)
		visible := 0
		for _, m := range w.fake.Messages("orders") {
			if !m.Visible.After(time.Now()) && m.Receives == 1 {
				visible++
			}
		}
		if visible != 9 {
			t.Errorf("%d of 9 messages are visible while a handler runs", visible)
		}
		l.mustStop()
		if s := l.Stats(); s.Acked != 1 || s.HandedBack != 9 || len(w.fake.Messages("orders")) != 9 {
			t.Errorf("%+v", s)
		}
	})
}

// TestLeftBehind: a handler that does not return in time is named, and its
// message is given back.
func TestLeftBehind(t *testing.T) {
	inFake(t, func(w *world) {
		w.publish("x")
		release := make(chan struct{})
		l := w.consume(redeliver.Config{Workers: 1, DrainTimeout: time.Second}, func(context.Context, *redeliver.Message) redeliver.Outcome {
			<-release
			return redeliver.Ack()
		})
		pass(time.Minute)
		l.stop()
		var left *redeliver.DrainError
		if err := <-l.done; !errors.As(err, &left) || len(left.Stranded) != 1 {
			t.Errorf("%v", err)
		}
		if m := w.fake.Messages("orders"); len(m) != 1 || m[0].Visible.After(time.Now()) {
			t.Errorf("%+v", m)
		}
		close(release)
	})
}

func open(w *world, cfg redeliver.Config) (*sqs.Consumer, error) {
	return sqs.Open(w.t.Context(), w.config(redeliver.HandlerFunc(acks), cfg))
}
