package command

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// leftOfLadder is what no ladder has of the queues that have names of the topic's hold queues: a sentence for each that is not
// as the convention has it, and the names of those that are and that a gap in the ladder leaves out.
func (v *vhostState) leftOfLadder(r topology.Recognised, refs []topology.HoldRef) (drifted, missed []string) {
	if _, err := (topology.Spec{Identity: r.Identity, HoldDelays: []time.Duration{time.Second}}).BuildLadder(); err != nil {
		return nil, nil // the convention's applications make and remove their hold queues themselves
	}
	for _, q := range v.shown {
		if slices.ContainsFunc(refs, func(ref topology.HoldRef) bool { return ref.Name == q.Name }) {
			continue
		}
		live, _ := v.live(q.Name)
		ttl, expires := live.Arguments[topology.ArgMessageTTL].(int64)
		want, timed, ok := holdQueue(r, q.Name, time.Duration(ttl)*time.Millisecond)
		if !ok {
			continue
		}
		var why []string
		for _, d := range topology.DiffQueue(want, live) {
			switch {
			case d.Meaning == topology.EqualInEffect || d.Want == "": // what a queue has beyond the convention leaves none out
			case d.Key == topology.ArgMessageTTL && !timed:
			default:
				why = append(why, d.String())
			}
		}
		if !timed && !expires {
			why = append(why, topology.ArgMessageTTL+": want the delay in milliseconds, live absent")
		}
		if len(why) == 0 {
			missed = append(missed, q.Name)
			continue
		}
		drifted = append(drifted, fmt.Sprintf("hold queue %q is left out, because it is not as the convention has it: %s", q.Name, strings.Join(why, "; ")))
	}
	return drifted, missed
}

// shardEnding ends the names of the queues that a tier is split into, but for the first.
var shardEnding = regexp.MustCompile(`\.s([0-9]+)$`)

// holdQueue is the hold queue that the topic would have under a name; ok is false where it would have none. Where the name
// does not tell its delay, which timed says, it is ttl.
func holdQueue(r topology.Recognised, name string, ttl time.Duration) (q topology.Queue, timed, ok bool) {
	if !strings.HasPrefix(name, r.Topic) {
		return q, false, false
	}
	tier, shard, rest := 0, 0, name
	if at := shardEnding.FindStringSubmatchIndex(name); at != nil {
		shard, _ = strconv.Atoi(name[at[2]:at[3]])
		rest = name[:at[0]]
	}
	rest = rest[strings.LastIndexAny(rest, "-.")+1:]
	delay, err := topology.ParseDuration(rest)
	if n, notNumber := strconv.Atoi(rest); notNumber == nil && n > 0 {
		tier, delay = n-1, max(ttl, time.Second)
	} else if err != nil {
		return q, false, false
	} else {
		timed = shard == 0
	}
	if r.Shards == 0 && r.HoldQueueName(tier, delay, shard) != name {
		return q, false, false
	}
	objects, err := topology.Spec{Identity: r.Identity, HoldDelays: []time.Duration{delay}, SequenceShards: r.Shards}.BuildLadder()
	if err != nil {
		return q, false, false
	}
	for _, q := range objects.Queues {
		if r.Shards == 0 || q.Name == name {
			return q, timed, true // a queue's arguments do not depend on its tier
		}
	}
	return q, false, false
}
