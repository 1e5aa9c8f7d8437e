package consumer

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// maxReason is the longest error text in characters that a copy carries, where
// the convention states no bound: headers must fit into one AMQP frame with
// everything else in them.
const maxReason = 1024

// copyOf is the copy of a task's message that carries out an action.
func (c *Consumer) copyOf(t *task, a Action, now time.Time) Copy {
	made := Copy{Message: &t.Message, Set: make(map[string]any), Target: a.Target}
	h := c.policy.Headers
	if c.policy.republishes() {
		c.setHistory(&made, t, a, now)
	}
	switch a.Fate {
	case FateDeferred:
		made.Priority = c.policy.DeferPriority
	case FateHopped:
	default:
		setReason(made.Set, h, t, a, c.manifest.WorkQueue.Name, now)
	}
	if a.Hops {
		made.Set[topology.HeaderNotBefore] = a.Until.Add(time.Millisecond - 1).UnixMilli() // never early
	} else {
		made.Unset = append(made.Unset, topology.HeaderNotBefore)
	}
	if c.probe != nil {
		c.probe.Copy(t.context(), a.Target.Name, made.Set)
	}
	return made
}

// setHistory sets what a convention's consumers know about a message from its
// headers.
func (c *Consumer) setHistory(made *Copy, t *task, a Action, now time.Time) {
	h := c.policy.Headers
	if h.RetryCount != "" {
		count := t.retries()
		if a.Fate == FateRetried {
			count = a.RetryCount
		}
		// 32 bits are what acemq and rabbitkit write; shove reads any integer and no text.
		made.Set[h.RetryCount] = int32(count + h.RetryCountFrom) //nolint:gosec // at most max_retries + 1
		made.Unset = append(made.Unset, h.RetryCountAlso...)
	}
	if h.FirstSeen != "" {
		seen := t.Message.FirstSeen
		if seen.IsZero() {
			seen = now
		}
		made.Set[h.FirstSeen] = seen.UnixMilli()
	}
}

// setReason sets the headers that say why a message failed, as far as the
// convention has such headers. Where the message came from and when it first
// failed is kept from an earlier time.
func setReason(set map[string]any, h topology.Headers, t *task, a Action, queue string, now time.Time) {
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
	at := now.UTC().Format(time.RFC3339)
	put(h.Error, cutText(failure(a).Error(), limit))
	put(h.ErrorType, errorType(a))
	putFirst(h.FirstFailedAt, at)
	put(h.LastFailedAt, at)
	putFirst(h.OriginalExchange, t.Message.Exchange)
	putFirst(h.OriginalRoutingKey, t.Message.RoutingKey)
	putFirst(h.OriginalQueue, queue)
	put(h.Attempts, int64(t.retries()+1))
}

// errNoReason stands for the error of a retry that has none.
var errNoReason = errors.New("the handler gave no reason")

// failure is why a message failed: what the handler said and, where it is
// retried no more, the rule.
func failure(a Action) error {
	switch {
	case a.Cause == "" && a.Reason == nil:
		return errNoReason
	case a.Cause == "":
		return a.Reason
	case a.Reason == nil:
		return errors.New(string(a.Cause))
	default:
		return fmt.Errorf("%s: %w", a.Cause, a.Reason)
	}
}

// errorType names the kind of an error, or the rule that led here where there is
// no error.
func errorType(a Action) string {
	if a.Reason == nil {
		return string(a.Cause)
	}
	return cutText(redeliver.ErrorType(a.Reason), maxReason)
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
