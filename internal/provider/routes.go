package provider

import (
	"context"
	"errors"
	"fmt"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// ensureExchange declares an exchange of the contract. Several resources share it, so that finding it is no error.
func (rt *runtime) ensureExchange(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, e topology.Exchange) (created bool, err error) {
	defer rt.locks.lock(objectKey("exchange", vhost, e.Name))()
	if rt.wasCreated(ensuredKey(vhost, e)) {
		return false, nil
	}
	live, err := admin.View().Exchange(ctx, vhost, e.Name)
	if err == nil {
		// It may have been deleted, or made anew, since the view saw it.
		live, err = admin.Exchange(ctx, vhost, e.Name)
	}
	switch {
	case errors.Is(err, rabbitmqadmin.ErrNotFound):
		outcome, err := admin.DeclareExchange(ctx, vhost, rabbitmqadmin.LiveExchange{Name: e.Name, VHost: vhost, Type: e.Type, Durable: true})
		if err == nil {
			rt.noteCreated(ensuredKey(vhost, e))
		}
		if !inequivalent(err) {
			return outcome != rabbitmqadmin.Existed, err
		}
		if live, err = admin.Exchange(ctx, vhost, e.Name); err != nil {
			return false, err
		}
	case err != nil:
		return false, err
	}
	if shown := mirrorExchange(live, e.Type); shown != e.Name {
		return false, fmt.Errorf("exchange %q in vhost %q exists as %s and the topology needs a durable %s exchange, which RabbitMQ cannot turn it into; "+
			"delete the exchange if nothing else uses it, or give the topic another name", e.Name, vhost, shown, e.Type)
	}
	return false, nil
}

// ensuredKey is for an exchange of the contract that this run made: the other resources of its topic need not look.
func ensuredKey(vhost string, e topology.Exchange) string {
	return objectKey(e.Type+" exchange of the contract", vhost, e.Name)
}

// bind makes a binding. Where one of the resource's own exchanges is gone again (another resource may have removed it
// as unused at the same moment) it is declared once more.
func (rt *runtime) bind(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, b topology.Binding, own []topology.Exchange) error {
	err := rt.bindOnce(ctx, admin, vhost, b)
	if !rabbitmqadmin.IsMissingExchange(err) {
		return err
	}
	for _, e := range own {
		if e.Name != b.Source {
			continue
		}
		rt.forgetCreated(ensuredKey(vhost, e))
		if _, err := rt.ensureExchange(ctx, admin, vhost, e); err != nil {
			return err
		}
		return rt.bindOnce(ctx, admin, vhost, b)
	}
	return err
}

func (rt *runtime) bindOnce(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, b topology.Binding) error {
	err := admin.Bind(ctx, vhost, b)
	if err == nil && b.DestinationType != topology.BindingToExchange {
		rt.noteCreated(routeKey(vhost, b))
	}
	return err
}

// routeKey is for a binding to a queue that this run made.
func routeKey(vhost string, b topology.Binding) string { return objectKey("binding", vhost, b.Key()) }

// wasRouted reports whether this run made a queue and its binding, so that a topic that needs both need not look.
func (rt *runtime) wasRouted(vhost string, b topology.Binding) bool {
	return rt.wasCreated(objectKey("queue", vhost, b.Destination)) && rt.wasCreated(routeKey(vhost, b))
}

// repairRoutes declares a resource's exchanges and bindings that are missing.
func (rt *runtime) repairRoutes(ctx context.Context, vhost string, objects topology.Objects) error {
	admin, err := rt.admin()
	if err != nil {
		return err
	}
	for _, e := range objects.Exchanges {
		if _, err := rt.ensureExchange(ctx, admin, vhost, e); err != nil {
			return err
		}
	}
	for _, b := range objects.Bindings {
		if err := rt.bind(ctx, admin, vhost, b, objects.Exchanges); err != nil {
			return err
		}
	}
	return nil
}

// deleteExchange removes an exchange of the contract unless something still uses it, or every topic does.
func (rt *runtime) deleteExchange(ctx context.Context, admin *rabbitmqadmin.Client, vhost string, e topology.Exchange) error {
	if e.Shared {
		return nil
	}
	defer rt.locks.lock(objectKey("exchange", vhost, e.Name))()
	rt.forgetCreated(ensuredKey(vhost, e))
	_, _, err := admin.DeleteExchangeIfUnused(ctx, vhost, e.Name)
	return err
}
