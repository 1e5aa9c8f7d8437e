package topology

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Manifest computes the topic's manifest. It refuses what [SQSSpec.Validate] refuses, and a topic of which it is not known
// where it is: a manifest has URLs and ARNs.
func (s SQSSpec) Manifest() (Manifest, error) {
	attributes, err := s.Attributes()
	if err != nil {
		return Manifest{}, err
	}
	if !s.Placed() {
		return Manifest{}, fmt.Errorf("topic %q: its region or its account id is not known, and a manifest has URLs and ARNs; configure both", s.Topic)
	}
	m := Manifest{
		Version: ManifestVersion, Broker: BrokerSQS, Topic: s.Topic, Convention: s.identity().convention(), ConsumerGroup: s.ConsumerGroup,
		WorkQueue: s.manifestQueue(s.WorkQueueName()), HoldQueues: []ManifestHoldQueue{}, Bindings: []ManifestBinding{},
		Retry: ManifestRetry{
			Strategy: InPlace, MaxRetries: s.Retry.MaxRetries, Delays: []Duration{}, GiveUpAfter: Duration(s.Retry.GiveUpAfter),
			Jitter: s.Retry.Jitter, ConsumerTimeout: Duration(MaxVisibility),
		},
		Final: FinalBroker, Park: s.parkMode(), Headers: s.Convention.Headers(),
	}
	m.WorkQueue.Attributes = attributes.Set()
	delete(m.WorkQueue.Attributes, AttrPolicy) // says who may use the queue, which is no consumer's business
	if s.FIFO {
		m.Sequence = &ManifestSequence{Shards: []ManifestQueue{}}
	}
	for _, delay := range s.Retry.Delays {
		m.Retry.Delays = append(m.Retry.Delays, Duration(delay))
	}
	if s.DeadLetterQueue != "" {
		m.DeadLetter = s.manifestTarget(s.DeadLetterQueue)
		if s.deadLetterVia() == ViaSend {
			m.Final = FinalPublish
		}
	}
	if s.ParkedQueue != "" {
		m.Parked = s.manifestTarget(s.ParkedQueue)
	}
	m.Fingerprint = m.fingerprint()
	return m, nil
}

func (s SQSSpec) manifestQueue(name string) ManifestQueue {
	return ManifestQueue{Name: name, Type: s.queueType(), URL: s.URL(name, s.Endpoint), ARN: s.ARN(name)}
}

func (s SQSSpec) manifestTarget(name string) *ManifestTarget {
	return &ManifestTarget{ManifestQueue: s.manifestQueue(name), RoutingKey: name}
}

// MaxReceiveCount is how often SQS gives out a message before it moves it to the dead-letter queue; 0 where it never does.
func (m Manifest) MaxReceiveCount() int {
	_, count, _ := m.WorkQueue.Attributes.RedriveTarget()
	return count
}

// validateSQS refuses a manifest of Amazon SQS that a consumer could not act on.
func (m Manifest) validateSQS() error {
	switch {
	case m.VHost != "" || m.RetryExchange != "" || len(m.HoldQueues) > 0 || len(m.Bindings) > 0:
		return errors.New("a topic on SQS has no vhost, hold queues, exchanges or bindings")
	case m.Retry.Strategy != InPlace:
		return fmt.Errorf("retry.strategy %q: on SQS a message waits in the queue itself; it is %q", m.Retry.Strategy, InPlace)
	case m.Retry.ConsumerTimeout != Duration(MaxVisibility):
		return fmt.Errorf("retry.consumer_timeout %s: on SQS it is %s", m.Retry.ConsumerTimeout, FormatDuration(MaxVisibility))
	case m.Sequence != nil && (m.Sequence.Exchange != "" || len(m.Sequence.Shards) > 0):
		return errors.New("sequence: a FIFO queue needs no exchange and no shards")
	case (m.Sequence != nil) != (m.WorkQueue.Type == FIFO):
		return fmt.Errorf("work queue %q is of type %q: messages are handled in order where it is %q, and only there", m.WorkQueue.Name, m.WorkQueue.Type, FIFO)
	}
	queues := []ManifestQueue{m.WorkQueue}
	for _, target := range []*ManifestTarget{m.DeadLetter, m.Parked} {
		if target == nil {
			continue
		}
		if target.Exchange != "" || target.RoutingKey != target.Name {
			return fmt.Errorf("queue %q: exchange %q and routing_key %q lead to no queue on SQS", target.Name, target.Exchange, target.RoutingKey)
		}
		queues = append(queues, target.ManifestQueue)
	}
	for _, q := range queues {
		if err := q.validateSQS(m.WorkQueue.Type); err != nil {
			return err
		}
	}
	return errors.Join(m.validateRedrive(), m.Retry.validateSQS())
}

func (q ManifestQueue) validateSQS(kind QueueType) error {
	if q.Type != Standard && q.Type != FIFO {
		return fmt.Errorf("queue %q: type %q is not known: use %q or %q", q.Name, q.Type, Standard, FIFO)
	}
	where, name, err := ParseSQSARN(q.ARN)
	switch {
	case err != nil:
		return fmt.Errorf("queue %q: arn: %w", q.Name, err)
	case q.Type != kind || where.FIFO != (kind == FIFO):
		return fmt.Errorf("queue %q is of type %q: all queues of a topic are of the work queue's, %q, by name too", q.Name, q.Type, kind)
	case name != q.Name:
		return fmt.Errorf("queue %q: its arn is that of %q", q.Name, name)
	case q.URL == "":
		return fmt.Errorf("queue %q: it has no url", q.Name)
	case len(q.Arguments) > 0:
		return fmt.Errorf("queue %q: a queue on SQS has attributes and no arguments", q.Name)
	}
	return nil
}

// validateRedrive refuses a topic whose messages SQS would take away before their retries are spent, or never.
func (m Manifest) validateRedrive() error {
	attributes := m.WorkQueue.Attributes
	if attributes.VisibilityTimeout() == 0 {
		return fmt.Errorf("work queue %q: attribute %s is %q and must be a number of seconds", m.WorkQueue.Name, AttrVisibilityTimeout, attributes[AttrVisibilityTimeout])
	}
	target, count, ok := attributes.RedriveTarget()
	switch {
	case m.DeadLetter == nil && attributes[AttrRedrivePolicy] != "":
		return fmt.Errorf("work queue %q has a redrive policy and no dead-letter queue", m.WorkQueue.Name)
	case m.DeadLetter == nil:
		return nil
	case !ok || target != m.DeadLetter.ARN:
		return fmt.Errorf("work queue %q: its redrive policy does not lead to %q", m.WorkQueue.Name, m.DeadLetter.ARN)
	case count <= m.Retry.MaxRetries:
		return fmt.Errorf("work queue %q: SQS moves messages away after %d receives, and %d retries take one more than that", m.WorkQueue.Name, count, m.Retry.MaxRetries)
	}
	return nil
}

func (r ManifestRetry) validateSQS() error {
	delays := make([]time.Duration, len(r.Delays))
	for i, d := range r.Delays {
		delays[i] = time.Duration(d)
	}
	if err := validateInvisibleWaits(delays, r.Jitter); err != nil {
		return fmt.Errorf("retry.delays: %w", err)
	}
	return nil
}

// sqs draws a topic on Amazon SQS.
func (g *Graph) sqs(m Manifest) {
	work := g.node(m.WorkQueue.Name, "work queue", shapeQueue, "work", attributeDetails(m.WorkQueue)...)
	publishers := g.node("publishers", "", shapeRound, "client")
	consumer := g.node("consumer", "", shapeRound, "client")
	g.edge(publishers, work, "")
	g.edge(work, consumer, "")
	if m.Retry.MaxRetries > 0 {
		again := "then received again"
		if m.Sequence != nil {
			again = "then handled again, its group waits"
		}
		g.edge(consumer, work, fmt.Sprintf("retry, invisible for %s, %s, at most %d retries", joinDurations(m.Retry.Delays), again, m.Retry.MaxRetries))
	}
	if m.DeadLetter == nil {
		g.edge(consumer, g.node("discarded", "", shapeRound, "gone"), "rejected or retries spent, deleted")
	} else {
		dlq := g.node(m.DeadLetter.Name, "dead-letter queue", shapeQueue, "dead", attributeDetails(m.DeadLetter.ManifestQueue)...)
		redrive := fmt.Sprintf("moved after %d receives", m.MaxReceiveCount())
		if m.Final == FinalPublish {
			g.edge(consumer, dlq, "rejected or retries spent, sent")
		} else {
			redrive = "rejected or retries spent, " + redrive
		}
		g.edge(work, dlq, redrive)
	}
	if m.Parked != nil {
		parked := g.node(m.Parked.Name, "parked queue", shapeQueue, "parked", attributeDetails(m.Parked.ManifestQueue)...)
		if m.Park == ParkPublish {
			g.edge(consumer, parked, "unreadable, sent")
		}
	}
}

// attributeDetails are the type of a queue and what people ask of it first, one a line.
func attributeDetails(q ManifestQueue) []string {
	details := []string{string(q.Type)}
	for _, shown := range []struct{ name, text string }{
		{AttrVisibilityTimeout, "visibility timeout"}, {AttrRetention, "retention"}, {AttrDelay, "delay"}, {AttrKMSKey, "key"},
	} {
		value := q.Attributes[shown.name]
		if value == "" || value == "0" {
			continue
		}
		if !slices.Contains(encryption, shown.name) {
			value = showSeconds(value)
		}
		details = append(details, shown.text+" "+value)
	}
	return details
}
