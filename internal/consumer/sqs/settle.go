package sqs

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// change is a message to be made visible after a while.
type change struct {
	*lease
	after time.Duration
}

// Entries of a batch are named by their place in it.
func entryID(i int) *string {
	id := strconv.Itoa(i)
	return &id
}

func entryIndex(id *string) int {
	if id == nil {
		return -1
	}
	i, err := strconv.Atoi(*id)
	if err != nil {
		return -1
	}
	return i
}

// outcome is what the service said of a batch: of the whole, or of entries.
type outcome struct {
	err    error
	failed []types.BatchResultErrorEntry
}

// remove deletes messages.
func (s *session) remove(batch []*lease) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, l := range batch {
			delete(s.settled, l.tag)
		}
		s.room.Broadcast() // polls wait while too much is on its way
	}()
	rounds(s, batch, func(l *lease) *lease { return l }, nil, &s.unsent, func(ctx context.Context, batch []*lease) outcome {
		entries := make([]types.DeleteMessageBatchRequestEntry, len(batch))
		for i, l := range batch {
			entries[i] = types.DeleteMessageBatchRequestEntry{Id: entryID(i), ReceiptHandle: l.message.ReceiptHandle}
		}
		out, err := s.b.cfg.Client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &s.b.cfg.Queue.URL, Entries: entries}, sqsapi.Once)
		if err != nil {
			return outcome{err: err}
		}
		return outcome{failed: out.Failed}
	})
}

// release makes messages visible, at once or after a while.
func (s *session) release(batch []*change) {
	defer s.wake()
	done := func(c *change) {
		if c.after > 0 {
			s.b.waits.add(time.Now().Add(c.after))
		}
	}
	var back atomic.Int64 // they come back in any case
	rounds(s, batch, func(c *change) *lease { return c.lease }, done, &back, func(ctx context.Context, batch []*change) outcome {
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))
		for i, c := range batch {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
				Id: entryID(i), ReceiptHandle: c.message.ReceiptHandle, VisibilityTimeout: sqsapi.Seconds(c.after),
			}
		}
		out, err := s.b.cfg.Client.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &s.b.cfg.Queue.URL, Entries: entries}, sqsapi.Once)
		if err != nil {
			return outcome{err: err}
		}
		return outcome{failed: out.Failed}
	})
}

// rounds makes a request for a batch, and again for what of it failed and may yet
// succeed, until the leases are over. What then is left comes back by itself, and
// is added to unsent.
func rounds[E any](s *session, batch []E, lease func(E) *lease, done func(E), unsent *atomic.Int64, request func(context.Context, []E) outcome) {
	var pauses sqsapi.Backoff
	for {
		usable := batch[:0:0]
		now, rest := time.Now(), topology.MaxVisibility
		s.mu.Lock()
		for _, e := range batch {
			if l := lease(e); l.usable(now) {
				usable = append(usable, e)
				rest = min(rest, l.expires.Sub(now))
			}
		}
		s.mu.Unlock()
		unsent.Add(int64(len(batch) - len(usable)))
		if batch = usable; len(batch) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(s.settles, within(rest))
		o := request(ctx, batch)
		cancel()
		failed := make(map[int]bool, len(o.failed))
		var again []E
		for _, f := range o.failed {
			i := entryIndex(f.Id)
			if i < 0 || i >= len(batch) || failed[i] {
				continue
			}
			failed[i] = true
			if err := sqsapi.EntryError(f); sqsapi.Again(f) {
				s.b.note(&s.b.settling, err)
				again = append(again, batch[i])
			} else {
				unsent.Add(1)
				s.b.cfg.Log.Warn("a message could not be deleted or given back: it is delivered again", "message_id", lease(batch[i]).id(), "error", err)
			}
		}
		switch {
		case o.err == nil:
			if done != nil {
				for i, e := range batch {
					if !failed[i] {
						done(e)
					}
				}
			}
			if len(o.failed) == 0 {
				s.b.fine(&s.b.settling)
			}
		case s.settles.Err() != nil:
			unsent.Add(int64(len(batch)))
			return
		default:
			s.b.note(&s.b.settling, o.err)
			if sqsapi.Hopeless(o.err) {
				unsent.Add(int64(len(batch)))
				s.b.cfg.Log.Error("messages could not be deleted or given back: they are delivered again", "messages", len(batch), "error", sqsapi.Said(o.err))
				if lost := lostError(o.err); lost != nil {
					s.end(lost)
				}
				return
			}
			again = batch
		}
		if batch = again; len(batch) == 0 {
			return
		}
		if !sqsapi.Sleep(s.settles, min(pauses.Next(), rest/leaseTries)) {
			unsent.Add(int64(len(batch)))
			return
		}
	}
}
