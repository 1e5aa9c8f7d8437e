package topology

import "time"

// Objects are what must exist on the broker for the manifest to hold, in creation order: the queues with the arguments
// that it states, and the exchanges and bindings that its convention has for them.
func (m Manifest) Objects() Objects {
	s := m.spec()
	scheme := s.Convention.scheme()
	var out Objects
	for _, end := range []struct {
		role   Role
		target *ManifestTarget
	}{{RoleDeadLetter, m.DeadLetter}, {RoleParked, m.Parked}} {
		if end.target != nil {
			out.add(s.deadEnd(end.role, end.target.Name))
			out.state(end.target.ManifestQueue)
		}
	}
	for _, hold := range m.HoldQueues {
		out.Queues = append(out.Queues, Queue{Role: RoleHold, Name: hold.Name, Delay: time.Duration(hold.Delay), Tier: hold.Tier, Shard: hold.Shard})
		out.state(hold.ManifestQueue)
		if m.RetryExchange != "" {
			out.addExchange(scheme.exchange(m.RetryExchange))
			out.Bindings = append(out.Bindings, bindQueue(m.RetryExchange, hold.Name, hold.Name))
		}
	}
	out.add(s.work())
	for _, queue := range m.WorkQueues() {
		out.state(queue)
	}
	return out
}

// state gives the queue of this name the type and the arguments that a manifest states.
func (o *Objects) state(stated ManifestQueue) {
	for i := range o.Queues {
		if o.Queues[i].Name == stated.Name {
			o.Queues[i].Type, o.Queues[i].Arguments = stated.Type, stated.Arguments
		}
	}
}

// spec is what the manifest was computed from, as far as exchanges and bindings depend on it.
func (m Manifest) spec() Spec {
	s := Spec{
		Identity:  Identity{Topic: m.Topic, VHost: m.VHost, Convention: m.Convention, ConsumerGroup: m.ConsumerGroup},
		QueueType: m.WorkQueue.Type, Sequenced: m.Sequence != nil,
	}
	if m.DeadLetter != nil {
		s.DeadLetterQueue = m.DeadLetter.Name
	}
	if m.Sequence != nil {
		s.SequenceShards = len(m.Sequence.Shards)
	}
	for _, b := range m.Bindings {
		s.Bindings = append(s.Bindings, Binding{Source: b.Exchange, RoutingKey: b.RoutingKey, Arguments: b.Arguments})
	}
	return s
}
