package provider

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// refuseDelaysTwice refuses delays beside a ladder, as far as both are known. Those that the ladder has are what the command
// line writes down of a topic that is imported.
func (m *topicModel) refuseDelaysTwice(diags *diag.Diagnostics) {
	if m.HoldQueues.IsNull() || m.HoldQueues.IsUnknown() || m.Retry.IsNull() || m.Retry.IsUnknown() {
		return
	}
	if delays := m.Retry.Attributes()["delays"]; !delays.IsNull() && !m.delaysOf().Equal(delays) {
		diags.AddAttributeError(path.Root("retry").AtName("delays"), "Delays are given twice",
			"The topic has hold_queues, and their delays are the topic's: leave retry.delays out, or hold_queues.")
	}
}

func (r *topicResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	config, plan, state := planModels[topicModel](ctx, req, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan == nil {
		r.rt.warnOfMessages(ctx, &resp.Diagnostics, state.VHost.ValueString(), topicQueues(ctx, state), state.DeleteNonEmpty.ValueBool(), "destroyed")
		return
	}
	// Everything computed is computed anew from the configuration, so that removing an attribute unsets it.
	plan.VHost, plan.Convention, plan.ConsumerGroup = config.VHost, config.Convention, config.ConsumerGroup
	plan.takeConfigured(config)
	plan.Migrating = types.BoolNull()
	plan.refuseDelaysTwice(&resp.Diagnostics)
	var before *partModel
	replacing := state == nil && isSecondPlan(ctx, req.Private)
	if state != nil {
		before = &state.partModel
		replaceChanged(resp, map[string][2]attr.Value{"name": {state.Name, plan.Name}, "sequence_shards": {state.SequenceShards, plan.SequenceShards}})
	}
	plan.planVia(&config.partModel, before, plan.defaultVia(ctx), resp)
	known := r.rt.planIdentity(ctx, &plan.partModel, before, resp)
	spec, specKnown := plan.spec(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if !known || !specKnown || !allKnown([]attr.Value{plan.Name, plan.SettingsVia, plan.MergePolicy}) {
		r.planArguments(ctx, plan, state, resp)
		if resp.Diagnostics.HasError() {
			return
		}
		plan.unknown(ctx)
	} else {
		objects, ok := r.fill(ctx, plan, spec, &resp.Diagnostics)
		if !ok {
			return
		}
		if admin, err := r.rt.asker(); err == nil && !check(ctx, admin, spec, false, &resp.Diagnostics) {
			return
		}
		plan.warn(ctx, spec, &resp.Diagnostics)
		acknowledged := stringsOf(ctx, plan.AcknowledgeWarnings)
		objects, unmerged := r.rt.withPolicies(ctx, &plan.partModel, acknowledged, objects, &resp.Diagnostics)
		if !r.rt.checkPlan(ctx, planned{
			vhost: plan.VHost.ValueString(), convention: spec.Convention, objects: objects, spec: &spec, exists: state != nil, replacing: replacing,
			adopt: plan.AdoptExisting.ValueBool(), ignore: stringsOf(ctx, plan.IgnoreArguments), acknowledged: acknowledged, merge: plan.MergePolicy.ValueBool(),
			resourceType: topicTypeName, importID: plan.ID.ValueString(),
		}, &resp.Diagnostics) {
			return
		}
		r.planWorkQueues(ctx, plan, state, objects.Queues, unmerged, resp)
		r.rt.planMigration(ctx, plan.migration(ctx, state, objects), resp)
	}
	if state != nil && len(resp.RequiresReplace) > 0 {
		r.rt.warnOfMessages(ctx, &resp.Diagnostics, state.VHost.ValueString(), topicQueues(ctx, state), plan.DeleteNonEmpty.ValueBool(), "replaced")
		guardImport(ctx, state.VHost.ValueString(), state.Name.ValueString(), plan.AdoptExisting, req, resp)
	}
	if state != nil && len(resp.RequiresReplace) == 0 {
		plan.warnOfKeptBindings(ctx, state, req, &resp.Diagnostics)
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	if plan.mergesLater(ctx, req, resp) {
		plan.policiesUnknown()
		resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
	}
}

// planWorkQueues plans the arguments and the policies of the work queue or of the shards, compared with what the state has
// of them. unmerged is why it is not known what the policies are to be; nil where it is.
func (r *topicResource) planWorkQueues(ctx context.Context, plan, state *topicModel, queues []topology.Queue, unmerged error, resp *resource.ModifyPlanResponse) {
	compared := state != nil && len(resp.RequiresReplace) == 0
	have, haveShards, havePolicies := types.MapNull(types.StringType), map[string]map[string]string{}, map[string]map[string]string(nil)
	if compared {
		have, haveShards, havePolicies = state.Arguments, state.shown(ctx), state.shownPolicies(ctx)
	}
	if plan.SequenceShards.ValueInt64() == 0 {
		plan.Arguments, plan.ShardArguments = planQueue(ctx, queues[0], have, plan.IgnoreArguments, plan.migrates(), resp), types.MapNull(queueArgumentsType)
	} else {
		plan.Arguments, plan.ShardArguments = stringMap(nil), planShards(ctx, queues, haveShards, plan.IgnoreArguments, resp)
	}
	if unmerged != nil {
		plan.policiesUnknown()
		r.rt.sayUnchecked(&resp.Diagnostics, unmerged)
		return
	}
	plan.showPolicies(r.rt.planPolicies(ctx, &plan.partModel, queues, havePolicies, &resp.Diagnostics))
}

// policiesUnknown leaves open what the policies of the queues are.
func (m *topicModel) policiesUnknown() {
	m.Policy, m.ShardPolicies = m.policyUnknown(types.StringType), m.policyUnknown(queueArgumentsType)
	switch {
	case m.SequenceShards.IsUnknown():
	case m.SequenceShards.ValueInt64() > 0:
		m.Policy = types.MapNull(types.StringType)
	default:
		m.ShardPolicies = types.MapNull(queueArgumentsType)
	}
}

// planArguments plans the arguments and policies of the work queue or of the shards while something else of the topic is
// not known yet. They are unknown only where they depend on it, and then an existing queue is replaced, unless that is
// the policy's, or migrated.
func (r *topicResource) planArguments(ctx context.Context, plan, state *topicModel, resp *resource.ModifyPlanResponse) {
	plan.Arguments, plan.ShardArguments = types.MapUnknown(types.StringType), types.MapUnknown(queueArgumentsType)
	plan.policiesUnknown()
	spec, known := plan.queueSpec(ctx, &resp.Diagnostics)
	if !known || !allKnown([]attr.Value{plan.SettingsVia, plan.MergePolicy}) {
		if state != nil {
			depends := map[string]attr.Value{
				"extra_arguments": plan.ExtraArguments, "queue_type": plan.QueueType,
				"max_priority": plan.MaxPriority, "sequenced": plan.Sequenced, "sequence_shards": plan.SequenceShards,
			}
			if !plan.viaPolicy() {
				depends["dead_letter_queue"], depends["delivery_limit"] = plan.DeadLetterQueue, plan.DeliveryLimit
				if plan.retryDecides(ctx) {
					depends["retry"] = types.ObjectUnknown(retryAttrTypes)
				}
			}
			if state.SequenceShards.IsNull() {
				plan.planUnknown(topicQueues(ctx, state), depends, resp)
			} else {
				replaceUnknown(resp, depends) // shards are never migrated
			}
		}
		return
	}
	objects, err := spec.BuildWorkQueue()
	if err != nil {
		addError(&resp.Diagnostics, "Invalid topic", err)
		return
	}
	objects, unmerged := r.rt.withPolicies(ctx, &plan.partModel, stringsOf(ctx, plan.AcknowledgeWarnings), objects, &resp.Diagnostics)
	r.planWorkQueues(ctx, plan, state, objects.Queues, unmerged, resp)
	r.rt.planMigration(ctx, plan.migration(ctx, state, objects), resp)
}

// warn adds the topic's standing warnings that are not acknowledged.
func (m *topicModel) warn(ctx context.Context, spec topology.Spec, diags *diag.Diagnostics) {
	acknowledged := stringsOf(ctx, m.AcknowledgeWarnings)
	if spec.ParkedQueue != "" && m.Park.ValueString() == string(topology.ParkReject) && !slices.Contains(acknowledged, warningUnusedParkedQueue) {
		diags.AddAttributeWarning(path.Root("parked_queue"), "Nothing is parked",
			fmt.Sprintf("Topic %q has the parked queue %q, and under park = %q a consumer dead-letters what it cannot read. Set park = %q, which takes write permission on the route to it, "+
				"or leave parked_queue out. If other applications publish to it, say so with acknowledge_warnings = [%q].",
				spec.Topic, spec.ParkedQueue, topology.ParkReject, topology.ParkPublish, warningUnusedParkedQueue))
	}
	if holdFrom := cmp.Or(spec.Retry.HoldFrom, topology.DefaultHoldFrom); spec.Retry.Strategy == topology.Hybrid && len(spec.Retry.Delays) > 0 &&
		slices.Max(spec.Retry.Delays) < holdFrom && !slices.Contains(acknowledged, warningUnusedHoldQueues) {
		diags.AddAttributeWarning(path.Root("retry").AtName("hold_from"), "No retry waits in a hold queue",
			fmt.Sprintf("Topic %q has the strategy %q and hold_from %s, and the longest of its delays is %s: every retry waits in the consumer, as under %q. Lower hold_from to the shortest delay "+
				"that is to wait in a hold queue. If the hold queues are for longer delays that handlers ask for, say so with acknowledge_warnings = [%q].",
				spec.Topic, topology.Hybrid, topology.FormatDuration(holdFrom), topology.FormatDuration(slices.Max(spec.Retry.Delays)), topology.InPlace, warningUnusedHoldQueues))
	}
	if m.QueueType.ValueString() == string(topology.Classic) && spec.Retry.MaxRetries > 0 && !slices.Contains(acknowledged, warningClassicInPlace) &&
		(spec.Retry.Strategy == "" || spec.Retry.Strategy == topology.InPlace) {
		diags.AddAttributeWarning(path.Root("retry").AtName("strategy"), "Retries in place on a classic queue",
			fmt.Sprintf("Topic %q waits its retries in the consumer, and its work queue is a classic queue, which counts no deliveries: how often a message was retried is known as long as its delivery lasts. "+
				"When the consumer or its connection goes, the message starts again with all of its %d retries, and one that kills its consumer comes back for ever. "+
				"Use the strategy %q with hold queues, whose copies carry the count, or a convention with quorum queues. If it is accepted, say so with acknowledge_warnings = [%q].",
				spec.Topic, spec.Retry.MaxRetries, topology.Republish, warningClassicInPlace))
	}
	if slices.Contains(acknowledged, warningForeignDeadEnd) {
		return
	}
	for _, end := range []struct{ attribute, name string }{
		{"dead_letter_queue", spec.DeadLetterQueue}, {"parked_queue", spec.ParkedQueue},
	} {
		if other := spec.ForeignDeadEnd(end.name); other != "" {
			diags.AddAttributeWarning(path.Root(end.attribute), "The queue looks like another topic's",
				fmt.Sprintf("Topic %q sets its messages aside in %q, which looks like topic %q's. If that is meant, say so with acknowledge_warnings = [%q]. "+
					"The queue must then also be reachable through this topic's own route.", spec.Topic, end.name, other, warningForeignDeadEnd))
		}
	}
}
