package consumer

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

var (
	errBoom      = errors.New("boom")
	errPermanent = redeliver.Permanent(errBoom)
	deadLetter   = &topology.ManifestTarget{ManifestQueue: topology.ManifestQueue{Name: "dead"}}
	parked       = &topology.ManifestTarget{ManifestQueue: topology.ManifestQueue{Name: "parked"}}
)

// The numbers of the exhaustive table: three tiers, three retries, and a bound
// of an hour. Random is 0.5 throughout, which is no jitter.
const (
	testBound = time.Hour
	fits      = 20 * time.Minute
)

func testPolicy() Policy {
	return Policy{
		MaxRetries: 3, Delays: []time.Duration{time.Second, time.Minute, 10 * time.Minute}, Jitter: 0.2,
		GiveUpAfter: 24 * time.Hour, HoldBound: testBound, BrokerCounts: true, DeadLetter: deadLetter,
	}
}

// verdict is a row's expectation, before it is known how the topic is set up.
type verdict struct {
	kind  string // "ack", "retry", "defer", "park", "final"
	cause Cause
	hold  time.Duration
	early bool
}

// TestDecideExhaustively goes through every outcome, in every state of the
// budget, with every amount of time left to hold, on every kind of topic.
func TestDecideExhaustively(t *testing.T) {
	outcomes := map[string]redeliver.Outcome{
		"none": {}, "ack": redeliver.Ack(), "retry": redeliver.Retry(errBoom), "retry-nil": redeliver.Retry(nil),
		"retry-permanent": redeliver.Retry(errPermanent), "retry-after": redeliver.RetryAfter(fits, errBoom),
		"retry-after-permanent": redeliver.RetryAfter(fits, errPermanent), "retry-after-0": redeliver.RetryAfter(0, errBoom),
		"reject": redeliver.Reject(errBoom), "reject-nil": redeliver.Reject(nil), "defer": redeliver.Defer(),
		"defer-for": redeliver.DeferFor(fits), "park": redeliver.Park(errBoom),
	}
	type budget struct {
		name       string
		retryCount int
		age        time.Duration
		known      bool
		spent      Cause // why no retry is left; "" where one is
	}
	budgets := []budget{
		{"first", 0, 0, false, ""},
		{"second", 1, time.Hour, true, ""},
		{"last", 2, 24*time.Hour - 1, true, ""},
		{"spent", 3, 0, false, CauseExhausted},
		{"beyond", 4, 0, false, CauseExhausted},
		{"old", 0, 24 * time.Hour, true, CauseTooOld},
		{"older", 1, 48 * time.Hour, true, CauseTooOld},
		{"old-unknown", 0, 48 * time.Hour, false, ""},
		{"spent-and-old", 3, 48 * time.Hour, true, CauseExhausted},
	}
	tiers := []time.Duration{time.Second, time.Minute, 10 * time.Minute, 10 * time.Minute, 10 * time.Minute}
	rooms := map[string]time.Duration{"fresh": 0, "half a second left": testBound - 500*time.Millisecond, "exactly fits": testBound - fits, "none left": testBound, "over": testBound + time.Minute}

	// expect is the settle table in words of one row.
	expect := func(name string, o redeliver.Outcome, b budget, held time.Duration) verdict {
		possible := max(0, testBound-held)
		wait := func(kind string, tier time.Duration) verdict {
			if o.Delay() > possible {
				return verdict{kind: "final", cause: CauseDelayTooLong}
			}
			if o.Delay() > 0 {
				return verdict{kind: kind, hold: o.Delay()}
			}
			return verdict{kind: kind, hold: min(tier, possible), early: tier > possible}
		}
		switch name {
		case "ack":
			return verdict{kind: "ack"}
		case "reject", "reject-nil":
			return verdict{kind: "final", cause: CauseRejected}
		case "park":
			return verdict{kind: "park", cause: CauseUnreadable}
		case "retry-permanent", "retry-after-permanent":
			return verdict{kind: "final", cause: CausePermanent}
		case "defer", "defer-for":
			return wait("defer", tiers[0])
		default: // every retry, and no outcome at all
			if b.spent != "" {
				return verdict{kind: "final", cause: b.spent}
			}
			return wait("retry", tiers[b.retryCount])
		}
	}

	count := 0
	for _, quorum := range []bool{true, false} {
		for _, dead := range []string{"broker", "publish", "none"} {
			for _, parks := range []bool{false, true} {
				p := testPolicy()
				p.BrokerCounts = quorum
				p.PublishFinal = dead == "publish"
				if dead == "none" {
					p.DeadLetter = nil
				}
				if parks {
					p.Parked = parked
				}
				for name, o := range outcomes {
					for _, b := range budgets {
						for room, held := range rooms {
							count++
							want := expect(name, o, b, held)
							got := p.Decide(Facts{RetryCount: b.retryCount, Held: held, Age: b.age, AgeKnown: b.known, Random: 0.5}, o)
							if err := checkAction(p, b.retryCount, want, got); err != nil {
								t.Errorf("quorum=%v dead=%s parks=%v outcome=%s budget=%s room=%q: %v\n got %+v\nwant %+v",
									quorum, dead, parks, name, b.name, room, err, got, want)
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases", count)
}

// checkAction compares an action with a verdict under a policy.
func checkAction(p Policy, retryCount int, want verdict, got Action) error {
	if want.kind == "retry" && want.early && !p.BrokerCounts && retryCount > 0 {
		want = verdict{kind: "final", cause: CauseDelayTooLong} // handed back, it would start again from 0
	}
	expected := Action{Hold: want.hold, Delay: want.hold, Asked: got.Asked, Early: want.early, Cause: want.cause, Reason: got.Reason}
	switch want.kind {
	case "ack":
		expected.Fate, expected.Verb = FateAcked, VerbAck
	case "retry":
		expected.Fate, expected.Verb, expected.RetryCount = FateRetried, VerbRequeue, retryCount+1
		if !p.BrokerCounts {
			expected.Verb = VerbAgain
		}
	case "defer":
		expected.Fate, expected.Verb, expected.RetryCount = FateDeferred, VerbAgain, retryCount
	case "park", "final":
		switch {
		case want.kind == "park" && p.Parked != nil:
			expected.Fate, expected.Verb, expected.Target = FateParked, VerbPublish, p.Parked
		case p.DeadLetter == nil:
			expected.Fate, expected.Verb = FateDiscarded, VerbDeadLetter
		case p.PublishFinal:
			expected.Fate, expected.Verb, expected.Target = FateDeadLettered, VerbPublish, p.DeadLetter
		default:
			expected.Fate, expected.Verb = FateDeadLettered, VerbDeadLetter
		}
	}
	if want.early && expected.Verb == VerbAgain {
		expected.Verb = VerbHandBack
	}
	if got != expected {
		return fmt.Errorf("expected %+v", expected)
	}
	return nil
}

func TestDecideReasons(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	tests := map[string]struct {
		outcome redeliver.Outcome
		facts   Facts
		is      error
	}{
		"retry":           {redeliver.Retry(errBoom), Facts{}, errBoom},
		"exhausted":       {redeliver.Retry(errBoom), Facts{RetryCount: 3}, errBoom},
		"permanent":       {redeliver.Retry(errPermanent), Facts{}, errBoom},
		"reject":          {redeliver.Reject(errBoom), Facts{}, errBoom},
		"park":            {redeliver.Park(errBoom), Facts{}, errBoom},
		"no outcome":      {redeliver.Outcome{}, Facts{}, redeliver.ErrNoOutcome},
		"delay too long":  {redeliver.RetryAfter(2*time.Hour, errBoom), Facts{}, errBoom},
		"defer nil error": {redeliver.Defer(), Facts{}, nil},
	}
	for name, tt := range tests {
		if got := p.Decide(tt.facts, tt.outcome); !errors.Is(got.Reason, tt.is) {
			t.Errorf("%s: reason %v, want %v", name, got.Reason, tt.is)
		}
	}
	var tooLong *redeliver.DelayError
	got := p.Decide(Facts{Held: 20 * time.Minute}, redeliver.DeferFor(41*time.Minute))
	if !errors.As(got.Reason, &tooLong) || tooLong.Asked != 41*time.Minute || tooLong.Possible != 40*time.Minute {
		t.Errorf("a delay too long: reason %v", got.Reason)
	}
}

// TestDecideJitter: the policy's delays vary both ways, those that were asked
// for do not vary at all.
func TestDecideJitter(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	for _, r := range []float64{0, 0.25, 0.5, 0.75, 0.999} {
		want := time.Duration(float64(time.Minute) * (0.8 + 0.4*r))
		if got := p.Decide(Facts{RetryCount: 1, Random: r}, redeliver.Retry(errBoom)).Hold; (got - want).Abs() > time.Microsecond {
			t.Errorf("random %v: held for %s, want %s", r, got, want)
		}
		if got := p.Decide(Facts{RetryCount: 1, Random: r}, redeliver.RetryAfter(5*time.Minute, errBoom)).Hold; got != 5*time.Minute {
			t.Errorf("random %v: an explicit delay of 5m was held for %s", r, got)
		}
	}
}

// TestDecideWithoutDelays: only a topic that never retries has no delays, and
// it may still defer.
func TestDecideWithoutDelays(t *testing.T) {
	t.Parallel()
	p := Policy{HoldBound: time.Hour, DeadLetter: deadLetter}
	if got := p.Decide(Facts{}, redeliver.Retry(errBoom)); got.Cause != CauseExhausted {
		t.Errorf("retry: %+v", got)
	}
	if got := p.Decide(Facts{}, redeliver.Defer()); got.Hold != deferWithoutDelays || got.Verb != VerbAgain {
		t.Errorf("defer: %+v", got)
	}
}

func TestDecideUnpublished(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	p.Parked = parked
	published := p.Decide(Facts{RetryCount: 1}, redeliver.Park(errBoom))
	again := p.DecideUnpublished(Facts{RetryCount: 1, Random: 0.5}, published, errBoom)
	if again.Verb != VerbPublish || again.Hold != time.Minute || again.Target != parked || again.Early {
		t.Errorf("with time left: %+v", again)
	}
	late := p.DecideUnpublished(Facts{RetryCount: 1, Random: 0.5, Held: testBound - time.Second}, again, ErrNoQueue)
	if late.Verb != VerbHandBack || late.Hold != time.Second || !late.Early {
		t.Errorf("near the consumer timeout: %+v", late)
	}
}

func TestShutdownVerb(t *testing.T) {
	t.Parallel()
	for verb, want := range map[Verb]Verb{
		verbNone: VerbHandBack, VerbRequeue: VerbRequeue, VerbAgain: VerbHandBack, VerbPublish: VerbHandBack, VerbHandBack: VerbHandBack,
	} {
		if got := (Action{Verb: verb}).shutdownVerb(); got != want {
			t.Errorf("%s: given back with %s, want %s", verb, got, want)
		}
	}
}

func TestRetryCountIsClamped(t *testing.T) {
	t.Parallel()
	p := testPolicy()
	for count, want := range map[int64]int{-1 << 63: 0, -1: 0, 0: 0, 2: 2, 3: 3, 4: 3, 1 << 62: 3} {
		if got := p.RetryCount(&Delivery{Count: count}); got != want {
			t.Errorf("count %d reads as %d, want %d", count, got, want)
		}
	}
	p.BrokerCounts = false
	if got := p.RetryCount(&Delivery{Count: 2}); got != 0 {
		t.Errorf("a forged count on a classic queue reads as %d, want 0", got)
	}
}
