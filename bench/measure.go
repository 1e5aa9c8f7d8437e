package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/bench/results"
)

// runner does one run, on a topic of its own.
type runner func(ctx context.Context, p *place) (sample, error)

// sample is what a run measured. Which fields it has depends on the runner.
type sample struct {
	rate       float64 // messages a second
	allocs     float64 // allocations a message
	cpu        float64 // microseconds of this process's CPU time a message
	memory     float64 // bytes
	goroutines float64
}

// measure lets the two take turns. Which is first changes with every pair: what a run leaves for the broker to do slows
// down the next one.
func (c comparison) measure(ctx context.Context, p *place, messages io.Writer) ([]row, error) {
	rows := make([]row, len(c.figures))
	for i, f := range c.figures {
		rows[i] = row{figure: f, load: results.LoadAverage()}
	}
	name := c.figures[0].name
	for n := range p.runs {
		var ours, bare sample
		turns := []struct {
			who  string
			run  runner
			into *sample
		}{{"ours", c.ours, &ours}, {"bare", c.bare, &bare}}
		if n%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			p.profile(n == p.runs-1, name, turn.who)
			var err error
			if *turn.into, err = turn.run(ctx, p); err != nil {
				return nil, fmt.Errorf("measuring %s (%s): %w", name, turn.who, err)
			}
		}
		for i := range rows {
			a, b := rows[i].of(ours), rows[i].of(bare)
			rows[i].ours, rows[i].bare = append(rows[i].ours, a), append(rows[i].bare, b)
			fmt.Fprintf(messages, "bench: %s, %d of %d: ours %s, bare %s, ratio %.3f; load average %s\n",
				rows[i].name, n+1, p.runs, number(a), number(b), a/b, results.LoadAverage())
		}
	}
	return rows, nil
}

// profile says where the CPU profile of the next run goes, if it has one.
func (p *place) profile(wanted bool, figure, loop string) {
	p.profileTo = ""
	if wanted && p.cpuProfile != "" {
		p.profileTo = p.cpuProfile + "." + figure + "." + loop
	}
}

// profiled does what is measured, and takes the run's CPU profile meanwhile.
func (p *place) profiled(do func() error) (err error) {
	settleMemory()
	if p.profileTo == "" {
		return do()
	}
	f, err := os.Create(p.profileTo)
	if err != nil {
		return fmt.Errorf("creating the CPU profile: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return fmt.Errorf("starting the CPU profile: %w", err)
	}
	defer pprof.StopCPUProfile()
	return do()
}

// reading is what the process had used up at a moment.
type reading struct {
	at      time.Time
	mallocs uint64
	cpu     time.Duration
}

func read() reading {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // it fails for invalid arguments only
	return reading{
		at: time.Now(), mallocs: mem.Mallocs,
		cpu: time.Duration(used.Utime.Nano() + used.Stime.Nano()),
	}
}

// between is what it took to settle some messages, and to handle some more.
func between(from, to reading, settled, handled int) sample {
	return sample{
		rate:   float64(settled) / to.at.Sub(from.at).Seconds(),
		allocs: float64(to.mallocs-from.mallocs) / float64(handled),
		cpu:    float64((to.cpu - from.cpu).Microseconds()) / float64(handled),
	}
}

// meter counts the deliveries of a run and takes the time.
type meter struct {
	count      atomic.Int64
	timed, all int64 // the time runs until the first; the second ends the run
	begin, end reading
	// timedDone and allDone are closed when so many have come.
	timedDone, allDone chan struct{}
}

func newMeter(timed, all int) *meter {
	return &meter{timed: int64(timed), all: int64(all), timedDone: make(chan struct{}), allDone: make(chan struct{})}
}

// hit is the handler that does nothing, of both loops.
func (m *meter) hit() {
	switch m.count.Add(1) {
	case 1:
		m.begin = read()
	case m.timed:
		m.end = read()
		close(m.timedDone)
	case m.all:
		close(m.allDone)
	}
}

// isBusy says whether a load average means that others were using the machine.
func isBusy(load string) bool {
	n, err := strconv.ParseFloat(load, 64)
	return err == nil && n > 3
}
