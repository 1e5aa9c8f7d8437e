package conformance

import (
	"errors"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// fate is where a message ends.
type fate string

const (
	acked     fate = "acknowledged"
	dead      fate = "dead-lettered"
	parked    fate = "parked"
	discarded fate = "discarded"
)

// ending is what is to come of a story.
type ending struct {
	// counts are the retry counts of the handler's calls, and waits what is between them.
	counts []int
	waits  []wait
	fate   fate
	stats  redeliver.Stats
}

// expect tells a story to its end, as the design's settle table has it.
func expect(v variant, doc topology.Manifest, cfg redeliver.Config, s story) ending {
	e := ending{stats: redeliver.Stats{Delivered: 1}}
	budget := cfg.EffectiveMaxRetries(doc.Retry.MaxRetries)
	finally := func() {
		if e.fate = dead; doc.DeadLetter == nil {
			e.fate = discarded
		}
	}
	count := 0
	if s.firstCount != nil {
		count = s.firstCount(v)
	}
	for call := 0; e.fate == ""; call++ {
		o := s.says(call)
		if s.oversized {
			o = redeliver.Park(nil)
			e.stats.Oversized++
		} else {
			e.counts = append(e.counts, count)
			e.stats.Handled++
		}
		if errors.Is(o.Err(), errPanic) {
			e.stats.Panicked++
		}
		switch o.Kind() {
		case redeliver.OutcomeAck:
			e.fate = acked
		case redeliver.OutcomeReject:
			finally()
		case redeliver.OutcomePark:
			var undecodable *redeliver.DecodeError
			if errors.As(o.Err(), &undecodable) {
				e.stats.Undecodable++
			}
			if e.fate = parked; doc.Park != topology.ParkPublish {
				finally()
			}
		case redeliver.OutcomeDefer:
			if v.fifo { // a message that is in order is retried instead
				e.pause(v.retryWait(count, o.Delay()))
				e.stats.Retried++
				count++
				break
			}
			if v.sqs() { // where every delivery counts
				if count >= budget {
					e.stats.Exhausted++
					finally()
					break
				}
				count++
			}
			e.pause(v.deferWait(count, o.Delay()))
			e.stats.Deferred++
		default:
			switch {
			case errors.Is(o.Err(), redeliver.ErrPermanent):
				finally()
			case count >= budget:
				e.stats.Exhausted++
				finally()
			case s.old, s.seen && v.holds(): // in place nobody writes the header, and nobody believes it
				e.stats.TooOld++
				finally()
			case o.Delay() == v.tooLong() && !v.holds():
				e.stats.DelayTooLong++
				finally()
			default:
				e.pause(v.retryWait(count, o.Delay()))
				e.stats.Retried++
				count++
			}
		}
	}
	switch e.fate {
	case acked:
		e.stats.Acked++
	case dead:
		e.stats.DeadLettered++
	case parked:
		e.stats.Parked++
	case discarded:
		e.stats.Discarded++
	}
	return e
}

// pause adds a wait.
func (e *ending) pause(w wait) {
	e.waits = append(e.waits, w)
	switch w.place {
	case requeued, delayed:
		e.stats.Delivered++
	case held:
		e.stats.Delivered += uint64(w.queues)   //nolint:gosec // few
		e.stats.Republished += uint64(w.queues) //nolint:gosec // few
		e.stats.Hopped += uint64(w.hops)        //nolint:gosec // few
	}
}
