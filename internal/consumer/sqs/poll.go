package sqs

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const (
	// pollGrace is how long a poll that has just begun may go on after Stop: what the service answers to one that is
	// cancelled is lost for a visibility timeout.
	pollGrace = 500 * time.Millisecond
	// mostPollers bounds the polls at a time.
	mostPollers = 16
	// linger is how long a poll waits for room for a full batch, where there is room for less.
	linger = 250 * time.Millisecond
)

// poll is a request for messages that is on its way.
type poll struct {
	begun  time.Time
	cancel context.CancelFunc
}

// cease ends the polling: at once, or as soon as that loses nothing.
func (s *session) cease(now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.stopPausing()
	s.room.Broadcast()
	for p := range s.polls {
		if left := pollGrace - time.Since(p.begun); left > 0 && !now {
			time.AfterFunc(left, p.cancel)
		} else {
			p.cancel()
		}
	}
	if len(s.polls) == 0 || now {
		s.stopPolling()
	}
}

// poll is a goroutine that receives. There are as many as full answers call for,
// and one where there is nothing to do.
func (s *session) poll() {
	var pauses, idle sqsapi.Backoff
	attempt := "" // what was asked for in vain is asked for again: a FIFO queue answers the same
	for {
		n, ok := s.reserve()
		if !ok {
			break
		}
		ctx, p := s.begin()
		if attempt == "" {
			attempt = rand.Text()
		}
		out, err := s.b.receive(ctx, n, int32(topology.MaxReceiveWait/time.Second), attempt)
		s.finish(p)
		if err == nil {
			pauses.Reset()
			attempt = ""
			s.b.fine(&s.b.polling)
			// A poll that finds nothing waits. An answer of nothing at once is a limit of the service's, or comes from
			// something that is not the service: asking again at once would be a request after the other.
			hasty := len(out.Messages) == 0 && time.Since(p.begun) < topology.MaxReceiveWait/2
			if !s.arrived(n, out.Messages) {
				return
			}
			if !hasty {
				idle.Reset()
			} else if !sqsapi.Sleep(s.pausing, idle.Next()) {
				break
			}
			continue
		}
		s.giveUp(n)
		if ctx.Err() != nil && s.isStopped() {
			break
		}
		s.b.note(&s.b.polling, err)
		if lost := lostError(err); lost != nil {
			s.end(lost)
			break
		}
		pause := pauses.Next()
		s.b.cfg.Log.Warn("a receive failed; will try again", "next_pause", pause, "error", sqsapi.Said(err))
		if !sqsapi.Sleep(s.pausing, pause) {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave()
}

// leave ends a poller: with the last one, nothing more comes. s.mu is held.
func (s *session) leave() {
	if s.pollers--; s.pollers == 0 {
		s.stopPolling()
		close(s.inbox)
		s.room.Broadcast()
	}
}

// reserve waits until there is room for a full answer, or for a smaller one and
// that for a while: a message that takes long is not to keep others from being
// received. It returns false when nothing more is to be received.
func (s *session) reserve() (n int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var since time.Time
	for !s.stopped && s.free() < s.batch {
		switch {
		case s.free() <= 0:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
			defer time.AfterFunc(linger, s.wake).Stop()
		case time.Since(since) >= linger:
			return s.ask(s.free())
		}
		s.room.Wait()
	}
	if s.stopped {
		return 0, false
	}
	return s.ask(s.batch)
}

// ask reserves room for n messages. s.mu is held.
func (s *session) ask(n int) (int, bool) {
	s.reserved += n
	return n, true
}

// free is how many more messages there is room for. What is settled and not yet
// told to the service counts where it becomes too much. s.mu is held.
func (s *session) free() int {
	if s.deletes.len()+s.changes.len() > s.prefetch+senders*sqsapi.BatchMax {
		return 0
	}
	return s.prefetch - max(len(s.leases), len(s.inbox)) - s.reserved
}

func (s *session) begin() (context.Context, *poll) {
	ctx, cancel := context.WithTimeout(s.polling, topology.MaxReceiveWait+sqsapi.Timeout)
	p := &poll{begun: time.Now(), cancel: cancel}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls[p] = true
	if s.stopped {
		time.AfterFunc(pollGrace, cancel)
	}
	return ctx, p
}

func (s *session) finish(p *poll) {
	p.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.polls, p)
}

func (s *session) isStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// giveUp gives back the room of a poll that failed.
func (s *session) giveUp(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved -= n
	s.room.Broadcast()
}

// arrived takes in what a poll for n messages has got. It returns false when its
// poller is one too many.
func (s *session) arrived(n int, messages []types.Message) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserved -= n
	fresh := s.admit(messages)
	for _, l := range fresh {
		s.inbox <- l // there is room: it holds prefetch
	}
	s.room.Broadcast()
	switch {
	case s.stopped, len(messages) == 0 && s.pollers > 1:
		s.leave()
		return false
	case len(messages) == s.batch && s.pollers < mostPollers && s.pollers*s.batch < s.prefetch:
		s.pollers++
		go s.poll()
	}
	return true
}

// admit lends messages to this session. Those that wait to be moved by the
// redrive policy go back. s.mu is held.
func (s *session) admit(messages []types.Message) (fresh []*lease) {
	var again []*lease
	now := time.Now()
	for i := range messages {
		m := &messages[i]
		s.tags++
		l := &lease{tag: s.tags, message: m, group: m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)], receives: receives(m), received: now}
		s.extend(l, now, s.b.visibility)
		s.leases[l.tag] = l
		s.b.inHand.Add(1)
		if l.burying = s.b.buried.has(l.id(), l.receives, now); l.burying {
			again = append(again, l)
		} else {
			fresh = append(fresh, l)
		}
	}
	for _, l := range again {
		s.dig(l.group, l)
	}
	return fresh
}

// receive asks for n messages, for wait seconds. attempt names the request: a
// FIFO queue answers one that is repeated as before.
func (b *Broker) receive(ctx context.Context, n int, wait int32, attempt string) (*sqs.ReceiveMessageOutput, error) {
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &b.cfg.Queue.URL, MaxNumberOfMessages: int32(n), WaitTimeSeconds: wait, VisibilityTimeout: sqsapi.Seconds(b.visibility), //nolint:gosec // at most 10
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: SystemAttributes(),
	}
	if b.fifo {
		in.ReceiveRequestAttemptId = &attempt
	}
	return b.cfg.Client.ReceiveMessage(ctx, in, sqsapi.Once)
}
