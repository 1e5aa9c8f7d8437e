package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// setAside is one of the two queues that messages are set aside in.
type setAside struct {
	use, noun, short string
	role             topology.Role
	of               func(topology.Manifest) *topology.ManifestTarget
}

var (
	deadLetters = setAside{
		use: "dlq", noun: "dead-letter queue", short: "Look into dead-letter queues, replay, move and purge them", role: topology.RoleDeadLetter,
		of: func(m topology.Manifest) *topology.ManifestTarget { return m.DeadLetter },
	}
	parked = setAside{
		use: "parked", noun: "parked queue", short: "Look into parked queues, replay, move and purge them", role: topology.RoleParked,
		of: func(m topology.Manifest) *topology.ManifestTarget { return m.Parked },
	}
)

func (a *app) setAsideCommand(s setAside) *cobra.Command {
	cmd := &cobra.Command{
		Use: s.use, Short: s.short,
		Example: fmt.Sprintf("  redeliver %[1]s list manifests/*.json\n  redeliver %[1]s inspect orders.json\n  redeliver %[1]s replay orders.json --dry-run", s.use),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no command %q of %s", args[0], s.use)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.listCommand(s), a.inspectCommand(s), a.replayCommand(s), a.moveCommand(s), a.purgeCommand(s))
	return cmd
}

// queue is the queue of a manifest that a command is about, and the broker that has it.
func (a *app) queue(ctx context.Context, s setAside, name string) (topology.Manifest, topology.ManifestQueue, backend, error) {
	m, err := a.manifest(name)
	if err != nil {
		return m, topology.ManifestQueue{}, nil, err
	}
	target := s.of(m)
	if target == nil {
		return m, topology.ManifestQueue{}, nil, fmt.Errorf("topic %q has no %s: its manifest says so", m.Topic, s.noun)
	}
	b, err := a.backend(ctx, m)
	return m, target.ManifestQueue, b, err
}

func (a *app) listCommand(s setAside) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list MANIFEST...", Short: "List the " + s.noun + "s and how many messages they hold",
		Long: "List shows the " + s.noun + " of each topic: how many messages it holds, how many of them somebody has been handed, who consumes it, and how\n" +
			"old the oldest is where the broker tells. The counts are the broker's statistics, up to 10 seconds late; those of Amazon SQS are approximate.",
		Example: "  redeliver " + s.use + " list manifests/*.json",
		Args:    manifestArgs(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			manifests, err := a.manifests(args)
			if err != nil {
				return err
			}
			rows := []listRow{}
			var notes []string
			for _, m := range manifests {
				b, err := a.backend(cmd.Context(), m)
				if err != nil {
					return err
				}
				snap, err := b.Snapshot(cmd.Context(), m)
				if err != nil {
					return err
				}
				notes = append(notes, snap.Notes...)
				for _, q := range snap.Queues {
					if q.Role == s.role {
						rows = append(rows, listRow{VHost: m.VHost, Topic: m.Topic, queueView: viewOfQueue(q)})
					}
				}
			}
			missing := slices.ContainsFunc(rows, func(r listRow) bool { return r.Missing })
			if err := a.printList(rows, notes); err != nil {
				return err
			}
			if missing {
				return errFindings
			}
			return nil
		},
	}
	return a.connects(cmd)
}

type listRow struct {
	VHost string `json:"vhost,omitempty"`
	Topic string `json:"topic"`
	queueView
}

func (a *app) printList(rows []listRow, notes []string) error {
	if a.json() {
		return a.printJSON(rows)
	}
	t := table{head: []string{"VHOST", "TOPIC", "QUEUE", "MESSAGES", "HANDED OUT", "CONSUMERS", "OLDEST"}, right: map[int]bool{3: true, 4: true, 5: true}}
	for _, r := range rows {
		if r.Missing {
			t.add(cell{text: shown(cmp.Or(r.VHost, "(Amazon SQS)"))}, cell{text: shown(r.Topic)}, cell{text: shown(r.Name)}, cell{"missing", bad})
			continue
		}
		held := cell{text: number(r.Messages)}
		if r.Messages != nil && *r.Messages > 0 {
			held.style = bad
		}
		t.add(cell{text: shown(cmp.Or(r.VHost, "(Amazon SQS)"))}, cell{text: shown(r.Topic)}, cell{text: shown(r.Name)}, held, cell{text: number(r.Unacknowledged)}, cell{text: number(r.Consumers)}, cell{text: age(r.oldest)})
	}
	a.printf("%s%s", t.render(a), a.notes(notes))
	return nil
}

// number writes a count, or that it is not known.
func number[T int | int64](n *T) string {
	if n == nil {
		return "?"
	}
	return count(*n)
}

// age is how old something is; empty where that is not known.
func age(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return about(max(0, time.Since(since)))
}

// holds is how many messages a queue holds, as exactly as its broker says.
func holds(m topology.Manifest, n int) string {
	if m.Broker == topology.BrokerSQS {
		return "about " + messages(n)
	}
	return messages(n)
}

func (a *app) purgeCommand(s setAside) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "purge MANIFEST", Short: "Discard all messages of the " + s.noun,
		Long: "Purge discards all messages that are ready in the " + s.noun + ". They are gone for good. It says how many they are and asks, unless --yes\n" +
			"is given; messages that a consumer has been handed stay. Amazon SQS discards those too, counts approximately, and purges a queue once in\n" +
			"60 seconds; it takes sqs:PurgeQueue, which the role operator of permissions has not.",
		Example: "  redeliver " + s.use + " purge orders.json",
		Args:    manifestArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, q, b, err := a.queue(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			n, err := b.Ready(cmd.Context(), m, q)
			if err != nil {
				return err
			}
			some := n > 0 || m.Broker == topology.BrokerSQS // whose counts are approximate
			if some && !yes {
				ok, err := a.confirm(cmd.Context(), fmt.Sprintf("Discard %s of queue %q (%s of topic %q %s) for good?", holds(m, n), q.Name, s.noun, m.Topic, place(m.VHost)),
					fmt.Sprintf("queue %q has %s; say --yes to discard them", q.Name, holds(m, n)))
				if err != nil {
					return err
				}
				if !ok {
					a.say("Nothing was discarded.")
					return errFindings
				}
			}
			if some {
				if n, err = b.Purge(cmd.Context(), m, q); err != nil {
					return err
				}
			}
			if a.json() {
				return a.printJSON(map[string]any{"queue": q.Name, "vhost": m.VHost, "topic": m.Topic, "purged": n})
			}
			a.printf("queue %s: %s discarded\n", shown(q.Name), holds(m, n))
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return a.connects(cmd)
}
