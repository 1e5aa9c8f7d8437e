package topology

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// AccessRole is who asks for permissions on a topic.
type AccessRole string

// The access roles.
const (
	// AccessConsumer handles the topic's messages.
	AccessConsumer AccessRole = "consumer"
	// AccessPublisher sends messages to the topic.
	AccessPublisher AccessRole = "publisher"
	// AccessOperator looks into the topic's queues and replays what was set aside.
	AccessOperator AccessRole = "operator"
)

// AccessRoles lists every access role.
func AccessRoles() []AccessRole { return []AccessRole{AccessConsumer, AccessPublisher, AccessOperator} }

// PermissionSet is what RabbitMQ's permissions of one user in one vhost are
// made of: three regular expressions over names of queues and exchanges. They
// are anchored and escaped, and "^$" allows nothing.
type PermissionSet struct {
	Configure, Write, Read string
	// Notes are sentences for people: what the expressions allow beyond the topic, and what they leave out.
	Notes []string
}

// defaultExchange is the name by which permissions know the default exchange.
const defaultExchange = "amq.default"

// Permissions are the least permissions that role needs on the manifest's
// vhost. Nobody needs configure: infrastructure declares everything.
func Permissions(m Manifest, role AccessRole) (PermissionSet, error) {
	if m.Broker == BrokerSQS {
		return PermissionSet{}, fmt.Errorf("topic %q is on Amazon SQS, where access is granted by IAM policies and not by RabbitMQ's patterns; use build_iam_policy", m.Topic)
	}
	var read, write []string
	var notes []string
	switch role {
	case AccessConsumer:
		read, write = m.workQueueNames(), m.consumerWrites()
	case AccessPublisher:
		for _, b := range m.Bindings {
			write = append(write, b.Exchange)
		}
		if len(m.Bindings) == 0 {
			write = []string{m.entry()}
			notes = append(notes, fmt.Sprintf("Topic %q has no bindings: publishers reach its %s.", m.Topic, m.way()))
		}
	case AccessOperator:
		read, write = m.queueNames(), []string{m.entry()}
		for _, target := range []*ManifestTarget{m.DeadLetter, m.Parked} {
			if target != nil {
				write = append(write, target.Exchange)
			}
		}
		notes = append(notes,
			fmt.Sprintf("Replay publishes to the %s.", m.way()),
			"Reading a queue takes messages out of it as consuming does; depths and arguments also need the user tag \"management\" for the management API.")
	default:
		return PermissionSet{}, fmt.Errorf("access role %q is not known: use one of %s", role, quotedList(AccessRoles()))
	}
	if slices.Contains(write, "") {
		notes = append(notes, fmt.Sprintf("Write on %s, the default exchange, reaches every queue of vhost %q, not only this topic's: "+
			"RabbitMQ checks the exchange and not the routing key.", defaultExchange, m.VHost))
	}
	return PermissionSet{Configure: exactly(nil), Write: exactly(exchangeNames(write)), Read: exactly(read), Notes: notes}, nil
}

// entry is the exchange through which messages come to the work queue without a binding of the topic's own.
func (m Manifest) entry() string {
	if m.Sequence != nil {
		return m.Sequence.Exchange
	}
	return ""
}

// way says in words which queue that is and how it is reached.
func (m Manifest) way() string {
	if exchange := m.entry(); exchange != "" {
		return fmt.Sprintf("%d shards through the exchange %q, with the key of a message's sequence as its routing key", len(m.Sequence.Shards), exchange)
	}
	return fmt.Sprintf("work queue %q through the default exchange", m.WorkQueue.Name)
}

func (m Manifest) workQueueNames() []string {
	var names []string
	for _, q := range m.WorkQueues() {
		names = append(names, q.Name)
	}
	return names
}

// consumerWrites are the exchanges a consumer publishes to, "" for the default
// one: nothing unless copies wait in hold queues, or final outcomes or
// unreadable messages are published.
func (m Manifest) consumerWrites() []string {
	var exchanges []string
	if (m.Retry.Strategy == Republish || m.Retry.Strategy == Hybrid) && len(m.HoldQueues) > 0 {
		exchanges = append(exchanges, m.RetryExchange)
	}
	if m.Final == FinalPublish && m.DeadLetter != nil {
		exchanges = append(exchanges, m.DeadLetter.Exchange)
	}
	if m.Park == ParkPublish && m.Parked != nil {
		exchanges = append(exchanges, m.Parked.Exchange)
	}
	return exchanges
}

// queueNames are all queues of the manifest.
func (m Manifest) queueNames() []string {
	names := m.workQueueNames()
	for _, q := range m.HoldQueues {
		names = append(names, q.Name)
	}
	for _, target := range []*ManifestTarget{m.DeadLetter, m.Parked} {
		if target != nil {
			names = append(names, target.Name)
		}
	}
	return names
}

// exchangeNames gives the default exchange the name that permissions use.
func exchangeNames(exchanges []string) []string {
	names := slices.Clone(exchanges)
	for i, name := range names {
		if name == "" {
			names[i] = defaultExchange
		}
	}
	return names
}

// exactly is a regular expression that matches the names and nothing else:
// "^$" for none, "^a$" for one, "^(a|b)$" for several, sorted.
func exactly(names []string) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	for i, name := range sorted {
		sorted[i] = escapePattern(name)
	}
	if len(sorted) > 1 {
		return "^(" + strings.Join(sorted, "|") + ")$"
	}
	return "^" + strings.Join(sorted, "") + "$"
}

// escapePattern writes name as a pattern that matches only it, for the PCRE of
// Erlang's re module (a "$" there also matches before one final newline, which
// the broker strips from names) and for Go alike. Control characters are
// written as escapes, so that the pattern stays on one line.
func escapePattern(name string) string {
	var b strings.Builder
	for _, r := range regexp.QuoteMeta(name) {
		if r < 0x20 || r == 0x7f {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
