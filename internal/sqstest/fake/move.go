package fake

import (
	"slices"
	"time"
)

// defaultRate is how many messages a second a task moves that was not told.
const defaultRate = 500

// task is a message-move task. It is guarded by the service's lock.
type task struct {
	handle              string
	source, destination string
	rate                int
	status              string
	reason              string
	moved, toMove       int64
	started             time.Time
}

const (
	running    = "RUNNING"
	cancelling = "CANCELLING"
)

func (s *Service) startMove(c *call) (any, *Error) {
	var in struct {
		SourceArn, DestinationArn    string
		MaxNumberOfMessagesPerSecond int
	}
	if err := c.read(&in); err != nil {
		return nil, err
	}
	source, err := s.find(in.SourceArn)
	if err != nil {
		return nil, &Error{Shape: "com.amazonaws.sqs#ResourceNotFoundException", Query: "ResourceNotFoundException", Message: "The resource that you specified for the SourceArn parameter doesn't exist."}
	}
	if !s.isDeadLetterQueue(in.SourceArn) {
		return nil, invalid("Source queue must be configured as a Dead Letter Queue.")
	}
	for _, t := range s.tasks {
		if t.source == in.SourceArn && (t.status == running || t.status == cancelling) {
			return nil, modelled("UnsupportedOperation", "UnsupportedOperation", "There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
		}
	}
	id, _ := s.name()
	t := &task{
		handle: "task-" + id, source: in.SourceArn, destination: in.DestinationArn, rate: in.MaxNumberOfMessagesPerSecond,
		status: running, toMove: int64(len(source.messages)), started: time.Now(),
	}
	if t.rate == 0 {
		t.rate = defaultRate
	}
	s.tasks = append([]*task{t}, s.tasks...)
	go s.run(t)
	return map[string]string{"TaskHandle": t.handle}, nil
}

func (s *Service) isDeadLetterQueue(arn string) bool {
	for _, q := range s.queues {
		if target, _, ok := q.redrive(); ok && target == arn {
			return true
		}
	}
	return false
}

// run moves messages, some each second, until none is left.
func (s *Service) run(t *task) {
	for s.move(t) {
		time.Sleep(time.Second)
	}
}

// move moves messages, and says whether there are more.
func (s *Service) move(t *task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.status == cancelling {
		t.status = "CANCELLED"
		return false
	}
	source, err := s.find(t.source)
	if err != nil {
		t.status, t.reason = "FAILED", "AWS.SimpleQueueService.NonExistentQueue"
		return false
	}
	left := t.rate
	for _, m := range slices.Clone(source.messages) {
		if m.visible.After(time.Now()) {
			continue
		}
		if left == 0 {
			return true
		}
		destination := t.destination
		if destination == "" {
			destination = m.source
		}
		q, err := s.find(destination)
		if err != nil {
			t.status, t.reason = "FAILED", "CouldNotDetermineMessageSource"
			return false
		}
		source.remove(m)
		again := &message{body: m.body, attributes: m.attributes, trace: m.trace, group: m.group, dedup: m.dedup, sent: time.Now(), visible: time.Now()}
		again.id, again.sequence = s.name()
		q.messages = append(q.messages, again)
		left--
		t.moved++
		s.notify()
	}
	t.status = "COMPLETED"
	return false
}

func (s *Service) listMoves(c *call) (any, *Error) {
	in := struct {
		SourceArn  string
		MaxResults int
	}{MaxResults: 1}
	if err := c.read(&in); err != nil {
		return nil, err
	}
	list := []map[string]any{}
	for _, t := range s.tasks {
		if t.source != in.SourceArn || len(list) == in.MaxResults {
			continue
		}
		shown := map[string]any{
			"Status": t.status, "SourceArn": t.source, "StartedTimestamp": t.started.UnixMilli(),
			"ApproximateNumberOfMessagesMoved": t.moved, "ApproximateNumberOfMessagesToMove": t.toMove, "MaxNumberOfMessagesPerSecond": t.rate,
		}
		for name, value := range map[string]string{"DestinationArn": t.destination, "FailureReason": t.reason} {
			if value != "" {
				shown[name] = value
			}
		}
		if t.status == running { // a finished one has no handle
			shown["TaskHandle"] = t.handle
		}
		list = append(list, shown)
	}
	return map[string]any{"Results": list}, nil
}

func (s *Service) cancelMove(c *call) (any, *Error) {
	var in struct{ TaskHandle string }
	if err := c.read(&in); err != nil {
		return nil, err
	}
	for _, t := range s.tasks {
		if t.handle == in.TaskHandle && t.status == running {
			t.status = cancelling
			return map[string]int64{"ApproximateNumberOfMessagesMoved": t.moved}, nil
		}
	}
	return nil, &Error{Shape: "com.amazonaws.sqs#ResourceNotFoundException", Query: "ResourceNotFoundException", Message: "Task does not exist."}
}
