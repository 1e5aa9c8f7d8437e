package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/redeliver/terraform-provider-redeliver/internal/migration"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// What on_argument_change can be.
const (
	onChangeReplace = "replace"
	onChangeMigrate = "migrate"
)

// defaultMigrationTimeout bounds an update that migrates a queue, and a delete that finishes that first, unless timeouts says
// otherwise.
const defaultMigrationTimeout = time.Hour

// migrateModel are the attributes of resources whose queue can be migrated.
type migrateModel struct {
	OnArgumentChange         types.String   `tfsdk:"on_argument_change"`
	AllowDefaultExchangeLoss types.Bool     `tfsdk:"allow_default_exchange_loss"`
	Migrating                types.Bool     `tfsdk:"migrating"`
	Timeouts                 timeouts.Value `tfsdk:"timeouts"`
}

func nullMigrate() migrateModel {
	return migrateModel{Timeouts: timeouts.Value{Object: types.ObjectNull(map[string]attr.Type{"update": types.StringType, "delete": types.StringType})}}
}

func migrateAttributes(ctx context.Context, object string) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"on_argument_change": schema.StringAttribute{
			Optional: true, Validators: oneOf([]string{onChangeReplace, onChangeMigrate}),
			MarkdownDescription: "What happens where an argument of " + object + " has to change, which RabbitMQ cannot do: `replace` it, which is refused while messages are in it (the default), or `migrate`, which is an update that loses nothing: " +
				"a queue of the same name with `-migrating` at its end takes over the bindings, the messages move there, " + object + " is made anew, and bindings and messages return. " +
				"What was interrupted is finished, or undone, by the next apply. Needs the provider's `amqp_endpoints`. How often a message was delivered, and so its retries in place, begins again. Not for `sequenced` topics. " +
				"See the guide [Changing arguments on a live queue](../guides/changing_arguments).",
		},
		"allow_default_exchange_loss": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "With `on_argument_change = \"migrate\"`: accept that what other queues dead-letter to " + object + " by its name, through the default exchange, is lost in the moment in which there is no such queue, about a second. " +
				"Without it such a queue is not migrated, unless they keep what finds no target (`x-dead-letter-strategy = at-least-once`). The same goes for applications that publish through the default exchange, which no broker tells of. Defaults to `false`.",
		},
		"migrating": schema.BoolAttribute{
			Computed:            true,
			MarkdownDescription: "`true` while a migration of the queue that was interrupted waits to be finished, which the next apply does; null otherwise.",
		},
		"timeouts": migrateTimeouts(ctx),
	}
}

func migrateTimeouts(ctx context.Context) schema.Attribute {
	attribute := timeouts.Attributes(ctx, timeouts.Opts{
		Update: true, UpdateDescription: "How long an update may take that migrates the queue. In half of it the queue has to be empty, which takes its consumers to settle what they hold; otherwise it is undone. Defaults to an hour.",
		Delete: true, DeleteDescription: "How long a delete may take to finish a migration that was interrupted, which comes before it. Defaults to an hour.",
	})
	if nested, ok := attribute.(schema.SingleNestedAttribute); ok {
		nested.MarkdownDescription = "How long operations may take, as durations such as `30m`."
		return nested
	}
	return attribute
}

// migrates reports whether a change of arguments is to be an update.
func (m *migrateModel) migrates() bool { return m.OnArgumentChange.ValueString() == onChangeMigrate }

// keepWhileMigrating reports whether the state is to be kept as it is, because a migration was interrupted: the queue may
// be away, and its bindings are elsewhere. Without arguments it is being imported, and there is nothing to keep.
func (m *migrateModel) keepWhileMigrating(migrating bool, arguments types.Map) bool {
	m.Migrating = types.BoolNull()
	if migrating {
		m.Migrating = types.BoolValue(true)
	}
	return migrating && !arguments.IsNull()
}

// migrationPlan is what a plan says about a queue that may have to be migrated.
type migrationPlan struct {
	plan, state *migrateModel // state is nil where there is none
	part        *partModel
	// queue is the queue as it is to be, and shown what the state has of it.
	queue topology.Queue
	shown map[string]string
	// sequenced: the queue keeps an order.
	sequenced bool
}

func (m *topicModel) migration(ctx context.Context, state *topicModel, objects topology.Objects) migrationPlan {
	p := migrationPlan{plan: &m.migrateModel, part: &m.partModel, queue: objects.Queues[0], sequenced: m.Sequenced.ValueBool()}
	if state != nil && state.SequenceShards.IsNull() { // shards are never migrated
		p.state, p.shown = &state.migrateModel, mapOf(ctx, state.Arguments)
	}
	return p
}

func (m *deadEndModel) migration(ctx context.Context, state *deadEndModel, objects topology.Objects) migrationPlan {
	p := migrationPlan{plan: &m.migrateModel, part: &m.partModel, queue: objects.Queues[0]}
	if state != nil {
		p.state, p.shown = &state.migrateModel, mapOf(ctx, state.Arguments)
	}
	return p
}

func (p migrationPlan) vhost() string { return p.part.VHost.ValueString() }

func (p migrationPlan) options(ctx context.Context, client *rabbitmqadmin.Client) migration.Options {
	return migration.Options{
		Client: client, VHost: p.vhost(), Queue: p.queue, Ignore: stringsOf(ctx, p.part.IgnoreArguments),
		AllowDefaultExchangeLoss: p.plan.AllowDefaultExchangeLoss.ValueBool(), Progress: logProgress(ctx, p.queue.Name),
	}
}

// differences are those that only another queue can repair.
func (p migrationPlan) differences(ctx context.Context) []topology.Difference {
	return queueDifferences(p.queue, p.shown, stringsOf(ctx, p.part.IgnoreArguments))
}

// planMigration has a replacement that is about nothing but arguments be an update, and says what that does.
func (rt *runtime) planMigration(ctx context.Context, p migrationPlan, resp *resource.ModifyPlanResponse) {
	p.plan.Migrating = types.BoolNull()
	if p.sequenced && p.plan.migrates() {
		resp.Diagnostics.AddAttributeError(path.Root("on_argument_change"), "A sequenced topic is not migrated",
			fmt.Sprintf("Queue %q keeps the messages of a key in order, also across shards, which moving them would not. Leave on_argument_change out: the topic is replaced only while it is empty. "+
				"settings_via = %q has most changes be updates in place.", p.queue.Name, topology.ViaPolicy))
		return
	}
	if p.state == nil {
		return
	}
	interrupted := p.state.Migrating.ValueBool()
	if interrupted {
		resp.Diagnostics.AddWarning(fmt.Sprintf("An interrupted migration of queue %q is to be finished", p.queue.Name),
			fmt.Sprintf("In vhost %q messages of queue %q, or its bindings, are where an apply that did not come to its end left them: in queue %q, and at the exchange of that name. "+
				"Apply moves them back, unless another one still works on the queue, which it then says. If the queue is then not as it is to be, it is changed after that.", p.vhost(), p.queue.Name, p.queue.Migrating().Queue.Name))
	}
	if !p.plan.migrates() || len(resp.RequiresReplace) == 0 || slices.ContainsFunc(resp.RequiresReplace, func(at path.Path) bool { return !isOfArguments(at) }) {
		return
	}
	resp.RequiresReplace = nil
	differences := describeQueue(p.queue, p.differences(ctx))
	text := fmt.Sprintf("RabbitMQ cannot change a queue's arguments:\n%s\nApply moves the messages of queue %q in vhost %q to queue %q, makes the queue anew, and moves them back. "+
		"What is published to its exchanges meanwhile waits with them, and consumers get it when it is back; they are cancelled once, and have to subscribe again. "+
		"Messages keep all but how often they were delivered: retries in place begin again.", differences, p.queue.Name, p.vhost(), p.queue.Migrating().Queue.Name)
	for _, d := range rt.holding(ctx, p.vhost(), []string{p.queue.Name}) {
		text += fmt.Sprintf(" Now %s.", d)
	}
	resp.Diagnostics.AddAttributeWarning(path.Root("arguments"), fmt.Sprintf("Queue %q is to be migrated", p.queue.Name), text)
	if err := rt.checkMigration(ctx, p); err != nil {
		advice := fmt.Sprintf("\nWith on_argument_change = %q it is replaced while it is empty", onChangeReplace)
		var byName *migration.ByNameError
		if errors.As(err, &byName) {
			advice += "; allow_default_exchange_loss accepts what is lost through the default exchange"
		}
		resp.Diagnostics.AddAttributeError(path.Root("on_argument_change"), "The queue cannot be migrated", sentence(err)+advice+".")
	}
}

// planUnknown plans a change of a queue whose arguments depend on something that is not known yet. Where it is migrated that is
// an update, which does what it turns out to take; otherwise the queue is replaced.
func (m *migrateModel) planUnknown(queues []string, depends map[string]attr.Value, resp *resource.ModifyPlanResponse) {
	if !m.migrates() {
		replaceUnknown(resp, depends)
		return
	}
	resp.RequiresReplace = slices.DeleteFunc(resp.RequiresReplace, isOfArguments)
	for _, name := range slices.Sorted(maps.Keys(depends)) {
		if !fullyKnown(depends[name]) {
			resp.Diagnostics.AddAttributeWarning(path.Root(name), fmt.Sprintf("Queue %q may have to be migrated", queues[0]),
				fmt.Sprintf("An argument of the queue depends on %s, which is not known yet. If it turns out to be another one, apply migrates the queue, or refuses to.", name))
		}
	}
}

// isOfArguments reports whether a migration does what a change of this attribute takes.
func isOfArguments(at path.Path) bool {
	return at.Equal(path.Root("settings_via")) || len(at.Steps()) > 1 && at.Steps()[0].Equal(path.PathStepAttributeName("arguments"))
}

// checkMigration asks before an apply what an apply would refuse.
func (rt *runtime) checkMigration(ctx context.Context, p migrationPlan) error {
	client, err := rt.asker()
	if err != nil || rt.applying.Load() {
		return nil //nolint:nilerr // an apply asks again
	}
	live, found, err := client.View().FindQueue(ctx, p.vhost(), p.queue.Name)
	if err != nil || !found {
		return nil //nolint:nilerr // an apply asks again
	}
	return migration.Check(ctx, p.options(ctx, client), live)
}

// isMigrating reports whether a migration of a queue was begun and not finished. Where that cannot be told, nothing may be
// concluded from a queue that is not there: its messages may be in another one.
func isMigrating(ctx context.Context, at interface {
	Exchange(ctx context.Context, vhost, name string) (rabbitmqadmin.LiveExchange, error)
}, vhost, queue string,
) (bool, error) {
	hub, err := at.Exchange(ctx, vhost, topology.Queue{Name: queue}.Migrating().Switch)
	switch {
	case errors.Is(err, rabbitmqadmin.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("it cannot be told whether a migration of queue %q was interrupted: %w; nothing was changed, try again when the broker answers", queue, err)
	}
	_, begun := topology.Replacing(hub.Arguments)
	return begun, nil
}

// migrate does what a plan said about a queue that is to be migrated, or whose migration is to be finished.
func (rt *runtime) migrate(ctx context.Context, p migrationPlan, diags *diag.Diagnostics) error {
	if p.shown == nil || len(p.differences(ctx)) == 0 && !p.state.Migrating.ValueBool() {
		return nil
	}
	if p.part.viaPolicy() {
		// No message is in a queue before its policy is, whose settings the old queue has too.
		if err := rt.repairPolicies(ctx, p.vhost(), p.part.MergePolicy.ValueBool(), []topology.Queue{p.queue}); err != nil {
			return err
		}
	}
	admin, err := rt.admin()
	if err != nil {
		return err
	}
	limit, failed := p.plan.Timeouts.Update(ctx, defaultMigrationTimeout)
	if diags.Append(failed...); failed.HasError() {
		return nil
	}
	defer rt.locks.lock(objectKey("queue", p.vhost(), p.queue.Name))()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	report, err := migration.Run(ctx, p.options(ctx, admin))
	if err != nil {
		return unfinished(err, p.vhost(), p.queue, report, fmt.Sprintf("timeouts.update is %s", limit))
	}
	diags.AddWarning(fmt.Sprintf("Queue %q was migrated", p.queue.Name), tally(p.vhost(), p.queue.Name, report)+".")
	return nil
}

// tally says what a run moved, and what of that may be there twice.
func tally(vhost, queue string, report migration.Report) string {
	text := fmt.Sprintf("In vhost %q %d messages were moved out of queue %q and %d back into it", vhost, report.Out, queue, report.Back)
	if report.Resumed {
		text += ". This went on with what an earlier apply had begun; messages that were on their way when that was killed may be there twice"
	}
	if report.Doubtful > 0 {
		text += fmt.Sprintf(". %d of them may be there twice, because a connection was lost", report.Doubtful)
	}
	return text
}

// unfinished says of a run that failed what is where and what goes on with it; bound is what bounded it.
func unfinished(err error, vhost string, queue topology.Queue, report migration.Report, bound string) error {
	text := tally(vhost, queue.Name, report)
	var undone *migration.UndoneError
	if !errors.As(err, &undone) {
		text += fmt.Sprintf(". What is not back yet is in queue %q, if there is one: apply again, which goes on from there", queue.Migrating().Queue.Name)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		text += "; " + bound
	}
	return fmt.Errorf("%w.\nUntil then: %s", err, text)
}

// removeMigrated deletes queues after their migrations, if any.
func (rt *runtime) removeMigrated(ctx context.Context, m *migrateModel, request rabbitmqadmin.SafeDelete, exchanges []topology.Exchange) error {
	admin, err := rt.admin()
	if err != nil {
		return err
	}
	for _, queue := range request.Queues {
		if err := rt.finishMigration(ctx, admin, m, request.VHost, queue); err != nil {
			return err
		}
	}
	if err := rt.remove(ctx, request, exchanges); err != nil || !m.migrates() {
		return err
	}
	// Another apply, of an unlocked state, may have begun to migrate a queue since that was looked at, and then the queue was empty
	// because its messages are elsewhere. To keep such an apply away by its lock would take a connection for every queue that
	// is deleted. To look again does: a run that begins after that finds no queue and has none of its messages.
	for _, queue := range request.Queues {
		switch migrating, err := isMigrating(ctx, admin, request.VHost, queue); {
		case err != nil:
			return fmt.Errorf("queue %q in vhost %q was deleted, and the resource is kept all the same: %w", queue, request.VHost, err)
		case migrating:
			return fmt.Errorf("queue %q in vhost %q was deleted while another apply began to migrate it, so that messages may be in queue %q. "+
				"The resource is kept: wait until the other apply has ended, and destroy again, which brings them back first",
				queue, request.VHost, topology.Queue{Name: queue}.Migrating().Queue.Name)
		}
	}
	return nil
}

// finishMigration brings everything back into a queue that is to be deleted, so that what it holds is seen and nothing is left
// behind.
func (rt *runtime) finishMigration(ctx context.Context, admin *rabbitmqadmin.Client, m *migrateModel, vhost, name string) error {
	migrating, err := isMigrating(ctx, admin.View(), vhost, name)
	if err != nil || !migrating {
		return err
	}
	limit, failed := m.Timeouts.Delete(ctx, defaultMigrationTimeout)
	if failed.HasError() {
		return errors.New(failed[0].Detail())
	}
	defer rt.locks.lock(objectKey("queue", vhost, name))()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	queue := topology.Queue{Name: name}
	report, err := migration.Run(ctx, migration.Options{Client: admin, VHost: vhost, Queue: queue, Keep: true, Progress: logProgress(ctx, name)})
	if err != nil {
		err = fmt.Errorf("an interrupted migration has to be finished before the queue is deleted: %w", err)
		return unfinished(err, vhost, queue, report, fmt.Sprintf("timeouts.delete is %s", limit))
	}
	return nil
}

// progressEvery is the least time between two lines of the log about one step.
const progressEvery = 5 * time.Second

// logProgress logs each step, now and then how far it is, and how far it came.
func logProgress(ctx context.Context, queue string) func(migration.Progress) {
	var mu sync.Mutex
	var last migration.Progress
	var said time.Time
	unsaid := false // last was not said
	say := func(p migration.Progress) {
		tflog.Info(ctx, "migrating a queue: "+string(p.Step), map[string]any{"queue": queue, "moved": p.Moved, "left": p.Left, "waiting": p.Waiting})
	}
	return func(p migration.Progress) {
		mu.Lock()
		defer mu.Unlock()
		begins := p.Step != last.Step
		if begins && unsaid {
			say(last)
		}
		last, unsaid = p, !begins && time.Since(said) < progressEvery
		if !unsaid {
			said = time.Now()
			say(p)
		}
	}
}
