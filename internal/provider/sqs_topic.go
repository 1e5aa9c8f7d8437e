package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const sqsTopicTypeName = TypeName + "_sqs_topic"

type sqsTopicResource struct{ configured }

var (
	_ resource.ResourceWithConfigure   = (*sqsTopicResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*sqsTopicResource)(nil)
	_ resource.ResourceWithImportState = (*sqsTopicResource)(nil)
	_ resource.ResourceWithIdentity    = (*sqsTopicResource)(nil)
)

func newSQSTopicResource() resource.Resource { return &sqsTopicResource{} }

func (*sqsTopicResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = sqsTopicTypeName
}

func (r *sqsTopicResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.configure(req.ProviderData, &resp.Diagnostics)
}

func (r *sqsTopicResource) importID(m *sqsTopicModel) string { return sqsID(m.ARN, m.params()) }

func (r *sqsTopicResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	config, plan, state := planModels[sqsTopicModel](ctx, req, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if plan == nil {
		r.rt.warnOfSQSMessages(ctx, &resp.Diagnostics, &state.sqsPartModel, state.workQueue().ValueString(), state.DeleteNonEmpty.ValueBool(), "destroyed")
		return
	}
	var before *sqsPartModel
	if state != nil {
		before = &state.sqsPartModel
		replaceChanged(resp, map[string][2]attr.Value{"name": {state.Name, plan.Name}})
	}
	p := r.rt.beginSQSPlan(ctx, req, resp, &config.sqsPartModel, &plan.sqsPartModel, before, sqsTopicTypeName)
	spec, known := plan.spec(ctx, p.place, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	name := plan.workQueue()
	p.nameKnown(name, func() string { return r.importID(plan) })
	var attributes topology.SQSAttributes
	plan.Manifest = types.StringUnknown()
	switch {
	case !p.known || !known:
	case !p.placed:
		if err := spec.Validate(); err != nil {
			addError(&resp.Diagnostics, "Invalid topic", err)
			return
		}
	default:
		if spec.DeadLetterQueue != "" && spec.Validate() == nil {
			spec.DeadLetterRetention = p.deadLetterRetention(ctx, spec.DeadLetterQueue)
		}
		if attributes = r.fill(plan, spec, &resp.Diagnostics); attributes == nil {
			return
		}
		plan.warn(ctx, spec, &resp.Diagnostics)
	}
	p.settle(ctx, name.ValueString(), attributes)
	if state != nil {
		p.end(ctx, state.workQueue().ValueString())
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// fill computes the queue's attributes and the manifest; nil where they cannot be had.
func (r *sqsTopicResource) fill(m *sqsTopicModel, spec topology.SQSSpec, diags *diag.Diagnostics) topology.SQSAttributes {
	attributes, err := spec.Attributes()
	if err != nil {
		addError(diags, "Invalid topic", err)
		return nil
	}
	manifest, err := spec.Manifest()
	if err != nil {
		addError(diags, "Invalid topic", err)
		return nil
	}
	m.Manifest = types.StringValue(string(manifest.Encode()))
	return attributes
}

// warn adds the topic's standing warnings that are not acknowledged.
func (m *sqsTopicModel) warn(ctx context.Context, spec topology.SQSSpec, diags *diag.Diagnostics) {
	acknowledged := stringsOf(ctx, m.AcknowledgeWarnings)
	for _, w := range spec.Warnings() {
		if !slices.Contains(acknowledged, w.ID) {
			diags.AddWarning(w.Summary, fmt.Sprintf("%s If it is meant, say so with acknowledge_warnings = [%q].", w.Detail, w.ID))
		}
	}
	if slices.Contains(acknowledged, warningForeignDeadEnd) {
		return
	}
	for _, end := range []struct{ attribute, name string }{{"dead_letter_queue", spec.DeadLetterQueue}, {"parked_queue", spec.ParkedQueue}} {
		if other := spec.ForeignDeadEnd(end.name); other != "" {
			diags.AddAttributeWarning(path.Root(end.attribute), "The queue looks like another topic's",
				fmt.Sprintf("Topic %q sets its messages aside in %q, which looks like topic %q's. If that is meant, say so with acknowledge_warnings = [%q]. "+
					"A dead-letter queue must then also name this topic's queue as its source_queue.", spec.Topic, end.name, other, warningForeignDeadEnd))
		}
	}
}

// finish computes, with everything known, what a plan may have left unknown.
func (r *sqsTopicResource) finish(ctx context.Context, plan *sqsTopicModel, diags *diag.Diagnostics) (queue sqsadmin.Queue, place sqsPlace, ok bool) {
	place, err := r.rt.finishSQS(ctx, &plan.sqsPartModel)
	if addError(diags, "Could not apply the topic", err); err != nil {
		return queue, place, false
	}
	spec, known := plan.spec(ctx, place, diags)
	if !known {
		return queue, place, false
	}
	attributes := r.fill(plan, spec, diags)
	if attributes == nil {
		return queue, place, false
	}
	queue = plan.finished(ctx, place.address(spec.WorkQueueName()), attributes)
	plan.ID = types.StringValue(r.importID(plan))
	err = awaitSQSDeadEnds(ctx, place, spec)
	addError(diags, "Could not apply the topic", err)
	return queue, place, err == nil
}

// awaitSQSDeadEnds refuses a topic whose dead-letter or parked queue is not there. It waits for one that the same apply makes
// at the same time, because the configuration spells its name instead of referring to it, or gives a longer retention: the
// plan may have seen neither.
func awaitSQSDeadEnds(ctx context.Context, place sqsPlace, spec topology.SQSSpec) error {
	for _, queue := range []string{spec.DeadLetterQueue, spec.ParkedQueue} {
		if queue == "" {
			continue
		}
		for deadline := time.Now().Add(routeWait); ; {
			live, err := place.client.Attributes(ctx, place.address(queue))
			if err == nil && queue == spec.DeadLetterQueue {
				spec.DeadLetterRetention = live.Attributes.Retention()
				err = spec.Validate()
			} else if err != nil && !errors.Is(err, sqsadmin.ErrNotFound) {
				return err
			}
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				if !errors.Is(err, sqsadmin.ErrNotFound) {
					return err
				}
				return fmt.Errorf("queue %q does not exist in region %s of account %s, so that what topic %q sets aside there would be lost; nothing was changed. "+
					"Take the name from the resource of the queue, so that it comes first", queue, place.where.Region, place.where.Account, spec.Topic)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(250 * time.Millisecond):
			}
		}
	}
	return nil
}

func (r *sqsTopicResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer sqsTopicForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	var plan sqsTopicModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	queue, place, ok := r.finish(ctx, &plan, &resp.Diagnostics)
	if !ok {
		return
	}
	made, err := r.rt.createSQS(ctx, place, &plan.sqsPartModel, queue, sqsTopicTypeName)
	addError(&resp.Diagnostics, "Could not create the topic", err)
	if made {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

func (r *sqsTopicResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	defer sqsTopicForm.identify(ctx, &req.State, resp.Identity, &resp.Diagnostics)
	var state sqsTopicModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	imported := state.Attributes.IsNull()
	live, place, found, ok := r.rt.readSQS(ctx, &state.sqsPartModel, state.workQueue().ValueString(), &resp.Diagnostics)
	if !ok {
		return
	}
	if !found {
		resp.State.RemoveResource(ctx)
		return
	}
	if imported {
		state.recognise(live.Attributes)
		state.recogniseTags(r.rt, live.Tags)
		r.recogniseParked(ctx, place, &state)
		if spec, known := state.spec(ctx, place, &resp.Diagnostics); known && spec.Validate() == nil {
			r.fill(&state, spec, &resp.Diagnostics)
		}
	}
	state.ID = types.StringValue(r.importID(&state))
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// recogniseParked finds the parked queue of a topic that is being imported, where there is one of the name that the
// convention gives it.
func (r *sqsTopicResource) recogniseParked(ctx context.Context, place sqsPlace, state *sqsTopicModel) {
	parked := state.identityOf(state.Name).ParkedQueueName()
	if parked == "" {
		return
	}
	if _, err := place.client.Attributes(ctx, place.address(parked)); err == nil {
		state.ParkedQueue = types.StringValue(parked)
	}
}

func (r *sqsTopicResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer sqsTopicForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	var plan sqsTopicModel
	if resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...); resp.Diagnostics.HasError() {
		return
	}
	queue, place, ok := r.finish(ctx, &plan, &resp.Diagnostics)
	if !ok {
		return
	}
	err := r.rt.updateSQS(ctx, place, &plan.sqsPartModel, queue)
	if addError(&resp.Diagnostics, "Could not update the topic", err); err == nil {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

func (r *sqsTopicResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state sqsTopicModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	err := r.rt.deleteSQS(ctx, &state.sqsPartModel, state.workQueue().ValueString(), deleteAnyway(ctx, req.Private, state.DeleteNonEmpty))
	if err != nil {
		addSQSRefusal(&resp.Diagnostics, "Could not delete the topic", err)
		clearPassed(ctx, resp.Private, &resp.Diagnostics)
	}
}

func (r *sqsTopicResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	defer sqsTopicForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	m := sqsTopicModel{
		sqsPartModel: nullSQSPart(), Retry: types.ObjectNull(sqsRetryAttrTypes), AllowMessageLoss: types.BoolValue(false), AcknowledgeWarnings: types.SetNull(types.StringType),
	}
	topic, err := m.importSQS(ctx, r.rt, sqsTopicForm.importText(ctx, req, &resp.Diagnostics), topology.RoleWork)
	if addError(&resp.Diagnostics, "Invalid import id", err); err != nil {
		return
	}
	m.Name = topic
	m.ID = types.StringValue(r.importID(&m))
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
