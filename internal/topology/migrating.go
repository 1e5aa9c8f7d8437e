package topology

import (
	"encoding/json"
	"fmt"
)

// ArgAlternateExchange is the argument of an exchange that names where what it cannot route goes.
const ArgAlternateExchange = "alternate-exchange"

// argReplacing keeps, on the exchange that is there as long as a migration lasts, what the queue was before. RabbitMQ
// takes arguments of exchanges that it does not know and gives them no meaning.
const argReplacing = "x-redeliver-replacing"

// argHolder says, on the queue that locks a migration, who holds it. The same goes for arguments of queues.
const argHolder = "x-redeliver-holder"

// Migrating are the objects that exist while a queue's arguments change. Their names end in what is reserved under every
// convention.
type Migrating struct {
	// Queue holds the messages. Queues and exchanges may have one name.
	Queue Queue
	// Switch is the exchange that everything published to the queue goes through, and Branch its alternate exchange: what
	// the switch has no binding for goes there. Both are durable fanouts.
	Switch, Branch string
	// Lock is a queue that never has a message, exclusive to the connection of the one run that may work. It has the branch's
	// name, for which a user needs the same permissions.
	Lock string
}

// Migrating are the objects that exist while a queue becomes q. The queue among them takes what q would: it is of q's
// type, and dead-letters to where q does what expires because a publisher said so. Nothing that bounds a queue is in its
// arguments.
func (q Queue) Migrating() Migrating {
	name, settings := q.Name+migratingSuffix, q.Settings()
	args := Arguments{ArgQueueType: string(q.Type)}
	for _, key := range []string{ArgDeadLetterExchange, ArgDeadLetterKey, ArgDeadLetterStrategy, ArgQuorumGroupSize} {
		if value, ok := settings[key]; ok {
			args[key] = value
		}
	}
	if q.Type == Quorum {
		args[ArgDeliveryLimit] = int64(deadEndDeliveryLimit)
	}
	if _, ok := args[ArgDeadLetterStrategy]; ok {
		args[ArgOverflow] = "reject-publish" // which at-least-once takes
	}
	branch := name + migratingSuffix
	return Migrating{Queue: Queue{Name: name, Type: q.Type, Arguments: args}, Switch: name, Branch: branch, Lock: branch}
}

// Validate refuses names that RabbitMQ cannot have.
func (m Migrating) Validate(queue string) error {
	if len(m.Branch) > MaxNameBytes {
		return fmt.Errorf("queue %q: the name %q, which an exchange has while the queue's arguments change, has %d bytes and RabbitMQ allows %d; the queue can only be replaced while it is empty",
			queue, m.Branch, len(m.Branch), MaxNameBytes)
	}
	return nil
}

// SwitchArguments are the arguments of the switch, which also say what the queue was before.
func (m Migrating) SwitchArguments(replacing Arguments) Arguments {
	return Arguments{ArgAlternateExchange: m.Branch, argReplacing: CanonicalJSON(replacing)}
}

// Replacing are the arguments of the queue from before a migration, as a switch's arguments tell; false where they are
// not those of a switch.
func Replacing(switchArguments Arguments) (Arguments, bool) {
	text, ok := switchArguments[argReplacing].(string)
	var args Arguments
	return args, ok && json.Unmarshal([]byte(text), &args) == nil
}

// LockArguments are the arguments of the lock, which also say who holds it.
func (m Migrating) LockArguments(holder string) Arguments {
	return Arguments{ArgQueueType: string(Classic), argHolder: holder}
}

// Holder is who holds a lock, as its arguments tell; "" where they do not.
func Holder(lockArguments Arguments) string {
	holder, _ := lockArguments[argHolder].(string)
	return holder
}
