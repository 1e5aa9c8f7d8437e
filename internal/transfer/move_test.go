package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// yard is a vhost with queues to move messages between.
type yard struct {
	t     *testing.T
	b     *brokertest.Broker
	vhost string
	url   string
}

// kinds of source: what a broker does with unacknowledged messages depends on them.
var queueKinds = map[string]amqp091.Table{
	"classic": {"x-queue-type": "classic"},
	"quorum":  {"x-queue-type": "quorum", "x-delivery-limit": 1000000},
}

func newYard(t *testing.T, b *brokertest.Broker) *yard {
	t.Helper()
	y := &yard{t: t, b: b, vhost: brokertest.VHost(t, b)}
	y.url = b.AMQPURL(y.vhost)
	return y
}

func (y *yard) declare(queue string, args amqp091.Table) {
	y.t.Helper()
	if _, err := brokertest.Channel(y.t, y.b, y.vhost).QueueDeclare(queue, true, false, false, false, args); err != nil {
		y.t.Fatal(err)
	}
}

// fill puts n messages into a queue and returns their ids.
func (y *yard) fill(queue string, n int) []string {
	y.t.Helper()
	ids, msgs := make([]string, n), make([]amqp091.Publishing, n)
	for i := range n {
		ids[i] = fmt.Sprintf("m%05d", i)
		msgs[i] = amqp091.Publishing{MessageId: ids[i], Body: []byte(ids[i]), DeliveryMode: amqp091.Persistent}
	}
	brokertest.Publish(y.t, y.b, y.vhost, "", queue, msgs...)
	brokertest.WaitDepth(y.t, y.b, y.vhost, queue, n)
	return ids
}

func (y *yard) options(source, target string) Options {
	y.t.Helper()
	nodes, err := amqp.NewBroker(amqp.Config{URL: y.url, Name: y.t.Name()})
	if err != nil {
		y.t.Fatal(err)
	}
	return Options{Dial: nodes.Dial, Source: source, RoutingKey: target}
}

// ids takes the messages out of a queue that is to have n, and returns their ids in order.
func (y *yard) ids(queue string, n int) []string {
	y.t.Helper()
	brokertest.WaitDepth(y.t, y.b, y.vhost, queue, n)
	var ids []string
	for _, d := range brokertest.Drain(y.t, y.b, y.vhost, queue) {
		ids = append(ids, d.MessageId)
	}
	return ids
}

// same checks that two lists of ids are the same, in order.
func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("%s: %d messages, want %d; from the %dth on %.60q, want %.60q", what, len(got), len(want), i, got[min(i, len(got)):], want[min(i, len(want)):])
			return
		}
	}
}

// every returns each n-th id, from the first.
func every(n int, ids []string) []string {
	var some []string
	for i := 0; i < len(ids); i += n {
		some = append(some, ids[i])
	}
	return some
}

func TestMove(t *testing.T) {
	t.Parallel()
	for kind, args := range queueKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, brokertest.Shared(t))
			y.declare("from", args)
			y.declare("to", args)
			ids := y.fill("from", 1500)
			var told []Report
			o := y.options("from", "to")
			o.Progress = func(r Report) { told = append(told, r) }
			r, err := Move(t.Context(), o)
			if err != nil || r.Found != 1500 || r.Moved != 1500 || r.Left != 0 || r.Skipped+r.Failed+r.Doubtful != 0 {
				t.Errorf("%+v %v", r, err)
			}
			if last := told[len(told)-1]; last.Moved != 1500 {
				t.Errorf("the last progress: %+v", last)
			}
			same(t, "moved", y.ids("to", 1500), ids)
			same(t, "left", y.ids("from", 0), nil)
		})
	}
}

// TestStay: what is not moved stays in its order, and is not taken twice.
func TestStay(t *testing.T) {
	t.Parallel()
	for kind, args := range queueKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, brokertest.Shared(t))
			y.declare("from", args)
			y.declare("to", args)
			ids := y.fill("from", 1000)
			third := func(d *amqp091.Delivery) bool { return slices.Contains(every(3, ids), d.MessageId) }
			rest := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(every(3, ids), id) })

			some := y.options("from", "to")
			some.Filter, some.Limit = third, 100
			if r, err := Move(t.Context(), some); err != nil || r.Moved != 100 || r.Left != 900 || r.Found != 1000 {
				t.Errorf("limit: %+v %v", r, err)
			}
			dry := y.options("from", "to")
			dry.Filter, dry.DryRun = third, true
			if r, err := Move(t.Context(), dry); err != nil || r.Moved != 234 || r.Skipped != 666 || r.Left != 900 {
				t.Errorf("dry run: %+v %v", r, err)
			}
			all := y.options("from", "to")
			all.Filter = third
			if r, err := Move(t.Context(), all); err != nil || r.Moved != 234 || r.Skipped != 666 || r.Left != 666 {
				t.Errorf("rest: %+v %v", r, err)
			}
			same(t, "moved", y.ids("to", 334), every(3, ids))
			itself := y.options("from", "from")
			if r, err := Move(t.Context(), itself); err != nil || r.Moved != 666 || r.Left != 666 {
				t.Errorf("to itself: %+v %v", r, err)
			}
			few := y.options("from", "to")
			few.Limit = 66
			if r, err := Move(t.Context(), few); err != nil || r.Moved != 66 || r.Left != 600 {
				t.Errorf("few: %+v %v", r, err)
			}
			same(t, "moved", y.ids("to", 66), rest[:66])
			brokertest.WaitDepth(t, y.b, y.vhost, "from", 600)
			var left []string
			for _, d := range brokertest.Drain(t, y.b, y.vhost, "from") {
				left = append(left, d.MessageId)
				if d.Redelivered { // neither looked at since it was copied, nor an old one
					t.Errorf("message %s was touched", d.MessageId)
				}
			}
			same(t, "left", left, rest[66:])
		})
	}
}

// TestCopy: a copy keeps everything but what belongs to the delivery; Edit and Route have the last word.
func TestCopy(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t))
	y.declare("from", nil)
	y.declare("to-x", nil)
	at := time.Unix(1700000000, 0)
	brokertest.Publish(t, y.b, y.vhost, "", "from", amqp091.Publishing{
		Headers: amqp091.Table{
			"kept": amqp091.Table{"deep": []any{int64(1), "x"}}, "x-death": []any{}, "x-delivery-count": int64(7), "x-first-death-queue": "q", "dropped": "x", "bin": []byte{0, 255},
		},
		ContentType: "ct", ContentEncoding: "ce", Priority: 3, CorrelationId: "c", ReplyTo: "r", Expiration: "60000", MessageId: "m", Timestamp: at,
		Type: "t", UserId: y.b.Username(), AppId: "a", Body: []byte("b"),
	})
	o := y.options("from", "not used")
	o.Route = func(d *amqp091.Delivery) string {
		return "to-" + d.Headers["kept"].(amqp091.Table)["deep"].([]any)[1].(string)
	}
	o.Edit = func(_ *amqp091.Delivery, made *amqp091.Publishing) {
		delete(made.Headers, "dropped")
		made.Headers["added"] = int64(2)
	}
	if r, err := Move(t.Context(), o); err != nil || r.Moved != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	d, _ := brokertest.Get(t, y.b, y.vhost, "to-x")
	want := amqp091.Table{
		"kept": amqp091.Table{"deep": []any{int64(1), "x"}}, "bin": []byte{0, 255}, "added": int64(2), "x-redeliver-expiration": "60000",
		"x-redeliver-user-id": y.b.Username(),
	}
	if !slices.Equal(slices.Sorted(maps.Keys(d.Headers)), slices.Sorted(maps.Keys(want))) || fmt.Sprint(d.Headers) != fmt.Sprint(want) {
		t.Errorf("headers\n got %v\nwant %v", d.Headers, want)
	}
	if d.ContentType != "ct" || d.ContentEncoding != "ce" || d.Priority != 3 || d.CorrelationId != "c" || d.ReplyTo != "r" || d.Expiration != "" || d.MessageId != "m" ||
		!d.Timestamp.Equal(at) || d.Type != "t" || d.UserId != "" || d.AppId != "a" || string(d.Body) != "b" || d.DeliveryMode != amqp091.Persistent {
		t.Errorf("%+v", d)
	}
}

// TestRateRefused: a rate whose pauses no clock can tell would be none at all.
func TestRateRefused(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{1e-10, math.NaN(), -1} {
		if r, err := Move(t.Context(), Options{Source: "from", RoutingKey: "to", Rate: rate}); err == nil || r.Moved != 0 || !strings.Contains(err.Error(), "rate") {
			t.Errorf("rate %v: %+v, %v", rate, r, err)
		}
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t))
	y.declare("from", queueKinds["quorum"])
	y.declare("to", nil)
	y.fill("from", 50)
	o := y.options("from", "to")
	o.Rate = 50
	begun := time.Now()
	if r, err := Move(t.Context(), o); err != nil || r.Moved != 50 {
		t.Errorf("%+v %v", r, err)
	}
	if took := time.Since(begun); took < 900*time.Millisecond {
		t.Errorf("50 messages at 50 a second took %s", took)
	}
}

// TestInterrupted: a run whose context ends loses nothing and moves nothing twice; the next one goes on.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for kind, args := range queueKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, brokertest.Shared(t))
			y.declare("from", args)
			y.declare("to", args)
			ids := y.fill("from", 1500)
			moved := 0
			for range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				o := y.options("from", "to")
				o.Edit = func(d *amqp091.Delivery, _ *amqp091.Publishing) {
					if d.MessageId == ids[moved+400] {
						cancel()
					}
				}
				r, err := Move(ctx, o)
				if !errors.Is(err, context.Canceled) || r.Moved < 400 || r.Doubtful+r.Failed != 0 || r.Left != r.Found-r.Moved {
					t.Errorf("%+v %v", r, err)
				}
				moved += r.Moved
				cancel()
			}
			if r, err := Move(t.Context(), y.options("from", "to")); err != nil || r.Moved != 1500-moved {
				t.Errorf("%+v %v", r, err)
			}
			same(t, "moved", y.ids("to", 1500), ids)
		})
	}
}

// TestTargetTakesNothing: one message is tried, and all stay, in order.
func TestTargetTakesNothing(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t))
	y.declare("from", queueKinds["quorum"])
	ids := y.fill("from", 500)
	user, pass := brokertest.User(t, y.b, y.vhost, "", "amq.default|missing", ".*")
	y.url = y.b.AMQPURLAs(y.vhost, user, pass)
	for exchange, want := range map[string]error{"": amqp.ErrUnroutable, "missing": amqp.ErrNoExchange, "amq.topic": amqp.ErrForbidden} {
		o := y.options("from", "to")
		o.Exchange = exchange
		r, err := Move(t.Context(), o)
		if !errors.Is(err, want) || r.Moved != 0 || r.Failed > 1 || r.Left != 500 {
			t.Errorf("exchange %q: %+v %v", exchange, r, err)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Move(cancelled, y.options("from", "from")); !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "interrupted") {
		t.Errorf("cancelled: %v", err)
	}
	brokertest.WaitDepth(t, y.b, y.vhost, "from", 500)
	var got []string
	touched := 0
	for _, d := range brokertest.Drain(t, y.b, y.vhost, "from") {
		got = append(got, d.MessageId)
		if d.Redelivered {
			touched++
		}
	}
	same(t, "left", got, ids)
	if touched > 3 { // the one that was tried, and what was on its way to the next consumer
		t.Errorf("%d messages were touched", touched)
	}
}

// TestDryRunOfATargetThatTakesNothing says so, and looks at the messages all the same.
func TestDryRunOfATargetThatTakesNothing(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t))
	y.declare("from", queueKinds["quorum"])
	y.declare("to", queueKinds["quorum"])
	y.fill("from", 20)
	user, pass := brokertest.User(t, y.b, y.vhost, "", "amq.default|missing|amq.fanout", ".*")
	y.url = y.b.AMQPURLAs(y.vhost, user, pass)
	for target, want := range map[[2]string]error{
		{"", "to"}: nil, {"", "nowhere"}: amqp.ErrUnroutable, {"missing", "x"}: amqp.ErrNoExchange, {"amq.topic", "x"}: amqp.ErrForbidden, {"amq.fanout", ""}: nil, {"", ""}: nil,
	} {
		o := y.options("from", target[1])
		o.Exchange, o.DryRun = target[0], true
		r, err := Move(t.Context(), o)
		fine := r.Moved == 20 && err == nil
		if want != nil {
			fine = r.Failed == 20 && errors.Is(err, want) && len(r.Failures) == 1 && errors.Is(r.Failures[0].Err, want)
		}
		if !fine || r.Left != 20 {
			t.Errorf("target %q: %+v %v", target, r, err)
		}
	}
	brokertest.WaitDepth(t, y.b, y.vhost, "to", 0)
}

// TestSomeFail: messages that fail by themselves stay, and the others are moved.
func TestSomeFail(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t))
	y.declare("from", queueKinds["quorum"])
	y.declare("to", nil)
	y.declare("full", amqp091.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	ids := y.fill("from", 600)
	o := y.options("from", "")
	o.Route = func(d *amqp091.Delivery) string {
		switch d.MessageId[len(d.MessageId)-1] {
		case '1':
			return "nowhere"
		case '2':
			return "full"
		default:
			return "to"
		}
	}
	o.Edit = func(d *amqp091.Delivery, made *amqp091.Publishing) {
		if strings.HasSuffix(d.MessageId, "3") {
			made.Headers["large"] = strings.Repeat("x", 200<<10)
		}
	}
	r, err := Move(t.Context(), o)
	if err != nil || r.Failed < 170 || r.Failed > 180 || r.Moved+r.Failed != 600 || len(r.Failures) != 3 {
		t.Errorf("%+v %v", r, err)
	}
	for _, f := range r.Failures {
		var large *amqp.TooLargeError
		switch f.MessageID {
		case ids[1]:
			if !errors.Is(f.Err, amqp.ErrUnroutable) || f.Count != 60 {
				t.Errorf("%+v", f)
			}
		case ids[3]:
			if !errors.As(f.Err, &large) || f.Count != 60 {
				t.Errorf("%+v", f)
			}
		default:
			if !errors.Is(f.Err, amqp.ErrNacked) {
				t.Errorf("%+v", f)
			}
		}
	}
	left := y.ids("from", r.Failed)
	if !slices.IsSorted(left) {
		t.Errorf("what is left is not in order: %q", left)
	}
	y.fill("from", 300)
	hopeless := y.options("from", "full")
	if r, err = Move(t.Context(), hopeless); !errors.Is(err, amqp.ErrNacked) || r.Moved > 1 || r.Left < 299 {
		t.Errorf("%+v %v", r, err)
	}
}

// TestUnconfirmed: nobody knows what became of a copy that was not confirmed, which is no failure.
func TestUnconfirmed(t *testing.T) {
	t.Parallel()
	m := &mover{source: &source{}, o: Options{Route: func(*amqp091.Delivery) string { return "" }}}
	for i, err := range []error{fmt.Errorf("%w: the channel was closed", amqp.ErrUnconfirmed), amqp.ErrNacked, fmt.Errorf("%w within 5s", amqp.ErrUnconfirmed)} {
		if err := m.settle(result{tag: uint64(i + 1), id: fmt.Sprint(i), err: err}); err != nil {
			t.Error(err)
		}
	}
	r := m.report
	if r.Doubtful != 2 || r.Failed != 1 || len(r.Failures) != 2 || !r.Failures[0].Unknown || r.Failures[0].Count != 2 || r.Failures[1].Unknown || len(m.source.held) != 3 {
		t.Errorf("%+v", r)
	}
	if text := r.String(); !strings.Contains(text, "1 failed, 2 doubtful (they may be there twice)") {
		t.Error(text)
	}
}

func TestSourceErrors(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t))
	y.declare("to", nil)
	y.declare("from", nil)
	y.fill("from", 1)
	if r, err := Move(t.Context(), y.options("missing", "to")); err == nil || !strings.Contains(err.Error(), "404") || r.Left != -1 {
		t.Errorf("%+v %v", r, err)
	}
	user, pass := brokertest.User(t, y.b, y.vhost, "", ".*", "to")
	y.url = y.b.AMQPURLAs(y.vhost, user, pass)
	if r, err := Move(t.Context(), y.options("from", "to")); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("%+v %v", r, err)
	}
	for _, o := range []Options{{}, {Source: "from"}, {Source: "from", RoutingKey: "to", Limit: -1}, {Source: "from", RoutingKey: "to", Prefetch: 1 << 16}} {
		if _, err := Move(t.Context(), o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// TestOthersTake: a source that is emptied by others meanwhile ends a run.
func TestOthersTake(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t))
	y.declare("from", queueKinds["quorum"])
	y.declare("to", nil)
	y.fill("from", 1000)
	o := y.options("from", "to")
	stolen := 0
	o.Edit = func(d *amqp091.Delivery, _ *amqp091.Publishing) {
		if d.MessageId == "m00010" {
			stolen = len(brokertest.Drain(t, y.b, y.vhost, "from"))
		}
	}
	r, err := Move(t.Context(), o)
	if err != nil || r.Moved+stolen != 1000 || stolen == 0 || r.Left != 0 {
		t.Errorf("%+v %v, and %d were taken by others", r, err, stolen)
	}
}

// TestConnectionsClosed: whichever connection is lost, nothing is; what may be there twice is said.
func TestConnectionsClosed(t *testing.T) {
	t.Parallel()
	for kind, args := range queueKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			y := newYard(t, brokertest.Shared(t))
			y.declare("from", args)
			y.declare("to", args)
			ids := y.fill("from", 1500)
			user, pass := brokertest.User(t, y.b, y.vhost, "", ".*", ".*")
			y.url = y.b.AMQPURLAs(y.vhost, user, pass)
			doubtful := 0
			for range 2 {
				o := y.options("from", "to")
				looked := 0
				o.Edit = func(*amqp091.Delivery, *amqp091.Publishing) {
					if looked++; looked == 500 {
						brokertest.Request(t, y.b, http.MethodDelete, "/api/connections/username/"+url.PathEscape(user), nil)
					}
				}
				r, err := Move(t.Context(), o)
				t.Logf("%s; %v", r, err)
				for _, f := range r.Failures {
					if !errors.Is(f.Err, amqp.ErrUnconfirmed) && !errors.Is(f.Err, amqp.ErrNotConnected) {
						t.Error(f.Err)
					}
				}
				doubtful += r.Failed + r.Doubtful
			}
			r, err := Move(t.Context(), y.options("from", "to"))
			if err != nil {
				t.Errorf("%s; %v", r, err)
			}
			counts := make(map[string]int)
			for _, d := range brokertest.Drain(t, y.b, y.vhost, "to") {
				counts[d.MessageId]++
			}
			twice := 0
			for _, id := range ids {
				twice += max(0, counts[id]-1)
				if counts[id] == 0 {
					t.Errorf("message %s is lost", id)
				}
			}
			t.Logf("%d there twice; %d doubtful", twice, doubtful)
			if twice > doubtful+2*DefaultPrefetch { // and acknowledgements that were on their way
				t.Errorf("%d messages are there twice and %d were doubtful", twice, doubtful)
			}
		})
	}
}

// TestBrokerKilled: a crash in the middle loses nothing.
func TestBrokerKilled(t *testing.T) {
	t.Parallel()
	b := brokertest.Dedicated(t, brokertest.Options{})
	y := newYard(t, b)
	y.declare("from", queueKinds["quorum"])
	y.declare("to", queueKinds["quorum"])
	ids := y.fill("from", 1500)
	if err := b.Restart(t.Context()); err != nil { // a quorum queue that was never restarted may come back empty from a crash
		t.Fatal(err)
	}
	o := y.options("from", "to")
	o.Edit = func(d *amqp091.Delivery, _ *amqp091.Publishing) {
		if d.MessageId == ids[700] {
			if err := b.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	r, err := Move(t.Context(), o)
	if err == nil || r.Moved == 0 || r.Left != -1 {
		t.Errorf("%s; %v", r, err)
	}
	t.Logf("%s; %v", r, err)
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for left := -1; left != 0; { // what was on its way may come back only after the queue was asked how much it has
		r, err := Move(t.Context(), y.options("from", "to"))
		if err != nil {
			t.Fatalf("%s; %v", r, err)
		}
		left = r.Left
	}
	counts := make(map[string]int)
	for _, d := range brokertest.Drain(t, b, y.vhost, "to") {
		counts[d.MessageId]++
	}
	twice := 0
	for _, id := range ids {
		twice += max(0, counts[id]-1)
		if counts[id] == 0 {
			t.Errorf("message %s is lost", id)
		}
	}
	if twice > 2*DefaultPrefetch {
		t.Errorf("%d messages are there twice", twice)
	}
	t.Logf("%d messages are there twice", twice)
}
