package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// policyFlags say a retry policy where no manifest does.
type policyFlags struct {
	strategy                                       string
	maxRetries                                     int
	delays                                         []string
	delayMin, delayMax, holdFrom, giveUp, exponent string
	jitter                                         float64
}

func (a *app) scheduleCommand() *cobra.Command {
	var p policyFlags
	var handler string
	strategies := make([]string, len(topology.Strategies()))
	for i, s := range topology.Strategies() {
		strategies[i] = string(s)
	}
	cmd := &cobra.Command{
		Use: "plan-schedule [MANIFEST]", Short: "Say when each retry of a policy would happen",
		Long: `Plan-schedule lists when each retry of a message that always fails would happen, for a manifest or for a policy that flags say: at the
earliest, without jitter, and at the latest. Waits in the consumer vary by the jitter both ways, waits in the broker do not, but for
those in hold queues that are split. What handling takes comes on top: --handler says how long.`,
		Example: `  redeliver plan-schedule orders.json
  redeliver plan-schedule --strategy in_place --max-retries 5 --delays 5s,30s,2m
  redeliver plan-schedule --exponential 1s,5m --max-retries 8 --handler 2s`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("%d arguments are given and at most 1 is expected", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var m topology.Manifest
			var err error
			if len(args) == 1 {
				for _, name := range []string{"strategy", "max-retries", "delays", "exponential", "delay-min", "delay-max", "hold-from", "give-up-after", "jitter"} {
					if cmd.Flags().Changed(name) {
						return usagef("--%s and a manifest both say the policy: give one of them", name)
					}
				}
				m, err = a.manifest(cmd.Context(), args[0])
			} else {
				m, err = p.manifest()
			}
			if err != nil {
				return err
			}
			handling, err := optionalDuration("handler", handler)
			if err != nil {
				return err
			}
			return a.printSchedule(m, scheduleOf(m, handling), handling)
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.strategy, "strategy", string(topology.InPlace), strings.Join(strategies, ", "))
	f.IntVar(&p.maxRetries, "max-retries", topology.DefaultMaxRetries, "how many retries are honoured")
	f.StringSliceVar(&p.delays, "delays", nil, "the delays, shortest first; the last one repeats")
	f.StringVar(&p.exponent, "exponential", "", "the shortest and the longest of delays that double, such as 1s,5m, instead of --delays")
	f.StringVar(&p.delayMin, "delay-min", "", "of broker_delayed: the wait before the first retry, and what each further one waits longer")
	f.StringVar(&p.delayMax, "delay-max", "", "of broker_delayed: the longest wait")
	f.StringVar(&p.holdFrom, "hold-from", "", "of hybrid: the shortest delay that is waited in a hold queue (default "+topology.FormatDuration(topology.DefaultHoldFrom)+")")
	f.StringVar(&p.giveUp, "give-up-after", "", "the age at which a message is retried no more")
	f.Float64Var(&p.jitter, "jitter", topology.DefaultJitter, "the factor by which waits in the consumer vary")
	f.StringVar(&handler, "handler", "", "how long the handler takes each time")
	_ = cmd.RegisterFlagCompletionFunc("strategy", cobra.FixedCompletions(strategies, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func optionalDuration(flag, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := topology.ParseDuration(text)
	if err != nil {
		return 0, usagef("--%s: %w", flag, err)
	}
	return d, nil
}

// manifest is that of a topic which has the policy.
func (p *policyFlags) manifest() (topology.Manifest, error) {
	id := topology.Identity{Topic: "topic"}
	s := topology.Spec{
		Identity: id, DeadLetterQueue: id.DeadLetterQueueName(),
		Retry: topology.RetryPolicy{Strategy: topology.Strategy(p.strategy), MaxRetries: p.maxRetries, Jitter: p.jitter},
	}
	for _, d := range []struct {
		flag, text string
		to         *time.Duration
	}{{"delay-min", p.delayMin, &s.Retry.DelayMin}, {"delay-max", p.delayMax, &s.Retry.DelayMax}, {"hold-from", p.holdFrom, &s.Retry.HoldFrom}, {"give-up-after", p.giveUp, &s.Retry.GiveUpAfter}} {
		var err error
		if *d.to, err = optionalDuration(d.flag, d.text); err != nil {
			return topology.Manifest{}, err
		}
	}
	delays := make([]time.Duration, len(p.delays))
	for i, text := range p.delays {
		d, err := topology.ParseDuration(text)
		if err != nil {
			return topology.Manifest{}, usagef("--delays: %w", err)
		}
		delays[i] = d
	}
	if p.exponent != "" {
		if len(delays) > 0 {
			return topology.Manifest{}, usagef("--exponential and --delays both say the delays: give one of them")
		}
		var err error
		if delays, err = exponential(p.maxRetries+1, p.exponent); err != nil {
			return topology.Manifest{}, err
		}
	}
	if s.Retry.Strategy == topology.Republish || s.Retry.Strategy == topology.Hybrid {
		s.HoldDelays = delays
	} else {
		s.Retry.Delays = delays
	}
	m, err := s.Manifest()
	if err != nil {
		return m, fmt.Errorf("the policy: %w", err)
	}
	return m, nil
}

// exponential are the tiers of delays that double, from "SHORTEST,LONGEST".
func exponential(attempts int, text string) ([]time.Duration, error) {
	first, last, ok := strings.Cut(text, ",")
	if !ok {
		return nil, usagef("--exponential %q: write SHORTEST,LONGEST, such as 1s,5m", text)
	}
	shortest, err := topology.ParseDuration(first)
	if err != nil {
		return nil, usagef("--exponential: %w", err)
	}
	longest, err := topology.ParseDuration(last)
	if err != nil {
		return nil, usagef("--exponential: %w", err)
	}
	schedule, err := topology.Exponential(attempts, shortest, longest)
	if err != nil {
		return nil, usagef("--exponential: %w", err)
	}
	return topology.Tiers(schedule), nil
}

// retry is one retry of a message that always fails.
type retry struct {
	// Number counts retries from 1. Where is where its delay is waited.
	Number int    `json:"retry"`
	Where  string `json:"waits_in"`
	// The delay before it, and when it happens after the message's first delivery: at the earliest, without jitter, at the latest.
	Delay     topology.Duration `json:"delay"`
	DelayMin  topology.Duration `json:"delay_min"`
	DelayMax  topology.Duration `json:"delay_max"`
	Earliest  topology.Duration `json:"earliest"`
	At        topology.Duration `json:"at"`
	Latest    topology.Duration `json:"latest"`
	GivenUp   bool              `json:"given_up,omitempty"`
	MayGiveUp bool              `json:"may_be_given_up,omitempty"`
}

// scheduleOf are all retries that a policy honours.
func scheduleOf(m topology.Manifest, handling time.Duration) []retry {
	out := make([]retry, 0, m.Retry.MaxRetries)
	var earliest, at, latest time.Duration
	for n := range m.Retry.MaxRetries {
		where, delay, least, most := wait(m, n)
		// The message is as old as its handling, when the consumer decides whether to give up.
		earliest, at, latest = earliest+handling, at+handling, latest+handling
		limit := time.Duration(m.Retry.GiveUpAfter)
		r := retry{
			Number: n + 1, Where: where, Delay: topology.Duration(delay), DelayMin: topology.Duration(least), DelayMax: topology.Duration(most),
			GivenUp: topology.GivesUp(earliest, true, limit), MayGiveUp: topology.GivesUp(latest, true, limit),
		}
		earliest, at, latest = earliest+least, at+delay, latest+most
		r.Earliest, r.At, r.Latest = topology.Duration(earliest), topology.Duration(at), topology.Duration(latest)
		out = append(out, r)
		if r.GivenUp {
			break
		}
	}
	return out
}

// wait is where and how long the n-th retry, from 0, waits.
func wait(m topology.Manifest, n int) (where string, delay, least, most time.Duration) {
	if m.Retry.Strategy == topology.BrokerDelayed {
		delay = min(time.Duration(m.Retry.DelayMin)*time.Duration(n+1), time.Duration(m.Retry.DelayMax))
		return "the broker", delay, delay, delay
	}
	tier := topology.TierFor(n, len(m.Retry.Delays))
	delay = time.Duration(m.Retry.Delays[tier])
	if m.Retry.Strategy == topology.InPlace || m.Retry.Strategy == topology.Hybrid && delay < time.Duration(m.Retry.HoldFrom) {
		where = "the consumer"
		if m.Broker == topology.BrokerSQS && m.Sequence == nil {
			where = "the queue"
		}
		least, most = topology.Jitter(delay, m.Retry.Jitter, 0), topology.Jitter(delay, m.Retry.Jitter, 1)
		if where == "the queue" { // which waits in whole seconds, and never shorter
			least, most = topology.RoundUp(least, time.Second), topology.RoundUp(most, time.Second)
		}
		return where, delay, least, most
	}
	least, most = delay, delay
	for _, q := range m.HoldQueues {
		if q.Tier == tier {
			where = q.Name
			least, most = min(least, time.Duration(q.Delay)), max(most, time.Duration(q.Delay))
		}
	}
	for _, q := range m.HoldQueues {
		if q.Tier == tier && q.Shard == 0 {
			where = q.Name
		}
	}
	return where, delay, least, most
}

func (a *app) printSchedule(m topology.Manifest, retries []retry, handling time.Duration) error {
	if a.json() {
		return a.printJSON(map[string]any{"strategy": m.Retry.Strategy, "max_retries": m.Retry.MaxRetries, "jitter": m.Retry.Jitter, "retries": retries})
	}
	a.printf("%s\n", policyOf(m))
	if len(retries) == 0 {
		a.printf("a message that fails once has failed for good\n")
		return nil
	}
	t := table{head: []string{"RETRY", "WAITS IN", "DELAY", "EARLIEST", "AT", "LATEST", ""}, right: map[int]bool{0: true, 2: true, 3: true, 4: true, 5: true}}
	for _, r := range retries {
		note := cell{}
		switch {
		case r.GivenUp:
			note = cell{"never: too old by then", bad}
		case r.MayGiveUp:
			note = cell{"may be too old by then", warned}
		}
		t.add(cell{text: strconv.Itoa(r.Number)}, cell{text: shown(r.Where)}, cell{text: exact(r.Delay)}, cell{text: exact(r.Earliest)}, cell{text: exact(r.At)}, cell{text: exact(r.Latest)}, note)
	}
	a.printf("%s", t.render(a))
	happen := retries
	if retries[len(retries)-1].GivenUp {
		happen = retries[:len(retries)-1]
	}
	var last retry
	if len(happen) > 0 {
		last = happen[len(happen)-1]
	}
	handled := topology.Duration(handling)
	a.printf("a message that always fails is handled %d times, and has failed for good after %s at the latest (%s without jitter)\n", len(happen)+1, exact(last.Latest+handled), exact(last.At+handled))
	return nil
}

// exact writes a delay to the millisecond.
func exact(d topology.Duration) string {
	return topology.Duration(time.Duration(d).Round(time.Millisecond)).String()
}
