package provider

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// options reads the object that a function takes as its last parameter, field
// by field, and refuses fields that nobody asked for.
type options struct {
	fields map[string]any
	asked  map[string]bool
	err    error
}

func newOptions(value types.Dynamic) options {
	o := options{asked: map[string]bool{}}
	if value.IsNull() || value.IsUnderlyingValueNull() {
		return o
	}
	decoded, _, err := dynamicValue(value.UnderlyingValue())
	if err != nil {
		o.err = err
		return o
	}
	fields, ok := decoded.(map[string]any)
	if !ok {
		o.err = fmt.Errorf("options must be an object, such as {}; it is %s", topology.CanonicalJSON(decoded))
	}
	o.fields = fields
	return o
}

func option[T any](o *options, name, kind string) (value T) {
	o.asked[name] = true
	field, present := o.fields[name]
	if !present || field == nil || o.err != nil {
		return value
	}
	value, ok := field.(T)
	if !ok {
		o.err = fmt.Errorf("option %s must be %s; it is %s", name, kind, topology.CanonicalJSON(field))
	}
	return value
}

func (o *options) text(name string) string { return option[string](o, name, "a string") }

func (o *options) number(name string) int { return int(option[int64](o, name, "a whole number")) }

func (o *options) flag(name string) bool { return option[bool](o, name, "true or false") }

// broker is the kind of broker that a function is asked about: RabbitMQ unless told otherwise.
func (o *options) broker() string {
	switch kind := o.text("broker"); kind {
	case "", topology.BrokerRabbitMQ:
		return topology.BrokerRabbitMQ
	case topology.BrokerSQS:
		return topology.BrokerSQS
	default:
		if o.err == nil {
			o.err = fmt.Errorf("option broker: %q is not known; use %q or %q", kind, topology.BrokerRabbitMQ, topology.BrokerSQS)
		}
		return ""
	}
}

func (o *options) fraction(name string) float64 {
	if whole, ok := o.fields[name].(int64); ok {
		o.asked[name] = true
		return float64(whole)
	}
	return option[float64](o, name, "a number")
}

func (o *options) duration(name string) time.Duration {
	text := o.text(name)
	if text == "" || o.err != nil {
		return 0
	}
	d, err := topology.ParseDuration(text)
	if err != nil {
		o.err = fmt.Errorf("option %s: %w", name, err)
	}
	return d
}

func (o *options) durations(name string) []time.Duration {
	var delays []time.Duration
	for _, item := range option[[]any](o, name, "a list of durations") {
		text, ok := item.(string)
		d, err := topology.ParseDuration(text)
		if !ok || err != nil {
			o.err = fmt.Errorf("option %s: %s is not a duration such as 500ms, 5s or 2m", name, topology.CanonicalJSON(item))
			return nil
		}
		delays = append(delays, d)
	}
	return delays
}

// finish returns the first error, an option that does not exist included.
func (o *options) finish() error {
	if o.err != nil {
		return o.err
	}
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		if !o.asked[name] {
			return fmt.Errorf("option %q does not exist here; there are %s", name, strings.Join(slices.Sorted(maps.Keys(o.asked)), ", "))
		}
	}
	return nil
}

func argumentError(position int64, err error) *function.FuncError {
	return function.NewArgumentFuncError(position, strings.TrimSuffix(sentence(err), ".")) // the command line adds the full stop
}

// buildNamesFunction computes a topic's names.
type buildNamesFunction struct{}

func newBuildNamesFunction() function.Function { return buildNamesFunction{} }

var namesAttrTypes = map[string]attr.Type{
	"work_queue": types.StringType, "work_queues": types.ListType{ElemType: types.StringType}, "sequence_exchange": types.StringType, "dead_letter_queue": types.StringType, "parked_queue": types.StringType,
	"retry_exchange": types.StringType, "hold_queues": types.ListType{ElemType: types.StringType},
}

func (buildNamesFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "build_names"
}

func (buildNamesFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "The names of a topic's queues and its retry exchange",
		MarkdownDescription: "Computes what a topic's queues are called, without a broker: an object with `work_queue`, `dead_letter_queue`, `parked_queue` and `retry_exchange` (null where the convention has none), " +
			"`hold_queues`, a list in the order of the delays, and `work_queues`, all queues that are consumed: the work queue, or the shards of a sequenced topic, " +
			"of which `work_queue` is the first and over which `sequence_exchange` (else null) spreads messages. " +
			"On Amazon SQS (`broker = \"sqs\"`) there are no hold queues and no exchanges, and the names of FIFO queues end in `.fifo`.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "topic", MarkdownDescription: "The topic's name."},
			function.StringParameter{Name: "convention", MarkdownDescription: "The convention: `redeliver`, `shove`, `acemq`, `rabbitkit` or `queuey`."},
			function.DynamicParameter{Name: "options", AllowNullValue: true, MarkdownDescription: "An object, which may be empty (`{}`; OpenTofu answers a `null` here with null): `broker` (`rabbitmq` or `sqs`), `consumer_group`; on RabbitMQ `delays` (a list of durations), `jitter_shards`, `jitter_factor` and `sequence_shards`; on SQS `fifo` (true or false)."},
		},
		Return: function.ObjectReturn{AttributeTypes: namesAttrTypes},
	}
}

func (buildNamesFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var topic, convention string
	var raw types.Dynamic
	if resp.Error = req.Arguments.Get(ctx, &topic, &convention, &raw); resp.Error != nil {
		return
	}
	o := newOptions(raw)
	if o.broker() == topology.BrokerSQS {
		resp.Error = setSQSNames(ctx, topic, convention, &o, &resp.Result)
		return
	}
	spec := topology.Spec{
		Identity:   topology.Identity{Topic: topic, Convention: topology.Convention(convention), ConsumerGroup: o.text("consumer_group")},
		HoldDelays: o.durations("delays"), JitterShards: o.number("jitter_shards"), SequenceShards: o.number("sequence_shards"),
	}
	spec.JitterFactor = o.fraction("jitter_factor")
	if err := o.finish(); err != nil {
		resp.Error = argumentError(2, err)
		return
	}
	if _, err := topology.ParseConvention(convention); err != nil {
		resp.Error = argumentError(1, err)
		return
	}
	if err := spec.Identity.Validate(); err != nil {
		resp.Error = argumentError(0, err)
		return
	}
	if err := spec.ValidateLadder(); err != nil {
		resp.Error = argumentError(2, err)
		return
	}
	holds := []attr.Value{}
	if len(spec.HoldDelays) > 0 {
		objects, err := spec.BuildLadder()
		if err != nil {
			resp.Error = argumentError(2, err)
			return
		}
		for _, ref := range objects.HoldRefs() {
			holds = append(holds, types.StringValue(ref.Name))
		}
	}
	work, sequenceExchange := []attr.Value{types.StringValue(spec.WorkQueueName())}, types.StringNull()
	if spec.SequenceShards > 0 {
		work, sequenceExchange = nil, types.StringValue(spec.SequenceExchangeName())
		for shard := range spec.SequenceShards {
			work = append(work, types.StringValue(spec.ShardQueueName(shard)))
		}
	}
	resp.Error = resp.Result.Set(ctx, types.ObjectValueMust(namesAttrTypes, map[string]attr.Value{
		"work_queue": work[0], "work_queues": types.ListValueMust(types.StringType, work), "sequence_exchange": sequenceExchange,
		"dead_letter_queue": types.StringValue(spec.DeadLetterQueueName()),
		"parked_queue":      textOrNull(spec.ParkedQueueName()), "retry_exchange": textOrNull(spec.RetryExchangeName()),
		"hold_queues": types.ListValueMust(types.StringType, holds),
	}))
}

// setSQSNames answers with the names of a topic on SQS.
func setSQSNames(ctx context.Context, topic, convention string, o *options, result *function.ResultData) *function.FuncError {
	identity := topology.SQSIdentity{Topic: topic, Convention: topology.Convention(convention), ConsumerGroup: o.text("consumer_group"), FIFO: o.flag("fifo")}
	if err := o.finish(); err != nil {
		return argumentError(2, err)
	}
	if _, err := topology.ParseConvention(convention); err != nil {
		return argumentError(1, err)
	}
	if err := identity.Validate(topology.RoleWork); err != nil {
		return argumentError(0, err)
	}
	work := types.StringValue(identity.WorkQueueName())
	return result.Set(ctx, types.ObjectValueMust(namesAttrTypes, map[string]attr.Value{
		"work_queue": work, "work_queues": types.ListValueMust(types.StringType, []attr.Value{work}), "sequence_exchange": types.StringNull(),
		"dead_letter_queue": textOrNull(identity.DeadLetterQueueName()), "parked_queue": textOrNull(identity.ParkedQueueName()),
		"retry_exchange": types.StringNull(), "hold_queues": types.ListValueMust(types.StringType, []attr.Value{}),
	}))
}

func textOrNull(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}

// buildScheduleFunction computes the delays between attempts.
type buildScheduleFunction struct{}

func newBuildScheduleFunction() function.Function { return buildScheduleFunction{} }

func (buildScheduleFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "build_schedule"
}

func (buildScheduleFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "The delays of a fixed or an exponential retry schedule",
		MarkdownDescription: "Computes the delays between attempts: five attempts have four delays. A ladder takes each delay once: wrap the result in `distinct()`.\n\n" +
			"- `\"fixed\"` takes `{ attempts, delay }`.\n- `\"exponential\"` takes `{ attempts, initial, max }`: the delays double from `initial` up to `max`.\n\n" +
			"Both take `granularity`, to a multiple of which delays are rounded up, and `broker`: for `\"sqs\"` delays are rounded up to whole seconds, and one over " +
			"the " + topology.FormatDuration(topology.SQSHoldBound) + " that a message can wait there is refused.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "kind", MarkdownDescription: "`fixed` or `exponential`."},
			function.DynamicParameter{Name: "options", MarkdownDescription: "An object: see above."},
		},
		Return: function.ListReturn{ElementType: types.StringType},
	}
}

func (buildScheduleFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var kind string
	var raw types.Dynamic
	if resp.Error = req.Arguments.Get(ctx, &kind, &raw); resp.Error != nil {
		return
	}
	o := newOptions(raw)
	broker, attempts, granularity := o.broker(), o.number("attempts"), o.duration("granularity")
	var build func() ([]time.Duration, error)
	switch kind {
	case "fixed":
		delay := o.duration("delay")
		build = func() ([]time.Duration, error) { return topology.Fixed(attempts, delay) }
	case "exponential":
		initial, longest := o.duration("initial"), o.duration("max")
		build = func() ([]time.Duration, error) { return topology.Exponential(attempts, initial, longest) }
	default:
		resp.Error = argumentError(0, fmt.Errorf("kind %q: use \"fixed\" or \"exponential\"", kind))
		return
	}
	if err := o.finish(); err != nil {
		resp.Error = argumentError(1, err)
		return
	}
	delays, err := build()
	if err != nil {
		resp.Error = argumentError(1, err)
		return
	}
	for i, delay := range delays {
		delays[i] = topology.RoundUp(delay, granularity)
	}
	if broker == topology.BrokerSQS {
		if delays, err = topology.OnSQS(delays); err != nil {
			resp.Error = argumentError(1, err)
			return
		}
	}
	texts := make([]string, len(delays))
	for i, delay := range delays {
		texts[i] = topology.FormatDuration(delay)
	}
	resp.Error = resp.Result.Set(ctx, texts)
}

// buildPermissionsFunction computes the least permissions of a role.
type buildPermissionsFunction struct{}

func newBuildPermissionsFunction() function.Function { return buildPermissionsFunction{} }

var permissionsAttrTypes = map[string]attr.Type{
	"configure": types.StringType, "write": types.StringType, "read": types.StringType, "notes": types.ListType{ElemType: types.StringType},
}

func (buildPermissionsFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "build_permissions"
}

func (buildPermissionsFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "The least permissions that a role needs on a topic",
		MarkdownDescription: "Computes RabbitMQ's three permission patterns, anchored and escaped, for a manifest and a role: an object with `configure`, `write`, `read` and `notes`, " +
			"sentences on what the patterns cannot say. On Amazon SQS access is granted by IAM policies: see `build_iam_policy`.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "manifest", MarkdownDescription: "A topic's `manifest`."},
			function.StringParameter{Name: "role", MarkdownDescription: "`consumer`, `publisher` or `operator`."},
		},
		Return: function.ObjectReturn{AttributeTypes: permissionsAttrTypes},
	}
}

func (buildPermissionsFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	manifest, role, ok := manifestAndRole(ctx, req, resp, topology.BrokerRabbitMQ, "build_iam_policy")
	if !ok {
		return
	}
	set, err := topology.Permissions(manifest, role)
	if err != nil {
		resp.Error = argumentError(1, err)
		return
	}
	resp.Error = resp.Result.Set(ctx, types.ObjectValueMust(permissionsAttrTypes, map[string]attr.Value{
		"configure": types.StringValue(set.Configure), "write": types.StringValue(set.Write), "read": types.StringValue(set.Read),
		"notes": noteList(set.Notes),
	}))
}

// manifestAndRole are the arguments of a function about access to a topic on one kind of broker; other is the function for
// the other kind.
func manifestAndRole(ctx context.Context, req function.RunRequest, resp *function.RunResponse, broker, other string) (m topology.Manifest, role topology.AccessRole, ok bool) {
	var text, named string
	if resp.Error = req.Arguments.Get(ctx, &text, &named); resp.Error != nil {
		return m, "", false
	}
	m, err := topology.DecodeManifest([]byte(text))
	if err == nil {
		if err = m.RequireBroker(broker); err != nil {
			err = fmt.Errorf("%w, or use %s", err, other)
		}
	}
	if err != nil {
		resp.Error = argumentError(0, err)
		return m, "", false
	}
	return m, topology.AccessRole(named), true
}

func noteList(notes []string) attr.Value {
	values := make([]attr.Value, len(notes))
	for i, note := range notes {
		values[i] = types.StringValue(note)
	}
	return types.ListValueMust(types.StringType, values)
}

// renderGraphFunction draws a topic's topology.
type renderGraphFunction struct{}

func newRenderGraphFunction() function.Function { return renderGraphFunction{} }

func (renderGraphFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "render_graph"
}

func (renderGraphFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary:             "A picture of a topic's topology as Mermaid text",
		MarkdownDescription: "Draws a manifest as a Mermaid flowchart, with names, delays and arguments, to put into a page of documentation.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "manifest", MarkdownDescription: "A topic's `manifest`."},
		},
		Return: function.StringReturn{},
	}
}

func (renderGraphFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var text string
	if resp.Error = req.Arguments.Get(ctx, &text); resp.Error != nil {
		return
	}
	manifest, err := topology.DecodeManifest([]byte(text))
	if err != nil {
		resp.Error = argumentError(0, err)
		return
	}
	resp.Error = resp.Result.Set(ctx, manifest.Mermaid())
}
