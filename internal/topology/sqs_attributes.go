package topology

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The attributes of a queue that this package computes, by SQS's names.
const (
	AttrVisibilityTimeout   = "VisibilityTimeout"
	AttrRetention           = "MessageRetentionPeriod"
	AttrDelay               = "DelaySeconds"
	AttrReceiveWait         = "ReceiveMessageWaitTimeSeconds"
	AttrMaxMessageSize      = "MaximumMessageSize"
	AttrManagedSSE          = "SqsManagedSseEnabled"
	AttrKMSKey              = "KmsMasterKeyId"
	AttrKMSReuse            = "KmsDataKeyReusePeriodSeconds"
	AttrPolicy              = "Policy"
	AttrRedrivePolicy       = "RedrivePolicy"
	AttrRedriveAllowPolicy  = "RedriveAllowPolicy"
	AttrFIFO                = "FifoQueue"
	AttrContentBasedDedup   = "ContentBasedDeduplication"
	AttrDeduplicationScope  = "DeduplicationScope"
	AttrFIFOThroughputLimit = "FifoThroughputLimit"
)

// The attributes of a live queue that nobody sets.
const (
	attrARN      = "QueueArn"
	attrVisible  = "ApproximateNumberOfMessages"
	attrInFlight = "ApproximateNumberOfMessagesNotVisible"
	attrDelayed  = "ApproximateNumberOfMessagesDelayed"
)

// SQSAttributes are attributes of a queue by name, as SQS takes and returns them: numbers in decimal, durations in whole
// seconds, "true" and "false", JSON. An empty value is an attribute that is not set; setting it to "" unsets it.
type SQSAttributes map[string]string

// errUnplaced is why ARNs cannot be computed.
var errUnplaced = errors.New("the region or the account id is not known, and redrive policies name queues by their ARNs; configure both")

// Attributes are all attributes of the work queue that are managed, "" for those that are not to be set. It refuses what
// [SQSSpec.Validate] refuses, and a topic of which it is not known where it is.
func (s SQSSpec) Attributes() (SQSAttributes, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	attributes := s.attributes(s.FIFO, DefaultRetention)
	if count := s.MaxReceiveCount(); count > 0 {
		if !s.Placed() {
			return nil, fmt.Errorf("topic %q: %w", s.Topic, errUnplaced)
		}
		attributes[AttrRedrivePolicy] = CanonicalJSON(map[string]any{redriveTarget: s.ARN(s.DeadLetterQueue), redriveCount: int64(count)})
	}
	return attributes, nil
}

// Attributes are all attributes of the dead-letter or parked queue that are managed, "" for those that are not to be set.
// It refuses what [SQSDeadEnd.Validate] refuses, and a dead-letter queue of which it is not known where it is.
func (e SQSDeadEnd) Attributes() (SQSAttributes, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	attributes := e.attributes(e.FIFO, MaxRetention)
	if e.Role == RoleParked {
		attributes[AttrRedriveAllowPolicy] = CanonicalJSON(map[string]any{redrivePermission: "denyAll"})
		return attributes, nil
	}
	if !e.Placed() {
		return nil, fmt.Errorf("dead-letter queue %q of topic %q: %w", e.QueueName(), e.Topic, errUnplaced)
	}
	attributes[AttrRedriveAllowPolicy] = CanonicalJSON(map[string]any{redrivePermission: "byQueue", redriveSources: []any{e.ARN(e.SourceQueueName())}})
	return attributes, nil
}

// SourceQueueIn is the source queue of a live dead-letter queue whose redrive-allow policy names one queue beside it that is
// not the topic's own; "" where it names that, several, one elsewhere, or none.
func (e SQSDeadEnd) SourceQueueIn(live SQSAttributes) string {
	var policy struct {
		Permission string   `json:"redrivePermission"`
		Sources    []string `json:"sourceQueueArns"`
	}
	err := json.Unmarshal([]byte(live[AttrRedriveAllowPolicy]), &policy)
	if err != nil || e.Role != RoleDeadLetter || policy.Permission != "byQueue" || len(policy.Sources) != 1 {
		return ""
	}
	_, name, err := ParseSQSARN(policy.Sources[0])
	if err != nil || name == e.WorkQueueName() || policy.Sources[0] != e.ARN(name) {
		return ""
	}
	return name
}

// The keys of redrive policies and of redrive-allow policies.
const (
	redriveTarget     = "deadLetterTargetArn"
	redriveCount      = "maxReceiveCount"
	redrivePermission = "redrivePermission"
	redriveSources    = "sourceQueueArns"
	redriveAllowAll   = "allowAll"
)

// attributes are those of the settings, with no redrive policies.
func (q SQSQueueSettings) attributes(fifo bool, retention time.Duration) SQSAttributes {
	a := SQSAttributes{
		AttrVisibilityTimeout: seconds(cmp.Or(q.VisibilityTimeout, DefaultVisibilityTimeout)),
		AttrRetention:         seconds(cmp.Or(q.Retention, retention)),
		AttrDelay:             seconds(q.Delay),
		AttrReceiveWait:       seconds(q.ReceiveWait),
		AttrMaxMessageSize:    "",
		AttrManagedSSE:        strconv.FormatBool(q.sse() == SSEManaged),
		AttrKMSKey:            "",
		AttrPolicy:            "",
		AttrRedrivePolicy:     "", AttrRedriveAllowPolicy: "",
	}
	if q.MaxMessageSize != 0 {
		a[AttrMaxMessageSize] = strconv.Itoa(q.MaxMessageSize)
	}
	if q.sse() == SSEKMS {
		a[AttrKMSKey] = q.KMSKey
		a[AttrKMSReuse] = seconds(cmp.Or(q.KMSDataKeyReuse, DefaultKMSReuse))
	}
	if policy, err := CanonicalPolicy(q.Policy); err == nil { // Validate refuses others
		a[AttrPolicy] = policy
	}
	if fifo {
		a[AttrFIFO] = "true"
		a[AttrContentBasedDedup] = strconv.FormatBool(q.ContentBasedDeduplication)
		a[AttrDeduplicationScope] = cmp.Or(q.DeduplicationScope, ScopeQueue)
		a[AttrFIFOThroughputLimit] = cmp.Or(q.ThroughputLimit, LimitPerQueue)
	}
	return a
}

// sse is the mode of encryption with the zero value spelled out.
func (q SQSQueueSettings) sse() string {
	switch {
	case q.SSE != "":
		return q.SSE
	case q.KMSKey != "":
		return SSEKMS
	default:
		return SSEManaged
	}
}

// retention is how long the work queue keeps a message.
func (s SQSSpec) retention() time.Duration { return cmp.Or(s.Retention, DefaultRetention) }

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// SQSSettingsOf reads the settings of a queue back from its live attributes: those that differ from the defaults of its
// role, and zero elsewhere. Tags are not among a queue's attributes.
func SQSSettingsOf(have SQSAttributes, role Role) SQSQueueSettings {
	live := have.Managed()
	retention := DefaultRetention
	if role != RoleWork {
		retention = MaxRetention
	}
	other := func(value, usual time.Duration) time.Duration {
		if value == usual {
			return 0
		}
		return value
	}
	q := SQSQueueSettings{
		VisibilityTimeout: other(live.VisibilityTimeout(), DefaultVisibilityTimeout), Retention: other(live.Retention(), retention),
		Delay: live.Delay(), ReceiveWait: live.seconds(AttrReceiveWait), KMSKey: live[AttrKMSKey], Policy: live[AttrPolicy],
		ContentBasedDeduplication: live[AttrContentBasedDedup] == "true",
	}
	if size := live.MaxMessageSize(); size != MaxMessageSize && size != OldMaxMessageSize {
		q.MaxMessageSize = size
	}
	switch {
	case q.KMSKey != "":
		q.SSE, q.KMSDataKeyReuse = SSEKMS, other(live.seconds(AttrKMSReuse), DefaultKMSReuse)
	case live[AttrManagedSSE] == "false":
		q.SSE = SSENone
	}
	if scope := live[AttrDeduplicationScope]; scope != ScopeQueue {
		q.DeduplicationScope = scope
	}
	if limit := live[AttrFIFOThroughputLimit]; limit != LimitPerQueue {
		q.ThroughputLimit = limit
	}
	return q
}

// VisibilityTimeout is how long a received message stays invisible unless that is changed.
func (a SQSAttributes) VisibilityTimeout() time.Duration { return a.seconds(AttrVisibilityTimeout) }

// Retention is how long the queue keeps a message.
func (a SQSAttributes) Retention() time.Duration { return a.seconds(AttrRetention) }

// Delay is how long a sent message waits before it is received for the first time.
func (a SQSAttributes) Delay() time.Duration { return a.seconds(AttrDelay) }

// IdleWait is how long a message waits that was received and that nobody does anything about, cut to what can be the delay
// of so many retries: they fit into the retention and, on a FIFO queue, into one receive.
func (a SQSAttributes) IdleWait(retries int, jitter float64) time.Duration {
	longest := float64(SQSHoldBound)
	if !a.FIFO() {
		longest *= float64(retries)
	}
	longest = min(longest, float64(a.Retention()-a.Delay()-time.Second))
	fits := time.Duration(longest/(float64(retries)*(1+jitter))) / time.Second * time.Second
	return max(time.Second, min(fits, max(a.VisibilityTimeout(), DefaultVisibilityTimeout)))
}

// MaxMessageSize is in bytes.
func (a SQSAttributes) MaxMessageSize() int { return int(a.number(AttrMaxMessageSize)) }

// FIFO reports whether the queue is a FIFO queue.
func (a SQSAttributes) FIFO() bool { return a[AttrFIFO] == "true" }

// ARN is a live queue's; "" where it was not asked for.
func (a SQSAttributes) ARN() string { return a[attrARN] }

// Messages are the numbers of messages of a live queue, which are approximate: those that can be received, those that were
// and wait invisibly, and those that were sent with a delay.
func (a SQSAttributes) Messages() (visible, inFlight, delayed int) {
	return int(a.number(attrVisible)), int(a.number(attrInFlight)), int(a.number(attrDelayed))
}

// RedriveTarget is where SQS moves a message that was received maxReceiveCount times and not deleted; ok is false where
// there is no redrive policy that can be read.
func (a SQSAttributes) RedriveTarget() (arn string, maxReceiveCount int, ok bool) {
	value, err := decodeStrict([]byte(a[AttrRedrivePolicy]))
	policy, isObject := value.(map[string]any)
	if err != nil || !isObject {
		return "", 0, false
	}
	arn, _ = policy[redriveTarget].(string)
	count, ok := wholeOf(policy[redriveCount])
	return arn, int(count), ok && arn != "" && count >= 1 && count <= MaxReceives
}

func (a SQSAttributes) seconds(name string) time.Duration {
	return time.Duration(a.number(name)) * time.Second
}

// number is an attribute's number, or what AWS has where it is absent; one that makes no sense is 0.
func (a SQSAttributes) number(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(cmp.Or(a[name], sqsDefaults[name])), 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
