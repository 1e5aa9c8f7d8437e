package redelivertest

import (
	"fmt"
	"strings"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const (
	defaultPatience = 10 * time.Second
	// mostSteps bounds the steps of Finish: messages that come back for ever are a mistake.
	mostSteps = 10_000
)

// Now is the broker's time. It stands still but for [Broker.Advance] and
// [Broker.Finish].
func (b *Broker) Now() time.Time { return b.memory.Now() }

// Wait waits until everything is at rest: no message is on its way to a
// consumer that has room for it, no handler runs, and nothing is unconfirmed.
// What is left waits for time to pass, or for a consumer. The test fails when
// that takes more than ten seconds, which is a handler that does not return.
func (b *Broker) Wait() {
	b.t.Helper()
	b.wait()
}

func (s *shared) wait() {
	s.t.Helper()
	if !s.memory.Wait(s.patience) {
		s.t.Fatalf("after %s the broker is not at rest: does a handler not return?%s", s.patience, s.running())
	}
}

func (s *shared) running() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	for _, c := range s.consumers {
		if n := c.run.Stats().Running; n > 0 {
			fmt.Fprintf(&text, "\nqueue %q: %d handlers run", c.queue, n)
		}
	}
	return text.String()
}

// Advance moves the clock by d: from one thing that falls due to the next, and
// waits after each until everything is at rest. So a message that is retried
// after five seconds, fails, and is retried after thirty more has been handled
// twice more after Advance(35 * time.Second).
func (b *Broker) Advance(d time.Duration) {
	b.t.Helper()
	if d < 0 {
		b.t.Fatalf("the clock cannot be moved back (by %s)", d)
	}
	limit := b.Now().Add(d)
	b.Wait()
	for b.memory.Step(limit) {
		b.Wait()
	}
}

// Finish moves the clock until no message of any topic waits any more, and
// returns by how much. Then every message is acknowledged, gone, or in a
// dead-letter or parked queue and with no consumer. The test fails where that has
// no end.
func (b *Broker) Finish() time.Duration {
	b.t.Helper()
	begun := b.Now()
	for range mostSteps {
		b.Wait()
		waiting := b.waiting()
		if waiting == 0 {
			return b.Now().Sub(begun)
		}
		at, any := b.memory.Next()
		if !any {
			b.t.Fatalf("%d messages wait for something that no time brings", waiting)
		}
		b.memory.Step(at)
	}
	b.t.Fatalf("messages still wait after %s: is one deferred for ever?", b.Now().Sub(begun))
	return 0
}

// waiting counts the messages of all topics that wait.
func (s *shared) waiting() int {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, doc := range s.topics {
		n += len(s.held(doc))
		for _, target := range []*topology.ManifestTarget{doc.DeadLetter, doc.Parked} {
			if target != nil {
				away, _ := s.memory.Away(target.Name) // none where it was removed
				n += len(away)
			}
		}
	}
	return n
}
