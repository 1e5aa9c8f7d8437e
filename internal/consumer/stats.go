package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// counters are what [redeliver.Stats] is read from.
type counters struct {
	delivered, handled                                            atomic.Uint64
	acked, retried, deferred, deadLettered, parked, discarded     atomic.Uint64
	exhausted, tooOld, delayTooLong                               atomic.Uint64
	undecodable, oversized, panicked, timedOut                    atomic.Uint64
	setAsideFailed, handedBack, dropped, sessionsLost, reconnects atomic.Uint64
	running                                                       atomic.Int64
}

// Stats reads the counters.
func (c *Consumer) Stats() redeliver.Stats {
	n := &c.counters
	return redeliver.Stats{
		Delivered: n.delivered.Load(), Handled: n.handled.Load(),
		Acked: n.acked.Load(), Retried: n.retried.Load(), Deferred: n.deferred.Load(),
		DeadLettered: n.deadLettered.Load(), Parked: n.parked.Load(), Discarded: n.discarded.Load(),
		Exhausted: n.exhausted.Load(), Expired: n.tooOld.Load(), DelayTooLong: n.delayTooLong.Load(),
		Undecodable: n.undecodable.Load(), Oversized: n.oversized.Load(), Panicked: n.panicked.Load(), TimedOut: n.timedOut.Load(),
		SetAsideFailed: n.setAsideFailed.Load(), HandedBack: n.handedBack.Load(), Dropped: n.dropped.Load(),
		SessionsLost: n.sessionsLost.Load(), Reconnects: n.reconnects.Load(),
		Held: c.holds.len(), Running: int(n.running.Load()),
	}
}

// emit tells OnEvent, if there is one. The message in the event is a copy.
func (c *Consumer) emit(e redeliver.Event) {
	if c.cfg.OnEvent == nil {
		return
	}
	e.Time, e.Topic = c.clock.Now(), c.manifest.Topic
	defer func() {
		if value := recover(); value != nil {
			c.log.Error("OnEvent panicked; the consumer goes on", "event", string(e.Kind), "panic", value, "stack", string(debug.Stack()))
		}
	}()
	c.cfg.OnEvent(e)
}

func (c *Consumer) emitFor(t *task, e redeliver.Event) {
	if c.cfg.OnEvent == nil {
		return
	}
	msg := t.Message
	msg.RetryCount = t.retryCount
	e.Message = &msg
	c.emit(e)
}

func messageAttrs(t *task, more ...any) []any {
	return append([]any{"message_id", t.Message.ID, "retry_count", t.retryCount}, more...)
}

// noteWait counts, logs and tells of a message that begins to wait.
func (c *Consumer) noteWait(t *task, a Action) {
	if a.Fate == FateDeferred {
		c.counters.deferred.Add(1)
		if c.log.Enabled(context.Background(), slog.LevelDebug) {
			c.log.Debug("message deferred", messageAttrs(t, "delay", a.Hold)...)
		}
		c.emitFor(t, redeliver.Event{Kind: redeliver.EventDeferred, Delay: a.Hold})
		return
	}
	c.counters.retried.Add(1)
	c.log.Info("message will be retried", messageAttrs(t, "delay", a.Hold, "error", a.Reason)...)
	c.emitFor(t, redeliver.Event{Kind: redeliver.EventRetried, Delay: a.Hold, Err: a.Reason})
}

// noteSettled counts, logs and tells of a message that was settled.
func (c *Consumer) noteSettled(t *task, a Action) {
	if a.Early {
		c.counters.handedBack.Add(1)
		attrs := messageAttrs(t, "held", c.clock.Now().Sub(t.Received), "verb", a.Verb.String())
		if a.Target != nil {
			c.log.Warn("message handed back: its copy could not be published before the broker's consumer timeout; look at the errors before this one", append(attrs, "target", a.Target.Name)...)
		} else {
			c.log.Warn("message handed back before its wait was over: the broker's consumer timeout is near; shorten the delay, or raise the consumer timeout", attrs...)
		}
		c.emitFor(t, redeliver.Event{Kind: redeliver.EventHandedBack, Err: a.Reason})
		return
	}
	switch a.Fate {
	case FateAcked:
		c.counters.acked.Add(1)
		if c.log.Enabled(context.Background(), slog.LevelDebug) {
			c.log.Debug("message acknowledged", messageAttrs(t)...)
		}
		c.emitFor(t, redeliver.Event{Kind: redeliver.EventAcked})
	case FateDeadLettered:
		c.noteCause(a)
		c.counters.deadLettered.Add(1)
		c.log.Warn("message dead-lettered", messageAttrs(t, "dead_letter_queue", c.policy.DeadLetter.Name, "cause", string(a.Cause), "error", a.Reason)...)
		c.emitFor(t, redeliver.Event{Kind: redeliver.EventDeadLettered, Err: finalError(a)})
	case FateParked:
		c.counters.parked.Add(1)
		c.log.Warn("message parked", messageAttrs(t, "parked_queue", a.Target.Name, "cause", string(a.Cause), "error", a.Reason)...)
		c.emitFor(t, redeliver.Event{Kind: redeliver.EventParked, Err: finalError(a)})
	case FateDiscarded:
		c.noteCause(a)
		c.counters.discarded.Add(1)
		c.log.Warn("message discarded: the topic has no dead-letter queue", messageAttrs(t, "cause", string(a.Cause), "error", a.Reason)...)
		c.emitFor(t, redeliver.Event{Kind: redeliver.EventDiscarded, Err: finalError(a)})
	}
}

// finalError is why a message is retried no more: the rule, and what the
// handler said.
func finalError(a Action) error {
	if a.Reason == nil {
		return errors.New(string(a.Cause))
	}
	return fmt.Errorf("%s: %w", a.Cause, a.Reason)
}

func (c *Consumer) noteCause(a Action) {
	switch a.Cause {
	case CauseExhausted:
		c.counters.exhausted.Add(1)
	case CauseTooOld:
		c.counters.tooOld.Add(1)
	case CauseDelayTooLong:
		c.counters.delayTooLong.Add(1)
	}
}

// noteHandedBack counts a message that was given back because of a shutdown.
func (c *Consumer) noteHandedBack(t *task) {
	c.counters.handedBack.Add(1)
	c.emitFor(t, redeliver.Event{Kind: redeliver.EventHandedBack, Err: redeliver.ErrDraining})
}

// notePublishFailed counts, logs and tells of a copy that was not taken.
func (c *Consumer) notePublishFailed(t *task, next Action, err error) {
	c.counters.setAsideFailed.Add(1)
	c.log.Error("a message could not be set aside: it waits and is published again",
		messageAttrs(t, "target", next.Target.Name, "delay", next.Hold, "cause", string(next.Cause), "error", err, "reason", next.Reason)...)
	c.emitFor(t, redeliver.Event{Kind: redeliver.EventSetAsideFailed, Delay: next.Hold, Err: err})
}

// drop forgets a message whose session has ended: the broker has it.
func (c *Consumer) drop(t *task) {
	c.counters.dropped.Add(1)
	if c.log.Enabled(context.Background(), slog.LevelDebug) {
		c.log.Debug("outcome dropped: the session of its delivery has ended", messageAttrs(t)...)
	}
	c.emitFor(t, redeliver.Event{Kind: redeliver.EventDropped, Err: errSessionEnded})
}
