package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// waitOutSlack is what a removed tier gets beyond its delay: the broker's
// statistics are late by up to 5 s, and expired messages leave one by one.
const waitOutSlack = 30 * time.Second

// ladderChange is what an update has to do, by queue.
type ladderChange struct {
	// missing are made; replaced differ in arguments and are deleted, then made again; removed are waited out and deleted.
	missing, replaced []topology.Queue
	removed           []string
}

// change compares what the plan computes with what the state last saw.
func (plan *holdLadderModel) change(state *holdLadderModel, objects topology.Objects, ignore []string) ladderChange {
	var change ladderChange
	live := ladderArguments(state)
	kept := map[string]bool{}
	for _, q := range objects.Queues {
		kept[q.Name] = true
		have, seen := live[q.Name]
		switch {
		case !seen:
			change.missing = append(change.missing, q)
		case len(breaking(q.Arguments, have, ignore)) > 0:
			change.replaced = append(change.replaced, q)
		}
	}
	for _, name := range ownedQueues(state) {
		if _, seen := live[name]; seen && !kept[name] {
			change.removed = append(change.removed, name)
		}
	}
	return change
}

func (r *holdLadderResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state holdLadderModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	objects, ok := r.finish(ctx, &plan, &resp.Diagnostics)
	if !ok {
		return
	}
	admin, err := r.rt.admin()
	if addError(&resp.Diagnostics, "Could not update the hold ladder", err); err != nil {
		return
	}
	change := plan.change(&state, objects, stringsOf(ctx, plan.IgnoreArguments))
	limit := defaultLadderTimeout + longestDelay(ladderArguments(&state), change.removed)
	limit, diags := plan.Timeouts.Update(ctx, limit)
	if resp.Diagnostics.Append(diags...); diags.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	if err := r.apply(ctx, admin, &plan, &state, objects, change); err != nil {
		addError(&resp.Diagnostics, "Could not update the hold ladder", err)
		// What is owned by now is kept in state, so that the next apply goes on from here.
		afterwards, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		owned := append(ownedQueues(&state), queueNames(objects.Queues)...)
		if live, err := readLadder(afterwards, admin, plan.VHost.ValueString(), owned); err == nil {
			// A queue that was there before this resource made it is not its own.
			for _, q := range change.missing {
				if !r.rt.wasCreated(objectKey("queue", plan.VHost.ValueString(), q.Name)) {
					delete(live, q.Name)
				}
			}
			state.Arguments = ladderMap(live)
			resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
		}
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// apply carries out a change. Everything that may refuse is asked before anything is touched.
func (r *holdLadderResource) apply(ctx context.Context, admin *rabbitmqadmin.Client, plan, state *holdLadderModel, objects topology.Objects, change ladderChange) error {
	vhost := plan.VHost.ValueString()
	request := r.createRequest(ctx, plan, topology.Objects{Exchanges: objects.Exchanges, Queues: change.missing})
	if _, err := r.rt.missing(ctx, admin, request); err != nil {
		return err
	}
	old, err := r.objects(ctx, state, nil)
	if err != nil {
		return err
	}
	if len(change.replaced) > 0 {
		err := r.rt.remove(ctx, rabbitmqadmin.SafeDelete{
			VHost: vhost, Queues: queueNames(change.replaced), OwnBindings: bindingsOf(old, queueNames(change.replaced)),
			DeleteNonEmpty: plan.DeleteNonEmpty.ValueBool(),
		}, nil)
		if err != nil {
			return err
		}
		request.objects.Queues = append(slices.Clone(change.missing), change.replaced...)
	}
	request.objects.Bindings = objects.Bindings
	if _, err := r.rt.create(ctx, request); err != nil {
		return err
	}
	return r.waitOut(ctx, admin, vhost, change.removed, bindingsOf(old, change.removed), longestDelay(ladderArguments(state), change.removed), plan.DeleteNonEmpty.ValueBool())
}

// waitOut deletes the hold queues of removed tiers once their messages are home: nothing is routed to them any more,
// and then it takes their delay. Where that takes too long the routes are given back and nothing is deleted.
func (r *holdLadderResource) waitOut(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, queues []string, bindings []topology.Binding, delay time.Duration, deleteNonEmpty bool) (err error) {
	if len(queues) == 0 {
		return nil
	}
	request := rabbitmqadmin.SafeDelete{VHost: vhost, Queues: queues, OwnBindings: bindings, DeleteNonEmpty: deleteNonEmpty}
	if deleteNonEmpty {
		return r.rt.remove(ctx, request, nil)
	}
	for _, b := range bindings {
		if err := admin.Unbind(ctx, vhost, b); err != nil {
			return err
		}
	}
	defer func() {
		if err == nil {
			return
		}
		restore, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		for _, b := range bindings {
			// A queue that was deleted needs its binding no more.
			if failed := admin.Bind(restore, vhost, b); failed != nil && !errors.Is(failed, rabbitmqadmin.ErrNotFound) {
				err = errors.Join(err, fmt.Errorf("the binding of hold queue %q was not given back: %w", b.Destination, failed))
			}
		}
	}()
	deadline := time.Now().Add(delay + waitOutSlack)
	for {
		depths, err := admin.Depths(ctx, vhost, queues)
		if err != nil {
			return err
		}
		waiting := int64(0)
		for _, d := range depths {
			if d.Exists && (!d.Known || d.Total > 0) {
				waiting += max(1, d.Total)
			}
		}
		if waiting == 0 {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the removed hold queues %q in vhost %q still hold %d messages after their delay of %s and %s more; "+
				"look whether an application still publishes to them or their way home is blocked, then apply again",
				queues, vhost, waiting, topology.FormatDuration(delay), topology.FormatDuration(waitOutSlack))
		}
		tflog.Info(ctx, "waiting for the messages of removed hold queues to go home", map[string]any{"vhost": vhost, "queues": queues, "messages": waiting})
		timer := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("waiting for %d messages of the removed hold queues %q to go home: %w; raise timeouts.update, or apply again later", waiting, queues, ctx.Err())
		case <-timer.C:
		}
	}
	return r.rt.remove(ctx, request, nil)
}

func longestDelay(arguments map[string]map[string]string, queues []string) time.Duration {
	longest := time.Duration(0)
	for _, name := range queues {
		args, err := topology.ParseCanonical(arguments[name])
		if err != nil {
			continue
		}
		if ms, ok := args[topology.ArgMessageTTL].(int64); ok {
			longest = max(longest, time.Duration(ms)*time.Millisecond)
		}
	}
	return longest
}

func queueNames(queues []topology.Queue) []string {
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = q.Name
	}
	return names
}

// bindingsOf are the bindings of objects that lead to any of queues.
func bindingsOf(objects topology.Objects, queues []string) []topology.Binding {
	var bindings []topology.Binding
	for _, b := range objects.Bindings {
		if slices.Contains(queues, b.Destination) {
			bindings = append(bindings, b)
		}
	}
	return bindings
}
