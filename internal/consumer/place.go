package consumer

import (
	"sync/atomic"
	"time"
)

// A message that changes goroutines costs more than a handler that does next to nothing. So while handlers are quick, the
// goroutine that receives handles by itself, in the place of a worker that is idle. It receives nothing meanwhile: where a
// handler turns out to be slow, another goroutine is put in charge of receiving.

const (
	// quickHandler is how long a handler takes at most for its like to be called by the receiver, and slowHandler how long
	// two in a row must take for that to end.
	quickHandler = 10 * time.Microsecond
	slowHandler  = 5 * quickHandler
	// Every workerSample'th handling by a worker is looked at, and every receiverSample'th by a receiver.
	workerSample, receiverSample = 64, 16
	// busySample is how long one of busyWorkers takes at most between two samples for it to be worth while; of more workers
	// each has less to do, and takes longer.
	busySample, busyWorkers = 25 * time.Millisecond, 8
	// relieveAfter is how long the receiver may be with one message: that long at least, and twice that at most. It is longer
	// than a busy machine keeps a thread waiting for a processor now and then, which looks the same (2 ms was not).
	relieveAfter = 10 * time.Millisecond
	// quietTicks is after how many times relieveAfter without a message nobody watches any more.
	quietTicks = 10
	// worthWhile is how many messages the receiver should have handled when that ends. Where it were fewer, samples are
	// passed over: 1, 3, 7 and so on, as often as that is so in a row, up to mostFailures.
	worthWhile, mostFailures = 1000, 6
)

// place is the place of a worker that a session's receiver may take.
type place struct {
	// state is one of those below, and above them the number of times that it has come back to placeClosed, so that nobody
	// takes one for an earlier one.
	state atomic.Uint64
	// opened is how many messages the receiver had handled when the place was opened; failures and skip see worthWhile.
	opened         atomic.Uint64
	failures, skip atomic.Int32
	// slow says that the last sample of the receiver was; it belongs to whoever has a place lent.
	slow bool
}

const (
	placeClosed uint64 = iota // it is not to be taken
	placeOpen                 // it may be, and somebody watches
	placeTaken                // the receiver handles a message
	placeBits   = 2
	placeMask   = 1<<placeBits - 1
)

// open lets the receiver handle messages, of which it has handled so many. It
// returns the state for whoever watches from now on, and false when somebody
// does already or this sample is passed over.
func (p *place) open(handled uint64) (state uint64, opened bool) {
	v := p.state.Load()
	if v&placeMask != placeClosed {
		return 0, false
	}
	if p.skip.Load() > 0 {
		p.skip.Add(-1)
		return 0, false
	}
	p.opened.Store(handled)
	return v + placeOpen, p.state.CompareAndSwap(v, v+placeOpen)
}

// close ends that; it returns false when the state is not what it was.
func (p *place) close(state, handled uint64) bool {
	if !p.state.CompareAndSwap(state, (state>>placeBits+1)<<placeBits) {
		return false
	}
	n := int32(0)
	if handled-p.opened.Load() < worthWhile {
		n = min(p.failures.Load()+1, mostFailures)
	}
	p.failures.Store(n)
	p.skip.Store(1<<n - 1)
	return true
}

func (p *place) isOpen() bool { return p.state.Load()&placeMask == placeOpen }

// take is called by the receiver before it handles a message. It returns false
// where it may not.
func (p *place) take() (state uint64, taken bool) {
	v := p.state.Load()
	return v + 1, v&placeMask == placeOpen && p.state.CompareAndSwap(v, v+1)
}

// leave is called after that. It returns false when another goroutine receives
// now.
func (p *place) leave(state uint64) bool { return p.state.CompareAndSwap(state, state-1) }

// sample looks at a worker's last handling, now and then, and opens the place
// of the receiver where it is worth while.
func (c *Consumer) sample(s *session, w *slot) {
	if w.handled.Load()%workerSample != 0 || c.motion != nil {
		return
	}
	now := c.clock.Now()
	took, last := time.Duration(now.UnixNano()-w.since.Load()), w.sampled
	busy := busySample * time.Duration(max(busyWorkers, c.cfg.Workers)) / busyWorkers
	if w.sampled = now; took > quickHandler || now.Sub(last) > busy {
		return
	}
	if state, opened := s.place.open(c.slots[0].handled.Load()); opened {
		go c.relieve(s, state)
	}
}

// handleHere handles a message that was just received, if it may. It returns
// false where a worker is to do that, and more false when this goroutine is not
// to receive any more.
func (c *Consumer) handleHere(t *task) (handled, more bool) {
	s, own := t.session, &c.slots[0]
	if !s.place.isOpen() || !c.ready.lend(&c.workers) {
		return false, true
	}
	state, taken := s.place.take() // last, so that who finds it taken finds a handler that runs
	if !taken {
		c.restore()
		return false, true
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		go func() {
			c.exited(own)
			c.restore()
			if s.place.leave(state) {
				c.receive(s)
			}
		}()
	}()
	c.process(t, own, t.Received)
	returned = true
	n, tooSlow := own.handled.Load(), false
	if n%receiverSample == 0 {
		slow := c.clock.Now().UnixNano()-own.since.Load() > int64(slowHandler)
		s.place.slow, tooSlow = slow, slow && s.place.slow
	}
	c.restore()
	if tooSlow {
		return true, s.place.close(state, n)
	}
	return true, s.place.leave(state)
}

// restore gives back the place of a worker.
func (c *Consumer) restore() {
	c.ready.restore()
	c.workers.Done()
}

// relieve watches a session's receiver while its place is open: it has another
// goroutine receive when a message takes long, and ends when none has come for a
// while.
func (c *Consumer) relieve(s *session, open uint64) {
	ticker := time.NewTicker(relieveAfter)
	defer ticker.Stop()
	taken, last, quiet := open-placeOpen+placeTaken, uint64(0), 0
	for {
		select {
		case <-s.received:
			return
		case <-ticker.C:
		}
		handled := c.slots[0].handled.Load()
		moved := handled != last
		last = handled
		switch state := s.place.state.Load(); {
		case state != open && state != taken:
			return
		case moved:
			quiet = 0
		case state == taken:
			if s.place.close(taken, handled) {
				go c.receive(s)
				return
			}
		default:
			if quiet++; quiet > quietTicks && s.place.close(open, handled) {
				return
			}
		}
	}
}
