package memory

import (
	"sync"
	"time"
)

// activity counts what goes on in a broker and in everything that is connected
// to it. It is zero only when everything is at rest, because whoever begins
// something adds it before what led to it is taken off.
type activity struct {
	mu sync.Mutex
	n  int
	// rest is closed when n becomes zero; nil where nobody waits for that.
	rest chan struct{}
}

func (a *activity) add(change int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n += change
	if a.n == 0 && a.rest != nil {
		close(a.rest)
		a.rest = nil
	}
}

// wait waits until everything is at rest. It returns false when that did not
// happen within patience of the machine's time.
func (a *activity) wait(patience time.Duration) bool {
	a.mu.Lock()
	if a.n == 0 {
		a.mu.Unlock()
		return true
	}
	if a.rest == nil {
		a.rest = make(chan struct{})
	}
	rest := a.rest
	a.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-rest:
		return true
	case <-timer.C:
		return false
	}
}

// share is one participant's part of the activity. A participant that ends
// leaves: what it did not take off is taken off for it.
type share struct {
	all *activity

	mu   sync.Mutex
	n    int
	left bool
}

func (s *share) add(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left {
		return
	}
	s.n += change
	s.all.add(change)
}

func (s *share) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left {
		return
	}
	s.left = true
	s.all.add(-s.n)
}
