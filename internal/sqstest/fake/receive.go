package fake

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// receiving are the parameters of ReceiveMessage.
type receiving struct {
	onQueue
	MaxNumberOfMessages         int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
	MessageSystemAttributeNames []string
	AttributeNames              []string
	MessageAttributeNames       []string
	ReceiveRequestAttemptID     string `json:"ReceiveRequestAttemptId"`
}

// received is a message as it is received.
type received struct {
	MessageID         string `json:"MessageId"`
	ReceiptHandle     string
	Body              string
	MD5OfBody         string
	Attributes        map[string]string          `json:",omitempty"`
	MessageAttributes map[string]json.RawMessage `json:",omitempty"`
}

// attempt is what a receive of a FIFO queue was answered.
type attempt struct {
	at       time.Time
	messages []*message
	handles  []string
}

func (s *Service) receive(c *call) (any, *Error) {
	in := receiving{MaxNumberOfMessages: 1}
	q, err := s.findQueue(c, &in)
	if err != nil {
		return nil, err
	}
	if in.MaxNumberOfMessages < 1 || in.MaxNumberOfMessages > 10 {
		return nil, invalid("Value %d for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.", in.MaxNumberOfMessages)
	}
	wait := q.seconds("ReceiveMessageWaitTimeSeconds", 0)
	if in.WaitTimeSeconds != nil {
		wait = time.Duration(*in.WaitTimeSeconds) * time.Second
	}
	until := time.Now().Add(wait)
	for {
		// A queue that is deleted meanwhile is found no more.
		if q, err = s.find(in.QueueURL); err != nil {
			return nil, err
		}
		now := time.Now()
		got, full := s.pick(q, &in, now)
		switch {
		case len(got) > 0:
			s.script.handled[c.action] += len(got)
			return map[string]any{"Messages": s.show(q, got, &in)}, nil
		case full && wait == 0:
			return nil, OverLimit()
		case !now.Before(until) || c.abandoned():
			return nil, nil
		}
		s.wait(c, q.next(now, until))
	}
}

// abandoned says that nobody waits for the answer any more.
func (c *call) abandoned() bool { return c.ctx.Err() != nil }

// wait lets others go on until something has changed, or until a time. s.mu is held.
func (s *Service) wait(c *call, until time.Time) {
	changed := s.changed
	s.mu.Unlock()
	defer s.mu.Lock()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-c.ctx.Done():
	}
}

// next is when the next message becomes visible, or limit where none does before.
func (q *queue) next(now, limit time.Time) time.Time {
	for _, m := range q.messages {
		if m.visible.After(now) && m.visible.Before(limit) {
			limit = m.visible
		}
	}
	return limit
}

// pick receives what can be received. It is full where too much is in flight. s.mu is held.
func (s *Service) pick(q *queue, in *receiving, now time.Time) (got []*message, full bool) {
	q.expire(now)
	timeout := q.seconds("VisibilityTimeout", defaultVisibility)
	if in.VisibilityTimeout != nil {
		timeout = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	if again := q.repeated(in.ReceiveRequestAttemptID, now); again != nil {
		for _, m := range again {
			m.visible = now.Add(timeout)
		}
		return again, false
	}
	away, blocked := 0, make(map[string]bool)
	for _, m := range q.messages {
		if m.inFlight(now) {
			away++
		}
	}
	for _, m := range slices.Clone(q.messages) {
		switch {
		case len(got) == in.MaxNumberOfMessages:
			return q.remember(in, got, now), false
		case q.fifo() && blocked[m.group]:
			continue
		case m.visible.After(now): // in flight, or delayed: its successors wait
			blocked[m.group] = true
			continue
		case s.redrive(q, m):
			continue
		case !q.fifo() && away >= s.inFlight:
			return got, true
		}
		away++
		m.count++
		m.received, m.visible = now, now.Add(timeout)
		if m.count == 1 {
			m.first = now
		}
		got = append(got, m)
	}
	return q.remember(in, got, now), false
}

// redrive moves a message that was received too often. s.mu is held.
func (s *Service) redrive(q *queue, m *message) bool {
	arn, most, ok := q.redrive()
	if !ok || m.count < most {
		return false
	}
	dead, err := s.find(arn)
	if err != nil {
		return false
	}
	q.remove(m)
	m.source = QueueARN(q.name)
	m.visible = time.Now()
	if dead.fifo() {
		m.sent = time.Now() // a standard queue keeps the time at which it was sent first
	}
	dead.messages = append(dead.messages, m)
	s.notify()
	return true
}

// remember keeps what a receive was answered, under its attempt id.
func (q *queue) remember(in *receiving, got []*message, now time.Time) []*message {
	if !q.fifo() || in.ReceiveRequestAttemptID == "" || len(got) == 0 {
		return got
	}
	a := attempt{at: now, messages: got}
	for _, m := range got {
		a.handles = append(a.handles, m.handle())
	}
	q.attempts[in.ReceiveRequestAttemptID] = a
	return got
}

// repeated is what was answered to the attempt of an id, where nothing has become of it yet.
func (q *queue) repeated(id string, now time.Time) []*message {
	a, ok := q.attempts[id]
	if !ok || now.Sub(a.at) >= remembered {
		return nil
	}
	for i, m := range a.messages {
		if !slices.Contains(q.messages, m) || !m.inFlight(now) || m.handle() != a.handles[i] {
			return nil
		}
	}
	return a.messages
}

// show is what a receive answers.
func (s *Service) show(q *queue, got []*message, in *receiving) []received {
	asked := append(slices.Clone(in.MessageSystemAttributeNames), in.AttributeNames...)
	list := make([]received, len(got))
	for i, m := range got {
		all := map[string]string{
			"ApproximateReceiveCount": strconv.Itoa(m.count), "SenderId": "AIDATEST",
			"SentTimestamp":                    strconv.FormatInt(m.sent.UnixMilli(), 10),
			"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.first.UnixMilli(), 10),
			"MessageGroupId":                   m.group, "AWSTraceHeader": m.trace, "DeadLetterQueueSourceArn": m.source,
		}
		if q.fifo() {
			all["MessageDeduplicationId"], all["SequenceNumber"] = m.dedup, m.sequence
		}
		for name, value := range all {
			if value == "" || !slices.Contains(asked, "All") && !slices.Contains(asked, name) {
				delete(all, name)
			}
		}
		list[i] = received{m.id, m.handle(), m.body, sum(m.body), all, nil}
		for name, value := range m.attributes {
			if slices.Contains(in.MessageAttributeNames, "All") || slices.Contains(in.MessageAttributeNames, ".*") || slices.Contains(in.MessageAttributeNames, name) {
				if list[i].MessageAttributes == nil {
					list[i].MessageAttributes = make(map[string]json.RawMessage)
				}
				list[i].MessageAttributes[name] = value
			}
		}
	}
	return list
}
