package topology

import (
	"fmt"
	"time"
)

// contractCases are the specs whose outcome the golden files pin.
func contractCases(c Convention) []contractCase {
	switch c {
	case Redeliver:
		return redeliverCases()
	case Shove:
		return shoveCases()
	case AceMQ:
		return acemqCases()
	case RabbitKit:
		return rabbitkitCases()
	case Queuey:
		return queueyCases()
	default:
		panic(fmt.Sprintf("convention %q has no golden cases", c))
	}
}

func delays(list ...time.Duration) []Duration {
	out := make([]Duration, len(list))
	for i, d := range list {
		out[i] = Duration(d)
	}
	return out
}

var (
	threeTiers = delays(5*time.Second, 30*time.Second, 2*time.Minute)
	ten        = contractRetry{MaxRetries: DefaultMaxRetries, Jitter: DefaultJitter}
)

func redeliverCases() []contractCase {
	orders := contractSpec{Topic: "orders", DeadLetterQueue: "orders-dlq", ParkedQueue: "orders-parked", HoldDelays: threeTiers, Retry: ten}
	with := func(change func(*contractSpec)) contractSpec {
		s := orders
		change(&s)
		return s
	}
	return []contractCase{
		{Name: "plain", Spec: orders},
		{Name: "without a ladder", Spec: with(func(s *contractSpec) { s.HoldDelays, s.Retry.Delays = nil, threeTiers })},
		{Name: "without a ladder or a dead end", Spec: contractSpec{
			Topic: "orders", AllowMessageLoss: true, Retry: contractRetry{MaxRetries: 0},
		}},
		{Name: "without a dead-letter queue", Spec: with(func(s *contractSpec) { s.DeadLetterQueue, s.AllowMessageLoss = "", true })},
		{Name: "custom dead-letter queue", Spec: with(func(s *contractSpec) { s.DeadLetterQueue, s.ParkedQueue = "failed orders", "unreadable" })},
		{Name: "parked messages are published", Spec: with(func(s *contractSpec) { s.Park = ParkPublish })},
		{Name: "millisecond delays", Spec: with(func(s *contractSpec) {
			s.HoldDelays = delays(500*time.Millisecond, time.Second, 1500*time.Millisecond, 90*time.Second)
		})},
		{Name: "hybrid", Spec: with(func(s *contractSpec) { s.Retry.Strategy, s.Retry.GiveUpAfter = Hybrid, Duration(Day) })},
		{Name: "republish", Spec: with(func(s *contractSpec) { s.Retry.Strategy = Republish })},
		{Name: "broker delayed", Spec: with(func(s *contractSpec) {
			s.HoldDelays = nil
			s.Retry = contractRetry{Strategy: BrokerDelayed, MaxRetries: 10, DelayMin: Duration(time.Second), DelayMax: Duration(time.Minute)}
		})},
		{Name: "jitter in three shards", Spec: with(func(s *contractSpec) {
			s.HoldDelays, s.JitterShards, s.JitterFactor = threeTiers[:2], 3, 0.1
		})},
		{Name: "forty retries", Spec: with(func(s *contractSpec) { s.Retry.MaxRetries = 40 })},
		{Name: "forty-one retries", Spec: with(func(s *contractSpec) { s.Retry.MaxRetries = 41 })},
		{Name: "stated delivery limit", Spec: with(func(s *contractSpec) { s.Retry.MaxRetries, s.DeliveryLimit = 2000, 5000 })},
		{Name: "bindings and extra arguments", Spec: with(func(s *contractSpec) {
			s.VHost = "shop/eu"
			s.Bindings = []contractBinding{
				{Exchange: "shop.events", RoutingKey: "order.*"},
				{Exchange: "audit", RoutingKey: "", Arguments: Arguments{"x-match": "all", "kind": "order", "version": int64(2)}},
			}
			s.Extra = map[Role]Arguments{
				RoleWork:       {ArgSingleActiveConsumer: true, ArgConsumerTimeout: int64(3_600_000)},
				RoleHold:       {ArgMaxLength: int64(100_000)},
				RoleDeadLetter: {"x-note": "5000", "x-list": []any{int64(1), "1", map[string]any{"nested": false}}},
				RoleParked:     {ArgMaxLengthBytes: int64(1 << 30)},
			}
		})},
		{Name: "sequenced", Spec: with(func(s *contractSpec) { s.Sequenced, s.HoldDelays, s.Retry.Delays = true, nil, threeTiers })},
		{Name: "odd name", Spec: contractSpec{
			Topic: "bestellung@eu/50%#1?;a \"b\" 'ü'", DeadLetterQueue: "bestellung@eu/50%#1?;a \"b\" 'ü'-dlq", HoldDelays: threeTiers[:1], Retry: ten,
		}},
	}
}

func shoveCases() []contractCase {
	orders := contractSpec{Topic: "orders", DeadLetterQueue: "orders-dlq", HoldDelays: threeTiers, Retry: ten}
	with := func(change func(*contractSpec)) contractSpec {
		s := orders
		change(&s)
		return s
	}
	priority := 5
	return []contractCase{
		{Name: "plain", Spec: orders},
		{Name: "without a dead-letter queue", Spec: with(func(s *contractSpec) { s.DeadLetterQueue, s.AllowMessageLoss = "", true })},
		{Name: "custom dead-letter queue", Spec: with(func(s *contractSpec) { s.DeadLetterQueue = "all-failures" })},
		{Name: "consumer group", Spec: with(func(s *contractSpec) { s.ConsumerGroup, s.DeadLetterQueue = "billing", "orders-billing-dlq" })},
		{Name: "republish", Spec: with(func(s *contractSpec) { s.Retry.Strategy = Republish })},
		{Name: "priorities", Spec: with(func(s *contractSpec) { s.MaxPriority = &priority })},
		{Name: "retries beyond a quorum queue's limits", Spec: with(func(s *contractSpec) { s.Retry.MaxRetries, s.Retry.Strategy = 5000, Republish })},
		{Name: "sequenced over three shards", Spec: with(func(s *contractSpec) {
			s.Sequenced, s.SequenceShards = true, 3
			s.Bindings = []contractBinding{{Exchange: "shop.events", RoutingKey: "order.*"}}
		})},
		{Name: "one shard of a consumer group, without a ladder", Spec: with(func(s *contractSpec) {
			s.Sequenced, s.SequenceShards, s.ConsumerGroup, s.DeadLetterQueue = true, 1, "billing", "orders-billing-dlq"
			s.HoldDelays, s.Retry.Delays = nil, threeTiers
		})},
		{Name: "a ladder of one shard of a consumer group", Spec: with(func(s *contractSpec) {
			s.Sequenced, s.SequenceShards, s.ConsumerGroup, s.DeadLetterQueue = true, 1, "billing", "orders-billing-dlq"
		})},
	}
}

func acemqCases() []contractCase {
	orders := contractSpec{Topic: "orders", DeadLetterQueue: "orders.dlq", ParkedQueue: "orders.parked", HoldDelays: threeTiers, Retry: ten}
	with := func(change func(*contractSpec)) contractSpec {
		s := orders
		change(&s)
		return s
	}
	return []contractCase{
		{Name: "plain", Spec: orders},
		{Name: "every unit", Spec: with(func(s *contractSpec) {
			s.HoldDelays = delays(500*time.Millisecond, time.Second, 30*time.Second, 90*time.Second, 5*time.Minute, 2*time.Hour, Day)
			s.Retry.Strategy = Republish
		})},
		{Name: "without a ladder", Spec: with(func(s *contractSpec) { s.HoldDelays, s.Retry.Delays = nil, threeTiers })},
		{Name: "without a dead-letter queue", Spec: with(func(s *contractSpec) { s.DeadLetterQueue, s.AllowMessageLoss = "", true })},
		{Name: "custom dead-letter queue", Spec: with(func(s *contractSpec) { s.DeadLetterQueue, s.ParkedQueue = "failed", "" })},
		{Name: "parked messages are published", Spec: with(func(s *contractSpec) { s.Park = ParkPublish })},
		{Name: "stated delivery limit", Spec: with(func(s *contractSpec) { s.Retry.MaxRetries, s.DeliveryLimit = 30, 100 })},
		{Name: "sequenced", Spec: with(func(s *contractSpec) { s.Sequenced = true })},
	}
}

func rabbitkitCases() []contractCase {
	orders := contractSpec{
		Topic: "orders", DeadLetterQueue: "orders.dlq", HoldDelays: threeTiers, Retry: contractRetry{MaxRetries: 3, Jitter: DefaultJitter},
	}
	with := func(change func(*contractSpec)) contractSpec {
		s := orders
		change(&s)
		return s
	}
	return []contractCase{
		{Name: "plain", Spec: orders},
		{Name: "classic", Spec: with(func(s *contractSpec) { s.QueueType = Classic })},
		{Name: "last delay repeats", Spec: with(func(s *contractSpec) { s.Retry.MaxRetries, s.Retry.LastDelayRepeats = 10, true })},
		{Name: "republish", Spec: with(func(s *contractSpec) { s.Retry.Strategy = Republish })},
		{Name: "jitter in two shards", Spec: with(func(s *contractSpec) { s.JitterShards, s.JitterFactor = 2, 0.2 })},
		{Name: "jitter in four shards", Spec: with(func(s *contractSpec) { s.JitterShards, s.JitterFactor = 4, 0.25 })},
		{Name: "without a dead-letter queue", Spec: with(func(s *contractSpec) { s.DeadLetterQueue, s.AllowMessageLoss = "", true })},
		{Name: "custom dead-letter queue", Spec: with(func(s *contractSpec) { s.DeadLetterQueue = "failed" })},
		{Name: "sequenced", Spec: with(func(s *contractSpec) { s.Sequenced, s.QueueType = true, Classic })},
	}
}

func queueyCases() []contractCase {
	orders := contractSpec{Topic: "orders", DeadLetterQueue: "orders.dead", Retry: ten}
	orders.Retry.Delays = threeTiers
	with := func(change func(*contractSpec)) contractSpec {
		s := orders
		change(&s)
		return s
	}
	none, three := 0, 3
	return []contractCase{
		{Name: "plain", Spec: orders},
		{Name: "without priorities", Spec: with(func(s *contractSpec) { s.MaxPriority = &none })},
		{Name: "three priorities", Spec: with(func(s *contractSpec) { s.MaxPriority = &three })},
		{Name: "without a dead-letter queue", Spec: with(func(s *contractSpec) { s.DeadLetterQueue, s.AllowMessageLoss = "", true })},
		{Name: "custom dead-letter queue", Spec: with(func(s *contractSpec) { s.DeadLetterQueue = "failed" })},
	}
}
