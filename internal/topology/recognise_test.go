package topology

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// liveOf are queues as a broker shows them.
func liveOf(t *testing.T, specs ...Spec) []Queue {
	t.Helper()
	var queues []Queue
	for _, s := range specs {
		objects, err := s.Build()
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range objects.Queues {
			queues = append(queues, Queue{Name: q.Name, Arguments: q.Arguments})
		}
	}
	return queues
}

func TestRecogniseTopics(t *testing.T) {
	t.Parallel()
	retry := RetryPolicy{MaxRetries: 2, LastDelayRepeats: true}
	spec := func(c Convention, topic string, change func(*Spec)) Spec {
		s := Spec{Identity: Identity{Topic: topic, Convention: c}, HoldDelays: []time.Duration{time.Second, time.Minute}, Retry: retry}
		s.DeadLetterQueue, s.ParkedQueue = s.DeadLetterQueueName(), s.ParkedQueueName()
		if change != nil {
			change(&s)
		}
		return s
	}
	text := func(found []Recognised) []string {
		var out []string
		for _, r := range found {
			out = append(out, fmt.Sprintf("%s work=%v shards=%d dead=%s parked=%s ladder=%v", r.Topic, r.WorkQueue, r.Shards, r.DeadLetterQueue, r.ParkedQueue, r.Ladder))
		}
		return out
	}
	strangers := []Queue{{Name: "plain"}, {Name: "amq.gen-x"}, {Name: "x", Arguments: Arguments{ArgMessageTTL: int64(5)}}}
	for name, test := range map[string]struct {
		like   Identity
		queues []Queue
		want   []string
	}{
		"redeliver": {
			Identity{Convention: Redeliver},
			liveOf(t, spec(Redeliver, "orders", nil), spec(Redeliver, "a-b", func(s *Spec) { s.HoldDelays, s.Retry.MaxRetries, s.ParkedQueue = nil, 0, "" })),
			[]string{"a-b work=true shards=0 dead=a-b-dlq parked= ladder=false", "orders work=true shards=0 dead=orders-dlq parked=orders-parked ladder=true"},
		},
		"a part alone": {
			Identity{Convention: Redeliver},
			[]Queue{{Name: "lost-dlq"}, {Name: "odd-parked"}},
			[]string{"lost work=false shards=0 dead=lost-dlq parked= ladder=false", "odd work=false shards=0 dead= parked=odd-parked ladder=false"},
		},
		"a dead-letter queue of another name": {
			Identity{Convention: Shove},
			liveOf(t, spec(Shove, "orders", func(s *Spec) { s.DeadLetterQueue = "graveyard" })),
			[]string{"orders work=true shards=0 dead=graveyard parked= ladder=true"},
		},
		"a consumer group": {
			Identity{Convention: Shove, ConsumerGroup: "eu"},
			liveOf(t, spec(Shove, "orders", func(s *Spec) { s.ConsumerGroup = "eu"; s.DeadLetterQueue = s.DeadLetterQueueName() })),
			[]string{"orders work=true shards=0 dead=orders-eu-dlq parked= ladder=true"},
		},
		"shards": {
			Identity{Convention: Shove},
			liveOf(t, spec(Shove, "ledger", func(s *Spec) { s.Sequenced, s.SequenceShards = true, 3 })),
			[]string{"ledger work=true shards=3 dead=ledger-dlq parked= ladder=true"},
		},
		"acemq":     {Identity{Convention: AceMQ}, liveOf(t, spec(AceMQ, "orders", nil)), []string{"orders work=true shards=0 dead=orders.dlq parked=orders.parked ladder=true"}},
		"rabbitkit": {Identity{Convention: RabbitKit}, liveOf(t, spec(RabbitKit, "orders", nil)), []string{"orders work=true shards=0 dead=orders.dlq parked= ladder=true"}},
		"queuey": {
			Identity{Convention: Queuey},
			liveOf(t, spec(Queuey, "orders", func(s *Spec) { s.HoldDelays, s.Retry.Delays = nil, s.HoldDelays })),
			[]string{"orders work=true shards=0 dead=orders.dead parked= ladder=false"},
		},
		"nothing of the convention's": {Identity{Convention: Queuey}, liveOf(t, spec(Redeliver, "orders", nil)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := text(RecogniseTopics(test.like, append(test.queues, strangers...))); !slices.Equal(got, test.want) {
				t.Errorf("recognised\n%q, want\n%q", got, test.want)
			}
		})
	}
}

func TestUnrecognised(t *testing.T) {
	t.Parallel()
	id := Identity{Topic: "orders", Convention: RabbitKit}
	hold := func(n int, ttl int64) Queue {
		return Queue{Name: fmt.Sprintf("orders.retry.%d", n), Arguments: Arguments{ArgMessageTTL: ttl, ArgDeadLetterKey: "orders"}}
	}
	queues := []Queue{hold(1, 1000), hold(3, 3000), hold(4, 4000), {Name: "orders.dlq"}, {Name: "other.retry.2", Arguments: Arguments{ArgMessageTTL: int64(2), ArgDeadLetterKey: "other"}}}
	refs, _ := id.RecogniseLadder(queues)
	if got, want := id.Unrecognised(queues, refs), []string{"orders.retry.3", "orders.retry.4"}; !slices.Equal(got, want) {
		t.Errorf("left out %q, want %q", got, want)
	}
	whole := slices.Concat(queues, []Queue{hold(2, 2000)})
	refs, _ = id.RecogniseLadder(whole)
	if got := id.Unrecognised(whole, refs); got != nil {
		t.Errorf("left out %q of a whole ladder", got)
	}
}

func TestGuessIdentity(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		role       Role
		queue      string
		arguments  Arguments
		topic      string
		convention Convention
	}{
		"redeliver dead letters": {RoleDeadLetter, "orders-dlq", Arguments{ArgQueueType: "quorum", ArgDeliveryLimit: int64(1000000)}, "orders", Redeliver},
		"shove dead letters":     {RoleDeadLetter, "orders-dlq", nil, "orders", Shove},
		"a quorum queue":         {RoleDeadLetter, "orders-dlq", Arguments{ArgQueueType: "quorum"}, "orders", Redeliver},
		"queuey dead letters":    {RoleDeadLetter, "orders.dead", nil, "orders", Queuey},
		"parked":                 {RoleParked, "orders.parked", nil, "orders", AceMQ},
		"redeliver topic": {
			RoleWork, "orders", Arguments{ArgQueueType: "quorum", ArgDeadLetterExchange: "orders-retry", ArgDeadLetterKey: "orders-dlq"}, "orders", Redeliver,
		},
		"shove topic":     {RoleWork, "orders", Arguments{ArgDeadLetterExchange: "", ArgDeadLetterKey: "orders-dlq"}, "orders", Shove},
		"acemq topic":     {RoleWork, "orders", Arguments{ArgQueueType: "quorum", ArgDeadLetterExchange: "acemq.dlx", ArgDeadLetterKey: "orders.dlq"}, "orders", AceMQ},
		"rabbitkit topic": {RoleWork, "orders", Arguments{ArgQueueType: "quorum", ArgDeadLetterExchange: "", ArgDeadLetterKey: "orders.dlq"}, "orders", RabbitKit},
		"queuey topic":    {RoleWork, "orders", Arguments{ArgMaxPriority: int64(10)}, "orders", Queuey},
		"nobody's":        {RoleDeadLetter, "graveyard", nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, ok := GuessIdentity(test.role, "v", test.queue, test.arguments)
			if ok != (test.topic != "") || id.Topic != test.topic || id.Convention != test.convention || ok && id.VHost != "v" {
				t.Errorf("guessed %+v, %v; want topic %q under %q", id, ok, test.topic, test.convention)
			}
		})
	}
}
