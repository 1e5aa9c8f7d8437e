package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/redeliver/terraform-provider-redeliver/bench/results"
)

// The goals: requests of a plan without changes, how many times the bare time of its writes an apply may take besides
// terraform's own, and memory.
const (
	goalRequests = 20
	goalTimes    = 1.5
	goalMemory   = 300 << 20
)

// report prints the figures and writes them.
func report(o options, out io.Writer, b *broker, real, idle *measured, bare bareTimes) error {
	resources := float64(o.topics * resourcesPerTopic)
	figure := func(name string, value float64, unit string, baseline float64) results.Figure {
		f := results.Figure{Name: name, Value: value, Unit: unit, Baseline: baseline}
		if baseline > 0 { // else it was not measured
			f.Ratio = value / baseline
		}
		return f
	}
	own, writes := idle.apply.took.Seconds(), bare.writes.Seconds()
	figures := []results.Figure{
		figure("plan_requests", float64(len(real.plan.requests)), "requests; baseline: resources", resources),
		figure("apply_wall", real.apply.took.Seconds(), "s; baseline: terraform's own time and the bare writes", own+writes),
		figure("plan_wall", real.plan.took.Seconds(), "s; baseline: terraform's own time and the bare reads", idle.plan.took.Seconds()+bare.reads.Seconds()),
		figure("destroy_wall", real.destroy.took.Seconds(), "s; baseline: terraform's own time", idle.destroy.took.Seconds()),
		figure("peak_memory", float64(real.memory), "bytes; baseline: a provider that does nothing", float64(idle.memory)),
	}
	if o.keep {
		figures = slices.DeleteFunc(figures, func(f results.Figure) bool { return f.Name == "destroy_wall" })
	}
	memory := figures[len(figures)-1].Value
	goals := map[string]string{
		"plan_requests": verdict(figures[0].Value, goalRequests, "%.0f"),
		"apply_wall":    verdict(figures[1].Value, own+goalTimes*writes, "%.1f"),
		"peak_memory":   verdict(memory, goalMemory, "%.0f"),
	}
	applied := map[bool]int{}
	for _, r := range real.apply.requests {
		applied[r.writes()]++
	}
	fmt.Fprintf(out, "\nRabbitMQ %s: %d topics, %d resources, %d queues. The apply sent %d writes and %d reads; terraform's own time %.1f s, its writes bare %.1f s.\n\n",
		b.version, o.topics, o.topics*resourcesPerTopic, o.topics*queuesPerTopic, applied[true], applied[false], own, writes)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "figure\tvalue\tbaseline\tratio\tunit\tgoal")
	for _, f := range figures {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.3f\t%s\t%s\n", f.Name, f.Value, f.Baseline, f.Ratio, f.Unit, goals[f.Name])
	}
	if err := w.Flush(); err != nil || o.output == "" {
		return err
	}
	return results.Write(o.output, figures)
}

func verdict(value, most float64, format string) string {
	if value <= most {
		return fmt.Sprintf("at most "+format+": reached", most)
	}
	return fmt.Sprintf("at most "+format+": MISSED", most)
}
