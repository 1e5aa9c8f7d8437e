package topology

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The parts that resources build are together what Build builds.
func TestPartsAddUp(t *testing.T) {
	t.Parallel()
	for _, c := range Conventions() {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			s := plain(t, c)
			s.Extra = map[Role]Arguments{RoleHold: {"x-h": 1}, RoleDeadLetter: {"x-d": 2}, RoleParked: {"x-p": 3}, RoleWork: {"x-w": 4}}
			want, err := s.Build()
			if err != nil {
				t.Fatal(err)
			}
			builds := []func() (Objects, error){s.BuildDeadLetterQueue}
			if c.HasParkedQueue() {
				builds = append(builds, s.BuildParkedQueue)
			}
			if len(s.HoldDelays) > 0 {
				builds = append(builds, s.BuildLadder)
			}
			var got Objects
			for _, build := range append(builds, s.BuildWorkQueue) {
				part, err := build()
				if err != nil {
					t.Fatal(err)
				}
				got.add(part)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("the parts are\n%+v\nand the whole is\n%+v", got, want)
			}
			extra := map[Role]string{RoleHold: "x-h", RoleDeadLetter: "x-d", RoleParked: "x-p", RoleWork: "x-w"}
			for _, q := range got.Queues {
				if _, ok := q.Arguments[extra[q.Role]].(int64); !ok {
					t.Errorf("queue %q lacks its extra argument: %v", q.Name, q.Arguments)
				}
			}
		})
	}
}

// Whatever a queue or binding names is in the objects, or is the default exchange.
func TestObjectsAreClosed(t *testing.T) {
	t.Parallel()
	for _, c := range Conventions() {
		for _, tc := range contractCases(c) {
			s := tc.Spec.spec(c)
			objects, err := s.Build()
			if err != nil {
				t.Fatal(err)
			}
			exchanges, queues := map[string]bool{"": true}, map[string]bool{}
			for _, e := range objects.Exchanges {
				if exchanges[e.Name] {
					t.Errorf("%s, %s: exchange %q is there twice", c, tc.Name, e.Name)
				}
				exchanges[e.Name] = true
			}
			for _, q := range objects.Queues {
				if queues[q.Name] {
					t.Errorf("%s, %s: queue %q is there twice", c, tc.Name, q.Name)
				}
				queues[q.Name] = true
				if q.Arguments[ArgQueueType] != string(q.Type) {
					t.Errorf("%s, %s: queue %q does not write out its type", c, tc.Name, q.Name)
				}
				if normal, err := NormaliseArguments(q.Arguments); err != nil || !reflect.DeepEqual(normal, q.Arguments) {
					t.Errorf("%s, %s: arguments of %q are not normal: %v", c, tc.Name, q.Name, err)
				}
			}
			for _, q := range objects.Queues {
				exchange, _ := q.Arguments[ArgDeadLetterExchange].(string)
				if !exchanges[exchange] {
					t.Errorf("%s, %s: queue %q dead-letters to %q, which is not built", c, tc.Name, q.Name, exchange)
				}
				if key, ok := q.Arguments[ArgDeadLetterKey].(string); ok && !reaches(objects, exchange, key) {
					t.Errorf("%s, %s: what queue %q dead-letters goes nowhere", c, tc.Name, q.Name)
				}
			}
			m := manifestOf(t, s)
			for _, target := range []*ManifestTarget{m.DeadLetter, m.Parked} {
				if target != nil && !reaches(objects, target.Exchange, target.RoutingKey) {
					t.Errorf("%s, %s: the manifest's way to %q leads nowhere", c, tc.Name, target.Name)
				}
			}
			for _, q := range m.HoldQueues {
				if !reaches(objects, m.RetryExchange, q.Name) {
					t.Errorf("%s, %s: the manifest's way to %q leads nowhere", c, tc.Name, q.Name)
				}
			}
			if last := objects.Queues[len(objects.Queues)-1]; last.Role != RoleWork {
				t.Errorf("%s, %s: the work queue is not built last", c, tc.Name)
			}
		}
	}
}

// reaches reports whether a message with this key reaches a queue of objects.
func reaches(o Objects, exchange, key string) bool {
	if exchange == "" {
		return slices.ContainsFunc(o.Queues, func(q Queue) bool { return q.Name == key })
	}
	return slices.ContainsFunc(o.Bindings, func(b Binding) bool { return b.Source == exchange && b.RoutingKey == key })
}

func TestNamesOfDeadEnds(t *testing.T) {
	t.Parallel()
	s := Spec{Identity: Identity{Topic: "orders"}}
	for _, tc := range []struct {
		build func(Spec) (Objects, error)
		name  string
		set   func(*Spec)
	}{
		{Spec.BuildDeadLetterQueue, "orders-dlq", func(*Spec) {}},
		{Spec.BuildDeadLetterQueue, "failed", func(s *Spec) { s.DeadLetterQueue = "failed" }},
		{Spec.BuildParkedQueue, "orders-parked", func(*Spec) {}},
		{Spec.BuildParkedQueue, "odd", func(s *Spec) { s.ParkedQueue = "odd" }},
	} {
		s := s
		tc.set(&s)
		objects, err := tc.build(s)
		if err != nil || len(objects.Queues) != 1 || objects.Queues[0].Name != tc.name || !reaches(objects, "orders-retry", tc.name) {
			t.Errorf("%s: %+v, %v", tc.name, objects, err)
		}
	}
}

func TestPartsRefuse(t *testing.T) {
	t.Parallel()
	orders := func(c Convention) Spec { return Spec{Identity: Identity{Topic: "orders", Convention: c}} }
	build := func(s Spec, f func(Spec) (Objects, error)) error { _, err := f(s); return err }

	refused(t, build(orders(Redeliver), Spec.BuildLadder), `"orders"`, "no delays", "list at least one")
	refused(t, build(orders(Shove), Spec.BuildParkedQueue), "shove", "dead-letter queue")
	ladder := orders(Queuey)
	ladder.HoldDelays = durations(t, "5s")
	refused(t, build(ladder, Spec.BuildLadder), "queuey", "on demand")
	extra := orders(RabbitKit)
	extra.HoldDelays, extra.Extra = durations(t, "5s"), map[Role]Arguments{RoleHold: {ArgMessageTTL: 1}}
	refused(t, build(extra, Spec.BuildLadder), `"x-message-ttl"`, `"orders.retry.1"`, "5000")
	typed := orders(Redeliver)
	typed.QueueType = Classic
	refused(t, build(typed, Spec.BuildDeadLetterQueue), `"classic"`)
	named := orders(Redeliver)
	named.DeadLetterQueue = "orders"
	refused(t, build(named, Spec.BuildDeadLetterQueue), `"orders"`, "itself uses this name")
	for _, f := range []func(Spec) (Objects, error){Spec.Build, Spec.BuildLadder, Spec.BuildWorkQueue, Spec.BuildDeadLetterQueue, Spec.BuildParkedQueue} {
		refused(t, build(Spec{}, f), "topic", "empty")
	}
}

// Nothing that is built or computed depends on the order of bindings, on the width of integers or on what happens to
// the spec afterwards.
func TestBuildDoesNotDependOnForm(t *testing.T) {
	t.Parallel()
	a, b := plain(t, AceMQ), plain(t, AceMQ)
	a.Bindings = []Binding{{Source: "e", RoutingKey: "2"}, {Source: "e", RoutingKey: "1", Arguments: Arguments{"n": 5}}, {Source: "acemq.retry", RoutingKey: "orders"}}
	b.Bindings = []Binding{
		{Source: "acemq.retry", RoutingKey: "orders", Arguments: Arguments{}},
		{Source: "e", RoutingKey: "1", Arguments: Arguments{"n": uint8(5)}},
		{Source: "e", RoutingKey: "2", Destination: "ignored"},
		{Source: "e", RoutingKey: "2"},
	}
	a.Extra = map[Role]Arguments{RoleWork: {"x-list": []any{1}}}
	b.Extra = map[Role]Arguments{RoleWork: {"x-list": []any{json.Number("1")}}, RoleParked: nil}
	am, bm := manifestOf(t, a), manifestOf(t, b)
	if string(am.Encode()) != string(bm.Encode()) {
		t.Errorf("two forms of one spec differ:\n%s\n%s", am.Encode(), bm.Encode())
	}
	objects, err := a.Build()
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, binding := range objects.Bindings {
		if binding.Destination == "orders" {
			keys = append(keys, binding.Source+" "+binding.RoutingKey)
		}
	}
	if got := strings.Join(keys, ", "); got != "acemq.retry orders, e 1, e 2" {
		t.Errorf("bindings of the work queue: %s", got)
	}
	a.Extra[RoleWork]["x-list"].([]any)[0] = "changed"
	if CanonicalJSON(objects.Queues[len(objects.Queues)-1].Arguments["x-list"]) != "[1]" {
		t.Error("the objects share their arguments with the spec")
	}
}
