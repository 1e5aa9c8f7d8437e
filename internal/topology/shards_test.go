package topology

import (
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestShardTTL(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		delay  string
		shards int
		factor float64
		want   []int64
	}{
		{"10s", 0, 0, []int64{10000}},
		{"10s", 1, 0.2, []int64{10000}},
		{"10s", 2, 0.2, []int64{10000, 12000}},
		{"10s", 3, 0.2, []int64{10000, 8000, 12000}},
		{"10s", 4, 0.2, []int64{10000, 8000, 10000, 12000}},
		{"10s", 5, 0.25, []int64{10000, 7500, 9166, 10833, 12500}},
		{"1ms", 3, 0.5, []int64{1, 1, 1}},
		{"3ms", 2, 0.1, []int64{3, 3}},
	} {
		var got []int64
		for shard := range max(1, tc.shards) {
			got = append(got, shardTTL(durations(t, tc.delay)[0], shard, tc.shards, tc.factor))
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s in %d shards of %v = %v, want %v", tc.delay, tc.shards, tc.factor, got, tc.want)
		}
	}
}

// The MD5 sums are those of RFC 1321.
func TestShardOf(t *testing.T) {
	t.Parallel()
	sums := map[string]string{
		"a":              "0cc175b9c0f1b6a831c399e269772661",
		"abc":            "900150983cd24fb0d6963f7d28e17f72",
		"message digest": "f96b697d7cb7938d525a2f31aaf161d0",
	}
	for id, sum := range sums {
		for _, shards := range []int{2, 3, 7, 100} {
			n, _ := new(big.Int).SetString(sum, 16)
			want := int(n.Mod(n, big.NewInt(int64(shards))).Int64())
			if got := ShardOf(id, shards); got != want {
				t.Errorf("ShardOf(%q, %d) = %d, want %d", id, shards, got, want)
			}
		}
	}
	// The same by hand: the last digits are 1 and 2.
	if ShardOf("a", 2) != 1 || ShardOf("abc", 2) != 0 {
		t.Errorf("parity of a and abc = %d and %d", ShardOf("a", 2), ShardOf("abc", 2))
	}
	for _, shards := range []int{-1, 0, 1} {
		if got := ShardOf("a", shards); got != 0 {
			t.Errorf("ShardOf(a, %d) = %d", shards, got)
		}
	}
	if got := ShardOf("", 5); got != 0 {
		t.Errorf("without an id the shard is %d", got)
	}
}

func TestShardNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		convention Convention
		want       string
	}{
		{Redeliver, "orders-hold-5s orders-hold-5s.s1 orders-hold-5s.s2 orders-hold-30s orders-hold-30s.s1 orders-hold-30s.s2"},
		{RabbitKit, "orders.retry.1 orders.retry.1.s1 orders.retry.1.s2 orders.retry.2 orders.retry.2.s1 orders.retry.2.s2"},
	} {
		s := Spec{Identity: Identity{Topic: "orders", Convention: tc.convention}, HoldDelays: durations(t, "5s 30s"), JitterShards: 3, JitterFactor: 0.2}
		objects, err := s.BuildLadder()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i, q := range objects.Queues {
			names = append(names, q.Name)
			if q.Tier != i/3 || q.Shard != i%3 || q.Delay != time.Duration(q.Arguments[ArgMessageTTL].(int64))*time.Millisecond {
				t.Errorf("%s: tier %d, shard %d, delay %s, arguments %v", q.Name, q.Tier, q.Shard, q.Delay, q.Arguments)
			}
		}
		if got := strings.Join(names, " "); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.convention, got, tc.want)
		}
	}
}
