package consumer

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// maxReason is the longest error text in characters that a copy carries, where
// the convention states no bound: headers must fit into one AMQP frame with
// everything else in them.
const maxReason = 1024

// reasonHeaders are the headers that say why a message was set aside, as far as
// the convention has such headers. Where the message came from and when it
// first failed is kept from an earlier time.
func reasonHeaders(h topology.Headers, t *task, a Action, queue string, now time.Time) map[string]any {
	set := make(map[string]any)
	put := func(name string, value any) {
		if name != "" {
			set[name] = value
		}
	}
	putFirst := func(name string, value any) {
		if _, ok := t.Message.Headers[name]; !ok {
			put(name, value)
		}
	}
	limit := h.ErrorMax
	if limit <= 0 {
		limit = maxReason
	}
	reason := finalError(a).Error()
	at := now.UTC().Format(time.RFC3339)
	put(h.Error, cutText(reason, limit))
	put(h.ErrorType, errorType(a))
	putFirst(h.FirstFailedAt, at)
	put(h.LastFailedAt, at)
	putFirst(h.OriginalExchange, t.Message.Exchange)
	putFirst(h.OriginalRoutingKey, t.Message.RoutingKey)
	putFirst(h.OriginalQueue, queue)
	put(h.Attempts, int64(t.retryCount+1))
	return set
}

// errorType names the kind of an error: the type at the end of its chain, or
// the rule that led here where there is no error.
func errorType(a Action) string {
	err := a.Reason
	if err == nil {
		return string(a.Cause)
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return cutText(fmt.Sprintf("%T", err), maxReason)
}

// cutText makes text valid UTF-8 of at most limit characters.
func cutText(text string, limit int) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	n := 0
	for i := range text {
		if n == limit {
			return text[:i]
		}
		n++
	}
	return text
}
