package topology

import (
	"testing"
	"time"
)

func TestJitterFactorOfAFoundLadder(t *testing.T) {
	t.Parallel()
	for _, convention := range []Convention{Redeliver, RabbitKit} {
		for _, shards := range []int{1, 2, 3, 5} {
			for _, factor := range []float64{0.05, 0.2, 0.5, 0.9999} {
				spec := Spec{Identity: Identity{Topic: "orders", Convention: convention}, HoldDelays: []time.Duration{time.Second, time.Minute}}
				want := 0.0
				if shards > 1 {
					spec.JitterShards, spec.JitterFactor, want = shards, factor, factor
				}
				objects, err := spec.BuildLadder()
				if err != nil {
					t.Fatal(err)
				}
				if got := JitterFactorOf(objects.HoldRefs()); got != want {
					t.Errorf("%s, %d shards: %v, want %v", convention, shards, got, want)
				}
			}
		}
	}
}

// TestJitterFactorOfOtherDelays is a factor that is allowed, whatever the delays are.
func TestJitterFactorOfOtherDelays(t *testing.T) {
	t.Parallel()
	for _, other := range []time.Duration{time.Millisecond, time.Second, time.Hour} {
		got := JitterFactorOf([]HoldRef{{Name: "a", Delay: time.Second}, {Name: "b", Delay: other, Shard: 1}})
		if got <= 0 || got >= 1 {
			t.Errorf("%s: %v", other, got)
		}
	}
}
