package topology

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sqsDefaults are what AWS has where a managed attribute is not set.
var sqsDefaults = SQSAttributes{
	AttrVisibilityTimeout: seconds(DefaultVisibilityTimeout), AttrRetention: seconds(DefaultRetention), AttrDelay: "0", AttrReceiveWait: "0",
	AttrMaxMessageSize: strconv.Itoa(MaxMessageSize), AttrManagedSSE: "true", AttrKMSKey: "", AttrKMSReuse: seconds(DefaultKMSReuse),
	AttrPolicy: "", AttrRedrivePolicy: "", AttrRedriveAllowPolicy: "",
	AttrFIFO: "false", AttrContentBasedDedup: "false", AttrDeduplicationScope: ScopeQueue, AttrFIFOThroughputLimit: LimitPerQueue,
}

// fifoOnly are the attributes that only FIFO queues have.
var fifoOnly = []string{AttrContentBasedDedup, AttrDeduplicationScope, AttrFIFOThroughputLimit}

// encryption are the attributes that are set together: without its key a queue that had one is not encrypted at all, and
// SQS refuses a key beside its own encryption.
var encryption = []string{AttrManagedSSE, AttrKMSKey, AttrKMSReuse}

// Managed are the attributes that [SQSSpec.Attributes] and [SQSDeadEnd.Attributes] have, complete and in one form: what is
// absent has AWS's default, numbers and policies that mean the same are the same text, and those that mean nothing are
// left out, "" included. What differs between two queues differs in it.
func (a SQSAttributes) Managed() SQSAttributes {
	out := SQSAttributes{}
	for _, name := range slices.Sorted(maps.Keys(sqsDefaults)) {
		value := a[name]
		if name == AttrManagedSSE && value == "" && a[AttrKMSKey] != "" {
			value = "false" // one excludes the other
		}
		if value = canonicalAttribute(name, cmp.Or(value, sqsDefaults[name])); value != "" {
			out[name] = value
		}
	}
	if !out.FIFO() {
		delete(out, AttrFIFO) // standard queues do not have it
		for _, name := range fifoOnly {
			delete(out, name)
		}
	}
	if out[AttrKMSKey] == "" {
		delete(out, AttrKMSReuse) // has no effect without a key
	}
	return out
}

// ManagedOn is [SQSAttributes.Managed] on a queue that has the attributes have: of AWS's defaults, the one that is there.
func (a SQSAttributes) ManagedOn(have SQSAttributes) SQSAttributes {
	out := a.Managed()
	if a[AttrMaxMessageSize] == "" && have.MaxMessageSize() == OldMaxMessageSize {
		out[AttrMaxMessageSize] = strconv.Itoa(OldMaxMessageSize)
	}
	return out
}

// Set are the attributes to create a queue with: those that are set.
func (a SQSAttributes) Set() SQSAttributes {
	out := maps.Clone(a)
	maps.DeleteFunc(out, func(_, value string) bool { return value == "" })
	return out
}

// Repair are the attributes to set on a queue that has the attributes have, so that it has these. Where one of the
// attributes of its encryption differs all of them are there. What SQS does not unset by "" is set to its default. A queue
// cannot become a FIFO queue.
func (a SQSAttributes) Repair(have SQSAttributes) SQSAttributes {
	out := SQSAttributes{}
	for _, d := range DiffSQSAttributes(a, have) {
		names := []string{d.Key}
		if slices.Contains(encryption, d.Key) {
			names = encryption
		}
		for _, name := range names {
			if value, managed := a[name]; managed {
				out[name] = cmp.Or(value, sqsDefaults[name])
			}
		}
	}
	delete(out, AttrFIFO)
	return out
}

// canonicalAttribute writes an attribute's value in one form. What cannot be read stays as it is.
func canonicalAttribute(name, value string) string {
	switch name {
	case AttrPolicy:
		if policy, err := CanonicalPolicy(value); err == nil {
			return policy
		}
	case AttrRedrivePolicy, AttrRedriveAllowPolicy:
		return canonicalRedrive(value)
	case AttrKMSKey, AttrDeduplicationScope, AttrFIFOThroughputLimit:
	case AttrManagedSSE, AttrFIFO, AttrContentBasedDedup:
		return strings.ToLower(value)
	default:
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return strconv.FormatInt(n, 10)
		}
	}
	return value
}

// canonicalRedrive writes a redrive policy or a redrive-allow policy in one form: SQS takes the count as a number and as
// text, and sources in any order; one that allows everything is none.
func canonicalRedrive(value string) string {
	read, err := decodeStrict([]byte(value))
	policy, isObject := read.(map[string]any)
	if err != nil || !isObject {
		return value
	}
	if len(policy) == 0 || policy[redrivePermission] == redriveAllowAll {
		return ""
	}
	if count, ok := wholeOf(policy[redriveCount]); ok {
		policy[redriveCount] = count
	}
	if sources, ok := policy[redriveSources].([]any); ok {
		policy[redriveSources] = sortedSet(sources)
	}
	return canonicalValue(policy)
}

// wholeOf is a JSON value's whole number, which may be written as text.
func wholeOf(value any) (int64, bool) {
	var text string
	switch v := value.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = v
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// sortedSet sorts a list by the text of its elements and drops repetitions.
func sortedSet(list []any) []any {
	sorted := slices.SortedFunc(slices.Values(list), func(a, b any) int { return strings.Compare(canonicalValue(a), canonicalValue(b)) })
	return slices.CompactFunc(sorted, func(a, b any) bool { return canonicalValue(a) == canonicalValue(b) })
}

// SQSDifference is one attribute in which a live queue is not what it should be.
type SQSDifference struct {
	// Key is the attribute's name.
	Key string
	// Want and Have are in the form of [SQSAttributes.Managed]; "" is not set.
	Want, Have string
	// Explanation says in one sentence what the difference means for messages.
	Explanation string
}

// String writes the difference on one line, for logs and diagnostics.
func (d SQSDifference) String() string {
	return Difference{Key: d.Key, Want: d.Want, Live: d.Have, Explanation: d.Explanation}.String()
}

// DiffSQSAttributes compares the attributes of a live queue with those it should have, by meaning, and returns what
// differs, sorted by name. Attributes that are not managed are not looked at, and an absent one has AWS's default.
func DiffSQSAttributes(want, have SQSAttributes) []SQSDifference {
	wanted, live := want.ManagedOn(have), have.Managed()
	var out []SQSDifference
	for _, name := range slices.Sorted(maps.Keys(sqsDefaults)) {
		if wanted[name] == live[name] || (slices.Contains(fifoOnly, name) || name == AttrKMSReuse) && (wanted[name] == "" || live[name] == "") {
			continue // what only FIFO queues or keys have follows from another difference
		}
		out = append(out, SQSDifference{Key: name, Want: wanted[name], Have: live[name], Explanation: explainSQS(name, wanted[name], live[name])})
	}
	return out
}

// explainSQS says what a difference in an attribute means for messages.
func explainSQS(name, want, have string) string {
	texts := sqsEffects[name]
	text := texts.changed
	switch {
	case have == "" && texts.missing != "":
		text = texts.missing
	case want == "" && texts.added != "":
		text = texts.added
	}
	show := func(value string) string { return value }
	if texts.seconds {
		show = showSeconds
	}
	return strings.NewReplacer("{want}", show(want), "{have}", show(have)).Replace(text)
}

// sqsEffect says what a difference in one attribute means for messages, as [effect] does. missing and added may be left out
// where changed says it all.
type sqsEffect struct {
	changed, missing, added string
	seconds                 bool
}

var sqsEffects = map[string]sqsEffect{
	AttrVisibilityTimeout: {changed: "a message whose consumer is gone is received again after {have} instead of {want}", seconds: true},
	AttrRetention:         {changed: "SQS deletes a message {have} after it was sent instead of {want}, silently", seconds: true},
	AttrDelay:             {changed: "a message is received {have} after it was sent at the earliest instead of {want}", seconds: true},
	AttrReceiveWait:       {changed: "a receive that does not say how long to wait for a message waits {have} instead of {want}", seconds: true},
	AttrMaxMessageSize:    {changed: "messages of up to {have} bytes are taken instead of {want}"},
	AttrManagedSSE:        {changed: "encryption by keys that SQS manages is {have} instead of {want}"},
	AttrKMSKey: {
		changed: "messages are encrypted with the key {have} instead of {want}: producers and consumers need permission on it",
		missing: "messages are not encrypted with the key {want}",
		added:   "messages are encrypted with the key {have}: producers and consumers need permission on it",
	},
	AttrKMSReuse: {changed: "a data key is used for {have} instead of {want} before KMS is asked for another", seconds: true},
	AttrPolicy: {
		changed: "others may do something else with the queue than configured",
		missing: "others may not do with the queue what is configured: services and accounts that send to it are refused",
		added:   "others may do with the queue what is not configured",
	},
	AttrRedrivePolicy: {
		changed: "messages that fail move by {have} instead of {want}",
		missing: "messages that fail are received again until their retention ends and then deleted, instead of moving by {want}",
		added:   "messages that fail move by {have}, where the configuration has them go nowhere",
	},
	AttrRedriveAllowPolicy: {
		changed: "other queues may use this one as their dead-letter queue than configured: {have} instead of {want}",
		missing: "any queue of the account may use this one as its dead-letter queue, instead of {want}",
		added:   "only some queues may use this one as their dead-letter queue: {have}",
	},
	AttrFIFO: {
		changed: "this is another type of queue: order and deduplication differ, and its type cannot be changed",
		missing: "this is a standard queue and not a FIFO queue: messages come in any order and may come twice; its type cannot be changed",
		added:   "this is a FIFO queue and not a standard one: a message that fails holds up its group; its type cannot be changed",
	},
	AttrContentBasedDedup:   {changed: "taking a message's body for its deduplication id is {have} instead of {want}: a message without an id is refused where it is false"},
	AttrDeduplicationScope:  {changed: "messages are deduplicated per {have} instead of {want}"},
	AttrFIFOThroughputLimit: {changed: "the limit on messages a second is {have} instead of {want}"},
}

// showSeconds shows a number of seconds as a duration, and anything else as it is.
func showSeconds(text string) string {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return text
	}
	return FormatDuration(time.Duration(n) * time.Second)
}
