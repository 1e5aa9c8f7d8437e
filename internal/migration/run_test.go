package migration

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// refused checks that a run changes nothing and says why.
func (y *yard) refused(o Options, essentials ...string) {
	y.t.Helper()
	_, err := Run(y.t.Context(), o)
	if err == nil {
		y.t.Fatal("it ran")
	}
	for _, text := range append(essentials, `queue "orders"`) {
		if !strings.Contains(err.Error(), text) {
			y.t.Errorf("%q is not in: %v", text, err)
		}
	}
	y.settled(y.before())
}

func TestRefused(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	for name, tc := range map[string]struct {
		prepare    func(y *yard, o *Options)
		essentials []string
	}{
		"the broker refuses the arguments": {func(_ *yard, o *Options) {
			o.Queue.Arguments[topology.ArgMessageTTL] = "soon"
		}, []string{"nothing was changed, because the broker refuses the new arguments", topology.ArgMessageTTL}},
		"it is dead-lettered to by its name": {func(y *yard, _ *Options) {
			y.request(http.MethodPut, "queues/%s/hold", map[string]any{"durable": true, "arguments": map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}})
		}, []string{"dead-lettered to by its name", `by ["hold"]`}},
		"it would drop messages": {func(y *yard, o *Options) {
			y.fill(3)
			o.Queue.Arguments[topology.ArgMaxLength] = int64(2)
		}, []string{"holds 3 messages", "would drop the oldest"}},
		"it may drop messages": {func(y *yard, o *Options) {
			y.fill(3)
			o.Queue.Arguments[topology.ArgMaxLengthBytes] = int64(1 << 20)
		}, []string{"holds 3 messages", "x-max-length-bytes = 1048576", "may drop the oldest"}},
		"a policy bounds the migrating queue": {func(y *yard, _ *Options) {
			y.request(http.MethodPut, "policies/%s/short", map[string]any{"pattern": "^orders-", "apply-to": "queues", "definition": map[string]any{"max-length": 10}})
		}, []string{`"orders-migrating"`, `policy "short"`, "max-length"}},
		"it keeps an order": {func(_ *yard, o *Options) {
			o.Queue.Arguments[topology.ArgSingleActiveConsumer] = true
		}, []string{"one consumer at a time", "only while it is empty"}},
		"the migrating queue is somebody's, and empty": {func(y *yard, _ *Options) {
			y.request(http.MethodPut, "queues/%s/orders-migrating", map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "classic"}})
		}, []string{`there is a queue "orders-migrating", which no migration made`, "its name is needed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, b, topology.Classic, 0)
			o := y.options()
			tc.prepare(y, &o)
			if strings.HasPrefix(name, "the migrating queue") {
				if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), tc.essentials[0]) || !strings.Contains(err.Error(), tc.essentials[1]) {
					t.Errorf("%v", err)
				}
				if status, answer := y.request(http.MethodDelete, "queues/%s/orders-migrating", nil); status >= http.StatusMultipleChoices {
					t.Errorf("it was deleted: %d %s", status, answer)
				}
				return
			}
			y.refused(o, tc.essentials...)
		})
	}
}

func TestWithoutAMQP(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t), topology.Classic, 0)
	o := y.options()
	o.Client = y.client(y.b.ManagementURL(), "")
	if _, err := Run(t.Context(), o); !errors.Is(err, ErrNoAMQP) {
		t.Errorf("%v", err)
	}
}

// TestProgress: at the end of each step all that was moved in it is told.
func TestProgress(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t), topology.Classic, 0)
	y.fill(100)
	o := y.options()
	last := map[Step]Progress{}
	var steps []Step
	o.Progress = func(p Progress) {
		if len(steps) == 0 || steps[len(steps)-1] != p.Step {
			steps = append(steps, p.Step)
		}
		last[p.Step] = p
	}
	y.runTo(o)
	if want := []Step{StepDivert, StepEmpty, StepReplace, StepReturn, StepRestore}; !slices.Equal(steps, want) {
		t.Errorf("the steps are %q, want %q", steps, want)
	}
	for step, moved := range map[Step]int{StepDivert: 0, StepEmpty: 100, StepReplace: 100, StepReturn: 100, StepRestore: 100} {
		if want := (Progress{Step: step, Moved: moved}); last[step] != want {
			t.Errorf("the last of a step is %+v, want %+v", last[step], want)
		}
	}
}

// TestUndone is about a broker that takes the arguments at first, and refuses them when there is no way back any more.
func TestUndone(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t), topology.Classic, 0)
	ids := y.fill(100)
	o := y.options()
	o.Client = y.refusing()
	_, err := Run(t.Context(), o)
	var undone *UndoneError
	if !errors.As(err, &undone) || !strings.Contains(err.Error(), "invalid arg") || !strings.Contains(err.Error(), "this was undone") {
		t.Errorf("%v", err)
	}
	y.settled(y.before())
	y.exactly(y.deliveries(), ids, 0)
}

// TestConsumerThatHolds: a queue is not deleted under a consumer that holds a message. Where that lasts too long everything is
// undone.
func TestConsumerThatHolds(t *testing.T) {
	t.Parallel()
	for _, kind := range []topology.QueueType{topology.Classic, topology.Quorum} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			y := newYard(t, brokertest.Shared(t), kind, 0)
			ids := y.fill(20)
			ch := brokertest.Channel(t, y.b, y.vhost)
			d, ok, err := ch.Get("orders", false)
			if err != nil || !ok {
				t.Fatalf("%v %v", ok, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			_, err = Run(ctx, y.options())
			var undone *UndoneError
			if !errors.As(err, &undone) || !strings.Contains(err.Error(), "1 unacknowledged") {
				t.Fatalf("%v", err)
			}
			y.settled(y.before())

			// It settles while the next run waits.
			o := y.options()
			waiting := make(chan struct{}, 1)
			o.Progress = func(p Progress) {
				if strings.Contains(p.Waiting, "1 unacknowledged") {
					select {
					case waiting <- struct{}{}:
					default:
					}
				}
			}
			go func() {
				<-waiting
				if err := ch.Ack(d.DeliveryTag, false); err != nil {
					t.Error(err)
				}
			}()
			y.runTo(o)
			y.settled(y.after())
			y.exactly(y.deliveries(), ids[1:], 0)
		})
	}
}

// TestBindingsMadeMeanwhile: a binding that is made while the switch is thrown is led through it too.
func TestBindingsMadeMeanwhile(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t), topology.Quorum, 0)
	y.fill(10)
	ch := brokertest.Channel(t, y.b, y.vhost)
	d, _, err := ch.Get("orders", false)
	must(t, err)
	o := y.options()
	late := topology.Binding{Source: "direct", Destination: "orders", DestinationType: topology.BindingToQueue, RoutingKey: "late", Arguments: topology.Arguments{}}
	c := y.client(y.b.ManagementURL(), y.b.Address())
	bound := false
	o.Progress = func(p Progress) {
		if p.Waiting == "" || bound {
			return
		}
		bound = true
		if err := errors.Join(c.Bind(t.Context(), y.vhost, late), ch.Ack(d.DeliveryTag, false)); err != nil {
			t.Error(err)
		}
	}
	y.runTo(o)
	y.bindings = append(y.bindings, late)
	y.settled(y.after())
}

// TestBindingsMadeOnTheWayBack: a consumer that was cancelled binds the queue again when it subscribes again. What is
// published after that is there once, although the switch leads to the migrating queue.
func TestBindingsMadeOnTheWayBack(t *testing.T) {
	t.Parallel()
	for name, moved := range map[string]int{"before anything is moved": 0, "while messages are moved": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, brokertest.Shared(t), topology.Classic, 0)
			y.fill(10_000)
			again := y.bindings[slices.IndexFunc(y.bindings, func(b topology.Binding) bool { return b.Source == "topic" })]
			c := y.client(y.b.ManagementURL(), y.b.Address())
			o := y.options()
			bound, published := false, 0
			o.Progress = func(p Progress) {
				switch {
				case p.Step != StepReturn || p.Moved < moved:
				case !bound:
					bound = true
					if err := c.Bind(t.Context(), y.vhost, again); err != nil {
						t.Error(err)
					}
				case p.Moved > 0 && published == 0:
					brokertest.Publish(t, y.b, y.vhost, "topic", "order.made", amqp091.Publishing{MessageId: "late"})
					published++
				}
			}
			y.runTo(o)
			y.settled(y.after())
			arrived := 0
			for _, d := range y.deliveries() {
				if d.MessageId == "late" {
					arrived++
				}
			}
			if arrived != published || published == 0 {
				t.Errorf("%d messages were published meanwhile, and %d are there", published, arrived)
			}
		})
	}
}
