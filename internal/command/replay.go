package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/internal/transfer"
)

// moveFlags are those that replay and move have.
type moveFlags struct {
	filters filterFlags
	o       moveOptions
}

func (f *moveFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.o.Limit, "limit", 0, "how many messages at most; 0 is all that are there when it begins")
	cmd.Flags().Float64Var(&f.o.Rate, "rate", 0, "how many messages in a second at most; 0 is no limit")
	cmd.Flags().BoolVar(&f.o.DryRun, "dry-run", false, "look at the messages, move none, and say how many would be")
	cmd.Flags().StringVar(&f.o.Exchange, "to-exchange", "", "publish them to this exchange, with the routing key that each had unless --routing-key says another")
	cmd.Flags().StringVar(&f.o.RoutingKey, "routing-key", "", "the routing key that goes with --to-exchange")
	addAcceptLoss(cmd, &f.o.AcceptLoss)
	f.filters.add(cmd)
}

const moveHelp = `A message leaves the queue when the broker has confirmed its copy and a queue has taken it, and not before: whatever is interrupted
when, nothing is lost, and the same command goes on where it ended. At most what was on its way may be there twice: it is counted as
doubtful. Messages that cannot be moved stay where they are and are counted. Messages that somebody has been handed are not looked at,
and are counted where the management API tells. The first Ctrl-C ends it in good order, a second one at once.

With --dry-run or a filter, messages are looked at and given back as inspect does: what the broker cannot promise of that is said below
the result, and where it could lose a message it is refused.

On Amazon SQS the replay of a whole dead-letter queue is the service's own message-move task, which Ctrl-C cancels; with a filter, a
limit, a rate or --to, and from a parked queue, each message is sent and, when SQS has taken it, deleted. There are no exchanges, and
--keep-count is impossible: SQS counts receives, and what arrives is a new message.

Exit codes: 0 all that were wanted were moved, 1 some were not, or are doubtful, or --where could not be evaluated on some, 2 it ended
before it had looked at all.`

func (a *app) replayCommand(s setAside) *cobra.Command {
	f := moveFlags{o: moveOptions{Replay: true}}
	cmd := &cobra.Command{
		Use: "replay MANIFEST", Short: "Move the messages of the " + s.noun + " back to their topic",
		Long: "Replay moves messages back to the topic's queue (a sequenced topic's shards: to the exchange that spreads messages over them), as if they had\n" +
			"never been tried: what counts their retries and their age begins again, unless --keep-count is given.\n\n" + moveHelp + "\n\n" + filterHelp,
		Example: fmt.Sprintf("  redeliver %[1]s replay orders.json --dry-run\n  redeliver %[1]s replay orders.json --limit 10\n"+
			"  redeliver %[1]s replay orders.json --reason delivery_limit --rate 50\n  redeliver %[1]s replay orders.json --where 'body.region == \"eu\"' --to orders-canary", s.use),
		Args: manifestArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.move(cmd, s, &f, args[0], "replayed") },
	}
	cmd.Flags().BoolVar(&f.o.KeepCount, "keep-count", false, "keep the count of retries and the age of each message")
	cmd.Flags().StringVar(&f.o.Queue, "to", "", "move them to this queue instead of the topic's own")
	f.add(cmd)
	return a.connects(cmd)
}

func (a *app) moveCommand(s setAside) *cobra.Command {
	var f moveFlags
	cmd := &cobra.Command{
		Use: "move MANIFEST", Short: "Move the messages of the " + s.noun + " to another queue or exchange",
		Long: "Move moves messages to the queue that --to names, or to an exchange. Their headers stay as they are, but for the broker's own of the old\n" +
			"delivery.\n\n" + moveHelp + "\n\n" + filterHelp,
		Example: fmt.Sprintf("  redeliver %[1]s move orders.json --to orders-to-look-at --older-than 7d", s.use),
		Args:    manifestArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.o.Queue == "" && f.o.Exchange == "" {
				return usagef("nothing says where to: give --to QUEUE or --to-exchange EXCHANGE")
			}
			return a.move(cmd, s, &f, args[0], "moved")
		},
	}
	cmd.Flags().StringVar(&f.o.Queue, "to", "", "the queue that they are moved to")
	f.add(cmd)
	return a.connects(cmd)
}

func (a *app) move(cmd *cobra.Command, s setAside, f *moveFlags, manifest, done string) error {
	switch o := f.o; {
	case o.Limit < 0, o.Rate < 0:
		return usagef("--limit and --rate are not negative; 0 is no limit")
	case o.Queue != "" && o.Exchange != "":
		return usagef("--to and --to-exchange say two targets: give one of them")
	case o.RoutingKey != "" && o.Exchange == "":
		return usagef("--routing-key goes with --to-exchange; a queue is named with --to")
	}
	m, q, b, err := a.queue(cmd.Context(), s, manifest)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(cmd.Context())
	defer end(nil)
	if f.o.Filter, err = f.filters.filter(ctx, end, m); err != nil {
		return err
	}
	if f.o.Queue == q.Name {
		return usagef("--to %q is the queue itself", q.Name)
	}
	handedOut, err := b.HandedOut(ctx, m, q)
	if err != nil {
		return err
	}
	p := a.newProgress(q.Name, f.o.Limit)
	f.o.Progress = p.tell
	var notes []string
	f.o.Note = func(text string) { notes = append(notes, text) }
	report, err := b.Move(ctx, m, q, f.o)
	p.end()
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		return err
	}
	if counted := report.Found > 0 || report.Left >= 0; err != nil && !counted { // it was refused before there was anything to report
		return fmt.Errorf("queue %q: %w", q.Name, err)
	}
	f.filters.sayMisfits(a)
	return a.printMove(m, q, f, moved{report, handedOut, done, notes, err})
}

// moved is what became of messages that were to be moved.
type moved struct {
	transfer.Report
	handedOut *int64
	done      string
	notes     []string
	err       error
}

// moveView is a report as JSON.
type moveView struct {
	VHost    string `json:"vhost"`
	Topic    string `json:"topic"`
	Queue    string `json:"queue"`
	DryRun   bool   `json:"dry_run,omitempty"`
	Found    int    `json:"found"`
	Moved    int    `json:"moved"`
	Skipped  int    `json:"skipped"`
	Failed   int    `json:"failed"`
	Doubtful int    `json:"doubtful"`
	Left     *int   `json:"left,omitempty"`
	// HandedOut is how many messages somebody had been handed when it began.
	HandedOut *int64        `json:"handed_out,omitempty"`
	Failures  []failureView `json:"failures"`
	Notes     []string      `json:"notes"`
	Error     string        `json:"error,omitempty"`
	misfitView
}

// failureView is a reason why messages failed or are doubtful.
type failureView struct {
	Error     string `json:"error"`
	MessageID string `json:"message_id"`
	Count     int    `json:"count"`
	Doubtful  bool   `json:"doubtful,omitempty"`
}

func (a *app) printMove(m topology.Manifest, q topology.ManifestQueue, f *moveFlags, r moved) error {
	dry := f.o.DryRun
	if dry {
		r.done = "would be " + r.done
	}
	if a.json() {
		v := moveView{
			VHost: m.VHost, Topic: m.Topic, Queue: q.Name, DryRun: dry,
			Found: r.Found, Moved: r.Moved, Skipped: r.Skipped, Failed: r.Failed, Doubtful: r.Doubtful, HandedOut: r.handedOut, Failures: []failureView{},
			Notes:      append([]string{}, r.notes...),
			misfitView: f.filters.misfitView(),
		}
		if r.Left >= 0 {
			v.Left = &r.Left
		}
		for _, f := range r.Failures {
			v.Failures = append(v.Failures, failureView{f.Err.Error(), f.MessageID, f.Count, f.Unknown})
		}
		if r.err != nil {
			v.Error = r.err.Error()
		}
		if err := a.printJSON(v); err != nil {
			return err
		}
	} else {
		a.printf("queue %s: %s\n", shown(q.Name), sumUp(r))
		for _, f := range r.Failures {
			kind, stay := "not moved:", plural(f.Count, "stays", "stay")
			if f.Unknown {
				kind, stay = "doubtful:", stay+" and may have been copied too"
			}
			a.printf("  %s %s %s, the first with id %q: %s\n", a.styled(bad, kind), messages(f.Count), stay, f.MessageID, shown(f.Err.Error()))
		}
		a.printf("%s", a.notes(r.notes))
	}
	elsewhere := 0
	if m.Broker == topology.BrokerRabbitMQ && r.Left > 0 { // SQS counts about
		wanted := r.Found
		if f.o.Limit > 0 {
			wanted = min(wanted, f.o.Limit)
		}
		elsewhere = wanted - r.Moved - r.Skipped - r.Failed - r.Doubtful
	}
	if elsewhere > 0 && r.err == nil {
		a.say("queue %s: %s %s not seen: somebody else had %s, another replay, inspect or a consumer; run it again",
			shown(q.Name), messages(elsewhere), plural(elsewhere, "was", "were"), plural(elsewhere, "it", "them"))
	}
	switch {
	case errors.Is(r.err, ErrInterrupted):
		return fmt.Errorf("queue %q: %w; nothing is lost, and the same command goes on with the rest", q.Name, r.err)
	case r.err != nil:
		return fmt.Errorf("queue %q: %w", q.Name, r.err)
	case r.Failed > 0, r.Doubtful > 0, elsewhere > 0, f.filters.misfits > 0:
		return errFindings
	}
	return nil
}

// sumUp says what became of the messages.
func sumUp(r moved) string {
	text := fmt.Sprintf("%s found, %s %s", count(r.Found), count(r.Moved), r.done)
	for _, part := range []struct {
		n    int
		what string
	}{{r.Skipped, "not wanted by the filter"}, {r.Failed, "failed and " + plural(r.Failed, "stays", "stay")}, {r.Doubtful, "doubtful, which may be there twice"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %s %s", count(part.n), part.what)
		}
	}
	if r.Left >= 0 {
		text += fmt.Sprintf(", %s left", count(r.Left))
	}
	if r.handedOut != nil && *r.handedOut > 0 {
		text += fmt.Sprintf("; %s more that somebody had been handed %s not looked at", count(*r.handedOut), plural(*r.handedOut, "was", "were"))
	}
	return text
}
