package consumer

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func reasonSet(h topology.Headers, t *task, a Action, now time.Time) map[string]any {
	set := make(map[string]any)
	setReason(set, h, t, a, "orders", now)
	return set
}

func TestReasonHeaders(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	a := Action{Cause: CauseUnreadable, Reason: fmt.Errorf("outer: %w", &redeliver.SizeError{Size: 2, Max: 1})}
	text := "unreadable: " + a.Reason.Error()
	x := &task{}
	x.setRetries(2)
	x.Message = redeliver.Message{Exchange: "shop", RoutingKey: "order.new"}
	tests := map[topology.Convention]map[string]any{
		topology.Redeliver: {"x-redeliver-error": text},
		topology.Shove:     {},
		topology.AceMQ:     {"x-acemq-error": text},
		topology.Queuey:    {"x-death-reason": text, "x-original-queue": "orders", "x-attempts": int64(3)},
		topology.RabbitKit: {
			"x-rabbitkit-error-message": text, "x-rabbitkit-error-type": "*redeliver.SizeError",
			"x-rabbitkit-first-failed-at": "2026-01-02T02:04:05Z", "x-rabbitkit-last-failed-at": "2026-01-02T02:04:05Z",
			"x-rabbitkit-original-exchange": "shop", "x-rabbitkit-original-routing-key": "order.new", "x-rabbitkit-original-queue": "orders",
		},
	}
	for convention, want := range tests {
		if got := reasonSet(convention.Headers(), x, a, now); !maps.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", convention, got, want)
		}
	}
	// What an earlier failure wrote down stays.
	x.Message.Headers = map[string]any{"x-rabbitkit-original-queue": "first", "x-rabbitkit-first-failed-at": "before"}
	got := reasonSet(topology.RabbitKit.Headers(), x, a, now)
	if _, ok := got["x-rabbitkit-original-queue"]; ok {
		t.Error("the original queue was overwritten")
	}
	if _, ok := got["x-rabbitkit-first-failed-at"]; ok {
		t.Error("the time of the first failure was overwritten")
	}
	// Without an error the rule is the reason.
	got = reasonSet(topology.Redeliver.Headers(), x, Action{Cause: CauseRejected}, now)
	if got["x-redeliver-error"] != "rejected" {
		t.Errorf("without an error: %v", got)
	}
}

func TestReasonIsBoundedAndValid(t *testing.T) {
	t.Parallel()
	for _, convention := range topology.Conventions() {
		h := convention.Headers()
		limit := h.ErrorMax
		if limit == 0 {
			limit = maxReason
		}
		a := Action{Cause: CauseRejected, Reason: errors.New(strings.Repeat("é\xff", 5000))}
		for name, value := range reasonSet(h, &task{}, a, time.Now()) {
			if s, ok := value.(string); ok && (utf8.RuneCountInString(s) > limit || !utf8.ValidString(s)) {
				t.Errorf("%s: header %s has %d characters, valid: %v", convention, name, utf8.RuneCountInString(s), utf8.ValidString(s))
			}
		}
	}
	for text, want := range map[string]string{"": "", "abc": "abc", "abcd": "abcd", "abcde": "abcd", "ééééé": "éééé", "\xff": "\uFFFD"} {
		if got := cutText(text, 4); got != want {
			t.Errorf("cut %q: %q, want %q", text, got, want)
		}
	}
}
