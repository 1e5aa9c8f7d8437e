package topology

import (
	"fmt"
	"regexp"
	"strings"
)

// MaxSQSNameLength is the longest name of a queue on SQS, [fifoSuffix] included.
const MaxSQSNameLength = 80

// fifoSuffix ends the name of every FIFO queue.
const fifoSuffix = ".fifo"

// SQSIdentity is what a topic's names on Amazon SQS are computed from.
type SQSIdentity struct {
	// Topic is the topic's name, which is its work queue's name too but for [FIFO] queues' suffix.
	Topic string
	// Convention is the naming scheme; "" is [Redeliver].
	Convention Convention
	// ConsumerGroup is put between the topic's name and what is derived from it; only [Shove] has it.
	ConsumerGroup string
	// FIFO: the topic's queues are FIFO queues, all of them.
	FIFO bool
	// Region and Account say where the queues are. Names do not depend on them, ARNs and URLs do.
	Region, Account string
	// Partition is AWS's, which ARNs start with; "" is that of the region.
	Partition string
}

// identity is what derives the names but for the suffix.
func (id SQSIdentity) identity() Identity {
	return Identity{Topic: id.Topic, Convention: id.Convention, ConsumerGroup: id.ConsumerGroup}
}

func (id SQSIdentity) queueType() QueueType {
	if id.FIFO {
		return FIFO
	}
	return Standard
}

// suffixed gives a name the suffix that queues of the topic's type have; "" stays "".
func (id SQSIdentity) suffixed(name string) string {
	if name != "" && id.FIFO {
		return name + fifoSuffix
	}
	return name
}

// WorkQueueName is the name of the topic's work queue.
func (id SQSIdentity) WorkQueueName() string { return id.suffixed(id.identity().WorkQueueName()) }

// DeadLetterQueueName is the name the convention gives the topic's dead-letter queue.
func (id SQSIdentity) DeadLetterQueueName() string {
	return id.suffixed(id.identity().DeadLetterQueueName())
}

// ParkedQueueName is the name the convention gives the topic's parked queue; "" where the convention has none.
func (id SQSIdentity) ParkedQueueName() string { return id.suffixed(id.identity().ParkedQueueName()) }

// ForeignDeadEnd reports the topic that name, used as the topic's dead-letter or parked queue, looks derived from where
// that is another topic; "" where it is the topic's own or nobody's.
func (id SQSIdentity) ForeignDeadEnd(name string) string {
	return id.identity().ForeignDeadEnd(strings.TrimSuffix(name, fifoSuffix))
}

// SQSConventions are the conventions whose names SQS can hold, the default first.
func SQSConventions() []Convention {
	var out []Convention
	for _, c := range Conventions() {
		if !strings.Contains(c.scheme().deadLetter("x"), ".") {
			out = append(out, c)
		}
	}
	return out
}

// SQSTopicOf reads a queue's name back: the topic that a queue of this name belongs to under the convention, and what it
// is there. A name that the convention derives from no topic is a work queue's. ok is false where no topic has such a queue.
func SQSTopicOf(c Convention, group, queue string) (topic string, role Role, fifo, ok bool) {
	name, fifo := strings.CutSuffix(queue, fifoSuffix)
	topic, role = name, RoleWork
	if base, _ := c.derivedFrom(name); base != "" {
		topic = base
		if group != "" {
			topic, _ = strings.CutSuffix(base, "-"+group)
		}
	}
	id := SQSIdentity{Topic: topic, Convention: c, ConsumerGroup: group, FIFO: fifo}
	switch queue {
	case id.DeadLetterQueueName():
		role = RoleDeadLetter
	case id.ParkedQueueName():
		role = RoleParked
	case id.WorkQueueName():
	default:
		return "", "", false, false
	}
	if id.Validate(role) != nil {
		return "", "", false, false
	}
	return topic, role, fifo, true
}

// Validate refuses names that SQS or the convention cannot have. role says which of the topic's queues is asked for.
func (id SQSIdentity) Validate(role Role) error {
	convention, err := ParseConvention(string(id.Convention))
	if err != nil {
		return err
	}
	if id.Topic != "" && strings.HasSuffix(id.Topic, fifoSuffix) {
		return fmt.Errorf("topic %q: %q ends the names of FIFO queues and is added to them; set fifo = true and call the topic %q",
			id.Topic, fifoSuffix, strings.TrimSuffix(id.Topic, fifoSuffix))
	}
	if err := validateSQSText("topic", id.Topic); err != nil {
		return err
	}
	if derived := convention.scheme().deadLetter(id.Topic); strings.Contains(derived, ".") {
		return fmt.Errorf("convention %q: it calls the dead-letter queue %q, and names on SQS have no dots; use one of %s", convention, derived, quotedList(SQSConventions()))
	}
	if base, ending := convention.derivedFrom(id.Topic); base != "" {
		return fmt.Errorf("topic %q: under the %s convention a name that ends in %q belongs to what is derived from another topic, %q; "+
			"give the topic another name", id.Topic, convention, ending, base)
	}
	if id.ConsumerGroup != "" {
		if convention.HasConsumerGroups() {
			if err := validateSQSText("consumer group", id.ConsumerGroup); err != nil {
				return err
			}
		}
		if err := id.identity().validateGroup(convention); err != nil {
			return err
		}
	}
	if role == RoleParked && !convention.HasParkedQueue() {
		return noParkedQueue(convention)
	}
	for _, derived := range []string{id.WorkQueueName(), id.DeadLetterQueueName(), id.ParkedQueueName()} {
		if over := len(derived) - MaxSQSNameLength; over > 0 {
			return fmt.Errorf("topic %q: the name %q has %d characters and SQS allows %d; shorten the topic's name by %d", id.Topic, derived, len(derived), MaxSQSNameLength, over)
		}
	}
	return id.validateWhere()
}

func noParkedQueue(convention Convention) error {
	return fmt.Errorf("a parked queue under the %s convention is refused: its libraries have none; unreadable messages go to the dead-letter queue", convention)
}

var (
	notSQSName = regexp.MustCompile(`[^A-Za-z0-9_-]`)
	awsAccount = regexp.MustCompile(`^[0-9]{12}$`)
	awsRegion  = regexp.MustCompile(`^[a-z0-9-]+$`)
)

// validateSQSText refuses what cannot be a part of a queue's name before its suffix.
func validateSQSText(kind, name string) error {
	if name == "" {
		return fmt.Errorf("%s: the name is empty; give it one", kind)
	}
	if wrong := notSQSName.FindString(name); wrong != "" {
		return fmt.Errorf("%s %q: names on SQS have letters, digits, \"-\" and \"_\" only, and this one has a %q; replace it", kind, name, wrong)
	}
	return nil
}

// validateSQSQueue refuses what cannot be the name of a queue of the topic's type.
func (id SQSIdentity) validateSQSQueue(kind, name string) error {
	base, fifo := strings.CutSuffix(name, fifoSuffix)
	switch {
	case id.FIFO && !fifo:
		return fmt.Errorf("%s %q: topic %q is FIFO, and SQS has the dead ends of a FIFO queue be FIFO too, with names that end in %q; call it %q",
			kind, name, id.Topic, fifoSuffix, name+fifoSuffix)
	case !id.FIFO && fifo:
		return fmt.Errorf("%s %q: a name that ends in %q is a FIFO queue's and topic %q is not FIFO: SQS moves messages between queues of one type only; choose another name, or set fifo = true",
			kind, name, fifoSuffix, id.Topic)
	}
	if err := validateSQSText(kind, base); err != nil {
		return err
	}
	if over := len(name) - MaxSQSNameLength; over > 0 {
		return fmt.Errorf("%s %q: the name has %d characters and SQS allows %d; shorten it by %d", kind, name, len(name), MaxSQSNameLength, over)
	}
	return nil
}

// validateDeadEnd refuses a dead-letter or parked queue's name that SQS cannot have or the topic has another use for.
func (id SQSIdentity) validateDeadEnd(role Role, name string) error {
	kind := "dead-letter queue"
	if role == RoleParked {
		kind = "parked queue"
	}
	if err := id.validateSQSQueue(kind, name); err != nil {
		return err
	}
	return Spec{Identity: id.identity()}.ValidateDeadEnd(role, strings.TrimSuffix(name, fifoSuffix))
}
