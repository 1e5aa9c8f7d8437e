package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const topicTypeName = TypeName + "_rabbitmq_topic"

// The warnings that a topic's acknowledge_warnings accepts.
const (
	// warningForeignDeadEnd: the topic is meant to share another topic's dead-letter or parked queue.
	warningForeignDeadEnd = "foreign_dead_end"
	// warningClassicInPlace: retries that start anew with every lost connection are accepted.
	warningClassicInPlace = "in_place_on_classic"
	// warningUnusedHoldQueues: the hold queues are for delays that handlers ask for.
	warningUnusedHoldQueues = "unused_hold_queues"
	// warningUnusedParkedQueue: the parked queue is for applications that publish what they park; consumers in place do not.
	warningUnusedParkedQueue = "unused_parked_queue"
)

type topicResource struct{ configured }

var (
	_ resource.ResourceWithConfigure   = (*topicResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*topicResource)(nil)
	_ resource.ResourceWithImportState = (*topicResource)(nil)

	_ resource.ResourceWithValidateConfig = (*topicResource)(nil)
)

func newTopicResource() resource.Resource { return &topicResource{} }

func (*topicResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = topicTypeName
}

func (r *topicResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.configure(req.ProviderData, &resp.Diagnostics)
}

// ValidateConfig refuses what is wrong whatever the provider's defaults are.
func (r *topicResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config topicModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &config)...); !resp.Diagnostics.HasError() {
		config.refuseDelaysTwice(&resp.Diagnostics)
	}
}

// topicQueues are the queues whose messages a destroyed topic strands: its own and its ladder's.
func topicQueues(ctx context.Context, m *topicModel) []string {
	queues := m.workQueues()
	for _, ref := range m.holdRefs(ctx) {
		queues = append(queues, ref.Name.ValueString())
	}
	return queues
}

// fill sets the computed attributes that follow from the configuration alone, and returns what the topic owns.
func (r *topicResource) fill(ctx context.Context, m *topicModel, spec topology.Spec, diags *diag.Diagnostics) (topology.Objects, bool) {
	objects, err := spec.BuildWorkQueue()
	if err != nil {
		addError(diags, "Invalid topic", err)
		return objects, false
	}
	manifest, err := spec.Manifest()
	if err != nil {
		addError(diags, "Invalid topic", err)
		return objects, false
	}
	m.ID = types.StringValue(r.importID(m))
	m.QueueType = types.StringValue(string(objects.Queues[0].Type))
	m.Park = types.StringValue(string(manifest.Park))
	m.Exchanges = stringSet(exchangeNames(objects.Exchanges))
	home, err := m.home()
	if err != nil {
		addError(diags, "Invalid topic", err)
		return objects, false
	}
	m.HomeBindings = homeBindings(home, home)
	m.Manifest = types.StringValue(string(manifest.Encode()))
	m.Retry = m.retryWith(ctx, manifest.Retry, diags)
	return objects, !diags.HasError()
}

// finish computes, with everything known, what a plan may have left unknown.
func (r *topicResource) finish(ctx context.Context, plan, config *topicModel, diags *diag.Diagnostics) (topology.Objects, bool) {
	arguments, shards := plan.Arguments, plan.ShardArguments
	plan.takeConfigured(config)
	plan.settleVia(plan.defaultVia(ctx))
	if !plan.settle(r.rt) {
		addError(diags, "Could not apply the topic", errUnknown)
		return topology.Objects{}, false
	}
	spec, _ := plan.spec(ctx, diags)
	admin, err := r.rt.admin()
	if addError(diags, "Could not apply the topic", err); diags.HasError() {
		return topology.Objects{}, false
	}
	objects, ok := r.fill(ctx, plan, spec, diags)
	if !ok || !check(ctx, admin, spec, true, diags) {
		return objects, false
	}
	objects, err = r.rt.withPolicies(ctx, &plan.partModel, stringsOf(ctx, plan.AcknowledgeWarnings), objects, diags)
	if addError(diags, "Could not read the policies to merge", err); diags.HasError() {
		return objects, false
	}
	computed := map[string]map[string]string{}
	for _, q := range objects.Queues {
		computed[q.Name] = q.Arguments.Canonical()
	}
	plan.show(computed)
	plan.showPolicies(plannedPolicies(objects.Queues))
	if !arguments.IsUnknown() {
		plan.Arguments = arguments
	}
	if !shards.IsUnknown() {
		plan.ShardArguments = shards
	}
	return objects, true
}

// check refuses what the broker cannot carry. A plan can do without its answer; an apply, which asks again before
// anything is made, must have it.
func check(ctx context.Context, admin *rabbitmqadmin.Client, spec topology.Spec, must bool, diags *diag.Diagnostics) bool {
	broker, err := admin.Ping(ctx)
	if err != nil {
		if must {
			addError(diags, "Could not ask the broker what it can carry", err)
		}
		return !must
	}
	at, err := lacking(broker, spec)
	if err != nil {
		diags.AddAttributeError(at, "The broker cannot carry the topic", sentence(err))
	}
	return err == nil
}

func (r *topicResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	defer topicForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	var plan, config topicModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	objects, ok := r.finish(ctx, &plan, &config, &resp.Diagnostics)
	if !ok {
		return
	}
	if err := r.checkDeadEnds(ctx, plan.Manifest.ValueString()); err != nil {
		addError(&resp.Diagnostics, "Could not create the topic", err)
		return
	}
	left, err := r.rt.create(ctx, r.createRequest(ctx, &plan, objects, &resp.Diagnostics))
	addError(&resp.Diagnostics, "Could not create the topic", err)
	if err == nil || len(left) > 0 {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

func (r *topicResource) createRequest(ctx context.Context, plan *topicModel, objects topology.Objects, diags *diag.Diagnostics) createRequest {
	return createRequest{
		vhost: plan.VHost.ValueString(), objects: objects, adopt: plan.AdoptExisting.ValueBool(), merge: plan.MergePolicy.ValueBool(), ignore: stringsOf(ctx, plan.IgnoreArguments),
		resourceType: topicTypeName, importID: plan.ID.ValueString(), diags: diags,
	}
}

// checkDeadEnds refuses a topic whose dead-letter or parked queue cannot be reached by the topic's own route: what is
// sent there would wait unseen in the work queue. A queue's own resource binds it to the exchange of its topic.
func (r *topicResource) checkDeadEnds(ctx context.Context, manifest string) error {
	m, err := topology.DecodeManifest([]byte(manifest))
	if err != nil {
		return err
	}
	admin, err := r.rt.admin()
	if err != nil {
		return err
	}
	for _, target := range []*topology.ManifestTarget{m.DeadLetter, m.Parked} {
		if target == nil || target.Exchange == "" {
			continue
		}
		route := topology.Binding{Source: target.Exchange, Destination: target.Name, DestinationType: topology.BindingToQueue, RoutingKey: target.RoutingKey}
		if r.rt.wasRouted(m.VHost, route) {
			continue
		}
		reached, err := awaitRoute(ctx, admin, m.VHost, route)
		if err != nil {
			return err
		}
		if !reached {
			return fmt.Errorf("queue %q in vhost %q does not exist or is not bound to exchange %q with its name as the key, so that what topic %q sends there would be stranded; nothing was changed. "+
				"Take the name from the resource of the queue, whose topic is %q, so that it comes first; or bind another topic's queue with a redeliver_rabbitmq_binding",
				target.Name, m.VHost, target.Exchange, m.Topic, m.Topic)
		}
	}
	return nil
}

// routeWait is how long a topic waits for a dead end that the same apply makes at the same time, because the
// configuration spells its name instead of referring to it.
const routeWait = 10 * time.Second

// awaitRoute reports whether a dead end is bound to where the topic sends to it.
func awaitRoute(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, route topology.Binding) (bool, error) {
	for deadline := time.Now().Add(routeWait); ; {
		found, err := admin.QueueBindings(ctx, vhost, route.Destination)
		if err != nil && !errors.Is(err, rabbitmqadmin.ErrNotFound) {
			return false, err
		}
		if missing, _ := topology.DiffBindings([]topology.Binding{route}, found); len(missing) == 0 {
			return true, nil
		}
		if time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func (r *topicResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	defer topicForm.identify(ctx, &req.State, resp.Identity, &resp.Diagnostics)
	var state topicModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	admin, ok := r.rt.reader(&resp.Diagnostics)
	if !ok {
		return
	}
	vhost, imported := state.VHost.ValueString(), state.Arguments.IsNull()
	r.rt.see(queueKeys(vhost, state.workQueues())...)
	noteImported(ctx, imported, resp)
	if imported {
		err := r.recogniseShards(ctx, admin, &state)
		if addError(&resp.Diagnostics, "Could not import the topic", err); err != nil {
			return
		}
	}
	shown, err := readArguments(ctx, admin, vhost, state.workQueues())
	if addError(&resp.Diagnostics, "Could not read the topic", err); err != nil {
		return
	}
	migrating := false
	if state.SequenceShards.ValueInt64() == 0 { // shards are never migrated
		migrating, err = isMigrating(ctx, admin, vhost, state.Name.ValueString())
		if addError(&resp.Diagnostics, "Could not read the topic", err); err != nil {
			return
		}
	}
	if state.keepWhileMigrating(migrating, state.Arguments) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
		return
	}
	policies, err := state.readPolicies(ctx, admin, state.workQueues())
	if len(shown) == 0 {
		warnOfLeftPolicies(&resp.Diagnostics, vhost, policies)
		resp.State.RemoveResource(ctx)
		return
	}
	if addError(&resp.Diagnostics, "Could not read the topic's policies", err); err != nil {
		return
	}
	if imported {
		err := r.recognise(ctx, admin, &state, shown)
		if addError(&resp.Diagnostics, "Could not import the topic", err); err != nil {
			return
		}
	}
	state.show(shown)
	state.showPolicies(policies)
	objects, err := state.routes(ctx)
	if addError(&resp.Diagnostics, "Invalid topic", err); err != nil {
		return
	}
	exchanges, found, err := mirrorRoutes(ctx, admin, vhost, objects)
	if addError(&resp.Diagnostics, "Could not read the topic's routes", err); err != nil {
		return
	}
	if state.Manifest.IsNull() {
		// An imported topic may lack what only its configuration says, such as its delays: then the plan computes the rest.
		if spec, _ := state.spec(ctx, &resp.Diagnostics); spec.Validate() == nil {
			r.fill(ctx, &state, spec, &resp.Diagnostics)
		}
	}
	home, err := state.home()
	if addError(&resp.Diagnostics, "Invalid topic", err); err != nil {
		return
	}
	state.Exchanges, state.HomeBindings = stringSet(exchanges), homeBindings(home, found)
	if !state.Bindings.IsNull() {
		state.Bindings = bindingSet(present(state.bindings(ctx), found))
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

func (r *topicResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	defer topicForm.identify(ctx, &resp.State, resp.Identity, &resp.Diagnostics)
	var plan, state, config topicModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	objects, ok := r.finish(ctx, &plan, &config, &resp.Diagnostics)
	if !ok {
		return
	}
	vhost := plan.VHost.ValueString()
	var err error
	redirected := !plan.DeadLetterQueue.Equal(state.DeadLetterQueue) // which a policy can do in place
	if redirected {
		err = r.checkDeadEnds(ctx, plan.Manifest.ValueString())
	}
	if err == nil {
		err = r.rt.migrate(ctx, plan.migration(ctx, &state, objects), &resp.Diagnostics)
	}
	if err == nil {
		err = r.makeMissing(ctx, &plan, objects, state.shown(ctx), &resp.Diagnostics)
	}
	if err == nil {
		err = r.rt.repairRoutes(ctx, vhost, objects)
	}
	if err == nil {
		err = r.rt.repairPolicies(ctx, vhost, plan.MergePolicy.ValueBool(), objects.Queues)
	}
	if err == nil && !noted(ctx, req.Private, importedKey) { // see warnOfKeptBindings
		// Bindings are not authoritative: only those that this resource made and makes no more are removed.
		err = r.unbind(ctx, vhost, without(state.bindings(ctx), objects.Bindings))
	}
	if err == nil && redirected {
		err = r.dropExchanges(ctx, &state, objects)
	}
	if err != nil {
		addError(&resp.Diagnostics, "Could not update the topic", err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// makeMissing makes shards anew that the broker lacks while it has others. A work queue that is missing is a topic that is.
func (r *topicResource) makeMissing(ctx context.Context, plan *topicModel, objects topology.Objects, shown map[string]map[string]string, diags *diag.Diagnostics) error {
	objects.Queues = slices.DeleteFunc(slices.Clone(objects.Queues), func(q topology.Queue) bool { return shown[q.Name] != nil })
	if len(objects.Queues) == 0 {
		return nil
	}
	_, err := r.rt.create(ctx, r.createRequest(ctx, plan, objects, diags))
	return err
}

// dropExchanges deletes the exchanges that the topic needed and needs no more, where nothing else uses them.
func (r *topicResource) dropExchanges(ctx context.Context, state *topicModel, objects topology.Objects) error {
	old, err := state.routes(ctx)
	if err != nil {
		return err
	}
	admin, err := r.rt.admin()
	if err != nil {
		return err
	}
	for _, e := range old.Exchanges {
		if slices.Contains(objects.Exchanges, e) {
			continue
		}
		if err := r.rt.deleteExchange(ctx, admin, state.VHost.ValueString(), e); err != nil {
			return err
		}
	}
	return nil
}

func (r *topicResource) unbind(ctx context.Context, vhost string, bindings []topology.Binding) error {
	admin, err := r.rt.admin()
	if err != nil {
		return err
	}
	for _, b := range bindings {
		if err := admin.Unbind(ctx, vhost, b); err != nil {
			return err
		}
	}
	return nil
}

func (r *topicResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state topicModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &state)...); resp.Diagnostics.HasError() {
		return
	}
	if refuseImported(ctx, req, resp, state.VHost.ValueString(), state.Name.ValueString()) {
		return
	}
	objects, err := state.routes(ctx)
	if addError(&resp.Diagnostics, "Invalid topic", err); err != nil {
		return
	}
	err = r.rt.removeMigrated(ctx, &state.migrateModel, rabbitmqadmin.SafeDelete{
		VHost: state.VHost.ValueString(), Queues: state.workQueues(), AlsoEmpty: topicQueues(ctx, &state)[len(state.workQueues()):],
		OwnBindings: objects.Bindings, DeleteNonEmpty: deleteAnyway(ctx, req.Private, state.DeleteNonEmpty),
	}, objects.Exchanges)
	if err != nil {
		addRefusal(&resp.Diagnostics, "Could not delete the topic", err)
		clearPassed(ctx, resp.Private, &resp.Diagnostics)
	}
}
