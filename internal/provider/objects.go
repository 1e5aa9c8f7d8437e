package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// rollbackTimeout bounds what a failed create does to remove what it made,
// after the run itself may have been cancelled.
const rollbackTimeout = 60 * time.Second

// createRequest asks for the objects of one resource.
type createRequest struct {
	vhost   string
	objects topology.Objects
	// adopt takes over queues that exist already and differ in nothing but ignored arguments.
	adopt  bool
	ignore []string
	// resourceType and importID make up the import block that the error shows.
	resourceType, importID string
}

// create makes every object that is missing: exchanges, queues, then bindings.
// It looks at all queues before it makes any. Where it fails later it removes
// the objects it made whose queues are still empty, and returns the names of
// queues it had to leave.
func (rt *runtime) create(ctx context.Context, req createRequest) (left []string, err error) {
	admin, err := rt.admin()
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(req.objects.Queues))
	for i, q := range req.objects.Queues {
		keys[i] = objectKey("queue", req.vhost, q.Name)
	}
	defer rt.locks.lock(keys...)()

	missing, err := rt.missing(ctx, admin, req)
	if err != nil {
		return nil, err
	}
	var made topology.Objects
	if err := rt.makeObjects(ctx, admin, req, missing, &made); err != nil {
		left, rollbackErr := rt.rollback(ctx, admin, req.vhost, made)
		return left, errors.Join(err, rollbackErr)
	}
	return nil, nil
}

// missing returns the queues that have to be made. A queue that is there is refused, unless it may be adopted.
func (rt *runtime) missing(ctx context.Context, admin *rabbitmqadmin.Client, req createRequest) ([]topology.Queue, error) {
	var missing []topology.Queue
	for _, q := range req.objects.Queues {
		live, err := admin.Queue(ctx, req.vhost, q.Name)
		switch {
		case errors.Is(err, rabbitmqadmin.ErrNotFound):
			missing = append(missing, q)
		case err != nil:
			return nil, err
		case !req.adopt:
			return nil, rt.existsError(req, q, live)
		default:
			if differences := breaking(q.Arguments, mirrorArguments(live), req.ignore); len(differences) > 0 {
				return nil, fmt.Errorf("queue %q in vhost %q exists and cannot be adopted, because RabbitMQ cannot change a queue's arguments:\n%s\n"+
					"Accept a difference with ignore_arguments, or import the queue to have it replaced:\n%s",
					q.Name, req.vhost, describe(differences), req.importBlock())
			}
		}
	}
	return missing, nil
}

// makeObjects creates and notes in made what it created.
func (rt *runtime) makeObjects(ctx context.Context, admin *rabbitmqadmin.Client, req createRequest, queues []topology.Queue, made *topology.Objects) error {
	for _, e := range req.objects.Exchanges {
		created, err := rt.ensureExchange(ctx, admin, req.vhost, e)
		if err != nil {
			return err
		}
		if created {
			made.Exchanges = append(made.Exchanges, e)
		}
	}
	for _, q := range queues {
		err := admin.CreateQueue(ctx, req.vhost, q)
		if !refused(err) {
			made.Queues = append(made.Queues, q) // also where the answer was lost: the queue may be there
		}
		if err != nil {
			return err
		}
		rt.noteCreated(objectKey("queue", req.vhost, q.Name))
	}
	for _, b := range req.objects.Bindings {
		made.Bindings = append(made.Bindings, b)
		if err := rt.bind(ctx, admin, req.vhost, b, req.objects.Exchanges); err != nil {
			return err
		}
	}
	for _, q := range queues {
		for _, b := range rt.takeCarried(objectKey("queue", req.vhost, q.Name)) {
			if err := admin.Bind(ctx, req.vhost, b); err != nil {
				return fmt.Errorf("queue %q was replaced and one of its bindings could not be given back: %w", q.Name, err)
			}
		}
	}
	return nil
}

// refused reports that the broker answered and said no, so that nothing was made.
func refused(err error) bool {
	var answer *rabbitmqadmin.Error
	var inequivalent *rabbitmqadmin.InequivalentError
	return errors.As(err, &inequivalent) || errors.As(err, &answer) && answer.Status >= 400 && answer.Status < 500
}

// ensureExchange declares an exchange of the contract. Several resources share it, so that finding it is no error.
func (rt *runtime) ensureExchange(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, e topology.Exchange) (created bool, err error) {
	defer rt.locks.lock(objectKey("exchange", vhost, e.Name))()
	live, err := admin.Exchange(ctx, vhost, e.Name)
	switch {
	case errors.Is(err, rabbitmqadmin.ErrNotFound):
		return true, admin.DeclareExchange(ctx, vhost, rabbitmqadmin.LiveExchange{Name: e.Name, VHost: vhost, Type: e.Type, Durable: true})
	case err != nil:
		return false, err
	}
	if shown := mirrorExchange(live); shown != e.Name {
		return false, fmt.Errorf("exchange %q in vhost %q exists as %s and the topology needs a durable %s exchange, which RabbitMQ cannot turn it into; "+
			"delete the exchange if nothing else uses it, or give the topic another name", e.Name, vhost, shown, e.Type)
	}
	return false, nil
}

// bind makes a binding. Where one of the resource's own exchanges is gone again (another resource may have removed it
// as unused at the same moment) it is declared once more.
func (rt *runtime) bind(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, b topology.Binding, own []topology.Exchange) error {
	err := admin.Bind(ctx, vhost, b)
	if !errors.Is(err, rabbitmqadmin.ErrNotFound) {
		return err
	}
	for _, e := range own {
		if e.Name != b.Source {
			continue
		}
		if _, err := rt.ensureExchange(ctx, admin, vhost, e); err != nil {
			return err
		}
		return admin.Bind(ctx, vhost, b)
	}
	return err
}

// rollback removes what a failed create made. A queue that holds messages by now stays.
func (rt *runtime) rollback(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, made topology.Objects) (left []string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	for _, q := range slices.Backward(made.Queues) {
		request := rabbitmqadmin.SafeDelete{VHost: vhost, Queues: []string{q.Name}}
		for _, b := range made.Bindings {
			if b.Destination == q.Name {
				request.OwnBindings = append(request.OwnBindings, b)
			}
		}
		if _, failed := admin.SafeDelete(ctx, request); failed != nil {
			left = append(left, q.Name)
			err = errors.Join(err, fmt.Errorf("what this apply had made was not removed again: %w", failed))
		}
	}
	for _, e := range made.Exchanges {
		if _, _, failed := rt.deleteExchange(ctx, admin, vhost, e); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return left, err
}

// deleteExchange removes an exchange of the contract unless something still uses it.
func (rt *runtime) deleteExchange(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, e topology.Exchange) (deleted bool, usedBy []string, err error) {
	if e.Shared {
		return false, nil, nil
	}
	defer rt.locks.lock(objectKey("exchange", vhost, e.Name))()
	return admin.DeleteExchangeIfUnused(ctx, vhost, e.Name)
}

// remove deletes queues through the client's safe delete, keeps the bindings that went with them for a replacement, and
// deletes the exchanges that nothing uses any more.
func (rt *runtime) remove(ctx context.Context, request rabbitmqadmin.SafeDelete, exchanges []topology.Exchange) error {
	admin, err := rt.admin()
	if err != nil {
		return err
	}
	keys := make([]string, len(request.Queues))
	for i, q := range request.Queues {
		keys[i] = objectKey("queue", request.VHost, q)
	}
	defer rt.locks.lock(keys...)()
	result, err := admin.SafeDelete(ctx, request)
	if err != nil {
		return err
	}
	for i, q := range request.Queues {
		var bindings []topology.Binding
		for _, b := range result.Bindings {
			if b.Destination == q {
				bindings = append(bindings, b)
			}
		}
		rt.carry(keys[i], bindings)
	}
	for _, e := range exchanges {
		if _, _, err := rt.deleteExchange(ctx, admin, request.VHost, e); err != nil {
			return err
		}
	}
	return nil
}

// existsError says that a queue was there before it was created, why that may be, and how to take it over.
func (rt *runtime) existsError(req createRequest, want topology.Queue, live rabbitmqadmin.LiveQueue) error {
	cause := "It may have been made by hand or by an application; or create_before_destroy, which a resource also inherits from one that depends on it, " +
		"creates the new queue while the old one of the same name is still there: remove that lifecycle setting, a queue can only be destroyed before it is created."
	if rt.wasCreated(objectKey("queue", req.vhost, want.Name)) {
		cause = "This very apply made it for another resource: two resources have one name. Give one of them another name, or remove it."
	}
	compared := "Its arguments are those of the configuration."
	if differences := breaking(want.Arguments, mirrorArguments(live), req.ignore); len(differences) > 0 {
		compared = "Its arguments differ from the configuration:\n" + describe(differences)
	}
	return fmt.Errorf("queue %q in vhost %q exists already, so it was not created and nothing was changed.\n%s\n%s\n"+
		"To manage it from here on, import it:\n%s\nor set adopt_existing = true.", want.Name, req.vhost, compared, cause, req.importBlock())
}

func (req createRequest) importBlock() string {
	return fmt.Sprintf("  import {\n    to = %s.NAME\n    id = %q\n  }", req.resourceType, req.importID)
}

// mirrorArguments is how a live queue shows in state: its arguments in canonical JSON, its type among them even where
// the broker keeps that apart, and whatever no queue of the contract is.
func mirrorArguments(live rabbitmqadmin.LiveQueue) map[string]string {
	shown := live.Arguments.Canonical()
	if live.Type != "" {
		shown[topology.ArgQueueType] = topology.CanonicalJSON(string(live.Type))
	}
	if !live.Durable {
		shown["durable"] = "false"
	}
	if live.AutoDelete {
		shown["auto_delete"] = "true"
	}
	if live.Exclusive {
		shown["exclusive"] = "true"
	}
	return shown
}

// mirrorExchange is how a live exchange shows in state: its name, and whatever no exchange of the contract is.
func mirrorExchange(live rabbitmqadmin.LiveExchange) string {
	var differs []string
	if live.Type != "direct" {
		differs = append(differs, live.Type)
	}
	if !live.Durable {
		differs = append(differs, "transient")
	}
	if live.AutoDelete {
		differs = append(differs, "auto-delete")
	}
	if live.Internal {
		differs = append(differs, "internal")
	}
	if len(differs) == 0 {
		return live.Name
	}
	return fmt.Sprintf("%s (%s)", live.Name, strings.Join(differs, ", "))
}

// breaking are the differences between what is computed and what a broker shows that only a new queue can repair.
func breaking(want topology.Arguments, live map[string]string, ignore []string) []topology.Difference {
	have, err := topology.ParseCanonical(live)
	if err != nil {
		have = topology.Arguments{} // state holds what mirrorArguments wrote
	}
	var differences []topology.Difference
	for _, d := range topology.DiffArguments(want, have) {
		if d.Meaning != topology.EqualInEffect && !slices.Contains(ignore, d.Key) {
			differences = append(differences, d)
		}
	}
	return differences
}

// plannedArguments is what the plan shows for a queue: what is computed, with accepted differences left as they are.
func plannedArguments(want topology.Arguments, live map[string]string, ignore []string) (planned map[string]string, differences []topology.Difference) {
	planned = want.Canonical()
	if live == nil {
		return planned, nil
	}
	differences = breaking(want, live, ignore)
	open := map[string]bool{}
	for _, d := range differences {
		open[d.Key] = true
	}
	for key := range mergedKeys(planned, live) {
		if open[key] {
			continue
		}
		if value, ok := live[key]; ok {
			planned[key] = value
		} else {
			delete(planned, key)
		}
	}
	return planned, differences
}

func mergedKeys(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// describe lists differences for an error or a warning.
func describe(differences []topology.Difference) string {
	lines := make([]string, len(differences))
	for i, d := range differences {
		lines[i] = "  " + d.String()
	}
	return strings.Join(lines, "\n")
}
