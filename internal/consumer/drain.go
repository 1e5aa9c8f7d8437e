package consumer

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// closeReserve is the part of the drain timeout that is kept for closing the
// connections, at most closeReserveMax.
const (
	closeReserve    = 10 // a tenth
	closeReserveMax = time.Second
)

// drain shuts down, and is done when Config.DrainTimeout has passed whatever
// handlers do. The order matters: a consumer that gives messages back before it
// has told the broker to send no more gets them again at once, and on a quorum
// queue drives them over the delivery limit.
//
//  1. No worker starts another message.
//  2. basic.cancel, and whatever was on its way is received.
//  3. Nothing is held any more: what was, and what was not started, is given back.
//  4. Handlers and confirms are waited for. What they settle now is settled;
//     what they would hold is given back.
//  5. What is left is named, and the connections are closed.
func (c *Consumer) drain(stopHolds chan<- struct{}, holdsStopped <-chan struct{}) error {
	begun, handedBack := time.Now(), c.counters.handedBack.Load()
	timeout := c.cfg.DrainTimeout
	deadline := begun.Add(timeout)
	reserve := min(timeout/closeReserve, closeReserveMax)
	ctx, cancel := context.WithDeadline(context.Background(), deadline.Add(-reserve))
	defer cancel()
	closeCtx, cancelClose := context.WithDeadline(context.Background(), deadline)
	defer cancelClose()
	hurry := time.AfterFunc(timeout*3/4, func() { c.cancelHandlers(redeliver.ErrDraining) })
	defer hurry.Stop()

	c.log.Info("shutting down", "timeout", timeout, "running", c.running(), "held", c.holds.len())
	c.health.enter(phaseDraining)
	c.ready.stop()

	finished := make(chan struct{})
	go func() {
		// The messages of a sequenced topic stay with this consumer until its session is closed: cancelled earlier, another
		// consumer would go on with their successors, unless the broker keeps those back while one is in flight.
		s := c.current
		if s != nil && (!c.policy.Sequenced || c.policy.BrokerWaits) && s.Stop(ctx) == nil {
			await(ctx, s.received)
		}
		// Only now: what is given back before the cancel comes back at once.
		c.holds.close()
		close(c.draining)
		close(stopHolds)
		await(ctx, holdsStopped)
		if ctx.Err() != nil {
			return // the connection hangs
		}
		if s != nil {
			c.giveBackAll(s)
		}
		c.workers.Wait()
		c.publishing.Wait()
		if s := c.current; s != nil {
			c.giveBackAll(s) // a wait that ended in between made its task ready
		}
		close(finished)
	}()
	await(ctx, finished) // at the deadline this leaves behind whatever hangs; closing the session ends it

	c.free.ended.Store(true) // before the slots are looked at
	stranded := append(c.unconfirmed.list(), strandedIn(c.slots)...)
	if s := c.current; s != nil && ctx.Err() != nil && !s.dead.Load() && !c.policy.Sequenced {
		for _, t := range c.ready.take(s) {
			stranded = append(stranded, strand(t, "connection", begun))
		}
		for _, x := range c.holds.take(s) {
			stranded = append(stranded, strand(x.task, "connection", begun))
		}
	}
	slices.SortFunc(stranded, func(a, b redeliver.Stranded) int { return cmp.Compare(a.DeliveryTag, b.DeliveryTag) })
	if s := c.current; s != nil {
		s.end() // what handlers still return is dropped
		if err := s.Close(closeCtx); err != nil {
			c.log.Debug("closing the session", "error", err)
		}
		c.noteUnsent(s)
	}
	if c.publisher != nil {
		if err := c.publisher.Close(closeCtx); err != nil {
			c.log.Debug("closing the publisher", "error", err)
		}
	}
	retired := make(chan struct{})
	go func() {
		defer close(retired)
		c.retired.Wait()
	}()
	await(closeCtx, retired)
	c.cancelHandlers(redeliver.ErrDraining)
	if len(stranded) > 0 {
		err := &redeliver.DrainError{Topic: c.manifest.Topic, Timeout: timeout, Stranded: stranded}
		c.log.Error("shut down with messages left behind", "stranded", len(stranded), "error", err)
		return err
	}
	c.log.Info("shut down", "took", time.Since(begun), "handed_back", c.counters.handedBack.Load()-handedBack)
	return nil
}

// giveBackAll gives back what is ready and what is held.
func (c *Consumer) giveBackAll(s *session) {
	for _, t := range c.ready.take(s) {
		c.giveBack(t, Action{}, redeliver.ErrDraining)
	}
	for _, x := range c.holds.take(s) {
		c.giveBack(x.task, x.next, redeliver.ErrDraining)
	}
}

func await(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (s *slot) set(t *task, now time.Time) {
	s.since.Store(now.UnixNano())
	s.with.Store(t)
}

func (s *slot) clear() { s.with.Store(nil) }

func strand(t *task, state string, since time.Time) redeliver.Stranded {
	return redeliver.Stranded{MessageID: t.Message.ID, DeliveryTag: t.Tag, RetryCount: t.retries(), State: state, Since: since}
}

func strandedIn(slots []slot) []redeliver.Stranded {
	var list []redeliver.Stranded
	for i := range slots {
		if t := slots[i].with.Load(); t != nil {
			list = append(list, strand(t, "handler", time.Unix(0, slots[i].since.Load())))
		}
	}
	return list
}

// strandedSet names tasks that nobody but their owner may look into.
type strandedSet struct {
	mu  sync.Mutex
	set map[*task]redeliver.Stranded
}

func (s *strandedSet) add(t *task, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		s.set = make(map[*task]redeliver.Stranded)
	}
	s.set[t] = strand(t, "confirm", now)
}

func (s *strandedSet) remove(t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.set, t)
}

func (s *strandedSet) list() []redeliver.Stranded {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]redeliver.Stranded, 0, len(s.set))
	for _, x := range s.set {
		list = append(list, x)
	}
	return list
}
