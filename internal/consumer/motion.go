package consumer

// motion is [Options].Moving. Who begins something that goes on by itself adds
// one before it does, and whoever is done with it takes one off: so the sum is
// zero only when nothing goes on. In motion are
//
//   - a consumer that is bound, until it runs;
//   - a worker, except while it waits for a task that is ready, or for the clock;
//   - the goroutine of the held that was woken, until its timer is set again;
//   - the end of a session until the next one begins, and not during the pauses before connecting.
//
// The transport adds what is its own: a session that ended until it is closed, a
// delivery on its way, a copy until its done has returned; and the clock a timer
// that has fired until it is stopped.
type motion func(change int)

func (m motion) add(change int) {
	if m != nil {
		m(change)
	}
}

// rest says that a worker waits for the clock with a task of this session. It
// returns false when the session has ended.
func (s *session) rest() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead.Load() {
		return false
	}
	s.resting++
	s.motion.add(-1)
	return true
}

// unrest says that it waits no more. The end of a session has said so already.
func (s *session) unrest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.dead.Load() {
		s.resting--
		s.motion.add(1)
	}
}
