package topology

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
)

// Meaning says what a difference between the contract and a broker amounts to.
type Meaning string

// The meanings.
const (
	// ChangesBehaviour: messages fare otherwise than the contract says. RabbitMQ cannot change an argument of a live
	// queue, so only a replacement repairs it.
	ChangesBehaviour Meaning = "changes_behaviour"
	// EqualInEffect: written otherwise on the broker, but no message fares otherwise. Nothing to repair.
	EqualInEffect Meaning = "equal_in_effect"
	// UnknownArgument: the broker has an argument that the contract does not compute and this package does not know, so
	// that nobody can say what it does to messages.
	UnknownArgument Meaning = "unknown_argument"
)

// Keys of differences that are no arguments but properties of the queue.
const (
	KeyDurable    = "durable"
	KeyAutoDelete = "auto_delete"
	KeyExclusive  = "exclusive"
)

// Difference is one argument or property in which a live object is not what
// the contract computes.
type Difference struct {
	// Key is the argument's name, or one of [KeyDurable], [KeyAutoDelete] and [KeyExclusive].
	Key string
	// Want is what the contract computes and Live what the broker has, in the form of [CanonicalJSON]; "" is absent.
	Want, Live string
	// Meaning says whether the difference matters.
	Meaning Meaning
	// Explanation says in one sentence what it means for messages.
	Explanation string
}

// String writes the difference on one line, for logs and diagnostics.
func (d Difference) String() string {
	return fmt.Sprintf("%s: want %s, live %s: %s", d.Key, orAbsent(d.Want), orAbsent(d.Live), d.Explanation)
}

func orAbsent(text string) string {
	if text == "" {
		return "absent"
	}
	return text
}

// LiveQueue is a queue as a broker reports it.
type LiveQueue struct {
	Name string
	// Type is the type the broker reports; "" where it is not known, and the arguments are believed.
	Type                           QueueType
	Durable, AutoDelete, Exclusive bool
	Arguments                      Arguments
}

// DiffArguments compares arguments by AMQP value and returns what differs,
// sorted by key. Integers are compared by value and not by width; the string
// "5000" is not the number 5000; x-queue-type "classic" and its absence are
// equal in effect. Arguments of a queue are better compared by [DiffQueue],
// which knows its type.
func DiffArguments(want, live Arguments) []Difference {
	var out []Difference
	for _, key := range unionOfKeys(want, live) {
		wantValue, wanted := want[key]
		liveValue, present := live[key]
		d := Difference{Key: key, Meaning: ChangesBehaviour}
		if wanted {
			d.Want = canonicalValue(wantValue)
		}
		if present {
			d.Live = canonicalValue(liveValue)
		}
		if d.Want == d.Live {
			continue
		}
		switch e, known := effects[key]; {
		case key == ArgQueueType && typeOf(d.Want) == typeOf(d.Live), e.harmless && !wanted:
			d.Meaning = EqualInEffect
		case !known && !wanted:
			d.Meaning = UnknownArgument
		}
		d.Explanation = explain(d)
		out = append(out, d)
	}
	return out
}

// DiffQueue compares a live queue with what the contract computes for it, and
// returns what differs, sorted by key. A difference in an argument that a queue
// of this type ignores is equal in effect.
func DiffQueue(want Queue, live LiveQueue) []Difference {
	diffs := DiffArguments(want.Arguments, live.Arguments)
	diffs = diffType(diffs, want, live)
	if want.Type == Classic && !slices.ContainsFunc(diffs, func(d Difference) bool { return d.Key == ArgQueueType && d.Meaning != EqualInEffect }) {
		for i, d := range diffs {
			if reason := ignoredByClassic[d.Key]; reason != "" {
				diffs[i].Meaning, diffs[i].Explanation = EqualInEffect, reason
			}
		}
	}
	for _, p := range []struct {
		key        string
		want, live bool
	}{
		{KeyDurable, true, live.Durable},
		{KeyAutoDelete, false, live.AutoDelete},
		{KeyExclusive, false, live.Exclusive},
	} {
		if p.want != p.live {
			d := Difference{Key: p.key, Want: strconv.FormatBool(p.want), Live: strconv.FormatBool(p.live), Meaning: ChangesBehaviour}
			d.Explanation = explain(d)
			diffs = append(diffs, d)
		}
	}
	sort.SliceStable(diffs, func(i, j int) bool { return diffs[i].Key < diffs[j].Key })
	return diffs
}

// diffType puts the type that the broker reports in the place of what the
// arguments say about it: a vhost's default queue type can make a quorum queue
// without the argument.
func diffType(diffs []Difference, want Queue, live LiveQueue) []Difference {
	if live.Type == "" || want.Type == "" {
		return diffs
	}
	at := slices.IndexFunc(diffs, func(d Difference) bool { return d.Key == ArgQueueType })
	if at < 0 {
		if live.Type == want.Type {
			return diffs
		}
		at = len(diffs)
		diffs = append(diffs, Difference{Key: ArgQueueType})
	}
	d := &diffs[at]
	d.Meaning = EqualInEffect
	if live.Type != want.Type {
		d.Meaning = ChangesBehaviour
		d.Want, d.Live = CanonicalJSON(string(want.Type)), CanonicalJSON(string(live.Type))
	}
	d.Explanation = explain(*d)
	return diffs
}

// Breaking reports whether any difference must be repaired by a replacement:
// one that changes behaviour or is not known, unless its key is ignored.
func Breaking(diffs []Difference, ignored ...string) bool {
	return slices.ContainsFunc(diffs, func(d Difference) bool {
		return d.Meaning != EqualInEffect && !slices.Contains(ignored, d.Key)
	})
}

// typeOf is the queue type that an x-queue-type argument stands for: classic
// where there is none. The argument is in canonical JSON.
func typeOf(argument string) string {
	if argument == "" {
		return CanonicalJSON(string(Classic))
	}
	return argument
}

// canonicalValue is [CanonicalJSON] of a value that may not be normalised yet.
func canonicalValue(value any) string {
	if normal, err := normalise(value); err == nil {
		value = normal
	}
	return CanonicalJSON(value)
}

func unionOfKeys(a, b Arguments) []string {
	keys := make([]string, 0, len(a)+len(b))
	for key := range a {
		keys = append(keys, key)
	}
	for key := range b {
		if _, both := a[key]; !both {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	return keys
}
