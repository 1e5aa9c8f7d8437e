package command

import (
	"context"
	"fmt"
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
	m, err := a.manifest(ctx, name)
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
			"old the oldest is where the broker tells. The counts are the broker's statistics, up to 10 seconds late; those of Amazon SQS are approximate.\n" +
			"What is not known is shown as ?, with the reason on standard error, and as \"unseen\" in JSON. The exit code is 1 where a queue is\n" +
			"missing, and 0 however many messages there are: for redeliver status they are findings.",
		Example: "  redeliver " + s.use + " list manifests/*.json",
		Args:    manifestArgs(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			manifests, err := a.manifests(cmd.Context(), args)
			if err != nil {
				return err
			}
			rows := []listRow{}
			var notes []string
			missing := false
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
						missing = missing || q.Missing
					}
				}
			}
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
	t := table{dense: true, head: []string{"VHOST", "TOPIC", "QUEUE", "MESSAGES", "HANDED OUT", "CONSUMERS", "OLDEST"}, right: map[int]bool{3: true, 4: true, 5: true}}
	for _, r := range rows {
		if r.Missing {
			t.add(cell{text: shown(r.VHost)}, cell{text: shown(r.Topic)}, cell{text: shown(r.Name)}, cell{"missing", bad})
			continue
		}
		held := cell{text: number(r.Messages)}
		if r.Messages != nil && *r.Messages > 0 {
			held.style = bad
		}
		consumers := cell{}
		if r.VHost != "" { // SQS knows of none
			consumers.text = number(r.Consumers)
		}
		t.add(cell{text: shown(r.VHost)}, cell{text: shown(r.Topic)}, cell{text: shown(r.Name)}, held, cell{text: number(r.Unacknowledged)}, consumers, cell{text: age(r.oldest)})
	}
	a.printf("%s%s", t.render(a), a.notes(notes))
	for _, r := range rows {
		if r.Unseen != "" {
			a.say("not seen: %s", shown(r.Unseen))
		}
	}
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

// purgeView is what was purged as JSON.
type purgeView struct {
	VHost     string `json:"vhost"`
	Topic     string `json:"topic"`
	Queue     string `json:"queue"`
	Purged    int    `json:"purged"`
	HandedOut *int64 `json:"handed_out,omitempty"`
}

func (a *app) purgeCommand(s setAside) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "purge MANIFEST", Short: "Discard all messages of the " + s.noun,
		Long: "Purge discards all messages that are ready in the " + s.noun + ". They are gone for good. It says how many they are and asks, unless --yes\n" +
			"is given; messages that a consumer has been handed stay, and are counted where the management API tells. Amazon SQS discards those too,\n" +
			"counts approximately, and purges a queue once in 60 seconds; it takes sqs:PurgeQueue, which the role operator of permissions has not.",
		Example: "  redeliver " + s.use + " purge orders.json",
		Args:    manifestArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, q, b, err := a.queue(cmd.Context(), s, args[0])
			if err != nil {
				return err
			}
			handedOut, err := b.HandedOut(cmd.Context(), m, q)
			if err != nil {
				return err
			}
			n, err := b.Ready(cmd.Context(), m, q)
			if err != nil {
				return err
			}
			stay := ""
			if m.Broker == topology.BrokerRabbitMQ && handedOut != nil && *handedOut > 0 { // SQS discards those too
				stay = fmt.Sprintf("; %s that somebody has been handed %s", messages(*handedOut), plural(*handedOut, "stays", "stay"))
			}
			some := n > 0 || m.Broker == topology.BrokerSQS // whose counts are approximate
			if some && !yes {
				ok, err := a.confirm(cmd.Context(), fmt.Sprintf("Discard %s of queue %q (%s of topic %q %s) for good%s?", holds(m, n), q.Name, s.noun, m.Topic, place(m.VHost), stay),
					fmt.Sprintf("queue %q has %s; say --yes to discard %s%s", q.Name, holds(m, n), plural(n, "it", "them"), stay))
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
				return a.printJSON(purgeView{VHost: m.VHost, Topic: m.Topic, Queue: q.Name, Purged: n, HandedOut: handedOut})
			}
			a.printf("queue %s: %s discarded%s\n", shown(q.Name), holds(m, n), stay)
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return a.connects(cmd)
}
