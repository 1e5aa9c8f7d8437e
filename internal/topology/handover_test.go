package topology

import (
	"reflect"
	"testing"
	"time"
)

// What a ladder hands over gives its topic the same ladder, and what a broker has of it is recognised.
func TestHandOver(t *testing.T) {
	t.Parallel()
	for _, c := range Conventions() {
		for _, tc := range contractCases(c) {
			s := tc.Spec.spec(c)
			objects, err := s.Build()
			if err != nil {
				t.Fatal(err)
			}
			topic := s
			topic.HoldDelays, topic.JitterShards, topic.JitterFactor = nil, 0, 0
			topic, err = topic.WithHoldQueues(objects.HoldRefs())
			if err != nil {
				t.Errorf("%s, %s: %v", c, tc.Name, err)
				continue
			}
			if got, want := manifestOf(t, topic), manifestOf(t, s); string(got.Encode()) != string(want.Encode()) {
				t.Errorf("%s, %s: handed over, the manifest is another", c, tc.Name)
			}
			live := append([]Queue{{Name: "foreign-hold-5s", Arguments: Arguments{ArgMessageTTL: int64(5000), ArgDeadLetterKey: "foreign"}}}, objects.Queues...)
			shards := s.SequenceShards
			if got, n := s.RecogniseLadder(live); !reflect.DeepEqual(got, objects.HoldRefs()) || len(got) > 0 && n != shards {
				t.Errorf("%s, %s: recognised %v of %d shards, want %v of %d", c, tc.Name, got, n, objects.HoldRefs(), shards)
			}
			if n := s.RecogniseShards(live); n != shards {
				t.Errorf("%s, %s: recognised %d shards, want %d", c, tc.Name, n, shards)
			}
		}
	}
}

func TestWithHoldQueuesRefuses(t *testing.T) {
	t.Parallel()
	hold := func(name string, delay string, shard int) HoldRef {
		return HoldRef{name, durations(t, delay)[0], shard}
	}
	for name, tc := range map[string]struct {
		refs       []HoldRef
		essentials []string
	}{
		"another topic's":  {[]HoldRef{hold("payments-hold-5s", "5s", 0)}, []string{`"payments-hold-5s"`, `"orders-hold-5s"`, "this topic's own ladder"}},
		"another delay's":  {[]HoldRef{hold("orders-hold-5s", "6s", 0)}, []string{`"orders-hold-5s"`, `"orders-hold-6s"`}},
		"a shard first":    {[]HoldRef{hold("orders-hold-5s.s1", "5s", 1)}, []string{"shard 1 out of order"}},
		"a shard missing":  {[]HoldRef{hold("orders-hold-5s", "5s", 0), hold("orders-hold-5s.s2", "6s", 2)}, []string{"shard 2 out of order"}},
		"a negative shard": {[]HoldRef{hold("orders-hold-5s", "5s", 0), hold("orders-hold-5s", "6s", -1)}, []string{"shard -1 out of order"}},
		"uneven shards":    {[]HoldRef{hold("orders-hold-5s", "5s", 0), hold("orders-hold-5s.s1", "6s", 1), hold("orders-hold-9s", "9s", 0)}, []string{"tier 1 has 1 shards", "tier 0 has 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Spec{Identity: Identity{Topic: "orders"}}.WithHoldQueues(tc.refs)
			refused(t, err, tc.essentials...)
		})
	}
}

// The delays of shards that are handed over are checked like those that are computed.
func TestHandedOverShardsAreChecked(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, -time.Second, MaxDelay + time.Millisecond} {
		s, err := Spec{Identity: Identity{Topic: "orders"}}.WithHoldQueues([]HoldRef{{"orders-hold-5s", 5 * time.Second, 0}, {"orders-hold-5s.s1", delay, 1}})
		if err != nil {
			t.Fatal(err)
		}
		refused(t, s.ValidateLadder(), "delay 5s", "shard 1", "1 to 4294967295")
	}
}

// Queues that only look like hold queues are left out.
func TestRecogniseLadderIgnoresOthers(t *testing.T) {
	t.Parallel()
	id := Identity{Topic: "orders"}
	live := []Queue{
		{Name: "orders-hold-5s", Arguments: Arguments{ArgMessageTTL: int64(6000), ArgDeadLetterKey: "orders"}},       // another delay
		{Name: "orders-hold-7s", Arguments: Arguments{ArgMessageTTL: "7000", ArgDeadLetterKey: "orders"}},            // no number
		{Name: "orders-hold-8s", Arguments: Arguments{ArgMessageTTL: int64(8000), ArgDeadLetterKey: "payments"}},     // another home
		{Name: "orders-hold-9s", Arguments: Arguments{ArgMessageTTL: int64(9000)}},                                   // no home
		{Name: "orders-hold-10s.s1", Arguments: Arguments{ArgMessageTTL: int64(10_000), ArgDeadLetterKey: "orders"}}, // a shard of nothing
		{Name: "orders", Arguments: nil},
	}
	if refs, _ := id.RecogniseLadder(live); len(refs) != 0 {
		t.Errorf("recognised %v", refs)
	}
}
