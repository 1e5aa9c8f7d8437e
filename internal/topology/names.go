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
func (id Identity) DeadLetterQueueName() string { return id.Convention.scheme().deadLetter(id.base()) }

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
	name := id.Convention.scheme().hold(id.base(), tier, delay)
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
	s := convention.scheme()
	if s.reserved.MatchString(id.Topic) {
		taken := s.reserved.FindString(id.Topic)
		_, first := utf8.DecodeRuneInString(taken)
		return fmt.Errorf("topic %q: under the %s convention a name that ends in %q belongs to what is derived from another topic, %q; "+
			"give the topic another name", id.Topic, convention, taken[first:], strings.TrimSuffix(id.Topic, taken[first:]))
	}
	if id.ConsumerGroup != "" {
		if !s.groups {
			return fmt.Errorf("consumer group %q: the %s convention has no consumer groups, only %s has; leave it out",
				id.ConsumerGroup, convention, Shove)
		}
		if err := ValidateName("consumer group", id.ConsumerGroup); err != nil {
			return err
		}
	}
	for _, derived := range []string{id.DeadLetterQueueName(), id.ParkedQueueName(), id.RetryExchangeName(), id.MigratingQueueName()} {
		if err := validateLength(id, derived); err != nil {
			return err
		}
	}
	return ValidateVHost(id.vhost())
}

// ValidateName refuses what RabbitMQ does not take as the name of a queue or exchange. kind says what is named, for
// the error.
func ValidateName(kind, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s: the name is empty; RabbitMQ would make one up, so give it one", kind)
	case !utf8.ValidString(name):
		return fmt.Errorf("%s %q: the name is not valid UTF-8; RabbitMQ's management API cannot address it", kind, name)
	case strings.HasPrefix(name, "amq."):
		return fmt.Errorf("%s %q: names that start with \"amq.\" are reserved by RabbitMQ; choose another name", kind, name)
	case len(name) > MaxNameBytes:
		return fmt.Errorf("%s %q: the name has %d bytes and RabbitMQ allows %d; shorten it by %d",
			kind, name, len(name), MaxNameBytes, len(name)-MaxNameBytes)
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("%s %q: the name has a NUL byte in it; remove it", kind, name)
	case name == "." || name == "..":
		return fmt.Errorf("%s %q: HTTP resolves this name as a path segment, so the management API cannot address it; choose another name", kind, name)
	}
	return nil
}

// ValidateVHost refuses what cannot be a virtual host's name.
func ValidateVHost(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("vhost: the name is empty; the default one is called %q", DefaultVHost)
	case !utf8.ValidString(name):
		return fmt.Errorf("vhost %q: the name is not valid UTF-8", name)
	case len(name) > MaxNameBytes:
		return fmt.Errorf("vhost %q: the name has %d bytes and RabbitMQ allows %d", name, len(name), MaxNameBytes)
	}
	return nil
}

func validateLength(id Identity, derived string) error {
	if len(derived) > MaxNameBytes {
		return fmt.Errorf("topic %q: the derived name %q has %d bytes and RabbitMQ allows %d; shorten the topic's name by %d",
			id.Topic, derived, len(derived), MaxNameBytes, len(derived)-MaxNameBytes)
	}
	return nil
}

// ForeignDeadEnd reports the topic that name, used by id as its dead-letter or parked queue, looks derived from where
// that is another topic than id's; "" where name is id's own or nobody's.
func (id Identity) ForeignDeadEnd(name string) string {
	if name == id.DeadLetterQueueName() || name == id.ParkedQueueName() {
		return ""
	}
	probe := Identity{Topic: "\x00", Convention: id.Convention}
	for _, derived := range []string{probe.DeadLetterQueueName(), probe.ParkedQueueName()} {
		if end := strings.TrimPrefix(derived, "\x00"); end != "" && len(name) > len(end) && strings.HasSuffix(name, end) {
			return strings.TrimSuffix(name, end)
		}
	}
	return ""
}
