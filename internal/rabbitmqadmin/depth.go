package rabbitmqadmin

import (
	"context"
	"errors"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// Depth is how many messages a queue holds.
type Depth struct {
	Queue string
	// Total is all of them: ready, unacknowledged, and those that wait to be dead-lettered or redelivered, which no other
	// count shows.
	Total, Ready, Unacknowledged int64
	// Exists is false where RabbitMQ says that there is no such queue.
	Exists bool
	// Known is false where the broker has no counts yet: on a quorum queue for some seconds after it was created, and
	// as long as it has no leader. The counts are then 0 and mean nothing.
	Known bool
}

// counts is one queue of a list with totals.
type counts struct {
	total, ready, unacknowledged int64
	kind                         topology.QueueType
	// present is false where the broker left the counts out, or says that the queue is not running.
	present bool
}

// exact reports whether the counts were taken when they were asked for. A classic queue's process is asked; a quorum
// queue's counts are those of its last tick.
func (c counts) exact() bool { return c.present && c.kind == topology.Classic }

// readCounts reads the names and counts of a vhost's queues, as fresh as the API has them. It asks for "queue totals"
// without statistics. The statistics themselves are older: they collect every 5 s what queues report every 5 s, so that
// a list with statistics said 0 for up to 9.4 s after a publish (measured on 3.10 and 4.3), and this one for 5.1 s.
func (c *Client) readCounts(ctx context.Context, vhost string) (map[string]counts, error) {
	wire, err := c.listQueues(ctx, vhost, query("disable_stats", "true", "enable_queue_totals", "true",
		"columns", "name,type,state,messages,messages_ready,messages_unacknowledged"))
	if err != nil {
		return nil, err
	}
	out := make(map[string]counts, len(wire))
	for _, w := range wire {
		n := counts{kind: w.Type, present: w.Messages != nil && running(w.State)}
		n.total, n.ready, n.unacknowledged = value(w.Messages), value(w.Ready), value(w.Unacknowledged)
		out[w.Name] = n
	}
	return out, nil
}

// running reports whether a queue in this state has counts that mean something. Queues that are down, stopped, crashed
// or in a minority may be reported as empty.
func running(state string) bool {
	switch state {
	case "", "running", "idle", "flow", "live", "syncing":
		return true
	}
	return false
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// Depths asks how many messages queues hold. Counts that are absent are waited for, up to 15 s; then they are unknown.
// What was published in the last 5 s may be missing from the counts of a quorum queue: see [Client.SafeDelete].
func (c *Client) Depths(ctx context.Context, vhost string, queues []string) ([]Depth, error) {
	return publicDepths(c.depths(ctx, vhost, queues, time.Now(), c.unknownWait))
}

// DepthsNow is [Client.Depths] without waiting: absent counts are unknown at once.
func (c *Client) DepthsNow(ctx context.Context, vhost string, queues []string) ([]Depth, error) {
	return publicDepths(c.depths(ctx, vhost, queues, time.Now(), 0))
}

func publicDepths(depths []depth, err error) ([]Depth, error) {
	out := make([]Depth, len(depths))
	for i, d := range depths {
		out[i] = d.Depth
	}
	return out, err
}

// depth is a Depth and what else was seen while it was taken.
type depth struct {
	Depth
	kind      topology.QueueType
	exact     bool
	consumers int
	// disputed: the list says 0 and the statistics do not. Either they are older, or the queue has a new leader, whose
	// node says 0 until it has counted. Total is then what the statistics say.
	disputed bool
}

func (d depth) empty() bool { return d.Known && d.Total == 0 }

// depths takes the counts from a list that is read at due or later and that all callers share. patience is how long
// absent counts are waited for.
func (c *Client) depths(ctx context.Context, vhost string, names []string, due time.Time, patience time.Duration) ([]depth, error) {
	if len(names) == 0 {
		return nil, nil
	}
	list, err := c.counts.notBefore(ctx, vhost, due)
	if err != nil {
		return nil, err
	}
	out := make([]depth, len(names))
	for asked, deadline := false, time.Now().Add(patience); ; asked = true {
		unknown := false
		for i, name := range names {
			if asked && out[i].Known && !out[i].disputed {
				continue
			}
			if out[i], err = c.depthIn(ctx, vhost, name, list); err != nil {
				return nil, err
			}
			unknown = unknown || !out[i].Known || out[i].disputed
		}
		if !unknown || !time.Now().Add(c.unknownPoll).Before(deadline) {
			return out, nil
		}
		if err := c.pause(ctx, c.unknownPoll); err != nil {
			return nil, err
		}
		if list, err = c.counts.notBefore(ctx, vhost, time.Now()); err != nil {
			return nil, err
		}
	}
}

// depthIn finds a queue's depth in a list. Where that says 0 or does not have the queue, the queue itself is asked for:
// the list says 0 for a quorum queue that never reported, where the statistics have no count yet; it leaves out the queues
// that were led by a node that is down; and only a 404 of the queue proves that it is gone.
func (c *Client) depthIn(ctx context.Context, vhost, name string, list map[string]counts) (depth, error) {
	n, listed := list[name]
	d := depth{
		Depth: Depth{Queue: name, Total: n.total, Ready: n.ready, Unacknowledged: n.unacknowledged, Exists: true, Known: n.present},
		kind:  n.kind, exact: n.exact(),
	}
	if n.present && n.total > 0 {
		return d, nil
	}
	live, err := c.queue(ctx, vhost, name)
	if errors.Is(err, ErrNotFound) {
		return depth{Depth: Depth{Queue: name, Known: true}}, nil
	}
	if err != nil {
		return depth{}, err
	}
	d.kind, d.consumers = live.Type, live.Consumers
	if !listed || !running(live.State) {
		d.Known = false
	}
	switch {
	case !d.Known || d.exact:
	case live.Messages == nil:
		broker, err := c.Ping(ctx)
		if err != nil {
			return depth{}, err
		}
		// Without statistics on the whole broker totals are all there is.
		d.Known = broker.StatisticsDisabled
	case *live.Messages > 0:
		d.disputed = true
		d.Total, d.Ready, d.Unacknowledged = *live.Messages, value(live.Ready), value(live.Unacknowledged)
	}
	return d, nil
}
