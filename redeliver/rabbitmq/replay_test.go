package rabbitmq_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
)

// operator is a configuration as a user with the operator's permissions.
func (w *world) operator() rabbitmq.Config {
	w.t.Helper()
	may, err := topology.Permissions(w.doc, topology.AccessOperator)
	if err != nil {
		w.t.Fatal(err)
	}
	user, pass := brokertest.User(w.t, w.broker, w.vhost, may.Configure, may.Write, may.Read)
	return rabbitmq.Config{
		URL: w.broker.AMQPURLAs(w.vhost, user, pass), Manifest: w.manifest,
		Consumer: redeliver.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))},
	}
}

// die has a consumer dead-letter messages with these ids.
func (w *world) die(ids ...string) {
	w.t.Helper()
	l := w.consume(redeliver.Config{Workers: 32, MaxHeld: 500}, func(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Reject(errBoom) })
	w.publish(ids...)
	l.await(redeliver.EventDeadLettered, len(ids))
	l.mustStop()
	w.waitDepth(w.doc.DeadLetter.Name, len(ids))
}

// TestReplay: dead letters go back to the work queue, all or some, whoever put them where they are.
func TestReplay(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*topology.Spec){
		"in place": standard,
		"republish": func(s *topology.Spec) {
			s.Retry.Strategy, s.HoldDelays = topology.Republish, []time.Duration{time.Second}
		},
		"classic": onClassic,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, change, func(s *topology.Spec) {
				if len(s.HoldDelays) > 0 {
					s.Retry.Delays = nil
				}
			})
			all := ids(60)
			w.die(all...)
			cfg := w.operator()
			odd := func(m *redeliver.DeadMessage) bool {
				if m.Topic != "orders" || m.Reason == "" {
					t.Errorf("message %s: topic %q, reason %q", m.ID, m.Topic, m.Reason)
				}
				return strings.ContainsAny(m.ID[len(m.ID)-1:], "13579")
			}
			var told []redeliver.ReplayReport
			for _, step := range []struct {
				o    redeliver.ReplayOptions
				want redeliver.ReplayReport
			}{
				{redeliver.ReplayOptions{DryRun: true, Filter: odd}, redeliver.ReplayReport{DryRun: true, Found: 60, Replayed: 30, Skipped: 30, Left: 60}},
				{redeliver.ReplayOptions{Filter: odd}, redeliver.ReplayReport{Found: 60, Replayed: 30, Skipped: 30, Left: 30}},
				{redeliver.ReplayOptions{Limit: 10}, redeliver.ReplayReport{Found: 30, Replayed: 10, Left: 20}},
				{redeliver.ReplayOptions{Progress: func(r redeliver.ReplayReport) { told = append(told, r) }}, redeliver.ReplayReport{Found: 20, Replayed: 20}},
				{redeliver.ReplayOptions{}, redeliver.ReplayReport{}},
			} {
				r, err := rabbitmq.Replay(t.Context(), cfg, step.o)
				if err != nil {
					t.Fatal(err)
				}
				step.want.From, step.want.RoutingKey = w.doc.DeadLetter.Name, "orders"
				if r.String() != step.want.String() || len(r.Failures) != 0 {
					t.Errorf("%+v: %s, want %s", step.o, r, step.want)
				}
			}
			if len(told) == 0 || told[len(told)-1].Replayed != 20 {
				t.Errorf("progress: %+v", told)
			}
			w.drained("orders", all...)
		})
	}
}

// TestReplayCount: a replayed message begins again, unless it is to go on.
func TestReplayCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *topology.Spec) {
		s.Retry.Strategy, s.HoldDelays, s.Retry.Delays = topology.Republish, []time.Duration{time.Second}, nil
		s.Retry.GiveUpAfter = time.Hour
		s.ParkedQueue = "orders-parked"
	})
	old := time.Now().Add(-2 * time.Hour).Truncate(time.Second)
	dead := amqp091.Publishing{
		MessageId: "m", Timestamp: old, DeliveryMode: amqp091.Persistent,
		Headers: amqp091.Table{
			"x-redeliver-retry-count": int64(10), "x-redeliver-first-seen": old.UnixMilli(), topology.HeaderNotBefore: time.Now().Add(time.Hour).UnixMilli(),
			"x-redeliver-error": "boom", "mine": "kept",
		},
	}
	brokertest.Publish(t, w.broker, w.vhost, "", "orders-dlq", dead)
	brokertest.Publish(t, w.broker, w.vhost, "", "orders-parked", dead)
	cfg := w.operator()
	if r, err := rabbitmq.Replay(t.Context(), cfg, redeliver.ReplayOptions{KeepCount: true}); err != nil || r.Replayed != 1 {
		t.Fatalf("%s %v", r, err)
	}
	kept := w.drained("orders", "m")[0]
	delete(kept.Headers, topology.HeaderDeliveryCount) // basic.get shows it on 3.10
	if len(kept.Headers) != 5 || kept.Headers["x-redeliver-retry-count"] != int64(10) || !kept.Timestamp.Equal(old) {
		t.Errorf("kept: %+v", kept)
	}
	if r, err := rabbitmq.Replay(t.Context(), cfg, redeliver.ReplayOptions{From: redeliver.ReplayParked}); err != nil || r.Replayed != 1 {
		t.Fatalf("%s %v", r, err)
	}
	begun := w.drained("orders", "m")[0]
	delete(begun.Headers, topology.HeaderDeliveryCount)
	seen, _ := begun.Headers["x-redeliver-first-seen"].(int64)
	if len(begun.Headers) != 3 || begun.Headers["x-redeliver-error"] != "boom" || begun.Headers["mine"] != "kept" ||
		time.Since(time.UnixMilli(seen)) > time.Minute || time.Since(begun.Timestamp) > time.Minute {
		t.Errorf("begun again: %+v", begun)
	}
}

// TestReplayTo: to another exchange; and what is missing or not allowed is said, with every message left where it was.
func TestReplayTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := ids(20)
	w.die(all...)
	ch := brokertest.Channel(t, w.broker, w.vhost)
	if _, err := ch.QueueDeclare("inspect", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind("inspect", "look", "amq.topic", false, nil); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		cfg  rabbitmq.Config
		o    redeliver.ReplayOptions
		kind error
		text string
	}{
		"no read on the queue":     {w.config(nil, redeliver.Config{}), redeliver.ReplayOptions{}, nil, "403"},
		"no write on the exchange": {w.operator(), redeliver.ReplayOptions{Exchange: "amq.topic"}, amqp.ErrForbidden, "grant the user write permission"},
		"no such exchange":         {w.operator(), redeliver.ReplayOptions{Exchange: "orders-retry", RoutingKey: "nowhere"}, amqp.ErrUnroutable, "correct the exchange and the routing key"},
		"no such queue":            {w.operator(), redeliver.ReplayOptions{RoutingKey: "nowhere"}, amqp.ErrUnroutable, "apply the Terraform configuration"},
		"no parked queue":          {w.operator(), redeliver.ReplayOptions{From: redeliver.ReplayParked}, nil, "has no parked_queue"},
		"no manifest":              {rabbitmq.Config{}, redeliver.ReplayOptions{}, redeliver.ErrNoManifest, ""},
		"from somewhere":           {w.operator(), redeliver.ReplayOptions{From: "x"}, nil, "is no queue"},
		"wrong password":           {rabbitmq.Config{URL: w.broker.AMQPURLAs(w.vhost, w.user, "wrong"), Manifest: w.manifest}, redeliver.ReplayOptions{}, redeliver.ErrCredentials, ""},
		"exchange that is not there": {
			rabbitmq.Config{URL: w.broker.AMQPURL(w.vhost), Manifest: w.manifest}, redeliver.ReplayOptions{Exchange: "missing"}, amqp.ErrNoExchange, "404",
		},
	} {
		r, err := rabbitmq.Replay(t.Context(), tt.cfg, tt.o)
		if err == nil || tt.kind != nil && !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.text) || r.Replayed != 0 {
			t.Errorf("%s: %s %v", name, r, err)
		}
	}
	admin := rabbitmq.Config{URL: w.broker.AMQPURL(w.vhost), Manifest: w.manifest}
	if r, err := rabbitmq.Replay(t.Context(), admin, redeliver.ReplayOptions{Exchange: "amq.topic", RoutingKey: "look"}); err != nil || r.Replayed != 20 {
		t.Errorf("%s %v", r, err)
	}
	w.drained("inspect", all...)
}

// TestReplayWhileFailing: a message that fails again while the replay runs is not replayed again.
func TestReplayWhileFailing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := ids(500)
	w.die(all...)
	var handled atomic.Int64
	l := w.consume(redeliver.Config{}, func(context.Context, *redeliver.Message) redeliver.Outcome {
		handled.Add(1)
		return redeliver.Reject(errBoom)
	})
	r, err := rabbitmq.Replay(t.Context(), w.operator(), redeliver.ReplayOptions{})
	if err != nil || r.Replayed != 500 {
		t.Errorf("%s %v", r, err)
	}
	l.await(redeliver.EventDeadLettered, 500)
	l.mustStop()
	w.drained("orders-dlq", all...)
	if n := handled.Load(); n != 500 {
		t.Errorf("%d messages were handled", n)
	}
}

// TestReplayInterrupted: 5,000 dead letters, replayed in three runs: one loses its connections, one its context. Nothing is
// lost, and there twice is at most what the reports doubt.
func TestReplayInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := ids(5000)
	msgs := make([]amqp091.Publishing, len(all))
	for i, id := range all {
		msgs[i] = amqp091.Publishing{MessageId: id, DeliveryMode: amqp091.Persistent}
	}
	brokertest.Publish(t, w.broker, w.vhost, "", "orders-dlq", msgs...)
	cfg := w.operator()
	at, _ := url.Parse(cfg.URL)
	doubtful, replayed := 0, 0
	add := func(r redeliver.ReplayReport) {
		replayed += r.Replayed
		doubtful += r.Doubtful
		t.Log(r)
	}

	r, err := rabbitmq.Replay(t.Context(), cfg, redeliver.ReplayOptions{Filter: func(m *redeliver.DeadMessage) bool {
		if m.ID == all[1500] {
			brokertest.Request(t, w.broker, http.MethodDelete, "/api/connections/username/"+at.User.Username(), nil)
		}
		return true
	}})
	if err == nil || r.Replayed == 0 {
		t.Errorf("the connections were closed: %s %v", r, err)
	}
	add(r)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err = rabbitmq.Replay(ctx, cfg, redeliver.ReplayOptions{Filter: func(m *redeliver.DeadMessage) bool {
		if m.ID == all[3500] {
			cancel()
		}
		return true
	}})
	if !errors.Is(err, context.Canceled) || r.Replayed == 0 || r.Doubtful+r.Failed != 0 || r.Left != r.Found-r.Replayed {
		t.Errorf("the context ended: %s %v", r, err)
	}
	add(r)

	r, err = rabbitmq.Replay(t.Context(), cfg, redeliver.ReplayOptions{})
	if err != nil || r.Left != 0 {
		t.Errorf("%s %v", r, err)
	}
	add(r)
	counts := make(map[string]int)
	for _, d := range brokertest.Drain(t, w.broker, w.vhost, "orders") {
		counts[d.MessageId]++
	}
	twice := 0
	for _, id := range all {
		twice += max(0, counts[id]-1)
		if counts[id] == 0 {
			t.Errorf("message %s is lost", id)
		}
	}
	t.Logf("%d replayed, %d doubtful, %d there twice", replayed, doubtful, twice)
	if twice > doubtful+transferWindow {
		t.Errorf("%d messages are there twice, and %d are doubtful", twice, doubtful)
	}
}

// transferWindow is how many acknowledgements may be on their way when a connection is closed.
const transferWindow = 256

// TestReplaySharded: dead letters of a topic that is spread over shards go back through its exchange with the key they had.
func TestReplaySharded(t *testing.T) {
	t.Parallel()
	b := brokertest.Dedicated(t, brokertest.Options{Plugins: []string{topology.ConsistentHashPlugin}})
	w := newWorldOn(t, b, func(s *topology.Spec) {
		s.Convention, s.Sequenced, s.SequenceShards = topology.Shove, true, 3
		s.Retry.Delays = []time.Duration{time.Second} // its shortest
	})
	all := ids(60)
	where := make(map[string]string) // by id
	for i, id := range all {
		brokertest.Publish(t, b, w.vhost, w.doc.Sequence.Exchange, "customer"+id[len(id)-1:], amqp091.Publishing{MessageId: id, Priority: uint8(i % 3)}) //nolint:gosec // it fits
	}
	ch := brokertest.Channel(t, b, w.vhost)
	for _, shard := range w.doc.Sequence.Shards {
		for {
			d, ok, err := ch.Get(shard.Name, false)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			where[d.MessageId] = shard.Name
			if err := d.Reject(false); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.waitDepth(w.doc.DeadLetter.Name, len(all))
	if r, err := rabbitmq.Replay(t.Context(), w.operator(), redeliver.ReplayOptions{}); err != nil || r.Replayed != len(all) {
		t.Fatalf("%s %v", r, err)
	}
	var found []string
	for _, shard := range w.doc.Sequence.Shards {
		for _, d := range brokertest.Drain(t, b, w.vhost, shard.Name) {
			found = append(found, d.MessageId)
			if where[d.MessageId] != shard.Name || d.RoutingKey != "customer"+d.MessageId[len(d.MessageId)-1:] {
				t.Errorf("message %s came to %s with key %q, was in %s", d.MessageId, shard.Name, d.RoutingKey, where[d.MessageId])
			}
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, all) {
		t.Errorf("%d messages came back", len(found))
	}
}

// TestReplayWhoseFilterPanics ends with an error, and gives back what it has taken.
func TestReplayWhoseFilterPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard)
	all := ids(20)
	w.die(all...)
	seen := 0
	report, err := rabbitmq.Replay(t.Context(), w.operator(), redeliver.ReplayOptions{Filter: func(*redeliver.DeadMessage) bool {
		if seen++; seen == 6 {
			panic("at the disco")
		}
		return false
	}})
	if err == nil || !strings.Contains(err.Error(), "at the disco") || report.Replayed != 0 {
		t.Errorf("%s; %v", report, err)
	}
	w.drained("orders-dlq", all...)
}
