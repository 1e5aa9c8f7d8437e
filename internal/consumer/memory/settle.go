package memory

import (
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// keptFor is how long a dead letter that nothing took is kept before the queue
// tries again.
const keptFor = 180 * time.Second

// The broker's reasons for giving a message up.
const (
	rejected      = "rejected"
	expired       = "expired"
	deliveryLimit = "delivery_limit"
)

// way is how a message came back.
type way uint8

const (
	byReject way = iota
	byNack
	byLoss
)

// arrive puts a message that was published, or dead-lettered, into a queue. b.mu
// is held.
func (b *Broker) arrive(q *queue, m *message) {
	b.arrivals++
	m.arrival = b.arrivals
	if q.sqs != nil {
		b.post(q, m)
		b.dispatch(q)
		return
	}
	if q.ttl > 0 {
		m.due = b.clock.Now().Add(q.ttl)
	}
	q.insert(m)
	b.dispatch(q)
	b.watch(q)
}

// dispatch sends what is ready to consumers that have room. b.mu is held.
func (b *Broker) dispatch(q *queue) {
	if q.sqs != nil {
		b.poll(q)
		return
	}
	for q.head() != nil {
		s := q.receiver()
		if s == nil {
			return
		}
		s.deliver(q.pop())
	}
}

// watch waits for the head of a queue to expire: no other message does before it.
// b.mu is held.
func (b *Broker) watch(q *queue) {
	m := q.head()
	if q.ttl == 0 || m == nil || q.events[m] != nil {
		return
	}
	q.events[m] = b.clock.at(m.due, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(q.events, m)
		if q.head() == m {
			b.giveUp(q, q.pop(), expired)
			b.watch(q)
		}
	})
}

// settle settles a message that a consumer had. b.mu is held.
func (b *Broker) settle(q *queue, m *message, verb consumer.Verb) {
	switch verb {
	case consumer.VerbRequeue:
		b.giveBack(q, m, byReject)
	case consumer.VerbHandBack:
		b.giveBack(q, m, byNack)
	case consumer.VerbDeadLetter:
		b.giveUp(q, m, rejected)
	}
	b.dispatch(q) // there is room for another one
}

// giveBack puts a message back that a consumer had, and counts that as the
// emulated version does; on SQS it comes back when its visibility timeout is
// over. The caller dispatches when all that comes back with it is there. b.mu is
// held.
func (b *Broker) giveBack(q *queue, m *message, how way) {
	if q.sqs != nil {
		b.hide(q, m, q.sqs.visibility)
		return
	}
	m.delivered = true
	if q.quorum {
		m.acquired++
		if how != byNack || b.version < v43 {
			m.count++
		}
		if how == byLoss {
			m.lost++
		}
		if q.limit != unlimited && m.count > q.limit {
			b.giveUp(q, m, deliveryLimit)
			return
		}
	}
	if !q.delays {
		q.requeue(m)
		b.watch(q)
		return
	}
	q.waiting[m] = true
	delay := min(q.delayMin*time.Duration(max(1, m.count)), q.delayMax)
	q.events[m] = b.clock.at(b.clock.Now().Add(delay), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(q.waiting, m)
		delete(q.events, m)
		q.requeue(m)
		b.dispatch(q)
	})
}

// giveUp dead-letters a message, or drops it where the queue leads nowhere. b.mu
// is held.
func (b *Broker) giveUp(q *queue, m *message, reason string) {
	if !q.deadLetters {
		return
	}
	key := q.deadKey
	if key == "" {
		key = m.RoutingKey
	}
	targets := b.route(q.deadExchange, key)
	if len(targets) == 0 {
		if q.keepsDead {
			b.keep(q, m, reason)
		}
		return
	}
	for _, target := range targets {
		dead := *m // a copy for each, though there is one target in every topology of the contract
		dead.die(redeliver.Death{
			Queue: q.name, Reason: reason, Exchange: m.Exchange, RoutingKeys: []string{m.RoutingKey}, Time: b.clock.Now().Truncate(time.Second),
		}, q, target)
		dead.Exchange, dead.RoutingKey = q.deadExchange, key
		b.arrive(target, &dead)
	}
}

// keep keeps a dead letter that nothing takes, and tries again later. b.mu is
// held.
func (b *Broker) keep(q *queue, m *message, reason string) {
	q.stuck[m] = true
	q.events[m] = b.clock.at(b.clock.Now().Add(keptFor), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(q.stuck, m)
		delete(q.events, m)
		b.giveUp(q, m, reason)
	})
}
