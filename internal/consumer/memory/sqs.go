package memory

import (
	"slices"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// receiveBatch is how many messages one receive returns at most.
const receiveBatch = 10

// service is what a queue of Amazon SQS is like.
type service struct {
	arn                          string
	fifo                         bool
	visibility, retention, delay time.Duration
	// dead is the queue that messages are moved to on the receive after the most-th; "" is none.
	dead string
	most int64
}

// newService is what a manifest says of a queue; nil where it is not one of SQS. What it does not say of a dead-letter or
// parked queue is as the provider has it where the configuration does not say otherwise.
func newService(from topology.ManifestQueue) *service {
	if from.Type != topology.Standard && from.Type != topology.FIFO {
		return nil
	}
	s := &service{
		arn: from.ARN, fifo: from.Type == topology.FIFO,
		visibility: from.Attributes.VisibilityTimeout(), retention: topology.MaxRetention, delay: from.Attributes.Delay(),
	}
	if len(from.Attributes) > 0 {
		s.retention = from.Attributes.Retention()
	}
	if arn, most, ok := from.Attributes.RedriveTarget(); ok {
		if _, name, err := topology.ParseSQSARN(arn); err == nil {
			s.dead, s.most = name, int64(most)
		}
	}
	return s
}

// post is arrive for SQS: a message was sent, or moved to the queue. b.mu is held.
func (b *Broker) post(q *queue, m *message) {
	now, delay := b.clock.Now(), q.sqs.delay
	if m.count > 0 {
		delay = 0
	}
	if m.count == 0 || q.sqs.fifo { // a standard queue's message keeps the time at which it was sent when it is moved
		m.sent = now
	}
	m.due = m.sent.Add(q.sqs.retention)
	b.hide(q, m, delay)
}

// hide lets a message be received after a while. The caller dispatches. b.mu is held.
func (b *Broker) hide(q *queue, m *message, while time.Duration) {
	if while <= 0 {
		q.insert(m)
		return
	}
	q.waiting[m] = true
	q.events[m] = b.clock.at(b.clock.Now().Add(while), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(q.waiting, m)
		delete(q.events, m)
		q.insert(m)
		b.dispatch(q)
	})
}

// expire forgets what is older than the retention.
func (q *queue) expire(now time.Time) {
	kept := q.ready[:0]
	for _, m := range q.ready {
		if now.Before(m.due) {
			kept = append(kept, m)
		}
	}
	clear(q.ready[len(kept):])
	q.ready = kept
}

// poll is dispatch for SQS: consumers that have room receive. b.mu is held.
func (b *Broker) poll(q *queue) {
	q.expire(b.clock.Now())
	for len(q.ready) > 0 {
		s := q.receiver()
		if s == nil || !b.receive(q, s) {
			return
		}
	}
}

// receive is one receive, and says whether anything came of it. b.mu is held.
func (b *Broker) receive(q *queue, s *session) bool {
	most := min(receiveBatch, s.prefetch-len(s.unsettled))
	if q.sqs.fifo && len(s.client.buried) > 0 {
		most = 1 // its successors are not to be received each time
	}
	blocked, some, received := q.blocked(), false, 0
	for _, m := range slices.Clone(q.ready) {
		if received == most {
			break
		}
		if blocked[m.RoutingKey] {
			continue
		}
		some = true
		q.take(m)
		if q.sqs.dead != "" && m.count >= q.sqs.most && b.redrive(q, m) {
			continue
		}
		m.count++
		received++
		switch {
		case !s.client.buried[m]:
			s.deliver(m)
		case b.queues[q.sqs.dead] == nil: // it cannot be moved: it comes back for ever, which takes time
			b.hide(q, m, q.sqs.visibility)
		default: // its consumer made it visible again at once, for the redrive policy to move it
			q.insert(m)
		}
	}
	return some
}

// blocked are the message groups of a FIFO queue of which a message is in flight: nothing else of them is received.
func (q *queue) blocked() map[string]bool {
	if !q.sqs.fifo {
		return nil
	}
	groups := make(map[string]bool)
	for _, m := range q.away() {
		groups[m.RoutingKey] = true
	}
	return groups
}

// redrive moves a message to the dead-letter queue, with its receive count. b.mu is held.
func (b *Broker) redrive(q *queue, m *message) bool {
	target := b.queues[q.sqs.dead]
	if target == nil {
		return false
	}
	for _, s := range q.sessions {
		delete(s.client.buried, m)
	}
	m.source = q.sqs.arn
	b.arrive(target, m)
	return true
}

// settleHere settles a message of SQS that a session had. b.mu is held.
func (b *Broker) settleHere(s *session, m *message, verb consumer.Verb, after time.Duration) {
	q := s.queue
	switch verb {
	case consumer.VerbRequeue, consumer.VerbHandBack:
		b.hide(q, m, after)
	case consumer.VerbDeadLetter:
		s.client.buried[m] = true
		b.hide(q, m, 0)
	}
	b.dispatch(q)
}
