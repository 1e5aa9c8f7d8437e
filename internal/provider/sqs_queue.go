package provider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// finishSQS computes, with everything known, what a plan may have left unknown of what all queues have in common, and says
// where the queue is. Whoever calls it is about to write.
func (rt *runtime) finishSQS(ctx context.Context, plan *sqsPartModel) (sqsPlace, error) {
	rt.applying.Store(true)
	plan.TagsAll = rt.mergedTags(plan.Tags)
	if !plan.settle(rt) || plan.TagsAll.IsUnknown() {
		return sqsPlace{}, errSQSUnknown
	}
	place, err := rt.sqsPlace(ctx)
	if err != nil {
		return place, fmt.Errorf("SQS cannot be used: %w", err)
	}
	return place, nil
}

// finished sets the computed attributes that follow from the configuration alone, and returns the queue as it is to be.
func (m *sqsPartModel) finished(ctx context.Context, address sqsadmin.Address, attributes topology.SQSAttributes) sqsadmin.Queue {
	m.ARN, m.URL = types.StringValue(address.ARN), types.StringValue(address.URL)
	if m.Attributes.IsUnknown() {
		m.Attributes = stringMap(attributes.Managed())
	}
	return sqsadmin.Queue{Address: address, Attributes: attributes, Tags: mapOf(ctx, m.TagsAll)}
}

// createSQS makes a queue, or takes over the one that is there. made says that it is the resource's now, whatever else failed.
func (rt *runtime) createSQS(ctx context.Context, place sqsPlace, m *sqsPartModel, queue sqsadmin.Queue, resourceType string) (made bool, err error) {
	ctx, cancel, err := withTimeout(ctx, m.Timeouts.Create)
	if err != nil {
		return false, err
	}
	defer cancel()
	key := sqsKey(queue.ARN)
	defer rt.locks.lock(key)()
	// SQS does not tell whether it made a queue or found one that has the same attributes.
	missing, live, err := place.client.Missing(ctx, queue.Address)
	switch {
	case missing:
		made, err = place.client.Create(ctx, queue)
		if made {
			rt.noteCreated(key)
		}
		return made, err
	case err != nil:
		return false, err
	case m.AdoptExisting.ValueBool() && !rt.wasCreated(key):
		if err = place.client.Update(ctx, queue); err == nil {
			rt.noteCreated(key) // it has an owner now
		}
		return err == nil, err
	case m.AdoptExisting.ValueBool():
		return false, fmt.Errorf("queue %q was made or adopted by this very apply for another resource, so it was not adopted and nothing was changed: two resources have one name, "+
			"and would set each other's settings back. Give one of them another name, or remove it", queue.Name)
	}
	cause := existsCause
	if rt.wasCreated(key) {
		cause = "This very apply made it for another resource: two resources have one name. Give one of them another name, or remove it."
	}
	return false, fmt.Errorf("queue %q exists already, so it was not created and nothing was changed.\n%s\n%s\n"+
		"To manage it from here on, import it:\n%s\nor set adopt_existing = true", queue.Name, comparedSQS(queue.Attributes, live.Attributes), cause, importBlock(resourceType, m.ID.ValueString()))
}

// updateSQS sets what differs.
func (rt *runtime) updateSQS(ctx context.Context, place sqsPlace, m *sqsPartModel, queue sqsadmin.Queue) error {
	if err := place.refuseElsewhere(m.ARN.ValueString()); err != nil {
		return err
	}
	ctx, cancel, err := withTimeout(ctx, m.Timeouts.Update)
	if err != nil {
		return err
	}
	defer cancel()
	defer rt.locks.lock(sqsKey(queue.ARN))()
	return place.client.Update(ctx, queue)
}

// deleteSQS deletes the queue that the state has.
func (rt *runtime) deleteSQS(ctx context.Context, state *sqsPartModel, name string, deleteNonEmpty bool) error {
	rt.applying.Store(true)
	place, err := rt.sqsPlace(ctx)
	if err != nil {
		return fmt.Errorf("SQS cannot be used: %w", err)
	}
	if err := place.refuseElsewhere(state.ARN.ValueString()); err != nil {
		return err
	}
	ctx, cancel, err := withTimeout(ctx, state.Timeouts.Delete)
	if err != nil {
		return err
	}
	defer cancel()
	address := place.address(name)
	defer rt.locks.lock(sqsKey(address.ARN))()
	if err := place.client.Delete(ctx, sqsadmin.Deletion{Address: address, DeleteNonEmpty: deleteNonEmpty}); err != nil {
		return err
	}
	rt.forgetCreated(sqsKey(address.ARN))
	return nil
}

// withTimeout bounds an operation by what timeouts says of it.
func withTimeout(ctx context.Context, of func(context.Context, time.Duration) (time.Duration, diag.Diagnostics)) (context.Context, context.CancelFunc, error) {
	limit, diags := of(ctx, sqsTimeout)
	if diags.HasError() {
		return nil, nil, errors.New(diags[0].Detail())
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, cancel, nil
}

// readSQS reads the queue that the state has and shows it there. found is false where it is gone, ok where nothing was read.
func (rt *runtime) readSQS(ctx context.Context, m *sqsPartModel, name string, diags *diag.Diagnostics) (live sqsadmin.LiveQueue, place sqsPlace, found, ok bool) {
	place, ok = rt.sqsReader(ctx, diags)
	if !ok {
		return live, place, false, false
	}
	summary := fmt.Sprintf("Could not read queue %q", name)
	if err := place.refuseElsewhere(m.ARN.ValueString()); err != nil {
		addError(diags, summary, err)
		return live, place, false, false
	}
	address := place.address(name)
	rt.see(sqsKey(address.ARN))
	live, err := place.client.Queue(ctx, address)
	if errors.Is(err, sqsadmin.ErrNotFound) {
		return live, place, false, true
	}
	if err == nil && live.Attributes.ARN() == "" {
		err = fmt.Errorf("the answer has no ARN of queue %q, and is not one of SQS: is sqs.endpoint the address of SQS, and no proxy in between?", name)
	}
	if err == nil && live.Attributes.ARN() != address.ARN {
		err = fmt.Errorf("queue %q is %s by its own account and %s by the provider's configuration; set sqs.account_id and sqs.region to what it is", name, live.Attributes.ARN(), address.ARN)
	}
	if err != nil {
		addError(diags, summary, err)
		return live, place, false, false
	}
	rt.noteSQS(address.ARN, live.Attributes)
	m.ARN, m.URL = types.StringValue(address.ARN), types.StringValue(address.URL)
	m.Attributes, m.TagsAll = stringMap(live.Attributes.Managed()), stringMap(live.Tags)
	return live, place, true, true
}

// ledElsewhere is how a dead-letter queue is replaced under its topics.
const ledElsewhere = "Where the queues that redrive to it are topics of this configuration, lifecycle { create_before_destroy = true } in this resource makes the new queue first, has the topics redrive to it, " +
	"and deletes the old one after that, if the new one has another name."

// addSQSRefusal adds the error of a Delete, and what a refusal of it takes.
func addSQSRefusal(diags *diag.Diagnostics, summary string, err error) {
	var notEmpty *sqsadmin.NotEmptyError
	var pointedAt *sqsadmin.PointedAtError
	if errors.As(err, &pointedAt) {
		err = fmt.Errorf("%w.\n%s", err, ledElsewhere)
	}
	if errors.As(err, &notEmpty) || errors.As(err, &pointedAt) {
		err = fmt.Errorf("%w.\ndelete_non_empty = true lets it through, with the loss: in the same apply where the resource is replaced; "+
			"where it is destroyed, after an apply of its own (terraform apply -target=ADDRESS, then destroy again)", err)
	}
	addError(diags, summary, err)
}
