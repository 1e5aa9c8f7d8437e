package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// sqsPlanning is the plan of one queue on its way.
type sqsPlanning struct {
	rt   *runtime
	resp *resource.ModifyPlanResponse
	// plan is the queue's part of what is planned, and before that of the state; nil where there is none.
	plan, before *sqsPartModel
	// place is where the queue is, if placed; that may be told by the state alone, and then nobody can be asked.
	place  sqsPlace
	placed bool
	// known: what names depend on is, but for what the resource has of its own.
	known bool
	// replacing: this is the create of a replacement.
	replacing bool
	// resourceType is for the import block that a diagnostic shows.
	resourceType string
}

// beginSQSPlan computes anew from the configuration what all queues have in common, so that removing an attribute unsets
// it, and asks for a replacement where the queue becomes another one.
func (rt *runtime) beginSQSPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, config, plan, before *sqsPartModel, resourceType string) *sqsPlanning {
	p := &sqsPlanning{rt: rt, resp: resp, plan: plan, before: before, resourceType: resourceType, replacing: before == nil && isSecondPlan(ctx, req.Private)}
	passToDelete(ctx, resp.Private, plan.DeleteNonEmpty, &resp.Diagnostics)
	plan.Convention, plan.ConsumerGroup = config.Convention, config.ConsumerGroup
	plan.TagsAll = rt.mergedTags(plan.Tags)
	p.known = plan.resolve(rt, before)
	if before != nil {
		replaceChanged(resp, map[string][2]attr.Value{
			"convention": {before.Convention, plan.Convention}, "consumer_group": {before.ConsumerGroup, plan.ConsumerGroup}, "fifo": {before.FIFO, plan.FIFO},
		})
		if sameAccessPolicy(before.AccessPolicy, plan.AccessPolicy) {
			plan.AccessPolicy = before.AccessPolicy // it is written in another way
		}
	}
	p.findPlace(ctx)
	return p
}

// findPlace finds out where the queue is. While the provider's configuration is not known that is where the state has it, or
// every queue would be another one.
func (p *sqsPlanning) findPlace(ctx context.Context) {
	place, err := p.rt.sqsPlace(ctx)
	switch {
	case err == nil:
		p.place, p.placed = place, true
		if p.before != nil {
			addError(&p.resp.Diagnostics, "The queue is elsewhere", place.refuseElsewhere(p.before.ARN.ValueString()))
		}
	case !errors.Is(err, errSQSUnknown):
		p.rt.saySQS(&p.resp.Diagnostics, err)
	case p.before != nil:
		where, queue, err := topology.ParseSQSARN(p.before.ARN.ValueString())
		if endpoint, ok := strings.CutSuffix(p.before.URL.ValueString(), "/"+where.Account+"/"+queue); err == nil && ok {
			p.place, p.placed = sqsPlace{where: where, endpoint: endpoint}, true
		}
	}
}

// sameAccessPolicy reports whether two access policies mean the same.
func sameAccessPolicy(a, b types.String) bool {
	if a.IsNull() != b.IsNull() || a.IsUnknown() || b.IsUnknown() {
		return false
	}
	one, errOne := topology.CanonicalPolicy(a.ValueString())
	other, errOther := topology.CanonicalPolicy(b.ValueString())
	return errOne == nil && errOther == nil && one == other
}

// nameKnown sets what follows from the queue's name: name is null while that is not known.
func (p *sqsPlanning) nameKnown(name types.String, id func() string) {
	if !p.placed || name.IsNull() || name.IsUnknown() {
		p.plan.ID, p.plan.ARN, p.plan.URL = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
		return
	}
	address := p.place.address(name.ValueString())
	p.plan.ARN, p.plan.URL = types.StringValue(address.ARN), types.StringValue(address.URL)
	p.plan.ID = types.StringValue(id())
}

// settle plans the queue's attributes: nil are those that are not known yet. Where they are, all of them, it is held against
// the live account.
func (p *sqsPlanning) settle(ctx context.Context, name string, attributes topology.SQSAttributes) {
	if attributes == nil {
		p.plan.Attributes = types.MapUnknown(types.StringType)
		return
	}
	p.rt.noteSQS(p.plan.ARN.ValueString(), attributes)
	if p.plan.AccessPolicy.IsUnknown() {
		p.plan.Attributes = types.MapUnknown(types.StringType)
		return
	}
	managed := attributes.Managed()
	if p.before != nil {
		managed = attributes.ManagedOn(mapOf(ctx, p.before.Attributes))
	}
	p.plan.Attributes = stringMap(managed)
	if p.place.client == nil || p.before != nil || p.replacing || !p.rt.asksLive(false) || p.rt.wasSeen(sqsKey(p.plan.ARN.ValueString())) {
		return
	}
	live, err := p.place.client.Attributes(ctx, p.place.address(name))
	switch {
	case errors.Is(err, sqsadmin.ErrNotFound):
	case err != nil:
		p.rt.saySQSUnchecked(&p.resp.Diagnostics, err)
	case p.plan.AdoptExisting.ValueBool():
		p.resp.Diagnostics.AddWarning(fmt.Sprintf("Queue %q exists and is adopted", name),
			"adopt_existing is true: apply takes it over, with the messages and consumers that are there, and sets what differs.\n"+comparedSQS(attributes, live.Attributes))
	default:
		p.resp.Diagnostics.AddWarning(fmt.Sprintf("Queue %q exists already", name),
			fmt.Sprintf("Apply will refuse to create it, and change nothing.\n%s\n%s\nTo manage what exists from here on, import it:\n%s\nor set adopt_existing = true.",
				comparedSQS(attributes, live.Attributes), existsCause, importBlock(p.resourceType, p.plan.ID.ValueString())))
	}
}

// end writes the plan's warnings about a replacement.
func (p *sqsPlanning) end(ctx context.Context, name string) {
	if p.before != nil && len(p.resp.RequiresReplace) > 0 {
		p.rt.warnOfSQSMessages(ctx, &p.resp.Diagnostics, p.before, name, p.plan.DeleteNonEmpty.ValueBool(), "replaced")
	}
}

// comparedSQS says how a queue that is there differs from the one that is wanted.
func comparedSQS(want, live topology.SQSAttributes) string {
	differences := topology.DiffSQSAttributes(want, live)
	if len(differences) == 0 {
		return "Its attributes are those of the configuration."
	}
	lines := []string{"Its attributes differ from the configuration:"}
	for _, d := range differences {
		lines = append(lines, "  "+d.String())
	}
	return strings.Join(lines, "\n")
}

func importBlock(resourceType, id string) string {
	return createRequest{resourceType: resourceType, importID: id}.importBlock()
}

// sqsKey names a queue across the run.
func sqsKey(arn string) string { return objectKey("sqs", "", arn) }

// saySQSUnchecked says once what a plan could not look at, and why.
func (rt *runtime) saySQSUnchecked(diags *diag.Diagnostics, err error) {
	if rt.applying.Load() {
		return // said by whatever is written
	}
	rt.sqs.unchecked.Do(func() {
		diags.AddWarning("The plan was not checked against SQS", sentence(err)+
			" So this plan does not say, or not in full, whether its queues exist already and what they hold. Apply still refuses to take over what exists, and to delete what holds messages.")
	})
}

// warnOfSQSMessages says how many messages a destroy or a replacement meets, and what will happen.
func (rt *runtime) warnOfSQSMessages(ctx context.Context, diags *diag.Diagnostics, state *sqsPartModel, name string, deleteNonEmpty bool, fate string) {
	place, err := rt.sqsPlace(ctx)
	if err != nil || rt.applying.Load() || place.refuseElsewhere(state.ARN.ValueString()) != nil {
		return
	}
	live, err := place.client.Attributes(ctx, place.address(name))
	if err != nil || live.Depth().Total() == 0 {
		return
	}
	consequence := "Apply will refuse while they are there: drain or move them first, or set delete_non_empty = true (and apply it, before a destroy) to lose them."
	if deleteNonEmpty {
		consequence = "delete_non_empty is true: they will be lost."
	}
	diags.AddWarning(fmt.Sprintf("Queue %q holds messages", name), fmt.Sprintf("It holds %s. This is to be %s. %s", live.Depth(), fate, consequence))
}

// warnOfRedriving says which queues still redrive to one that is to be replaced. They may be led elsewhere before it is
// deleted, which a plan of one resource cannot know.
func (rt *runtime) warnOfRedriving(ctx context.Context, diags *diag.Diagnostics, name string, deleteNonEmpty bool) {
	place, err := rt.sqsPlace(ctx)
	if err != nil || deleteNonEmpty || rt.applying.Load() {
		return
	}
	by, err := place.client.PointingAt(ctx, place.address(name))
	if err != nil || len(by) == 0 {
		return
	}
	diags.AddWarning(fmt.Sprintf("Queue %q is to be replaced and is still redriven to", name),
		fmt.Sprintf("These queues have it as their dead-letter queue: %s. Apply will refuse to delete it while they do. %s", strings.Join(by, ", "), ledElsewhere))
}

// noteSQS notes what this run read or plans of a queue, for the topics that point at it.
func (rt *runtime) noteSQS(arn string, attributes topology.SQSAttributes) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.sqs.noted == nil {
		rt.sqs.noted = map[string]topology.SQSAttributes{}
	}
	rt.sqs.noted[arn] = attributes
}

// warnOfRetention says of a dead-letter queue that it is to keep messages for a shorter time than the live queue that redrives
// to it. The topic may be changed by the same apply, which the plan of the dead-letter queue, made before, cannot know.
func (p *sqsPlanning) warnOfRetention(ctx context.Context, source string, retention time.Duration) {
	if p.place.client == nil || !p.rt.asksLive(p.before != nil) {
		return
	}
	live, err := p.place.client.Attributes(ctx, p.place.address(source))
	if err != nil {
		return // there is none, or what cannot be asked is said elsewhere
	}
	target, _, _ := live.Attributes.RedriveTarget()
	if target != p.plan.ARN.ValueString() || live.Attributes.Retention() <= retention {
		return
	}
	p.resp.Diagnostics.AddAttributeWarning(path.Root("retention"), "A dead letter may be deleted as it arrives",
		fmt.Sprintf("Queue %q redrives here and keeps messages for %s, and this queue is to keep them for %s. SQS counts from when a message was first sent, also here: what is older is deleted silently as it arrives. "+
			"Raise retention to %s or more, or lower the topic's first.", source, topology.FormatDuration(live.Attributes.Retention()), topology.FormatDuration(retention), topology.FormatDuration(live.Attributes.Retention())))
}

// deadLetterRetention is how long a topic's dead-letter queue keeps a message, as this run plans it or as it is; 0 where that
// is not known. A queue that is not there is warned about.
func (p *sqsPlanning) deadLetterRetention(ctx context.Context, queue string) time.Duration {
	address := p.place.address(queue)
	p.rt.mu.Lock()
	noted, ok := p.rt.sqs.noted[address.ARN]
	p.rt.mu.Unlock()
	if ok {
		return noted.Retention()
	}
	if p.place.client == nil || !p.rt.asksLive(p.before != nil) {
		return 0
	}
	live, err := p.place.client.Attributes(ctx, address)
	switch {
	case errors.Is(err, sqsadmin.ErrNotFound):
		p.resp.Diagnostics.AddAttributeWarning(path.Root("dead_letter_queue"), fmt.Sprintf("Dead-letter queue %q does not exist", queue),
			fmt.Sprintf("There is no queue %q in region %s of account %s, and no resource that was planned before this one makes it: apply will refuse to have a queue redrive to it. "+
				"Take the name from the resource of the queue, so that it comes first.", queue, p.place.where.Region, p.place.where.Account))
	case err != nil:
		p.rt.saySQSUnchecked(&p.resp.Diagnostics, err)
	default:
		return live.Attributes.Retention()
	}
	return 0
}
