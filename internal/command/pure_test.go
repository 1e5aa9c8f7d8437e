package command

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestAbout(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Millisecond: "1s", 90 * time.Second: "1m30s", 2 * time.Minute: "2m", 2 * time.Hour: "2h", 90 * time.Minute: "1h30m",
		24 * time.Hour: "1d", 50 * time.Hour: "2d2h",
	} {
		if got := about(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := count(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestShellQuote(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"orders": "orders", "": "''", "on call": "'on call'", "^a$": "'^a$'", "it's": `'it'\''s'`, "/": "/"} {
		if got := shellQuote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestShown(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"ü 注文": "ü 注文", "\x1b[31m": "\u241b[31m", "a\nb\x7f": "a\u240ab\u2421", "\u202e": "\ufffd", "\xff": "\ufffd"} {
		if got := shown(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestCaused: an error says why its run has ended, and what else went wrong.
func TestCaused(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	other := errors.New("the task may go on")
	if err := caused(ctx, other); !errors.Is(err, other) {
		t.Error(err)
	}
	cancel(ErrInterrupted)
	for _, err := range []error{ctx.Err(), errors.Join(ctx.Err(), nil)} {
		if got := caused(ctx, err); !errors.Is(got, ErrInterrupted) || strings.Contains(got.Error(), "canceled") {
			t.Error(got)
		}
	}
	if got := caused(ctx, errors.Join(ctx.Err(), other)); !errors.Is(got, ErrInterrupted) || !errors.Is(got, other) {
		t.Error(got)
	}
	if got := caused(ctx, nil); got != nil {
		t.Error(got)
	}
}
