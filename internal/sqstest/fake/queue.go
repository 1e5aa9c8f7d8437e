package fake

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// What a queue does where its attributes do not say.
const (
	defaultVisibility = 30 * time.Second
	defaultRetention  = 4 * 24 * time.Hour
	// mostInvisible is how long a message may be invisible after its receive.
	mostInvisible = 12 * time.Hour
	// remembered is how long a FIFO queue remembers deduplication ids and receive attempts.
	remembered = 5 * time.Minute
)

// queue is a queue. It is guarded by the service's lock.
type queue struct {
	name       string
	url        string
	attributes map[string]string
	created    time.Time
	// messages are in the order in which they came.
	messages []*message
	// sent are the ids of messages by their deduplication id, and attempts the receives by their attempt id.
	sent     map[string]duplicate
	attempts map[string]attempt
}

type duplicate struct {
	id, sequence string
	at           time.Time
}

// message is a message in a queue.
type message struct {
	id, body   string
	attributes map[string]json.RawMessage // as the publisher sent them
	trace      string                     // AWSTraceHeader
	group      string
	dedup      string
	sequence   string
	// source is the queue that redrove it: DeadLetterQueueSourceArn.
	source string
	sent   time.Time
	first  time.Time
	count  int
	// received is when it was received last, and visible from when on it may be received again.
	received, visible time.Time
}

// inFlight says whether somebody received it and may still be working on it.
func (m *message) inFlight(now time.Time) bool { return m.count > 0 && m.visible.After(now) }

// handle is the handle of its last receive.
func (m *message) handle() string { return m.id + "#" + strconv.Itoa(m.count) }

func (q *queue) fifo() bool { return q.attributes["FifoQueue"] == "true" }

func (q *queue) seconds(attribute string, otherwise time.Duration) time.Duration {
	n, err := strconv.Atoi(q.attributes[attribute])
	if err != nil {
		return otherwise
	}
	return time.Duration(n) * time.Second
}

// redrive is where messages go that were received too often, and what is too often; ok is false where they go nowhere.
func (q *queue) redrive() (arn string, most int, ok bool) {
	var policy struct {
		Target string      `json:"deadLetterTargetArn"`
		Most   json.Number `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(q.attributes["RedrivePolicy"]), &policy); err != nil {
		return "", 0, false
	}
	most, err := strconv.Atoi(policy.Most.String())
	return policy.Target, most, err == nil && policy.Target != ""
}

// remove takes a message out.
func (q *queue) remove(m *message) {
	q.messages = slices.DeleteFunc(q.messages, func(x *message) bool { return x == m })
}

// expire drops the messages that are older than the retention.
func (q *queue) expire(now time.Time) {
	oldest := now.Add(-q.seconds("MessageRetentionPeriod", defaultRetention))
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return m.sent.Before(oldest) })
}

// Message is a message in a queue, as a test looks at it.
type Message struct {
	ID, Body, Group string
	// Receives is how often it was received, and Visible from when on it can be.
	Receives int
	Visible  time.Time
	// Source is the ARN of the queue that redrove it.
	Source string
	// Attributes are the message attributes as they were sent.
	Attributes map[string]json.RawMessage
}

// Messages are the messages of a queue, in the order in which they came.
func (s *Service) Messages(name string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return nil
	}
	q.expire(time.Now())
	list := make([]Message, len(q.messages))
	for i, m := range q.messages {
		list[i] = Message{m.id, m.body, m.group, m.count, m.visible, m.source, m.attributes}
	}
	return list
}

func (s *Service) createQueue(c *call) (any, *Error) {
	var in struct {
		QueueName  string
		Attributes map[string]string
	}
	if err := c.read(&in); err != nil {
		return nil, err
	}
	q := s.queues[in.QueueName]
	if q == nil {
		q = &queue{
			name: in.QueueName, url: c.host + "/" + Account + "/" + in.QueueName, attributes: map[string]string{}, created: time.Now(),
			sent: make(map[string]duplicate), attempts: make(map[string]attempt),
		}
		maps.Copy(q.attributes, in.Attributes)
		s.queues[in.QueueName] = q
	}
	for name, value := range in.Attributes {
		if q.attributes[name] != value {
			return nil, &Error{
				Shape: "com.amazonaws.sqs#QueueNameExists", Query: "QueueAlreadyExists",
				Message: "A queue already exists with the same name and a different value for attribute " + name,
			}
		}
	}
	return map[string]string{"QueueUrl": q.url}, nil
}

// onQueue is what most requests begin with.
type onQueue struct {
	QueueURL string `json:"QueueUrl"`
}

// findQueue reads a request and finds its queue. s.mu is held.
func (s *Service) findQueue(c *call, into any) (*queue, *Error) {
	var on onQueue
	if err := c.read(&on); err != nil {
		return nil, err
	}
	if err := c.read(into); err != nil {
		return nil, err
	}
	return s.find(on.QueueURL)
}

func (s *Service) deleteQueue(c *call) (any, *Error) {
	q, err := s.findQueue(c, &struct{}{})
	if err != nil {
		return nil, err
	}
	delete(s.queues, q.name)
	s.notify()
	return nil, nil
}

func (s *Service) getQueueURL(c *call) (any, *Error) {
	var in struct{ QueueName string }
	if err := c.read(&in); err != nil {
		return nil, err
	}
	q, err := s.find(in.QueueName)
	if err != nil {
		return nil, err
	}
	return map[string]string{"QueueUrl": q.url}, nil
}

func (s *Service) setAttributes(c *call) (any, *Error) {
	var in struct{ Attributes map[string]string }
	q, err := s.findQueue(c, &in)
	if err != nil {
		return nil, err
	}
	for name, value := range in.Attributes {
		if value == "" {
			delete(q.attributes, name)
			continue
		}
		q.attributes[name] = value
	}
	s.notify()
	return nil, nil
}

func (s *Service) getAttributes(c *call) (any, *Error) {
	var in struct{ AttributeNames []string }
	q, err := s.findQueue(c, &in)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	q.expire(now)
	var ready, away, delayed int
	for _, m := range q.messages {
		switch {
		case m.inFlight(now):
			away++
		case m.visible.After(now):
			delayed++
		default:
			ready++
		}
	}
	all := map[string]string{
		"QueueArn": QueueARN(q.name), "CreatedTimestamp": strconv.FormatInt(q.created.Unix(), 10),
		"VisibilityTimeout":                     fmt.Sprint(int(defaultVisibility.Seconds())),
		"MessageRetentionPeriod":                fmt.Sprint(int(defaultRetention.Seconds())),
		"ApproximateNumberOfMessages":           strconv.Itoa(ready),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(away),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(delayed),
	}
	maps.Copy(all, q.attributes)
	maps.DeleteFunc(all, func(name, _ string) bool {
		return !slices.Contains(in.AttributeNames, name) && !slices.Contains(in.AttributeNames, "All")
	})
	return map[string]any{"Attributes": all}, nil
}
