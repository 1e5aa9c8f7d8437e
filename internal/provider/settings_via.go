package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// settingsViaAttributes are those of every resource with queues.
func settingsViaAttributes(object string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"settings_via": schema.StringAttribute{
			Optional: true, Computed: true, Validators: oneOf(topology.SettingsVias()),
			MarkdownDescription: "What carries the settings of " + object + " that RabbitMQ lets a policy set (message TTL, dead-letter exchange, key and strategy, length limits, overflow, delivery limit, expiry, consumer timeout, delayed retry): " +
				"`arguments` of the queue, which nobody can change, so that another value replaces the queue; or a `policy` for each queue that matches it alone, so that another value is an update in place, with whatever is in the queue. " +
				"A policy takes the user tag `policymaker`, and with every write of one RabbitMQ compares all queues of the vhost with all of its policies (about 0.3 s with 100 of them): use it for some tens of queues in a vhost. " +
				"Defaults to `arguments`, to `policy` for a topic with the strategy `broker_delayed`, and for what exists to what it has. Changing it replaces the resource (with `on_argument_change = \"migrate\"`, where it has that: in place).",
		},
		"merge_policy": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "With `settings_via = \"policy\"`: only one policy applies to a queue, so that another one which matches " + object + " too is refused. `true` has the queue's own policy copy its keys and take a higher priority instead; " +
				"what the contract sets stays as it is. Where the other policy changes, the plan shows it. Defaults to `false`.",
		},
	}
}

const policyDescription = "as canonical JSON, by key: `name`, `pattern`, `apply-to`, `priority` and every setting under its own name, such as `message-ttl`. " +
	"It is what the broker has and in a plan what the configuration computes; a difference is repaired in place. With `merge_policy` it is known after apply where anything of the resource is to be written: what the other policy sets is copied then. Null with `settings_via = \"arguments\"`."

func policyAttribute(of string) schema.Attribute {
	return schema.MapAttribute{
		Computed: true, ElementType: types.StringType,
		MarkdownDescription: "With `settings_via = \"policy\"`, the policy of " + of + " " + policyDescription,
	}
}

func policiesAttribute(of string) schema.Attribute {
	return schema.MapAttribute{
		Computed: true, ElementType: queueArgumentsType,
		MarkdownDescription: "With `settings_via = \"policy\"`, the policy of every " + of + ", by queue, " + policyDescription,
	}
}

// viaPolicy reports whether the settings of the resource's queues are in policies.
func (m *partModel) viaPolicy() bool {
	return m.SettingsVia.ValueString() == string(topology.ViaPolicy)
}

// planVia fills in settings_via: what is configured, or what the state has, or else the default. Another way than that
// of the state replaces the resource: a queue would keep the arguments that it was declared with.
func (m *partModel) planVia(config *partModel, state *partModel, fallback types.String, resp *resource.ModifyPlanResponse) {
	m.SettingsVia = config.SettingsVia
	if state == nil {
		if m.SettingsVia.IsNull() {
			m.SettingsVia = fallback
		}
		return
	}
	if m.SettingsVia.IsNull() {
		m.SettingsVia = state.SettingsVia // null is what was made before there was a choice: arguments
	}
	if m.SettingsVia.IsUnknown() || m.viaPolicy() != state.viaPolicy() {
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("settings_via"))
	}
}

// settleVia is planVia once everything can be known.
func (m *partModel) settleVia(fallback types.String) {
	if m.SettingsVia.IsUnknown() {
		m.SettingsVia = fallback
	}
}

// defaultVia is the default of what has no strategy.
func defaultVia() types.String { return types.StringValue(string(topology.ViaArguments)) }

// withPolicies puts the settings of queues where settings_via says, and has their policies copy what merge_policy says.
// The policies that others made are read for that alone, once in a run.
func (rt *runtime) withPolicies(ctx context.Context, m *partModel, acknowledged []string, objects topology.Objects, diags *diag.Diagnostics) (topology.Objects, error) {
	if !m.viaPolicy() {
		return objects, nil
	}
	objects = objects.ViaPolicy()
	if !m.MergePolicy.ValueBool() {
		return objects, nil
	}
	vhost := m.VHost.ValueString()
	view, err := rt.view()
	if err != nil {
		return objects, err
	}
	policies, err := view.Policies(ctx, vhost)
	if err != nil {
		return objects, err
	}
	var texts []string
	for i, q := range objects.Queues {
		others := q.Others(policies, "")
		merged, kept, err := q.Merge(others)
		if err != nil {
			diags.AddAttributeError(path.Root("merge_policy"), "A policy cannot be merged", fmt.Sprintf("In vhost %q %s.", vhost, err))
			return objects, nil
		}
		objects.Queues[i] = merged
		for _, d := range kept {
			texts = append(texts, fmt.Sprintf("  queue %q: %s sets %s to %s, and the queue's own policy keeps %s", q.Name, others[0], d.Key, d.Live, d.Want))
		}
	}
	if len(texts) > 0 && !slices.Contains(acknowledged, warningPolicy) {
		diags.AddAttributeWarning(path.Root("merge_policy"), "A merged policy contradicts the configuration",
			fmt.Sprintf("In vhost %q not everything of it is copied:\n%s\nIf that is meant, say so with acknowledge_warnings = [%q].", vhost, strings.Join(texts, "\n"), warningPolicy))
	}
	return objects, nil
}

// mergesLater reports whether the plan is to leave the own policies open: they copy others, which somebody may change until
// they are written, and Terraform takes nothing else than what was planned. What is the same as in the state is not written.
func (m *partModel) mergesLater(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) bool {
	if !m.viaPolicy() || !m.MergePolicy.ValueBool() {
		return false
	}
	if req.State.Raw.IsNull() {
		return true
	}
	var planned, state types.Object // whose sets have no order, unlike those of the raw values
	resp.Diagnostics.Append(resp.Plan.Get(ctx, &planned)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	for name, value := range planned.Attributes() {
		// A number that was in a state file is not the same to the last bit: its text is.
		if have := state.Attributes()[name]; !value.Equal(have) && value.String() != have.String() {
			return true
		}
	}
	return false
}

// planPolicies plans the own policies of queues. have is what the state has of them, nil where there is nothing to compare with.
func (rt *runtime) planPolicies(ctx context.Context, m *partModel, queues []topology.Queue, have map[string]map[string]string, diags *diag.Diagnostics) map[string]map[string]string {
	planned := plannedPolicies(queues)
	var texts []string
	differ, fresh, delays := "", false, false
	for _, q := range queues {
		if have == nil {
			fresh = fresh || q.Policy != nil
			continue
		}
		if differences := topology.DiffPolicy(q.Policy, have[q.Name]); len(differences) > 0 {
			texts = append(texts, fmt.Sprintf("%q:\n%s", q.Name, describe(differences)))
			delays = delays || q.Role == topology.RoleHold && topology.DelayChanges(differences)
			if differ == "" {
				differ = topology.OwnPolicyName(q.Name)
			}
		}
	}
	if len(texts) > 0 {
		fate := "It is changed in place, with whatever is in its queue."
		switch {
		case !m.viaPolicy():
			fate = "It is a leftover, since the queue's settings are in its arguments, and is deleted."
		case delays:
			fate += " Messages that are there keep the delay they came with, and those that come after them leave no earlier than they do."
		}
		diags.AddAttributeWarning(path.Root("settings_via"), fmt.Sprintf("Policy %q differs from the configuration", differ), fate+"\n"+strings.Join(texts, "\n"))
	}
	if client, err := rt.asker(); err == nil && (fresh || len(texts) > 0) && !rt.applying.Load() {
		if may, err := client.MayWritePolicies(ctx); err == nil && !may {
			diags.AddAttributeError(path.Root("settings_via"), "Policies cannot be written", sentence(errNoPolicymaker))
		}
	}
	return planned
}

var errNoPolicymaker = errors.New("the provider's user lacks the tag \"policymaker\" (or \"administrator\"), with which RabbitMQ lets policies be written; nothing was changed: " +
	"add it to the tags that the user has (rabbitmqctl set_user_tags NAME management policymaker), or use settings_via = \"arguments\"")

// policyOf is how the policy of a resource's only queue shows.
func (m *partModel) policyOf(shown map[string]map[string]string, queue string) types.Map {
	policy, ok := shown[queue]
	if !ok && !m.viaPolicy() {
		return types.MapNull(types.StringType)
	}
	return stringMap(policy)
}

// policiesOf is how the policies of several queues show.
func (m *partModel) policiesOf(shown map[string]map[string]string) types.Map {
	if len(shown) == 0 && !m.viaPolicy() {
		return types.MapNull(queueArgumentsType)
	}
	return argumentsMap(shown)
}

// readPolicies reads how the own policies of queues show, and fills in settings_via where the state is older. Where no
// policy is wanted they are looked for and need not be found.
func (m *partModel) readPolicies(ctx context.Context, admin broker, queues []string) (map[string]map[string]string, error) {
	if m.SettingsVia.IsNull() {
		m.SettingsVia = defaultVia()
	}
	policies, err := admin.Policies(ctx, m.VHost.ValueString())
	if err != nil && m.viaPolicy() {
		return nil, err
	}
	return ownPolicies(policies, queues), nil
}

// plannedPolicies are the own policies that queues are to have, as they show.
func plannedPolicies(queues []topology.Queue) map[string]map[string]string {
	shown := map[string]map[string]string{}
	for _, q := range queues {
		if q.Policy != nil {
			shown[q.Name] = q.Policy.Canonical()
		}
	}
	return shown
}

// ownPolicies are those of queues, as they show.
func ownPolicies(policies []topology.Policy, queues []string) map[string]map[string]string {
	shown := map[string]map[string]string{}
	for _, name := range queues {
		if own := topology.OwnPolicy(name, policies); own != nil {
			shown[name] = own.Canonical()
		}
	}
	return shown
}

// warnOfLeftPolicies says which policies are left of queues that are gone.
func warnOfLeftPolicies(diags *diag.Diagnostics, vhost string, policies map[string]map[string]string) {
	for _, queue := range slices.Sorted(maps.Keys(policies)) {
		name := topology.OwnPolicyName(queue)
		diags.AddWarning(fmt.Sprintf("Policy %q is left of a queue that is gone", name),
			fmt.Sprintf("Queue %q in vhost %q is gone and its policy is not. Whatever is created under that name has its settings: apply takes it over where the configuration has the queue; otherwise delete it.", queue, vhost))
	}
}

// recogniseVia finds out how a resource that is being imported has its settings, and adds what policies set to the
// arguments of its queues, as if they were arguments. copied is what those policies may have from another one.
func (m *partModel) recogniseVia(ctx context.Context, admin broker, shown map[string]map[string]string) (settings map[string]map[string]string, copied topology.Arguments, err error) {
	policies, err := admin.Policies(ctx, m.VHost.ValueString())
	if err != nil {
		return nil, nil, err
	}
	settings = map[string]map[string]string{}
	for name, arguments := range shown {
		settings[name] = arguments
		own := topology.OwnPolicy(name, policies)
		live := mirrored(name, arguments)
		q := topology.Queue{Name: name, Type: live.Type}
		if own == nil || len(q.Policies([]topology.Policy{*own}, "")) == 0 {
			continue
		}
		m.SettingsVia = types.StringValue(string(topology.ViaPolicy))
		settings[name] = maps.Clone(arguments)
		maps.Copy(settings[name], own.Over(live.Arguments).Canonical())
		if others := q.Others(policies, ""); len(others) > 0 && !others[0].MayMatch(q) {
			m.MergePolicy, copied = types.BoolValue(true), others[0].Over(nil)
		}
	}
	return settings, copied, nil
}

// policyBefore is what a queue's own policy was before it was written; nil where there was none.
type policyBefore struct {
	queue string
	was   *topology.Policy
}

// putPolicies writes the queues' own policies that are not what they are to be, and deletes those that are not to be. Nothing
// is written where another policy would not let them apply, or theirs displace it. before is what was changed so far.
func (rt *runtime) putPolicies(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, merge bool, queues []topology.Queue) (before []policyBefore, err error) {
	wanted := slices.ContainsFunc(queues, func(q topology.Queue) bool { return q.Policy != nil })
	policies, err := admin.View().Policies(ctx, vhost)
	if err != nil {
		if !wanted {
			return nil, nil // there is none to delete, as far as anybody knows
		}
		return nil, err
	}
	var differ []topology.Queue
	for _, q := range queues {
		if err := refuseOthers(q, policies, "", vhost, merge); err != nil {
			return nil, err
		}
		if own := topology.OwnPolicy(q.Name, policies); !samePolicy(own, q.Policy) {
			differ = append(differ, q)
			before = append(before, policyBefore{q.Name, own})
		}
	}
	if len(differ) == 0 {
		return nil, nil
	}
	if err := mayWritePolicies(ctx, admin); err != nil {
		return nil, err
	}
	for i, q := range differ {
		if q.Policy == nil {
			err = admin.DeletePolicy(ctx, vhost, topology.OwnPolicyName(q.Name))
		} else {
			err = admin.PutPolicy(ctx, vhost, *q.Policy)
		}
		if err != nil {
			return before[:i+1], err // this one, too, may be written
		}
	}
	return before, nil
}

// repairPolicies is putPolicies for queues that are there.
func (rt *runtime) repairPolicies(ctx context.Context, vhost string, merge bool, queues []topology.Queue) error {
	admin, err := rt.admin()
	if err != nil {
		return err
	}
	_, err = rt.putPolicies(ctx, admin, vhost, merge, queues)
	return err
}

func samePolicy(a, b *topology.Policy) bool {
	if a == nil || b == nil {
		return a == b
	}
	return maps.Equal(a.Canonical(), b.Canonical())
}

// mayWritePolicies refuses before anything is changed what the broker would refuse halfway. Who cannot be told from
// the broker's answer is told by it.
func mayWritePolicies(ctx context.Context, admin *rabbitmqadmin.Client) error {
	if may, err := admin.MayWritePolicies(ctx); err == nil && !may {
		return errNoPolicymaker
	}
	return nil
}

// restorePolicies puts policies back as they were, but for those of queues that stay.
func restorePolicies(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, before []policyBefore, stay []string) (failed error) {
	for _, b := range before {
		var err error
		switch {
		case slices.Contains(stay, b.queue):
		case b.was == nil:
			err = admin.DeletePolicy(ctx, vhost, topology.OwnPolicyName(b.queue))
		default:
			err = admin.PutPolicy(ctx, vhost, *b.was)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// ownedPolicies are the queues that have a policy of their own; none where that cannot be read, which fails the refresh of
// who has any.
func ownedPolicies(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, queues []string) []string {
	policies, err := admin.View().Policies(ctx, vhost)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(queues), func(q string) bool { return topology.OwnPolicy(q, policies) == nil })
}

// refuseOthers refuses a queue's own policy beside another one: only one of them applies. Where its own one applies
// already, what the other sets is not lost by writing it again.
func refuseOthers(q topology.Queue, policies []topology.Policy, live, vhost string, merge bool) error {
	if q.Policy == nil || merge {
		return nil
	}
	others := q.Others(policies, live)
	if len(others) == 0 || applies(q, policies, others[0]) {
		return nil
	}
	return besideError(q, others[0], vhost)
}

// applies reports whether the queue's own policy is there and comes before another one, and is to do so.
func applies(q topology.Queue, policies []topology.Policy, other topology.Policy) bool {
	own := topology.OwnPolicy(q.Name, policies)
	return own != nil && min(own.Priority, q.Policy.Priority) > other.Priority
}

func besideError(q topology.Queue, other topology.Policy, vhost string) error {
	what := "the queue's own would displace what that one sets"
	if other.Priority >= q.Policy.Priority {
		what = "that one would displace the queue's own, and with it the queue's settings"
	}
	matches := "matches"
	if other.MayMatch(q) {
		matches = "has a pattern that cannot be read here and may match"
	}
	return fmt.Errorf("%s (pattern %q, priority %d, which sets %s) %s queue %q in vhost %q too. RabbitMQ applies only one policy to a queue, and %s: "+
		"have its pattern not match the queue, or set merge_policy = true, with which the queue's own policy copies it, or settings_via = %q",
		other, other.Pattern, other.Priority, strings.Join(slices.Sorted(maps.Keys(other.Definition)), ", "), matches, q.Name, vhost, what, topology.ViaArguments)
}

// checkOthers refuses queues' own policies beside others, or says where they displace them already.
func (p planned) checkOthers(ctx context.Context, _ *runtime, view *rabbitmqadmin.View, diags *diag.Diagnostics) error {
	if !slices.ContainsFunc(p.objects.Queues, func(q topology.Queue) bool { return q.Policy != nil }) || p.merge {
		return nil
	}
	policies, err := view.Policies(ctx, p.vhost)
	if err != nil {
		return err
	}
	for _, q := range p.objects.Queues {
		live, _, err := view.FindQueue(ctx, p.vhost, q.Name)
		if err != nil {
			return err
		}
		if err := refuseOthers(q, policies, live.Policy, p.vhost, false); err != nil {
			diags.AddAttributeError(path.Root("settings_via"), "Another policy matches the queue", sentence(err))
			return nil
		}
		if others := q.Others(policies, live.Policy); q.Policy != nil && len(others) > 0 && !slices.Contains(p.acknowledged, warningPolicy) {
			diags.AddAttributeWarning(path.Root("settings_via"), "Another policy is displaced",
				fmt.Sprintf("%s The queue's own is there and comes before it. If that is meant, say so with acknowledge_warnings = [%q].", sentence(besideError(q, others[0], p.vhost)), warningPolicy))
			return nil
		}
	}
	return nil
}

// policyUnknown is a policy that depends on what is not known yet; known to be none where settings are in arguments.
func (m *partModel) policyUnknown(of attr.Type) types.Map {
	if !m.SettingsVia.IsUnknown() && !m.viaPolicy() {
		return types.MapNull(of)
	}
	return types.MapUnknown(of)
}
