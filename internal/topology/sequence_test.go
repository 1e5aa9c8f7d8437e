package topology

import (
	"math"
	"slices"
	"testing"
	"time"
)

// sequenced makes a topic keep its order, under shove over two shards.
func sequenced(s *Spec) {
	s.Sequenced = true
	if s.Convention == Shove {
		s.SequenceShards = 2
	}
}

func TestSequenceNames(t *testing.T) {
	t.Parallel()
	plain := Identity{Topic: "orders", Convention: Shove}
	group := Identity{Topic: "orders", Convention: Shove, ConsumerGroup: "billing"}
	for _, tc := range []struct{ got, want string }{
		{plain.SequenceExchangeName(), "orders-seq-hash"},
		{plain.ShardQueueName(7), "orders-seq-7"},
		{plain.shardHoldQueueName(0, 5*time.Second, 7), "orders-seq-7-hold-5s"},
		{group.SequenceExchangeName(), "orders-billing-seq-hash"},
		{group.ShardQueueName(0), "orders-seq-0"},
		{group.shardHoldQueueName(0, 2*time.Minute, 0), "orders-billing-seq-0-hold-120s"},
		{Identity{Topic: "orders"}.SequenceExchangeName(), ""},
		{Identity{Topic: "orders"}.ShardQueueName(0), ""},
	} {
		if tc.got != tc.want {
			t.Errorf("%q, want %q", tc.got, tc.want)
		}
	}
}

// Every queue that is consumed has a single active consumer, is in the manifest, and gets its messages.
func TestSequencedTopic(t *testing.T) {
	t.Parallel()
	for _, c := range []Convention{Redeliver, Shove, AceMQ, RabbitKit} {
		t.Run(string(c), func(t *testing.T) {
			t.Parallel()
			s := plain(t, c)
			if m := manifestOf(t, s); m.Sequence != nil || len(m.WorkQueues()) != 1 {
				t.Errorf("a topic that keeps no order has sequence %v", m.Sequence)
			}
			sequenced(&s)
			objects, err := s.BuildWorkQueue()
			if err != nil {
				t.Fatal(err)
			}
			m := manifestOf(t, s)
			if m.Sequence == nil || len(m.WorkQueues()) != max(1, s.SequenceShards) || len(objects.Queues) != len(m.WorkQueues()) {
				t.Fatalf("sequence %v, built %v", m.Sequence, objects.Queues)
			}
			for i, q := range m.WorkQueues() {
				if built := objects.Queues[i]; built.Name != q.Name || built.Role != RoleWork || built.Shard != i || q.Arguments[ArgSingleActiveConsumer] != true {
					t.Errorf("shard %d is %q with %v, built as %+v", i, q.Name, q.Arguments, built)
				}
				if s.SequenceShards > 0 && !reaches(objects, m.Sequence.Exchange, shardWeight) {
					t.Errorf("shard %q gets no messages", q.Name)
				}
			}
			if m.WorkQueue.Name != m.WorkQueues()[0].Name {
				t.Errorf("the work queue is %q", m.WorkQueue.Name)
			}
		})
	}
}

// A binding of a topic with shards leads to what spreads messages over them.
func TestBindingsOfShards(t *testing.T) {
	t.Parallel()
	s := plain(t, Shove)
	sequenced(&s)
	s.Bindings = []Binding{{Source: "shop.events", RoutingKey: "order.*"}}
	objects, err := s.BuildWorkQueue()
	if err != nil {
		t.Fatal(err)
	}
	want := Binding{Source: "shop.events", Destination: "orders-seq-hash", DestinationType: BindingToExchange, RoutingKey: "order.*"}
	if !slices.ContainsFunc(objects.Bindings, func(b Binding) bool { return b.Key() == want.Key() }) {
		t.Errorf("bindings %+v", objects.Bindings)
	}
	if b := manifestOf(t, s).Bindings; len(b) != 1 || b[0].Exchange != "shop.events" {
		t.Errorf("the manifest has the bindings %v", b)
	}
}

func TestSequencedTopicRefuses(t *testing.T) {
	t.Parallel()
	number := 5
	for name, tc := range map[string]struct {
		convention Convention
		change     func(*Spec)
		essentials []string
	}{
		"queuey":               {Queuey, func(*Spec) {}, []string{"queuey", "x-single-active-consumer", "406"}},
		"shove without shards": {Shove, func(s *Spec) { s.SequenceShards = 0 }, []string{`"orders"`, "no sequence_shards", "routing_shards, 8"}},
		"too many shards":      {Shove, func(s *Spec) { s.SequenceShards = MaxSequenceShards + 1 }, []string{"sequence_shards 1001", "1 to 1000"}},
		"negative shards":      {Shove, func(s *Spec) { s.SequenceShards = -1 }, []string{"sequence_shards -1", "1 to 1000"}},
		"shards elsewhere":     {Redeliver, func(s *Spec) { s.SequenceShards = 2 }, []string{"sequence_shards 2", "redeliver", "one work queue", "only shove", "leave it out"}},
		"shards of nothing":    {Shove, func(s *Spec) { s.Sequenced = false }, []string{"sequence_shards 2", "not sequenced", "sequenced = true"}},
		"republish":            {Redeliver, func(s *Spec) { s.Retry.Strategy = Republish }, []string{`"republish"`, `"orders" is sequenced`, "behind those of its key", `"in_place"`}},
		"hybrid":               {AceMQ, func(s *Spec) { s.Retry.Strategy = Hybrid }, []string{`"hybrid"`, "behind those of its key"}},
		"broker delayed":       {Redeliver, brokerDelayed, []string{`"broker_delayed"`, "broker delays", `"in_place"`}},
		"a strategy of none":   {Redeliver, func(s *Spec) { s.Retry.Strategy = "wait" }, []string{`retry strategy "wait"`}},
		"priorities":           {Shove, func(s *Spec) { s.MaxPriority = &number }, []string{"max_priority 5", "overtake"}},
		"the argument twice": {
			Redeliver, func(s *Spec) { s.Extra = map[Role]Arguments{RoleWork: {ArgSingleActiveConsumer: false}} },
			[]string{`"x-single-active-consumer"`, "from the contract, as true"},
		},
		"all waits in one delivery": {
			Redeliver, func(s *Spec) { s.Retry.MaxRetries = 20 },
			[]string{"max_retries 20", "sequenced topic", "one delivery", "up to 43m54s together", "only 22m30s", "raise x-consumer-timeout"},
		},
		"dead letters in a shard's hold queue": {Shove, func(s *Spec) { s.DeadLetterQueue = "orders-seq-9-hold-7s" }, []string{`"orders-seq-9-hold-7s"`, "itself uses this name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := plain(t, tc.convention)
			sequenced(&s)
			tc.change(&s)
			_, err := s.Build()
			refused(t, err, tc.essentials...)
		})
	}
	long := Spec{Identity: Identity{Topic: string(make([]byte, 0)), Convention: Shove}, HoldDelays: durations(t, "5s"), SequenceShards: 3}
	for range 245 {
		long.Topic += "x"
	}
	_, err := long.BuildLadder()
	refused(t, err, "-seq-0-hold-5s", "allows 255")
	elsewhere := Spec{Identity: Identity{Topic: "orders"}, HoldDelays: durations(t, "5s"), SequenceShards: 3}
	_, err = elsewhere.BuildLadder()
	refused(t, err, "sequence_shards 3", "leave it out")
}

// What all retries of a message take together is computed, not counted: any budget is.
func TestInPlaceTotal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		convention Convention
		change     func(*Spec)
		want       time.Duration
	}{
		"fewer retries than tiers": {Shove, func(s *Spec) { s.Retry.MaxRetries = 2 }, 35 * time.Second},
		"as many":                  {Shove, func(s *Spec) { s.Retry.MaxRetries = 3 }, 155 * time.Second},
		"the last tier repeats":    {Shove, func(s *Spec) { s.Retry.MaxRetries = 10 }, 995 * time.Second},
		"none":                     {Shove, func(s *Spec) { s.Retry.MaxRetries = 0 }, 0},
		"jitter":                   {Shove, func(s *Spec) { s.Retry.Jitter = 0.5 }, 232500 * time.Millisecond},
		"republish waits elsewhere": {
			Shove, func(s *Spec) { s.Retry.Strategy, s.Retry.MaxRetries = Republish, 5000 }, 0,
		},
		"hybrid below hold_from": {
			Shove, func(s *Spec) { s.Retry.Strategy, s.Retry.MaxRetries = Hybrid, 5000 }, 5 * time.Second,
		},
		"hybrid, all below": {
			Shove, func(s *Spec) { s.Retry.Strategy, s.Retry.HoldFrom, s.Retry.MaxRetries = Hybrid, time.Hour, 4 }, 275 * time.Second,
		},
	} {
		s := plain(t, tc.convention)
		s.Retry.Jitter = 0
		tc.change(&s)
		if got := time.Duration(math.Round(s.inPlaceTotal())); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := plain(t, Shove)
	s.Retry.MaxRetries = math.MaxInt
	refused(t, s.Validate(), "max_retries 9223372036854775807", "classic queue", "106751d23h47m16s854ms together", `"republish" or "hybrid"`)
	s.Retry.MaxRetries = 5000
	refused(t, s.Validate(), "max_retries 5000", "8d7h55m54s")
	s = plain(t, RabbitKit)
	s.Retry.MaxRetries, s.Retry.LastDelayRepeats, s.DeliveryLimit = 5000, true, 6000
	if err := s.Validate(); err != nil {
		t.Errorf("on a quorum queue each retry is a delivery of its own: %v", err)
	}
	s.QueueType, s.DeliveryLimit = Classic, 0
	refused(t, s.Validate(), "max_retries 5000", "classic queue")
}

func TestShardsAreHandedOver(t *testing.T) {
	t.Parallel()
	topic := Spec{Identity: Identity{Topic: "orders", Convention: Shove}, Sequenced: true, SequenceShards: 2}
	hold := func(name string, delay time.Duration, shard int) HoldRef { return HoldRef{name, delay, shard} }
	for name, tc := range map[string]struct {
		refs       []HoldRef
		essentials []string
	}{
		"a ladder without shards": {[]HoldRef{hold("orders-hold-5s", 5*time.Second, 0)}, []string{`"orders-hold-5s"`, `"orders-seq-0-hold-5s"`, "sequence_shards"}},
		"a ladder of fewer":       {[]HoldRef{hold("orders-seq-0-hold-5s", 5*time.Second, 0)}, []string{"1 shards", "has 2", "sequence_shards"}},
		"another delay": {
			[]HoldRef{hold("orders-seq-0-hold-5s", 5*time.Second, 0), hold("orders-seq-1-hold-5s", 6*time.Second, 1)},
			[]string{`"orders-seq-1-hold-5s"`, "waits 6s", "shard 0 5s"},
		},
	} {
		_, err := topic.WithHoldQueues(tc.refs)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		refused(t, err, tc.essentials...)
	}
}
