package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// The warnings about the live broker that acknowledge_warnings accepts.
const (
	// warningPolicy: what a policy does to the queue beyond its arguments is meant.
	warningPolicy = "policy"
	// warningDefaultType: nobody declares the classic queue without its type.
	warningDefaultType = "default_queue_type"
	// warningCycle: dead letters are meant to come back.
	warningCycle = "dead_letter_cycle"
)

// planned is what a plan says that one part of a topic will be, to be held against the live broker.
type planned struct {
	vhost      string
	convention topology.Convention
	objects    topology.Objects
	// spec is a topic's.
	spec *topology.Spec
	// exists: the state has the resource. replacing: this is the create of a replacement.
	exists, replacing bool
	// adopt, ignore and acknowledged are as configured.
	adopt                bool
	ignore, acknowledged []string
	// merge: the queues' own policies copy others that match them.
	merge bool
	// resourceType and importID make up the import block that a diagnostic shows.
	resourceType, importID string
}

// asksLive reports whether a plan may ask the broker. An apply plans every resource again, and need not ask: it is told by
// what it writes and, before that, by an existing resource that this run did not refresh. What an apply creates before
// its first write cannot be told from a plan, and is looked at again: at most as many resources as go side by side.
func (rt *runtime) asksLive(exists bool) bool {
	return !rt.applying.Load() && (!exists || rt.refreshed.Load())
}

// checkPlan holds what is planned against the live broker, and adds what is wrong: with errors what the broker cannot
// carry, with warnings what would turn out otherwise than the configuration says. What cannot be asked is said once.
func (rt *runtime) checkPlan(ctx context.Context, p planned, diags *diag.Diagnostics) (ok bool) {
	client, err := rt.asker()
	if err != nil {
		rt.sayUnchecked(diags, err)
		return true
	}
	if !p.checkArguments(ctx, client, diags) {
		return false
	}
	rt.planOf(p.vhost).Add(p.objects)
	if !rt.asksLive(p.exists) {
		return true
	}
	view := client.View()
	for _, check := range []func(context.Context, *runtime, *rabbitmqadmin.View, *diag.Diagnostics) error{
		p.checkReplicas, p.checkExisting, p.checkOthers, p.checkPolicies, p.checkConsumers, p.checkCycle, p.checkDefaultType,
	} {
		if err := check(ctx, rt, view, diags); err != nil {
			rt.sayUnchecked(diags, err)
		}
	}
	return !diags.HasError()
}

// sayUnchecked says once what a plan could not look at, and why.
func (rt *runtime) sayUnchecked(diags *diag.Diagnostics, err error) {
	if errors.Is(err, errNotConfigured) || rt.applying.Load() {
		return // said as an error, and by whatever is written
	}
	rt.unchecked.Do(func() {
		diags.AddWarning("The plan was not checked against the broker", sentence(err)+
			" So this plan does not say, or not in full, whether its objects exist already, which policies apply to them, "+
			"who consumes hold queues, whether dead letters go in a circle, and how many messages are in queues that it destroys or replaces. Apply still refuses to take over what exists, and to delete what holds messages.")
	})
}

// checkArguments refuses arguments that this broker would refuse, or take and not carry out. They are extra arguments: what
// max_priority, delivery_limit and the strategy ask for was held against the queue's type and the broker before.
func (p planned) checkArguments(ctx context.Context, client *rabbitmqadmin.Client, diags *diag.Diagnostics) bool {
	broker, err := client.Ping(ctx) // known since the provider was configured
	if err != nil {
		return true
	}
	var failed error
	for _, q := range p.objects.Queues {
		if failed = q.CheckArguments(broker.Version); failed != nil {
			break // the others of the resource have the same
		}
	}
	if failed != nil {
		diags.AddAttributeError(path.Root("extra_arguments"), "The broker does not carry out an argument", sentence(failed))
	}
	return failed == nil
}

// checkReplicas refuses more replicas than the cluster has nodes. Those that a policy asks for checkPolicies looks at.
func (p planned) checkReplicas(ctx context.Context, _ *runtime, view *rabbitmqadmin.View, diags *diag.Diagnostics) error {
	for _, q := range p.objects.Queues {
		if q.Arguments[topology.ArgQuorumGroupSize] == nil && q.Arguments[topology.ArgQuorumTargetSize] == nil {
			continue
		}
		about, err := view.VHost(ctx, p.vhost)
		if err != nil {
			return err
		}
		if err := q.CheckReplicas(about.Nodes); err != nil {
			diags.AddAttributeError(path.Root("extra_arguments"), "The cluster is too small", sentence(err))
			return nil
		}
	}
	return nil
}

// checkExisting says what is there already of queues that are to be created.
func (p planned) checkExisting(ctx context.Context, rt *runtime, view *rabbitmqadmin.View, diags *diag.Diagnostics) error {
	if p.replacing {
		return nil
	}
	var names, texts []string
	differ := false
	for _, q := range p.objects.Queues {
		if rt.wasSeen(objectKey("queue", p.vhost, q.Name)) {
			continue // the resource's own, or that of another address, which may be destroyed first
		}
		live, found, err := view.FindQueue(ctx, p.vhost, q.Name)
		if err != nil {
			return err
		}
		if found {
			names = append(names, q.Name)
			texts = append(texts, compared(fmt.Sprintf("The arguments of queue %q", q.Name), q, live, p.ignore))
			differ = differ || len(queueDifferences(q, mirrorArguments(live), p.ignore)) > 0
		}
	}
	if len(names) == 0 {
		return nil
	}
	block := createRequest{resourceType: p.resourceType, importID: p.importID}.importBlock()
	switch {
	case !p.adopt:
		diags.AddWarning(fmt.Sprintf("Queue %q exists already", names[0]),
			fmt.Sprintf("Apply will refuse to create it in vhost %q, and change nothing.\n%s\n%s\nTo manage what exists from here on, import it:\n%s\nor set adopt_existing = true.",
				p.vhost, strings.Join(texts, "\n"), existsCause, block))
	case differ:
		diags.AddWarning(fmt.Sprintf("Queue %q exists and cannot be adopted", names[0]),
			fmt.Sprintf("Apply will refuse it in vhost %q, because RabbitMQ cannot change a queue's arguments.\n%s\nAccept a difference with ignore_arguments, or import the queue to have it replaced:\n%s",
				p.vhost, strings.Join(texts, "\n"), block))
	default:
		diags.AddWarning(fmt.Sprintf("Queue %q exists and is adopted", names[0]),
			fmt.Sprintf("adopt_existing is true: apply takes over %s in vhost %q, with the messages, bindings and consumers that are there, and makes what is missing.", quoted(names), p.vhost))
	}
	return nil
}

// checkPolicies says which policies make the queues other than their arguments say.
func (p planned) checkPolicies(ctx context.Context, _ *runtime, view *rabbitmqadmin.View, diags *diag.Diagnostics) error {
	policies, err := view.Policies(ctx, p.vhost)
	if err != nil || len(policies) == 0 {
		return err
	}
	about, err := view.VHost(ctx, p.vhost)
	if err != nil {
		return err
	}
	var texts []string
	for _, q := range p.objects.Queues {
		live, _, err := view.FindQueue(ctx, p.vhost, q.Name)
		if err != nil {
			return err
		}
		if err := q.CheckReplicasOf(policies, live.Policy, about.Nodes); err != nil {
			texts = append(texts, fmt.Sprintf("  queue %q: %s", q.Name, err))
		}
		effects := q.Effects(policies, live.Policy)
		if p.spec != nil && q.Role == topology.RoleWork {
			if err := p.spec.CheckConsumerTimeout(effects); err != nil {
				diags.AddAttributeError(path.Root("retry"), "A policy shortens the consumer timeout", sentence(err))
				return nil
			}
		}
		for _, e := range q.Contradictions(effects) {
			texts = append(texts, fmt.Sprintf("  queue %q: %s", q.Name, e))
		}
	}
	if len(texts) > 0 && !slices.Contains(p.acknowledged, warningPolicy) {
		diags.AddWarning("A policy contradicts the configuration",
			fmt.Sprintf("In vhost %q what applies is not what the configuration says:\n%s\nHave the policy not match these queues, or set it no lower than the configuration. "+
				"If it is meant, say so with acknowledge_warnings = [%q].", p.vhost, strings.Join(texts, "\n"), warningPolicy))
	}
	return nil
}

// checkConsumers says who takes messages out of hold queues.
func (p planned) checkConsumers(ctx context.Context, _ *runtime, view *rabbitmqadmin.View, diags *diag.Diagnostics) error {
	if !p.exists && !p.adopt {
		return nil
	}
	for _, q := range p.objects.Queues {
		if q.Role != topology.RoleHold {
			continue
		}
		consumers, err := view.Consumers(ctx, p.vhost, q.Name)
		if err != nil {
			return err
		}
		if len(consumers) == 0 {
			continue
		}
		texts := make([]string, len(consumers))
		for i, c := range consumers {
			texts[i] = c.String()
		}
		diags.AddWarning(fmt.Sprintf("Hold queue %q is consumed", q.Name),
			fmt.Sprintf("In vhost %q hold queue %q has %d %s: %s. Nobody may consume a hold queue: what is taken out of it does not wait its %s, and what is acknowledged never comes home to the topic. "+
				"Have the application consume the work queue.", p.vhost, q.Name, len(consumers), plural(len(consumers), "consumer", "consumers"), strings.Join(texts, ", "),
				topology.FormatDuration(q.Delay)))
	}
	return nil
}

// checkCycle says where dead letters come back to where they came from.
func (p planned) checkCycle(ctx context.Context, rt *runtime, view *rabbitmqadmin.View, diags *diag.Diagnostics) error {
	if slices.Contains(p.acknowledged, warningCycle) {
		return nil
	}
	for _, q := range p.objects.Queues {
		if q.Role == topology.RoleHold {
			continue // seen from where its messages come from
		}
		cycle, err := view.DeadLetterCycle(ctx, p.vhost, q.Name, rt.planOf(p.vhost))
		if err != nil {
			return err
		}
		if len(cycle) == 0 || !rt.firstOf(p.vhost, cycle) {
			continue
		}
		diags.AddWarning("Dead letters go in a circle",
			fmt.Sprintf("In vhost %q what queue %q dead-letters can come back to it: %s. RabbitMQ drops a message that comes round without having been rejected by a consumer on the way "+
				"(it expired, did not fit, or was delivered too often), without a trace; one that is rejected goes round for ever. Have one of these queues dead-letter elsewhere, or nowhere. "+
				"If it is meant, say so with acknowledge_warnings = [%q].", p.vhost, q.Name, strings.Join(append(slices.Clone(cycle), q.Name), " -> "), warningCycle))
	}
	return nil
}

// checkDefaultType says where a vhost makes another queue of what applications declare than what is planned.
func (p planned) checkDefaultType(ctx context.Context, _ *runtime, view *rabbitmqadmin.View, diags *diag.Diagnostics) error {
	at := slices.IndexFunc(p.objects.Queues, func(q topology.Queue) bool { return q.Type == topology.Classic })
	if at < 0 || !p.convention.DeclaresWithoutType() || slices.Contains(p.acknowledged, warningDefaultType) {
		return nil
	}
	about, err := view.VHost(ctx, p.vhost)
	if err != nil {
		return err
	}
	if about.DefaultQueueType != "" && about.DefaultQueueType != topology.Classic {
		diags.AddWarning("The vhost's default queue type is not classic",
			fmt.Sprintf("Vhost %q makes a %s queue of what is declared without a type. Queue %q is classic, and stays so: Terraform writes %s out. "+
				"An application of the %s convention that declares it without is refused (406 PRECONDITION_FAILED), or makes it a %s queue where it comes first. "+
				"Set the vhost's default queue type to classic, or have the applications not declare. If they do not, say so with acknowledge_warnings = [%q].",
				p.vhost, about.DefaultQueueType, p.objects.Queues[at].Name, topology.ArgQueueType, p.convention, about.DefaultQueueType, warningDefaultType))
	}
	return nil
}

// planOf is what this run plans in a vhost: dead letters may go there.
func (rt *runtime) planOf(vhost string) *rabbitmqadmin.Plan {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.plans[vhost] == nil {
		rt.plans[vhost] = rabbitmqadmin.NewPlan()
	}
	return rt.plans[vhost]
}

// firstOf reports whether nobody has said of these queues that they are a circle.
func (rt *runtime) firstOf(vhost string, cycle []string) bool {
	key := objectKey("queues", vhost, strings.Join(slices.Sorted(slices.Values(cycle)), "\x00"))
	rt.mu.Lock()
	defer rt.mu.Unlock()
	first := !rt.circles[key]
	rt.circles[key] = true
	return first
}

func quoted(names []string) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(texts, ", ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
