package consumer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

const (
	// backoffFirst and backoffMax bound the pause before an attempt to connect. It doubles, and jitter shortens it to half
	// at most, so that a broker that comes back does not meet all its consumers at once. (Capped after a jitter that goes
	// both ways, half of the pauses would be the longest.)
	backoffFirst = 100 * time.Millisecond
	backoffMax   = 30 * time.Second
	// stableAfter is how long a session must have lasted for its loss to begin with the shortest pause again.
	stableAfter = 10 * time.Second
	// closeTimeout bounds the closing of what is of no more use.
	closeTimeout = 5 * time.Second
)

// start takes a new session into service: its deliveries become ready.
func (c *Consumer) start(s Session) {
	c.sessions++
	c.current = newSession(s, c.sessions, c.clock.Now())
	c.current.motion = c.motion
	c.health.connect(c.current.since)
	c.log.Info("subscribed", "session", c.current.number, "prefetch", c.cfg.Prefetch, "workers", c.cfg.Workers)
	c.emit(redeliver.Event{Kind: redeliver.EventConnected})
	go c.receive(c.current)
}

// receive takes deliveries off a session until it ends, or another goroutine
// does.
func (c *Consumer) receive(s *session) {
	for more := true; more; {
		t := c.free.get(s)
		if err := s.Receive(&t.Delivery); err != nil {
			c.received(s, err)
			return
		}
		more = c.admit(t)
	}
}

// received ends the receiving: nothing more comes from a session.
func (c *Consumer) received(s *session, err error) {
	if !errors.Is(err, io.EOF) {
		s.end() // before anything else: what it delivered is the broker's again
		s.lost = s.Diagnose(err)
		if s.renewed.Load() {
			s.lost = &LostError{Reason: LostRenewed}
		}
	}
	close(s.received)
}

// admit makes a delivery ready for a worker, or handles it. It returns false
// when its caller is not to receive any more.
func (c *Consumer) admit(t *task) (more bool) {
	c.counters.delivered.Add(1)
	t.Message.Topic = c.manifest.Topic
	t.Message.FirstSeen = c.policy.FirstSeen(&t.Message)
	t.setRetries(c.policy.RetryCount(&t.Delivery))
	if c.policy.republishes() {
		if remaining := c.policy.Remaining(&t.Message, c.clock.Now()); remaining > 0 {
			c.carryOut(t, c.policy.Hop(c.facts(t), remaining), true)
			return true
		}
	}
	if c.lanes != nil {
		key, err := c.lanes.keyOf(&t.Message)
		if err != nil {
			c.log.Error("the key of a sequenced message could not be found: it is dead-lettered", messageAttrs(t, "error", err)...)
			c.carryOut(t, c.policy.final(CauseRejected, fmt.Errorf("%w: %w", errNoKey, err)), true)
			return true
		}
		if !c.lanes.enter(t, key) {
			return true
		}
	}
	handled, more := c.handleHere(t)
	if !handled {
		c.ready.push(t)
	}
	return more
}

// serve keeps a session in service until ctx is done. It returns an error only
// when it gives up connecting.
func (c *Consumer) serve(ctx context.Context) error {
	pause := backoffFirst
	for {
		if !c.watch(ctx, c.current) {
			if c.current.renewed.Load() {
				c.motion.add(-1)
			}
			return nil
		}
		if !c.current.renewed.Load() { // else renew has said so
			c.motion.add(1)
		}
		if c.clock.Now().Sub(c.current.since) >= stableAfter {
			pause = backoffFirst
		}
		c.lose(c.current)
		for attempt := 1; c.current == nil; attempt++ {
			if !c.sleep(ctx, time.Duration(float64(pause)*(1+c.random())/2)) {
				return nil
			}
			pause = min(2*pause, backoffMax)
			s, err := c.transport.Subscribe(ctx, c.cfg.Prefetch)
			switch {
			case err == nil:
				c.counters.reconnects.Add(1)
				c.start(s)
			case ctx.Err() != nil:
				return nil //nolint:nilerr // a shutdown that began while connecting is none
			case c.cfg.MaxReconnectAttempts > 0 && attempt >= c.cfg.MaxReconnectAttempts:
				return fmt.Errorf("gave up connecting after %d attempts: %w", attempt, err)
			default:
				c.health.fail(attempt, err)
				c.log.Warn("connecting failed; will try again", "attempt", attempt, "next_pause", pause, "error", err)
			}
		}
		c.motion.add(-1)
	}
}

// watchParts is how many looks at what waits for a worker there are in the time
// that a delivery may be held.
const watchParts = 16

// watch waits until a session has ended; it returns false when ctx ended first.
// Meanwhile it gives back what has waited for a worker so long that the broker's
// consumer timeout is near: the broker would take back everything, and end the
// session. It goes by the machine's clock, whatever the consumer's is.
func (c *Consumer) watch(ctx context.Context, s *session) bool {
	ticker := time.NewTicker(max(time.Millisecond, c.policy.HoldBound/watchParts))
	defer ticker.Stop()
	renewing := s.renewing
	for {
		select {
		case <-ctx.Done():
			return false
		case <-s.received:
			return true
		case <-renewing:
			renewing = nil // once
			c.retire(s)    // Receive returns with this
		case <-ticker.C:
			c.giveBackLate(s)
		}
	}
}

// errNotStarted is why a message was handed back that no worker had started.
var errNotStarted = errors.New("it waited for a worker until the broker's consumer timeout was near")

// giveBackLate gives back the deliveries of a session that no worker has started
// within the time that they may be held.
func (c *Consumer) giveBackLate(s *session) {
	before := c.clock.Now().Add(-c.policy.HoldBound)
	if c.lanes != nil {
		if c.ready.hasOlder(before) || c.lanes.hasOlder(before) {
			c.renew(s)
		}
		return
	}
	late := c.ready.takeOlder(before)
	if len(late) == 0 {
		return
	}
	c.log.Warn("messages handed back that waited for a worker until the broker's consumer timeout was near; handle them faster, or lower Prefetch",
		"messages", len(late), "workers", c.cfg.Workers, "prefetch", c.cfg.Prefetch)
	for _, t := range late {
		c.giveBack(t, Action{}, errNotStarted)
	}
}

// renew ends a session of a sequenced topic, because the broker's consumer
// timeout is near for one of its messages. The broker takes back all of them at
// once and in order, and delivers them again with the time that they need; given
// back by itself, the one would come behind its successors. Handlers that run
// lose their outcome, as when a connection is lost.
func (c *Consumer) renew(s *session) {
	if s.renewed.Swap(true) {
		return
	}
	c.motion.add(1)
	s.end()
	c.log.Warn("the broker's consumer timeout is near for a message of a sequenced topic: all messages go back, in order, and come again; "+
		"lower Prefetch, shorten the delays, or raise the consumer timeout", "session", s.number)
	close(s.renewing)
}

// lose takes a session that has ended out of service. What it delivered belongs
// to the broker again.
func (c *Consumer) lose(s *session) {
	s.end()
	c.current = nil
	c.counters.sessionsLost.Add(1)
	notStarted := 0
	if c.lanes != nil {
		notStarted = c.lanes.forget(s)
	}
	ready, held := c.ready.take(s), c.holds.take(s)
	notStarted += len(ready)
	for _, t := range ready {
		c.nextInLane(t, Action{})
	}
	for _, x := range held {
		c.drop(x.task, errSessionEnded)
	}
	c.retire(s)
	c.health.lose(c.clock.Now(), s.lost)

	level, reason := slog.LevelWarn, string(LostConnection)
	var lost *LostError
	if errors.As(s.lost, &lost) {
		reason = string(lost.Reason)
		switch lost.Reason {
		case LostQueueDeleted, LostDetached, LostConsumerTimeout:
			level = slog.LevelError
		}
	}
	c.log.Log(context.Background(), level, "subscription lost; the broker delivers its messages again",
		"session", s.number, "reason", reason, "error", s.lost, "held", len(held), "not_started", notStarted)
	c.emit(redeliver.Event{Kind: redeliver.EventDisconnected, Err: s.lost})
}

// retire closes a session that has ended, in the background: the connection
// may hang, and nothing depends on it.
func (c *Consumer) retire(s *session) {
	s.retireOnce.Do(func() {
		c.retired.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
			defer cancel()
			if err := s.Close(ctx); err != nil {
				c.log.Debug("closing a lost session", "session", s.number, "error", err)
			}
			c.noteUnsent(s)
		})
	})
}

// sleep waits for d. It returns false when ctx ended first.
func (c *Consumer) sleep(ctx context.Context, d time.Duration) bool {
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	c.motion.add(-1)
	defer c.motion.add(1)
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
