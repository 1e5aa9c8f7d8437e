package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Queue is one queue of a topic. Every queue of the contract is durable.
type Queue struct {
	Role Role
	Name string
	Type QueueType
	// Arguments are complete, x-queue-type included, but for what Policy sets.
	Arguments Arguments
	// Policy is the queue's own, where its settings are in one ([Queue.ViaPolicy]); nil where its arguments say everything.
	Policy *Policy
	// Delay is how long a hold queue holds; 0 for other roles.
	Delay time.Duration
	// Tier (from 0) and Shard (from 0) place a hold queue in its ladder. Shard is also that of a sequenced topic's work
	// queue.
	Tier, Shard int
}

// Exchange is one exchange. Every exchange of the contract is durable.
type Exchange struct {
	Name string
	// Type is direct, or [ExchangeConsistentHash] for the exchange that spreads a sequenced topic over its shards.
	Type string
	// Shared: every topic of the vhost uses it, so that it is never deleted.
	Shared bool
}

// Binding leads messages from an exchange to a queue or another exchange.
type Binding struct {
	Source      string
	Destination string
	// DestinationType is [BindingToQueue] or [BindingToExchange]; "" is a queue.
	DestinationType string
	RoutingKey      string
	Arguments       Arguments
}

// Objects are what must exist on the broker, each kind in creation order.
// Exchanges are created first, then queues, then bindings; the work queue comes
// last, after everything that its failed and delayed messages go to.
type Objects struct {
	Exchanges []Exchange
	Queues    []Queue
	Bindings  []Binding
}

// deadEndDeliveryLimit keeps a dead letter that is looked at and given back:
// without a limit of their own 4.x brokers drop it after 20 requeues, and -1
// drops it after one on 3.10.
const deadEndDeliveryLimit = 1_000_000

// Build computes everything that belongs to the topic, in creation order. It
// refuses what [Spec.Validate] refuses.
func (s Spec) Build() (Objects, error) {
	if err := s.Validate(); err != nil {
		return Objects{}, err
	}
	var all Objects
	if s.DeadLetterQueue != "" {
		all.add(s.deadEnd(RoleDeadLetter, s.DeadLetterQueue))
	}
	if s.ParkedQueue != "" {
		all.add(s.deadEnd(RoleParked, s.ParkedQueue))
	}
	all.add(s.ladder())
	all.add(s.work())
	return s.withExtra(all)
}

// BuildWorkQueue computes what the topic itself owns: the work queue, the
// exchanges it needs and its bindings. It refuses what [Spec.Validate] refuses.
func (s Spec) BuildWorkQueue() (Objects, error) {
	if err := s.Validate(); err != nil {
		return Objects{}, err
	}
	return s.withExtra(s.work())
}

// BuildLadder computes the hold queues of HoldDelays. Only the identity and the
// ladder's own fields are read.
func (s Spec) BuildLadder() (Objects, error) {
	if err := s.Identity.Validate(); err != nil {
		return Objects{}, err
	}
	if len(s.HoldDelays) == 0 {
		return Objects{}, fmt.Errorf("a hold ladder of topic %q has no delays; list at least one", s.Topic)
	}
	if err := s.ValidateLadder(); err != nil {
		return Objects{}, err
	}
	return s.withExtra(s.ladder())
}

// BuildDeadLetterQueue computes the dead-letter queue, called DeadLetterQueue
// or, where that is empty, by the convention.
func (s Spec) BuildDeadLetterQueue() (Objects, error) {
	name := s.DeadLetterQueue
	if name == "" {
		name = s.DeadLetterQueueName()
	}
	return s.buildDeadEnd(RoleDeadLetter, name)
}

// BuildParkedQueue computes the parked queue, called ParkedQueue or, where that
// is empty, by the convention.
func (s Spec) BuildParkedQueue() (Objects, error) {
	if err := s.Identity.Validate(); err != nil {
		return Objects{}, err
	}
	if !s.Convention.HasParkedQueue() {
		return Objects{}, fmt.Errorf("a parked queue under the %s convention is refused: its libraries have none; unreadable messages go to the dead-letter queue", s.convention())
	}
	name := s.ParkedQueue
	if name == "" {
		name = s.ParkedQueueName()
	}
	return s.buildDeadEnd(RoleParked, name)
}

func (s Spec) buildDeadEnd(role Role, name string) (Objects, error) {
	if err := s.Identity.Validate(); err != nil {
		return Objects{}, err
	}
	if err := s.validateQueueType(); err != nil {
		return Objects{}, err
	}
	if err := s.ValidateDeadEnd(role, name); err != nil {
		return Objects{}, err
	}
	return s.withExtra(s.deadEnd(role, name))
}

// work is the work queue with its dead-letter route and where its messages come from.
func (s Spec) work() Objects {
	scheme := s.Convention.scheme()
	args := Arguments{ArgQueueType: string(s.queueType())}
	var out Objects
	if scheme.deadExchange != nil && s.DeadLetterQueue != "" {
		exchange := scheme.deadExchange(s.base())
		args[ArgDeadLetterExchange] = exchange
		args[ArgDeadLetterKey] = s.DeadLetterQueue
		if scheme.strict {
			args[ArgDeadLetterStrategy] = "at-least-once"
			args[ArgOverflow] = "reject-publish"
		}
		out.addExchange(scheme.exchange(exchange))
	}
	if limit := s.deliveryLimit(); limit > 0 {
		args[ArgDeliveryLimit] = int64(limit)
	}
	if s.Retry.strategy() == BrokerDelayed {
		args[ArgDelayedRetryType] = "all"
		args[ArgDelayedRetryMin] = s.Retry.DelayMin.Milliseconds()
		args[ArgDelayedRetryMax] = s.Retry.DelayMax.Milliseconds()
	}
	if priority := s.maxPriority(); priority > 0 {
		args[ArgMaxPriority] = int64(priority)
	}
	if s.Sequenced {
		args[ArgSingleActiveConsumer] = true
	}
	work := Queue{Role: RoleWork, Name: s.WorkQueueName(), Type: s.queueType(), Arguments: args}
	if s.SequenceShards > 0 {
		out.add(s.shards(work))
	} else {
		out.Queues = []Queue{work}
	}
	if scheme.homeExchange != "" {
		// Expired messages leave their hold queue through this exchange; the binding is their way home.
		out.addExchange(scheme.exchange(scheme.homeExchange))
		out.Bindings = append(out.Bindings, bindQueue(scheme.homeExchange, s.WorkQueueName(), s.WorkQueueName()))
	}
	for _, b := range s.bindings() {
		if !slices.ContainsFunc(out.Bindings, func(have Binding) bool { return have.Key() == b.Key() }) {
			out.Bindings = append(out.Bindings, b)
		}
	}
	return out
}

// bindings are the topic's own, complete, in an order that does not depend on
// the one they were given in.
func (s Spec) bindings() []Binding {
	var out []Binding
	for _, b := range s.Bindings {
		b.Destination, b.DestinationType = s.WorkQueueName(), BindingToQueue
		if s.SequenceShards > 0 {
			b.Destination, b.DestinationType = s.SequenceExchangeName(), BindingToExchange
		}
		if normal, err := NormaliseArguments(b.Arguments); err == nil && len(normal) > 0 {
			b.Arguments = normal
		} else {
			b.Arguments = nil // refused by Validate, or empty
		}
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b Binding) int { return strings.Compare(a.Key(), b.Key()) })
	return slices.CompactFunc(out, func(a, b Binding) bool { return a.Key() == b.Key() })
}

// deliveryLimit is the work queue's x-delivery-limit; 0 is none.
func (s Spec) deliveryLimit() int {
	switch {
	case s.DeliveryLimit > 0 || s.queueType() != Quorum || !s.Convention.scheme().strict:
		return s.DeliveryLimit
	default:
		return DefaultDeliveryLimit(s.Retry.MaxRetries)
	}
}

func (s Spec) ladder() Objects {
	scheme := s.Convention.scheme()
	var out Objects
	for tier, delay := range s.HoldDelays {
		for shard := range s.holdShards() {
			name, home := s.holdQueueName(tier, delay, shard), s.WorkQueueName()
			if s.SequenceShards > 0 {
				home = s.ShardQueueName(shard)
			}
			ttl := s.shardTTL(tier, shard)
			args := Arguments{
				ArgQueueType:          string(scheme.holdType),
				ArgMessageTTL:         ttl,
				ArgDeadLetterExchange: scheme.homeExchange,
				ArgDeadLetterKey:      home,
			}
			if scheme.strict {
				args[ArgDeadLetterStrategy] = "at-least-once"
				args[ArgOverflow] = "reject-publish"
			}
			out.Queues = append(out.Queues, Queue{
				Role: RoleHold, Name: name, Type: scheme.holdType, Arguments: args,
				Delay: time.Duration(ttl) * time.Millisecond, Tier: tier, Shard: shard,
			})
			if scheme.holdRoutedBy != nil {
				exchange := scheme.holdRoutedBy(s.base())
				out.addExchange(scheme.exchange(exchange))
				out.Bindings = append(out.Bindings, bindQueue(exchange, name, name))
			}
		}
	}
	if len(out.Queues) > 0 && scheme.homeExchange != "" {
		out.addExchange(scheme.exchange(scheme.homeExchange))
	}
	return out
}

func (s Spec) deadEnd(role Role, name string) Objects {
	scheme := s.Convention.scheme()
	kind := scheme.deadType
	if kind == "" {
		kind = s.queueType()
	}
	args := Arguments{ArgQueueType: string(kind)}
	if scheme.strict {
		args[ArgDeliveryLimit] = int64(deadEndDeliveryLimit)
	}
	out := Objects{Queues: []Queue{{Role: role, Name: name, Type: kind, Arguments: args}}}
	if scheme.deadRoutedBy != nil {
		exchange := scheme.deadRoutedBy(s.base())
		out.addExchange(scheme.exchange(exchange))
		out.Bindings = append(out.Bindings, bindQueue(exchange, name, name))
	}
	return out
}

func (sc scheme) exchange(name string) Exchange {
	return Exchange{Name: name, Type: "direct", Shared: slices.Contains(sc.sharedExchanges, name)}
}

func bindQueue(exchange, queue, key string) Binding {
	return Binding{Source: exchange, Destination: queue, DestinationType: BindingToQueue, RoutingKey: key}
}

// add appends other's objects; an exchange that is there already is not repeated.
func (o *Objects) add(other Objects) {
	for _, e := range other.Exchanges {
		o.addExchange(e)
	}
	o.Queues = append(o.Queues, other.Queues...)
	o.Bindings = append(o.Bindings, other.Bindings...)
}

// addExchange leaves the default exchange out: it always exists.
func (o *Objects) addExchange(e Exchange) {
	if e.Name == "" {
		return
	}
	for _, have := range o.Exchanges {
		if have.Name == e.Name {
			return
		}
	}
	o.Exchanges = append(o.Exchanges, e)
}

// withExtra adds the arguments beyond the contract to the queues they are for.
func (s Spec) withExtra(o Objects) (Objects, error) {
	for i, q := range o.Queues {
		extra, err := s.extra(q.Role)
		if err != nil {
			return Objects{}, err
		}
		args := q.Arguments.clone()
		for _, key := range slices.Sorted(maps.Keys(extra)) {
			if computed, taken := args[key]; taken {
				return Objects{}, fmt.Errorf("extra_arguments %q: queue %q has it from the contract, as %s; change what it is computed from, or leave it out",
					key, q.Name, CanonicalJSON(computed))
			}
			args[key] = extra[key]
		}
		o.Queues[i].Arguments = args
	}
	return o, nil
}
