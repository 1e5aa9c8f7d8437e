package sqs

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

const (
	// A lease is extended when renewPart of it has passed. beatPart is how often that is looked at; so long before the
	// service ends a lease it is lost here, in time for the handler to hear of it.
	renewPart, beatPart = 2, 20
	// totalSlack is kept of the 12 hours that a message can be invisible, because the service counts from a moment before
	// the answer came.
	totalSlack = 10 * time.Second
	// leaseTries is how many requests that hang there is time for in what is left of a lease.
	leaseTries = 3
)

// lease is a message that this session has: its handle, and until when that may
// be used. Its fields are the session's, under its lock.
type lease struct {
	tag      uint64
	message  *types.Message
	group    string
	receives int64
	received time.Time
	// expires is when the lease is lost here, and renew when it is extended.
	expires, renew time.Time
	// renewing: a request to extend it is on its way. next is what is to follow on that: overtaken by it, a change of
	// visibility would be undone.
	renewing bool
	next     *change
	// burying: it failed for good, and is given back when no other of its group is here.
	burying bool
	// cancel cancels the context of its handler; nil while none has it.
	cancel context.CancelCauseFunc
}

// extend notes that the message is invisible for d from a time on.
func (s *session) extend(l *lease, from time.Time, d time.Duration) {
	l.expires = from.Add(d - s.beat())
	l.renew = from.Add(d / renewPart)
}

func (s *session) beat() time.Duration { return s.b.visibility / beatPart }

// usable says whether a lease's handle may be used.
func (l *lease) usable(now time.Time) bool { return now.Before(l.expires) }

// Lease implements consumer.Leaser.
func (s *session) Lease(ctx context.Context, d *consumer.Delivery) (leased context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[d.Tag]
	if l == nil {
		cancel(redeliver.ErrLeaseLost)
		return ctx, func() {}
	}
	l.cancel = cancel
	return ctx, func() {
		s.mu.Lock()
		l.cancel = nil
		s.mu.Unlock()
		cancel(nil)
	}
}

// Lost implements consumer.Leaser.
func (s *session) Lost(d *consumer.Delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[d.Tag] == nil
}

// lose takes a lease away. What follows in its group goes back too: the service
// may have given the first of them to another consumer. s.mu is held.
func (s *session) lose(l *lease) {
	lost := []*lease{l}
	if s.b.fifo {
		for _, other := range s.leases {
			if other.group == l.group && other.tag > l.tag {
				lost = append(lost, other)
			}
		}
		slices.SortFunc(lost, func(a, b *lease) int { return cmp.Compare(b.tag, a.tag) }) // the last one first: see giveBack
	}
	for _, l := range lost {
		if s.leases[l.tag] == nil {
			continue // the one before it was what it waited for
		}
		s.take(l)
		s.b.lost.Add(1)
		if l.cancel != nil {
			l.cancel(redeliver.ErrLeaseLost)
		}
		if l.usable(time.Now()) {
			s.change(&change{lease: l}, false)
		}
	}
}

// take takes a lease out of the session; those that waited for it go on. s.mu is
// held.
func (s *session) take(l *lease) {
	s.drop(l)
	if s.b.fifo {
		s.dig(l.group, nil)
	}
}

func (s *session) drop(l *lease) {
	delete(s.leases, l.tag)
	s.b.inHand.Add(-1)
	s.room.Broadcast()
}

// keep extends leases until the session is closed.
func (s *session) keep() {
	ticker := time.NewTicker(s.beat())
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.kept.Done():
			return
		}
		for batch := range slices.Chunk(s.due(time.Now()), sqsapi.BatchMax) {
			go s.renew(batch)
		}
	}
}

// due takes away the leases that have expired, and returns those to extend: the
// ones whose time it is, and others to fill the request.
func (s *session) due(now time.Time) []*lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due, soon []*lease
	look := func(l *lease) {
		switch {
		case !l.usable(now):
			if s.leases[l.tag] != nil { // else it was settled, and its deletion comes too late
				s.lose(l)
			}
		case l.renewing || s.extension(l, now) <= l.expires.Sub(now)+s.beat(): // it has all that it can have
		case !now.Before(l.renew):
			due = append(due, l)
		case l.renew.Sub(now) < s.b.visibility/(2*renewPart):
			soon = append(soon, l)
		}
	}
	if !s.closed {
		for _, l := range s.leases {
			look(l)
		}
	}
	for _, l := range s.settled {
		look(l)
	}
	if len(due) == 0 {
		return nil
	}
	byRenew := func(a, b *lease) int { return a.renew.Compare(b.renew) }
	slices.SortFunc(soon, byRenew)
	if odd := len(due) % sqsapi.BatchMax; odd > 0 {
		due = append(due, soon[:min(len(soon), sqsapi.BatchMax-odd)]...)
	}
	for _, l := range due {
		l.renewing = true
	}
	s.renewals += len(due)
	return due
}

// extension is how long a message can be invisible from now on.
func (s *session) extension(l *lease, now time.Time) time.Duration {
	return min(s.b.visibility, l.received.Add(topology.MaxVisibility-totalSlack).Sub(now)).Truncate(time.Second)
}

// renew extends leases. Those for which that fails are tried again at the next
// beat, as long as they last.
func (s *session) renew(leases []*lease) {
	now := time.Now()
	s.mu.Lock()
	leases = slices.DeleteFunc(leases, func(l *lease) bool { // settled, or lost, since
		if s.keeps(l) {
			return false
		}
		s.renewed(l)
		return true
	})
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(leases))
	extensions := make([]time.Duration, len(leases))
	rest := topology.MaxVisibility
	for i, l := range leases {
		rest = min(rest, l.expires.Sub(now))
		extensions[i] = s.extension(l, now)
		entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{Id: entryID(i), ReceiptHandle: l.message.ReceiptHandle, VisibilityTimeout: sqsapi.Seconds(extensions[i])}
	}
	s.mu.Unlock()
	if len(leases) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.kept, within(rest))
	defer cancel()
	out, err := s.b.cfg.Client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &s.b.cfg.Queue.URL, Entries: entries}, sqsapi.Once)
	if err != nil && s.kept.Err() == nil {
		s.b.note(&s.b.settling, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := make(map[int]types.BatchResultErrorEntry)
	if err == nil {
		for _, f := range out.Failed {
			failed[entryIndex(f.Id)] = f
		}
	}
	for i, l := range leases {
		s.renewed(l)
		if !s.keeps(l) || err != nil {
			continue
		}
		if f, bad := failed[i]; !bad {
			s.extend(l, now, extensions[i])
		} else if err := sqsapi.EntryError(f); sqsapi.Again(f) {
			s.b.note(&s.b.settling, err)
		} else if s.settled[l.tag] == nil { // else it may be deleted by now
			s.b.cfg.Log.Warn("a message's lease could not be extended", "message_id", l.id(), "error", err)
			l.expires = time.Time{} // its handle is of no use
			s.lose(l)
		}
	}
}

// keeps says that a lease is to be extended. s.mu is held.
func (s *session) keeps(l *lease) bool { return s.leases[l.tag] != nil || s.settled[l.tag] != nil }

// within bounds a request for leases that last for rest yet, so that one that
// hangs leaves time for others.
func within(rest time.Duration) time.Duration { return min(sqsapi.Timeout, rest/leaseTries) }

// renewed goes on with a lease after a request to extend it. s.mu is held.
func (s *session) renewed(l *lease) {
	l.renewing = false
	s.renewals--
	s.room.Broadcast()
	if l.next != nil {
		s.changes.add(l.next, false)
		l.next = nil
	}
}

// change has a message made visible after a while. s.mu is held.
func (s *session) change(c *change, now bool) {
	if c.renewing {
		c.next = c
		return
	}
	s.changes.add(c, now)
}

func (l *lease) id() string {
	if l.message.MessageId == nil {
		return ""
	}
	return *l.message.MessageId
}
