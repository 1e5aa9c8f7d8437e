package topology

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	second := time.Second
	number := func(n int) *int { return &n }
	type refusal struct {
		convention Convention
		change     func(*Spec)
		essentials []string
	}
	for name, tc := range map[string]refusal{
		"queue type":      {Redeliver, func(s *Spec) { s.QueueType = Classic }, []string{`"classic"`, "redeliver", `"quorum"`, "leave queue_type out"}},
		"queue type, two": {RabbitKit, func(s *Spec) { s.QueueType = "stream" }, []string{`"stream"`, "rabbitkit", `"quorum", "classic"`}},
		"no dead-letter queue": {
			Redeliver, func(s *Spec) { s.DeadLetterQueue = "" },
			[]string{`"orders"`, "no dead-letter queue", "discarded", `"orders-dlq"`, "allow_message_loss = true"},
		},
		"dead-letter queue is the work queue":    {Redeliver, func(s *Spec) { s.DeadLetterQueue = "orders" }, []string{`dead-letter queue "orders"`, "choose another"}},
		"dead-letter queue is a hold queue":      {Redeliver, func(s *Spec) { s.DeadLetterQueue = "orders-hold-30s" }, []string{`"orders-hold-30s"`, "itself uses this name"}},
		"dead-letter queue is no hold queue yet": {Redeliver, func(s *Spec) { s.DeadLetterQueue = "orders-hold-7s" }, []string{`"orders-hold-7s"`, "itself uses this name"}},
		"dead-letter queue is a shard":           {Redeliver, func(s *Spec) { s.DeadLetterQueue = "orders-hold-30s.s2" }, []string{`"orders-hold-30s.s2"`, "itself uses this name"}},
		"dead-letter queue is reserved":          {Redeliver, func(s *Spec) { s.DeadLetterQueue = "orders-migrating" }, []string{`"orders-migrating"`, "itself uses this name"}},
		"dead-letter queue is a sequenced shard": {Shove, func(s *Spec) { s.DeadLetterQueue = "orders-seq-1" }, []string{`"orders-seq-1"`, "itself uses this name"}},
		"dead-letter queue's name":               {Redeliver, func(s *Spec) { s.DeadLetterQueue = "amq.dead" }, []string{`dead-letter queue "amq.dead"`, "reserved"}},
		"dead-letter and parked queue":           {Redeliver, func(s *Spec) { s.ParkedQueue = "orders-dlq" }, []string{`"orders-dlq"`, "both", "leave parked_queue out"}},
		"parked queue's name":                    {Redeliver, func(s *Spec) { s.ParkedQueue = strings.Repeat("p", 300) }, []string{"parked queue", "300 bytes", "allows 255"}},
		"no parked queue in the convention":      {RabbitKit, func(s *Spec) { s.ParkedQueue = "parked" }, []string{`parked_queue "parked"`, "rabbitkit", "leave it out"}},
		"park":                                   {Redeliver, func(s *Spec) { s.Park = "drop" }, []string{`park "drop"`, `"reject"`, `"publish"`}},
		"park = reject under republish":          {Redeliver, func(s *Spec) { s.Park, s.Retry.Strategy = ParkReject, Republish }, []string{`park = "reject"`, `"republish"`, "leave park out"}},
		"park without a parked queue":            {Redeliver, func(s *Spec) { s.Park, s.ParkedQueue = ParkPublish, "" }, []string{`park = "publish"`, "no parked queue", "set parked_queue"}},

		"a ladder for queuey": {
			Queuey, func(s *Spec) { s.HoldDelays, s.Retry.Delays = durations(t, "5s"), nil },
			[]string{"hold ladder", "queuey", "on demand", "retry.delays"},
		},
		"zero delay":            {Redeliver, func(s *Spec) { s.HoldDelays[0] = 0 }, []string{"delay 1 is 0s", "positive"}},
		"negative delay":        {Redeliver, func(s *Spec) { s.HoldDelays[0] = -second }, []string{"delay 1 is -1s", "positive"}},
		"microseconds":          {Redeliver, func(s *Spec) { s.HoldDelays[0] = 1500 * time.Microsecond }, []string{"delay 1 is 1.5ms", "whole milliseconds", "use 2ms"}},
		"too long":              {Redeliver, func(s *Spec) { s.HoldDelays[2] = MaxDelay + time.Millisecond }, []string{"delay 3 is 49d17h2m47s296ms", "32 bits", "at most 49d17h2m47s"}},
		"too long when doubled": {Queuey, func(s *Spec) { s.Retry.Delays[2] = MaxDelay/2/second*second + second }, []string{"delay 3 is 24d20h31m24s", "queuey", "twice the delay", "at most 24d20h31m23s"}},
		"not whole seconds":     {Shove, func(s *Spec) { s.HoldDelays[0] = 1500 * time.Millisecond }, []string{"delay 1 is 1s500ms", "shove", "whole seconds", "use 2s"}},
		"repeated delay":        {Redeliver, func(s *Spec) { s.HoldDelays[1] = 5 * second }, []string{"delay 2 repeats 5s", "leave the duplicate out"}},
		"descending delays":     {Redeliver, func(s *Spec) { s.HoldDelays[1] = second }, []string{"delay 2 (1s)", "before it (5s)", "shortest first"}},
		"long hold name": {
			Redeliver, func(s *Spec) {
				s.Topic, s.HoldDelays[2] = strings.Repeat("x", 245), durations(t, "2m500ms")[0]
				s.DeadLetterQueue, s.ParkedQueue = "d", ""
			},
			[]string{"-hold-120500ms", "259 bytes", "allows 255", "shorten the topic's name by"},
		},
		"shards":              {Redeliver, func(s *Spec) { s.JitterShards, s.JitterFactor = 101, 0.1 }, []string{"jitter_shards 101", "1 (not split) to 100"}},
		"negative shards":     {Redeliver, func(s *Spec) { s.JitterShards = -1 }, []string{"jitter_shards -1"}},
		"shards without any":  {AceMQ, func(s *Spec) { s.JitterShards, s.JitterFactor = 2, 0.1 }, []string{"jitter_shards 2", "acemq", "leave it out"}},
		"no factor":           {Redeliver, func(s *Spec) { s.JitterShards = 2 }, []string{"jitter_factor 0", "above 0 and below 1"}},
		"factor of one":       {RabbitKit, func(s *Spec) { s.JitterShards, s.JitterFactor = 2, 1 }, []string{"jitter_factor 1", "below 1"}},
		"factor without use":  {Redeliver, func(s *Spec) { s.JitterFactor = 0.1 }, []string{"jitter_factor 0.1", "no effect"}},
		"factor is no number": {Redeliver, func(s *Spec) { s.JitterShards, s.JitterFactor = 2, math.NaN() }, []string{"jitter_factor NaN"}},
		"shard waits too long": {
			Redeliver, func(s *Spec) {
				s.HoldDelays[2], s.JitterShards, s.JitterFactor, s.Retry.Strategy = MaxDelay, 2, 0.5, Republish
			},
			[]string{"49d17h2m47s295ms", "shard 1", "4294967295"},
		},

		"strategy":            {Redeliver, func(s *Spec) { s.Retry.Strategy = "wait" }, []string{`"wait"`, `"in_place", "broker_delayed", "republish", "hybrid"`}},
		"no delays":           {Redeliver, func(s *Spec) { s.HoldDelays = nil }, []string{`"orders"`, "retries 3 times", "no delays", "hold_queues", "max_retries = 0"}},
		"bad retry delays":    {Redeliver, func(s *Spec) { s.HoldDelays, s.Retry.Delays = nil, durations(t, "5s 5s") }, []string{"retry.delays", "delay 2 repeats 5s"}},
		"other retry delays":  {Redeliver, func(s *Spec) { s.Retry.Delays = durations(t, "5s 30s") }, []string{"(5s, 30s)", "(5s, 30s, 2m)", "leave retry.delays out"}},
		"negative retries":    {Redeliver, func(s *Spec) { s.Retry.MaxRetries = -1 }, []string{"max_retries -1", "0 (never retry)"}},
		"too few hold queues": {RabbitKit, func(s *Spec) { s.Retry.MaxRetries = 5 }, []string{"rabbitkit", "5 retries need 5 delays", "there are 3", "last_delay_repeats = true"}},
		"give up":             {Redeliver, func(s *Spec) { s.Retry.GiveUpAfter = -second }, []string{"give_up_after -1s", "positive"}},
		"give up, precision":  {Redeliver, func(s *Spec) { s.Retry.GiveUpAfter = time.Nanosecond }, []string{"give_up_after 1ns", "whole milliseconds"}},
		"jitter":              {Redeliver, func(s *Spec) { s.Retry.Jitter = 1 }, []string{"jitter 1", "below 1"}},
		"jitter is no number": {Redeliver, func(s *Spec) { s.Retry.Jitter = math.NaN() }, []string{"jitter NaN"}},
		"negative jitter":     {Redeliver, func(s *Spec) { s.Retry.Jitter = -0.1 }, []string{"jitter -0.1"}},
		"hold_from elsewhere": {Redeliver, func(s *Spec) { s.Retry.HoldFrom = second }, []string{"hold_from", "hybrid strategy, not in_place"}},
		"negative hold_from":  {Redeliver, func(s *Spec) { s.Retry.Strategy, s.Retry.HoldFrom = Hybrid, -second }, []string{"hold_from -1s", "in_place and republish"}},
		"republish without a ladder": {
			Redeliver, func(s *Spec) { s.Retry.Strategy, s.Retry.Delays, s.HoldDelays = Republish, s.HoldDelays, nil },
			[]string{`"republish"`, `"orders"`, "handed none", `"in_place"`},
		},
		"in place, too long": {
			Redeliver, func(s *Spec) { s.HoldDelays[2] = 20 * time.Minute },
			[]string{"delay 20m", "up to 24m", "timeout of 30m", "only 22m30s", `"republish"`, "x-consumer-timeout"},
		},
		"in place, timeout": {
			Redeliver, func(s *Spec) { s.Extra = map[Role]Arguments{RoleWork: {ArgConsumerTimeout: int64(60_000)}} },
			[]string{"delay 2m", "timeout of 1m", "only 45s"},
		},
		"hybrid, in-place part": {
			Redeliver, func(s *Spec) {
				s.Retry.Strategy, s.Retry.HoldFrom, s.HoldDelays[1] = Hybrid, time.Hour, 25*time.Minute
				s.HoldDelays[2] = 2 * time.Hour
			},
			[]string{"delay 25m", "up to 30m"},
		},

		"delay_min elsewhere":     {Redeliver, func(s *Spec) { s.Retry.DelayMin = second }, []string{"retry.delay_min", "broker_delayed strategy, not in_place"}},
		"broker delayed, classic": {Shove, func(s *Spec) { brokerDelayed(s) }, []string{`"broker_delayed"`, "only quorum", "is classic", `"in_place"`}},
		"broker delayed, delays":  {Redeliver, func(s *Spec) { brokerDelayed(s); s.Retry.Delays = durations(t, "5s") }, []string{"retry.delays", "delay_min * retries"}},
		"broker delayed, ladder":  {Redeliver, func(s *Spec) { brokerDelayed(s); s.HoldDelays = durations(t, "5s") }, []string{"hold queues would stay empty", "leave hold_queues out"}},
		"broker delayed, min":     {Redeliver, func(s *Spec) { brokerDelayed(s); s.Retry.DelayMin = 0 }, []string{"delay_min 0s", "positive"}},
		"broker delayed, max":     {Redeliver, func(s *Spec) { brokerDelayed(s); s.Retry.DelayMax = 0 }, []string{"delay_max 0s", "(1s)", "would not grow"}},
		"broker delayed, longest": {Redeliver, func(s *Spec) { brokerDelayed(s); s.Retry.DelayMax = 2 * MaxDelay }, []string{"delay_max", "49d17h2m47s"}},

		"negative limit":     {Redeliver, func(s *Spec) { s.DeliveryLimit = -1 }, []string{"delivery_limit -1", "3.10", "1000000"}},
		"limit on classic":   {Shove, func(s *Spec) { s.DeliveryLimit = 100 }, []string{"delivery_limit 100", "classic", "leave it out"}},
		"limit too low":      {Redeliver, func(s *Spec) { s.DeliveryLimit, s.Retry.MaxRetries = 5, 6 }, []string{"delivery_limit 5", "max_retries 6", "16 or more"}},
		"limit not stated":   {Redeliver, func(s *Spec) { s.Retry.MaxRetries = 991 }, []string{"max_retries 991", "at least 1001"}},
		"largest budget":     {Redeliver, func(s *Spec) { s.Retry.MaxRetries = math.MaxInt }, []string{"beyond the default delivery limits"}},
		"implicit limit":     {AceMQ, func(s *Spec) { s.Retry.MaxRetries = 21 }, []string{"max_retries 21", "acemq", "after 20 redeliveries", "31 or more"}},
		"priority":           {Queuey, func(s *Spec) { s.MaxPriority = number(256) }, []string{"max_priority 256", "1 to 255"}},
		"negative priority":  {Queuey, func(s *Spec) { s.MaxPriority = number(-1) }, []string{"max_priority -1"}},
		"priority on quorum": {Redeliver, func(s *Spec) { s.MaxPriority = number(10) }, []string{"max_priority 10", "quorum", "leave it out"}},

		"binding to the default exchange": {Redeliver, func(s *Spec) { s.Bindings = []Binding{{RoutingKey: "k"}} }, []string{`"orders"`, "default exchange", "leave the binding out"}},
		"binding, exchange":               {Redeliver, func(s *Spec) { s.Bindings = []Binding{{Source: "a\nb"}} }, []string{`"a\nb"`, "line break"}},
		"binding, long key":               {Redeliver, func(s *Spec) { s.Bindings = []Binding{{Source: "e", RoutingKey: strings.Repeat("k", 256)}} }, []string{`exchange "e"`, "256 bytes"}},
		"binding, key":                    {Redeliver, func(s *Spec) { s.Bindings = []Binding{{Source: "e", RoutingKey: "\xff"}} }, []string{`exchange "e"`, `"\xff"`, "UTF-8"}},
		"binding, arguments":              {Redeliver, func(s *Spec) { s.Bindings = []Binding{{Source: "e", Arguments: Arguments{"k": nil}}} }, []string{`exchange "e"`, `"k"`, "null"}},

		"extra, null":        {Redeliver, func(s *Spec) { s.Extra = map[Role]Arguments{RoleHold: {"x-k": []any{map[string]any{"n": nil}}}} }, []string{`"x-k"`, "null", "leave it out"}},
		"extra, type":        {Redeliver, func(s *Spec) { s.Extra = map[Role]Arguments{RoleParked: {"x-k": []string{}}} }, []string{"extra_arguments", `"x-k"`, "[]string"}},
		"extra, expires":     {Redeliver, func(s *Spec) { s.Extra = map[Role]Arguments{RoleHold: {ArgExpires: 60000}} }, []string{`"x-expires" = 60000`, "delete the queue", "leave it out"}},
		"extra, timeout":     {Redeliver, func(s *Spec) { s.Extra = map[Role]Arguments{RoleWork: {ArgConsumerTimeout: "60000"}} }, []string{`"x-consumer-timeout" = "60000"`, "whole milliseconds"}},
		"extra, no timeout":  {Redeliver, func(s *Spec) { s.Extra = map[Role]Arguments{RoleWork: {ArgConsumerTimeout: 0}} }, []string{`"x-consumer-timeout" = 0`, "from 1"}},
		"extra, negative":    {Redeliver, func(s *Spec) { s.Extra = map[Role]Arguments{RoleWork: {"x-max-length": -5}} }, []string{`"x-max-length" = -5`, "a whole number from 0", "gone by then"}},
		"extra, fraction":    {Redeliver, func(s *Spec) { s.Extra = map[Role]Arguments{RoleWork: {"x-max-length": 1.5}} }, []string{`"x-max-length" = 1.5`, "whole number"}},
		"extra, long ttl":    {Redeliver, func(s *Spec) { s.Extra = map[Role]Arguments{RoleWork: {ArgMessageTTL: int64(1) << 40}} }, []string{`"x-message-ttl"`, "to 4294967295"}},
		"extra, flag":        {Redeliver, func(s *Spec) { s.Extra = map[Role]Arguments{RoleWork: {"x-single-active-consumer": "true"}} }, []string{`"x-single-active-consumer" = "true"`, "true or false"}},
		"extra, locator":     {Redeliver, func(s *Spec) { s.Extra = map[Role]Arguments{RoleWork: {"x-queue-leader-locator": "here"}} }, []string{`"here"`, `"balanced"`}},
		"extra, in contract": {Redeliver, func(s *Spec) { s.Extra = map[Role]Arguments{RoleWork: {ArgDeliveryLimit: 7}} }, []string{`"x-delivery-limit"`, `queue "orders"`, "as 50", "leave it out"}},
		"extra, queue type":  {Shove, func(s *Spec) { s.Extra = map[Role]Arguments{RoleDeadLetter: {ArgQueueType: "quorum"}} }, []string{`"x-queue-type"`, `queue "orders-dlq"`, `"classic"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := plain(t, tc.convention)
			tc.change(&s)
			_, err := s.Build()
			refused(t, err, tc.essentials...)
			if _, err := s.Manifest(); err == nil {
				t.Error("the manifest was computed")
			}
		})
	}
}

func brokerDelayed(s *Spec) {
	s.HoldDelays = nil
	s.Retry = RetryPolicy{Strategy: BrokerDelayed, MaxRetries: 3, DelayMin: time.Second, DelayMax: time.Minute}
}

func TestValidateAccepts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		convention Convention
		change     func(*Spec)
	}{
		"never retries":           {Redeliver, func(s *Spec) { s.HoldDelays, s.Retry.MaxRetries = nil, 0 }},
		"never retries, strategy": {Redeliver, func(s *Spec) { s.HoldDelays, s.Retry.MaxRetries, s.Retry.Strategy = nil, 0, Republish }},
		"longest delay":           {Redeliver, func(s *Spec) { s.HoldDelays[2], s.Retry.Strategy = MaxDelay, Republish }},
		"longest delay, doubled": {Queuey, func(s *Spec) {
			s.Retry.Delays = []time.Duration{MaxDelay / 2 / time.Second * time.Second}
			s.Retry.MaxRetries = 0
			s.Extra = map[Role]Arguments{RoleWork: {ArgConsumerTimeout: MaxDelay.Milliseconds()}}
		}},
		"the same delays twice": {Redeliver, func(s *Spec) { s.Retry.Delays = durations(t, "5s 30s 2m") }},
		"longest in place":      {Redeliver, func(s *Spec) { s.HoldDelays[2], s.Retry.Jitter = 22*time.Minute+30*time.Second, 0 }},
		"longer with a timeout": {Redeliver, func(s *Spec) {
			s.HoldDelays[2] = time.Hour
			s.Extra = map[Role]Arguments{RoleWork: {ArgConsumerTimeout: 7_200_000}}
		}},
		"delivery limit is the budget":    {Redeliver, func(s *Spec) { s.DeliveryLimit, s.Retry.MaxRetries = 3, 3 }},
		"republished copies do not count": {Redeliver, func(s *Spec) { s.DeliveryLimit, s.Retry.MaxRetries, s.Retry.Strategy = 5, 100, Republish }},
		"twenty under an implicit limit":  {AceMQ, func(s *Spec) { s.Retry.MaxRetries = 20 }},
		"dead letters shared by a group":  {Shove, func(s *Spec) { s.ConsumerGroup = "g"; s.DeadLetterQueue = "orders-dlq" }},
		"another topic's dead end":        {Redeliver, func(s *Spec) { s.DeadLetterQueue = "payments-dlq" }},
		"a binding of RabbitMQ's own":     {Redeliver, func(s *Spec) { s.Bindings = []Binding{{Source: "amq.topic", RoutingKey: "line\nbreak"}} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := plain(t, tc.convention)
			tc.change(&s)
			m, err := s.Manifest()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := DecodeManifest(m.Encode()); err != nil {
				t.Errorf("the manifest cannot be read: %v", err)
			}
		})
	}
}

func TestDefaultDeliveryLimit(t *testing.T) {
	t.Parallel()
	for retries, want := range map[int]int{
		-1: 50, 0: 50, 10: 50, 40: 50, 41: 100, 90: 100, 91: 200, 190: 200, 191: 500, 490: 500, 491: 1000, 990: 1000, 991: 0, math.MaxInt: 0,
	} {
		if got := DefaultDeliveryLimit(retries); got != want {
			t.Errorf("DefaultDeliveryLimit(%d) = %d, want %d", retries, got, want)
		}
	}
}

func TestValidateHoldFrom(t *testing.T) {
	t.Parallel()
	refused(t, ValidateHoldFrom(0), "hold_from 0s", "positive", "never and always are the strategies in_place and republish")
	refused(t, ValidateHoldFrom(time.Microsecond), "whole milliseconds")
	if err := ValidateHoldFrom(time.Millisecond); err != nil {
		t.Error(err)
	}
}

func TestInPlaceBound(t *testing.T) {
	t.Parallel()
	if got := InPlaceBound(DefaultConsumerTimeout); got != 22*time.Minute+30*time.Second {
		t.Errorf("InPlaceBound = %s", got)
	}
	if got := InPlaceBound(math.MaxInt64); got <= 0 {
		t.Errorf("InPlaceBound overflows to %s", got)
	}
}
