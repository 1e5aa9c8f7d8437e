package topology

import (
	"strings"
	"testing"
	"time"
)

// refused fails unless err is an error that says everything in essentials.
func refused(t *testing.T, err error, essentials ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted; want a refusal that says %q", essentials)
	}
	for _, part := range essentials {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("refusal %q does not say %q", err, part)
		}
	}
}

// durations reads delays such as "5s 30s 2m".
func durations(t testing.TB, text string) []time.Duration {
	t.Helper()
	var out []time.Duration
	for _, field := range strings.Fields(text) {
		d, err := ParseDuration(field)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

// plain is a topic with everything its convention has and three tiers.
func plain(t testing.TB, c Convention) Spec {
	t.Helper()
	s := Spec{Identity: Identity{Topic: "orders", Convention: c}, Retry: RetryPolicy{MaxRetries: 3, Jitter: DefaultJitter}}
	s.DeadLetterQueue, s.ParkedQueue = s.DeadLetterQueueName(), s.ParkedQueueName()
	if c == Queuey {
		s.Retry.Delays = durations(t, "5s 30s 2m")
	} else {
		s.HoldDelays = durations(t, "5s 30s 2m")
	}
	return s
}

// manifestOf is the manifest of a spec that must be good.
func manifestOf(t testing.TB, s Spec) Manifest {
	t.Helper()
	m, err := s.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	return m
}
