package fake

import (
	"errors"
	"maps"
)

// ErrLost is what a client sees of an answer that was lost on its way.
var ErrLost = errors.New("connection reset by peer")

// script is what goes wrong. It is guarded by the service's lock.
type script struct {
	failures []failure
	lost     map[string]int
	entries  map[string]func(body string) *Error
	requests map[string]int
	handled  map[string]int
}

// failure lets the next requests for an action fail.
type failure struct {
	action string
	left   int // negative is for ever
	err    *Error
}

// Fail answers the next requests for an action with an error, and does not carry them out; for ever where times is
// negative. The action is such as "ReceiveMessage".
func (s *Service) Fail(action string, times int, err *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script.failures = append(s.script.failures, failure{action, times, err})
}

// Mend takes back what Fail, Lose and FailEntries said.
func (s *Service) Mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script.failures, s.script.lost, s.script.entries = nil, nil, nil
}

// Lose carries out the next requests for an action, but the client does not hear of it: see [ErrLost].
func (s *Service) Lose(action string, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.script.lost == nil {
		s.script.lost = make(map[string]int)
	}
	s.script.lost[action] += times
}

// FailEntries lets entries of batches fail: fail is called with the body of each entry's message ("" where there is none),
// and says with which error; nil lets it succeed. It may not call the service.
func (s *Service) FailEntries(action string, fail func(body string) *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.script.entries == nil {
		s.script.entries = make(map[string]func(string) *Error)
	}
	s.script.entries[action] = fail
}

// Requests are how many requests there were, by action: those that failed too.
func (s *Service) Requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.script.requests)
}

// Entries are how many messages requests were about, by action: those that ReceiveMessage returned, and the entries of
// batches.
func (s *Service) Entries() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.script.handled)
}

// begin counts a request, and says whether it fails. s.mu is held.
func (s *Service) begin(action string) *Error {
	s.script.requests[action]++
	for i := range s.script.failures {
		f := &s.script.failures[i]
		if f.action != action || f.left == 0 {
			continue
		}
		f.left--
		return f.err
	}
	return nil
}

// isLost says whether an answer is lost. s.mu is held.
func (s *Service) isLost(action string) bool {
	if s.script.lost[action] == 0 {
		return false
	}
	s.script.lost[action]--
	return true
}

// entryFails says whether an entry fails. s.mu is held.
func (s *Service) entryFails(action, body string) *Error {
	if fail := s.script.entries[action]; fail != nil {
		return fail(body)
	}
	return nil
}
