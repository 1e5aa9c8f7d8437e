package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/internal/verify"
)

func (a *app) verifyCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "verify MANIFEST...", Short: "Hold manifests against the live broker",
		Long: `Verify holds every object that a manifest needs (queues, exchanges, bindings) against the live broker: what is missing, which argument
drifted and what that means for messages, what a policy overrides, hold queues that somebody consumes, and messages that wait for a
dead-letter target that is not there. Of a topic on Amazon SQS: queues that are missing, attributes that drifted, dead ends that keep
messages out or delete them early.

It changes nothing and needs the user tag "management" and any permission in the vhost; on Amazon SQS, sqs:GetQueueAttributes. What the user may not see is unknown, never
missing, and is listed with the reason. The exit code is 0 where everything was seen to be in order and 1 where not, so that it can
be a step in CI or gate a deployment.`,
		Example: `  terraform output -raw orders_manifest | redeliver verify -
  redeliver verify --output json manifests/*.json`,
		Args: manifestArgs(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			manifests, err := a.manifests(cmd.Context(), args)
			if err != nil {
				return err
			}
			reports := make([]verify.Report, len(manifests))
			for i, m := range manifests {
				b, err := a.backend(cmd.Context(), m)
				if err != nil {
					return err
				}
				if reports[i], err = b.Verify(cmd.Context(), m); err != nil {
					return fmt.Errorf("verifying topic %q %s: %w", m.Topic, place(m.VHost), err)
				}
			}
			return a.printReports(reports, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list what is in order too")
	return a.connects(cmd)
}

func (a *app) printReports(reports []verify.Report, all bool) error {
	inOrder := true
	views := make([]reportView, len(reports))
	for i, r := range reports {
		inOrder = inOrder && r.InOrder()
		views[i] = viewOfReport(r)
	}
	if a.json() {
		if err := a.printJSON(views); err != nil {
			return err
		}
	} else {
		var notes []string
		for i, r := range reports {
			if i > 0 {
				a.printf("\n")
			}
			a.printReport(r, all)
			notes = append(notes, r.Notes...)
		}
		a.printf("%s", a.notes(notes))
	}
	if !inOrder {
		return errFindings
	}
	return nil
}

var statusStyles = map[verify.Status]style{verify.Present: good, verify.Missing: bad, verify.Drifted: bad, verify.Unknown: warned}

// printReport prints what is not in order, and what it means.
func (a *app) printReport(r verify.Report, all bool) {
	counts := map[verify.Status]int{}
	t := table{indent: "  "}
	var lines []string // of each row, what is said below it
	for _, o := range r.Objects {
		counts[o.Status]++
		if o.Status == verify.Present && !all {
			continue
		}
		t.add(cell{string(o.Status), statusStyles[o.Status]}, cell{text: string(o.Kind)}, cell{text: shown(o.Name)}, cell{roleName(o.Role), dim})
		lines = append(lines, details(o))
	}
	verdict := cell{"in order", good}
	if !r.InOrder() {
		verdict = cell{"not in order", bad}
	}
	a.printf("topic %s %s: %s (%s)\n", a.styled(bold, shown(r.Topic)), place(r.VHost), a.styled(verdict.style, verdict.text), tally(counts))
	for i, line := range strings.SplitAfter(t.render(a), "\n") {
		a.printf("%s", line)
		if i < len(lines) {
			a.printf("%s", lines[i])
		}
	}
	for _, text := range r.Unseen {
		a.printf("  %s %s\n", a.styled(warned, "not seen:"), shown(text))
	}
}

// tally is how many objects are how.
func tally(counts map[verify.Status]int) string {
	var parts []string
	for _, s := range []verify.Status{verify.Present, verify.Missing, verify.Drifted, verify.Unknown} {
		if n := counts[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// details are the lines that say what is wrong with an object.
func details(o verify.Object) string {
	var b strings.Builder
	for _, d := range o.Differences {
		if d.Meaning == topology.EqualInEffect {
			continue
		}
		fmt.Fprintf(&b, "      %s\n", shown(d.String()))
	}
	for _, e := range o.OverriddenBy {
		fmt.Fprintf(&b, "      %s\n", shown(e.String()))
	}
	return b.String()
}

// roleName is a role in words.
func roleName(r topology.Role) string {
	switch r {
	case topology.RoleWork:
		return "work queue"
	case topology.RoleHold:
		return "hold queue"
	case topology.RoleDeadLetter:
		return "dead-letter queue"
	case topology.RoleParked:
		return "parked queue"
	}
	return ""
}

// reportView is a report as JSON.
type reportView struct {
	VHost   string       `json:"vhost,omitempty"`
	Topic   string       `json:"topic"`
	InOrder bool         `json:"in_order"`
	Objects []objectView `json:"objects"`
	Unseen  []string     `json:"unseen"`
	Notes   []string     `json:"notes"`
}

type objectView struct {
	Kind         verify.Kind      `json:"kind"`
	Name         string           `json:"name"`
	Role         topology.Role    `json:"role,omitempty"`
	Status       verify.Status    `json:"status"`
	Differences  []differenceView `json:"differences"`
	OverriddenBy []effectView     `json:"overridden_by"`
	Consumers    *int             `json:"consumers,omitempty"`
	Messages     *int64           `json:"messages,omitempty"`
}

type differenceView struct {
	Key         string           `json:"key"`
	Want        string           `json:"want"`
	Live        string           `json:"live"`
	Meaning     topology.Meaning `json:"meaning"`
	Explanation string           `json:"explanation"`
}

type effectView struct {
	Policy      string `json:"policy"`
	Operator    bool   `json:"operator"` // it is an operator policy
	Key         string `json:"key"`
	Want        string `json:"want"`
	Applies     string `json:"applies"`
	Explanation string `json:"explanation"`
}

func viewOfReport(r verify.Report) reportView {
	view := reportView{VHost: r.VHost, Topic: r.Topic, InOrder: r.InOrder(), Objects: make([]objectView, len(r.Objects)), Unseen: append([]string{}, r.Unseen...), Notes: append([]string{}, r.Notes...)}
	for i, o := range r.Objects {
		v := objectView{Kind: o.Kind, Name: o.Name, Role: o.Role, Status: o.Status, Differences: viewsOf(o.Differences), OverriddenBy: []effectView{}, Consumers: o.Consumers}
		if o.Messages != nil {
			v.Messages = &o.Messages.Total
		}
		for _, e := range o.OverriddenBy {
			v.OverriddenBy = append(v.OverriddenBy, effectView{e.Policy.Name, e.Policy.Operator, e.Key, e.Argument, e.Effective, e.String()})
		}
		view.Objects[i] = v
	}
	return view
}

func viewsOf(differences []topology.Difference) []differenceView {
	out := make([]differenceView, len(differences))
	for i, d := range differences {
		out[i] = differenceView(d)
	}
	return out
}
