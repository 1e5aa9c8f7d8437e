package topology

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// Arguments that this package can explain and does not compute.
const (
	ArgMaxLength      = "x-max-length"
	ArgMaxLengthBytes = "x-max-length-bytes"
	ArgExpires        = "x-expires"
)

// effect says what a difference in one argument means for messages. In its
// texts {want} is what the contract wants and {live} what is live.
type effect struct {
	// changed: both have it with different values; missing: the broker lacks it; added: the contract lacks it.
	changed, missing, added string
	// show writes a value for people; nil shows its JSON.
	show func(canonical string) string
	// harmless: where the contract does not ask for it, no message fares otherwise for its being there.
	harmless bool
}

// effects holds every argument and property whose meaning is known. The facts
// are measured ones; where brokers differ, the text says which does what.
var effects = map[string]effect{
	ArgQueueType: {
		changed: "this is a {live} queue and not a {want} one: it stores, counts and dead-letters messages by other rules",
		missing: "this is a classic queue and not a {want} one: it stores, counts and dead-letters messages by other rules",
		added:   "this is a {live} queue and not a classic one: it stores, counts and dead-letters messages by other rules",
		show:    showText,
	},
	ArgMessageTTL: {
		changed: "messages leave this queue after {live} instead of {want}",
		missing: "messages stay here until they are consumed instead of leaving after {want}: what is in a hold queue never goes home",
		added:   "messages that wait here for {live} leave the queue: for its dead-letter exchange where it has one, else for good",
		show:    showMilliseconds,
	},
	ArgDeadLetterExchange: {
		changed: "rejected and expired messages go to {live} instead of {want}",
		missing: "rejected and expired messages are discarded instead of going to {want}",
		added:   "rejected and expired messages go to {live}, where the contract has them go nowhere",
		show:    showExchange,
	},
	ArgDeadLetterKey: {
		changed: "dead-lettered messages are routed by {live} instead of {want} and may reach another queue or none",
		missing: "dead-lettered messages keep their own routing key instead of {want} and may reach another queue or none",
		added:   "dead-lettered messages are routed by {live} instead of their own key and may reach another queue or none",
	},
	ArgDeadLetterStrategy: {
		changed: "messages are dead-lettered {live} instead of {want}: at-most-once loses one that cannot be routed or is under way when a node fails",
		missing: "messages are dead-lettered at most once instead of {want}: one that cannot be routed or is under way when a node fails is lost",
		added:   "messages are dead-lettered {live}: under at-least-once, one whose target is missing is kept and tried again about every three minutes",
		show:    showText,
	},
	ArgOverflow: {
		changed: "a full queue does {live} instead of {want}, and at-least-once dead-lettering falls back to at-most-once without reject-publish",
		missing: "a full queue drops its oldest messages instead of doing {want}, and at-least-once dead-lettering falls back to at-most-once without reject-publish",
		added:   "a full queue does {live}, where the contract leaves it to the broker's default of dropping the oldest messages",
		show:    showText,
	},
	ArgDeliveryLimit: {
		changed: "the broker takes a message away after {live} redeliveries instead of {want}, whatever the retry policy says",
		missing: "without a limit of {want} RabbitMQ 4 takes a message away after 20 redeliveries and 3.10 never does, so that a crash loop has no end there",
		added:   "the broker takes a message away after {live} redeliveries, whatever the retry policy says",
		show:    showLimit,
	},
	ArgMaxPriority: {
		changed: "priorities count up to {live} instead of {want}: higher ones are treated alike",
		missing: "priorities have no effect instead of counting up to {want}: a deferred message waits behind the backlog",
		added:   "priorities count up to {live}, so that messages may overtake each other",
	},
	ArgConsumerTimeout: {
		changed: "a consumer may hold a message for {live} instead of {want} before RabbitMQ takes it back",
		missing: "a consumer may hold a message for the broker's own timeout (30m unless configured) instead of {want} before RabbitMQ takes it back",
		added:   "a consumer may hold a message for {live} before RabbitMQ takes it back, where the contract counts on the broker's own timeout",
		show:    showMilliseconds,
	},
	ArgMaxLength:      maxLength("messages"),
	ArgMaxLengthBytes: maxLength("bytes of messages"),
	ArgExpires: {
		changed: "RabbitMQ deletes this queue with its messages when it was unused for {live} instead of {want}",
		missing: "this queue is kept instead of being deleted when it was unused for {want}",
		added:   "RabbitMQ deletes this queue with its messages when it was unused for {live}, and a queue that nobody consumes is unused",
		show:    showMilliseconds,
	},
	ArgSingleActiveConsumer: {
		changed: "whether one consumer at a time receives messages is {live} instead of {want}: order across consumers depends on it",
		missing: "all consumers receive messages at a time (single active consumer is absent instead of {want}): order across consumers depends on it",
		added:   "whether one consumer at a time receives messages is {live}, where the contract lets all consumers work",
	},
	ArgDelayedRetryType: {
		changed: "RabbitMQ 4.3 delays {live} returned messages instead of {want}; older brokers ignore it",
		missing: "returned messages come back at once instead of being delayed ({want})",
		added:   "RabbitMQ 4.3 delays returned messages ({live}) in addition to what the retry policy waits; older brokers ignore it",
		show:    showText,
	},
	ArgDelayedRetryMin: {
		changed: "a returned message waits {live} per retry instead of {want}",
		missing: "a returned message does not wait {want} per retry",
		added:   "a returned message waits {live} per retry on RabbitMQ 4.3 where delayed retry is on",
		show:    showMilliseconds,
	},
	ArgDelayedRetryMax: {
		changed: "a returned message waits at most {live} instead of {want}",
		missing: "the wait of a returned message does not grow towards {want}: without a maximum it stays at the minimum",
		added:   "the wait of a returned message grows up to {live} on RabbitMQ 4.3 where delayed retry is on",
		show:    showMilliseconds,
	},
	ArgQuorumGroupSize:       replicas,
	ArgQuorumTargetSize:      replicas,
	ArgLeaderLocator:         placement,
	"x-queue-master-locator": placement,
	"x-queue-mode":           storage,
	"x-queue-version":        storage,
	KeyDurable: {
		changed: "the queue and its messages do not survive a restart of the broker",
	},
	KeyAutoDelete: {
		changed: "RabbitMQ deletes the queue with its messages when its last consumer leaves",
	},
	KeyExclusive: {
		changed: "the queue belongs to one connection and goes, with its messages, when that closes",
	},
}

var (
	replicas = effect{
		changed: "the queue starts with {live} replicas instead of {want}: how many nodes may fail before messages are out of reach",
		missing: "the queue starts with the broker's own number of replicas instead of {want}: how many nodes may fail before messages are out of reach",
		added:   "the queue starts with {live} replicas: how many nodes may fail before messages are out of reach",
	}
	placement = effect{
		changed: "the queue's leader was placed by {live} instead of {want}; messages fare the same",
		missing: "the queue's leader was placed by the broker's default instead of {want}; messages fare the same",
		added:   "the queue's leader was placed by {live}; messages fare the same",

		harmless: true,
	}
	storage = effect{
		changed: "a classic queue keeps messages on disk by {live} instead of {want}: memory and speed differ, not where messages go",
		missing: "a classic queue keeps messages on disk by the broker's default instead of {want}: memory and speed differ, not where messages go",
		added:   "a classic queue keeps messages on disk by {live}: memory and speed differ, not where messages go",

		harmless: true,
	}
)

func maxLength(of string) effect {
	return effect{
		changed: "the queue holds at most {live} " + of + " instead of {want}; past that its oldest are dropped or new ones refused, as x-overflow says",
		missing: "the queue grows without bound instead of holding at most {want} " + of,
		added:   "the queue holds at most {live} " + of + "; past that its oldest are dropped or new ones refused, as x-overflow says",
	}
}

// ignoredByClassic are arguments that a classic queue accepts and does nothing
// with: measured on 3.10, 4.0 and 4.3.
var ignoredByClassic = map[string]string{
	ArgDeliveryLimit:      "classic queues count no deliveries and ignore it",
	ArgDeadLetterStrategy: "classic queues always dead-letter at most once and ignore it",
}

// explain says in one sentence what a difference means for messages.
func explain(d Difference) string {
	if d.Meaning == EqualInEffect && d.Key == ArgQueueType {
		return "the queue has the right type either way: whether the argument is written out makes no difference to messages"
	}
	e, known := effects[d.Key]
	if !known {
		switch {
		case d.Want == "":
			return "the contract does not have this argument and its effect on messages is not known here"
		case d.Live == "":
			return "the configuration asks for this argument and the queue lacks it; its effect on messages is not known here"
		default:
			return "the configuration asks for another value; the effect on messages is not known here"
		}
	}
	show := e.show
	if show == nil {
		show = func(canonical string) string { return canonical }
	}
	text := e.changed
	switch {
	case d.Live == "":
		text = e.missing
	case d.Want == "":
		text = e.added
	}
	return strings.NewReplacer("{want}", show(d.Want), "{live}", show(d.Live)).Replace(text)
}

// showText shows a string without its quotes.
func showText(canonical string) string {
	var s string
	if json.Unmarshal([]byte(canonical), &s) == nil && s != "" {
		return s
	}
	return canonical
}

func showExchange(canonical string) string {
	if canonical == `""` {
		return "the default exchange"
	}
	return "exchange " + canonical
}

// showMilliseconds shows a number of milliseconds as a duration, and anything else as it is.
func showMilliseconds(canonical string) string {
	ms, err := strconv.ParseInt(canonical, 10, 64)
	if err != nil || ms < 0 || ms > int64(1<<63-1)/int64(time.Millisecond) {
		return canonical
	}
	return FormatDuration(time.Duration(ms) * time.Millisecond)
}

// showLimit says what a negative limit is on which broker.
func showLimit(canonical string) string {
	if n, err := strconv.ParseInt(canonical, 10, 64); err == nil && n < 0 {
		return canonical + " (none on RabbitMQ 4; a single delivery on 3.10)"
	}
	return canonical
}
