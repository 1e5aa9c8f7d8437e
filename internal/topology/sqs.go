package topology

import "time"

// BrokerSQS is the manifest's broker kind for Amazon SQS.
const BrokerSQS = "sqs"

// The queue types of Amazon SQS.
const (
	// Standard queues deliver at least once, in any order.
	Standard QueueType = "standard"
	// FIFO queues keep the order of a message group: while a message of it is in flight, its successors wait.
	FIFO QueueType = "fifo"
)

// What Amazon SQS allows, and what it does where nothing is said.
const (
	// MaxVisibility is how long a message may stay invisible in total, from its receive.
	MaxVisibility = 12 * time.Hour
	// VisibilitySlack is kept free of it for the handler and for the call that asks for a message's delay.
	VisibilitySlack = time.Minute
	// SQSHoldBound is the longest delay that a message can wait for its retry.
	SQSHoldBound = MaxVisibility - VisibilitySlack

	DefaultVisibilityTimeout = 30 * time.Second

	MinRetention     = time.Minute
	DefaultRetention = 4 * Day
	MaxRetention     = 14 * Day

	MaxQueueDelay  = 15 * time.Minute
	MaxReceiveWait = 20 * time.Second

	// MinMessageSize and MaxMessageSize are in bytes; the maximum is the default.
	MinMessageSize = 1024
	MaxMessageSize = 1_048_576
	// OldMaxMessageSize is the maximum and the default in regions that do not have the larger one, and what queues have that
	// were made before there was one.
	OldMaxMessageSize = 262_144

	MinKMSReuse     = time.Minute
	DefaultKMSReuse = 5 * time.Minute
	MaxKMSReuse     = Day

	// MaxReceives is the highest maxReceiveCount of a redrive policy.
	MaxReceives = 1000
	// MaxInFlight is how many messages of a queue may be invisible at a time; a message that waits for its retry is.
	MaxInFlight = 120_000
	// MaxQueueTags is how many tags a queue may have.
	MaxQueueTags = 50
)

// DeadLetterVia says how a message that failed for good reaches the dead-letter queue.
type DeadLetterVia string

// The ways to the dead-letter queue.
const (
	// ViaRedrive has SQS move the message by the work queue's redrive policy: a consumer needs to send nowhere.
	ViaRedrive DeadLetterVia = "redrive"
	// ViaSend has the consumer send it there, with the reason it failed, and then delete it.
	ViaSend DeadLetterVia = "send"
)

// DeadLetterVias lists every way, the default first.
func DeadLetterVias() []DeadLetterVia { return []DeadLetterVia{ViaRedrive, ViaSend} }

// The modes of server-side encryption.
const (
	// SSEManaged encrypts with keys that SQS manages, AWS's default.
	SSEManaged = "sqs"
	// SSEKMS encrypts with a key of AWS KMS.
	SSEKMS = "kms"
	// SSENone does not encrypt.
	SSENone = "none"
)

// SSEModes lists every mode of server-side encryption, the default first.
func SSEModes() []string { return []string{SSEManaged, SSEKMS, SSENone} }

// What messages of a FIFO queue are deduplicated by, and what its throughput is counted by. The defaults come first.
const (
	ScopeQueue        = "queue"
	ScopeMessageGroup = "messageGroup"

	LimitPerQueue   = "perQueue"
	LimitPerGroupID = "perMessageGroupId"
)

// DeduplicationScopes lists what messages of a FIFO queue can be deduplicated within, the default first.
func DeduplicationScopes() []string { return []string{ScopeQueue, ScopeMessageGroup} }

// ThroughputLimits lists what the throughput of a FIFO queue can be counted by, the default first.
func ThroughputLimits() []string { return []string{LimitPerQueue, LimitPerGroupID} }

// SQSQueueSettings are the settings that every queue has. Zero is AWS's default, but for the retention of a dead-letter
// or parked queue, which is [MaxRetention].
type SQSQueueSettings struct {
	// VisibilityTimeout is how long a received message is not received again unless that is changed; 0 is
	// [DefaultVisibilityTimeout].
	VisibilityTimeout time.Duration
	// Retention is how long SQS keeps a message; after that it is deleted, silently.
	Retention time.Duration
	// Delay is how long a sent message waits before it is received for the first time; 0 is none.
	Delay time.Duration
	// ReceiveWait is how long a receive waits for a message where it does not say so itself; 0 is not at all.
	ReceiveWait time.Duration
	// MaxMessageSize is in bytes; 0 leaves it to AWS: [MaxMessageSize], or [OldMaxMessageSize] where that is the default.
	MaxMessageSize int
	// SSE is the mode of server-side encryption; "" is [SSEKMS] where there is a key, else [SSEManaged].
	SSE string
	// KMSKey is the id, ARN or alias ("alias/name") of the key of [SSEKMS].
	KMSKey string
	// KMSDataKeyReuse is how long a data key is used again before KMS is asked; 0 is [DefaultKMSReuse].
	KMSDataKeyReuse time.Duration
	// ContentBasedDeduplication takes the digest of a message's body for its deduplication id; FIFO queues only.
	ContentBasedDeduplication bool
	// DeduplicationScope and ThroughputLimit are FIFO queues' only; "" is the first of [DeduplicationScopes] and of
	// [ThroughputLimits].
	DeduplicationScope, ThroughputLimit string
	// Policy is the queue's access policy in JSON; "" is none.
	Policy string
	// Tags are the queue's tags.
	Tags map[string]string
}

// SQSSpec is what can be asked for on Amazon SQS: one topic.
type SQSSpec struct {
	SQSIdentity
	SQSQueueSettings
	// DeadLetterQueue is the dead-letter queue's name; "" is none. A name of its own need not be the derived one.
	DeadLetterQueue string
	// ParkedQueue is the parked queue's name; "" is none.
	ParkedQueue string
	// DeadLetterVia says how a message reaches the dead-letter queue; "" is [ViaRedrive].
	DeadLetterVia DeadLetterVia
	// DeadLetterRetention is how long the dead-letter queue keeps a message; 0 is not known.
	DeadLetterRetention time.Duration
	// AllowMessageLoss accepts a topic without a dead-letter queue, whose rejected messages are discarded.
	AllowMessageLoss bool
	// Retry is the retry policy. Its strategy is [InPlace]: a message waits in the queue itself, invisible.
	Retry RetryPolicy
	// Park says how Park is carried out; "" is [ParkPublish] under [ViaSend] where there is a parked queue, else
	// [ParkReject].
	Park ParkMode
	// HandlerTimeout is how long a handler may take; 0 is not stated, and not checked against.
	HandlerTimeout time.Duration
	// Endpoint is where SQS is reached, of an emulator or a VPC endpoint; "" is AWS's own of the region. It is part of
	// the URLs in the manifest.
	Endpoint string
}

// SQSDeadEnd is a topic's dead-letter or parked queue on Amazon SQS.
type SQSDeadEnd struct {
	SQSIdentity
	SQSQueueSettings
	// Role is [RoleDeadLetter] or [RoleParked].
	Role Role
	// Name is a name of the queue's own; "" is the convention's.
	Name string
	// SourceQueue is the name of the only queue whose messages SQS may move here; "" is the topic's work queue. A parked
	// queue takes none.
	SourceQueue string
}

// QueueName is the queue's name: its own, or the convention's.
func (e SQSDeadEnd) QueueName() string {
	switch {
	case e.Name != "":
		return e.Name
	case e.Role == RoleParked:
		return e.ParkedQueueName()
	default:
		return e.DeadLetterQueueName()
	}
}

// SourceQueueName is the name of the queue whose messages SQS moves to a dead-letter queue.
func (e SQSDeadEnd) SourceQueueName() string {
	if e.SourceQueue == "" {
		return e.WorkQueueName()
	}
	return e.SourceQueue
}

// deadLetterVia is the way to the dead-letter queue with the zero value spelled out.
func (s SQSSpec) deadLetterVia() DeadLetterVia {
	if s.DeadLetterVia == "" {
		return ViaRedrive
	}
	return s.DeadLetterVia
}

func (s SQSSpec) parkMode() ParkMode {
	switch {
	case s.Park != "":
		return s.Park
	case s.deadLetterVia() == ViaSend && s.ParkedQueue != "":
		return ParkPublish // consumers send to the topic's dead ends anyway
	default:
		return ParkReject
	}
}

// MaxReceiveCount is the maxReceiveCount of the work queue's redrive policy; 0 is none, where there is no dead-letter
// queue. Under [ViaSend] it leaves room for crashes, so that a consumer gets to send the message with its reason.
func (s SQSSpec) MaxReceiveCount() int {
	switch {
	case s.DeadLetterQueue == "":
		return 0
	case s.deadLetterVia() == ViaSend:
		return DefaultDeliveryLimit(s.Retry.MaxRetries)
	default:
		return s.Retry.MaxRetries + 1
	}
}

// SQSWarning is something about a topic that works and may not be meant.
type SQSWarning struct {
	// ID is a word that stays the same, to acknowledge the warning by.
	ID string
	// Summary is constant; Detail has the topic's own names and numbers.
	Summary, Detail string
}
