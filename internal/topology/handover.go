package topology

import (
	"fmt"
	"slices"
	"time"
)

// HoldRef is a hold queue as a ladder hands it to its topic.
type HoldRef struct {
	// Name is the queue's name.
	Name string
	// Delay is how long the queue holds a message.
	Delay time.Duration
	// Shard is 0, or the sub-queue's number where a tier is split.
	Shard int
}

// HoldRefs are the hold queues of objects, to hand over to a topic.
func (o Objects) HoldRefs() []HoldRef {
	var refs []HoldRef
	for _, q := range o.Queues {
		if q.Role == RoleHold {
			refs = append(refs, HoldRef{Name: q.Name, Delay: q.Delay, Shard: q.Shard})
		}
	}
	return refs
}

// WithHoldQueues returns the spec with the ladder that refs describe, in the
// order in which a ladder hands them over: tier by tier, shard 0 first. Queues
// that the convention would not give this topic are refused: they are another
// topic's, and expired messages would go there.
func (s Spec) WithHoldQueues(refs []HoldRef) (Spec, error) {
	s.HoldDelays, s.shardDelays, s.JitterShards, s.JitterFactor = nil, nil, 0, 0
	for i, ref := range refs {
		switch {
		case ref.Shard == 0:
			s.HoldDelays = append(s.HoldDelays, ref.Delay)
			s.shardDelays = append(s.shardDelays, []time.Duration{ref.Delay})
		case len(s.shardDelays) == 0 || ref.Shard != len(s.shardDelays[len(s.shardDelays)-1]):
			return Spec{}, fmt.Errorf("hold queue %d (%q) is shard %d out of order; hand over the ladder's queues as they are", i+1, ref.Name, ref.Shard)
		default:
			last := len(s.shardDelays) - 1
			s.shardDelays[last] = append(s.shardDelays[last], ref.Delay)
		}
		tier := len(s.HoldDelays) - 1
		if want := s.HoldQueueName(tier, s.HoldDelays[tier], ref.Shard); want != ref.Name {
			return Spec{}, fmt.Errorf("hold queue %d is %q and under the %s convention topic %q has %q there; hand over the queues of this topic's own ladder",
				i+1, ref.Name, s.convention(), s.Topic, want)
		}
	}
	for tier, shards := range s.shardDelays {
		if len(shards) != len(s.shardDelays[0]) {
			return Spec{}, fmt.Errorf("tier %d has %d shards and tier 0 has %d; hand over the ladder's queues as they are", tier, len(shards), len(s.shardDelays[0]))
		}
		s.JitterShards = len(shards)
	}
	return s, nil
}

// RecogniseLadder finds the topic's hold queues among queues of a broker, by
// the names that the convention gives them and their x-message-ttl.
func (id Identity) RecogniseLadder(queues []Queue) []HoldRef {
	type candidate struct {
		name  string
		delay time.Duration
	}
	var candidates []candidate
	for _, q := range queues {
		ttl, ok := q.Arguments[ArgMessageTTL].(int64)
		if ok && q.Arguments[ArgDeadLetterKey] == id.WorkQueueName() {
			candidates = append(candidates, candidate{q.Name, time.Duration(ttl) * time.Millisecond})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return int(a.delay - b.delay) })
	byName := map[string]time.Duration{}
	for _, c := range candidates {
		byName[c.name] = c.delay
	}
	var refs []HoldRef
	tier := 0
	for _, c := range candidates {
		if id.HoldQueueName(tier, c.delay, 0) != c.name {
			continue
		}
		for shard := 0; ; shard++ {
			name := id.HoldQueueName(tier, c.delay, shard)
			delay, found := byName[name]
			if !found {
				break
			}
			refs = append(refs, HoldRef{Name: name, Delay: delay, Shard: shard})
		}
		tier++
	}
	return refs
}
