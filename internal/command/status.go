package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// defaultInterval is how often a watched status is read again. The broker's statistics are no younger than 5 s.
const defaultInterval = 2 * time.Second

func (a *app) statusCommand() *cobra.Command {
	var watch bool
	interval := defaultInterval
	cmd := &cobra.Command{
		Use: "status MANIFEST...", Short: "Show the ladder of topics: depths, rates, consumers, and what needs a human",
		Long: `Status draws each topic: its work queue, its hold queues by tier, the dead-letter queue and the parked queue, with their messages, rates
and consumers, the age of the oldest message where the broker tells (classic queues, of messages that have a timestamp), and what needs
a human. With --watch it is drawn again in place, on a terminal, until Ctrl-C; elsewhere each state is printed after the other.

Counts and rates are the broker's statistics, up to 10 seconds late. Amazon SQS tells approximate counts of what waits, is in flight
and is delayed, and nothing else.

The exit code is 1 where something needs a human or could not be seen, and 0 where nothing does; a watch that was ended has 0. Messages
in a dead-letter or parked queue need a human (redeliver dlq list counts them, and has 0).`,
		Example: `  redeliver status orders.json
  redeliver status --watch manifests/*.json`,
		Args: manifestArgs(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval < 100*time.Millisecond {
				return usagef("--interval %s is too short: give 100ms or more", interval)
			}
			manifests, err := a.manifests(cmd.Context(), args)
			if err != nil {
				return err
			}
			if watch {
				return a.watch(cmd.Context(), manifests, interval)
			}
			views, err := a.statuses(cmd.Context(), manifests)
			if err != nil {
				return err
			}
			if err := a.printStatuses(views); err != nil {
				return err
			}
			for _, v := range views {
				if len(v.Needs) > 0 || len(v.Unseen) > 0 {
					return errFindings
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "draw it again and again, in place")
	cmd.Flags().DurationVar(&interval, "interval", interval, "how often, with --watch")
	return a.connects(cmd)
}

// statusView is the state of a topic, and its JSON.
type statusView struct {
	VHost  string      `json:"vhost,omitempty"`
	Topic  string      `json:"topic"`
	Queues []queueView `json:"queues"`
	// Needs says what needs a human, a sentence each.
	Needs  []string `json:"needs_a_human"`
	Unseen []string `json:"unseen"`
	Notes  []string `json:"notes"`

	policy string // in words
}

type queueView struct {
	Role           topology.Role      `json:"role"`
	Name           string             `json:"name"`
	Delay          *topology.Duration `json:"delay,omitempty"`
	Missing        bool               `json:"missing,omitempty"`
	State          string             `json:"state,omitempty"`
	Messages       *int64             `json:"messages"`
	Ready          *int64             `json:"ready"`
	Unacknowledged *int64             `json:"unacknowledged"`
	Delayed        *int64             `json:"delayed,omitempty"`
	Consumers      *int               `json:"consumers"`
	In             *float64           `json:"in_per_second,omitempty"`
	Out            *float64           `json:"out_per_second,omitempty"`
	Acked          *float64           `json:"acked_per_second,omitempty"`
	// Unseen is why something of it is not known.
	Unseen        string `json:"unseen,omitempty"`
	OldestSeconds *int64 `json:"oldest_seconds,omitempty"`

	oldest time.Time
}

func viewOfQueue(q queueState) queueView {
	v := queueView{
		Role: q.Role, Name: q.Name, Missing: q.Missing, State: q.State, Messages: q.Messages, Ready: q.Ready, Unacknowledged: q.Unacknowledged, Delayed: q.Delayed,
		Consumers: q.Consumers, In: q.In, Out: q.Out, Acked: q.Acked, Unseen: q.Unseen, oldest: q.Oldest,
	}
	if q.Role == topology.RoleHold {
		delay := topology.Duration(q.Delay)
		v.Delay = &delay
	}
	if !q.Oldest.IsZero() {
		seconds := int64(time.Since(q.Oldest) / time.Second)
		v.OldestSeconds = &seconds
	}
	return v
}

func (a *app) statuses(ctx context.Context, manifests []topology.Manifest) ([]statusView, error) {
	views := make([]statusView, len(manifests))
	for i, m := range manifests {
		b, err := a.backend(ctx, m)
		if err != nil {
			return nil, err
		}
		snap, err := b.Snapshot(ctx, m)
		if err != nil {
			return nil, err
		}
		v := statusView{VHost: m.VHost, Topic: m.Topic, Needs: needs(snap), Unseen: []string{}, Notes: append([]string{}, snap.Notes...), policy: policyOf(m)}
		for _, q := range snap.Queues {
			v.Queues = append(v.Queues, viewOfQueue(q))
			if q.Unseen != "" {
				v.Unseen = append(v.Unseen, q.Unseen)
			}
		}
		views[i] = v
	}
	return views, nil
}

// policyOf is a retry policy in words.
func policyOf(m topology.Manifest) string {
	if m.Retry.MaxRetries == 0 {
		return "no retries"
	}
	return fmt.Sprintf("%s, at most %d %s", m.Retry.Strategy, m.Retry.MaxRetries, plural(m.Retry.MaxRetries, "retry", "retries"))
}

// nearlyMaxInFlight is how many messages of a queue on Amazon SQS are so many in flight that they are soon too many.
const nearlyMaxInFlight = topology.MaxInFlight * 9 / 10

// needs says what needs a human.
func needs(s snapshot) []string {
	out := []string{}
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, q := range s.Queues {
		held := q.Messages != nil && *q.Messages > 0
		switch {
		case q.Missing:
			say("%s %q is missing: redeliver verify says what else is, and terraform apply makes it", roleName(q.Role), q.Name)
			continue
		case q.State != "":
			say("queue %q is %s: its messages may be out of reach", q.Name, q.State)
		}
		switch q.Role {
		case topology.RoleWork:
			if held && q.Consumers != nil && *q.Consumers == 0 {
				say("work queue %q holds %s and nobody consumes it", q.Name, messages(*q.Messages))
			}
			if q.Delayed != nil && *q.Unacknowledged >= nearlyMaxInFlight {
				say("work queue %q has %s in flight, of %s that SQS allows: then it gives out no more until some are settled", q.Name, messages(*q.Unacknowledged), count(topology.MaxInFlight))
			}
		case topology.RoleHold:
			if q.Consumers != nil && *q.Consumers > 0 {
				say("hold queue %q is consumed: what is taken out of it does not wait its delay", q.Name)
			}
		case topology.RoleDeadLetter:
			if held {
				say("dead-letter queue %q holds %s: redeliver dlq inspect shows them", q.Name, messages(*q.Messages))
			}
		case topology.RoleParked:
			if held {
				say("parked queue %q holds %s that nobody could read: redeliver parked inspect shows them", q.Name, messages(*q.Messages))
			}
		}
		if n := waiting(q); n > 0 && q.Role != topology.RoleDeadLetter && q.Role != topology.RoleParked {
			say("%s of queue %q %s to be dead-lettered: the target may be missing, which redeliver verify says", messages(n), q.Name, plural(n, "waits", "wait"))
		}
	}
	return out
}

// waiting is how many messages are neither ready nor handed out.
func waiting(q queueState) int64 {
	if q.Messages == nil || q.Ready == nil || q.Unacknowledged == nil {
		return 0
	}
	n := *q.Messages - *q.Ready - *q.Unacknowledged
	if q.Delayed != nil {
		n -= *q.Delayed
	}
	return max(0, n)
}

func (a *app) printStatuses(views []statusView) error {
	if a.json() {
		return a.printJSON(views)
	}
	a.printf("%s", a.drawStatuses(views))
	return nil
}
