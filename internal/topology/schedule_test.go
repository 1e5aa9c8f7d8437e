package topology

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestExponential(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		attempts         int
		initial, longest string
		want             string
	}{
		{5, "1s", "60s", "1s 2s 4s 8s"},
		{6, "10s", "5m", "10s 20s 40s 80s 160s"},
		{6, "10s", "1m", "10s 20s 40s 60s 60s"},
		{1, "10s", "1m", ""},
		{2, "10s", "10s", "10s"},
		{4, "3ms", "7ms", "3ms 6ms 7ms"},
	} {
		got, err := Exponential(tc.attempts, durations(t, tc.initial)[0], durations(t, tc.longest)[0])
		if err != nil || !slices.Equal(got, durations(t, tc.want)) {
			t.Errorf("Exponential(%d, %s, %s) = %v, %v; want %s", tc.attempts, tc.initial, tc.longest, got, err, tc.want)
		}
	}
	got, err := Exponential(MaxAttempts, time.Millisecond, MaxDelay)
	if err != nil || len(got) != MaxAttempts-1 || got[len(got)-1] != MaxDelay {
		t.Errorf("the longest schedule ends in %v, %v", got[len(got)-1], err)
	}
}

func TestFixed(t *testing.T) {
	t.Parallel()
	got, err := Fixed(4, 5*time.Second)
	if err != nil || !slices.Equal(got, durations(t, "5s 5s 5s")) {
		t.Errorf("Fixed(4, 5s) = %v, %v", got, err)
	}
	if got, err := Fixed(1, 5*time.Second); err != nil || len(got) != 0 {
		t.Errorf("Fixed(1, 5s) = %v, %v; want no delay", got, err)
	}
}

func TestSchedulesRefuse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err        func() error
		essentials []string
	}{
		"no attempts":     {schedule(0, time.Second, time.Second), []string{"attempts 0", "1 (no retry) to 1000"}},
		"too many":        {schedule(1001, time.Second, time.Second), []string{"attempts 1001", "1000"}},
		"zero":            {schedule(2, 0, time.Second), []string{"initial delay 0s", "positive"}},
		"negative":        {schedule(2, -time.Second, time.Second), []string{"initial delay -1s", "positive"}},
		"microseconds":    {schedule(2, 1500*time.Microsecond, time.Second), []string{"1.5ms", "whole milliseconds", "use 2ms"}},
		"swapped":         {schedule(2, time.Minute, time.Second), []string{"longest delay 1s", "1m", "swap"}},
		"too long":        {schedule(2, time.Minute, MaxDelay+time.Millisecond), []string{"longest delay 49d17h2m47s296ms", "at most 49d17h2m47s"}},
		"fixed, zero":     {func() error { _, err := Fixed(2, 0); return err }, []string{"delay 0s", "positive"}},
		"fixed, too long": {func() error { _, err := Fixed(2, MaxDelay+1e6); return err }, []string{"delay 49d", "at most"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, tc.err(), tc.essentials...)
		})
	}
}

func schedule(attempts int, initial, longest time.Duration) func() error {
	return func() error { _, err := Exponential(attempts, initial, longest); return err }
}

func TestTiers(t *testing.T) {
	t.Parallel()
	got := Tiers(durations(t, "10s 20s 40s 60s 60s"))
	if !slices.Equal(got, durations(t, "10s 20s 40s 60s")) {
		t.Errorf("Tiers = %v", got)
	}
	if got := Tiers(nil); len(got) != 0 {
		t.Errorf("Tiers(nil) = %v", got)
	}
}

func TestTierFor(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ count, tiers, want int }{
		{0, 3, 0},
		{1, 3, 1},
		{2, 3, 2},
		{3, 3, 2},
		{math.MaxInt, 3, 2},
		{-1, 3, 0},
		{math.MinInt, 3, 0},
		{0, 0, 0},
		{5, 0, 0},
		{5, 1, 0},
		{0, math.MinInt, 0},
	} {
		if got := TierFor(tc.count, tc.tiers); got != tc.want {
			t.Errorf("TierFor(%d, %d) = %d, want %d", tc.count, tc.tiers, got, tc.want)
		}
	}
}

func TestExplicitDelays(t *testing.T) {
	t.Parallel()
	ladder := "5s 30s 2m"
	for _, tc := range []struct {
		ladder, delay string
		tier          int
		ok            bool
		hop           int
	}{
		{ladder, "0s", 0, true, 0},
		{ladder, "5s", 0, true, 0},
		{ladder, "5s1ms", 1, true, 1},
		{ladder, "30s", 1, true, 1},
		{ladder, "31s", 2, true, 2},
		{ladder, "2m", 2, true, 2},
		{ladder, "2m1ms", 0, false, 2},
		{ladder, "1d", 0, false, 2},
		{"", "1s", 0, false, 0},
	} {
		delays, delay := durations(t, tc.ladder), durations(t, tc.delay)[0]
		if tier, ok := ExplicitTier(delays, delay); tier != tc.tier || ok != tc.ok {
			t.Errorf("ExplicitTier(%q, %s) = %d, %v; want %d, %v", tc.ladder, tc.delay, tier, ok, tc.tier, tc.ok)
		}
		if hop := NextHop(delays, delay); hop != tc.hop {
			t.Errorf("NextHop(%q, %s) = %d, want %d", tc.ladder, tc.delay, hop, tc.hop)
		}
	}
}

// A delay past the last tier takes several hops and is never released early.
func TestHopsAddUp(t *testing.T) {
	t.Parallel()
	delays := durations(t, "5s 30s 2m")
	waited, hops := time.Duration(0), 0
	for asked := durations(t, "4m40s")[0]; waited < asked; hops++ {
		waited += delays[NextHop(delays, asked-waited)]
	}
	if waited != durations(t, "6m")[0] || hops != 3 {
		t.Errorf("waited %s in %d hops", waited, hops)
	}
}

func TestGivesUp(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		age   time.Duration
		known bool
		limit time.Duration
		want  bool
	}{
		{time.Hour - 1, true, time.Hour, false},
		{time.Hour, true, time.Hour, true},
		{time.Hour + 1, true, time.Hour, true},
		{2 * time.Hour, false, time.Hour, false},
		{2 * time.Hour, true, 0, false},
		{-time.Hour, true, time.Hour, false},
	} {
		if got := GivesUp(tc.age, tc.known, tc.limit); got != tc.want {
			t.Errorf("GivesUp(%s, %v, %s) = %v", tc.age, tc.known, tc.limit, got)
		}
	}
}

func TestJitter(t *testing.T) {
	t.Parallel()
	const almostOne = 1 - 1.0/(1<<53)
	for _, tc := range []struct {
		delay  time.Duration
		factor float64
		r      float64
		want   time.Duration
	}{
		{10 * time.Second, 0.2, 0, 8 * time.Second},
		{10 * time.Second, 0.2, 0.5, 10 * time.Second},
		{10 * time.Second, 0, 0, 10 * time.Second},
		{10 * time.Second, 0.5, 0.75, 12500 * time.Millisecond},
		{time.Millisecond, 0.9, 0, time.Millisecond},
		{0, 0.2, 0.5, time.Millisecond},
		{math.MaxInt64, 0.5, almostOne, math.MaxInt64},
	} {
		if got := Jitter(tc.delay, tc.factor, tc.r); got != tc.want {
			t.Errorf("Jitter(%s, %v, %v) = %s, want %s", tc.delay, tc.factor, tc.r, got, tc.want)
		}
	}
	for _, factor := range []float64{0.01, 0.2, 0.99} {
		for _, r := range []float64{0, 0.1, 0.25, 0.5, 0.9, almostOne} {
			delay := time.Minute
			low, high := time.Duration(float64(delay)*(1-factor)), time.Duration(float64(delay)*(1+factor))
			if got := Jitter(delay, factor, r); got < low-1 || got > high+1 {
				t.Errorf("Jitter(%s, %v, %v) = %s is outside %s to %s", delay, factor, r, got, low, high)
			}
		}
	}
}

func TestRoundUp(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ delay, granularity, want time.Duration }{
		{1500 * time.Millisecond, time.Second, 2 * time.Second},
		{2 * time.Second, time.Second, 2 * time.Second},
		{1, time.Second, time.Second},
		{0, time.Second, 0},
		{-time.Millisecond, time.Second, -time.Millisecond},
		{time.Second, 0, time.Second},
		{time.Second, -time.Second, time.Second},
		{math.MaxInt64, time.Second, math.MaxInt64},
		{61 * time.Second, time.Minute, 2 * time.Minute},
	} {
		if got := RoundUp(tc.delay, tc.granularity); got != tc.want {
			t.Errorf("RoundUp(%s, %s) = %s, want %s", tc.delay, tc.granularity, got, tc.want)
		}
	}
}
