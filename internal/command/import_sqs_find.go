package command

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// sqsTopic is a topic that an account's queues show, with the names of those that belong to it; "" is one that is not there.
type sqsTopic struct {
	topology.SQSIdentity
	work, deadLetter, parked string
	// other is a dead-letter queue whose name the convention does not derive from the topic.
	other string
}

// parts is how much of a topic is there as its convention names it.
func (t sqsTopic) parts() int {
	n := 0
	for _, name := range []string{t.work, t.deadLetter, t.parked} {
		if name != "" {
			n++
		}
	}
	return n
}

// topics are the topics of these conventions, in the order of their names. Where several recognise one, it is that which most
// of its queues have their names by, or else the first. A queue belongs to one topic.
func (v *sqsState) topics(conventions []topology.Convention, group string) []sqsTopic {
	best := map[string]sqsTopic{} // by the work queue's name
	for _, c := range conventions {
		for name, t := range v.named(c, group) {
			if have, ok := best[name]; !ok || t.parts() > have.parts() {
				best[name] = t
			}
		}
	}
	all := slices.SortedFunc(maps.Values(best), func(a, b sqsTopic) int { return strings.Compare(a.WorkQueueName(), b.WorkQueueName()) })
	all = apartSQS(all)
	v.others(all)
	return slices.DeleteFunc(all, func(t sqsTopic) bool {
		alone := t.deadLetter == "" && t.parked == "" && t.other == ""
		_, _, redrives := v.queues[t.work].RedriveTarget()
		return alone && !redrives // a queue, and no topic that can be told
	})
}

// named are the topics that queues are named after under a convention, by the names of their work queues.
func (v *sqsState) named(c topology.Convention, group string) map[string]sqsTopic {
	if !c.HasConsumerGroups() {
		group = ""
	}
	topics := map[string]sqsTopic{}
	for queue := range v.queues {
		topic, role, fifo, ok := topology.SQSTopicOf(c, group, queue)
		if !ok {
			continue
		}
		id := v.where
		id.Topic, id.Convention, id.ConsumerGroup, id.FIFO = topic, c, group, fifo
		t := topics[id.WorkQueueName()]
		t.SQSIdentity = id
		switch role {
		case topology.RoleDeadLetter:
			t.deadLetter = queue
		case topology.RoleParked:
			t.parked = queue
		default:
			t.work = queue
		}
		topics[id.WorkQueueName()] = t
	}
	if c.HasConsumerGroups() && group == "" {
		for name, t := range topics {
			topics[name] = v.grouped(t)
		}
	}
	return topics
}

// grouped is a topic with the consumer group that the name of the queue it redrives to tells, where no topic has that name.
func (v *sqsState) grouped(t sqsTopic) sqsTopic {
	target := v.target(t.work)
	ending := strings.TrimPrefix(t.DeadLetterQueueName(), t.Topic)
	group, ok := strings.CutSuffix(strings.TrimPrefix(target, t.Topic+"-"), ending)
	if !ok || group == "" || t.work == "" || v.queues[target] == nil {
		return t
	}
	id := t.SQSIdentity
	id.ConsumerGroup = group
	other := t.SQSIdentity
	other.Topic += "-" + group
	if id.DeadLetterQueueName() != target || id.Validate(topology.RoleWork) != nil || v.queues[other.WorkQueueName()] != nil {
		return t
	}
	return sqsTopic{SQSIdentity: id, work: t.work, deadLetter: target}
}

// apartSQS leaves out what belongs to another topic: first come topics that have a work queue.
func apartSQS(all []sqsTopic) []sqsTopic {
	taken := map[string]bool{}
	take := func(name *string) {
		if *name != "" && taken[*name] {
			*name = ""
		}
		taken[*name] = true
	}
	for _, working := range []bool{true, false} {
		for i := range all {
			if t := &all[i]; (t.work != "") == working {
				take(&t.deadLetter)
				take(&t.parked)
			}
		}
	}
	for i := range all {
		take(&all[i].work)
	}
	return all
}

// others gives dead-letter queues that have names of their own to the topics that redrive to them: to that which the queue
// takes messages of, or else the first. One that is named after a topic without a work queue is the former's.
func (v *sqsState) others(all []sqsTopic) {
	owner := map[string]*sqsTopic{}
	for i := range all {
		if t := &all[i]; t.work != "" && t.deadLetter != "" {
			owner[t.deadLetter] = t
		}
	}
	for _, fits := range []bool{true, false} {
		for i := range all {
			t := &all[i]
			target := v.target(t.work)
			if t.work == "" || v.queues[target] == nil || owner[target] != nil {
				continue
			}
			if _, differs := v.end(t.SQSIdentity, topology.RoleDeadLetter, target); fits && differs != "" {
				continue
			}
			t.other, owner[target] = target, t
		}
	}
	for i := range all {
		if t := &all[i]; cmp.Or(owner[t.deadLetter], t) != t {
			t.deadLetter = ""
		}
	}
}

// end is a dead-letter or parked queue as it would be configured, and why it cannot be, where it cannot.
func (v *sqsState) end(id topology.SQSIdentity, role topology.Role, name string) (end topology.SQSDeadEnd, differs string) {
	live := v.queues[name]
	end = topology.SQSDeadEnd{SQSIdentity: id, SQSQueueSettings: topology.SQSSettingsOf(live, role), Role: role}
	if name != end.QueueName() {
		end.Name = name
	}
	end.SourceQueue = end.SourceQueueIn(live)
	attributes, err := end.Attributes()
	if err != nil {
		return end, err.Error()
	}
	return end, differences(attributes, live)
}

// spec is a topic as it would be configured, and why it cannot be, where it cannot.
func (v *sqsState) spec(t sqsTopic) (spec topology.SQSSpec, differs string) {
	live := v.queues[t.work]
	spec = topology.SQSSpec{SQSIdentity: t.SQSIdentity, SQSQueueSettings: topology.SQSSettingsOf(live, topology.RoleWork)}
	spec.Retry.Jitter = topology.DefaultJitter
	arn, count, ok := live.RedriveTarget()
	if spec.AllowMessageLoss = !ok; ok {
		if _, queue, err := topology.ParseSQSARN(arn); err == nil {
			spec.DeadLetterQueue = queue
		}
		if spec.Retry.MaxRetries = count - 1; count > 1 {
			spec.Retry.Delays = append(spec.Retry.Delays, live.IdleWait(count-1, topology.DefaultJitter))
		}
		if end := v.queues[v.target(t.work)]; end != nil {
			spec.DeadLetterRetention = end.Retention()
		}
	}
	if parked := t.ParkedQueueName(); v.urls[parked] != "" {
		spec.ParkedQueue = parked
	}
	attributes, err := spec.Attributes()
	if err != nil {
		return spec, err.Error()
	}
	return spec, differences(attributes, live)
}

// differences are those of a live queue from its configuration, on one line; "" is none.
func differences(want, live topology.SQSAttributes) string {
	var lines []string
	for _, d := range topology.DiffSQSAttributes(want, live) {
		lines = append(lines, d.String())
	}
	return strings.Join(lines, "; ")
}
