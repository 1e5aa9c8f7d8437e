package topology

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Convention is a naming and argument scheme: how one library calls a topic's
// queues, which arguments it gives them and which headers it counts in. The
// zero value is read as [Redeliver].
type Convention string

// The conventions. All but Redeliver are those of other libraries, so that
// their users can move their topology into Terraform without renaming a queue.
const (
	Redeliver Convention = "redeliver"
	Shove     Convention = "shove"
	AceMQ     Convention = "acemq"
	RabbitKit Convention = "rabbitkit"
	Queuey    Convention = "queuey"
)

// Conventions lists every convention, the default first.
func Conventions() []Convention {
	return []Convention{Redeliver, Shove, AceMQ, RabbitKit, Queuey}
}

// ParseConvention reads a convention's name; "" is [Redeliver].
func ParseConvention(s string) (Convention, error) {
	if s == "" {
		return Redeliver, nil
	}
	c := Convention(s)
	if _, ok := schemes[c]; !ok {
		return "", fmt.Errorf("convention %q is not known: use one of %s", s, quotedList(Conventions()))
	}
	return c, nil
}

// QueueType is a broker's type of queue.
type QueueType string

// The queue types of RabbitMQ.
const (
	Classic QueueType = "classic"
	Quorum  QueueType = "quorum"
)

// Headers are the message headers in which a convention's libraries keep what
// they know about a message. An empty name means that the convention has no
// such header.
type Headers struct {
	// RetryCount carries how often the message was retried.
	RetryCount string `json:"retry_count,omitempty"`
	// RetryCountAlso are further headers read as the count where RetryCount is absent.
	RetryCountAlso []string `json:"retry_count_also,omitempty"`
	// RetryCountFrom is the header's value on a message that was never retried: 0, or 1 where attempts are counted.
	RetryCountFrom int `json:"retry_count_from"`
	// FirstSeen carries when the message was first delivered, in milliseconds since 1970.
	FirstSeen string `json:"first_seen,omitempty"`
	// Error carries why the message failed.
	Error string `json:"error,omitempty"`
	// ErrorType carries the kind of the error.
	ErrorType string `json:"error_type,omitempty"`
	// ErrorMax is the longest error text in characters; 0 leaves the bound to the consumer.
	ErrorMax int `json:"error_max,omitempty"`
	// FirstFailedAt and LastFailedAt carry when the message failed, in RFC 3339.
	FirstFailedAt string `json:"first_failed_at,omitempty"`
	LastFailedAt  string `json:"last_failed_at,omitempty"`
	// OriginalExchange, OriginalRoutingKey and OriginalQueue carry where the message came from.
	OriginalExchange   string `json:"original_exchange,omitempty"`
	OriginalRoutingKey string `json:"original_routing_key,omitempty"`
	OriginalQueue      string `json:"original_queue,omitempty"`
	// Attempts carries how often the message was handed to a handler.
	Attempts string `json:"attempts,omitempty"`
}

// scheme is everything that tells one convention from another. A function that
// is nil means that the convention has no such thing.
type scheme struct {
	deadLetter, parked, retryExchange func(base string) string
	// hold names the hold queue of tier (from 0).
	hold func(base string, tier int, delay time.Duration) string
	// wholeSeconds: a hold queue's name can only say whole seconds.
	wholeSeconds bool
	// onePerAttempt: hold queue n belongs to attempt n.
	onePerAttempt bool
	// noLadder says why a ladder is refused; empty where it is not.
	noLadder string
	// groups: derived names may carry a consumer group.
	groups bool
	// sharded: a tier may be split into sub-queues with staggered delays.
	sharded bool
	// doubledDelay: the application gives its hold queues twice their delay to live.
	doubledDelay bool
	// shardExchange names the exchange that spreads a sequenced topic over its shards, and shard the shards; nil where a
	// sequenced topic has one work queue.
	shardExchange func(base string) string
	shard         func(base string, i int) string
	// noSequence says why a sequenced topic is refused; empty where it is not.
	noSequence string

	workTypes []QueueType // allowed, the default first
	// deadExchange is where the work queue dead-letters to; nil where it does not.
	deadExchange func(base string) string
	// homeExchange is where an expired message leaves its hold queue; "" is the default exchange.
	homeExchange string
	// sharedExchanges belong to every topic of the vhost and are never deleted.
	sharedExchanges []string
	// holdRoutedBy and deadRoutedBy name the exchange that hold queues, and dead-letter and parked queues, are bound
	// to by their own names; nil where they are reached through the default exchange only.
	holdRoutedBy, deadRoutedBy func(base string) string
	// strict: arguments that keep messages safe where the broker allows them (at-least-once, reject-publish, limits).
	strict bool
	// holdType and deadType are the types of hold queues and of dead-letter and parked queues. An empty deadType follows the work queue.
	holdType, deadType QueueType
	// maxPriority is the default of x-max-priority on the work queue.
	maxPriority int

	headers Headers
	// reserved matches names that another topic's derived names could take; its first group is the ending.
	reserved *regexp.Regexp
}

func suffix(s string) func(string) string { return func(base string) string { return base + s } }

func constant(s string) func(string) string { return func(string) string { return s } }

// migratingSuffix marks the queue that holds a work queue's messages while its
// arguments change; reserved under every convention.
const migratingSuffix = "-migrating"

// Names of the exchanges that all topics of the acemq convention share.
const (
	acemqRetryExchange      = "acemq.retry"
	acemqDeadLetterExchange = "acemq.dlx"
)

var schemes = map[Convention]scheme{
	Redeliver: {
		deadLetter:    suffix("-dlq"),
		parked:        suffix("-parked"),
		retryExchange: suffix("-retry"),
		hold: func(base string, _ int, d time.Duration) string {
			if d%time.Second == 0 {
				return fmt.Sprintf("%s-hold-%ds", base, d/time.Second)
			}
			return fmt.Sprintf("%s-hold-%dms", base, d/time.Millisecond)
		},
		sharded:      true,
		workTypes:    []QueueType{Quorum},
		deadExchange: suffix("-retry"),
		holdRoutedBy: suffix("-retry"),
		deadRoutedBy: suffix("-retry"),
		strict:       true,
		holdType:     Quorum,
		deadType:     Quorum,
		headers:      Headers{RetryCount: "x-redeliver-retry-count", FirstSeen: "x-redeliver-first-seen", Error: "x-redeliver-error"},
		reserved:     regexp.MustCompile(`(?s).(-dlq|-parked|-retry|-hold-[0-9]+m?s(\.s[0-9]+)?|-migrating)$`),
	},
	Shove: {
		deadLetter: suffix("-dlq"),
		hold: func(base string, _ int, d time.Duration) string {
			return fmt.Sprintf("%s-hold-%ds", base, d/time.Second)
		},
		wholeSeconds:  true,
		groups:        true,
		shardExchange: suffix("-seq-hash"),
		shard:         func(base string, i int) string { return fmt.Sprintf("%s-seq-%d", base, i) },
		workTypes:     []QueueType{Classic},
		deadExchange:  constant(""),
		holdType:      Classic,
		deadType:      Classic,
		headers:       Headers{RetryCount: "x-retry-count", RetryCountAlso: []string{"x-shove-retry-count"}},
		reserved:      regexp.MustCompile(`(?s).(-dlq|-hold-[0-9]+s|-seq-hash|-seq-[0-9]+(-hold-[0-9]+s)?|-migrating)$`),
	},
	AceMQ: {
		deadLetter: suffix(".dlq"),
		parked:     suffix(".parked"),
		hold: func(base string, _ int, d time.Duration) string {
			for _, u := range durationUnits[1:] { // days are not written
				if d%u.size == 0 {
					return fmt.Sprintf("%s.retry.%d%s", base, d/u.size, u.suffix)
				}
			}
			return fmt.Sprintf("%s.retry.%dms", base, d/time.Millisecond)
		},
		workTypes:       []QueueType{Quorum},
		deadExchange:    constant(acemqDeadLetterExchange),
		homeExchange:    acemqRetryExchange,
		sharedExchanges: []string{acemqRetryExchange, acemqDeadLetterExchange},
		deadRoutedBy:    constant(acemqDeadLetterExchange),
		holdType:        Classic,
		deadType:        Classic,
		headers:         Headers{RetryCount: "x-acemq-attempt", RetryCountFrom: 1, FirstSeen: "x-acemq-first-seen", Error: "x-acemq-error"},
		reserved:        regexp.MustCompile(`(?s).(\.dlq|\.parked|\.retry\.[0-9]+(ms|s|m|h)|-migrating)$`),
	},
	RabbitKit: {
		deadLetter: suffix(".dlq"),
		hold: func(base string, tier int, _ time.Duration) string {
			return fmt.Sprintf("%s.retry.%d", base, tier+1)
		},
		onePerAttempt: true,
		sharded:       true,
		workTypes:     []QueueType{Quorum, Classic},
		deadExchange:  constant(""),
		holdType:      Classic,
		headers: Headers{
			RetryCount: "x-rabbitkit-retry-count",
			Error:      "x-rabbitkit-error-message", ErrorType: "x-rabbitkit-error-type", ErrorMax: 512,
			FirstFailedAt: "x-rabbitkit-first-failed-at", LastFailedAt: "x-rabbitkit-last-failed-at",
			OriginalExchange: "x-rabbitkit-original-exchange", OriginalRoutingKey: "x-rabbitkit-original-routing-key",
			OriginalQueue: "x-rabbitkit-original-queue",
		},
		reserved: regexp.MustCompile(`(?s).(\.dlq|\.retry\.[0-9]+(\.s[0-9]+)?|-migrating)$`),
	},
	Queuey: {
		deadLetter: suffix(".dead"),
		hold: func(base string, _ int, d time.Duration) string {
			return fmt.Sprintf("%s.deferred.%d", base, d/time.Millisecond)
		},
		noLadder: "its applications declare hold queues that expire by themselves, on demand, " +
			"and a queue that Terraform owns must not expire; leave the ladder out and set the topic's retry.delays",
		doubledDelay: true,
		noSequence: "its applications declare their work queues without " + ArgSingleActiveConsumer + " and cannot be told to, " +
			"so that RabbitMQ would refuse their declaration (406) of a queue that has it",
		workTypes:   []QueueType{Classic},
		holdType:    Classic,
		deadType:    Classic,
		maxPriority: 10,
		headers:     Headers{Error: "x-death-reason", OriginalQueue: "x-original-queue", Attempts: "x-attempts"},
		reserved:    regexp.MustCompile(`(?s).(\.dead|\.deferred\.[0-9]+|-migrating)$`),
	},
}

// scheme returns the convention's scheme. That of an unknown convention, which
// [Identity.Validate] refuses, has nothing.
func (c Convention) scheme() scheme {
	if c == "" {
		c = Redeliver
	}
	return schemes[c]
}

// Headers returns the headers in which the convention keeps a message's history.
func (c Convention) Headers() Headers { return c.scheme().headers }

// HasParkedQueue reports whether the convention has a parked queue.
func (c Convention) HasParkedQueue() bool { return c.scheme().parked != nil }

// HasConsumerGroups reports whether derived names may carry a consumer group.
func (c Convention) HasConsumerGroups() bool { return c.scheme().groups }

// QueueTypes returns the work queue's possible types, the default first.
func (c Convention) QueueTypes() []QueueType { return c.scheme().workTypes }

// derivedFrom splits a name that looks like one the convention derives from a
// topic into that topic (with its consumer group) and the ending; both are
// empty where it does not.
func (c Convention) derivedFrom(name string) (base, ending string) {
	reserved := c.scheme().reserved
	if reserved == nil {
		return "", ""
	}
	match := reserved.FindStringSubmatchIndex(name)
	if match == nil {
		return "", ""
	}
	return name[:match[2]], name[match[2]:]
}

// quotedList writes values as "a", "b", "c".
func quotedList[T ~string](values []T) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = fmt.Sprintf("%q", string(v))
	}
	return strings.Join(quoted, ", ")
}
