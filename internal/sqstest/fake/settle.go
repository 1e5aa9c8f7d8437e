package fake

import (
	"strconv"
	"strings"
	"time"
)

// settling is one message to settle: a whole request or an entry of a batch.
type settling struct {
	ID                string `json:"Id"`
	ReceiptHandle     string
	VisibilityTimeout *int
}

func (s *Service) deleteOne(c *call) (any, *Error) { return s.settleOne(c, s.deleteMessage) }

func (s *Service) changeOne(c *call) (any, *Error) { return s.settleOne(c, s.changeVisibility) }

func (s *Service) deleteBatch(c *call) (any, *Error) { return s.settleBatch(c, s.deleteMessage) }

func (s *Service) changeBatch(c *call) (any, *Error) { return s.settleBatch(c, s.changeVisibility) }

func (s *Service) settleOne(c *call, settle func(*queue, settling) *Error) (any, *Error) {
	var in settling
	q, err := s.findQueue(c, &in)
	if err != nil {
		return nil, err
	}
	s.script.handled[c.action]++
	return nil, settle(q, in)
}

func (s *Service) settleBatch(c *call, settle func(*queue, settling) *Error) (any, *Error) {
	var in struct{ Entries []settling }
	q, err := s.findQueue(c, &in)
	if err != nil {
		return nil, err
	}
	about := func(e settling) (string, string) {
		if m := q.byHandle(e.ReceiptHandle); m != nil {
			return e.ID, m.body
		}
		return e.ID, ""
	}
	return batch(s, c, in.Entries, about, func(e settling) (any, *Error) {
		return map[string]string{"Id": e.ID}, settle(q, e)
	})
}

// batch carries out the entries of a batch one by one. s.mu is held.
func batch[E any](s *Service, c *call, entries []E, about func(E) (id, body string), do func(E) (any, *Error)) (any, *Error) {
	switch {
	case len(entries) == 0:
		return nil, modelled("EmptyBatchRequest", "EmptyBatchRequest", "There should be at least one entry in the request.")
	case len(entries) > 10:
		return nil, modelled("TooManyEntriesInBatchRequest", "TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent "+strconv.Itoa(len(entries))+".")
	}
	s.script.handled[c.action] += len(entries)
	ids := make(map[string]bool)
	for _, e := range entries {
		id, _ := about(e)
		if ids[id] {
			return nil, modelled("BatchEntryIdsNotDistinct", "BatchEntryIdsNotDistinct", "Id "+id+" repeated.")
		}
		ids[id] = true
	}
	answer := struct {
		Successful []any        `json:",omitempty"`
		Failed     []entryError `json:",omitempty"`
	}{}
	for _, e := range entries {
		id, body := about(e)
		err := s.entryFails(c.action, body)
		var done any
		if err == nil {
			done, err = do(e)
		}
		if err != nil {
			answer.Failed = append(answer.Failed, err.entry(id))
		} else {
			answer.Successful = append(answer.Successful, done)
		}
	}
	return answer, nil
}

// byHandle is the message that a handle belongs to, of whichever receive; nil where it is no longer there.
func (q *queue) byHandle(handle string) *message {
	id, _, _ := strings.Cut(handle, "#")
	for _, m := range q.messages {
		if m.id == id {
			return m
		}
	}
	return nil
}

// settled is the message that a handle settles; nil where it is no longer there, or was received again since.
func (q *queue) settled(handle string) (*message, *Error) {
	if !strings.Contains(handle, "#") {
		return nil, malformedHandle(handle)
	}
	q.expire(time.Now())
	m := q.byHandle(handle)
	if m == nil {
		return nil, nil
	}
	if current := m.handle() == handle; q.fifo() && (!current || !m.inFlight(time.Now())) {
		return nil, invalid("Value %s for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.", handle)
	} else if !current {
		return nil, nil
	}
	return m, nil
}

// deleteMessage: a standard handle that has expired deletes all the same, and deleting twice is a success.
func (s *Service) deleteMessage(q *queue, in settling) *Error {
	m, err := q.settled(in.ReceiptHandle)
	if err != nil || m == nil {
		return err
	}
	q.remove(m)
	s.notify() // the next one of its group can be received
	return nil
}

// changeVisibility: a message is invisible for 12 hours at most, from its receive on.
func (s *Service) changeVisibility(q *queue, in settling) *Error {
	if in.VisibilityTimeout == nil {
		return missing("VisibilityTimeout")
	}
	timeout := time.Duration(*in.VisibilityTimeout) * time.Second
	if timeout < 0 || timeout > mostInvisible {
		return invalid("Value %d for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200.", *in.VisibilityTimeout)
	}
	m, err := q.settled(in.ReceiptHandle)
	if err != nil {
		return err
	}
	if m == nil {
		return invalid("Value %s for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.", in.ReceiptHandle)
	}
	now := time.Now()
	if now.Add(timeout).After(m.received.Add(mostInvisible)) {
		return invalid("Value %d for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds].", *in.VisibilityTimeout)
	}
	m.visible = now.Add(timeout)
	s.notify()
	return nil
}
