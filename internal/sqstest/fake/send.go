package fake

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// sending is one message to send: a whole request or an entry of a batch.
type sending struct {
	ID                      string `json:"Id"`
	MessageBody             string
	DelaySeconds            *int
	MessageAttributes       map[string]json.RawMessage
	MessageSystemAttributes map[string]struct{ StringValue string }
	MessageGroupID          string `json:"MessageGroupId"`
	MessageDeduplicationID  string `json:"MessageDeduplicationId"`
}

// sent is what the service says of a message that it took.
type sent struct {
	ID               string `json:"Id,omitempty"`
	MessageID        string `json:"MessageId"`
	MD5OfMessageBody string
	SequenceNumber   string `json:",omitempty"`
}

func (s *Service) send(c *call) (any, *Error) {
	var in sending
	q, err := s.findQueue(c, &in)
	if err != nil {
		return nil, err
	}
	s.script.handled[c.action]++
	return s.take(q, in)
}

func (s *Service) sendBatch(c *call) (any, *Error) {
	var in struct{ Entries []sending }
	q, err := s.findQueue(c, &in)
	if err != nil {
		return nil, err
	}
	return batch(s, c, in.Entries, func(e sending) (string, string) { return e.ID, e.MessageBody },
		func(e sending) (any, *Error) { return s.take(q, e) })
}

// take puts a message into a queue. s.mu is held.
func (s *Service) take(q *queue, in sending) (any, *Error) {
	now := time.Now()
	m := &message{
		body: in.MessageBody, attributes: in.MessageAttributes, trace: in.MessageSystemAttributes["AWSTraceHeader"].StringValue,
		group: in.MessageGroupID, sent: now, visible: now.Add(q.seconds("DelaySeconds", 0)),
	}
	m.id, m.sequence = s.name()
	answer := sent{ID: in.ID, MessageID: m.id, MD5OfMessageBody: sum(m.body)}
	if !q.fifo() {
		if in.DelaySeconds != nil {
			m.visible = now.Add(time.Duration(*in.DelaySeconds) * time.Second)
		}
		q.messages = append(q.messages, m)
		s.notify()
		return answer, nil
	}
	if m.group == "" {
		return nil, missing("MessageGroupId")
	}
	if m.dedup = in.MessageDeduplicationID; m.dedup == "" {
		if q.attributes["ContentBasedDeduplication"] != "true" {
			return nil, invalid("The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
		}
		hash := sha256.Sum256([]byte(m.body))
		m.dedup = hex.EncodeToString(hash[:])
	}
	if before, ok := q.sent[m.dedup]; ok && now.Sub(before.at) < remembered {
		answer.MessageID, answer.SequenceNumber = before.id, before.sequence
		return answer, nil
	}
	q.sent[m.dedup] = duplicate{m.id, m.sequence, now}
	answer.SequenceNumber = m.sequence
	q.messages = append(q.messages, m)
	s.notify()
	return answer, nil
}

// name makes an id and a sequence number. s.mu is held.
func (s *Service) name() (id, sequence string) {
	s.number++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", s.number), fmt.Sprintf("%020d", s.number)
}

func sum(body string) string {
	hash := md5.Sum([]byte(body)) // the protocol's, which the SDK checks
	return hex.EncodeToString(hash[:])
}
