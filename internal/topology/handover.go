package topology

import (
	"cmp"
	"fmt"
	"maps"
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
// topic's, and expired messages would go there. The shards of a sequenced
// topic's ladder are the topic's.
func (s Spec) WithHoldQueues(refs []HoldRef) (Spec, error) {
	s.HoldDelays, s.shardDelays, s.JitterShards, s.JitterFactor = nil, nil, 0, 0
	var tiers [][]time.Duration
	for i, ref := range refs {
		last := len(tiers) - 1
		switch {
		case ref.Shard == 0:
			s.HoldDelays = append(s.HoldDelays, ref.Delay)
			tiers = append(tiers, []time.Duration{ref.Delay})
		case last < 0 || ref.Shard != len(tiers[last]):
			return Spec{}, fmt.Errorf("hold queue %d (%q) is shard %d out of order; hand over the ladder's queues as they are", i+1, ref.Name, ref.Shard)
		case s.SequenceShards > 0 && ref.Delay != tiers[last][0]:
			return Spec{}, fmt.Errorf("hold queue %d (%q) waits %s and that of shard 0 %s; hand over the ladder's queues as they are",
				i+1, ref.Name, FormatDuration(ref.Delay), FormatDuration(tiers[last][0]))
		default:
			tiers[last] = append(tiers[last], ref.Delay)
		}
		tier := len(s.HoldDelays) - 1
		if want := s.holdQueueName(tier, s.HoldDelays[tier], ref.Shard); want != ref.Name {
			return Spec{}, fmt.Errorf("hold queue %d is %q and under the %s convention topic %q has %q there; hand over the queues of this topic's own ladder%s",
				i+1, ref.Name, s.convention(), s.Topic, want, s.shardHint())
		}
	}
	for tier, shards := range tiers {
		switch {
		case s.SequenceShards > 0 && len(shards) != s.SequenceShards:
			return Spec{}, fmt.Errorf("tier %d has the hold queues of %d shards and topic %q has %d; give the ladder the topic's sequence_shards", tier, len(shards), s.Topic, s.SequenceShards)
		case len(shards) != len(tiers[0]):
			return Spec{}, fmt.Errorf("tier %d has %d shards and tier 0 has %d; hand over the ladder's queues as they are", tier, len(shards), len(tiers[0]))
		}
	}
	if len(tiers) > 0 && s.SequenceShards == 0 {
		s.shardDelays, s.JitterShards = tiers, len(tiers[0])
	}
	return s, nil
}

// shardHint says what else may be wrong with a ladder under a convention whose sequenced topics have shards.
func (s Spec) shardHint() string {
	if s.Convention.scheme().shard == nil {
		return ""
	}
	return ", whose sequence_shards have to be the topic's"
}

// RecogniseLadder finds the topic's hold queues among queues of a broker, by
// the names that the convention gives them, where they send messages home to
// and their x-message-ttl. sequenceShards is the number of shards of a
// sequenced topic that they belong to, 0 where that is no matter of shards.
func (id Identity) RecogniseLadder(queues []Queue) (refs []HoldRef, sequenceShards int) {
	refs = recogniseHolds(queues, id.WorkQueueName(), id.HoldQueueName)
	if len(refs) > 0 || id.ShardQueueName(0) == "" {
		return refs, 0
	}
	for shard := range MaxSequenceShards {
		own := recogniseHolds(queues, id.ShardQueueName(shard), func(tier int, delay time.Duration, split int) string {
			if split > 0 {
				return "" // a shard's tiers are not split
			}
			return id.shardHoldQueueName(tier, delay, shard)
		})
		if len(own) == 0 {
			break
		}
		for i := range own {
			own[i].Shard = shard
		}
		refs, sequenceShards = append(refs, own...), shard+1
	}
	slices.SortStableFunc(refs, func(a, b HoldRef) int { return cmp.Compare(a.Delay, b.Delay) })
	return refs, sequenceShards
}

// recogniseHolds finds the hold queues from which messages go home to a queue.
func recogniseHolds(queues []Queue, home string, name func(tier int, delay time.Duration, shard int) string) []HoldRef {
	byName := map[string]time.Duration{}
	for _, q := range queues {
		ttl, ok := q.Arguments[ArgMessageTTL].(int64)
		if ok && q.Arguments[ArgDeadLetterKey] == home {
			byName[q.Name] = time.Duration(ttl) * time.Millisecond
		}
	}
	candidates := slices.SortedFunc(maps.Keys(byName), func(a, b string) int {
		return cmp.Or(cmp.Compare(byName[a], byName[b]), cmp.Compare(a, b))
	})
	var refs []HoldRef
	tier := 0
	for _, first := range candidates {
		if name(tier, byName[first], 0) != first {
			continue
		}
		refs = append(refs, HoldRef{Name: first, Delay: byName[first]})
		for shard := 1; ; shard++ {
			split := name(tier, byName[first], shard)
			delay, found := byName[split]
			if !found {
				break
			}
			refs = append(refs, HoldRef{Name: split, Delay: delay, Shard: shard})
		}
		tier++
	}
	return refs
}
