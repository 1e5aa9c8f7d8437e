package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// SettingsVia says what carries those settings of a queue that a policy can set too.
type SettingsVia string

// The ways of settings.
const (
	// ViaArguments: the arguments that the queue is declared with, which no broker can change.
	ViaArguments SettingsVia = "arguments"
	// ViaPolicy: a policy of the queue's own, which can be changed while messages are in the queue.
	ViaPolicy SettingsVia = "policy"
)

// SettingsVias lists every way, the default first.
func SettingsVias() []SettingsVia { return []SettingsVia{ViaArguments, ViaPolicy} }

// DefaultSettingsVia is the way of a work queue with this strategy where none is said: delays of the broker are tuned
// while the topic is in use, and as arguments they could not be.
func DefaultSettingsVia(strategy Strategy) SettingsVia {
	if strategy == BrokerDelayed {
		return ViaPolicy
	}
	return ViaArguments
}

// Whoever sees a queue's own policy on the broker is to know whose it is, and it is to win against policies for many
// queues, whose priorities are small numbers.
const (
	ownPolicyPrefix   = "redeliver:"
	ownPolicyPriority = 1000
)

// The properties of a policy beside its settings, as [Policy.Canonical] calls them.
const (
	policyName     = "name"
	policyPattern  = "pattern"
	policyApplyTo  = "apply-to"
	policyPriority = "priority"
)

// OwnPolicyName is the name of the policy that sets the settings of one queue and of no other.
func OwnPolicyName(queue string) string { return ownPolicyPrefix + queue }

// policyCanSet reports whether a policy can set what an argument says of a queue of this type. Every broker that carries out
// the argument lets a policy set it as well, consumer-timeout (not on 3.10) and delayed-retry-* (since 4.3) included, so
// that the version makes no difference here: measured on 3.10, 4.0 and 4.3, of which older ones refuse a policy with a
// setting that they do not know.
func policyCanSet(key string, kind QueueType) bool {
	_, known := merged[key]
	return known && !slices.Contains(notApplied[kind], key)
}

// ViaPolicy are the objects with queues whose settings a policy of their own has.
func (o Objects) ViaPolicy() Objects {
	queues := make([]Queue, len(o.Queues))
	for i, q := range o.Queues {
		queues[i] = q.ViaPolicy()
	}
	o.Queues = queues
	return o
}

// ViaPolicy is the queue with what a policy can set in a policy that matches it alone, and with the arguments that none
// can. A queue that has nothing of the kind needs no policy.
func (q Queue) ViaPolicy() Queue {
	all := q.Settings()
	definition := Arguments{}
	q.Arguments, q.Policy = Arguments{}, nil
	for key, value := range all {
		if policyCanSet(key, q.Type) {
			definition[strings.TrimPrefix(key, "x-")] = value
		} else {
			q.Arguments[key] = value
		}
	}
	if len(definition) > 0 {
		q.Policy = &Policy{Name: OwnPolicyName(q.Name), Pattern: exactly([]string{q.Name}), ApplyTo: "queues", Priority: ownPolicyPriority, Definition: definition}
	}
	return q
}

// Settings are all that the contract has apply to the queue, in the form of arguments: its arguments, and what its own
// policy sets.
func (q Queue) Settings() Arguments {
	if q.Policy == nil {
		return q.Arguments
	}
	return q.Policy.Over(q.Arguments)
}

// Over are arguments together with what the policy sets beside them, in the form of arguments.
func (p Policy) Over(arguments Arguments) Arguments {
	out := make(Arguments, len(arguments)+len(p.Definition))
	for key, value := range p.Definition {
		out["x-"+key] = value
	}
	maps.Copy(out, arguments)
	return out
}

// owner is the queue whose own policy it is; "" where it is no queue's.
func (p Policy) owner() string {
	queue, own := strings.CutPrefix(p.Name, ownPolicyPrefix)
	if !own || p.Operator || p.Pattern != exactly([]string{queue}) {
		return ""
	}
	return queue
}

// OwnPolicy is the queue's own policy among those of a vhost, whatever it says by now; nil where there is none.
func OwnPolicy(queue string, policies []Policy) *Policy {
	name := OwnPolicyName(queue)
	for i := range policies {
		if policies[i].Name == name && !policies[i].Operator {
			return &policies[i]
		}
	}
	return nil
}

// OwnPolicies are the queues' own policies among those of a vhost, by queue.
func OwnPolicies(policies []Policy) map[string]Policy {
	out := map[string]Policy{}
	for _, p := range policies {
		if queue := p.owner(); queue != "" {
			out[queue] = p
		}
	}
	return out
}

// Others are the policies beside the queue's own that match it or may, operator policies aside: the one that would apply
// comes first. live is the name of the policy that the broker says applies, "" where it does not say.
func (q Queue) Others(policies []Policy, live string) []Policy {
	var out []Policy
	for _, p := range policies {
		if p.Operator || p.Name == OwnPolicyName(q.Name) {
			continue
		}
		if matches, known := p.matches(q); matches || !known || live != "" && p.Name == live {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b Policy) int { return b.Priority - a.Priority })
	return out
}

// Merge has the queue's own policy copy what the first of others sets, because it applies alone, and come before all of
// them. What the contract sets stays as it is: kept are the keys in which the other one differs.
func (q Queue) Merge(others []Policy) (merged Queue, kept []Difference, err error) {
	if q.Policy == nil || len(others) == 0 {
		return q, nil, nil
	}
	other := others[0]
	if other.MayMatch(q) {
		return q, nil, fmt.Errorf("%s may match queue %q: its pattern %q cannot be read here, so that it is not known whether to copy it; write the pattern without what only Erlang reads", other, q.Name, other.Pattern)
	}
	if len(others) > 1 && others[1].Priority == other.Priority && CanonicalJSON(others[1].Definition) != CanonicalJSON(other.Definition) {
		return q, nil, fmt.Errorf("%s and %s match queue %q with the same priority %d, and RabbitMQ does not say which of them applies, so that it is not known what to copy; give them different priorities",
			other, others[1], q.Name, other.Priority)
	}
	own := *q.Policy
	own.Definition = other.Definition.clone()
	maps.Copy(own.Definition, q.Policy.Definition)
	own.Priority = max(own.Priority, other.Priority+1)
	for _, d := range DiffArguments(q.Policy.Over(nil), other.Over(nil)) {
		if d.Want != "" && d.Live != "" {
			d.Key = strings.TrimPrefix(d.Key, "x-")
			kept = append(kept, d)
		}
	}
	q.Policy = &own
	return q, kept, nil
}

// Canonical returns the policy's properties and settings in the form of [CanonicalJSON], by key: name, pattern, apply-to,
// priority, and its settings under their own names, of which none is called like that.
func (p Policy) Canonical() map[string]string {
	out := p.Definition.Canonical()
	out[policyName], out[policyPattern] = CanonicalJSON(p.Name), CanonicalJSON(p.Pattern)
	out[policyApplyTo], out[policyPriority] = CanonicalJSON(p.ApplyTo), CanonicalJSON(int64(p.Priority))
	return out
}

// ParsePolicy reads what [Policy.Canonical] wrote; the zero policy where there is nothing.
func ParsePolicy(shown map[string]string) (Policy, error) {
	all, err := ParseCanonical(shown)
	if err != nil || len(all) == 0 {
		return Policy{}, err
	}
	p := Policy{Definition: all}
	p.Name, _ = all[policyName].(string)
	p.Pattern, _ = all[policyPattern].(string)
	p.ApplyTo, _ = all[policyApplyTo].(string)
	priority, _ := all[policyPriority].(int64)
	p.Priority = int(priority)
	for _, key := range []string{policyName, policyPattern, policyApplyTo, policyPriority} {
		delete(all, key)
	}
	return p, nil
}

// DiffPolicy compares a queue's own policy with what a broker has of it, in the form of [Policy.Canonical], and returns
// what differs, sorted by key. Either may be nil, which is none.
func DiffPolicy(want *Policy, live map[string]string) []Difference {
	wanted := map[string]string{}
	if want != nil {
		wanted = want.Canonical()
	}
	var out []Difference
	for _, key := range slices.Sorted(maps.Keys(union(wanted, live))) {
		d := Difference{Key: key, Want: wanted[key], Live: live[key], Meaning: ChangesBehaviour}
		if d.Want == d.Live {
			continue
		}
		switch key {
		case policyName, policyPattern, policyApplyTo, policyPriority:
			if d.Want == "" || d.Live == "" {
				continue // the policy as a whole is missing, or is one too many: its settings say what that means
			}
			d.Explanation = propertyMeaning[key]
		default:
			d.Explanation = explain(Difference{Key: "x-" + key, Want: d.Want, Live: d.Live, Meaning: d.Meaning})
		}
		out = append(out, d)
	}
	return out
}

// DelayChanges reports whether among the differences of a policy is that of how long messages wait.
func DelayChanges(differences []Difference) bool {
	return slices.ContainsFunc(differences, func(d Difference) bool { return "x-"+d.Key == ArgMessageTTL && d.Want != "" && d.Live != "" })
}

var propertyMeaning = map[string]string{
	policyName:     "it is another policy",
	policyPattern:  "it applies to other queues than this one, or to none, which then have or lack its settings",
	policyApplyTo:  "it applies to other kinds of objects, or not to this queue, which then lacks its settings",
	policyPriority: "another policy that matches the queue may apply in its place, alone",
}

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}
