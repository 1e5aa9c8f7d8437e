package topology

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Policy is a policy or an operator policy of a vhost.
type Policy struct {
	Name string
	// Pattern is the regular expression that the names of its objects match.
	Pattern string
	// ApplyTo is "all", "queues", "exchanges", or since RabbitMQ 3.12 "classic_queues", "quorum_queues" or "streams".
	ApplyTo string
	// Priority decides between policies that match the same queue: the highest applies, alone.
	Priority int
	// Operator policies apply in addition to the policies.
	Operator bool
	// Definition is what it sets, by the policy's own keys, which are those of arguments without "x-".
	Definition Arguments

	compiled Matcher
	// only is the queue whose own policy it is.
	only string
	// assumed: it is taken to match whatever its pattern, which cannot be read, may match.
	assumed bool
}

// Matcher finds a pattern in names.
type Matcher interface {
	MatchString(name string) (bool, error)
}

// ReadPattern compiles a pattern of a policy.
type ReadPattern func(pattern string) (Matcher, error)

// goPattern is one that Go reads, which always finds an answer.
type goPattern struct{ *regexp.Regexp }

func (p goPattern) MatchString(name string) (bool, error) { return p.Regexp.MatchString(name), nil }

// Compiled is the policy with its pattern compiled, for those who ask about many queues. Erlang reads patterns that Go does
// not, such as "^(?!amq\.)": read, unless it is nil, is asked for those. What that does not read either may match or not.
func (p Policy) Compiled(read ReadPattern) Policy {
	// There may be as many of a queue's own policies as there are queues: they are compared and not matched.
	if p.only = p.owner(); p.only != "" {
		return p
	}
	if pattern, err := regexp.Compile(p.Pattern); err == nil {
		p.compiled = goPattern{pattern}
	} else if read != nil {
		if pattern, err := read(p.Pattern); err == nil {
			p.compiled = pattern
		}
	}
	return p
}

func (p Policy) String() string {
	kind, doubt := "policy", ""
	if p.Operator {
		kind = "operator policy"
	}
	if p.assumed {
		doubt = fmt.Sprintf(" (if it applies: its pattern %q cannot be read here)", p.Pattern)
	}
	return fmt.Sprintf("%s %q%s", kind, p.Name, doubt)
}

// notApplied are settings that a policy of queues of a type may not have: RabbitMQ then applies nothing of it to them.
// Measured on 3.10, 4.0 and 4.3; some more are like that on some of these.
var notApplied = map[QueueType][]string{
	Classic: {ArgDeliveryLimit, ArgDeadLetterStrategy, "x-max-age", "x-initial-cluster-size", "x-stream-max-segment-size-bytes", "x-target-group-size"},
	Quorum:  {"x-queue-mode", "x-queue-master-locator", "x-ha-mode", "x-max-age", "x-initial-cluster-size", "x-stream-max-segment-size-bytes"},
}

// matches reports whether the policy can apply to the queue, and whether that is known: it is not where its pattern
// cannot be read.
func (p Policy) matches(q Queue) (matches, known bool) {
	switch p.ApplyTo {
	case "all", "queues", "", string(q.Type) + "_queues":
	default:
		return false, true
	}
	for key := range p.Definition {
		if slices.Contains(notApplied[q.Type], "x-"+key) {
			return false, true
		}
	}
	if p.compiled == nil && p.only == "" {
		p = p.Compiled(nil)
	}
	switch {
	case p.only != "":
		return p.only == q.Name, true
	case p.compiled == nil:
		return p.assumed, false
	}
	found, err := p.compiled.MatchString(q.Name)
	return found || err != nil && p.assumed, err == nil
}

// MayMatch reports that nobody but the broker knows whether the policy can apply to the queue.
func (p Policy) MayMatch(q Queue) bool {
	_, known := p.matches(q)
	return !known
}

// Policies are the policy and the operator policy that apply to the queue. live is the name of the policy that the
// broker says applies, "" where it does not say. A policy that may match or not is none of them: see [Queue.Hazards].
func (q Queue) Policies(policies []Policy, live string) []Policy {
	var out []Policy
	for _, operator := range []bool{false, true} {
		var best *Policy
		for _, p := range policies {
			matches, _ := p.matches(q)
			said := live != "" && !operator && p.Name == live
			if p.Operator == operator && (said || matches) && (best == nil || p.Priority > best.Priority) {
				best = &p
			}
		}
		if best != nil {
			out = append(out, *best)
		}
	}
	return out
}

// merging says what applies where the argument of a queue and its policy both say something.
type merging int

const (
	lowerApplies    merging = iota // the lower of two numbers
	argumentApplies                // the argument
	policyApplies                  // the policy
)

// merged are the keys of policies that matter to the contract. Measured on 3.10, 4.0 and 4.3; where queue types
// differ, [mergingOf] says how.
var merged = map[string]merging{
	ArgMessageTTL:         lowerApplies,
	ArgMaxLength:          lowerApplies,
	ArgMaxLengthBytes:     lowerApplies,
	ArgDeliveryLimit:      lowerApplies,
	ArgExpires:            lowerApplies,
	ArgConsumerTimeout:    lowerApplies,
	ArgDeadLetterExchange: argumentApplies,
	ArgDeadLetterKey:      argumentApplies,
	ArgDeadLetterStrategy: policyApplies,
	ArgOverflow:           policyApplies,
	ArgDelayedRetryType:   policyApplies,
	ArgDelayedRetryMin:    policyApplies,
	ArgDelayedRetryMax:    policyApplies,
}

func mergingOf(key string, kind QueueType) (how merging, known bool) {
	if key == ArgOverflow && kind == Classic {
		return argumentApplies, true
	}
	how, known = merged[key]
	return how, known
}

// Effect is what policies make of one argument of a queue.
type Effect struct {
	// Key is the argument's name.
	Key string
	// Argument is what the queue's arguments or its own policy say and Effective what applies, in the form of [CanonicalJSON]; "" is nothing.
	Argument, Effective string
	// Policy is the one that decides it.
	Policy Policy
}

// Effects are the settings that apply otherwise than q says because of a vhost's policies, sorted by key. live is the
// name of the policy that the broker says applies to the queue, "" where it does not say.
func (q Queue) Effects(policies []Policy, live string) []Effect {
	type setting struct {
		value any
		by    Policy
	}
	set := map[string]setting{}
	if q.Policy != nil { // once it is there it applies in the place of all others
		policies = append(slices.DeleteFunc(slices.Clone(policies), func(p Policy) bool { return !p.Operator }), *q.Policy)
		live = ""
	}
	want := q.Settings()
	for _, p := range q.Policies(policies, live) { // an operator policy comes last
		for key, value := range p.Definition {
			key = "x-" + key
			if have, both := set[key]; both && merged[key] == lowerApplies && !lower(value, have.value) {
				continue
			}
			set[key] = setting{value, p}
		}
	}
	var out []Effect
	for _, key := range slices.Sorted(maps.Keys(set)) {
		s := set[key]
		how, known := mergingOf(key, q.Type)
		argument, hasArgument := q.Arguments[key]
		switch {
		case !known, q.Type == Classic && ignoredByClassic[key] != "":
			continue
		case hasArgument && how == argumentApplies, hasArgument && how == lowerApplies && !lower(s.value, argument):
			continue
		}
		e := Effect{Key: key, Effective: CanonicalJSON(s.value), Policy: s.by}
		if value, wanted := want[key]; wanted {
			e.Argument = CanonicalJSON(value)
		}
		if e.Argument != e.Effective {
			out = append(out, e)
		}
	}
	return out
}

// lower reports whether a is a smaller number than b; a number is lower than what is none.
func lower(a, b any) bool {
	x, isNumber := a.(int64)
	y, isNumberToo := b.(int64)
	return isNumber && (!isNumberToo || x < y)
}

// Contradictions are those effects of policies that the contract does not allow for: what happens to messages is not what
// the queue's arguments say. A consumer timeout is none by itself: see [Spec.CheckConsumerTimeout].
func (q Queue) Contradictions(effects []Effect) []Effect {
	var out []Effect
	for _, e := range effects {
		switch {
		case e.Key == ArgConsumerTimeout:
		case e.Key == ArgOverflow && e.Argument == "":
			// To drop is the default, and a queue that refuses what it has no room for loses nothing.
		case e.Key == ArgDeadLetterStrategy && e.Argument == "":
		case e.Key == ArgDeadLetterKey && q.Settings()[ArgDeadLetterExchange] == nil && !has(effects, ArgDeadLetterExchange):
			// A key without an exchange routes nothing.
		default:
			out = append(out, e)
		}
	}
	return out
}

// Hazards are the contradictions that policies would be for a queue that is not there yet, so that no broker says which of
// them apply: besides those of policies that match it, those of every one that may.
func (q Queue) Hazards(policies []Policy) []Effect {
	out := q.Contradictions(q.Effects(policies, ""))
	for _, p := range policies {
		if p.MayMatch(q) {
			p.assumed = true
			out = append(out, q.Contradictions(q.Effects([]Policy{p}, ""))...)
		}
	}
	return out
}

func has(effects []Effect, key string) bool {
	return slices.ContainsFunc(effects, func(e Effect) bool { return e.Key == key })
}

// String writes the effect on one line, for diagnostics.
func (e Effect) String() string {
	d := Difference{Key: e.Key, Want: e.Argument, Live: e.Effective, Meaning: ChangesBehaviour}
	return fmt.Sprintf("%s sets %s: the queue's own is %s, and %s applies: %s", e.Policy, strings.TrimPrefix(e.Key, "x-"), orAbsent(e.Argument), e.Effective, explain(d))
}

// CheckConsumerTimeout refuses waits in the consumer that do not fit under the consumer timeout that a policy sets.
func (s Spec) CheckConsumerTimeout(effects []Effect) error {
	for _, e := range effects {
		if e.Key != ArgConsumerTimeout {
			continue
		}
		args, err := ParseCanonical(map[string]string{ArgConsumerTimeout: e.Effective})
		if err != nil {
			return err
		}
		limited := s
		limited.Extra = maps.Clone(s.Extra)
		if limited.Extra == nil {
			limited.Extra = map[Role]Arguments{}
		}
		work := s.Extra[RoleWork].clone()
		work[ArgConsumerTimeout] = args[ArgConsumerTimeout]
		limited.Extra[RoleWork] = work
		if err := limited.validateInPlaceWaits(); err != nil {
			return fmt.Errorf("%s sets consumer-timeout to %s ms for queue %q: %w", e.Policy, e.Effective, s.WorkQueueName(), err)
		}
	}
	return nil
}
