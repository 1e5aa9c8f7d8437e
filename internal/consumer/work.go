package consumer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// work is one worker: it handles one task at a time until the ready queue is
// stopped.
func (c *Consumer) work(w *slot) {
	returned := false
	defer func() {
		if returned {
			c.workers.Done()
			return
		}
		go func() {
			c.exited(w)
			c.work(w)
		}()
	}()
	for {
		t, ok := c.ready.pop()
		if !ok {
			returned = true
			return
		}
		s := t.session
		c.process(t, w, c.clock.Now())
		c.sample(s, w)
	}
}

// process has a task handled, from now on, and settles it.
func (c *Consumer) process(t *task, w *slot, now time.Time) {
	if t.session.dead.Load() {
		c.nextInLane(t, Action{}) // the broker has it again, and nobody here has seen it
		return
	}
	if t.lost() {
		c.drop(t, redeliver.ErrLeaseLost) // it waited here too long
		return
	}
	w.set(t, now)
	outcome := redeliver.Reject(redeliver.ErrSequenceFailed)
	if c.lanes == nil || !c.lanes.failed(t) {
		w.current = t
		outcome = c.handle(t, w)
		w.current = nil // from here on the task may be settled
	}
	spent := c.settle(t, outcome)
	w.clear()
	if spent {
		c.free.put(t)
	}
}

// exited goes on, in another goroutine, where a handler ended its own with
// runtime.Goexit, as testing's FailNow does.
func (c *Consumer) exited(w *slot) {
	t := w.current
	if w.current = nil; t != nil {
		err := &redeliver.PanicError{}
		c.counters.panicked.Add(1)
		c.log.Error("the handler ended its goroutine; the message will be retried", messageAttrs(t, "error", err)...)
		c.settle(t, redeliver.Retry(err))
	}
	w.clear()
}

// handle finds the outcome for a task.
func (c *Consumer) handle(t *task, s *slot) redeliver.Outcome {
	if size := len(t.Message.Body); size > c.cfg.MaxMessageSize {
		c.counters.oversized.Add(1)
		return redeliver.Park(&redeliver.SizeError{Size: size, Max: c.cfg.MaxMessageSize})
	}
	msg := t.hand()
	s.handled.Add(1)
	ctx := c.handlerCtx
	if leaser := t.session.leaser; leaser != nil {
		leased, release := leaser.Lease(ctx, &t.Delivery)
		defer release()
		ctx = leased
	}
	if c.probe == nil {
		return c.handleWithin(ctx, msg)
	}
	begun := c.clock.Now()
	t.ctx = c.probe.Begin(ctx, msg)
	outcome := c.handleWithin(t.ctx, msg)
	c.probe.End(t.ctx, msg, outcome, c.clock.Now().Sub(begun))
	return outcome
}

// handleWithin calls the handler under its timeout.
func (c *Consumer) handleWithin(ctx context.Context, msg *redeliver.Message) redeliver.Outcome {
	if c.cfg.HandlerTimeout == 0 {
		outcome, _ := c.call(ctx, msg)
		return outcome
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.HandlerTimeout, c.timedOut)
	defer cancel()
	outcome, panicked := c.call(ctx, msg)
	var timedOut *redeliver.TimeoutError
	if !errors.As(context.Cause(ctx), &timedOut) || timedOut != c.timedOut {
		return outcome
	}
	c.counters.timedOut.Add(1)
	if k := outcome.Kind(); panicked || k != redeliver.OutcomeRetry && k != redeliver.OutcomeNone {
		return outcome
	}
	return timeoutOutcome(c.cfg.TimeoutOutcome, c.timedOut, outcome.Err())
}

// timeoutOutcome is the configured outcome of a timeout with the reason filled
// in: that it was one, and what the handler said about it.
func timeoutOutcome(configured redeliver.Outcome, timedOut, said error) redeliver.Outcome {
	err := configured.Err()
	if err == nil {
		err = timedOut
		if said != nil {
			err = fmt.Errorf("%w: %w", timedOut, said)
		}
	}
	switch configured.Kind() {
	case redeliver.OutcomeReject:
		return redeliver.Reject(err)
	case redeliver.OutcomePark:
		return redeliver.Park(err)
	case redeliver.OutcomeDefer:
		return configured
	default:
		return redeliver.RetryAfter(configured.Delay(), err)
	}
}

// call calls the handler. A panic becomes a Retry.
func (c *Consumer) call(ctx context.Context, msg *redeliver.Message) (outcome redeliver.Outcome, panicked bool) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		err := &redeliver.PanicError{Value: value, Stack: debug.Stack()}
		c.counters.panicked.Add(1)
		c.log.Error("the handler panicked; the message will be retried",
			"message_id", msg.ID, "retry_count", msg.RetryCount, "error", err, "stack", string(err.Stack))
		outcome, panicked = redeliver.Retry(err), true
	}()
	outcome = c.handler.Handle(ctx, msg)
	probe(outcome.Err())
	return outcome, false
}

// probe asks a handler's error everything that it is asked later. Its methods
// are the application's code: a typed nil pointer panics in some of them, and
// here that is the handler's panic and not the end of the process.
func probe(err error) {
	if err == nil {
		return
	}
	var undecodable *redeliver.DecodeError
	_ = err.Error()
	_ = errors.Is(err, redeliver.ErrPermanent)
	_ = errors.As(err, &undecodable)
}

// settle decides what becomes of a task and carries it out. The caller owns
// the task and no longer does when settle returns, unless that says that nobody
// knows the task any more.
func (c *Consumer) settle(t *task, o redeliver.Outcome) (spent bool) {
	switch o.Kind() {
	case redeliver.OutcomeAck: // most messages: no facts are needed to decide
		return c.conclude(t, Action{Fate: FateAcked, Verb: VerbAck})
	case redeliver.OutcomePark:
		var undecodable *redeliver.DecodeError
		if errors.As(o.Err(), &undecodable) {
			c.counters.undecodable.Add(1)
		}
	}
	if t.session.dead.Load() {
		c.drop(t, errSessionEnded)
		return false
	}
	c.carryOut(t, c.policy.Decide(c.facts(t), o), false)
	return false
}

// carryOut begins with what was decided for a task. beyond says that the caller
// cannot wait with the task where no more may be held.
func (c *Consumer) carryOut(t *task, a Action, beyond bool) {
	if a.Fate.waits() {
		c.noteWait(t, a)
	}
	if a.Hold > 0 {
		c.hold(t, a, beyond)
		return
	}
	c.finish(t, a)
}

// facts are what Decide needs to know about a task now.
func (c *Consumer) facts(t *task) Facts {
	now := c.clock.Now()
	f := Facts{RetryCount: t.retries(), MessageID: t.Message.ID, Held: now.Sub(t.Received), Random: c.random()}
	f.Age, f.AgeKnown = t.Message.Age(now)
	return f
}

// hold keeps a task until its action is due. Where as many are held as may be,
// the calling worker waits with it, unless the caller is none (beyond).
func (c *Consumer) hold(t *task, a Action, beyond bool) {
	t.session.Hold(&t.Delivery)
	switch c.holds.add(t, a, c.clock.Now().Add(a.Hold), beyond) {
	case holdTaken:
	case holdClosed:
		c.giveBack(t, a, redeliver.ErrDraining)
	case holdEnded:
		c.drop(t, errSessionEnded)
	case holdFull:
		c.tellFull()
		timer := c.clock.NewTimer(a.Hold)
		defer timer.Stop()
		if t.session.rest() {
			defer t.session.unrest()
		}
		select {
		case <-timer.C():
			c.finish(t, a)
		case <-t.session.ended:
			c.drop(t, errSessionEnded)
		case <-c.draining:
			c.giveBack(t, a, redeliver.ErrDraining)
		}
	}
}

// finish carries out an action whose wait, if it had one, is over. It does not
// block longer than writing to the connection does.
func (c *Consumer) finish(t *task, a Action) {
	switch a.Verb {
	case VerbAgain:
		t.setRetries(a.RetryCount)
		c.ready.push(t)
	case VerbPublish:
		c.publish(t, a)
	case VerbRenew:
		c.renew(t.session)
		c.drop(t, errSessionEnded)
	default:
		c.conclude(t, a)
	}
}

// conclude settles a task with the broker. It returns false when that could
// not be told any more.
func (c *Consumer) conclude(t *task, a Action) bool {
	if err := c.settleNow(t, a.Verb, a.After); err != nil {
		c.drop(t, err)
		return false
	}
	c.noteSettled(t, a)
	c.nextInLane(t, a)
	return true
}

// nextInLane lets the next message of a settled task's key go on.
func (c *Consumer) nextInLane(t *task, a Action) {
	if t.lane == nil {
		return
	}
	switch a.Fate {
	case FateDeadLettered, FateParked, FateDiscarded:
		if !errors.Is(a.Reason, redeliver.ErrSequenceFailed) { // that one failed because of its key, which may have been reset since
			c.lanes.fail(t)
		}
	}
	if next := c.lanes.leave(t); next != nil {
		c.ready.push(next)
	}
}

func (c *Consumer) settleNow(t *task, verb Verb, after time.Duration) error {
	if t.session.dead.Load() {
		return errSessionEnded
	}
	return t.session.Settle(&t.Delivery, verb, after)
}

// giveBack returns a task to the broker before its time: it waits for a to be
// carried out, or nobody has started it and a is nothing.
func (c *Consumer) giveBack(t *task, a Action, why error) {
	if c.policy.Sequenced {
		// One by one, messages would come back among those that were not delivered yet. Closing the session gives all of them
		// back at once and in order.
		return
	}
	if err := c.settleNow(t, a.shutdownVerb(), 0); err != nil {
		c.drop(t, err)
		return
	}
	c.noteHandedBack(t, why)
}

// publish sends a copy on its way. The task waits with the publisher for the
// confirm.
func (c *Consumer) publish(t *task, a Action) {
	if t.session.dead.Load() {
		c.drop(t, errSessionEnded) // the broker delivers the message again: a copy now would be a second one
		return
	}
	if t.lost() {
		c.drop(t, redeliver.ErrLeaseLost)
		return
	}
	now := c.clock.Now()
	if a.Asked > 0 && a.Until.IsZero() {
		a.Until = now.Add(a.Asked)
	}
	if a.Fate.waits() && c.policy.Strategy == topology.Hybrid && c.health.isMissing(a.Target.Name, now) {
		c.unpublished(t, a, ErrNoQueue)
		return
	}
	c.publishing.Add(1)
	c.unconfirmed.add(t, now)
	c.publisher.Publish(c.copyOf(t, a, now), func(err error) {
		defer c.publishing.Done()
		c.unconfirmed.remove(t)
		c.published(t, a, err)
	})
}

// published goes on with a task whose copy was confirmed, or was not.
func (c *Consumer) published(t *task, a Action, err error) {
	if err != nil {
		c.unpublished(t, a, err)
		return
	}
	if err := c.settleNow(t, VerbAck, 0); err != nil {
		c.drop(t, err) // its copy is where it belongs, and the broker delivers it again: one of the duplicates that may be
		return
	}
	c.noteSettled(t, a)
	c.nextInLane(t, a)
}

// unpublished goes on with a task whose copy was not taken.
func (c *Consumer) unpublished(t *task, a Action, err error) {
	next := c.policy.DecideUnpublished(c.facts(t), a, err)
	c.noteUnpublished(t, a, next, err)
	if next.Hold > 0 {
		c.hold(t, next, true)
		return
	}
	c.finish(t, next)
}

// slot is a worker's place: it says what the worker is busy with, and since
// when, in nanoseconds since 1970. Each is alone on its cache lines, because
// every worker writes to its own for every message.
type slot struct {
	with    atomic.Pointer[task]
	since   atomic.Int64
	handled atomic.Uint64

	// current is the task that the handler has, and sampled when the worker was last looked at; only its goroutine knows.
	current *task
	sampled time.Time
	_       [128 - 56]byte
}
