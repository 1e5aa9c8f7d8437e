package command

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
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

func TestMessages(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 messages stay", 1: "1 message stays", 1000: "1,000 messages stay"} {
		if got := messages(n) + " " + plural(n, "stays", "stay"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	one := topology.Manifest{Retry: topology.ManifestRetry{Strategy: topology.InPlace, MaxRetries: 1}}
	if got := policyOf(one); got != "in_place, at most 1 retry" {
		t.Error(got)
	}
}

// TestFit: a drawing is as large as its terminal, and says what it hides.
func TestFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		drawing, want string
		width, height int
	}{
		{"one\ntwo\n", "one\ntwo\n", 80, 3},
		{"one\ntwo\nthree\n", "one\n… 2 more lines: the terminal is too low\n", 80, 3},
		{"one\ntwo\nthree\n", "… 3 more…\n", 9, 1},
		{"├─ 5s  ▇▇▇\n", "├─ 5s  ▇▇▇\n", 10, 3},
		{"├─ 5s  ▇▇▇\n", "├─ 5s  ▇…\n", 9, 3},
		{"\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n", 3, 3},
		{"\x1b[31mreddish\x1b[0m\n", "\x1b[31mredd…\x1b[0m\n", 5, 3},
	} {
		if got := fit(c.drawing, c.width, c.height); got != c.want {
			t.Errorf("%q on %d by %d: %q, want %q", c.drawing, c.width, c.height, got, c.want)
		}
	}
}

// TestExpressionWithoutEnd: an expression that takes too long on a message ends the run, and is asked of no other message.
func TestExpressionWithoutEnd(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	f := filterFlags{where: "let a = 1..900000; all(1..300, {let x = #; all(a, # + x > 0)})"}
	want, err := f.filter(ctx, end, topology.Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	msg := &redeliver.DeadMessage{Message: redeliver.Message{ID: "m1"}}
	first, second := want(msg), want(msg)
	if first || second || !errors.Is(context.Cause(ctx), errTooLong) || f.misfits != 0 {
		t.Errorf("%v, %d misfits", context.Cause(ctx), f.misfits)
	}
	if text := context.Cause(ctx).Error(); !strings.Contains(text, `message "m1"`) || !strings.Contains(text, "longer than 3s") {
		t.Error(text)
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
