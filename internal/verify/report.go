package verify

import (
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Kind says what an object is.
type Kind string

// The kinds.
const (
	Queue    Kind = "queue"
	Exchange Kind = "exchange"
	Binding  Kind = "binding"
)

// Status says how an object is.
type Status string

// The statuses.
const (
	// Present: it is there as the manifest says.
	Present Status = "present"
	// Missing: the broker says that it is not there.
	Missing Status = "missing"
	// Drifted: it is there, and messages fare otherwise than the manifest says.
	Drifted Status = "drifted"
	// Unknown: the broker does not show it to this user.
	Unknown Status = "unknown"
)

// Keys of differences that are none of a queue's arguments or properties.
const (
	// KeyConsumers: somebody consumes a hold queue.
	KeyConsumers = "consumers"
	// KeyWaiting: messages wait to be dead-lettered to a target that is not there.
	KeyWaiting = "messages_waiting"
	// KeyRedriveTarget: a queue of Amazon SQS leads to a dead-letter queue that is not there.
	KeyRedriveTarget = "redrive_target"
	// KeyType and KeyInternal are properties of an exchange.
	KeyType     = "type"
	KeyInternal = "internal"
)

// Object is one object of a manifest, and how it is on the broker.
type Object struct {
	Kind Kind
	// Name is that of a queue or exchange; of a binding, what it connects, for people.
	Name string
	// Role is what a queue is for; "" of an exchange. A binding has its destination's.
	Role topology.Role
	// Binding is what a binding is; nil of others.
	Binding *topology.Binding
	Status  Status
	// Differences are those between the manifest and the object. One that is equal in effect makes no drift.
	Differences []topology.Difference
	// OverriddenBy are the policies that have something else apply than the queue's arguments say, where the contract does
	// not allow for it.
	OverriddenBy []topology.Effect
	// Consumers is how many consumers a queue has; nil where that is not known.
	Consumers *int
	// Messages is how many messages a queue holds; nil where that is not known.
	Messages *rabbitmqadmin.Depth
}

// Report is a manifest held against a broker.
type Report struct {
	// VHost and Topic are the manifest's. A topic on Amazon SQS has no vhost.
	VHost, Topic string
	// Objects are everything that the manifest needs, in creation order: exchanges, queues, bindings.
	Objects []Object
	// Unseen says what the broker does not show to this user, one sentence each, with the reason.
	Unseen []string
	// Notes say what the broker shows to nobody, one sentence each.
	Notes []string
}

// InOrder reports whether every object was seen to be there as the manifest says.
func (r Report) InOrder() bool {
	for _, o := range r.Objects {
		if o.Status != Present {
			return false
		}
	}
	return len(r.Objects) > 0
}
