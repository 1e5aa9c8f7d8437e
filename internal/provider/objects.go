package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

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
	adopt bool
	// merge: the queues' own policies copy others that match them.
	merge  bool
	ignore []string
	// resourceType and importID make up the import block that the error shows.
	resourceType, importID string
	// diags takes warnings.
	diags *diag.Diagnostics
}

// create makes every object that is missing: exchanges, the queues' own policies,
// queues, then bindings. It looks at all queues before it makes any. Where it
// fails later it removes the objects it made whose queues are still empty, and
// returns the names of queues it had to leave.
func (rt *runtime) create(ctx context.Context, req createRequest) (left []string, err error) {
	admin, err := rt.admin()
	if err != nil {
		return nil, err
	}
	keys := queueKeys(req.vhost, queueNames(req.objects.Queues))
	defer rt.locks.lock(keys...)()

	c := creation{createRequest: req, rt: rt, admin: admin}
	for _, key := range keys {
		c.carried = append(c.carried, rt.takeCarried(key)...)
	}
	if err = c.look(ctx); err == nil {
		if err = c.make(ctx); err != nil {
			var rollbackErr error
			left, rollbackErr = c.rollback(ctx)
			err = errors.Join(err, rollbackErr)
		}
	}
	if err != nil && len(c.carried) > 0 {
		err = fmt.Errorf("%w\nThe queue that was to be replaced is deleted, and bindings that led to it and belong to no topic went with it; "+
			"create these again once the queue is back:\n%s", err, listBindings(c.carried))
	}
	return left, err
}

// creation is one create on its way.
type creation struct {
	createRequest
	rt    *runtime
	admin *rabbitmqadmin.Client
	// missing are the queues to make; the others are adopted.
	missing []topology.Queue
	// carried are the bindings of deleted queues that the new ones get back.
	carried []topology.Binding
	// made is what was made so far.
	made topology.Objects
	// policies are what the queues' own policies were that were written.
	policies []policyBefore
}

// look finds out which queues have to be made. A queue that is there is refused, unless it may be adopted. That there is
// none the view may say: what came into being since its list was read the declaration finds.
func (c *creation) look(ctx context.Context) error {
	live := make([]*rabbitmqadmin.LiveQueue, len(c.objects.Queues))
	if err := sideBySide(c.objects.Queues, func(i int, q topology.Queue) error {
		if _, listed, err := c.admin.View().FindQueue(ctx, c.vhost, q.Name); err != nil || !listed {
			return err
		}
		found, err := c.admin.Queue(ctx, c.vhost, q.Name)
		switch {
		case errors.Is(err, rabbitmqadmin.ErrNotFound):
			return nil
		case err != nil:
			return err
		}
		live[i] = &found
		return nil
	}); err != nil {
		return err
	}
	for i, q := range c.objects.Queues {
		switch {
		case live[i] == nil:
			c.missing = append(c.missing, q)
		case !c.adopt:
			return c.existsError(q, *live[i])
		default:
			if differences := queueDifferences(q, mirrorArguments(*live[i]), c.ignore); len(differences) > 0 {
				return fmt.Errorf("queue %q in vhost %q exists and cannot be adopted, because RabbitMQ cannot change a queue's arguments:\n%s\n"+
					"Accept a difference with ignore_arguments, or import the queue to have it replaced:\n%s",
					q.Name, c.vhost, describe(differences), c.importBlock())
			}
		}
	}
	return nil
}

// make creates what is missing and notes what it created.
func (c *creation) make(ctx context.Context) error {
	if err := c.makeExchanges(ctx); err != nil {
		return err
	}
	// Their exchanges are there, and no message is in a queue before its policy is: it would have no way out of it.
	var err error
	if c.policies, err = c.rt.putPolicies(ctx, c.admin, c.vhost, c.merge, c.objects.Queues); err != nil {
		return err
	}
	made := make([]bool, len(c.missing))
	err = sideBySide(c.missing, func(i int, q topology.Queue) error {
		outcome, err := c.admin.DeclareQueue(ctx, c.vhost, q)
		if err == nil && outcome == rabbitmqadmin.Existed || inequivalent(err) {
			// Somebody else made it since [creation.look], or no list has it because its node is down: it is not this resource's to delete.
			return fmt.Errorf("queue %q in vhost %q is there, and was not in the broker's list: somebody else made it while this apply ran, or the node that leads it is down. "+
				"It was not taken over, and what this apply had made is removed again; look at the node, and apply again to see how it compares", q.Name, c.vhost)
		}
		made[i] = !refused(err) // also where the answer was lost: the queue may be there
		return err
	})
	for i, q := range c.missing {
		if made[i] {
			c.made.Queues = append(c.made.Queues, q)
			c.rt.noteCreated(objectKey("queue", c.vhost, q.Name))
		}
	}
	if err != nil {
		return err
	}
	// Now that the queues name the exchanges nobody deletes them as unused; somebody may have just before.
	if err := c.makeExchanges(ctx); err != nil {
		return err
	}
	bound := make([]bool, len(c.objects.Bindings))
	err = sideBySide(c.objects.Bindings, func(i int, b topology.Binding) (err error) {
		bound[i], err = c.makeBinding(ctx, b)
		return err
	})
	for i, b := range c.objects.Bindings {
		if bound[i] {
			c.made.Bindings = append(c.made.Bindings, b)
		}
	}
	if err != nil {
		return err
	}
	return c.giveBack(ctx)
}

func (c *creation) makeExchanges(ctx context.Context) error {
	for _, e := range c.objects.Exchanges {
		created, err := c.rt.ensureExchange(ctx, c.admin, c.vhost, e)
		if err != nil {
			return err
		}
		if created {
			c.made.Exchanges = append(c.made.Exchanges, e)
		}
	}
	return nil
}

// makeBinding makes a binding, and reports whether it may be there because of that.
func (c *creation) makeBinding(ctx context.Context, b topology.Binding) (made bool, err error) {
	toMade := b.DestinationType != topology.BindingToExchange && slices.ContainsFunc(c.missing, func(q topology.Queue) bool { return q.Name == b.Destination })
	if !toMade {
		// What leads to an adopted queue already, or to an exchange, was not made here.
		have, err := bindingsBeside(ctx, c.admin, c.vhost, b)
		if err != nil {
			return false, err
		}
		if len(present([]topology.Binding{b}, have)) > 0 {
			return false, nil
		}
	}
	return true, c.rt.bind(ctx, c.admin, c.vhost, b, c.objects.Exchanges)
}

// giveBack restores the bindings that went with the queue that this one replaces.
func (c *creation) giveBack(ctx context.Context) error {
	var lost []topology.Binding
	for len(c.carried) > 0 {
		err := c.admin.Bind(ctx, c.vhost, c.carried[0])
		switch {
		case rabbitmqadmin.IsMissingExchange(err):
			// It was deleted since, or with its last binding: there is nothing to bind to.
			lost = append(lost, c.carried[0])
		case err != nil:
			return fmt.Errorf("giving a replaced queue its bindings back: %w", err)
		}
		c.carried = c.carried[1:]
	}
	if len(lost) > 0 {
		c.diags.AddWarning("Bindings of a replaced queue are gone",
			fmt.Sprintf("In vhost %q these bindings could not be given back, because their exchanges are gone:\n%s", c.vhost, listBindings(lost)))
	}
	return nil
}

// rollback removes what a failed create made. A queue that holds messages by now stays.
func (c *creation) rollback(ctx context.Context) (left []string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	for _, q := range slices.Backward(c.made.Queues) {
		request := rabbitmqadmin.SafeDelete{VHost: c.vhost, Queues: []string{q.Name}, OwnBindings: bindingsTo(c.made.Bindings, q.Name)}
		if _, failed := c.admin.SafeDelete(ctx, request); failed != nil {
			left = append(left, q.Name)
			err = errors.Join(err, fmt.Errorf("what this apply had made was not removed again: %w", failed))
			continue
		}
		c.rt.forgetCreated(objectKey("queue", c.vhost, q.Name))
	}
	err = errors.Join(err, restorePolicies(ctx, c.admin, c.vhost, c.policies, left))
	for _, b := range c.made.Bindings {
		if len(bindingsTo([]topology.Binding{b}, queueNames(c.made.Queues)...)) == 0 {
			err = errors.Join(err, c.admin.Unbind(ctx, c.vhost, b))
		}
	}
	for _, e := range c.made.Exchanges {
		err = errors.Join(err, c.rt.deleteExchange(ctx, c.admin, c.vhost, e))
	}
	return left, err
}

// inequivalent reports that the broker has another object of the name.
func inequivalent(err error) bool {
	var other *rabbitmqadmin.InequivalentError
	return errors.As(err, &other)
}

// refused reports that the broker answered and said no, so that nothing was made.
func refused(err error) bool {
	var answer *rabbitmqadmin.Error
	return errors.As(err, &answer) && answer.Status >= 400 && answer.Status < 500
}

// remove deletes queues through the client's safe delete and their own policies after them, keeps the bindings that went
// with them for a replacement, and deletes the exchanges that nothing uses any more.
func (rt *runtime) remove(ctx context.Context, request rabbitmqadmin.SafeDelete, exchanges []topology.Exchange) error {
	admin, err := rt.admin()
	if err != nil {
		return err
	}
	keys := queueKeys(request.VHost, request.Queues)
	defer rt.locks.lock(keys...)()
	policies := ownedPolicies(ctx, admin, request.VHost, request.Queues)
	if len(policies) > 0 {
		if err := mayWritePolicies(ctx, admin); err != nil {
			return err
		}
	}
	result, err := admin.SafeDelete(ctx, request)
	// The resource's own bindings are made anew, as far as the configuration still has them.
	foreign := without(result.Bindings, request.OwnBindings)
	for _, q := range result.Deleted {
		rt.carry(objectKey("queue", request.VHost, q), bindingsTo(foreign, q))
		if slices.Contains(policies, q) {
			if failed := admin.DeletePolicy(ctx, request.VHost, topology.OwnPolicyName(q)); failed != nil {
				err = errors.Join(err, fmt.Errorf("queue %q is deleted and its policy is left, which is to be deleted by hand: %w", q, failed))
			}
		}
	}
	if err != nil {
		return err
	}
	for _, b := range request.OwnBindings {
		// Those to queues went with them.
		if b.DestinationType != topology.BindingToExchange {
			continue
		}
		if err := admin.Unbind(ctx, request.VHost, b); err != nil {
			return err
		}
	}
	for _, e := range exchanges {
		if err := rt.deleteExchange(ctx, admin, request.VHost, e); err != nil {
			return err
		}
	}
	return nil
}

// existsError says that a queue was there before it was created, why that may be, and how to take it over.
func (c *creation) existsError(want topology.Queue, live rabbitmqadmin.LiveQueue) error {
	cause := existsCause
	if c.rt.wasCreated(objectKey("queue", c.vhost, want.Name)) {
		cause = "This very apply made it for another resource: two resources have one name. Give one of them another name, or remove it."
	}
	return fmt.Errorf("queue %q in vhost %q exists already, so it was not created and nothing was changed.\n%s\n%s\n"+
		"To manage it from here on, import it:\n%s\nor set adopt_existing = true", want.Name, c.vhost, compared("Its arguments", want, live, c.ignore), cause, c.importBlock())
}

// existsCause is why a queue may be there before it was created.
const existsCause = "It may have been made by hand, by an application, or by an earlier apply that was killed; or create_before_destroy, which a resource also inherits from one that depends on it, " +
	"creates the new queue while the old one of the same name is still there: remove that lifecycle setting, a queue can only be destroyed before it is created."

// compared says how a queue that is there differs from the one that is wanted; arguments is the subject of the sentence.
func compared(arguments string, want topology.Queue, live rabbitmqadmin.LiveQueue, ignore []string) string {
	differences := queueDifferences(want, mirrorArguments(live), ignore)
	if len(differences) == 0 {
		return arguments + " are those of the configuration."
	}
	return arguments + " differ from the configuration:\n" + describe(differences)
}

func (req createRequest) importBlock() string {
	return fmt.Sprintf("  import {\n    to = %s.NAME\n    id = %q\n  }", req.resourceType, req.importID)
}

func queueNames(queues []topology.Queue) []string {
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = q.Name
	}
	return names
}

func queueKeys(vhost string, queues []string) []string {
	keys := make([]string, len(queues))
	for i, q := range queues {
		keys[i] = objectKey("queue", vhost, q)
	}
	return keys
}

// bindingsTo are those of the bindings that lead to any of queues.
func bindingsTo(bindings []topology.Binding, queues ...string) []topology.Binding {
	var out []topology.Binding
	for _, b := range bindings {
		if slices.Contains(queues, b.Destination) {
			out = append(out, b)
		}
	}
	return out
}

// listBindings writes bindings for people, one a line.
func listBindings(bindings []topology.Binding) string {
	lines := make([]string, len(bindings))
	for i, b := range bindings {
		lines[i] = fmt.Sprintf("  exchange %q to queue %q with key %q", b.Source, b.Destination, b.RoutingKey)
		if len(b.Arguments) > 0 {
			lines[i] += " and arguments " + topology.CanonicalJSON(b.Arguments)
		}
	}
	return strings.Join(lines, "\n")
}
