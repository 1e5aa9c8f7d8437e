package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/spf13/cobra"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// importFlags say what import-config looks for.
type importFlags struct {
	vhost, group, prefix string
	sqs                  bool
	conventions          []string
}

func (a *app) importCommand() *cobra.Command {
	var f importFlags
	known := make([]string, len(topology.Conventions()))
	for i, c := range topology.Conventions() {
		known[i] = string(c)
	}
	cmd := &cobra.Command{
		Use: "import-config {--vhost VHOST | --sqs}", Short: "Write Terraform configuration for the topics that a live broker has",
		Long: `Import-config reads a vhost of RabbitMQ, or the queues of an account in a region of Amazon SQS, recognises topics by the names and
arguments that conventions give their queues, and writes Terraform configuration with import blocks, whose plan imports everything and
changes nothing. It changes nothing on the broker.

A queue that stands alone is no topic: nobody can tell. How often consumers retry no broker knows: the retry policy that is written is the
first that fits what is there, and is worth a look. What the configuration does not have is said as a comment at its end and, where the
configuration goes elsewhere than to a terminal, on standard error too.

On Amazon SQS a topic is a queue that has a dead-letter or a parked queue beside it as the convention names them, or a redrive policy, whose
target is the topic's dead-letter queue whatever its name. A queue is left out whose attributes are none that the provider's resources have,
such as a dead-letter queue to which every queue may redrive: its import would change it. The redrive policy tells how often a message is
retried, and nothing tells the delays: one is written that fits. Conventions that give the same names cannot be told apart: of several it is
the first, unless --convention says which. Tags are written with the resources: take out those that the provider's default_tags give.

The exit code is 1 where no topic was recognised.`,
		Example: `  redeliver import-config --vhost / >imported.tf
  redeliver import-config --vhost shop --convention shove
  redeliver import-config --sqs --region eu-west-1 --name-prefix shop- >imported.tf`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch named := cmd.Flags().Changed("vhost"); {
			case named == f.sqs:
				return usagef("say what to read, and one of them: a vhost of RabbitMQ with --vhost VHOST, or Amazon SQS with --sqs")
			case named && f.prefix != "":
				return usagef("--name-prefix is for Amazon SQS, which has no vhosts")
			case named:
				return a.importRabbitMQ(cmd.Context(), f)
			}
			return a.importSQS(cmd.Context(), f)
		},
	}
	cmd.Flags().StringVar(&f.vhost, "vhost", "", "the virtual host of RabbitMQ")
	cmd.Flags().BoolVar(&f.sqs, "sqs", false, "read the queues of Amazon SQS")
	cmd.Flags().StringVar(&f.prefix, "name-prefix", "", "on Amazon SQS, only queues whose names start so, and where they redrive to")
	cmd.Flags().StringSliceVar(&f.conventions, "convention", nil, "only topics of this convention: "+strings.Join(known, ", ")+" (default all)")
	cmd.Flags().StringVar(&f.group, "consumer-group", "", "the consumer group, under a convention that has groups")
	_ = cmd.RegisterFlagCompletionFunc("convention", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
	a.connects(cmd)
	cmd.Flags().Lookup("region").Usage = "the region of Amazon SQS (default: the environment's or the profile's); credentials come from where the AWS SDK looks for them"
	return cmd
}

// chosen are the conventions that are looked for, of those that the broker's names can have.
func (f importFlags) chosen(possible []topology.Convention) ([]topology.Convention, error) {
	if len(f.conventions) == 0 {
		return possible, nil
	}
	var chosen []topology.Convention
	for _, name := range f.conventions {
		c, err := topology.ParseConvention(name)
		if err != nil {
			return nil, usagef("--convention: %w", err)
		}
		if !slices.Contains(possible, c) {
			return nil, usagef("--convention: names on SQS have no dots, and those of convention %q do", c)
		}
		chosen = append(chosen, c)
	}
	return chosen, nil
}

func (a *app) importRabbitMQ(ctx context.Context, f importFlags) error {
	chosen, err := f.chosen(topology.Conventions())
	if err != nil {
		return err
	}
	b, err := a.rabbitMQ(ctx)
	if err != nil {
		return err
	}
	v, err := b.vhost(ctx, f.vhost)
	if err != nil {
		return err
	}
	w := &configWriter{v: v, configFile: newConfigFile()}
	topics := []string{}
	for _, r := range v.topics(chosen, f.group) {
		t, err := v.imported(ctx, r)
		if err != nil {
			return err
		}
		w.topic(t)
		topics = append(topics, r.Topic)
	}
	return a.printConfig(w.configFile, topics, fmt.Sprintf("vhost %q", v.name), map[string]any{"vhost": v.name})
}

// printConfig prints the configuration of topics. where says for people, and place for programs, where those are.
func (a *app) printConfig(f *configFile, topics []string, where string, place map[string]any) error {
	config := string(hclwrite.Format(f.file.Bytes()))
	if a.json() {
		place["topics"], place["config"], place["notes"] = topics, config, append([]string{}, f.notes...)
		if err := a.printJSON(place); err != nil {
			return err
		}
	} else {
		a.printf("%s", config)
		for i, note := range f.notes {
			if i == 0 {
				a.printf("\n")
			}
			a.printf("# %s\n", shown(note))
			if !isTerminal(a.std.Out) {
				a.say("redeliver: %s", shown(note))
			}
		}
	}
	if len(topics) == 0 {
		a.say("redeliver: no topic was recognised in %s", where)
		return errFindings
	}
	a.say("%s in %s", counted(len(topics), "topic"), where)
	return nil
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", count(n), noun)
}
