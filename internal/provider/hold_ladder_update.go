package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	// missing are made; replaced differ in arguments and are deleted, then made again; removed are waited out, which takes
	// removedDelay, and deleted.
	missing, replaced []topology.Queue
	// kept stay, and get the policies that they are to have.
	kept         []topology.Queue
	removed      []string
	removedDelay time.Duration
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
		case len(queueDifferences(q, have, ignore)) > 0:
			change.replaced = append(change.replaced, q)
		default:
			change.kept = append(change.kept, q)
		}
	}
	for _, name := range ownedQueues(state) {
		if _, seen := live[name]; seen && !kept[name] {
			change.removed = append(change.removed, name)
		}
	}
	change.removedDelay = longestDelay(live, argumentsByQueue(context.Background(), state.Policies), change.removed)
	return change
}

func (r *holdLadderResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer ladderForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
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
	limit, diags := plan.Timeouts.Update(ctx, defaultLadderTimeout+change.removedDelay)
	if resp.Diagnostics.Append(diags...); diags.HasError() {
		return
	}
	old, err := r.objects(ctx, &state, nil)
	if addError(&resp.Diagnostics, "Invalid hold ladder", err); err != nil {
		return
	}
	request := r.createRequest(ctx, &plan, objects, &resp.Diagnostics)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	if err := r.apply(ctx, admin, request, old, change, plan.DeleteNonEmpty.ValueBool()); err != nil {
		addError(&resp.Diagnostics, "Could not update the hold ladder", err)
		// What is owned by now is kept in state, so that the next apply goes on from here.
		afterwards, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		owned := append(ownedQueues(&state), queueNames(objects.Queues)...)
		if live, err := readArguments(afterwards, admin, plan.VHost.ValueString(), owned); err == nil {
			// A queue that was there before this resource made it is not its own.
			for _, q := range change.missing {
				if !r.rt.wasCreated(objectKey("queue", plan.VHost.ValueString(), q.Name)) {
					delete(live, q.Name)
				}
			}
			state.Arguments = argumentsMap(live)
			if policies, err := admin.Policies(afterwards, plan.VHost.ValueString()); err == nil {
				state.Policies = state.policiesOf(ownPolicies(policies, slices.Collect(maps.Keys(live))))
			}
			resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
		}
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// apply carries out a change. Everything that may refuse is asked before anything is touched.
func (r *holdLadderResource) apply(ctx context.Context, admin *rabbitmqadmin.Client, request createRequest, old topology.Objects, change ladderChange, deleteNonEmpty bool) error {
	request.objects.Queues = change.missing
	asked := creation{createRequest: request, rt: r.rt, admin: admin}
	if err := asked.look(ctx); err != nil {
		return err
	}
	if len(change.replaced) > 0 {
		names := queueNames(change.replaced)
		err := r.rt.remove(ctx, rabbitmqadmin.SafeDelete{
			VHost: request.vhost, Queues: names, OwnBindings: ladderRoutes(old, names), DeleteNonEmpty: deleteNonEmpty,
		}, nil)
		if err != nil {
			return err
		}
		request.objects.Queues = slices.Concat(change.missing, change.replaced)
	}
	if _, err := r.rt.create(ctx, request); err != nil {
		return err
	}
	if err := r.rt.repairPolicies(ctx, request.vhost, request.merge, change.kept); err != nil {
		return err
	}
	if len(change.removed) == 0 {
		return nil
	}
	removal := rabbitmqadmin.SafeDelete{VHost: request.vhost, Queues: change.removed, OwnBindings: ladderRoutes(old, change.removed), DeleteNonEmpty: deleteNonEmpty}
	if deleteNonEmpty {
		return r.rt.remove(ctx, removal, nil)
	}
	return r.waitOut(ctx, admin, removal, change.removedDelay)
}

// waitOut deletes the hold queues of removed tiers once their messages are home: nothing is routed to them any more,
// and then it takes their delay. Where that takes too long the routes are given back and nothing is deleted.
func (r *holdLadderResource) waitOut(ctx context.Context, admin *rabbitmqadmin.Client, removal rabbitmqadmin.SafeDelete, delay time.Duration) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, restoreRoutes(ctx, admin, removal))
		}
	}()
	for _, b := range removal.OwnBindings {
		if err := admin.Unbind(ctx, removal.VHost, b); err != nil {
			return err
		}
	}
	deadline := time.Now().Add(delay + waitOutSlack)
	var holding *rabbitmqadmin.NotEmptyError
	for {
		err := r.rt.remove(ctx, removal, nil)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			what := fmt.Sprintf("waiting for the messages of the removed hold queues %q in vhost %q to go home", removal.Queues, removal.VHost)
			if holding != nil {
				what += fmt.Sprintf(" (when last looked at: %s)", listDepths(holding.Depths))
			}
			return fmt.Errorf("%s: %w; raise timeouts.update, or apply again later", what, ctx.Err())
		case !errors.As(err, &holding):
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("the removed hold queues are not empty after their delay of %s and %s more: %w; "+
				"look whether an application still publishes to them or their way home is blocked, then apply again",
				topology.FormatDuration(delay), topology.FormatDuration(waitOutSlack), err)
		}
		tflog.Info(ctx, "waiting for the messages of removed hold queues to go home", map[string]any{"vhost": removal.VHost, "queues": removal.Queues})
		timer := time.NewTimer(time.Second)
		select {
		case <-ctx.Done():
			timer.Stop() // the next try says so
		case <-timer.C:
		}
	}
}

// restoreRoutes gives hold queues the bindings back that lead to them.
func restoreRoutes(ctx context.Context, admin *rabbitmqadmin.Client, removal rabbitmqadmin.SafeDelete) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	var failed error
	for _, b := range removal.OwnBindings {
		// A queue that was deleted needs its binding no more.
		if err := admin.Bind(ctx, removal.VHost, b); err != nil && !errors.Is(err, rabbitmqadmin.ErrNotFound) {
			failed = errors.Join(failed, fmt.Errorf("the binding of hold queue %q was not given back: %w", b.Destination, err))
		}
	}
	return failed
}

// longestDelay is the longest that the arguments or the policies of queues have messages wait.
func longestDelay(arguments, policies map[string]map[string]string, queues []string) time.Duration {
	longest := time.Duration(0)
	for _, name := range queues {
		args, err := topology.ParseCanonical(arguments[name])
		if err != nil {
			continue
		}
		policy, err := topology.ParsePolicy(policies[name])
		if err != nil {
			continue
		}
		if ms, ok := policy.Over(args)[topology.ArgMessageTTL].(int64); ok {
			longest = max(longest, time.Duration(ms)*time.Millisecond)
		}
	}
	return longest
}

// ladderRoutes are the bindings that lead to hold queues, whether or not their tiers are among objects.
func ladderRoutes(objects topology.Objects, queues []string) []topology.Binding {
	var routes []topology.Binding
	var sources []string
	for _, b := range objects.Bindings {
		if slices.Contains(sources, b.Source) {
			continue
		}
		sources = append(sources, b.Source)
		for _, queue := range queues {
			routes = append(routes, topology.Binding{Source: b.Source, Destination: queue, DestinationType: topology.BindingToQueue, RoutingKey: queue})
		}
	}
	return routes
}
