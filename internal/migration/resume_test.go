package migration

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// leftover is what a run that was killed has left, made by hand.
type leftover struct {
	*yard
	admin *rabbitmqadmin.Client
	names topology.Migrating
}

// left makes the switch, which remembers what the queue was.
func (y *yard) left(replacing topology.Queue) leftover {
	y.t.Helper()
	l := leftover{yard: y, admin: y.client(y.b.ManagementURL(), y.b.Address()), names: y.after().Migrating()}
	must(y.t, l.admin.CreateExchange(y.t.Context(), y.vhost, rabbitmqadmin.LiveExchange{
		Name: l.names.Switch, Type: fanout, Durable: true, Arguments: l.names.SwitchArguments(replacing.Arguments),
	}))
	return l
}

// diverted leads the bindings to the switch, and makes the branch and the migrating queue with messages in it.
func (l leftover) diverted(messages int) []string {
	l.t.Helper()
	ctx := l.t.Context()
	must(l.t, l.admin.CreateExchange(ctx, l.vhost, rabbitmqadmin.LiveExchange{Name: l.names.Branch, Type: fanout, Durable: true}))
	for _, b := range l.bindings {
		to := b
		to.Destination, to.DestinationType = l.names.Switch, topology.BindingToExchange
		must(l.t, errors.Join(l.admin.Bind(ctx, l.vhost, to), l.admin.Unbind(ctx, l.vhost, b)))
	}
	must(l.t, l.admin.CreateQueue(ctx, l.vhost, l.names.Queue))
	ids, published := make([]string, messages), make([]amqp091.Publishing, messages)
	for i := range ids {
		ids[i] = fmt.Sprintf("m%05d", i)
		published[i] = message(ids[i])
	}
	brokertest.Publish(l.t, l.b, l.vhost, "", l.names.Queue.Name, published...)
	return ids
}

// deleted deletes the queue while everything goes to the migrating queue.
func (l leftover) deleted() {
	l.t.Helper()
	must(l.t, errors.Join(l.admin.Bind(l.t.Context(), l.vhost, way(l.names.Branch, l.names.Queue.Name)), l.admin.DeleteQueue(l.t.Context(), l.vhost, "orders")))
}

// TestResumed is about what was left, and a configuration that is another one by now.
func TestResumed(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	for name, tc := range map[string]struct {
		// prepare makes what is left, and returns the messages that are to be in the queue at the end.
		prepare func(y *yard, o *Options) []string
		// undone is what the run says; "" where it succeeds.
		undone string
		want   func(y *yard) topology.Queue
	}{
		"a probe, and the queue is to be kept": {func(y *yard, o *Options) []string {
			l := y.left(y.before())
			probe := y.after()
			probe.Name = l.names.Queue.Name
			must(y.t, l.admin.CreateQueue(y.t.Context(), y.vhost, probe))
			o.Queue, o.Keep = topology.Queue{Name: "orders"}, true
			return y.fill(10)
		}, "", (*yard).before},
		"a probe, and what is wanted was taken back": {func(y *yard, o *Options) []string {
			l := y.left(y.before())
			probe := y.after()
			probe.Name = l.names.Queue.Name
			must(y.t, l.admin.CreateQueue(y.t.Context(), y.vhost, probe))
			o.Queue = y.before()
			return y.fill(10)
		}, "", (*yard).before},
		"bindings half-way, and the queue is to be kept": {func(y *yard, o *Options) []string {
			l := y.left(y.before())
			ids := l.diverted(10)
			must(y.t, errors.Join(l.admin.Bind(y.t.Context(), y.vhost, way(l.names.Branch, l.names.Queue.Name)), l.admin.Bind(y.t.Context(), y.vhost, y.bindings[0])))
			o.Queue, o.Keep = topology.Queue{Name: "orders"}, true
			return ids
		}, "", (*yard).before},
		"no queue, and a limit that would drop what waits": {func(y *yard, o *Options) []string {
			l := y.left(y.before())
			ids := l.diverted(20)
			l.deleted()
			o.Queue.Arguments[topology.ArgMaxLength] = int64(10)
			return ids
		}, "holds 20 messages", (*yard).before},
		"no queue, and others dead-letter to it by its name": {func(y *yard, _ *Options) []string {
			l := y.left(y.before())
			ids := l.diverted(20)
			l.deleted()
			y.request(http.MethodPut, "queues/%s/hold", map[string]any{"durable": true, "arguments": map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}})
			return ids
		}, "dead-lettered to by its name", (*yard).before},
		"no queue, and it is to be kept": {func(y *yard, o *Options) []string {
			l := y.left(y.before())
			ids := l.diverted(20)
			l.deleted()
			o.Queue, o.Keep = topology.Queue{Name: "orders"}, true
			return ids
		}, "", (*yard).before},
		"messages that nothing leads to, and the queue was made again as wanted": {func(y *yard, _ *Options) []string {
			l := y.left(y.before())
			ids := l.diverted(20)
			must(y.t, errors.Join(l.admin.DeleteQueue(y.t.Context(), y.vhost, "orders"), l.admin.CreateQueue(y.t.Context(), y.vhost, y.after())))
			return ids
		}, "", (*yard).after},
		"messages that nothing leads to, and the queue was made again otherwise": {func(y *yard, _ *Options) []string {
			l := y.left(y.before())
			return l.diverted(20)
		}, "", (*yard).after},
		"a switch that remembers an older queue, and what is wanted is refused": {func(y *yard, o *Options) []string {
			older := y.before()
			older.Arguments[topology.ArgMessageTTL] = int64(1)
			y.left(older)
			o.Client = y.refusing()
			return y.fill(10)
		}, "invalid arg", (*yard).before},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, b, topology.Classic, 0)
			o := y.options()
			ids := tc.prepare(y, &o)
			_, err := Run(t.Context(), o)
			var undone *UndoneError
			switch {
			case tc.undone == "":
				must(t, err)
			case !errors.As(err, &undone) || !strings.Contains(err.Error(), tc.undone) || undone.Other:
				t.Errorf("%v", err)
			}
			y.settled(tc.want(y))
			y.exactly(y.deliveries(), ids, 0)
		})
	}
}

// refusing is a client of a broker that refuses the queue when it is made for the first time.
func (y *yard) refusing() *rabbitmqadmin.Client {
	y.t.Helper()
	g := newGate(y.t, y.b, 0, func() {})
	refused := false
	g.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if refused || !refuse(http.MethodPut, "/orders")(w, r) {
			return false
		}
		refused = true
		return true
	}
	return y.client(g.management, g.amqp)
}

// TestDeletedWithoutAnAnswer: the queue is deleted and nobody learns of it. The way back makes the new one, and says so.
func TestDeletedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t), topology.Classic, 0)
	ids := y.fill(10)
	g := newGate(t, y.b, 0, func() {})
	g.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete || !strings.HasSuffix(r.URL.Path, "/orders") || !strings.HasPrefix(r.URL.Path, "/api/queues/") {
			return false
		}
		y.request(http.MethodDelete, "queues/%s/orders", nil)
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	o := y.options()
	o.Client = y.client(g.management, g.amqp)
	y.runTo(o)
	y.settled(y.after())
	y.exactly(y.deliveries(), ids, 0)
}

// TestUnauthorizedIsNoRefusal: a token that expires says nothing about the arguments, and the next run goes on.
func TestUnauthorizedIsNoRefusal(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/orders-migrating", "/orders"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, brokertest.Shared(t), topology.Classic, 0)
			ids := y.fill(10)
			g := newGate(t, y.b, 0, func() {})
			g.answer = func(w http.ResponseWriter, r *http.Request) bool {
				expired := r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/api/queues/") && strings.HasSuffix(r.URL.Path, path)
				if expired {
					w.WriteHeader(http.StatusUnauthorized)
				}
				return expired
			}
			o := y.options()
			o.Client = y.client(g.management, g.amqp)
			_, err := Run(t.Context(), o)
			var undone *UndoneError
			if !errors.Is(err, rabbitmqadmin.ErrUnauthorized) || errors.As(err, &undone) || strings.Contains(err.Error(), "refuses the new arguments") {
				t.Errorf("%v", err)
			}
			y.runTo(y.options())
			y.settled(y.after())
			y.exactly(y.deliveries(), ids, 0)
		})
	}
}
