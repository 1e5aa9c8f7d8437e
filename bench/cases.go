package main

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// comparison is what takes turns, and the figures that come of it.
type comparison struct {
	ours, bare runner
	figures    []figure
}

// figure is a number that is reported.
type figure struct {
	name, unit string
	of         func(sample) float64
	// excess says that the value is by how much ours exceeds the bare loop's, and not ours.
	excess bool
	// goal is the least ratio, or with excess the greatest value, that is good enough; 0 is none.
	goal float64
}

func rate(name string, goal float64) figure {
	return figure{name: name, unit: "messages/s", of: func(s sample) float64 { return s.rate }, goal: goal}
}

func allocs(name string, goal float64) figure {
	return figure{
		name: name, unit: "allocations/message above the bare loop", of: func(s sample) float64 { return s.allocs },
		excess: true, goal: goal,
	}
}

func cpu(name string) figure {
	return figure{name: name, unit: "µs of CPU/message, client", of: func(s sample) float64 { return s.cpu }}
}

const (
	// bareHandlers is how many goroutines handle and acknowledge in the bare loop that acknowledges each message.
	bareHandlers = 8
	// window is how many publishings the bare loops have in flight.
	window = 256
	// retryPrefetch and retryWorkers are those of the consumer whose every message is retried.
	retryPrefetch, retryWorkers = 1000, 8
	// heldDeliveries is how many deliveries are held at a time, by so many workers and goroutines.
	heldDeliveries, heldWorkers = 10_000, 8
	// longHold is a delay that does not pass while the benchmark runs.
	longHold = 15 * time.Minute
)

// The schedules of the topics that are consumed.
func inPlace(s *topology.Spec) { s.Retry.Delays = []time.Duration{longHold} }

func republished(s *topology.Spec) {
	s.Retry.Strategy = topology.Republish
	s.HoldDelays = []time.Duration{longHold}
}

// comparisons are all that there is to measure, in the order in which it is.
func comparisons() []comparison {
	var list []comparison
	for _, prefetch := range []int{100, 1000} {
		for _, workers := range []int{1, 8, 64} {
			list = append(list, coalesced(prefetch, workers))
		}
	}
	for _, prefetch := range []int{100, 1000} {
		cfg := redeliver.Config{Workers: 8, Prefetch: prefetch, AckEach: true}
		each := comparison{
			ours:    settling(inPlace, prefetch, consumer(cfg, redeliver.Ack())),
			bare:    settling(inPlace, prefetch, ackEach(prefetch)),
			figures: []figure{rate(fmt.Sprintf("ack_each_p%d_w8", prefetch), 0.95)},
		}
		if prefetch == 1000 {
			each.figures = append(each.figures, allocs("allocs_per_message_ack_each", 3), cpu("cpu_per_message_ack_each"))
		}
		list = append(list, each)
	}
	list = append(list, comparison{
		ours: settling(inPlace, 1000, watched(redeliver.Config{Workers: 8, Prefetch: 1000})),
		bare: settling(inPlace, 1000, ackMultiple(1000)),
		figures: []figure{
			rate("ack_coalesced_p1000_w8_telemetry", 0), allocs("allocs_per_message_telemetry", 8), cpu("cpu_per_message_telemetry"),
		},
	})
	retry := settling(republished, retryPrefetch, consumer(
		redeliver.Config{Workers: retryWorkers, Prefetch: retryPrefetch}, redeliver.Retry(errBusy)))
	return append(list,
		comparison{ours: retry, bare: publishing(republished), figures: []figure{rate("republish_retry", 0.85)}},
		comparison{
			ours: retry, bare: settling(republished, retryPrefetch, publishThenAck(retryPrefetch)),
			figures: []figure{rate("republish_retry_same_work", 0), cpu("cpu_per_message_republish")},
		},
		comparison{ours: holding(holdOurs), bare: holding(holdBare), figures: []figure{
			{
				name: "held_10000_bytes", unit: "bytes above the bare loop", of: func(s sample) float64 { return s.memory },
				excess: true, goal: 10 << 20,
			},
			{name: "held_10000_goroutines", unit: "goroutines", of: func(s sample) float64 { return s.goroutines }},
		}},
	)
}

// coalesced compares the default way of acknowledging with the bare loop that
// does the same in one goroutine.
func coalesced(prefetch, workers int) comparison {
	cfg := redeliver.Config{Workers: workers, Prefetch: prefetch}
	c := comparison{
		ours:    settling(inPlace, prefetch, consumer(cfg, redeliver.Ack())),
		bare:    settling(inPlace, prefetch, ackMultiple(prefetch)),
		figures: []figure{rate(fmt.Sprintf("ack_coalesced_p%d_w%d", prefetch, workers), 0.95)},
	}
	if prefetch == 1000 && workers == 8 {
		c.figures = append(c.figures, allocs("allocs_per_message", 3), cpu("cpu_per_message"))
	}
	return c
}

// selectCases are the comparisons with the figures that were asked for.
func selectCases(only *regexp.Regexp) []comparison {
	var list []comparison
	for _, c := range comparisons() {
		c.figures = slices.DeleteFunc(c.figures, func(f figure) bool { return only != nil && !only.MatchString(f.name) })
		if len(c.figures) > 0 {
			list = append(list, c)
		}
	}
	return list
}
