package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func (a *app) manifestCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "manifest", Short: "Show, check and compare manifests",
		Example: "  redeliver manifest show orders.json\n  redeliver manifest validate manifests/*.json\n  redeliver manifest diff before.json after.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no command %q of manifest", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.showCommand(), a.validateCommand(), a.diffCommand())
	return cmd
}

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show MANIFEST...", Short: "Show what a manifest says",
		Long:    "Show prints a manifest for people: queues with their arguments, exchanges, bindings and the retry policy. As JSON it is the manifest itself.",
		Example: "  redeliver manifest show orders.json",
		Args:    manifestArgs(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			manifests, err := a.manifests(cmd.Context(), args)
			if err != nil {
				return err
			}
			if a.json() {
				if len(manifests) == 1 {
					return a.printJSON(manifests[0])
				}
				return a.printJSON(manifests)
			}
			for i, m := range manifests {
				if i > 0 {
					a.printf("\n")
				}
				a.printManifest(m)
			}
			return nil
		},
	}
}

func (a *app) printManifest(m topology.Manifest) {
	a.printf("topic %s %s, convention %s: %s\n", a.styled(bold, shown(m.Topic)), place(m.VHost), m.Convention, policyOf(m))
	about := table{indent: "  "}
	line := func(name, text string) { about.add(cell{name, dim}, cell{text: shown(text)}) }
	if len(m.Retry.Delays) > 0 {
		line("delays", joined(m.Retry.Delays))
	}
	if m.Retry.DelayMin > 0 {
		line("delays", fmt.Sprintf("%s per retry, at most %s", m.Retry.DelayMin, m.Retry.DelayMax))
	}
	if m.Retry.HoldFrom > 0 {
		line("hold from", m.Retry.HoldFrom.String())
	}
	if m.Retry.GiveUpAfter > 0 {
		line("give up after", m.Retry.GiveUpAfter.String())
	}
	line("failed for good", map[topology.FinalMode]string{topology.FinalBroker: "rejected", topology.FinalPublish: "published to the dead-letter queue"}[m.Final])
	line("unreadable", map[topology.ParkMode]string{topology.ParkReject: "rejected", topology.ParkPublish: "published to the parked queue"}[m.Park])
	line("fingerprint", m.Fingerprint)
	a.printf("%s\n", about.render(a))
	t := table{indent: "  ", head: []string{"KIND", "NAME", "WHAT"}}
	if m.Broker == topology.BrokerSQS {
		for _, q := range queuesOf(m) {
			t.add(cells(roleName(q.Role), shown(q.Name), shown(attributesText(q.queue)))...)
		}
		a.printf("%s", t.render(a))
		return
	}
	objects := m.Objects()
	for _, e := range objects.Exchanges {
		t.add(cells("exchange", shown(e.Name), e.Type)...)
	}
	for _, q := range objects.Queues {
		what := []string{string(q.Type)}
		for _, key := range slices.Sorted(maps.Keys(q.Arguments)) {
			if key != topology.ArgQueueType {
				what = append(what, key+"="+topology.CanonicalJSON(q.Arguments[key]))
			}
		}
		t.add(cells(roleName(q.Role), shown(q.Name), shown(strings.Join(what, " ")))...)
	}
	for _, b := range objects.Bindings {
		t.add(cells("binding", shown(b.Source+" -> "+b.Destination), shown(b.RoutingKey))...)
	}
	a.printf("%s", t.render(a))
}

// place says where a topic is: in a vhost, which brokers other than RabbitMQ do not have.
func place(vhost string) string {
	if vhost == "" {
		return "on Amazon SQS"
	}
	return "in vhost " + shown(vhost)
}

// attributesText is a queue of SQS on one line.
func attributesText(q topology.ManifestQueue) string {
	out := []string{string(q.Type), q.ARN}
	for _, name := range slices.Sorted(maps.Keys(q.Attributes)) {
		out = append(out, name+"="+q.Attributes[name])
	}
	return strings.Join(out, " ")
}

func joined(delays []topology.Duration) string {
	texts := make([]string, len(delays))
	for i, d := range delays {
		texts[i] = d.String()
	}
	return strings.Join(texts, ", ")
}

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "validate MANIFEST...", Short: "Check that manifests are what a topic resource writes",
		Long: `Validate reads manifests as a consumer does: one of a newer version, with a field that is unknown, missing or edited by hand is refused,
with the name of the field. The exit code is 1 where any is, and 2 where a file cannot be read.`,
		Example: "  redeliver manifest validate manifests/*.json",
		Args:    manifestArgs(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			type verdict struct {
				File  string `json:"file"`
				Topic string `json:"topic,omitempty"`
				Valid bool   `json:"valid"`
				Error string `json:"error,omitempty"`
			}
			verdicts := make([]verdict, len(args))
			valid := true
			for i, name := range args {
				text, err := a.readFile(cmd.Context(), name)
				if err != nil {
					return err
				}
				m, err := topology.DecodeManifest(text)
				verdicts[i] = verdict{File: fileName(name), Topic: m.Topic, Valid: err == nil}
				if err != nil {
					verdicts[i].Error = err.Error()
					valid = false
				}
			}
			if a.json() {
				if err := a.printJSON(verdicts); err != nil {
					return err
				}
			} else {
				for _, v := range verdicts {
					if v.Valid {
						a.printf("%s: %s, topic %s\n", shown(v.File), a.styled(good, "valid"), shown(v.Topic))
					} else {
						a.printf("%s: %s: %s\n", shown(v.File), a.styled(bad, "invalid"), shown(v.Error))
					}
				}
			}
			if !valid {
				return errFindings
			}
			return nil
		},
	}
}

func (a *app) diffCommand() *cobra.Command {
	return &cobra.Command{
		Use: "diff OLD NEW", Short: "Compare two manifests",
		Long: `Diff says in what two manifests differ: objects that are only in one, arguments of queues that are in both with what the change means for
messages, and everything else field by field. The exit code is 1 where they differ.`,
		Example: "  redeliver manifest diff before.json after.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("%d arguments are given and two manifests are expected", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			manifests, err := a.manifests(cmd.Context(), args)
			if err != nil {
				return err
			}
			changes := changesBetween(manifests[0], manifests[1])
			if a.json() {
				if err := a.printJSON(changes); err != nil {
					return err
				}
			} else {
				a.printChanges(changes)
			}
			if len(changes) > 0 {
				return errFindings
			}
			return nil
		},
	}
}

// change is one thing in which two manifests differ. Old or New is empty where only the other has it.
type change struct {
	What string `json:"what"`
	Old  string `json:"old"`
	New  string `json:"new"`
	// Meaning says what a change of an argument means for messages.
	Meaning string `json:"meaning,omitempty"`
}

func changesBetween(before, after topology.Manifest) []change {
	out := []change{}
	if before.Broker == topology.BrokerRabbitMQ && after.Broker == topology.BrokerRabbitMQ {
		out = append(out, objectChanges(before.Objects(), after.Objects())...)
	}
	old, changed := fields(before), fields(after)
	for _, key := range slices.Sorted(maps.Keys(union(old, changed))) {
		if old[key] != changed[key] {
			out = append(out, change{What: key, Old: old[key], New: changed[key]})
		}
	}
	return out
}

func objectChanges(before, after topology.Objects) []change {
	var out []change
	compare := func(kind string, old, changed map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(union(old, changed))) {
			what := kind + " " + name
			if _, both := changed[name]; !both {
				out = append(out, change{What: what, Old: "there"})
			} else if _, both := old[name]; !both {
				out = append(out, change{What: what, New: "there"})
			} else if old[name] != changed[name] {
				out = append(out, change{What: what, Old: old[name], New: changed[name]})
			}
		}
	}
	exchanges := func(o topology.Objects) map[string]string {
		all := map[string]string{}
		for _, e := range o.Exchanges {
			all[e.Name] = e.Type
		}
		return all
	}
	bindings := func(o topology.Objects) map[string]string {
		all := map[string]string{}
		for _, b := range o.Bindings {
			all[strings.TrimSpace(fmt.Sprintf("%s -> %s (%s) %s", b.Source, b.Destination, b.RoutingKey, argumentsText(b.Arguments)))] = ""
		}
		return all
	}
	queues := func(o topology.Objects) (map[string]string, map[string]topology.Queue) {
		all, byName := map[string]string{}, map[string]topology.Queue{}
		for _, q := range o.Queues {
			all[q.Name], byName[q.Name] = "", q
		}
		return all, byName
	}
	compare("exchange", exchanges(before), exchanges(after))
	oldNames, old := queues(before)
	newNames, changed := queues(after)
	compare("queue", oldNames, newNames)
	for _, name := range slices.Sorted(maps.Keys(old)) {
		q, both := changed[name]
		if !both {
			continue
		}
		was := old[name]
		for _, d := range topology.DiffQueue(was, topology.LiveQueue{Name: name, Type: q.Type, Durable: true, Arguments: q.Arguments}) {
			out = append(out, change{What: "queue " + name + ": " + d.Key, Old: d.Want, New: d.Live, Meaning: d.Explanation})
		}
	}
	compare("binding", bindings(before), bindings(after))
	return out
}

func argumentsText(args topology.Arguments) string {
	if len(args) == 0 {
		return ""
	}
	return topology.CanonicalJSON(args)
}

// fields are the values of a manifest by their paths, but for what objects say.
func fields(m topology.Manifest) map[string]string {
	m.HoldQueues, m.Bindings, m.WorkQueue.Arguments = nil, nil, nil
	for _, target := range []**topology.ManifestTarget{&m.DeadLetter, &m.Parked} {
		if *target != nil {
			made := **target
			made.Arguments = nil
			*target = &made
		}
	}
	if m.Sequence != nil {
		made := *m.Sequence
		made.Shards = nil
		m.Sequence = &made
	}
	m.Fingerprint = ""
	var tree map[string]any
	if json.Unmarshal(m.Encode(), &tree) != nil {
		return nil // a manifest encodes as an object
	}
	out := map[string]string{}
	flatten("", tree, out)
	return out
}

func flatten(path string, value any, out map[string]string) {
	tree, ok := value.(map[string]any)
	if !ok {
		text, _ := json.Marshal(value)
		out[path] = string(text)
		return
	}
	for key, inner := range tree {
		at := key
		if path != "" {
			at = path + "." + key
		}
		flatten(at, inner, out)
	}
}

func union(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func (a *app) printChanges(changes []change) {
	if len(changes) == 0 {
		a.printf("the manifests say the same\n")
		return
	}
	for _, c := range changes {
		switch {
		case c.Old == "":
			text := c.What
			if c.New != "there" {
				text += " = " + c.New
			}
			a.printf("%s\n", a.styled(good, "+ "+shown(text)))
		case c.New == "":
			text := c.What
			if c.Old != "there" {
				text += " = " + c.Old
			}
			a.printf("%s\n", a.styled(bad, "- "+shown(text)))
		default:
			a.printf("%s\n", a.styled(warned, "~ "+shown(c.What+": "+c.Old+" -> "+c.New)))
		}
		if c.Meaning != "" {
			a.printf("    %s\n", shown(c.Meaning))
		}
	}
}
