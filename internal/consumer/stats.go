package consumer

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// counters are what [redeliver.Stats] is read from.
type counters struct {
	delivered                                                 atomic.Uint64
	acked, retried, deferred, deadLettered, parked, discarded atomic.Uint64
	exhausted, tooOld, delayTooLong                           atomic.Uint64
	undecodable, oversized, panicked, timedOut                atomic.Uint64
	republished, hopped, holdQueueMissing, setAsideFailed     atomic.Uint64
	handedBack, dropped, sessionsLost, reconnects             atomic.Uint64
}

// Stats reads the counters.
func (c *Consumer) Stats() redeliver.Stats {
	n, m := &c.counters, c.monitored()
	return redeliver.Stats{
		Delivered: n.delivered.Load(), Handled: c.handled(),
		Acked: n.acked.Load(), Retried: n.retried.Load(), Deferred: n.deferred.Load(),
		DeadLettered: n.deadLettered.Load(), Parked: n.parked.Load(), Discarded: n.discarded.Load(),
		Exhausted: n.exhausted.Load(), TooOld: n.tooOld.Load(), DelayTooLong: n.delayTooLong.Load(),
		Undecodable: n.undecodable.Load(), Oversized: n.oversized.Load(), Panicked: n.panicked.Load(), TimedOut: n.timedOut.Load(),
		Republished: n.republished.Load(), Hopped: n.hopped.Load(), HoldQueueMissing: n.holdQueueMissing.Load(),
		SetAsideFailed: n.setAsideFailed.Load(), SetAsideFailures: c.health.setAsideFailures(), HandedBack: n.handedBack.Load(), Dropped: n.dropped.Load(),
		SessionsLost: n.sessionsLost.Load(), Reconnects: n.reconnects.Load(),
		Held: c.holds.len(), Waiting: c.waiting(), Running: c.running(),
		InFlight: m.InFlight, LeasesLost: m.LeasesLost, Throttled: m.Throttled, RequestsFailed: m.RequestsFailed,
	}
}

// monitored is what the transport has to say; nothing, where it is none that does.
func (c *Consumer) monitored() Monitored {
	if monitor, ok := c.transport.(Monitor); ok {
		return monitor.Monitor()
	}
	return Monitored{}
}

// waiting is how many messages wait behind another of their key.
func (c *Consumer) waiting() int {
	if c.lanes == nil {
		return 0
	}
	return c.lanes.waiting()
}

// handled is how often handlers were called, and running how many run.
func (c *Consumer) handled() (n uint64) {
	for i := range c.slots {
		n += c.slots[i].handled.Load()
	}
	return n
}

func (c *Consumer) running() (n int) {
	for i := range c.slots {
		if c.slots[i].with.Load() != nil {
			n++
		}
	}
	return n
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
	msg.RetryCount = t.retries()
	e.Message = &msg
	c.emit(e)
}

func messageAttrs(t *task, more ...any) []any {
	return append([]any{"message_id", t.Message.ID, "retry_count", t.retries()}, more...)
}

// noteWait counts, logs and tells of a message that begins to wait.
func (c *Consumer) noteWait(t *task, a Action) {
	debug := c.log.Enabled(context.Background(), slog.LevelDebug)
	switch a.Fate {
	case FateHopped:
		c.counters.hopped.Add(1)
		if debug {
			c.log.Debug("message waits on: the delay it asked for is not over", messageAttrs(t, "delay", a.Delay)...)
		}
	case FateDeferred:
		c.counters.deferred.Add(1)
		if debug {
			c.log.Debug("message deferred", messageAttrs(t, "delay", a.Delay)...)
		}
		c.emitFor(t, redeliver.Event{Kind: redeliver.EventDeferred, Delay: a.Delay})
	default:
		c.counters.retried.Add(1)
		level := slog.LevelInfo
		if errors.Is(a.Reason, redeliver.ErrSequencedDefer) {
			level = slog.LevelWarn
		}
		if c.log.Enabled(context.Background(), level) {
			c.log.Log(context.Background(), level, "message will be retried", messageAttrs(t, "delay", a.Delay, "error", a.Reason)...)
		}
		c.emitFor(t, redeliver.Event{Kind: redeliver.EventRetried, Delay: a.Delay, Err: a.Reason})
	}
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
	if a.Verb == VerbPublish {
		c.health.took(a.Target.Name)
	}
	switch a.Fate {
	case FateRetried, FateDeferred, FateHopped:
		if a.Verb == VerbPublish {
			c.counters.republished.Add(1)
		}
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
		c.emitFor(t, redeliver.Event{Kind: redeliver.EventDeadLettered, Err: failure(a)})
	case FateParked:
		c.counters.parked.Add(1)
		c.log.Warn("message parked", messageAttrs(t, "parked_queue", a.Target.Name, "cause", string(a.Cause), "error", a.Reason)...)
		c.emitFor(t, redeliver.Event{Kind: redeliver.EventParked, Err: failure(a)})
	case FateDiscarded:
		c.noteCause(a)
		c.counters.discarded.Add(1)
		c.log.Warn("message discarded: the topic has no dead-letter queue", messageAttrs(t, "cause", string(a.Cause), "error", a.Reason)...)
		c.emitFor(t, redeliver.Event{Kind: redeliver.EventDiscarded, Err: failure(a)})
	}
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

// noteHandedBack counts a message that was given back before its time.
func (c *Consumer) noteHandedBack(t *task, why error) {
	c.counters.handedBack.Add(1)
	c.emitFor(t, redeliver.Event{Kind: redeliver.EventHandedBack, Err: why})
}

// noteUnpublished counts, logs and tells of a copy that was not taken.
func (c *Consumer) noteUnpublished(t *task, a, next Action, err error) {
	attrs := messageAttrs(t, "target", a.Target.Name, "delay", next.Hold, "error", err, "reason", a.Reason)
	if a.Fate.waits() && errors.Is(err, ErrNoQueue) {
		c.counters.holdQueueMissing.Add(1)
		c.health.miss(a.Target.Name, c.clock.Now())
		c.log.Warn("a hold queue is missing: the message waits in the consumer; apply the Terraform configuration that has the topic's ladder", attrs...)
		c.emitFor(t, redeliver.Event{Kind: redeliver.EventHoldQueueMissing, Delay: next.Hold, Target: a.Target.Name, Err: err})
		return
	}
	c.counters.setAsideFailed.Add(1)
	c.health.failSetAside(a.Target.Name, c.clock.Now(), err)
	if next.Verb == VerbDeadLetter {
		c.log.Error("a message could not be set aside: it is rejected, and where its dead-letter queue is missing the broker keeps or drops it as the queue's arguments say", attrs...)
	} else {
		c.log.Error("a message could not be set aside: it waits and is published again", attrs...)
	}
	c.emitFor(t, redeliver.Event{Kind: redeliver.EventSetAsideFailed, Delay: next.Hold, Target: a.Target.Name, Err: err})
}

// noteUnsent counts and logs acknowledgements that waited for others when their
// session ended.
func (c *Consumer) noteUnsent(s *session) {
	if n := s.Unsent(); n > 0 {
		c.counters.dropped.Add(uint64(n)) //nolint:gosec // a number of messages
		c.log.Info("acknowledgements did not reach the broker before the session ended; it delivers their messages again", "session", s.number, "messages", n)
	}
}

// drop forgets a message that the broker has again. why is what the transport
// said, which is of no use to anybody where the session has ended.
func (c *Consumer) drop(t *task, why error) {
	c.counters.dropped.Add(1)
	if errors.Is(why, redeliver.ErrLeaseLost) {
		why = redeliver.ErrLeaseLost
		c.log.Warn("outcome dropped: the message's lease was lost, and it is delivered again", messageAttrs(t)...)
	} else {
		why = errSessionEnded
		if c.log.Enabled(context.Background(), slog.LevelDebug) {
			c.log.Debug("outcome dropped: the session of its delivery has ended", messageAttrs(t)...)
		}
	}
	c.emitFor(t, redeliver.Event{Kind: redeliver.EventDropped, Err: why})
	c.nextInLane(t, Action{})
}
