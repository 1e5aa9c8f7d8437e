package rabbitmqadmin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

var bothTypes = []topology.QueueType{topology.Classic, topology.Quorum}

// withAMQP configures exact depths.
func withAMQP(t *testing.T, b *brokertest.Broker) func(*Config) {
	t.Helper()
	u, err := url.Parse(b.AMQPURL("/"))
	must(t, err)
	return func(cfg *Config) { cfg.AMQPEndpoints = []string{"amqp://" + u.Host} }
}

// bothWays runs a test without and with AMQP endpoints, in vhosts of their own.
func bothWays(t *testing.T, test func(t *testing.T, c *Client, b *brokertest.Broker, vhost string)) {
	t.Parallel()
	b := brokertest.Shared(t)
	for name, change := range map[string]func(*Config){"statistics": nil, "amqp": withAMQP(t, b)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, b, vhost := live(t, change)
			test(t, c, b, vhost)
		})
	}
}

func exists(t *testing.T, c *Client, vhost, queue string) bool {
	t.Helper()
	_, err := c.Queue(t.Context(), vhost, queue)
	if err != nil && !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func wantBindings(t *testing.T, c *Client, vhost, queue string, want ...topology.Binding) {
	t.Helper()
	got, err := c.QueueBindings(t.Context(), vhost, queue)
	must(t, err)
	if !slices.EqualFunc(got, want, sameBinding) {
		t.Errorf("bindings of %q\n got %+v\nwant %+v", queue, got, want)
	}
}

// wantRefused checks that nothing was deleted because of exactly these queues.
func wantRefused(t *testing.T, result SafeDeleteResult, err error, queues ...string) *NotEmptyError {
	t.Helper()
	var e *NotEmptyError
	if !errors.As(err, &e) {
		t.Fatalf("not refused: %+v, %v", result, err)
	}
	var got []string
	for _, d := range e.Depths {
		got = append(got, d.Queue)
	}
	if !slices.Equal(got, queues) || len(result.Deleted) != 0 {
		t.Errorf("refused because of %v (want %v), deleted %v", got, queues, result.Deleted)
	}
	return e
}

func TestLiveSafeDeleteEmpty(t *testing.T) {
	bothWays(t, func(t *testing.T, c *Client, _ *brokertest.Broker, vhost string) {
		makeExchange(t, c, vhost, "own", "direct")
		makeExchange(t, c, vhost, "foreign", "topic")
		makeQueue(t, c, vhost, "classic", topology.Classic, nil)
		makeQueue(t, c, vhost, "quorum", topology.Quorum, nil)
		makeQueue(t, c, vhost, "kept", topology.Quorum, nil)
		own1, own2 := bindingTo("own", "classic", "k"), bindingTo("own", "quorum", "k")
		foreign := bindingTo("foreign", "classic", "a.#")
		foreign.Arguments = topology.Arguments{"x": int64(5)}
		keptOwn := bindingTo("own", "kept", "k")
		bind(t, c, vhost, own1, own2, foreign, keptOwn)
		result, err := c.SafeDelete(t.Context(), SafeDelete{
			VHost: vhost, Queues: []string{"quorum", "classic", "gone before"}, AlsoEmpty: []string{"kept", "gone too"}, NotPointedAt: true,
			OwnBindings: []topology.Binding{own1, own2, keptOwn, bindingTo("own", "classic", "never made")},
		})
		must(t, err)
		if !slices.Equal(result.Deleted, []string{"quorum", "classic", "gone before"}) {
			t.Errorf("deleted %v", result.Deleted)
		}
		if want := []topology.Binding{own2, foreign, own1}; !slices.EqualFunc(result.Bindings, want, sameBinding) {
			t.Errorf("bindings\n got %+v\nwant %+v", result.Bindings, want)
		}
		if exists(t, c, vhost, "classic") || exists(t, c, vhost, "quorum") || !exists(t, c, vhost, "kept") {
			t.Error("the wrong queues are left")
		}
		wantBindings(t, c, vhost, "kept") // it was asked for, and nothing was refused
	})
}

// TestLiveSafeDeleteJustPublished: the statistics do not know the message yet.
func TestLiveSafeDeleteJustPublished(t *testing.T) {
	bothWays(t, func(t *testing.T, c *Client, b *brokertest.Broker, vhost string) {
		for _, kind := range bothTypes {
			t.Run(string(kind), func(t *testing.T) {
				t.Parallel()
				exchange, queue := "x-"+string(kind), "q-"+string(kind)
				makeExchange(t, c, vhost, exchange, "direct")
				makeQueue(t, c, vhost, queue, kind, nil)
				own, foreign := bindingTo(exchange, queue, "own"), bindingTo(exchange, queue, "foreign")
				bind(t, c, vhost, own, foreign)
				waitKnown(t, c, vhost, queue)
				brokertest.Publish(t, b, vhost, exchange, "own", amqp091.Publishing{Body: []byte("precious")})
				result, err := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{queue}, OwnBindings: []topology.Binding{own}})
				e := wantRefused(t, result, err, queue)
				if d := e.Depths[0]; d.Total != 1 || d.Ready != 1 || !d.Known || !d.Exists {
					t.Errorf("depth %+v", d)
				}
				wantBindings(t, c, vhost, queue, foreign, own)
				if got := brokertest.Drain(t, b, vhost, queue); len(got) != 1 {
					t.Errorf("%d messages are left", len(got))
				}
				// Drained a moment ago: old counts that still say 1 are no refusal.
				result, err = c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{queue}, OwnBindings: []topology.Binding{own}})
				if err != nil || len(result.Deleted) != 1 {
					t.Errorf("after draining: %+v, %v", result, err)
				}
			})
		}
	})
}

// waitKnown waits until the statistics know the queue, so that they can be wrong about it.
func waitKnown(t *testing.T, c *Client, vhost, queue string) {
	t.Helper()
	brokertest.WaitFor(t, func() (bool, string) {
		q, err := c.Queue(t.Context(), vhost, queue)
		must(t, err)
		return q.Messages != nil, "the statistics do not know the queue"
	})
}

// TestLiveSafeDeleteUnacknowledged: a consumer took the message as soon as it was there.
func TestLiveSafeDeleteUnacknowledged(t *testing.T) {
	bothWays(t, func(t *testing.T, c *Client, b *brokertest.Broker, vhost string) {
		for _, kind := range bothTypes {
			t.Run(string(kind), func(t *testing.T) {
				t.Parallel()
				queue := "q-" + string(kind)
				makeQueue(t, c, vhost, queue, kind, nil)
				ch := brokertest.Channel(t, b, vhost)
				deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
				must(t, err)
				waitKnown(t, c, vhost, queue)
				brokertest.Publish(t, b, vhost, "", queue, amqp091.Publishing{})
				<-deliveries
				result, err := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{queue}})
				e := wantRefused(t, result, err, queue)
				if d := e.Depths[0]; d.Total != 1 || d.Unacknowledged != 1 {
					t.Errorf("depth %+v", d)
				}
				if !strings.Contains(err.Error(), "1 message (0 ready, 1 unacknowledged)") {
					t.Error(err)
				}
			})
		}
	})
}

// TestLiveSafeDeleteWaitingToBeDeadLettered: at-least-once without a target keeps a message that only the total shows.
func TestLiveSafeDeleteWaitingToBeDeadLettered(t *testing.T) {
	bothWays(t, func(t *testing.T, c *Client, b *brokertest.Broker, vhost string) {
		makeExchange(t, c, vhost, "dlx", "direct")
		makeQueue(t, c, vhost, "q", topology.Quorum, topology.Arguments{
			topology.ArgDeadLetterExchange: "dlx", topology.ArgDeadLetterKey: "nowhere",
			topology.ArgDeadLetterStrategy: "at-least-once", topology.ArgOverflow: "reject-publish",
		})
		brokertest.Publish(t, b, vhost, "", "q", amqp091.Publishing{})
		ch := brokertest.Channel(t, b, vhost)
		d, ok, err := ch.Get("q", false)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		must(t, d.Reject(false))
		brokertest.WaitFor(t, func() (bool, string) {
			depths, err := c.DepthsNow(t.Context(), vhost, []string{"q"})
			must(t, err)
			d := depths[0]
			return d.Total == 1 && d.Ready == 0 && d.Unacknowledged == 0, fmt.Sprintf("%+v", d)
		})
		result, err := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"q"}})
		_ = wantRefused(t, result, err, "q")
		if !strings.Contains(err.Error(), "1 waiting to be dead-lettered") {
			t.Error(err)
		}
	})
}

func TestLiveSafeDeleteAlsoEmpty(t *testing.T) {
	bothWays(t, func(t *testing.T, c *Client, b *brokertest.Broker, vhost string) {
		makeExchange(t, c, vhost, "e", "direct")
		makeQueue(t, c, vhost, "work", topology.Quorum, nil)
		makeQueue(t, c, vhost, "hold", topology.Quorum, topology.Arguments{topology.ArgMessageTTL: int64(3_600_000)})
		own := bindingTo("e", "work", "k")
		bind(t, c, vhost, own)
		brokertest.Publish(t, b, vhost, "", "hold", amqp091.Publishing{})
		result, err := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"work"}, AlsoEmpty: []string{"hold"}, OwnBindings: []topology.Binding{own}})
		_ = wantRefused(t, result, err, "hold")
		wantBindings(t, c, vhost, "work", own)
	})
}

func TestLiveSafeDeleteNonEmpty(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	makeExchange(t, c, vhost, "e", "direct")
	makeQueue(t, c, vhost, "q", topology.Quorum, nil)
	makeQueue(t, c, vhost, "source", topology.Classic, topology.Arguments{topology.ArgDeadLetterExchange: "", topology.ArgDeadLetterKey: "q"})
	own := bindingTo("e", "q", "k")
	bind(t, c, vhost, own)
	brokertest.Publish(t, b, vhost, "", "q", amqp091.Publishing{})
	start := time.Now()
	result, err := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"q"}, OwnBindings: []topology.Binding{own}, NotPointedAt: true, DeleteNonEmpty: true})
	must(t, err)
	if !slices.EqualFunc(result.Bindings, []topology.Binding{own}, sameBinding) || exists(t, c, vhost, "q") || time.Since(start) > 3*time.Second {
		t.Errorf("after %s: %+v", time.Since(start), result)
	}
}

func TestLiveSafeDeletePointedAt(t *testing.T) {
	t.Parallel()
	c, _, vhost := live(t, nil)
	makeExchange(t, c, vhost, "e", "direct")
	makeQueue(t, c, vhost, "dlq", topology.Quorum, nil)
	makeQueue(t, c, vhost, "work", topology.Quorum, topology.Arguments{topology.ArgDeadLetterExchange: "e", topology.ArgDeadLetterKey: "dlq"})
	own := bindingTo("e", "dlq", "dlq")
	bind(t, c, vhost, own)
	request := SafeDelete{VHost: vhost, Queues: []string{"dlq"}, OwnBindings: []topology.Binding{own}, NotPointedAt: true}
	result, err := c.SafeDelete(t.Context(), request)
	var e *PointedAtError
	if !errors.As(err, &e) || e.Queue != "dlq" || !slices.Equal(e.By, []string{"work"}) || len(result.Deleted) != 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	wantBindings(t, c, vhost, "dlq", own)
	request.Queues = []string{"work", "dlq"}
	if result, err = c.SafeDelete(t.Context(), request); err != nil || len(result.Deleted) != 2 {
		t.Errorf("both at once: %+v, %v", result, err)
	}
}

// TestLiveFreshQueue: a quorum queue has no counts at first.
func TestLiveFreshQueue(t *testing.T) {
	t.Parallel()
	c, _, vhost := live(t, nil)
	makeQueue(t, c, vhost, "q", topology.Quorum, nil)
	now, err := c.DepthsNow(t.Context(), vhost, []string{"q", "none"})
	if want := []Depth{{Queue: "q", Exists: true}, {Queue: "none", Known: true}}; err != nil || !reflect.DeepEqual(now, want) {
		t.Fatalf("at once: %+v, %v", now, err)
	}
	waited, err := c.Depths(t.Context(), vhost, []string{"q", "none"})
	if want := []Depth{{Queue: "q", Exists: true, Known: true}, {Queue: "none", Known: true}}; err != nil || !reflect.DeepEqual(waited, want) {
		t.Fatalf("after waiting: %+v, %v", waited, err)
	}
	makeQueue(t, c, vhost, "fresh", topology.Quorum, nil)
	c.unknownWait = 0
	c.cfg.StatisticsInterval = time.Millisecond
	result, err := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"fresh"}})
	if e := wantRefused(t, result, err, "fresh"); e.Depths[0].Known || !strings.Contains(err.Error(), "no count") {
		t.Error(err)
	}
}

func TestLiveSafeDeleteRestoresAfterCancellation(t *testing.T) {
	t.Parallel()
	c, _, vhost := live(t, nil)
	makeExchange(t, c, vhost, "e", "direct")
	makeQueue(t, c, vhost, "q", topology.Quorum, nil)
	own := bindingTo("e", "q", "k")
	bind(t, c, vhost, own)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := c.SafeDelete(ctx, SafeDelete{VHost: vhost, Queues: []string{"q"}, OwnBindings: []topology.Binding{own}})
		done <- err
	}()
	brokertest.WaitFor(t, func() (bool, string) {
		bindings, err := c.QueueBindings(t.Context(), vhost, "q")
		must(t, err)
		return len(bindings) == 0, "the binding is still there"
	})
	start := time.Now()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || time.Since(start) > 2*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
	wantBindings(t, c, vhost, "q", own)
}

func TestLiveSafeDeleteSaysWhatItCouldNotRestore(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	makeExchange(t, c, vhost, "kept", "direct")
	makeExchange(t, c, vhost, "lost", "direct")
	makeQueue(t, c, vhost, "q", topology.Quorum, nil)
	kept, lost := bindingTo("kept", "q", "k"), bindingTo("lost", "q", "k")
	bind(t, c, vhost, kept, lost)
	waitKnown(t, c, vhost, "q")
	done := make(chan error, 1)
	go func() {
		_, err := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"q"}, OwnBindings: []topology.Binding{kept, lost}})
		done <- err
	}()
	brokertest.WaitFor(t, func() (bool, string) {
		bindings, err := c.QueueBindings(t.Context(), vhost, "q")
		must(t, err)
		return len(bindings) == 0, "the bindings are still there"
	})
	brokertest.Publish(t, b, vhost, "", "q", amqp091.Publishing{})
	must(t, c.DeleteExchange(t.Context(), vhost, "lost"))
	err := <-done
	var refusal *NotEmptyError
	var e *RestoreError
	if !errors.As(err, &refusal) || !errors.As(err, &e) || len(e.Missing) != 1 || !sameBinding(e.Missing[0], lost) || !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	wantBindings(t, c, vhost, "q", kept)
}

func TestLiveSafeDeleteExclusive(t *testing.T) {
	bothWays(t, func(t *testing.T, c *Client, b *brokertest.Broker, vhost string) {
		_, err := brokertest.Channel(t, b, vhost).QueueDeclare("q", false, false, true, false, nil)
		must(t, err)
		result, err := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"q"}})
		if err == nil || len(result.Deleted) != 0 || !strings.Contains(err.Error(), "exclusive to another connection") {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// TestLiveClassicQueuesAreDeletedIfEmpty: a message that comes in after the counting.
func TestLiveClassicQueuesAreDeletedIfEmpty(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	makeQueue(t, c, vhost, "q", topology.Classic, nil)
	brokertest.Publish(t, b, vhost, "", "q", amqp091.Publishing{})
	d := &deletion{c: c, req: SafeDelete{VHost: vhost, Queues: []string{"q"}}}
	err := d.delete(t.Context(), map[string]depth{"q": {kind: topology.Classic}})
	if e := wantRefused(t, d.result, err, "q"); e.Depths[0].Ready != 1 {
		t.Error(err)
	}
}
