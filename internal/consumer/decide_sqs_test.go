package consumer

import (
	"errors"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// lentPolicy is that of a standard queue of Amazon SQS.
func lentPolicy() Policy {
	p := testPolicy()
	p.BrokerWaits, p.HoldBound, p.BrokerDeadLetters = true, topology.SQSHoldBound, true
	return p
}

// TestDecideWhereTheBrokerWaits goes through what is different on Amazon SQS.
func TestDecideWhereTheBrokerWaits(t *testing.T) {
	t.Parallel()
	standard, fifo, send, discarding, dead := lentPolicy(), lentPolicy(), lentPolicy(), lentPolicy(), lentPolicy()
	fifo.Sequenced = true
	send.PublishFinal, send.Parked = true, parked
	discarding.DeadLetter, discarding.BrokerDeadLetters = nil, false
	dead.NeverGivesUp = true
	half := Facts{Random: 0.5}
	tests := map[string]struct {
		policy  Policy
		facts   Facts
		outcome redeliver.Outcome
		want    Action // without Reason
	}{
		"ack":           {standard, half, redeliver.Ack(), Action{Fate: FateAcked, Verb: VerbAck}},
		"retry":         {standard, half, redeliver.Retry(errBoom), Action{Fate: FateRetried, Verb: VerbRequeue, Delay: time.Second, After: time.Second, RetryCount: 1}},
		"second retry":  {standard, Facts{RetryCount: 1, Random: 0.5}, redeliver.Retry(errBoom), Action{Fate: FateRetried, Verb: VerbRequeue, Delay: time.Minute, After: time.Minute, RetryCount: 2}},
		"jitter down":   {standard, Facts{RetryCount: 1}, redeliver.Retry(errBoom), Action{Fate: FateRetried, Verb: VerbRequeue, Delay: 48 * time.Second, After: 48 * time.Second, RetryCount: 2}},
		"whole seconds": {standard, Facts{Random: 0.75}, redeliver.Retry(errBoom), Action{Fate: FateRetried, Verb: VerbRequeue, Delay: 2 * time.Second, After: 2 * time.Second, RetryCount: 1}},
		"asked":         {standard, half, redeliver.RetryAfter(90*time.Minute, errBoom), Action{Fate: FateRetried, Verb: VerbRequeue, Delay: 90 * time.Minute, After: 90 * time.Minute, RetryCount: 1}},
		"asked for too much": {
			standard,
			Facts{Held: time.Hour},
			redeliver.RetryAfter(11*time.Hour, errBoom),
			Action{Fate: FateDeadLettered, Verb: VerbDeadLetter, Cause: CauseDelayTooLong},
		},
		"a tier that does not fit is shorter": {
			standard,
			Facts{Held: topology.SQSHoldBound - 90*time.Second, RetryCount: 2, Random: 0.5},
			redeliver.Retry(errBoom),
			Action{Fate: FateRetried, Verb: VerbRequeue, Delay: 90 * time.Second, After: 90 * time.Second, RetryCount: 3},
		},
		"no time left":        {standard, Facts{Held: topology.MaxVisibility}, redeliver.Retry(errBoom), Action{Fate: FateRetried, Verb: VerbRequeue, RetryCount: 1}},
		"defer":               {standard, Facts{RetryCount: 2, Random: 0.5}, redeliver.Defer(), Action{Fate: FateDeferred, Verb: VerbRequeue, Delay: time.Second, After: time.Second, RetryCount: 2}},
		"defer counts":        {standard, Facts{RetryCount: 3}, redeliver.Defer(), Action{Fate: FateDeadLettered, Verb: VerbDeadLetter, Cause: CauseExhausted}},
		"spent":               {standard, Facts{RetryCount: 3}, redeliver.Retry(errBoom), Action{Fate: FateDeadLettered, Verb: VerbDeadLetter, Cause: CauseExhausted}},
		"reject":              {standard, half, redeliver.Reject(errBoom), Action{Fate: FateDeadLettered, Verb: VerbDeadLetter, Cause: CauseRejected}},
		"park as reject":      {standard, half, redeliver.Park(errBoom), Action{Fate: FateDeadLettered, Verb: VerbDeadLetter, Cause: CauseUnreadable}},
		"spent, send":         {send, Facts{RetryCount: 3}, redeliver.Retry(errBoom), Action{Fate: FateDeadLettered, Verb: VerbPublish, Target: deadLetter, Cause: CauseExhausted}},
		"park, send":          {send, half, redeliver.Park(errBoom), Action{Fate: FateParked, Verb: VerbPublish, Target: parked, Cause: CauseUnreadable}},
		"nowhere to go":       {discarding, half, redeliver.Reject(errBoom), Action{Fate: FateDiscarded, Verb: VerbAck, Cause: CauseRejected}},
		"fifo waits here":     {fifo, half, redeliver.Retry(errBoom), Action{Fate: FateRetried, Verb: VerbAgain, Hold: time.Second, Delay: time.Second, RetryCount: 1}},
		"fifo defer is retry": {fifo, half, redeliver.Defer(), Action{Fate: FateRetried, Verb: VerbAgain, Hold: time.Second, Delay: time.Second, RetryCount: 1}},
		"fifo out of time": {
			fifo,
			Facts{Held: topology.SQSHoldBound - time.Second, RetryCount: 1, Random: 0.5},
			redeliver.Retry(errBoom),
			Action{Fate: FateRetried, Verb: VerbRenew, Hold: time.Second, Delay: time.Second, Early: true, RetryCount: 2},
		},
		"dead, again": {dead, Facts{RetryCount: 1, Random: 0.5}, redeliver.Retry(errBoom), Action{Fate: FateRetried, Verb: VerbRequeue, Delay: time.Minute, After: time.Minute, RetryCount: 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := test.policy.Decide(test.facts, test.outcome)
			var tooLong *redeliver.DelayError
			if (got.Cause == CauseDelayTooLong) != errors.As(got.Reason, &tooLong) {
				t.Errorf("the reason is %v", got.Reason)
			}
			got.Reason, got.Asked = nil, 0
			if got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// TestUnpublishedWhereTheBrokerWaits: a copy that can never be sent is left to
// the redrive policy, and another one is sent again.
func TestUnpublishedWhereTheBrokerWaits(t *testing.T) {
	t.Parallel()
	p := lentPolicy()
	p.PublishFinal = true
	a := p.Decide(Facts{RetryCount: 3, Random: 0.5}, redeliver.Retry(errBoom))
	if got := p.DecideUnpublished(Facts{Random: 0.5}, a, ErrUnpublishable); got.Verb != VerbDeadLetter || got.Fate != FateDeadLettered {
		t.Errorf("never: %+v", got)
	}
	if got := p.DecideUnpublished(Facts{Random: 0.5}, a, errBoom); got.Verb != VerbPublish || got.Hold != time.Second {
		t.Errorf("for the moment: %+v", got)
	}
}

// TestRetryCountOfReceives: every receive counts, in a FIFO queue too.
func TestRetryCountOfReceives(t *testing.T) {
	t.Parallel()
	standard, fifo := lentPolicy(), lentPolicy()
	fifo.Sequenced = true
	for _, p := range []Policy{standard, fifo} {
		for count, want := range map[int64]int{-1: 0, 0: 0, 2: 2, 9: 3} {
			if got := p.RetryCount(&Delivery{Count: count}); got != want {
				t.Errorf("a count of %d is %d, want %d", count, got, want)
			}
		}
	}
}
