package rabbitmqadmin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// restoreTimeout bounds the restoring of bindings, which does not end with the caller's context.
const restoreTimeout = 30 * time.Second

// SafeDelete is a request to delete queues unless that loses messages.
type SafeDelete struct {
	VHost string
	// Queues are deleted, in this order, and only if all of them and all of AlsoEmpty pass.
	Queues []string
	// AlsoEmpty must be empty too, and are not deleted: the hold queues of a work queue, whose messages would come home to
	// nothing.
	AlsoEmpty []string
	// NotPointedAt refuses while a queue that is not among Queues dead-letters to one of them.
	NotPointedAt bool
	// OwnBindings are removed before messages are counted, so that none come in any more, and restored on a refusal and
	// on every error. Those that do not exist are left out.
	OwnBindings []topology.Binding
	// DeleteNonEmpty skips all checks: the queues are deleted with what they hold.
	DeleteNonEmpty bool
}

// SafeDeleteResult is what was done. It is filled in as far as that went when there is an error, too.
type SafeDeleteResult struct {
	// Deleted are the queues that are gone now, those that were gone before included, in the order of the request.
	Deleted []string
	// Bindings are all bindings that the deleted queues had just before, own and foreign: with a queue RabbitMQ removes
	// its bindings, so that who creates it again has to restore them.
	Bindings []topology.Binding
	// Consumers is how many consumers the deleted queues had (from the statistics, up to 10 s late). They are cancelled by
	// the broker, which is no reason to refuse: what they hold is unacknowledged, and counted.
	Consumers map[string]int
}

// SafeDelete deletes queues that hold no messages: see the package documentation for what that means and for the race
// that remains. It refuses with [*NotEmptyError] and [*PointedAtError]; then, and on every other error, nothing was
// deleted that is not in the result, and the own bindings are back ([*RestoreError] names those that are not).
func (c *Client) SafeDelete(ctx context.Context, req SafeDelete) (SafeDeleteResult, error) {
	d := &deletion{c: c, req: req, result: SafeDeleteResult{Consumers: map[string]int{}}}
	if req.DeleteNonEmpty {
		err := d.delete(ctx, nil)
		return d.result, err
	}
	err := d.check(ctx)
	if err == nil {
		var depths map[string]depth
		if depths, err = d.detach(ctx); err == nil {
			err = d.delete(ctx, depths)
		}
	}
	if err != nil {
		err = d.restore(ctx, err)
	}
	return d.result, err
}

// deletion is one SafeDelete on its way.
type deletion struct {
	c   *Client
	req SafeDelete
	// removed are the own bindings that existed and that this deletion took away.
	removed []topology.Binding
	result  SafeDeleteResult
}

// involved are all queues that have to be empty.
func (d *deletion) involved() []string {
	var names []string
	for _, name := range slices.Concat(d.req.Queues, d.req.AlsoEmpty) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// check refuses what can be refused before anything is changed.
func (d *deletion) check(ctx context.Context) error {
	if d.req.NotPointedAt {
		for _, queue := range d.req.Queues {
			by, err := d.c.PointingAt(ctx, d.req.VHost, queue)
			if err != nil {
				return err
			}
			by = slices.DeleteFunc(by, func(name string) bool { return slices.Contains(d.req.Queues, name) })
			if len(by) > 0 {
				return &PointedAtError{VHost: d.req.VHost, Queue: queue, By: by}
			}
		}
	}
	start := time.Now()
	if _, err := d.exactDepths(ctx); err != nil {
		return err
	}
	depths, err := d.c.depths(ctx, d.req.VHost, d.involved(), start, 0)
	if err != nil {
		return err
	}
	// What the counts say may be history: messages that were there some seconds ago. Only a count that is taken now, or
	// one that stays, is a refusal. Counts that are unknown are waited for later.
	holds := func(depth depth) bool { return depth.Known && depth.Total > 0 }
	switch {
	case slices.ContainsFunc(depths, func(depth depth) bool { return holds(depth) && depth.exact }):
		return d.notEmpty(depths, holds)
	case slices.ContainsFunc(depths, holds):
		if depths, err = d.c.depths(ctx, d.req.VHost, d.involved(), start.Add(d.c.settling()), d.c.unknownWait); err != nil {
			return err
		}
		return d.notEmpty(depths, holds)
	}
	return nil
}

// settling is how much older than a count whatever it is to include has to be: the statistics interval and some.
func (c *Client) settling() time.Duration { return c.cfg.StatisticsInterval * 5 / 4 }

// detach removes the own bindings, and then proves that all queues are empty.
func (d *deletion) detach(ctx context.Context) (map[string]depth, error) {
	for _, b := range d.req.OwnBindings {
		was, err := d.c.unbind(ctx, d.req.VHost, b)
		if was {
			// With an error it may be gone all the same.
			d.removed = append(d.removed, b)
		}
		if err != nil {
			return nil, err
		}
	}
	detached := time.Now()
	busy, err := d.exactDepths(ctx)
	if err != nil {
		return nil, err
	}
	notKnownEmpty := func(depth depth) bool { return !depth.empty() }
	if d.c.amqp != nil && !busy {
		// What is ready was counted exactly, and nobody consumes. Recent counts that say 0 settle the rest.
		depths, err := d.c.depths(ctx, d.req.VHost, d.involved(), detached, 0)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(depths, notKnownEmpty) {
			return byName(depths), nil
		}
	}
	depths, err := d.c.depths(ctx, d.req.VHost, d.involved(), detached.Add(d.c.settling()), d.c.unknownWait)
	if err != nil {
		return nil, err
	}
	if err := d.notEmpty(depths, notKnownEmpty); err != nil {
		return nil, err
	}
	// Waiting took a while.
	if _, err := d.exactDepths(ctx); err != nil {
		return nil, err
	}
	return byName(depths), nil
}

func byName(depths []depth) map[string]depth {
	out := make(map[string]depth, len(depths))
	for _, d := range depths {
		out[d.Queue] = d
	}
	return out
}

// exactDepths asks over AMQP, where that is configured, and refuses what is not empty. busy reports whether a queue has
// consumers: these can hold messages that were never counted as ready.
func (d *deletion) exactDepths(ctx context.Context) (busy bool, err error) {
	if d.c.amqp == nil {
		return true, nil
	}
	exact, err := d.c.amqp.depths(ctx, d.req.VHost, d.involved())
	if err != nil {
		return true, err
	}
	var full []string
	for _, name := range d.involved() {
		busy = busy || exact[name].consumers > 0
		if exact[name].messages > 0 {
			full = append(full, name)
		}
	}
	if len(full) == 0 {
		return busy, nil
	}
	// It is refused. What is not ready makes the message complete.
	depths, err := d.c.depths(ctx, d.req.VHost, full, time.Now(), 0)
	if err != nil {
		return busy, err
	}
	for i, name := range full {
		depths[i].Exists, depths[i].Known, depths[i].Ready = true, true, int64(exact[name].messages)
		depths[i].Total = max(depths[i].Total, depths[i].Ready+depths[i].Unacknowledged)
	}
	return busy, d.notEmpty(depths, func(depth) bool { return true })
}

// notEmpty is the refusal for those depths that are refused; nil without any.
func (d *deletion) notEmpty(depths []depth, refused func(depth) bool) error {
	e := &NotEmptyError{VHost: d.req.VHost}
	for _, depth := range depths {
		if refused(depth) {
			e.Depths = append(e.Depths, depth.Depth)
		}
	}
	if len(e.Depths) == 0 {
		return nil
	}
	return e
}

// delete deletes the queues in order. depths is nil when it does not matter what they hold.
func (d *deletion) delete(ctx context.Context, depths map[string]depth) error {
	for _, name := range d.req.Queues {
		bindings, err := d.c.QueueBindings(ctx, d.req.VHost, name)
		if err != nil {
			return err
		}
		for _, b := range d.removed {
			if destinationType(b) == toQueue && b.Destination == name {
				bindings = append(bindings, b)
			}
		}
		// A classic queue can be told to go only if nothing is ready, which leaves no gap. A quorum queue refuses to be asked.
		ifEmpty := depths[name].kind == topology.Classic
		if err := gone(d.c.deleteQueue(ctx, d.req.VHost, name, ifEmpty)); err != nil {
			return d.refusedNow(ctx, name, ifEmpty, err)
		}
		d.result.Deleted = append(d.result.Deleted, name)
		d.result.Bindings = append(d.result.Bindings, bindings...)
		if n := depths[name].consumers; n > 0 {
			d.result.Consumers[name] = n
		}
	}
	return nil
}

// refusedNow tells a queue that got a message at the last moment from other failures.
func (d *deletion) refusedNow(ctx context.Context, name string, ifEmpty bool, err error) error {
	var e *Error
	if !ifEmpty || !errors.As(err, &e) || e.Status != http.StatusBadRequest || !strings.HasSuffix(e.Reason, "not empty") {
		return err
	}
	depths, depthErr := d.c.depths(ctx, d.req.VHost, []string{name}, time.Now(), 0)
	if depthErr != nil {
		return err
	}
	return d.notEmpty(depths, func(depth) bool { return true })
}

// restore puts the removed bindings back whose queues were not deleted, and returns refusal, or that and what is missing.
func (d *deletion) restore(ctx context.Context, refusal error) error {
	if len(d.removed) == 0 {
		return refusal
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	failed := &RestoreError{VHost: d.req.VHost, Refusal: refusal}
	for _, b := range d.removed {
		if destinationType(b) == toQueue && slices.Contains(d.result.Deleted, b.Destination) {
			continue
		}
		if err := d.c.Bind(ctx, d.req.VHost, b); err != nil {
			failed.Missing = append(failed.Missing, b)
			if failed.Cause == nil {
				failed.Cause = err
			}
		}
	}
	if len(failed.Missing) > 0 {
		return failed
	}
	d.c.cfg.Logf(ctx, "bindings that were removed before a deletion are restored", map[string]any{"vhost": d.req.VHost, "bindings": len(d.removed)})
	return refusal
}
