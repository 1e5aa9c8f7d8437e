package command

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/internal/transfer"
)

const (
	// lookAtAll is how many messages of a quorum queue are all looked at, however few are wanted: such a queue puts what is
	// given back behind what was given back before, so that a look at some of those that an earlier look gave back would
	// change their order. Looking at all keeps it.
	lookAtAll = 10_000
	// enoughDeliveries is a delivery limit that looks do not use up.
	enoughDeliveries = 100_000
	// defaultDeliveryLimit is that of quorum queues since RabbitMQ 4.0.
	defaultDeliveryLimit = 20
)

// look is what a broker makes of messages that are looked at and given back.
type look struct {
	vhost string
	queue topology.Queue
	// found is how many messages are there.
	found int
	// version is the broker's, and major and minor the numbers that it begins with.
	version      string
	major, minor int
	// limit is how often a quorum queue delivers a message before it drops it, 0 is no limit. Where the live queue and its
	// policies could not be asked, unknown says why, and limit is only what the manifest says.
	limit   int64
	unknown error
}

func (r *rabbitMQ) look(ctx context.Context, dial transfer.Dial, vhost string, queue topology.ManifestQueue) (look, error) {
	l := look{vhost: vhost, queue: topology.Queue{Name: queue.Name, Type: queue.Type, Arguments: queue.Arguments}}
	conn, err := dial(ctx, " (look)")
	if err != nil {
		return l, err
	}
	l.version, _ = conn.Properties["version"].(string)
	if err := conn.Close(ctx); err != nil {
		return l, fmt.Errorf("closing the connection to %s: %w", conn.Address, err)
	}
	major, rest, _ := strings.Cut(l.version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	l.major, _ = strconv.Atoi(major)
	l.minor, _ = strconv.Atoi(minor)
	if l.found, _, err = transfer.Ready(ctx, dial, queue.Name); err != nil {
		return l, err
	}
	live, policies, err := r.live(ctx, vhost, queue.Name)
	switch {
	case ctx.Err() != nil:
		return l, context.Cause(ctx)
	case err != nil:
		l.unknown = err
	default:
		l.queue.Type, l.queue.Arguments = live.Type, live.Arguments
	}
	l.limit = deliveryLimit(l.queue, policies, live.Policy, l.major)
	return l, nil
}

// live is a queue as it is, and the policies of its vhost, which only the management API tells.
func (r *rabbitMQ) live(ctx context.Context, vhost, queue string) (rabbitmqadmin.LiveQueue, []topology.Policy, error) {
	client, err := r.admin(ctx)
	if err != nil {
		return rabbitmqadmin.LiveQueue{}, nil, err
	}
	live, err := client.View().Queue(ctx, vhost, queue)
	if err != nil {
		return live, nil, err
	}
	policies, err := client.View().Policies(ctx, vhost)
	return live, policies, err
}

// deliveryLimit is the one that applies to a queue.
func deliveryLimit(q topology.Queue, policies []topology.Policy, policy string, major int) int64 {
	for _, e := range q.Effects(policies, policy) {
		if limit, err := strconv.ParseInt(e.Effective, 10, 64); e.Key == topology.ArgDeliveryLimit && err == nil {
			return limit
		}
	}
	if limit, ok := q.Arguments[topology.ArgDeliveryLimit].(int64); ok {
		return limit
	}
	if major >= 4 {
		return defaultDeliveryLimit
	}
	return 0
}

func (l look) quorum() bool { return l.queue.Type == topology.Quorum }

// counts says whether each look spends a delivery: on a quorum queue, until 4.3 tells a look from a failure.
func (l look) counts() bool { return l.quorum() && (l.major < 4 || l.major == 4 && l.minor < 3) }

// refuse is the error where a message may be lost by looking at it: a quorum queue drops what was delivered too often, and
// messages keep their counts when they are dead-lettered.
func (l look) refuse(accepted bool) error {
	if accepted || l.found == 0 {
		return nil
	}
	if l.unknown != nil { // what the manifest says may have drifted, its type and its limit too
		return fmt.Errorf("looking at queue %q may lose messages: a quorum queue drops a message that was delivered too often, a message that is looked at and given back was delivered, "+
			"and how many deliveries the live queue and its policies allow only RabbitMQ's management API says, which could not be asked: %w. "+
			"Let it be asked (--management-url or %s, by a user with the tag management), or accept the loss with --accept-loss",
			l.queue.Name, l.unknown, rabbitmqadmin.EnvName("endpoints"))
	}
	unlimited := l.limit == 0 || l.limit < 0 && l.major >= 4
	if !l.quorum() || unlimited || l.limit >= enoughDeliveries {
		return nil
	}
	return fmt.Errorf("looking at queue %q may lose messages: a quorum queue of RabbitMQ %s drops a message after %d deliveries, a message that is looked at and given back was delivered, and what was delivered by the topic's own queue counts too. "+
		"Give the queue a limit that nobody reaches, which a policy can (definition {\"delivery-limit\":1000000} for pattern %q in vhost %q), or accept it with --accept-loss",
		l.queue.Name, l.version, l.limit, "^"+regexp.QuoteMeta(l.queue.Name)+"$", l.vhost)
}

// wanted is how many messages are looked at where so many are wanted; 0 is all.
func (l look) wanted(n int) int {
	if l.quorum() && l.found <= lookAtAll {
		return 0
	}
	return n
}

// notes say what the broker cannot promise of messages that were looked at and given back; all says that no message was
// left out.
func (l look) notes(given int, all bool) []string {
	if !l.quorum() || given == 0 {
		return nil
	}
	var out []string
	if l.counts() {
		of := "which has no limit of them"
		switch {
		case l.unknown != nil && l.limit > 0:
			of = "of the " + count(l.limit) + " that the queue is assumed to allow: so its manifest says, and the live queue was not asked"
		case l.unknown != nil:
			of = "and how many the queue allows was not asked"
		case l.limit > 0:
			of = "of the " + count(l.limit) + " that the queue allows"
		}
		out = append(out, fmt.Sprintf("RabbitMQ %s counts a look as a delivery: %s %s spent one, %s.", l.version, messages(given), plural(given, "has", "have each"), of))
	}
	switch {
	case all:
	case l.major < 4 && l.limit == 0:
		out = append(out, fmt.Sprintf("RabbitMQ %s puts what is given back to a quorum queue without a delivery limit behind everything else: these messages are now the last ones.", l.version))
	default:
		out = append(out, "RabbitMQ puts what is given back to a quorum queue behind what was given back before, and not all messages were looked at: if some had been given back earlier, these are now behind them.")
	}
	return out
}
