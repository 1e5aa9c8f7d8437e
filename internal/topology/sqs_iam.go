package topology

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The actions of SQS, as IAM policies name them. A batch takes the permission of its single call.
const (
	ActionReceive          = "sqs:ReceiveMessage"
	ActionDelete           = "sqs:DeleteMessage"
	ActionChangeVisibility = "sqs:ChangeMessageVisibility"
	ActionSend             = "sqs:SendMessage"
	ActionGetAttributes    = "sqs:GetQueueAttributes"
	ActionSetAttributes    = "sqs:SetQueueAttributes"
	ActionGetURL           = "sqs:GetQueueUrl"
	ActionCreate           = "sqs:CreateQueue"
	ActionDeleteQueue      = "sqs:DeleteQueue"
	ActionPurge            = "sqs:PurgeQueue"
	ActionListQueues       = "sqs:ListQueues"
	ActionListSources      = "sqs:ListDeadLetterSourceQueues"
	ActionListTags         = "sqs:ListQueueTags"
	ActionTag              = "sqs:TagQueue"
	ActionUntag            = "sqs:UntagQueue"
	ActionStartMove        = "sqs:StartMessageMoveTask"
	ActionCancelMove       = "sqs:CancelMessageMoveTask"
	ActionListMoves        = "sqs:ListMessageMoveTasks"
)

// What a queue with a key takes of KMS.
const (
	actionDecrypt = "kms:Decrypt"
	actionDataKey = "kms:GenerateDataKey"
)

// managedKMSAlias is the key that AWS manages for SQS in every account. Its own policy lets those use it who may use the queue.
const managedKMSAlias = "alias/aws/sqs"

type iamDocument struct {
	Version   string
	Statement []iamStatement
}

type iamStatement struct {
	Sid       string
	Effect    string
	Action    []string
	Resource  []string
	Condition map[string]map[string]string `json:",omitempty"`
}

// IAMPolicy is the least that role needs on an SQS topic: an identity policy in JSON, for an IAM role or user, with no
// action and no queue more than it takes. notes are sentences for people on what it allows and leaves out.
func IAMPolicy(m Manifest, role AccessRole) (document string, notes []string, err error) {
	if m.Broker != BrokerSQS {
		return "", nil, fmt.Errorf("topic %q is on %s, which knows no IAM policies; its users' permissions are computed by build_permissions", m.Topic, brokerName(m.Broker))
	}
	p := &iamPolicy{}
	switch role {
	case AccessConsumer:
		p.receive("Consume", m.WorkQueue)
		p.consumerSends(m)
	case AccessPublisher:
		p.send("Publish", m.WorkQueue)
	case AccessOperator:
		p.operate(m)
	default:
		return "", nil, fmt.Errorf("access role %q is not known: use one of %s", role, quotedList(AccessRoles()))
	}
	if p.unknownKeys {
		p.note("Dead-letter and parked queues that are encrypted with a key of AWS KMS take permission on that key too (%s to send; %s to receive): a topic's manifest does not know their keys.",
			actionDataKey+" and "+actionDecrypt, actionDecrypt)
	}
	return p.encode(), p.notes, nil
}

// consumerSends are the dead ends that a consumer sends to: none by default.
func (p *iamPolicy) consumerSends(m Manifest) {
	if m.Final == FinalPublish && m.DeadLetter != nil {
		p.send("DeadLetter", m.DeadLetter.ManifestQueue)
		p.note("The consumer sends what failed for good to %q itself, with the reason (dead_letter_via = %q); under %q it would need no permission to send.",
			m.DeadLetter.Name, ViaSend, ViaRedrive)
	}
	if m.Park == ParkPublish && m.Parked != nil {
		p.send("Park", m.Parked.ManifestQueue)
		p.note("The consumer sends what it cannot read to %q itself (park = %q).", m.Parked.Name, ParkPublish)
	}
}

// operate is what looking into a topic's queues and replaying takes.
func (p *iamPolicy) operate(m Manifest) {
	queues := []ManifestQueue{m.WorkQueue}
	if m.DeadLetter != nil {
		queues = append(queues, m.DeadLetter.ManifestQueue)
		p.receive("ReadDeadLetters", m.DeadLetter.ManifestQueue)
		p.allow("MoveDeadLetters", []string{ActionStartMove, ActionCancelMove, ActionListMoves}, m.DeadLetter.ARN)
		p.note("Reading a queue takes messages out of it as consuming does, until they are given back or their visibility timeout is over; on a queue with a redrive policy that counts.")
	}
	if m.Parked != nil {
		queues = append(queues, m.Parked.ManifestQueue)
		p.receive("ReadParked", m.Parked.ManifestQueue)
		p.note("SQS moves messages by a task only from queues that are somebody's dead-letter queue: what is in %q is replayed by receiving and sending.", m.Parked.Name)
	}
	if len(queues) > 1 {
		p.send("Replay", m.WorkQueue)
	} else {
		p.note("Topic %q has neither a dead-letter nor a parked queue: there is nothing to look into or to replay.", m.Topic)
	}
	var arns []string
	for _, q := range queues {
		arns = append(arns, q.ARN)
	}
	p.allow("Look", []string{ActionGetAttributes}, arns...)
}

// iamPolicy collects statements and notes.
type iamPolicy struct {
	statements []iamStatement
	notes      []string
	// unknownKeys: a queue is among them of which it is not known whether it has a key.
	unknownKeys bool
}

func (p *iamPolicy) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

func (p *iamPolicy) allow(sid string, actions []string, arns ...string) {
	p.statements = append(p.statements, iamStatement{Sid: sid, Effect: "Allow", Action: actions, Resource: arns})
}

// receive allows to receive and settle the messages of a queue.
func (p *iamPolicy) receive(sid string, q ManifestQueue) {
	p.allow(sid, []string{ActionReceive, ActionDelete, ActionChangeVisibility}, q.ARN)
	p.key(sid+"Key", []string{actionDecrypt}, q)
}

// send allows to send messages to a queue. SQS also decrypts a new data key, to check it.
func (p *iamPolicy) send(sid string, q ManifestQueue) {
	p.allow(sid, []string{ActionSend}, q.ARN)
	p.key(sid+"Key", []string{actionDataKey, actionDecrypt}, q)
}

// key allows the use of a queue's key. An alias is no resource: permission is on keys that have it.
func (p *iamPolicy) key(sid string, actions []string, q ManifestQueue) {
	p.unknownKeys = p.unknownKeys || q.Attributes == nil
	key := q.Attributes[AttrKMSKey]
	where, _, err := ParseSQSARN(q.ARN)
	if key == "" || key == managedKMSAlias || err != nil {
		return
	}
	prefix := fmt.Sprintf("arn:%s:kms:%s:%s:", where.Partition, where.Region, where.Account)
	resource, condition := key, map[string]map[string]string(nil)
	alias := key
	if strings.HasPrefix(key, "arn:") {
		parts := strings.SplitN(key, ":", 6)
		alias = parts[len(parts)-1]
		prefix = strings.TrimSuffix(key, alias)
	}
	switch {
	case strings.HasPrefix(alias, "alias/"):
		resource = prefix + "key/*"
		condition = map[string]map[string]string{"ForAnyValue:StringEquals": {"kms:ResourceAliases": alias}}
	case !strings.HasPrefix(key, "arn:"):
		resource = prefix + "key/" + key
	}
	p.statements = append(p.statements, iamStatement{Sid: sid, Effect: "Allow", Action: actions, Resource: []string{resource}, Condition: condition})
}

func (p *iamPolicy) encode() string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(iamDocument{Version: "2012-10-17", Statement: p.statements}); err != nil {
		panic(fmt.Sprintf("topology: an IAM policy always encodes: %v", err)) // texts all of it
	}
	return strings.TrimSuffix(b.String(), "\n")
}
