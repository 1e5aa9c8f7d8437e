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
	Name                types.String `tfsdk:"name"`
	QueueType           types.String `tfsdk:"queue_type"`
	DeadLetterQueue     types.String `tfsdk:"dead_letter_queue"`
	ParkedQueue         types.String `tfsdk:"parked_queue"`
	HoldQueues          types.List   `tfsdk:"hold_queues"`
	Retry               types.Object `tfsdk:"retry"`
	Park                types.String `tfsdk:"park"`
	DeliveryLimit       types.Int64  `tfsdk:"delivery_limit"`
	MaxPriority         types.Int64  `tfsdk:"max_priority"`
	AllowMessageLoss    types.Bool   `tfsdk:"allow_message_loss"`
	Bindings            types.Set    `tfsdk:"bindings"`
	AcknowledgeWarnings types.Set    `tfsdk:"acknowledge_warnings"`
	Arguments           types.Map    `tfsdk:"arguments"`
	HomeBindings        types.Set    `tfsdk:"home_bindings"`
	Manifest            types.String `tfsdk:"manifest"`
}

type retryModel struct {
	Strategy         types.String  `tfsdk:"strategy"`
	MaxRetries       types.Int64   `tfsdk:"max_retries"`
	Delays           types.List    `tfsdk:"delays"`
	LastDelayRepeats types.Bool    `tfsdk:"last_delay_repeats"`
	HoldFrom         types.String  `tfsdk:"hold_from"`
	GiveUpAfter      types.String  `tfsdk:"give_up_after"`
	Jitter           types.Float64 `tfsdk:"jitter"`
}

var retryAttrTypes = map[string]attr.Type{
	"strategy": types.StringType, "max_retries": types.Int64Type, "delays": types.ListType{ElemType: types.StringType},
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

// unknown sets every computed attribute that the configuration leaves out to unknown.
func (m *topicModel) unknown(ctx context.Context) {
	m.ID, m.Exchanges = types.StringUnknown(), types.SetUnknown(types.StringType)
	if m.QueueType.IsNull() {
		m.QueueType = types.StringUnknown()
	}
	if m.Park.IsNull() {
		m.Park = types.StringUnknown()
	}
	m.Retry = m.retryUnknown(ctx)
	m.Arguments = types.MapUnknown(types.StringType)
	m.HomeBindings = types.SetUnknown(bindingType)
	m.Manifest = types.StringUnknown()
}

// retryNotComputed are the parts of retry that are what the configuration says, which may be nothing.
var retryNotComputed = []string{"last_delay_repeats", "give_up_after"}

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

func (m *topicModel) holdRefs(ctx context.Context) []holdRefModel {
	var refs []holdRefModel
	m.HoldQueues.ElementsAs(ctx, &refs, false)
	return refs
}

// bindings are the topic's own, as its configuration or state has them.
func (m *topicModel) bindings(ctx context.Context) []topology.Binding {
	var models []bindingModel
	m.Bindings.ElementsAs(ctx, &models, false)
	bindings := make([]topology.Binding, len(models))
	for i, b := range models {
		bindings[i] = topology.Binding{
			Source: b.Exchange.ValueString(), RoutingKey: b.RoutingKey.ValueString(),
			Destination: m.Name.ValueString(), DestinationType: "queue",
		}
	}
	return bindings
}

// spec reads the model as what is asked for. known is false while anything that names or arguments depend on is not
// known.
func (m *topicModel) spec(ctx context.Context, diags *diag.Diagnostics) (spec topology.Spec, known bool) {
	extra, known := m.extra(diags)
	for _, value := range []attr.Value{m.QueueType, m.DeadLetterQueue, m.ParkedQueue, m.HoldQueues, m.Retry, m.Park, m.DeliveryLimit, m.MaxPriority, m.AllowMessageLoss, m.Bindings} {
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
func (m *topicModel) queueSpec(diags *diag.Diagnostics) (spec topology.Spec, known bool) {
	extra, known := m.extra(diags)
	for _, value := range []attr.Value{m.Name, m.VHost, m.Convention, m.ConsumerGroup, m.QueueType, m.DeadLetterQueue, m.DeliveryLimit, m.MaxPriority} {
		known = known && !value.IsUnknown()
	}
	maxRetries := int64(topology.DefaultMaxRetries)
	if retries, ok := m.maxRetries(); !ok {
		known = false
	} else if !retries.IsNull() {
		maxRetries = retries.ValueInt64()
	}
	if diags.HasError() || !known {
		return topology.Spec{}, false
	}
	return topology.Spec{
		Identity: m.identityOf(m.Name), QueueType: topology.QueueType(m.QueueType.ValueString()), DeadLetterQueue: m.DeadLetterQueue.ValueString(),
		AllowMessageLoss: true, DeliveryLimit: int(m.DeliveryLimit.ValueInt64()), MaxPriority: m.maxPriority(),
		// Any delay will do: none is in an argument of the work queue.
		Retry: topology.RetryPolicy{MaxRetries: int(maxRetries), Delays: []time.Duration{time.Second}},
		Extra: map[topology.Role]topology.Arguments{topology.RoleWork: extra},
	}, true
}

// maxRetries is retry.max_retries, from which the delivery limit may follow; ok is false while it is not known.
func (m *topicModel) maxRetries() (retries types.Int64, ok bool) {
	if m.Retry.IsUnknown() {
		return types.Int64Null(), false
	}
	if m.Retry.IsNull() {
		return types.Int64Null(), true
	}
	retries, ok = m.Retry.Attributes()["max_retries"].(types.Int64)
	return retries, ok && !retries.IsUnknown()
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
	}{{"hold_from", r.HoldFrom, &policy.HoldFrom}, {"give_up_after", r.GiveUpAfter, &policy.GiveUpAfter}} {
		if d.text.IsNull() {
			continue
		}
		delay, err := topology.ParseDuration(d.text.ValueString())
		if err == nil && delay == 0 {
			err = fmt.Errorf("retry.%s is 0s: leave it out for the default; always and never are the strategies %q and %q", d.name, topology.Republish, topology.InPlace)
			if d.name == "give_up_after" {
				err = fmt.Errorf("retry.%s is 0s, which would never retry: use retry.max_retries = 0 for that, or leave it out to never give up by age", d.name)
			}
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

// routes computes what the topic owns as far as it does not depend on its retry policy: exchanges, bindings, and most
// of the queue.
func (m *topicModel) routes(ctx context.Context) (topology.Objects, error) {
	return topology.Spec{
		Identity: m.identityOf(m.Name), QueueType: topology.QueueType(m.QueueType.ValueString()),
		DeadLetterQueue: m.DeadLetterQueue.ValueString(), AllowMessageLoss: true, Bindings: m.bindings(ctx),
		DeliveryLimit: int(m.DeliveryLimit.ValueInt64()), MaxPriority: m.maxPriority(),
	}.BuildWorkQueue()
}

// maxPriority is nil where the convention says it.
func (m *topicModel) maxPriority() *int {
	if m.MaxPriority.IsNull() {
		return nil
	}
	priority := int(m.MaxPriority.ValueInt64())
	return &priority
}
