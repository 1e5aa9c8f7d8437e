package topology

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxNameBytes is the longest name of a queue or exchange on RabbitMQ.
const MaxNameBytes = 255

// DefaultVHost is the virtual host used where none is named.
const DefaultVHost = "/"

// Identity is what a topic's names are computed from.
type Identity struct {
	// Topic is the topic's name, which is also its work queue's name under every convention.
	Topic string
	// Convention is the naming scheme; "" is [Redeliver].
	Convention Convention
	// ConsumerGroup is put between the topic's name and what is derived from it; only [Shove] has it.
	ConsumerGroup string
	// VHost is the virtual host; "" is [DefaultVHost]. It is part of no name.
	VHost string
}

// base is what every derived name starts with.
func (id Identity) base() string {
	if id.ConsumerGroup != "" {
		return id.Topic + "-" + id.ConsumerGroup
	}
	return id.Topic
}

func (id Identity) vhost() string {
	if id.VHost == "" {
		return DefaultVHost
	}
	return id.VHost
}

// WorkQueueName is the name of the topic's work queue.
func (id Identity) WorkQueueName() string { return id.Topic }

// DeadLetterQueueName is the name the convention gives the topic's dead-letter queue.
func (id Identity) DeadLetterQueueName() string {
	if deadLetter := id.Convention.scheme().deadLetter; deadLetter != nil {
		return deadLetter(id.base())
	}
	return ""
}

// ParkedQueueName is the name the convention gives the topic's parked queue; "" where the convention has none.
func (id Identity) ParkedQueueName() string {
	if parked := id.Convention.scheme().parked; parked != nil {
		return parked(id.base())
	}
	return ""
}

// RetryExchangeName is the exchange of the topic's own that its hold, dead-letter and parked queues are bound to;
// "" where the convention has none.
func (id Identity) RetryExchangeName() string {
	if exchange := id.Convention.scheme().retryExchange; exchange != nil {
		return exchange(id.base())
	}
	return ""
}

// HoldQueueName is the name of the hold queue of tier (from 0) with the given delay; shard is 0 where the tier is not split.
func (id Identity) HoldQueueName(tier int, delay time.Duration, shard int) string {
	hold := id.Convention.scheme().hold
	if hold == nil {
		return ""
	}
	name := hold(id.base(), tier, delay)
	if shard > 0 {
		name = fmt.Sprintf("%s.s%d", name, shard)
	}
	return name
}

// MigratingQueueName is the queue that holds the work queue's messages while its arguments change.
func (id Identity) MigratingQueueName() string { return id.Topic + migratingSuffix }

// Validate refuses names the broker or the convention cannot have. Names that depend on more than the identity (hold
// queues, a dead-letter queue with a name of its own) are checked where they are computed.
func (id Identity) Validate() error {
	convention, err := ParseConvention(string(id.Convention))
	if err != nil {
		return err
	}
	if err := ValidateName("topic", id.Topic); err != nil {
		return err
	}
	if base, ending := convention.derivedFrom(id.Topic); base != "" {
		return fmt.Errorf("topic %q: under the %s convention a name that ends in %q belongs to what is derived from another topic, %q; "+
			"give the topic another name", id.Topic, convention, ending, base)
	}
	if id.ConsumerGroup != "" {
		if err := id.validateGroup(convention); err != nil {
			return err
		}
	}
	for _, derived := range []string{id.DeadLetterQueueName(), id.ParkedQueueName(), id.RetryExchangeName(), id.MigratingQueueName()} {
		if err := id.validateDerived(derived); err != nil {
			return err
		}
	}
	return ValidateVHost(id.vhost())
}

func (id Identity) validateGroup(convention Convention) error {
	if !convention.HasConsumerGroups() {
		return fmt.Errorf("consumer group %q: the %s convention has no consumer groups, only %s has; leave it out",
			id.ConsumerGroup, convention, Shove)
	}
	if err := validateText("consumer group", id.ConsumerGroup); err != nil {
		return err
	}
	if base, ending := convention.derivedFrom(id.base()); base != "" {
		return fmt.Errorf("consumer group %q: the group's names would start with %q, and under the %s convention a name that ends in %q is derived from a topic itself; "+
			"give the group another name", id.ConsumerGroup, id.base(), convention, ending)
	}
	return nil
}

// ValidateName refuses what RabbitMQ does not take as the name of a queue or exchange. kind says what is named, for
// the error.
func ValidateName(kind, name string) error {
	if err := validateText(kind, name); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(name, "amq."):
		return fmt.Errorf("%s %q: names that start with \"amq.\" are reserved by RabbitMQ; choose another name", kind, name)
	case name == "." || name == "..":
		return fmt.Errorf("%s %q: HTTP resolves this name as a path segment, so the management API cannot address it; choose another name", kind, name)
	}
	return nil
}

// validateText refuses what cannot be a name, nor a part of one.
func validateText(kind, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s: the name is empty; RabbitMQ would make one up, so give it one", kind)
	case !utf8.ValidString(name):
		return fmt.Errorf("%s %q: the name is not valid UTF-8, and RabbitMQ's management API cannot address it; use UTF-8", kind, name)
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("%s %q: the name has a NUL byte in it; remove it", kind, name)
	case strings.ContainsAny(name, "\r\n"):
		// Measured on 3.10.8: declaring "a\nb" makes "ab", of which another topic may be the owner.
		return fmt.Errorf("%s %q: the name has a line break in it, which RabbitMQ takes out without a word: it would be called %q; remove it",
			kind, name, strings.NewReplacer("\r", "", "\n", "").Replace(name))
	case len(name) > MaxNameBytes:
		return fmt.Errorf("%s %q: the name has %d bytes and RabbitMQ allows %d; shorten it by %d",
			kind, name, len(name), MaxNameBytes, len(name)-MaxNameBytes)
	}
	return nil
}

// ValidateVHost refuses what cannot be a virtual host's name.
func ValidateVHost(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("vhost: the name is empty; the default one is called %q", DefaultVHost)
	case !utf8.ValidString(name):
		return fmt.Errorf("vhost %q: the name is not valid UTF-8, and RabbitMQ's management API cannot address it; use UTF-8", name)
	case name == "." || name == "..":
		return fmt.Errorf("vhost %q: HTTP resolves this name as a path segment, so the management API cannot address it; use another vhost", name)
	case len(name) > MaxNameBytes:
		return fmt.Errorf("vhost %q: the name has %d bytes and RabbitMQ allows %d; use another vhost", name, len(name), MaxNameBytes)
	}
	return nil
}

// validateDerived refuses a topic for a name that is derived from it.
func (id Identity) validateDerived(derived string) error {
	switch {
	case strings.HasPrefix(derived, "amq."):
		return fmt.Errorf("topic %q: the derived name %q starts with \"amq.\", which is reserved by RabbitMQ; give the topic another name", id.Topic, derived)
	case len(derived) > MaxNameBytes:
		return fmt.Errorf("topic %q: the derived name %q has %d bytes and RabbitMQ allows %d; shorten the topic's name by %d",
			id.Topic, derived, len(derived), MaxNameBytes, len(derived)-MaxNameBytes)
	}
	return nil
}

// ForeignDeadEnd reports the topic that name, used by id as its dead-letter or parked queue, looks derived from where
// that is another topic than id's; "" where name is id's own or nobody's.
func (id Identity) ForeignDeadEnd(name string) string {
	base, _ := id.Convention.derivedFrom(name)
	if base == id.base() || base == id.Topic {
		return ""
	}
	return base
}
