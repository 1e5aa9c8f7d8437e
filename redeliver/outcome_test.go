package redeliver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

var errBoom = errors.New("boom")

func TestOutcomes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		outcome redeliver.Outcome
		kind    redeliver.OutcomeKind
		err     error
		delay   time.Duration
		text    string
	}{
		"zero":               {redeliver.Outcome{}, redeliver.OutcomeNone, nil, 0, "none"},
		"ack":                {redeliver.Ack(), redeliver.OutcomeAck, nil, 0, "ack"},
		"retry":              {redeliver.Retry(errBoom), redeliver.OutcomeRetry, errBoom, 0, "retry: boom"},
		"retry nil":          {redeliver.Retry(nil), redeliver.OutcomeRetry, nil, 0, "retry"},
		"retry after":        {redeliver.RetryAfter(time.Second, errBoom), redeliver.OutcomeRetry, errBoom, time.Second, "retry after 1s: boom"},
		"retry after 0":      {redeliver.RetryAfter(0, errBoom), redeliver.OutcomeRetry, errBoom, 0, "retry: boom"},
		"retry after before": {redeliver.RetryAfter(-time.Second, errBoom), redeliver.OutcomeRetry, errBoom, 0, "retry: boom"},
		"reject":             {redeliver.Reject(errBoom), redeliver.OutcomeReject, errBoom, 0, "reject: boom"},
		"defer":              {redeliver.Defer(), redeliver.OutcomeDefer, nil, 0, "defer"},
		"defer for":          {redeliver.DeferFor(time.Minute), redeliver.OutcomeDefer, nil, time.Minute, "defer after 1m0s"},
		"park":               {redeliver.Park(errBoom), redeliver.OutcomePark, errBoom, 0, "park: boom"},
	}
	for name, tt := range tests {
		o := tt.outcome
		if o.Kind() != tt.kind || !errors.Is(o.Err(), tt.err) || o.Delay() != tt.delay || o.String() != tt.text {
			t.Errorf("%s: %v, %v, %v, %q", name, o.Kind(), o.Err(), o.Delay(), o.String())
		}
	}
}

// rateLimited is an application's error that knows what is to become of the message.
type rateLimited struct{ wait time.Duration }

func (e *rateLimited) Error() string              { return "rate limited" }
func (e *rateLimited) Outcome() redeliver.Outcome { return redeliver.RetryAfter(e.wait, nil) }

type done struct{}

func (done) Error() string              { return "done already" }
func (done) Outcome() redeliver.Outcome { return redeliver.Ack() }

func TestFromError(t *testing.T) {
	t.Parallel()
	permanent := redeliver.Permanent(errBoom)
	limited := fmt.Errorf("charging: %w", &rateLimited{time.Minute})
	decode := fmt.Errorf("reading: %w", &redeliver.DecodeError{Into: "x", Err: errBoom})
	given := redeliver.Permanent(limited) // the outermost counts
	for _, tt := range []struct {
		err  error
		want redeliver.Outcome
	}{
		{nil, redeliver.Ack()},
		{errBoom, redeliver.Retry(errBoom)},
		{permanent, redeliver.Reject(permanent)},
		{limited, redeliver.RetryAfter(time.Minute, limited)},
		{decode, redeliver.Park(decode)},
		{given, redeliver.Reject(given)},
		{fmt.Errorf("%w: never", redeliver.ErrPermanent), redeliver.Reject(fmt.Errorf("%w: never", redeliver.ErrPermanent))},
		{fmt.Errorf("again: %w", done{}), redeliver.Ack()},
		{context.DeadlineExceeded, redeliver.Retry(context.DeadlineExceeded)},
	} {
		if got := redeliver.FromError(tt.err); got.String() != tt.want.String() || !errors.Is(got.Err(), tt.err) && tt.want.Kind() != redeliver.OutcomeAck {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
}

func TestPermanent(t *testing.T) {
	t.Parallel()
	if redeliver.Permanent(nil) != nil {
		t.Error("Permanent(nil) is an error")
	}
	err := fmt.Errorf("outer: %w", redeliver.Permanent(fmt.Errorf("middle: %w", &rateLimited{})))
	var inner *rateLimited
	if !errors.Is(err, redeliver.ErrPermanent) || !errors.As(err, &inner) || err.Error() != "outer: middle: rate limited" {
		t.Errorf("%v", err)
	}
	if errors.Is(errBoom, redeliver.ErrPermanent) {
		t.Error("an ordinary error is permanent")
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	type order struct {
		N int `json:"n"`
	}
	var got order
	handler := redeliver.JSON(func(_ context.Context, o order, _ *redeliver.Message) redeliver.Outcome {
		got = o
		return redeliver.Ack()
	})
	if o := handler.Handle(t.Context(), &redeliver.Message{Body: []byte(`{"n": 3, "more": true}`)}); o != redeliver.Ack() || got.N != 3 {
		t.Errorf("%v, %+v", o, got)
	}
	for _, body := range []string{"", "{", `{"n": "x"}`, `{"n": 1} {}`, "\xff", `[1]`} {
		got = order{}
		o := handler.Handle(t.Context(), &redeliver.Message{Body: []byte(body)})
		var decode *redeliver.DecodeError
		if o.Kind() != redeliver.OutcomePark || !errors.As(o.Err(), &decode) || got.N != 0 || !strings.Contains(o.Err().Error(), "JSON (redeliver_test.order)") {
			t.Errorf("body %q: %v, handled: %+v", body, o, got)
		}
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	for _, tt := range []struct {
		seen  time.Time
		age   time.Duration
		known bool
	}{{time.Time{}, 0, false}, {now.Add(-time.Hour), time.Hour, true}, {now, 0, true}, {now.Add(time.Hour), 0, true}} {
		if age, known := (&redeliver.Message{FirstSeen: tt.seen}).Age(now); age != tt.age || known != tt.known {
			t.Errorf("first seen %v: %v %v", tt.seen, age, known)
		}
	}
	if got := (&redeliver.Message{RetryCount: 2}).Attempt(); got != 3 {
		t.Errorf("attempt %d", got)
	}
}
