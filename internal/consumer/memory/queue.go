package memory

import (
	"cmp"
	"slices"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const (
	// defaultLimit is the delivery limit of a quorum queue that states none, since 4.0.
	defaultLimit = 20
	// unlimited is the limit of a queue that has none.
	unlimited = -1
)

// queue is a queue. All of it is guarded by the broker's lock.
type queue struct {
	name    string
	version version
	quorum  bool
	// ttl is how long a message stays; 0 is for ever.
	ttl time.Duration
	// dead leads to where messages go that are given up, where deadLetters. An empty key is the message's own.
	deadLetters  bool
	deadExchange string
	deadKey      string
	// keepsDead: a message that cannot be dead-lettered stays.
	keepsDead bool
	// limit is the delivery limit; unlimited is none.
	limit int64
	// sqs is set where the queue is one of Amazon SQS, and nothing above is then: see sqs.go.
	sqs *service
	// requeuesLast: what comes back goes to the end.
	requeuesLast bool
	priorities   uint8
	// single: one consumer at a time is sent messages, the one that came first.
	single bool
	// delays: what comes back waits for delayMin times its count, at most delayMax.
	delays             bool
	delayMin, delayMax time.Duration

	// ready can be delivered, the first one first; those of a quorum queue that came back are in returned, before them.
	returned, ready []*message
	// waiting came back and wait for the clock; stuck are given up and nothing takes them.
	waiting, stuck map[*message]bool
	sessions       []*session
	// turn is the session that is looked at first for the next message.
	turn int
	// events are what the clock does to messages.
	events map[*message]*event
}

func newQueue(from topology.ManifestQueue, v version) *queue {
	q := &queue{
		name: from.Name, version: v, quorum: from.Type == topology.Quorum, limit: unlimited,
		waiting: make(map[*message]bool), stuck: make(map[*message]bool), events: make(map[*message]*event),
	}
	if q.sqs = newService(from); q.sqs != nil {
		return q
	}
	args := from.Arguments
	q.ttl = milliseconds(args[topology.ArgMessageTTL])
	q.deadExchange, q.deadLetters = args[topology.ArgDeadLetterExchange].(string)
	q.deadKey, _ = args[topology.ArgDeadLetterKey].(string)
	q.keepsDead = args[topology.ArgDeadLetterStrategy] == "at-least-once"
	q.single = args[topology.ArgSingleActiveConsumer] == true
	if top, ok := args[topology.ArgMaxPriority].(int64); ok {
		q.priorities = uint8(top) //nolint:gosec // the manifest's, at most 255
	}
	if !q.quorum {
		return q
	}
	limit, limited := args[topology.ArgDeliveryLimit].(int64)
	switch {
	case limited && (limit >= 0 || v == v3): // 3.10 takes a negative limit at its word
		q.limit = max(0, limit)
	case !limited && v >= v4:
		q.limit = defaultLimit
	}
	q.requeuesLast = v == v3 && !limited || v == v4 && q.limit == unlimited
	if v >= v43 && args[topology.ArgDelayedRetryType] == "all" {
		q.delays = true
		q.delayMin, q.delayMax = milliseconds(args[topology.ArgDelayedRetryMin]), milliseconds(args[topology.ArgDelayedRetryMax])
	}
	return q
}

func milliseconds(value any) time.Duration {
	ms, _ := value.(int64)
	return time.Duration(ms) * time.Millisecond
}

// requeue puts a message back that was delivered.
func (q *queue) requeue(m *message) {
	switch {
	case !q.quorum:
		q.insert(m)
	case q.requeuesLast:
		q.ready = append(q.ready, m)
	default:
		q.returned = append(q.returned, m)
	}
}

// insert puts a message in its place, by priority and then in the order in which
// messages came. In a classic queue that is the place of one that comes back too.
func (q *queue) insert(m *message) {
	i := len(q.ready)
	for i > 0 && q.before(m, q.ready[i-1]) {
		i--
	}
	q.ready = slices.Insert(q.ready, i, m)
}

func (q *queue) before(a, b *message) bool {
	if p, o := min(a.Priority, q.priorities), min(b.Priority, q.priorities); p != o {
		return p > o
	}
	return a.arrival < b.arrival
}

// head is the message that is delivered next, nil where there is none.
func (q *queue) head() *message {
	switch {
	case len(q.returned) > 0:
		return q.returned[0]
	case len(q.ready) > 0:
		return q.ready[0]
	default:
		return nil
	}
}

// pop takes the head out.
func (q *queue) pop() *message {
	from := &q.ready
	if len(q.returned) > 0 {
		from = &q.returned
	}
	m := (*from)[0]
	(*from)[0] = nil
	*from = (*from)[1:]
	return m
}

// take takes a message out that is ready.
func (q *queue) take(m *message) {
	q.ready = slices.DeleteFunc(q.ready, func(x *message) bool { return x == m })
}

// receiver is the session that gets the next message, nil where none can take
// one.
func (q *queue) receiver() *session {
	if q.single {
		for _, s := range q.sessions {
			if !s.stopped {
				return s.ifRoom()
			}
		}
		return nil
	}
	for i := range q.sessions {
		k := (q.turn + i) % len(q.sessions)
		if s := q.sessions[k].ifRoom(); s != nil {
			q.turn = k + 1
			return s
		}
	}
	return nil
}

// away are the messages that are neither ready nor stuck.
func (q *queue) away() []*message {
	var all []*message
	for _, s := range q.sessions {
		for _, m := range s.unsettled {
			all = append(all, m)
		}
	}
	for m := range q.waiting {
		all = append(all, m)
	}
	return inOrder(all)
}

func (q *queue) all() []*message {
	all := append(q.away(), q.returned...)
	all = append(all, q.ready...)
	for m := range q.stuck {
		all = append(all, m)
	}
	return inOrder(all)
}

func inOrder(msgs []*message) []*message {
	slices.SortFunc(msgs, func(a, b *message) int { return cmp.Compare(a.arrival, b.arrival) })
	return msgs
}
