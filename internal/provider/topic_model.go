package provider

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

type topicModel struct {
	partModel
	migrateModel
	Name                types.String `tfsdk:"name"`
	QueueType           types.String `tfsdk:"queue_type"`
	DeadLetterQueue     types.String `tfsdk:"dead_letter_queue"`
	ParkedQueue         types.String `tfsdk:"parked_queue"`
	HoldQueues          types.List   `tfsdk:"hold_queues"`
	Retry               types.Object `tfsdk:"retry"`
	Sequenced           types.Bool   `tfsdk:"sequenced"`
	SequenceShards      types.Int64  `tfsdk:"sequence_shards"`
	Park                types.String `tfsdk:"park"`
	DeliveryLimit       types.Int64  `tfsdk:"delivery_limit"`
	MaxPriority         types.Int64  `tfsdk:"max_priority"`
	AllowMessageLoss    types.Bool   `tfsdk:"allow_message_loss"`
	Bindings            types.Set    `tfsdk:"bindings"`
	AcknowledgeWarnings types.Set    `tfsdk:"acknowledge_warnings"`
	Arguments           types.Map    `tfsdk:"arguments"`
	ShardArguments      types.Map    `tfsdk:"shard_arguments"`
	Policy              types.Map    `tfsdk:"policy"`
	ShardPolicies       types.Map    `tfsdk:"shard_policies"`
	HomeBindings        types.Set    `tfsdk:"home_bindings"`
	Manifest            types.String `tfsdk:"manifest"`
}

type retryModel struct {
	Strategy         types.String  `tfsdk:"strategy"`
	MaxRetries       types.Int64   `tfsdk:"max_retries"`
	Delays           types.List    `tfsdk:"delays"`
	DelayMin         types.String  `tfsdk:"delay_min"`
	DelayMax         types.String  `tfsdk:"delay_max"`
	LastDelayRepeats types.Bool    `tfsdk:"last_delay_repeats"`
	HoldFrom         types.String  `tfsdk:"hold_from"`
	GiveUpAfter      types.String  `tfsdk:"give_up_after"`
	Jitter           types.Float64 `tfsdk:"jitter"`
}

var retryAttrTypes = map[string]attr.Type{
	"strategy": types.StringType, "max_retries": types.Int64Type, "delays": types.ListType{ElemType: types.StringType},
	"delay_min": types.StringType, "delay_max": types.StringType,
	"last_delay_repeats": types.BoolType, "hold_from": types.StringType, "give_up_after": types.StringType, "jitter": types.Float64Type,
}

type bindingModel struct {
	Exchange   types.String `tfsdk:"exchange"`
	RoutingKey types.String `tfsdk:"routing_key"`
}

// takeConfigured resets what is both configured and computed, the identity aside, to what the configuration says.
func (m *topicModel) takeConfigured(config *topicModel) {
	m.QueueType, m.Park, m.Retry = config.QueueType, config.Park, config.Retry
}

// unknown sets every computed attribute that the configuration leaves out to unknown, but for those of the queues.
func (m *topicModel) unknown(ctx context.Context) {
	m.ID, m.Exchanges = types.StringUnknown(), types.SetUnknown(types.StringType)
	if m.QueueType.IsNull() {
		m.QueueType = types.StringUnknown()
	}
	if m.Park.IsNull() {
		m.Park = types.StringUnknown()
	}
	m.Retry = m.retryUnknown(ctx)
	m.HomeBindings = types.SetUnknown(bindingType)
	m.Manifest = types.StringUnknown()
}

// retryNotComputed are the parts of retry that are what the configuration says, which may be nothing.
var retryNotComputed = []string{"delay_min", "delay_max", "last_delay_repeats", "give_up_after"}

// retryUnknown keeps the configured parts of retry and sets those that are computed to unknown.
func (m *topicModel) retryUnknown(ctx context.Context) types.Object {
	if m.Retry.IsNull() || m.Retry.IsUnknown() {
		return types.ObjectUnknown(retryAttrTypes)
	}
	fields := map[string]attr.Value{}
	for name, value := range m.Retry.Attributes() {
		if value.IsNull() && !slices.Contains(retryNotComputed, name) {
			value = unknownOf(ctx, retryAttrTypes[name])
		}
		fields[name] = value
	}
	return types.ObjectValueMust(retryAttrTypes, fields)
}

// retryWith is retry as configured, with what it leaves out as the manifest has it.
func (m *topicModel) retryWith(ctx context.Context, computed topology.ManifestRetry, diags *diag.Diagnostics) types.Object {
	var r retryModel
	if m.Retry.IsNull() || m.Retry.IsUnknown() {
		r.Delays = types.ListNull(types.StringType)
	} else {
		diags.Append(m.Retry.As(ctx, &r, basetypes.ObjectAsOptions{})...)
	}
	r.Strategy = types.StringValue(string(computed.Strategy))
	r.MaxRetries = types.Int64Value(int64(computed.MaxRetries))
	r.Jitter = types.Float64Value(computed.Jitter)
	if r.Delays.IsNull() || r.Delays.IsUnknown() {
		delays := make([]attr.Value, len(computed.Delays))
		for i, delay := range computed.Delays {
			delays[i] = types.StringValue(delay.String())
		}
		r.Delays = types.ListValueMust(types.StringType, delays)
	}
	if r.HoldFrom.IsNull() || r.HoldFrom.IsUnknown() {
		r.HoldFrom = types.StringNull()
		if computed.HoldFrom > 0 {
			r.HoldFrom = types.StringValue(computed.HoldFrom.String())
		}
	}
	object, d := types.ObjectValueFrom(ctx, retryAttrTypes, r)
	diags.Append(d...)
	return object
}

// brokerDelayed is the retry policy of a queue that delays what is given back by so many milliseconds.
func brokerDelayed(shortest, longest int64) types.Object {
	text := func(ms int64) types.String {
		return types.StringValue(topology.FormatDuration(time.Duration(ms) * time.Millisecond))
	}
	return types.ObjectValueMust(retryAttrTypes, map[string]attr.Value{
		"strategy": types.StringValue(string(topology.BrokerDelayed)), "delay_min": text(shortest), "delay_max": text(longest),
		"max_retries": types.Int64Null(), "delays": types.ListNull(types.StringType), "last_delay_repeats": types.BoolNull(),
		"hold_from": types.StringNull(), "give_up_after": types.StringNull(), "jitter": types.Float64Null(),
	})
}

// buildable reports whether the convention can have what the topic is.
func (m *topicModel) buildable(ctx context.Context) bool {
	_, err := m.routes(ctx)
	return err == nil
}

func (m *topicModel) holdRefs(ctx context.Context) []holdRefModel {
	var refs []holdRefModel
	m.HoldQueues.ElementsAs(ctx, &refs, false)
	return refs
}

// bindings are the topic's own, as its configuration or state has them.
func (m *topicModel) bindings(ctx context.Context) []topology.Binding {
	var models []bindingModel
	m.Bindings.ElementsAs(ctx, &models, false)
	destination, kind := m.Name.ValueString(), topology.BindingToQueue
	if m.SequenceShards.ValueInt64() > 0 {
		destination, kind = m.identityOf(m.Name).SequenceExchangeName(), topology.BindingToExchange
	}
	bindings := make([]topology.Binding, len(models))
	for i, b := range models {
		bindings[i] = topology.Binding{
			Source: b.Exchange.ValueString(), RoutingKey: b.RoutingKey.ValueString(), Destination: destination, DestinationType: kind,
		}
	}
	return bindings
}

// workQueues are the queues that the topic's messages come to: its shards, or the one of its own name.
func (m *topicModel) workQueues() []string {
	if m.SequenceShards.ValueInt64() == 0 {
		return []string{m.Name.ValueString()}
	}
	names := make([]string, m.SequenceShards.ValueInt64())
	for shard := range names {
		names[shard] = m.identityOf(m.Name).ShardQueueName(shard)
	}
	return names
}

// show sets the arguments of the work queue or, by name, of the shards.
func (m *topicModel) show(arguments map[string]map[string]string) {
	if m.SequenceShards.ValueInt64() > 0 {
		m.Arguments, m.ShardArguments = stringMap(nil), argumentsMap(arguments)
		return
	}
	m.Arguments, m.ShardArguments = stringMap(arguments[m.Name.ValueString()]), types.MapNull(queueArgumentsType)
}

// shown are the arguments that [topicModel.show] set.
func (m *topicModel) shown(ctx context.Context) map[string]map[string]string {
	if m.SequenceShards.ValueInt64() > 0 {
		return argumentsByQueue(ctx, m.ShardArguments)
	}
	return map[string]map[string]string{m.Name.ValueString(): mapOf(ctx, m.Arguments)}
}

// showPolicies sets the policy of the work queue or, by name, those of the shards.
func (m *topicModel) showPolicies(policies map[string]map[string]string) {
	if m.SequenceShards.ValueInt64() > 0 {
		m.Policy, m.ShardPolicies = types.MapNull(types.StringType), m.policiesOf(policies)
		return
	}
	m.Policy, m.ShardPolicies = m.policyOf(policies, m.Name.ValueString()), types.MapNull(queueArgumentsType)
}

// shownPolicies are the policies that [topicModel.showPolicies] set.
func (m *topicModel) shownPolicies(ctx context.Context) map[string]map[string]string {
	if m.SequenceShards.ValueInt64() > 0 {
		return argumentsByQueue(ctx, m.ShardPolicies)
	}
	return map[string]map[string]string{m.Name.ValueString(): mapOf(ctx, m.Policy)}
}

// defaultVia is settings_via where nothing says it: it follows from the strategy.
func (m *topicModel) defaultVia(ctx context.Context) types.String {
	if m.Retry.IsUnknown() {
		return types.StringUnknown()
	}
	var r retryModel
	if m.Retry.IsNull() || m.Retry.As(ctx, &r, basetypes.ObjectAsOptions{}).HasError() {
		return defaultVia()
	}
	if r.Strategy.IsUnknown() {
		return types.StringUnknown()
	}
	return types.StringValue(string(topology.DefaultSettingsVia(topology.Strategy(r.Strategy.ValueString()))))
}

// spec reads the model as what is asked for. known is false while anything that names or arguments depend on is not
// known.
func (m *topicModel) spec(ctx context.Context, diags *diag.Diagnostics) (spec topology.Spec, known bool) {
	extra, known := m.extra(diags)
	for _, value := range []attr.Value{m.QueueType, m.DeadLetterQueue, m.ParkedQueue, m.HoldQueues, m.Retry, m.Sequenced, m.SequenceShards, m.Park, m.DeliveryLimit, m.MaxPriority, m.AllowMessageLoss, m.Bindings} {
		known = known && !value.IsUnknown()
	}
	for _, element := range append(m.HoldQueues.Elements(), m.Bindings.Elements()...) {
		known = known && fullyKnown(element)
	}
	if diags.HasError() || !known || !fullyKnown(m.Retry) {
		return topology.Spec{}, false
	}
	spec = topology.Spec{
		Identity: m.identityOf(m.Name), QueueType: topology.QueueType(m.QueueType.ValueString()),
		DeadLetterQueue: m.DeadLetterQueue.ValueString(), ParkedQueue: m.ParkedQueue.ValueString(),
		AllowMessageLoss: m.AllowMessageLoss.ValueBool(), DeliveryLimit: int(m.DeliveryLimit.ValueInt64()),
		Sequenced: m.Sequenced.ValueBool(), SequenceShards: int(m.SequenceShards.ValueInt64()),
		Park: topology.ParkMode(m.Park.ValueString()), Bindings: m.bindings(ctx),
		MaxPriority: m.maxPriority(), Extra: map[topology.Role]topology.Arguments{topology.RoleWork: extra},
	}
	var refs []topology.HoldRef
	for i, ref := range m.holdRefs(ctx) {
		delay, err := topology.ParseDuration(ref.Delay.ValueString())
		if err != nil {
			diags.AddAttributeError(path.Root("hold_queues").AtListIndex(i), "Invalid hold queue", sentence(err))
			return spec, true
		}
		refs = append(refs, topology.HoldRef{Name: ref.Name.ValueString(), Delay: delay, Shard: int(ref.Shard.ValueInt64())})
	}
	spec, err := spec.WithHoldQueues(refs)
	if err != nil {
		diags.AddAttributeError(path.Root("hold_queues"), "Invalid hold queues", sentence(err))
		return spec, true
	}
	spec.Retry = m.policy(ctx, spec.HoldDelays, diags)
	return spec, true
}

// queueSpec reads what the work queue's arguments depend on, and nothing else: they can be planned while a binding, say,
// is not known yet. known is false while any of that is not known.
func (m *topicModel) queueSpec(ctx context.Context, diags *diag.Diagnostics) (spec topology.Spec, known bool) {
	extra, known := m.extra(diags)
	for _, value := range []attr.Value{m.Name, m.VHost, m.Convention, m.ConsumerGroup, m.QueueType, m.DeadLetterQueue, m.Sequenced, m.SequenceShards, m.DeliveryLimit, m.MaxPriority} {
		known = known && !value.IsUnknown()
	}
	policy, ok := m.queuePolicy(ctx)
	if diags.HasError() || !known || !ok {
		return topology.Spec{}, false
	}
	kind := topology.QueueType(m.QueueType.ValueString())
	if kinds := topology.Convention(m.Convention.ValueString()).QueueTypes(); kind == "" && len(kinds) > 0 {
		kind = kinds[0]
	}
	switch {
	case policy.Strategy == topology.BrokerDelayed:
	case kind == topology.Classic:
		policy.MaxRetries = 0 // it has no delivery limit
	default:
		policy.Delays = []time.Duration{time.Millisecond} // any will do: none is in an argument of the work queue
	}
	return topology.Spec{
		Identity: m.identityOf(m.Name), QueueType: kind, DeadLetterQueue: m.DeadLetterQueue.ValueString(),
		Sequenced: m.Sequenced.ValueBool(), SequenceShards: int(m.SequenceShards.ValueInt64()),
		AllowMessageLoss: true, DeliveryLimit: int(m.DeliveryLimit.ValueInt64()), MaxPriority: m.maxPriority(),
		Retry: policy, Extra: map[topology.Role]topology.Arguments{topology.RoleWork: extra},
	}, true
}

// queuePolicy is what of retry the work queue's arguments depend on: max_retries, from which the delivery limit may
// follow, and all of broker_delayed. ok is false while any of it is not known.
func (m *topicModel) queuePolicy(ctx context.Context) (policy topology.RetryPolicy, ok bool) {
	policy.MaxRetries = topology.DefaultMaxRetries
	if m.Retry.IsUnknown() {
		return policy, false
	}
	var r retryModel
	if m.Retry.IsNull() || m.Retry.As(ctx, &r, basetypes.ObjectAsOptions{}).HasError() {
		return policy, m.Retry.IsNull()
	}
	if !allKnown([]attr.Value{r.MaxRetries, r.Strategy, r.DelayMin, r.DelayMax}) {
		return policy, false
	}
	if !r.MaxRetries.IsNull() {
		policy.MaxRetries = int(r.MaxRetries.ValueInt64())
	}
	if r.Strategy.ValueString() != string(topology.BrokerDelayed) {
		return policy, true
	}
	policy.Strategy = topology.BrokerDelayed
	var minErr, maxErr error
	policy.DelayMin, minErr = topology.ParseDuration(r.DelayMin.ValueString())
	policy.DelayMax, maxErr = topology.ParseDuration(r.DelayMax.ValueString())
	return policy, minErr == nil && maxErr == nil
}

// retryDecides reports whether the queue's arguments follow from a part of retry that is not known.
func (m *topicModel) retryDecides(ctx context.Context) bool {
	var r retryModel
	if m.Retry.IsUnknown() {
		return true
	}
	if m.Retry.IsNull() || m.Retry.As(ctx, &r, basetypes.ObjectAsOptions{}).HasError() {
		return false
	}
	return !allKnown([]attr.Value{r.Strategy, r.DelayMin, r.DelayMax}) || r.MaxRetries.IsUnknown() && m.DeliveryLimit.IsNull()
}

// policy reads retry, with the provider's defaults for what it leaves out.
func (m *topicModel) policy(ctx context.Context, holdDelays []time.Duration, diags *diag.Diagnostics) topology.RetryPolicy {
	policy := topology.RetryPolicy{MaxRetries: topology.DefaultMaxRetries, Jitter: topology.DefaultJitter, Delays: holdDelays}
	if m.Retry.IsNull() {
		return policy
	}
	var r retryModel
	if d := m.Retry.As(ctx, &r, basetypes.ObjectAsOptions{}); d.HasError() {
		diags.Append(d...)
		return policy
	}
	at := path.Root("retry")
	policy.Strategy = topology.Strategy(r.Strategy.ValueString())
	policy.LastDelayRepeats = r.LastDelayRepeats.ValueBool()
	if !r.MaxRetries.IsNull() {
		policy.MaxRetries = int(r.MaxRetries.ValueInt64())
	}
	if !r.Jitter.IsNull() {
		policy.Jitter = r.Jitter.ValueFloat64()
	}
	for _, d := range []struct {
		name string
		text types.String
		into *time.Duration
		zero string // what a duration of 0s would be
	}{
		{"hold_from", r.HoldFrom, &policy.HoldFrom, fmt.Sprintf(": leave it out for the default; always and never are the strategies %q and %q", topology.Republish, topology.InPlace)},
		{"give_up_after", r.GiveUpAfter, &policy.GiveUpAfter, ", which would never retry: use retry.max_retries = 0 for that, or leave it out to never give up by age"},
		{"delay_min", r.DelayMin, &policy.DelayMin, ", by which no broker delays: use a positive duration"},
		{"delay_max", r.DelayMax, &policy.DelayMax, ", by which no broker delays: use retry.delay_min or more"},
	} {
		if d.text.IsNull() {
			continue
		}
		delay, err := topology.ParseDuration(d.text.ValueString())
		if err == nil && delay == 0 {
			err = fmt.Errorf("retry.%s is 0s%s", d.name, d.zero)
		}
		if err != nil {
			diags.AddAttributeError(at.AtName(d.name), "Invalid retry policy", sentence(err))
		}
		*d.into = delay
	}
	if r.Delays.IsNull() || len(holdDelays) > 0 {
		return policy
	}
	delays, _, err := durations(ctx, r.Delays)
	if err != nil {
		diags.AddAttributeError(at.AtName("delays"), "Invalid retry policy", sentence(err))
	}
	policy.Delays = delays
	return policy
}

// home are the bindings that the convention itself needs, whether or not the configuration repeats one of them.
func (m *topicModel) home() ([]topology.Binding, error) {
	bare := *m
	bare.Bindings = types.SetNull(bindingType)
	objects, err := bare.routes(context.Background())
	return objects.Bindings, err
}

// homeBindings shows bindings that the convention needs, each exchange and key once: if every queue that it leads to,
// such as the shards of a topic, was found to have it.
func homeBindings(home, found []topology.Binding) types.Set {
	same := func(a, b topology.Binding) bool { return a.Source == b.Source && a.RoutingKey == b.RoutingKey }
	missing := without(home, found)
	whole := slices.DeleteFunc(slices.Clone(home), func(b topology.Binding) bool {
		return slices.ContainsFunc(missing, func(m topology.Binding) bool { return same(m, b) })
	})
	return bindingSet(slices.CompactFunc(whole, same))
}

// routes computes what the topic owns as far as it does not depend on its retry policy: exchanges, bindings, and most
// of the queue. What broker_delayed puts into the queue's arguments is there.
func (m *topicModel) routes(ctx context.Context) (topology.Objects, error) {
	spec := topology.Spec{
		Identity: m.identityOf(m.Name), QueueType: topology.QueueType(m.QueueType.ValueString()),
		DeadLetterQueue: m.DeadLetterQueue.ValueString(), AllowMessageLoss: true, Bindings: m.bindings(ctx),
		Sequenced: m.Sequenced.ValueBool(), SequenceShards: int(m.SequenceShards.ValueInt64()),
		DeliveryLimit: int(m.DeliveryLimit.ValueInt64()), MaxPriority: m.maxPriority(),
	}
	if policy, ok := m.queuePolicy(ctx); ok && policy.Strategy == topology.BrokerDelayed {
		spec.Retry = topology.RetryPolicy{Strategy: policy.Strategy, DelayMin: policy.DelayMin, DelayMax: policy.DelayMax}
	}
	return spec.BuildWorkQueue()
}

// maxPriority is nil where the convention says it.
func (m *topicModel) maxPriority() *int {
	if m.MaxPriority.IsNull() {
		return nil
	}
	priority := int(m.MaxPriority.ValueInt64())
	return &priority
}
