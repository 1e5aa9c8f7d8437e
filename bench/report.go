package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/redeliver/terraform-provider-redeliver/bench/results"
)

// row is a figure with what each run measured; ours[i] and bare[i] are a pair.
type row struct {
	figure
	ours, bare []float64
	load       string // the load average when the first run began
}

// pairs are what f makes of each pair.
func (r row) pairs(f func(ours, bare float64) float64) []float64 {
	list := make([]float64, len(r.ours))
	for i := range list {
		list[i] = f(r.ours[i], r.bare[i])
	}
	return list
}

func (r row) ratios() []float64 {
	return r.pairs(func(ours, bare float64) float64 { return ours / bare })
}

// value is the figure: the median of ours, or of what ours is above the bare.
func (r row) value() float64 {
	if r.excess {
		return median(r.pairs(func(ours, bare float64) float64 { return ours - bare }))
	}
	return median(r.ours)
}

// verdict compares with the goal.
func (r row) verdict() string {
	switch {
	case r.goal == 0:
		return ""
	case r.excess:
		return "at most " + number(r.goal) + ": " + reached(r.value() <= r.goal)
	default:
		return "at least " + strconv.FormatFloat(r.goal, 'f', 2, 64) + ": " + reached(median(r.ratios()) >= r.goal)
	}
}

func reached(yes bool) string {
	if yes {
		return "reached"
	}
	return "MISSED"
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// number writes a figure with the digits that mean something.
func number(f float64) string {
	if f >= 100 || f <= -100 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

// printTable prints the figures for people.
func printTable(out io.Writer, p *place, loadBefore string, rows []row) error {
	fmt.Fprintf(out, "\nRabbitMQ %s, %s %s/%s, %d CPUs. Each run: %d messages of %d bytes, persistent, in a quorum queue. Medians of %d runs each, by turns.\n",
		p.version, runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), p.messages, bodySize, p.runs)
	fmt.Fprintf(out, "Load average before the benchmark: %s\n", loadBefore)
	if isBusy(loadBefore) {
		fmt.Fprintln(out, "THE MACHINE WAS BUSY: take none of these figures for more than a hint.")
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tvalue\tbare\tunit\tratio\tratios of the pairs\tload\tgoal")
	for _, r := range rows {
		ratios := r.ratios()
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.3f\t%.3f to %.3f\t%s\t%s\n", r.name, number(r.value()), number(median(r.bare)), r.unit,
			median(ratios), slices.Min(ratios), slices.Max(ratios), r.load, r.verdict())
	}
	return w.Flush()
}

// writeResults writes the figures for programs. The value of a figure whose unit says "above the bare loop" is the median
// of the pairs' differences.
func writeResults(path string, rows []row) error {
	figures := make([]results.Figure, len(rows))
	for i, r := range rows {
		figures[i] = results.Figure{Name: r.name, Value: r.value(), Unit: r.unit, Baseline: median(r.bare), Ratio: median(r.ratios())}
	}
	return results.Write(path, figures)
}
