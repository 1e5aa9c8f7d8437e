package topology

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// support says which queues of which brokers carry out an argument.
type support struct {
	// types are the queue types that do; empty is both.
	types []QueueType
	// since is the first series that does; "" is every one that is supported.
	since string
	// typesSince narrows types from a series on.
	typesSince map[string][]QueueType
	// fits tells the values that the rule is about; nil is all.
	fits func(value any) bool
	// otherwise is what happens elsewhere.
	otherwise string
}

const (
	brokerRefuses = "the broker refuses the queue"
	brokerIgnores = "the broker takes it and does nothing"
)

// supported is what is known about arguments that not every broker and queue type carries out: measured on 3.10.8,
// 4.0.5 and 4.3.6, by what the management API answers and what messages do.
var supported = map[string][]support{
	ArgDelayedRetryType: delayedRetry,
	ArgDelayedRetryMin:  delayedRetry,
	ArgDelayedRetryMax:  delayedRetry,
	ArgDeliveryLimit: {
		{types: []QueueType{Quorum}, otherwise: brokerRefuses},
		{since: "4.0", fits: negative, otherwise: "the broker takes a message away after a single delivery"},
	},
	ArgConsumerTimeout: {
		{since: "3.12", otherwise: brokerIgnores},
		{typesSince: map[string][]QueueType{"4.3": {Quorum}}, otherwise: brokerRefuses},
	},
	// Quorum queues, which have priorities without it from 4.0 on, refuse it on every version, 4.3.6 included.
	ArgMaxPriority:           {{types: []QueueType{Classic}, otherwise: brokerRefuses}},
	ArgDeadLetterStrategy:    {{types: []QueueType{Quorum}, otherwise: brokerRefuses}},
	"x-queue-mode":           {{types: []QueueType{Classic}, otherwise: brokerRefuses}},
	"x-queue-version":        {{types: []QueueType{Classic}, otherwise: brokerRefuses}},
	"x-queue-master-locator": {{types: []QueueType{Classic}, otherwise: brokerRefuses}},
	"x-max-in-memory-length": {{types: []QueueType{Quorum}, otherwise: brokerRefuses}},
	"x-max-in-memory-bytes":  {{types: []QueueType{Quorum}, otherwise: brokerRefuses}},
	ArgQuorumGroupSize:       {{types: []QueueType{Quorum}, otherwise: brokerRefuses}},
	ArgQuorumTargetSize:      {{types: []QueueType{Quorum}, since: "3.13", otherwise: brokerIgnores}},
	"x-max-age":              {{types: []QueueType{"stream"}, otherwise: brokerRefuses}},
	ArgOverflow: {{
		types: []QueueType{Classic}, otherwise: "the broker takes it and drops the oldest messages instead",
		fits: func(value any) bool { return value == "reject-publish-dlx" },
	}},
}

var delayedRetry = []support{
	{since: BrokerDelayedSince, otherwise: brokerIgnores},
	{types: []QueueType{Quorum}, otherwise: brokerRefuses},
}

func negative(value any) bool {
	n, ok := value.(int64)
	return ok && n < 0
}

// CheckArguments refuses arguments that a broker of this version would refuse, or take and not carry out on a queue of
// this type.
func (q Queue) CheckArguments(version string) error {
	var failed error
	settings := q.Settings()
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		for _, rule := range supported[key] {
			if rule.fits != nil && !rule.fits(settings[key]) {
				continue
			}
			if needs := rule.needs(q.Type, version); needs != "" {
				failed = errors.Join(failed, fmt.Errorf("%s = %s of queue %q: it takes %s, and this is a %s queue on RabbitMQ %s, where %s; leave it out (and name it in ignore_arguments where the queue has it already), or change what it takes",
					key, CanonicalJSON(settings[key]), q.Name, needs, q.Type, version, rule.otherwise))
				break
			}
		}
	}
	return failed
}

// needs says what a queue of this type on a broker of this version lacks; "" is nothing. A version that is none has
// everything.
func (r support) needs(kind QueueType, version string) string {
	if _, ok := series(version); !ok {
		return ""
	}
	types := r.types
	for since, narrowed := range r.typesSince {
		if atLeast(version, since) {
			types = narrowed
		}
	}
	switch {
	case len(types) > 0 && !slices.Contains(types, kind):
		return fmt.Sprintf("a %s queue", types[0])
	case r.since != "" && !atLeast(version, r.since):
		return "RabbitMQ " + r.since + " or later"
	}
	return ""
}

// ArgLeaderLocator is where the leader of a queue is placed when it is created.
const ArgLeaderLocator = "x-queue-leader-locator"

// ArgQuorumGroupSize is how many replicas a quorum queue starts with, and ArgQuorumTargetSize how many the broker is to make
// of it, where it is configured to do so.
const (
	ArgQuorumGroupSize  = "x-quorum-initial-group-size"
	ArgQuorumTargetSize = "x-quorum-target-group-size"
	// policyTargetSize is what policies call ArgQuorumTargetSize.
	policyTargetSize = "target-group-size"
)

// CheckReplicas refuses a quorum queue that asks for more replicas than a cluster has nodes: the broker makes fewer
// without a word. nodes is 0 where it is not known.
func (q Queue) CheckReplicas(nodes int) error {
	for _, key := range []string{ArgQuorumGroupSize, ArgQuorumTargetSize} {
		if replicas, stated := q.Arguments[key].(int64); stated && q.Type == Quorum && tooMany(replicas, nodes) {
			return fmt.Errorf("%s = %d of queue %q: %s; lower it, or add nodes first", key, replicas, q.Name, hasNodes(nodes))
		}
	}
	return nil
}

// CheckReplicasOf is [Queue.CheckReplicas] for what policies ask for. live is the name of the policy that the broker says
// applies, "" where it does not say.
func (q Queue) CheckReplicasOf(policies []Policy, live string, nodes int) error {
	for _, p := range q.Policies(policies, live) {
		if replicas, stated := p.Definition[policyTargetSize].(int64); stated && q.Type == Quorum && tooMany(replicas, nodes) {
			return fmt.Errorf("%s sets %s to %d: %s", p, policyTargetSize, replicas, hasNodes(nodes))
		}
	}
	return nil
}

func tooMany(replicas int64, nodes int) bool { return nodes > 0 && replicas > int64(nodes) }

func hasNodes(nodes int) string {
	return fmt.Sprintf("the cluster has %d %s, and RabbitMQ would make a queue of as many replicas without a word", nodes, map[bool]string{true: "node", false: "nodes"}[nodes == 1])
}

// DeclaresWithoutType reports whether applications of the convention declare classic queues without saying so, which a
// vhost's default queue type then decides.
func (c Convention) DeclaresWithoutType() bool { return c == Shove || c == AceMQ || c == Queuey }
