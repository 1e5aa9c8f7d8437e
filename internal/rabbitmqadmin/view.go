package rabbitmqadmin

import (
	"context"
	"maps"
	"slices"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// How many objects of a vhost are read by themselves before its whole list is, by kind: enough for any one resource with
// three tiers, and much less than the list of a vhost with 100,000 queues. A refresh of any size takes 20 requests with
// them: these, three lists, the overview, both kinds of policies, the vhosts, the consumers and who the user is.
const (
	queuesAlone    = 6
	exchangesAlone = 2
	bindingsAlone  = 3
	depthsAlone    = 6
)

// View is what a run knows of the broker's objects. Whoever refreshes or plans reads through it, so that every object
// is read once and the number of requests does not grow with the number of resources: the first few of a kind by
// themselves, then all of the vhost in one list without statistics. It is as old as its reads: what must not be missed
// is read with the [Client]. What the client writes the view reads again when it is asked for it, by itself. (What goes along
// unasked, like an auto-delete exchange with its last binding, it does not see.)
//
// What a view returns is shared: callers change none of it.
type View struct {
	c      *Client
	vhosts *keyed[*vhostView]
	// all vhosts that the user may see.
	about *shelf[map[string]VHost]
	// the tags of the user.
	user *shelf[tags]
}

// vhostView is a view of one vhost.
type vhostView struct {
	queues    *shelf[LiveQueue]
	exchanges *shelf[LiveExchange]
	bindings  *shelf[[]topology.Binding]
	policies  *shelf[[]topology.Policy]
	consumers *shelf[map[string][]Consumer]
	counts    *shelf[map[string]counts]
	depths    *allowance
}

// fromExchange is the end of a binding that is its source; the other ends are called after their types.
const fromExchange = "source"

// everything is the name of what a vhost has only one of.
const everything = ""

func newView(c *Client) *View {
	v := &View{c: c}
	v.about = newShelf(never, func(ctx context.Context, _ string) (map[string]VHost, error) { return c.listVHosts(ctx) }, nil)
	v.vhosts = newKeyed(v.ofVHost)
	v.user = newShelf(never, func(ctx context.Context, _ string) (tags, error) { return c.userTags(ctx) }, nil)
	return v
}

// View is the client's: one for the run.
func (c *Client) View() *View { return c.view }

func (v *View) ofVHost(vhost string) *vhostView {
	c := v.c
	at := &vhostView{
		queues: newShelf(queuesAlone,
			func(ctx context.Context, name string) (LiveQueue, error) { return c.Queue(ctx, vhost, name) },
			func(ctx context.Context) (map[string]LiveQueue, error) {
				all, err := c.Queues(ctx, vhost)
				return indexed(all, func(q LiveQueue) string { return q.Name }), v.oneByOne(ctx, err)
			}),
		exchanges: newShelf(exchangesAlone,
			func(ctx context.Context, name string) (LiveExchange, error) { return c.Exchange(ctx, vhost, name) },
			func(ctx context.Context) (map[string]LiveExchange, error) {
				all, err := c.listExchanges(ctx, vhost)
				return indexed(all, func(e LiveExchange) string { return e.Name }), v.oneByOne(ctx, err)
			}),
		bindings: newShelf(bindingsAlone,
			func(ctx context.Context, end string) ([]topology.Binding, error) {
				return c.bindingsAt(ctx, vhost, end)
			},
			func(ctx context.Context) (map[string][]topology.Binding, error) {
				all, err := c.listBindings(ctx, vhost)
				return byEnd(all), v.oneByOne(ctx, err)
			}),
		policies:  newShelf(never, func(ctx context.Context, _ string) ([]topology.Policy, error) { return c.Policies(ctx, vhost) }, nil),
		consumers: newShelf(never, func(ctx context.Context, _ string) (map[string][]Consumer, error) { return c.listConsumers(ctx, vhost) }, nil),
		counts:    newShelf(never, func(ctx context.Context, _ string) (map[string]counts, error) { return c.readCounts(ctx, vhost) }, nil),
		depths:    &allowance{left: depthsAlone},
	}
	// Whoever deletes a queue or an exchange deletes its bindings, which the other end has too.
	at.bindings.speaksOf = func(bindings []topology.Binding) []string { return slices.Collect(maps.Keys(byEnd(bindings))) }
	return at
}

// oneByOne logs why a list failed. RabbitMQ answers 500 to the list of the bindings where any of the vhost is one of those
// that [checkBinding] refuses; other lists may take too long, or be too large for a proxy.
func (v *View) oneByOne(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && !isRefusal(err) {
		v.c.cfg.Logf(ctx, "a list failed: its objects are read one by one", map[string]any{"error": err.Error()})
	}
	return err
}

func indexed[T any](all []T, name func(T) string) map[string]T {
	out := make(map[string]T, len(all))
	for _, one := range all {
		out[name(one)] = one
	}
	return out
}

// Queue is [Client.Queue]. Counts and consumers of a queue that a list had are not known. A queue that no list had is
// asked for by itself: lists leave out what was led by a node that is down.
func (v *View) Queue(ctx context.Context, vhost, name string) (LiveQueue, error) {
	at := v.vhosts.get(vhost)
	q, found, err := at.queues.get(ctx, name)
	if err != nil || found {
		return q, err
	}
	return at.queues.getAlone(ctx, name)
}

// FindQueue is Queue for those who can do without a proof that there is none.
func (v *View) FindQueue(ctx context.Context, vhost, name string) (q LiveQueue, found bool, err error) {
	q, found, err = v.vhosts.get(vhost).queues.get(ctx, name)
	return q, found && err == nil, gone(err)
}

// Queues is [Client.Queues].
func (v *View) Queues(ctx context.Context, vhost string) ([]LiveQueue, error) {
	return v.vhosts.get(vhost).queues.list(ctx)
}

// Exchange is [Client.Exchange].
func (v *View) Exchange(ctx context.Context, vhost, name string) (LiveExchange, error) {
	e, found, err := v.vhosts.get(vhost).exchanges.get(ctx, name)
	if err == nil && !found {
		err = &Error{Op: opRead, Object: exchangeObject(name), VHost: vhost, Reason: "it is not in the list of exchanges", kinds: []error{ErrNotFound}}
	}
	return e, err
}

// Exchanges are the exchanges of a vhost, the built-in ones included.
func (v *View) Exchanges(ctx context.Context, vhost string) ([]LiveExchange, error) {
	return v.vhosts.get(vhost).exchanges.list(ctx)
}

// QueueBindings is [Client.QueueBindings].
func (v *View) QueueBindings(ctx context.Context, vhost, queue string) ([]topology.Binding, error) {
	return v.bindingsAt(ctx, vhost, toQueue, queue)
}

// ExchangeBindings is [Client.ExchangeBindings].
func (v *View) ExchangeBindings(ctx context.Context, vhost, exchange string) (source, destination []topology.Binding, err error) {
	if source, err = v.bindingsAt(ctx, vhost, fromExchange, exchange); err == nil {
		destination, err = v.bindingsAt(ctx, vhost, toExchange, exchange)
	}
	return source, destination, err
}

func (v *View) bindingsAt(ctx context.Context, vhost, end, name string) ([]topology.Binding, error) {
	got, _, err := v.vhosts.get(vhost).bindings.get(ctx, bindingEnd(end, name))
	return slices.Clone(got), err
}

// Policies are the policies and operator policies of a vhost. Who may use the management API in the vhost may see
// them: the tag "policymaker" is for writing them (3.10, 4.0 and 4.3).
func (v *View) Policies(ctx context.Context, vhost string) ([]topology.Policy, error) {
	got, _, err := v.vhosts.get(vhost).policies.get(ctx, everything)
	return got, err
}

// Consumers are the consumers of a queue. What was read of a queue by itself has them; for others all of the vhost are
// listed.
func (v *View) Consumers(ctx context.Context, vhost, queue string) ([]Consumer, error) {
	q, found, err := v.FindQueue(ctx, vhost, queue)
	if err != nil || !found || q.Subscribed != nil {
		return q.Subscribed, err
	}
	got, _, err := v.vhosts.get(vhost).consumers.get(ctx, everything)
	return got[queue], err
}

// VHost is what the broker says about a vhost; the zero value where the user may not see it.
func (v *View) VHost(ctx context.Context, vhost string) (VHost, error) {
	got, _, err := v.about.get(ctx, everything)
	return got[vhost], err
}

// Depths is [Client.DepthsNow] for a few queues, and beyond that what one list says: a quorum queue that reported
// nothing yet then counts as empty.
func (v *View) Depths(ctx context.Context, vhost string, queues []string) ([]Depth, error) {
	at := v.vhosts.get(vhost)
	if at.depths.take(len(queues)) {
		return v.c.DepthsNow(ctx, vhost, queues)
	}
	list, _, err := at.counts.get(ctx, everything)
	if err != nil {
		return nil, err
	}
	out := make([]Depth, len(queues))
	for i, name := range queues {
		n, listed := list[name]
		out[i] = Depth{Queue: name, Total: n.total, Ready: n.ready, Unacknowledged: n.unacknowledged, Exists: listed, Known: n.present}
	}
	return out, nil
}

// bindingEnd names what bindings have in common: where they lead to, or start.
func bindingEnd(end, name string) string { return end + "\x00" + name }

func (c *Client) bindingsAt(ctx context.Context, vhost, at string) ([]topology.Binding, error) {
	switch end, name, _ := strings.Cut(at, "\x00"); end {
	case toQueue:
		return c.QueueBindings(ctx, vhost, name)
	case toExchange:
		return c.exchangeBindings(ctx, vhost, name, rabbithole.BindingDestination)
	default:
		return c.exchangeBindings(ctx, vhost, name, rabbithole.BindingSource)
	}
}

// byEnd are bindings by both of their ends.
func byEnd(bindings []topology.Binding) map[string][]topology.Binding {
	out := map[string][]topology.Binding{}
	for _, b := range bindings {
		for _, end := range endsOf(b) {
			out[end] = append(out[end], b)
		}
	}
	return out
}

func endsOf(b topology.Binding) []string {
	return []string{bindingEnd(destinationType(b), b.Destination), bindingEnd(fromExchange, b.Source)}
}

// The writes of the client, as the view sees them: after each, whatever came of it, nobody knows what is there. What was
// asked for is no proof even where it succeeded: the broker adds arguments to a queue, and does not compare all of them
// with those of one that is there.

func (v *View) declaredQueue(vhost, name string) {
	v.vhosts.get(vhost).queues.wrote(name)
	v.c.queues.outdated(vhost)
}

func (v *View) deletedQueue(vhost, name string) {
	at := v.vhosts.get(vhost)
	at.queues.wrote(name)
	at.bindings.wrote(bindingEnd(toQueue, name))
}

func (v *View) declaredExchange(vhost, name string) {
	v.vhosts.get(vhost).exchanges.wrote(name)
	v.c.exchangeList.outdated(vhost)
}

func (v *View) deletedExchange(vhost, name string) {
	at := v.vhosts.get(vhost)
	at.exchanges.wrote(name)
	at.bindings.wrote(bindingEnd(toExchange, name), bindingEnd(fromExchange, name))
}

// wrotePolicy is told of a policy that was written, or deleted where p is nil. A policy is what it was written as, so that
// the list is read again only where the write failed.
func (v *View) wrotePolicy(vhost, name string, p *topology.Policy, err error) {
	policies := v.vhosts.get(vhost).policies
	v.c.queues.outdated(vhost) // it says which policy applies
	if err != nil {
		policies.wrote(everything)
		return
	}
	policies.patch(everything, func(have []topology.Policy) []topology.Policy {
		at := slices.IndexFunc(have, func(h topology.Policy) bool { return h.Name == name && !h.Operator })
		switch {
		case p == nil && at >= 0:
			return slices.Delete(slices.Clone(have), at, at+1)
		case p != nil && at >= 0:
			have = slices.Clone(have)
			have[at] = p.Compiled(readPattern)
		case p != nil:
			have = append(have, p.Compiled(readPattern)) // behind what others were given
		}
		return have
	})
}

// bound is told of a binding that was made or removed.
func (v *View) bound(vhost string, b topology.Binding) {
	v.vhosts.get(vhost).bindings.wrote(endsOf(b)...)
}
