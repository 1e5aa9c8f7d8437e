package consumer

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// ladder makes a policy of the topic "orders" with hold queues of 1s, 1m and 1h.
func ladder(t *testing.T, strategy topology.Strategy, change ...func(*topology.Spec)) Policy {
	t.Helper()
	return NewPolicy(testManifest(t, func(s *topology.Spec) {
		s.HoldDelays = []time.Duration{time.Second, time.Minute, time.Hour}
		s.Retry = topology.RetryPolicy{Strategy: strategy, MaxRetries: 5, GiveUpAfter: 24 * time.Hour}
		for _, f := range change {
			f(s)
		}
	}), redeliver.Config{})
}

// TestDecideWhereMessagesRepublish is the settle table of republish and hybrid,
// row by row.
func TestDecideWhereMessagesRepublish(t *testing.T) {
	t.Parallel()
	const (
		inPlace = "in place"
		dead    = "orders-dlq"
		parked  = "orders-parked"
	)
	withParked := func(s *topology.Spec) { s.ParkedQueue = parked }
	type row struct {
		outcome redeliver.Outcome
		facts   Facts
		where   string // a queue that a copy goes to, or in place
		verb    Verb   // where in place
		delay   time.Duration
		hops    bool
		count   int
	}
	tests := map[topology.Strategy]map[string]row{
		topology.Republish: {
			"ack":              {redeliver.Ack(), Facts{}, inPlace, VerbAck, 0, false, 0},
			"first retry":      {redeliver.Retry(errBoom), Facts{}, "orders-hold-1s", 0, time.Second, false, 1},
			"second retry":     {redeliver.Retry(errBoom), Facts{RetryCount: 1}, "orders-hold-60s", 0, time.Minute, false, 2},
			"last tier again":  {redeliver.Retry(errBoom), Facts{RetryCount: 4}, "orders-hold-3600s", 0, time.Hour, false, 5},
			"held long":        {redeliver.Retry(errBoom), Facts{Held: 25 * time.Minute}, "orders-hold-1s", 0, time.Second, false, 1},
			"exhausted":        {redeliver.Retry(errBoom), Facts{RetryCount: 5}, dead, 0, 0, false, 0},
			"too old":          {redeliver.Retry(errBoom), Facts{Age: 24 * time.Hour, AgeKnown: true}, dead, 0, 0, false, 0},
			"permanent":        {redeliver.Retry(errPermanent), Facts{}, dead, 0, 0, false, 0},
			"reject":           {redeliver.Reject(errBoom), Facts{}, dead, 0, 0, false, 0},
			"park":             {redeliver.Park(errBoom), Facts{}, parked, 0, 0, false, 0},
			"defer":            {redeliver.Defer(), Facts{RetryCount: 3}, "orders-hold-1s", 0, time.Second, false, 3},
			"asked, exact":     {redeliver.RetryAfter(time.Minute, nil), Facts{}, "orders-hold-60s", 0, time.Minute, false, 1},
			"asked, not early": {redeliver.RetryAfter(time.Minute+1, nil), Facts{}, "orders-hold-3600s", 0, time.Hour, false, 1},
			"asked, hops":      {redeliver.RetryAfter(90*time.Minute, nil), Facts{}, "orders-hold-3600s", 0, time.Hour, true, 1},
			"deferred, hops":   {redeliver.DeferFor(time.Hour + 1), Facts{RetryCount: 2}, "orders-hold-3600s", 0, time.Hour, true, 2},
			"deferred, short":  {redeliver.DeferFor(time.Millisecond), Facts{RetryCount: 2}, "orders-hold-1s", 0, time.Second, false, 2},
		},
		topology.Hybrid: { // hold_from is 30s
			"short retry":         {redeliver.Retry(errBoom), Facts{Random: 0.5}, inPlace, VerbRequeue, time.Second, false, 1},
			"long retry":          {redeliver.Retry(errBoom), Facts{RetryCount: 1}, "orders-hold-60s", 0, time.Minute, false, 2},
			"no room in place":    {redeliver.Retry(errBoom), Facts{Held: 23 * time.Minute}, "orders-hold-1s", 0, time.Second, false, 1},
			"exhausted":           {redeliver.Retry(errBoom), Facts{RetryCount: 5}, inPlace, VerbDeadLetter, 0, false, 0},
			"reject":              {redeliver.Reject(errBoom), Facts{}, inPlace, VerbDeadLetter, 0, false, 0},
			"park":                {redeliver.Park(errBoom), Facts{}, inPlace, VerbDeadLetter, 0, false, 0},
			"defer":               {redeliver.Defer(), Facts{RetryCount: 3, Random: 0.5}, inPlace, VerbAgain, time.Second, false, 3},
			"asked, short":        {redeliver.RetryAfter(10*time.Second, nil), Facts{}, inPlace, VerbRequeue, 10 * time.Second, false, 1},
			"asked, at hold_from": {redeliver.RetryAfter(30*time.Second, nil), Facts{}, "orders-hold-60s", 0, time.Minute, false, 1},
			"asked, hops":         {redeliver.DeferFor(3 * time.Hour), Facts{}, "orders-hold-3600s", 0, time.Hour, true, 0},
			"asked, no room":      {redeliver.RetryAfter(10*time.Second, nil), Facts{Held: 23 * time.Minute}, "orders-hold-60s", 0, time.Minute, false, 1},
		},
	}
	for strategy, rows := range tests {
		p := ladder(t, strategy, withParked)
		for name, r := range rows {
			t.Run(fmt.Sprintf("%s/%s", strategy, name), func(t *testing.T) {
				a := p.Decide(r.facts, r.outcome)
				switch {
				case r.where == inPlace && (a.Verb != r.verb || a.Hold != r.delay || a.Target != nil),
					r.where != inPlace && (a.Verb != VerbPublish || a.Target == nil || a.Target.Name != r.where || a.Hold != 0):
					t.Errorf("%+v (target %+v), want %s with verb %s", a, a.Target, r.where, r.verb)
				case a.Delay != r.delay || a.Hops != r.hops || a.RetryCount != r.count || a.Early:
					t.Errorf("%+v, want delay %s, hops %t, count %d", a, r.delay, r.hops, r.count)
				}
			})
		}
	}
}

// TestExplicitDelaysAreNeverEarly: whatever is asked for, the hold queue is no
// shorter, or the copy says how long it still has to wait.
func TestExplicitDelaysAreNeverEarly(t *testing.T) {
	t.Parallel()
	for _, strategy := range []topology.Strategy{topology.Republish, topology.Hybrid} {
		p := ladder(t, strategy, func(s *topology.Spec) { s.JitterShards, s.JitterFactor = 3, 0.5 })
		for asked := time.Millisecond; asked < 100_000*time.Hour; asked = asked*7/3 + 1 {
			for _, id := range []string{"", "a", "b", "c", "d"} {
				a := p.Decide(Facts{MessageID: id}, redeliver.RetryAfter(asked, nil))
				if a.Cause == CauseDelayTooLong && asked > maxNotBefore {
					continue
				}
				if a.Verb == VerbPublish && a.Delay < asked && !a.Hops || a.Verb != VerbPublish && a.Hold < asked {
					t.Errorf("%s: %s asked for: %+v", strategy, asked, a)
				}
				if hop := p.Hop(Facts{MessageID: id}, asked); hop.Verb == VerbPublish && hop.Delay < asked && !hop.Hops || hop.Verb != VerbPublish && hop.Hold < asked {
					t.Errorf("%s: %s remaining: %+v", strategy, asked, hop)
				}
			}
		}
	}
}

func TestShardsSpreadMessages(t *testing.T) {
	t.Parallel()
	p := ladder(t, topology.Republish, func(s *topology.Spec) { s.JitterShards, s.JitterFactor = 3, 0.5 })
	seen := make(map[string]int)
	for i := range 300 {
		seen[p.Decide(Facts{MessageID: fmt.Sprint(i)}, redeliver.Retry(nil)).Target.Name]++
	}
	if len(seen) != 3 {
		t.Errorf("300 messages went to %v, want all three shards", seen)
	}
}

func TestDecideUnpublishedCopies(t *testing.T) {
	t.Parallel()
	inHold := func(p Policy) Action { return p.Decide(Facts{RetryCount: 1}, redeliver.Retry(errBoom)) }
	f := Facts{RetryCount: 1, Random: 0.5}
	late := Facts{RetryCount: 1, Random: 0.5, Held: 22*time.Minute + 20*time.Second}

	republish, hybrid := ladder(t, topology.Republish), ladder(t, topology.Hybrid)
	for name, tt := range map[string]struct {
		got        Action
		verb       Verb
		hold       time.Duration
		early      bool
		retryCount int
	}{
		"republish waits and publishes again":  {republish.DecideUnpublished(f, inHold(republish), errBoom), VerbPublish, time.Minute, false, 2},
		"republish, missing":                   {republish.DecideUnpublished(f, inHold(republish), ErrNoQueue), VerbPublish, time.Minute, false, 2},
		"republish, no time":                   {republish.DecideUnpublished(late, inHold(republish), ErrNoQueue), VerbHandBack, 10 * time.Second, true, 2},
		"hybrid waits and publishes again":     {hybrid.DecideUnpublished(f, inHold(hybrid), errBoom), VerbPublish, time.Minute, false, 2},
		"hybrid, missing, retries in place":    {hybrid.DecideUnpublished(f, inHold(hybrid), ErrNoQueue), VerbRequeue, time.Minute, false, 2},
		"hybrid, missing, no time":             {hybrid.DecideUnpublished(late, inHold(hybrid), ErrNoQueue), VerbRequeue, 10 * time.Second, true, 2},
		"hybrid, missing, a delay asked for":   {hybrid.DecideUnpublished(f, hybrid.Decide(f, redeliver.RetryAfter(45*time.Second, nil)), ErrNoQueue), VerbRequeue, time.Minute, false, 2},
		"hybrid, missing, asked for too much":  {hybrid.DecideUnpublished(f, hybrid.Decide(f, redeliver.RetryAfter(2*time.Hour, nil)), ErrNoQueue), VerbHandBack, 22*time.Minute + 30*time.Second, true, 2},
		"republish, no dead-letter queue":      {republish.DecideUnpublished(f, republish.Decide(f, redeliver.Reject(nil)), ErrNoQueue), VerbDeadLetter, 0, false, 0},
		"republish, dead-letter queue refuses": {republish.DecideUnpublished(f, republish.Decide(f, redeliver.Reject(nil)), errBoom), VerbDeadLetter, 0, false, 0},
	} {
		if tt.got.Verb != tt.verb || tt.got.Hold != tt.hold || tt.got.Early != tt.early || tt.got.RetryCount != tt.retryCount {
			t.Errorf("%s: %+v, want %s after %s, early %t", name, tt.got, tt.verb, tt.hold, tt.early)
		}
	}
}

// TestDecideUnpublishable: a copy that can never be published is not tried for
// ever, and what is rejected instead is not lost.
func TestDecideUnpublishable(t *testing.T) {
	t.Parallel()
	why := fmt.Errorf("%w: too large", ErrUnpublishable)
	parks := func(s *topology.Spec) { s.ParkedQueue = "orders-parked" }
	republish, hybrid := ladder(t, topology.Republish, parks), ladder(t, topology.Hybrid, parks)
	inPlace := NewPolicy(testManifest(t, func(s *topology.Spec) { s.ParkedQueue, s.Park = "orders-parked", topology.ParkPublish }), redeliver.Config{})
	for name, tt := range map[string]struct {
		policy  Policy
		outcome redeliver.Outcome
		cause   Cause
	}{
		"a retry, republish":  {republish, redeliver.RetryAfter(time.Hour, errBoom), CauseUnpublishable},
		"a retry, hybrid":     {hybrid, redeliver.RetryAfter(time.Hour, errBoom), CauseUnpublishable},
		"parked, republish":   {republish, redeliver.Park(errBoom), CauseUnreadable},
		"rejected, republish": {republish, redeliver.Reject(errBoom), CauseRejected},
		"parked, in place":    {inPlace, redeliver.Park(errBoom), CauseUnreadable},
	} {
		p := tt.policy
		a := p.Decide(Facts{}, tt.outcome)
		if a.Verb != VerbPublish {
			t.Fatalf("%s: %+v is not published", name, a)
		}
		if got := p.DecideUnpublished(Facts{}, a, why); got.Verb != VerbDeadLetter || got.Fate != FateDeadLettered || got.Cause != tt.cause || got.Hold != 0 {
			t.Errorf("%s: %+v, want it dead-lettered", name, got)
		}
		p.BrokerDeadLetters = false
		if got := p.DecideUnpublished(Facts{}, a, why); got.Verb == VerbDeadLetter {
			t.Errorf("%s without a dead-letter exchange: %+v, which loses the message", name, got)
		}
	}
}

func TestDecideBrokerDelayed(t *testing.T) {
	t.Parallel()
	p := NewPolicy(testManifest(t, func(s *topology.Spec) {
		s.Retry = topology.RetryPolicy{Strategy: topology.BrokerDelayed, MaxRetries: 5, DelayMin: time.Second, DelayMax: 3 * time.Second}
	}), redeliver.Config{})
	for name, tt := range map[string]struct {
		outcome    redeliver.Outcome
		retryCount int
		verb       Verb
		hold       time.Duration
		delay      time.Duration
	}{
		"retry":       {redeliver.Retry(errBoom), 0, VerbRequeue, 0, time.Second},
		"third":       {redeliver.Retry(errBoom), 2, VerbRequeue, 0, 3 * time.Second},
		"capped":      {redeliver.Retry(errBoom), 4, VerbRequeue, 0, 3 * time.Second},
		"exhausted":   {redeliver.Retry(errBoom), 5, VerbDeadLetter, 0, 0},
		"defer":       {redeliver.Defer(), 2, VerbHandBack, 0, 2 * time.Second},
		"retry after": {redeliver.RetryAfter(time.Minute, errBoom), 0, VerbRequeue, 59 * time.Second, time.Minute}, // the rest is the broker's
		"retry soon":  {redeliver.RetryAfter(time.Millisecond, errBoom), 0, VerbRequeue, 0, time.Second},
		"defer for":   {redeliver.DeferFor(time.Minute), 0, VerbAgain, time.Minute, time.Minute},
		"too long":    {redeliver.DeferFor(time.Hour), 0, VerbDeadLetter, 0, 0},
		"reject":      {redeliver.Reject(errBoom), 0, VerbDeadLetter, 0, 0},
	} {
		a := p.Decide(Facts{RetryCount: tt.retryCount}, tt.outcome)
		if a.Verb != tt.verb || a.Hold != tt.hold || a.Delay != tt.delay || a.Early {
			t.Errorf("%s: %+v, want %s after %s, delay %s", name, a, tt.verb, tt.hold, tt.delay)
		}
	}
	if got := p.brokerDelay(math.MaxInt); got != 3*time.Second {
		t.Errorf("the delay of very many deliveries is %s", got)
	}
}

func TestDecideSequenced(t *testing.T) {
	t.Parallel()
	for _, quorum := range []bool{true, false} {
		p := testPolicy()
		p.Sequenced, p.BrokerCounts = true, quorum
		a := p.Decide(Facts{RetryCount: 1, Random: 0.5}, redeliver.Retry(errBoom))
		if a.Verb != VerbAgain || a.Hold != time.Minute || a.RetryCount != 2 {
			t.Errorf("a retry: %+v", a)
		}
		a = p.Decide(Facts{RetryCount: 1, Random: 0.5}, redeliver.DeferFor(time.Second))
		if a.Fate != FateRetried || a.Verb != VerbAgain || a.Hold != time.Second || a.RetryCount != 2 || !errors.Is(a.Reason, redeliver.ErrSequencedDefer) {
			t.Errorf("a deferral: %+v", a)
		}
		a = p.Decide(Facts{RetryCount: 3}, redeliver.Defer())
		if a.Cause != CauseExhausted || a.Verb != VerbDeadLetter {
			t.Errorf("a deferral beyond the budget: %+v", a)
		}
		// It can never go back alone: its successors would overtake it.
		for _, count := range []int{0, 2} {
			a = p.Decide(Facts{Held: testBound, RetryCount: count}, redeliver.Retry(errBoom))
			if a.Fate != FateRetried || a.Verb != VerbRenew || !a.Early {
				t.Errorf("no time left: %+v", a)
			}
		}
		p.Parked = parked
		a = p.DecideUnpublished(Facts{Held: testBound}, p.Decide(Facts{}, redeliver.Park(errBoom)), ErrNoQueue)
		if a.Verb != VerbRenew {
			t.Errorf("no time left to park: %+v", a)
		}
	}
}

// TestDecideDead: nothing of a dead-letter queue is ever given up.
func TestDecideDead(t *testing.T) {
	t.Parallel()
	p := DeadPolicy(testManifest(t, nil))
	outcomes := []redeliver.Outcome{
		{},
		redeliver.Retry(errBoom), redeliver.Retry(errPermanent), redeliver.Reject(errBoom), redeliver.Defer(), redeliver.Park(errBoom),
		redeliver.RetryAfter(1000*time.Hour, errBoom),
	}
	for _, o := range outcomes {
		pause := time.Duration(0)
		for count := range 20 {
			a := p.Decide(Facts{RetryCount: count, Random: 0.5, Age: time.Hour, AgeKnown: true}, o)
			if a.Verb != VerbAgain || a.Hold < pause || a.RetryCount != count+1 {
				t.Fatalf("%s, %d times: %+v", o, count, a)
			}
			pause = a.Hold
		}
		if pause != deadPauseLast {
			t.Errorf("the pauses grow to %s, want %s", pause, deadPauseLast)
		}
		if a := p.Decide(Facts{RetryCount: 9, Held: time.Hour}, o); a.Verb != VerbHandBack || !a.Early {
			t.Errorf("%s near the consumer timeout: %+v", o, a)
		}
	}
}

func TestCountsFromHeaders(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		convention topology.Convention
		headers    map[string]any
		broker     int64
		republish  int
		hybrid     int
	}{
		"none":                 {topology.Redeliver, nil, 0, 0, 0},
		"int32":                {topology.Redeliver, map[string]any{"x-redeliver-retry-count": int32(3)}, 1, 3, 4},
		"text":                 {topology.Redeliver, map[string]any{"x-redeliver-retry-count": "2"}, 0, 2, 2},
		"malformed":            {topology.Redeliver, map[string]any{"x-redeliver-retry-count": "two"}, 0, 0, 0},
		"another type":         {topology.Redeliver, map[string]any{"x-redeliver-retry-count": 2.5}, 2, 0, 2},
		"forged, large":        {topology.Redeliver, map[string]any{"x-redeliver-retry-count": int64(math.MaxInt64)}, math.MaxInt64, 5, 5},
		"forged, negative":     {topology.Redeliver, map[string]any{"x-redeliver-retry-count": int64(math.MinInt64)}, math.MinInt64, 0, 0},
		"attempts from 1":      {topology.AceMQ, map[string]any{"x-acemq-attempt": int32(3)}, 0, 2, 2},
		"attempts, first":      {topology.AceMQ, map[string]any{"x-acemq-attempt": int32(1)}, 0, 0, 0},
		"attempts, zero":       {topology.AceMQ, map[string]any{"x-acemq-attempt": int32(0)}, 0, 0, 0},
		"an older name":        {topology.Shove, map[string]any{"x-shove-retry-count": uint32(2)}, 7, 2, 2},
		"the name comes first": {topology.Shove, map[string]any{"x-shove-retry-count": uint32(2), "x-retry-count": uint32(4)}, 0, 4, 4},
	} {
		for strategy, want := range map[topology.Strategy]int{topology.Republish: tt.republish, topology.Hybrid: tt.hybrid} {
			p := ladder(t, strategy, func(s *topology.Spec) {
				s.Convention = tt.convention
				s.DeadLetterQueue = s.DeadLetterQueueName()
			})
			d := Delivery{Count: tt.broker}
			d.Message.Headers = tt.headers
			if got := p.RetryCount(&d); got != want {
				t.Errorf("%s under %s: %d, want %d", name, strategy, got, want)
			}
		}
	}
}

func TestAgeAndRemainingAreNotTrusted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	stamp := now.Add(-time.Hour)
	p, inPlace := ladder(t, topology.Republish), testPolicy()
	for name, tt := range map[string]struct {
		seen      any
		firstSeen time.Time
		notBefore any
		remaining time.Duration
	}{
		"nothing":     {nil, stamp, nil, 0},
		"set":         {now.Add(-2 * time.Hour).UnixMilli(), now.Add(-2 * time.Hour), now.Add(time.Minute).UnixMilli(), time.Minute},
		"past":        {nil, stamp, now.Add(-time.Minute).UnixMilli(), 0},
		"text":        {fmt.Sprint(stamp.UnixMilli()), stamp, fmt.Sprint(now.Add(time.Second).UnixMilli()), time.Second},
		"negative":    {int64(-5), stamp, int64(-5), 0},
		"absurd":      {int64(math.MaxInt64), stamp, int64(math.MaxInt64), 0},
		"malformed":   {"yesterday", stamp, "tomorrow", 0},
		"wrong types": {true, stamp, []any{}, 0},
	} {
		m := redeliver.Message{Timestamp: stamp, Headers: map[string]any{"x-redeliver-first-seen": tt.seen, topology.HeaderNotBefore: tt.notBefore}}
		if got := p.FirstSeen(&m); !got.Equal(tt.firstSeen) {
			t.Errorf("%s: first seen %s, want %s", name, got, tt.firstSeen)
		}
		if got := p.Remaining(&m, now); got != tt.remaining {
			t.Errorf("%s: %s remaining, want %s", name, got, tt.remaining)
		}
		if got := inPlace.FirstSeen(&m); !got.Equal(stamp) {
			t.Errorf("%s: in place first seen %s, want the timestamp", name, got)
		}
		if got := inPlace.Remaining(&m, now); got != 0 {
			t.Errorf("%s: in place %s remaining", name, got)
		}
	}
	if got := p.FirstSeen(&redeliver.Message{}); !got.IsZero() {
		t.Errorf("of unknown age: %s", got)
	}
}
