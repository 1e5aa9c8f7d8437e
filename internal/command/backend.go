package command

import (
	"context"
	"fmt"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/internal/transfer"
	"github.com/redeliver/terraform-provider-redeliver/internal/verify"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// backend is what the commands need of a kind of broker. A manifest names its own.
type backend interface {
	// Verify holds a manifest against the broker.
	Verify(ctx context.Context, m topology.Manifest) (verify.Report, error)
	// Snapshot is how a topic's queues are now.
	Snapshot(ctx context.Context, m topology.Manifest) (snapshot, error)
	// Browse looks at messages of a queue and leaves them there.
	Browse(ctx context.Context, m topology.Manifest, queue topology.ManifestQueue, o browseOptions) (browsed, error)
	// Move moves messages of a queue to another place.
	Move(ctx context.Context, m topology.Manifest, queue topology.ManifestQueue, o moveOptions) (transfer.Report, error)
	// HandedOut is how many messages of a queue somebody has been handed and not settled, whom nobody can take them from;
	// nil where the broker does not tell.
	HandedOut(ctx context.Context, m topology.Manifest, queue topology.ManifestQueue) (*int64, error)
	// Ready is how many messages of a queue Purge would discard, and Purge discards them.
	Ready(ctx context.Context, m topology.Manifest, queue topology.ManifestQueue) (int, error)
	Purge(ctx context.Context, m topology.Manifest, queue topology.ManifestQueue) (int, error)
}

// backend is that of a manifest's broker.
func (a *app) backend(ctx context.Context, m topology.Manifest) (backend, error) {
	switch m.Broker {
	case topology.BrokerRabbitMQ:
		return a.rabbitMQ(ctx)
	case topology.BrokerSQS:
		return a.sqs(ctx, m)
	default:
		return nil, fmt.Errorf("the manifest of topic %q is for broker %q, which this version of redeliver cannot talk to: use one that is as new as what wrote the manifest", m.Topic, m.Broker)
	}
}

// snapshot is how a topic's queues are at one moment.
type snapshot struct {
	// Queues are the work queues, the hold queues by tier, the dead-letter queue and the parked queue.
	Queues []queueState
	// Notes say what it shows to nobody, or not exactly.
	Notes []string
}

// queueState is how one queue is. What the broker does not tell is nil.
type queueState struct {
	Role  topology.Role
	Name  string
	Delay time.Duration // of a hold queue
	// queue is what the manifest says of it.
	queue topology.ManifestQueue
	// Missing: the broker says that there is no such queue. State is what is wrong with one that is there.
	Missing bool
	State   string
	// Unseen says what the broker does not show of it, and why.
	Unseen string
	// Messages are all of them: Ready, Unacknowledged (handed out), and those that wait for something else.
	Messages, Ready, Unacknowledged *int64
	// Delayed are those that were sent with a delay, which only Amazon SQS has.
	Delayed   *int64
	Consumers *int
	// In, Out and Acked are messages per second.
	In, Out, Acked *float64
	// Oldest is when the oldest message was made.
	Oldest time.Time
}

// queuesOf are a manifest's queues, of which nothing is known yet.
func queuesOf(m topology.Manifest) []queueState {
	var out []queueState
	for _, q := range m.WorkQueues() {
		out = append(out, queueState{Role: topology.RoleWork, Name: q.Name, queue: q})
	}
	for _, q := range m.HoldQueues {
		out = append(out, queueState{Role: topology.RoleHold, Name: q.Name, Delay: time.Duration(q.Delay), queue: q.ManifestQueue})
	}
	for _, end := range []setAside{deadLetters, parked} {
		if target := end.of(m); target != nil {
			out = append(out, queueState{Role: end.role, Name: target.Name, queue: target.ManifestQueue})
		}
	}
	return out
}

// wanted says which messages a command is about.
type wanted func(*redeliver.DeadMessage) bool

// browseOptions say what is looked at.
type browseOptions struct {
	// Limit is how many messages are wanted at most; 0 is all.
	Limit int
	// Filter, where it is set, says which.
	Filter wanted
	// AcceptLoss looks even where looking may lose a message.
	AcceptLoss bool
}

// browsed is what was looked at.
type browsed struct {
	// Found is how many messages the queue had, and Looked how many were looked at.
	Found, Looked int
	Messages      []redeliver.DeadMessage
	// Notes say what the broker cannot promise of a look, a sentence each.
	Notes []string
}

// givenBack is how many messages were only looked at.
func givenBack(r transfer.Report, o moveOptions) int {
	if o.DryRun {
		return r.Moved + r.Skipped
	}
	return r.Skipped
}

// moveOptions say what is moved where.
type moveOptions struct {
	// Replay moves messages to where the topic takes them from, unless a target is named, and has them begin again unless
	// KeepCount says otherwise.
	Replay, KeepCount bool
	// Queue, or Exchange with RoutingKey, is the target.
	Queue, Exchange, RoutingKey string
	Limit                       int
	Rate                        float64
	Filter                      wanted
	DryRun, AcceptLoss          bool
	// Progress is told a few times a second how far it is, and Note at the end what the broker cannot promise of messages
	// that were looked at and given back, a sentence each.
	Progress func(transfer.Report)
	Note     func(string)
}
