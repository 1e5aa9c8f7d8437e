package sqstest

import "testing"

// Rule is a rule of Amazon SQS that an emulator breaks.
type Rule string

// The rules. What each says is in [Deviation.AWS].
const (
	// RedriveAllowed: a queue that a redrive-allow policy does not name cannot redrive.
	RedriveAllowed Rule = "redrive-allow policy is enforced"
	// QueuePolicyEnforced: a queue policy that denies an action denies it.
	QueuePolicyEnforced Rule = "queue policy is enforced"
	// TotalVisibility: a message stays invisible for 12 hours at most.
	TotalVisibility Rule = "12 hours of invisibility in total"
	// ReceiveAttempt: a receive that is repeated under its ReceiveRequestAttemptId is answered with the same messages.
	ReceiveAttempt Rule = "a receive is repeated by its attempt id"
	// GroupBlocks: while a message of a group is in flight, nothing else of the group is delivered.
	GroupBlocks Rule = "a message in flight blocks its group"
	// CountsOnce: a receive counts once, whatever becomes of the message.
	CountsOnce Rule = "a receive counts once"
	// LongPollReturns: a long poll returns as soon as there are messages.
	LongPollReturns Rule = "a long poll returns with what there is"
	// Depths: the approximate counts tell what is there.
	Depths Rule = "approximate counts"
	// SystemAttributeNames: ReceiveMessage knows MessageSystemAttributeNames.
	SystemAttributeNames Rule = "MessageSystemAttributeNames"
	// RedriveValidated: a redrive policy is refused that names a queue of the other type, or none.
	RedriveValidated Rule = "redrive policy is validated"
	// BatchErrors: a batch that is wrong as a whole is answered with a typed error.
	BatchErrors Rule = "typed errors of batches"
	// MoveTasks: messages can be moved by a task.
	MoveTasks Rule = "message-move tasks"
	// DeadLetterSource: a message that was redriven says from where.
	DeadLetterSource Rule = "DeadLetterQueueSourceArn"
	// DeadLetterSources: the queues that redrive to a queue can be listed.
	DeadLetterSources Rule = "ListDeadLetterSourceQueues"
	// EntryFails: an entry of a batch fails by itself, and the others do not.
	EntryFails Rule = "an entry of a batch fails by itself"
)

// Deviation is where an emulator is not like AWS.
type Deviation struct {
	Emulator Name
	Rule     Rule
	// AWS is what Amazon SQS does, and Instead what the emulator does.
	AWS, Instead string
}

// Deviates tells whether the emulator breaks a rule.
func (s *Service) Deviates(rule Rule) bool {
	_, ok := s.deviation(rule)
	return ok
}

func (s *Service) deviation(rule Rule) (Deviation, bool) {
	for _, d := range Deviations() {
		if d.Emulator == s.Name() && d.Rule == rule {
			return d, true
		}
	}
	return Deviation{}, false
}

// SkipDeviation skips a test that cannot hold on an emulator which breaks a rule. Where the emulator obeys it, the test
// goes on.
func (s *Service) SkipDeviation(t testing.TB, rule Rule) {
	t.Helper()
	if d, ok := s.deviation(rule); ok {
		t.Skipf("%s breaks a rule of Amazon SQS (%s): %s; it does this instead: %s", d.Emulator, d.Rule, d.AWS, d.Instead)
	}
}

// Deviations are all that are known; each is proven in deviations_test.go. Not among them is that no emulator refuses a
// receive at 120,000 messages in flight, which would take that many messages to prove.
func Deviations() []Deviation {
	const (
		allow     = "a queue can redrive only into a queue whose redrive-allow policy names it"
		policies  = "what a queue's policy denies is denied"
		twelve    = "a message stays invisible for 12 hours at most, counted from its receive"
		attempts  = "a receive that is repeated under its ReceiveRequestAttemptId within five minutes returns the same messages"
		unchecked = "every policy is taken, and nothing comes of it"
	)
	return []Deviation{
		{LocalAWSSQS, RedriveAllowed, allow, unchecked},
		{LocalAWSSQS, QueuePolicyEnforced, policies, unchecked},
		{LocalAWSSQS, TotalVisibility, twelve, "it can be hidden for 12 hours from any time on"},
		{LocalAWSSQS, ReceiveAttempt, attempts, "it returns nothing while those are in flight"},
		{LocalAWSSQS, GroupBlocks, "nothing of a message group is received while a message of it is in flight", "its successors are"},
		{LocalAWSSQS, CountsOnce, "the receive count grows by one with each receive", "setting the visibility to 0 counts too"},
		{LocalAWSSQS, LongPollReturns, "a long poll returns when there is a message", "one for several messages waits its whole time, unless there are as many"},
		{LocalAWSSQS, Depths, "a message is among those that are visible, in flight or delayed", "one in flight is among the visible too"},
		{LocalAWSSQS, SystemAttributeNames, "system attributes are asked for by MessageSystemAttributeNames", "it knows AttributeNames only"},

		{FauxQS, RedriveAllowed, allow, unchecked},
		{FauxQS, QueuePolicyEnforced, policies, unchecked},
		{FauxQS, TotalVisibility, twelve, "it can be hidden for 12 hours from any time on"},
		{FauxQS, ReceiveAttempt, attempts, "it returns nothing while those are in flight"},
		{FauxQS, RedriveValidated, "a redrive policy has to name a queue that is there, of the same type, and 1 to 1,000 receives", "every policy is taken"},
		{FauxQS, MoveTasks, "StartMessageMoveTask moves the messages of a dead-letter queue", "it knows no such action"},
		{FauxQS, DeadLetterSource, "a message that was redriven has the attribute DeadLetterQueueSourceArn", "it has none"},
		{FauxQS, EntryFails, "an entry of a batch with a handle that is none fails by itself", "it succeeds"},
	}
}
