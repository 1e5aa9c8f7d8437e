package topology

import (
	"maps"
	"slices"
	"strings"
)

// Recognised is a topic that a broker's queues show, with what belongs to it.
type Recognised struct {
	Identity
	// WorkQueue: the queue of the topic's own name is there or, where Shards says how many, its shards are.
	WorkQueue bool
	// Shards is the number of a sequenced topic's shards, 0 where it has one work queue.
	Shards int
	// DeadLetterQueue and ParkedQueue are the names of those that are there; "" where none is.
	DeadLetterQueue, ParkedQueue string
	// Ladder: there are hold queues from which messages go home to the topic.
	Ladder bool
}

// RecogniseTopics finds the topics of a convention among the queues of a vhost, sorted by name. like says the vhost, the
// convention and the consumer group; its topic is not read. A queue is part of a topic where it has the name that the
// convention gives it, and a work queue is one where something of the topic's is beside it, or where it dead-letters to a
// queue as the convention has it: of a queue that stands alone nobody can tell. Conventions that give the same names are told
// apart by where the work queue dead-letters to.
func RecogniseTopics(like Identity, queues []Queue) []Recognised {
	named := make(map[string]Queue, len(queues))
	homebound := map[string][]Queue{} // hold queues by where messages go home to
	topics := map[string]bool{}
	for _, q := range queues {
		named[q.Name] = q
		if home, ok := q.Arguments[ArgDeadLetterKey].(string); ok && q.Arguments[ArgMessageTTL] != nil {
			homebound[home] = append(homebound[home], q)
		}
		base, _ := like.Convention.derivedFrom(q.Name)
		if base == "" {
			base = q.Name
		}
		topics[base] = true
		if topic, ok := strings.CutSuffix(base, "-"+like.ConsumerGroup); ok && like.ConsumerGroup != "" {
			topics[topic] = true
		}
	}
	var out []Recognised
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		id := like
		id.Topic = topic
		if id.Validate() != nil {
			continue
		}
		if found := id.recognise(named, homebound); found.isTopic() {
			out = append(out, found)
		}
	}
	return out
}

func (r Recognised) isTopic() bool { return r.DeadLetterQueue != "" || r.ParkedQueue != "" || r.Ladder }

// recognise finds what belongs to a topic.
func (id Identity) recognise(named map[string]Queue, homebound map[string][]Queue) Recognised {
	r := Recognised{Identity: id}
	exists := func(name string) bool { _, ok := named[name]; return ok && name != "" }
	work := id.WorkQueueName()
	for r.Shards < MaxSequenceShards && !exists(work) && exists(id.ShardQueueName(r.Shards)) {
		r.Shards++
	}
	holds := homebound[work]
	for shard := range r.Shards {
		holds = append(holds, homebound[id.ShardQueueName(shard)]...)
	}
	r.WorkQueue = r.Shards > 0 || exists(work)
	refs, _ := id.RecogniseLadder(holds)
	r.Ladder = len(refs) > 0
	if name := id.ParkedQueueName(); exists(name) {
		r.ParkedQueue = name
	}
	if r.Shards > 0 {
		work = id.ShardQueueName(0)
	}
	if !id.routesFrom(named[work]) {
		return Recognised{Identity: id} // another convention's, which gives the same names
	}
	if name, _ := named[work].Arguments[ArgDeadLetterKey].(string); r.WorkQueue && exists(name) {
		r.DeadLetterQueue = name
	} else if name := id.DeadLetterQueueName(); exists(name) {
		r.DeadLetterQueue = name
	}
	return r
}

// routesFrom reports whether a work queue is of a type that the convention has, and dead-letters as it has it, or nowhere. A
// hold queue, which has a time to live, is no work queue.
func (id Identity) routesFrom(work Queue) bool {
	if kind, typed := work.Arguments[ArgQueueType].(string); typed && !slices.Contains(id.Convention.QueueTypes(), QueueType(kind)) {
		return false
	}
	exchange, routed := work.Arguments[ArgDeadLetterExchange]
	if !routed {
		return true
	}
	route := id.Convention.scheme().deadExchange
	return route != nil && exchange == route(id.base()) && work.Arguments[ArgMessageTTL] == nil
}

// Unrecognised are the names of a topic's hold queues that are not among refs, what [Identity.RecogniseLadder] found:
// queues of names that the convention gives hold queues, from which messages go home to the topic. They are those behind a
// gap where the convention numbers its hold queues.
func (id Identity) Unrecognised(queues []Queue, refs []HoldRef) []string {
	var out []string
	for _, q := range queues {
		base, _ := id.Convention.derivedFrom(q.Name)
		if base == id.base() && q.Arguments[ArgDeadLetterKey] == id.WorkQueueName() && q.Arguments[ArgMessageTTL] != nil &&
			!slices.ContainsFunc(refs, func(ref HoldRef) bool { return ref.Name == q.Name }) {
			out = append(out, q.Name)
		}
	}
	slices.Sort(out)
	return out
}

// GuessIdentity says whose queue this is, and under which convention, for those who know nothing but its name and
// arguments: the convention that has a queue of this name in this role, and of those the one whose contract the arguments
// differ least from. ok is false where no convention has one.
func GuessIdentity(role Role, vhost, name string, arguments Arguments) (id Identity, ok bool) {
	least := 0
	for _, convention := range Conventions() {
		candidate := Identity{Topic: name, VHost: vhost, Convention: convention}
		if role != RoleWork {
			candidate.Topic, _ = convention.derivedFrom(name)
		}
		want, err := candidate.guessed(role, arguments)
		if err != nil || want.Name != name {
			continue
		}
		far := 0
		for _, d := range DiffQueue(want, LiveQueue{Name: name, Durable: true, Arguments: arguments}) {
			switch {
			case d.Meaning == EqualInEffect:
			case d.Key == ArgDeadLetterExchange, d.Key == ArgQueueType:
				far += 100 // what tells conventions apart; people add and leave out limits
			default:
				far++
			}
		}
		if key, routed := arguments[ArgDeadLetterKey]; routed && role == RoleWork && key != candidate.DeadLetterQueueName() {
			far += 10 // a dead-letter queue may have a name of its own, but the convention's is likelier
		}
		if !ok || far < least {
			id, least, ok = candidate, far, true
		}
	}
	return id, ok
}

// guessed is the queue that the topic has in this role, taken to be what its arguments say where the contract leaves it open.
func (id Identity) guessed(role Role, arguments Arguments) (Queue, error) {
	kind, _ := arguments[ArgQueueType].(string)
	s := Spec{Identity: id}
	if slices.Contains(id.Convention.QueueTypes(), QueueType(kind)) {
		s.QueueType = QueueType(kind)
	}
	var objects Objects
	var err error
	switch role {
	case RoleDeadLetter:
		objects, err = s.BuildDeadLetterQueue()
	case RoleParked:
		objects, err = s.BuildParkedQueue()
	default:
		s.AllowMessageLoss = true
		s.DeadLetterQueue, _ = arguments[ArgDeadLetterKey].(string)
		objects, err = s.BuildWorkQueue()
	}
	if err != nil {
		return Queue{}, err
	}
	return objects.Queues[0], nil
}
