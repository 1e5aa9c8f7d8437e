package sqs

import (
	"cmp"
	"container/list"
	"slices"
	"sync"
	"time"
)

const (
	// buriedMost bounds how many messages are remembered, and buriedFor how long each is, after it was seen last.
	buriedMost = 10_000
	buriedFor  = time.Hour
	// A message that is received unmovedSlack times more than the redrive policy allows is not moved: the queue has not the
	// policy that it should have. It is given back for unmovedPause, since nothing else ends its receives.
	unmovedSlack = 10
	unmovedPause = 5 * time.Minute
)

// buried remembers messages that failed for good, until the redrive policy has
// moved them: that takes as many more receives as they had left, and the handler
// sees none of them.
//
// In a FIFO queue such a message would take those behind it along, each time, and
// they would be spent too. So it is kept until none of its group is here, and only
// then given back: whatever comes with it is handled, and was received once.
type buried struct {
	mu    sync.Mutex
	ids   map[string]*list.Element
	order list.List // of *grave, the one that was seen longest ago in front
}

type grave struct {
	id       string
	receives int64
	seen     time.Time
}

func newBuried() *buried { return &buried{ids: make(map[string]*list.Element)} }

// add remembers a message, which has been received so often.
func (b *buried) add(id string, receives int64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(id)
	b.ids[id] = b.order.PushBack(&grave{id, receives, now})
	for first := b.order.Front(); first != nil; first = b.order.Front() {
		g := first.Value.(*grave)
		if b.order.Len() <= buriedMost && now.Sub(g.seen) < buriedFor {
			return
		}
		b.forget(g.id)
	}
}

// has says whether a message is remembered. One that has been received less
// often than when it was seen last was moved, and has come back to be handled.
func (b *buried) has(id string, receives int64, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.ids[id]
	if e == nil {
		return false
	}
	g := e.Value.(*grave)
	if receives <= g.receives || now.Sub(g.seen) >= buriedFor {
		b.forget(id)
		return false
	}
	g.receives, g.seen = receives, now
	b.order.MoveToBack(e)
	return true
}

// bury gives a message back that failed for good. s.mu is held.
func (s *session) bury(l *lease, now time.Time) {
	s.b.buried.add(l.id(), l.receives, now)
	l.burying = true
	s.dig(l.group, l)
}

// dig gives back the messages of a group that are to be moved, when no others of
// it are here: the first one last, as in Close. In a standard queue that is one,
// at once. s.mu is held.
func (s *session) dig(group string, only *lease) {
	out := []*lease{only}
	if s.b.fifo {
		out = out[:0]
		for _, l := range s.leases {
			if l.group != group {
				continue
			}
			if !l.burying {
				return
			}
			out = append(out, l)
		}
		slices.SortFunc(out, func(a, b *lease) int { return cmp.Compare(b.tag, a.tag) })
	}
	now := time.Now()
	for _, l := range out {
		s.drop(l)
		s.b.buried.add(l.id(), l.receives, now) // it was perhaps here for long
		s.change(&change{lease: l, after: s.b.unmoved(l, now)}, s.b.fifo)
	}
}

// unmoved is for how long a message is given back that is to be moved.
func (b *Broker) unmoved(l *lease, now time.Time) time.Duration {
	if b.cfg.MaxReceives == 0 || l.receives <= int64(b.cfg.MaxReceives)+unmovedSlack {
		return 0
	}
	b.trouble.Lock()
	defer b.trouble.Unlock()
	if now.Sub(b.unmovedSeen) > unmovedPause {
		b.cfg.Log.Error("a message is received more often than the redrive policy of the manifest allows, and was not moved to the dead-letter queue; apply the Terraform configuration that has the topic",
			"message_id", l.id(), "receives", l.receives, "max_receive_count", b.cfg.MaxReceives)
	}
	b.unmovedSeen = now
	return unmovedPause
}

// forget is called with b.mu held.
func (b *buried) forget(id string) {
	if e := b.ids[id]; e != nil {
		b.order.Remove(e)
		delete(b.ids, id)
	}
}
