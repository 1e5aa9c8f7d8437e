package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// vhostState is what a vhost has, as far as topics are recognised by it.
type vhostState struct {
	name     string
	view     *rabbitmqadmin.View
	queues   map[string]rabbitmqadmin.LiveQueue
	policies []topology.Policy
	// shown are the queues, with what their own policies set among their arguments.
	shown []topology.Queue
}

func (r *rabbitMQ) vhost(ctx context.Context, name string) (*vhostState, error) {
	client, err := r.admin(ctx)
	if err != nil {
		return nil, err
	}
	v := &vhostState{name: name, view: client.View(), queues: map[string]rabbitmqadmin.LiveQueue{}}
	queues, err := v.view.Queues(ctx, name)
	if err != nil {
		return nil, err
	}
	if v.policies, err = v.view.Policies(ctx, name); err != nil {
		return nil, err
	}
	own := topology.OwnPolicies(v.policies)
	for _, q := range queues {
		v.queues[q.Name] = q
		shown := topology.Queue{Name: q.Name, Arguments: q.Arguments}
		if p, ok := own[q.Name]; ok {
			shown.Arguments = p.Over(q.Arguments)
		}
		v.shown = append(v.shown, shown)
	}
	return v, nil
}

// live is a queue to compare with what the contract computes, with what its own policy sets among its arguments.
func (v *vhostState) live(name string) (q topology.LiveQueue, viaPolicy bool) {
	have := v.queues[name]
	q = topology.LiveQueue{Name: name, Type: have.Type, Durable: have.Durable, AutoDelete: have.AutoDelete, Exclusive: have.Exclusive, Arguments: have.Arguments}
	if own := v.ownPolicy(name); own != nil {
		q.Arguments, viaPolicy = own.Over(have.Arguments), true
	}
	return q, viaPolicy
}

// ownPolicy is a queue's own, where it applies.
func (v *vhostState) ownPolicy(name string) *topology.Policy {
	own := topology.OwnPolicy(name, v.policies)
	if own == nil || len((topology.Queue{Name: name, Type: v.queues[name].Type}).Policies([]topology.Policy{*own}, "")) == 0 {
		return nil
	}
	return own
}

// copied is what a queue's own policy has from another one, which it was merged with; nil where it was not.
func (v *vhostState) copied(name string) topology.Arguments {
	q := topology.Queue{Name: name, Type: v.queues[name].Type}
	if v.ownPolicy(name) == nil {
		return nil
	}
	if others := q.Others(v.policies, ""); len(others) > 0 && !others[0].MayMatch(q) {
		return others[0].Over(nil)
	}
	return nil
}

// topics are the topics of these conventions. Where several recognise one, it is that whose contract its queues come
// closest to; a queue belongs to one topic.
func (v *vhostState) topics(conventions []topology.Convention, group string) []topology.Recognised {
	found := map[string][]topology.Recognised{}
	var names []string
	for _, c := range conventions {
		like := topology.Identity{VHost: v.name, Convention: c}
		if c.HasConsumerGroups() {
			like.ConsumerGroup = group
		}
		for _, r := range topology.RecogniseTopics(like, v.shown) {
			if found[r.Topic] == nil {
				names = append(names, r.Topic)
			}
			found[r.Topic] = append(found[r.Topic], v.grouped(r))
		}
	}
	var all []topology.Recognised
	for _, name := range names {
		all = append(all, v.closest(found[name]))
	}
	slices.SortFunc(all, func(a, b topology.Recognised) int {
		if a.WorkQueue != b.WorkQueue { // what a work queue leads to is its own
			if a.WorkQueue {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Topic, b.Topic)
	})
	holds := map[string]bool{} // one that drifted may look like the work queue of another convention's topic
	for _, r := range all {
		for _, q := range v.shown {
			if _, _, ok := holdQueue(r, q.Name, time.Second); ok {
				holds[q.Name] = true
			}
		}
	}
	return v.apart(slices.DeleteFunc(all, func(r topology.Recognised) bool { return holds[r.Topic] }))
}

// grouped is a topic with the consumer group that its dead-letter queue's name tells, where the convention has groups and
// nobody named one.
func (v *vhostState) grouped(r topology.Recognised) topology.Recognised {
	if r.ConsumerGroup != "" || !r.Convention.HasConsumerGroups() || r.DeadLetterQueue == "" || r.DeadLetterQueue == r.DeadLetterQueueName() {
		return r
	}
	ending := strings.TrimPrefix(r.DeadLetterQueueName(), r.Topic)
	group, ok := strings.CutSuffix(strings.TrimPrefix(r.DeadLetterQueue, r.Topic+"-"), ending)
	if !ok || group == "" {
		return r
	}
	like := r.Identity
	like.ConsumerGroup = group
	for _, other := range topology.RecogniseTopics(like, v.shown) {
		if other.Topic == r.Topic && other.DeadLetterQueue == other.DeadLetterQueueName() {
			return other
		}
	}
	return r
}

// closest is the one that has most of its parts there, by the names that it gives them, and then the one whose contract
// the topic's queues come closest to.
func (v *vhostState) closest(candidates []topology.Recognised) topology.Recognised {
	most := 0
	for _, c := range candidates {
		most = max(most, parts(c))
	}
	candidates = slices.DeleteFunc(slices.Clone(candidates), func(c topology.Recognised) bool { return parts(c) < most })
	first := candidates[0]
	role, name := topology.RoleWork, first.WorkQueueName()
	switch {
	case first.WorkQueue:
	case first.DeadLetterQueue != "":
		role, name = topology.RoleDeadLetter, first.DeadLetterQueue
	case first.ParkedQueue != "":
		role, name = topology.RoleParked, first.ParkedQueue
	}
	live, _ := v.live(name)
	if id, ok := topology.GuessIdentity(role, v.name, name, live.Arguments); ok {
		for _, c := range candidates {
			if c.Convention == id.Convention {
				return c
			}
		}
	}
	return first
}

// parts is how much of a topic is there as its convention names it.
func parts(r topology.Recognised) int {
	n := 0
	for _, there := range []bool{r.WorkQueue, r.DeadLetterQueue != "" && r.DeadLetterQueue == r.DeadLetterQueueName(), r.ParkedQueue != "", r.Ladder} {
		if there {
			n++
		}
	}
	return n
}

// apart leaves out what another topic before has already.
func (v *vhostState) apart(all []topology.Recognised) []topology.Recognised {
	taken := map[string]bool{}
	take := func(name *string) {
		if taken[*name] {
			*name = ""
		}
		taken[*name] = true
	}
	var out []topology.Recognised
	for _, r := range all {
		take(&r.DeadLetterQueue)
		take(&r.ParkedQueue)
		if r.Ladder {
			refs, _ := r.RecogniseLadder(v.shown)
			for _, ref := range refs {
				r.Ladder = r.Ladder && !taken[ref.Name]
				taken[ref.Name] = true
			}
		}
		if r.WorkQueue || r.Ladder || r.DeadLetterQueue != "" || r.ParkedQueue != "" {
			out = append(out, r)
		}
	}
	return out
}

// extra is what queues have beyond what the contract computes for them, all the same, and left what else differs.
func (v *vhostState) extra(queues []topology.Queue) (extra topology.Arguments, left []string) {
	same := true
	for i, q := range queues {
		live, _ := v.live(q.Name)
		own, copied := topology.Arguments{}, v.copied(q.Name)
		for _, d := range topology.DiffQueue(q, live) {
			if d.Meaning == topology.EqualInEffect {
				continue
			}
			value, there := live.Arguments[d.Key]
			switch {
			case !there || d.Want != "":
				left = append(left, fmt.Sprintf("queue %q: %s", q.Name, d))
			case copied[d.Key] != nil && topology.CanonicalJSON(copied[d.Key]) == d.Live:
			default:
				own[d.Key] = value
			}
		}
		if i > 0 && topology.CanonicalJSON(own) != topology.CanonicalJSON(extra) {
			same = false
		}
		extra = own
	}
	if !same {
		return nil, append(left, "its queues have different arguments beyond the contract")
	}
	return extra, left
}

// merged reports whether any of the queues' own policies was merged with another one.
func (v *vhostState) merged(queues []topology.Queue) bool {
	return slices.ContainsFunc(queues, func(q topology.Queue) bool { return v.copied(q.Name) != nil })
}

// importedTopic is a topic with the configuration that has everything which the broker has.
type importedTopic struct {
	topology.Recognised
	refs           []topology.HoldRef // of the ladder
	sequenceShards int
	spec           topology.Spec
	// defaultRetry: the default retry policy is one that the topic can have.
	defaultRetry bool
	lossy        bool
	// notes say what the configuration does not have, a sentence each.
	notes []string
}

// imported works out what a topic is configured as: what import makes of it.
func (v *vhostState) imported(ctx context.Context, r topology.Recognised) (importedTopic, error) {
	t := importedTopic{Recognised: r}
	refs, shards := r.RecogniseLadder(v.shown)
	drifted, missed := v.leftOfLadder(r, refs)
	t.notes = drifted
	if r.Ladder {
		t.refs, t.sequenceShards = refs, shards
		if _, err := t.ladder().BuildLadder(); err != nil {
			t.notes = append(t.notes, "the hold queues are left out: "+err.Error())
			t.Ladder, t.refs, t.sequenceShards = false, nil, 0
		}
	}
	if len(missed) > 0 {
		t.notes = append(t.notes, fmt.Sprintf("hold queues that a gap in the ladder leaves out: %s; say all delays in the ladder's import id (&delays=5s,30s)", strings.Join(missed, ", ")))
	}
	if !r.WorkQueue {
		return t, nil
	}
	return t, v.recogniseWork(ctx, &t)
}

// ladder is the spec of the topic's ladder.
func (t *importedTopic) ladder() topology.Spec {
	s := topology.Spec{Identity: t.Identity, SequenceShards: t.sequenceShards}
	shards := 0
	for _, ref := range t.refs {
		if ref.Shard == 0 {
			s.HoldDelays = append(s.HoldDelays, ref.Delay)
		}
		shards = max(shards, ref.Shard+1)
	}
	if t.sequenceShards == 0 && shards > 1 {
		s.JitterShards, s.JitterFactor = shards, topology.JitterFactorOf(t.refs)
	}
	return s
}

// recogniseWork works out the topic's own part, its retry policy last.
func (v *vhostState) recogniseWork(ctx context.Context, t *importedTopic) error {
	name := t.WorkQueueName()
	s := topology.Spec{Identity: t.Identity, AllowMessageLoss: true}
	if t.Shards > 0 {
		name = t.ShardQueueName(0)
		s.Sequenced, s.SequenceShards = true, t.Shards
	}
	live, _ := v.live(name)
	if slices.Contains(t.Convention.QueueTypes(), live.Type) {
		s.QueueType = live.Type
	}
	s.DeadLetterQueue, _ = live.Arguments[topology.ArgDeadLetterKey].(string)
	if s.DeadLetterQueue == "" {
		s.DeadLetterQueue = t.DeadLetterQueue
	}
	t.lossy = s.DeadLetterQueue == ""
	try := func(change func(*topology.Spec)) {
		tried := s
		change(&tried)
		if _, err := tried.BuildWorkQueue(); err == nil {
			s = tried
		}
	}
	if live.Arguments[topology.ArgSingleActiveConsumer] == true {
		try(func(s *topology.Spec) { s.Sequenced = true })
	}
	shortest, hasMin := live.Arguments[topology.ArgDelayedRetryMin].(int64)
	longest, hasMax := live.Arguments[topology.ArgDelayedRetryMax].(int64)
	if live.Arguments[topology.ArgDelayedRetryType] == "all" && hasMin && hasMax && shortest > 0 {
		try(func(s *topology.Spec) {
			s.Retry = topology.RetryPolicy{Strategy: topology.BrokerDelayed, DelayMin: time.Duration(shortest) * time.Millisecond, DelayMax: time.Duration(longest) * time.Millisecond}
		})
	}
	objects, err := s.BuildWorkQueue()
	if err != nil {
		t.notes = append(t.notes, "the work queue is left out: "+err.Error())
		t.WorkQueue = false
		return nil //nolint:nilerr // the rest can be imported
	}
	computed := objects.Queues[0].Arguments
	if limit, ok := live.Arguments[topology.ArgDeliveryLimit].(int64); ok && live.Type == topology.Quorum && limit > 0 && computed[topology.ArgDeliveryLimit] != limit {
		try(func(s *topology.Spec) { s.DeliveryLimit = int(limit) })
	}
	if priority, ok := live.Arguments[topology.ArgMaxPriority].(int64); ok && computed[topology.ArgMaxPriority] != priority {
		n := int(priority)
		try(func(s *topology.Spec) { s.MaxPriority = &n })
	}
	if err := v.recogniseBindings(ctx, t, &s, objects.Bindings, name); err != nil {
		return err
	}
	s.ParkedQueue = t.ParkedQueue
	t.spec = s
	t.recogniseRetry()
	return nil
}

// recogniseBindings finds where the topic's messages come from. home are the bindings that the convention itself needs.
func (v *vhostState) recogniseBindings(ctx context.Context, t *importedTopic, s *topology.Spec, home []topology.Binding, queue string) error {
	var found []topology.Binding
	var err error
	if t.Shards > 0 {
		_, found, err = v.view.ExchangeBindings(ctx, v.name, t.SequenceExchangeName())
	} else {
		found, err = v.view.QueueBindings(ctx, v.name, queue)
	}
	if err != nil {
		return err
	}
	_, own := topology.DiffBindings(home, found)
	for _, b := range own {
		if len(b.Arguments) > 0 {
			t.notes = append(t.notes, fmt.Sprintf("the binding of exchange %q with arguments %s is left out: a redeliver_rabbitmq_binding has it", b.Source, topology.CanonicalJSON(b.Arguments)))
			continue
		}
		s.Bindings = append(s.Bindings, topology.Binding{Source: b.Source, RoutingKey: b.RoutingKey})
	}
	return nil
}

// recogniseRetry chooses the first retry policy that fits what is there: the broker does not know how often consumers
// retry.
func (t *importedTopic) recogniseRetry() {
	withHolds, err := t.spec.WithHoldQueues(t.refs)
	if err != nil {
		t.notes = append(t.notes, "the ladder is not handed over to the topic: "+err.Error())
		withHolds = t.spec
	}
	t.spec = withHolds
	t.spec.AllowMessageLoss = t.lossy
	if t.spec.Retry.Strategy == topology.BrokerDelayed {
		t.spec.Retry.MaxRetries = topology.DefaultMaxRetries
		return
	}
	tiers := len(t.spec.HoldDelays)
	for i, policy := range []topology.RetryPolicy{
		{MaxRetries: topology.DefaultMaxRetries},
		{Strategy: topology.Republish, MaxRetries: topology.DefaultMaxRetries},
		{MaxRetries: tiers}, // one hold queue for each attempt, as some conventions have it
		{Strategy: topology.Republish, MaxRetries: tiers},
		{},
	} {
		tried := t.spec
		policy.Jitter = topology.DefaultJitter
		tried.Retry = policy
		if tried.Validate() == nil {
			t.spec.Retry, t.defaultRetry = policy, i == 0
			return
		}
	}
}
