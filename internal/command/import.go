package command

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/spf13/cobra"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func (a *app) importCommand() *cobra.Command {
	var vhost, group string
	var conventions []string
	known := make([]string, len(topology.Conventions()))
	for i, c := range topology.Conventions() {
		known[i] = string(c)
	}
	cmd := &cobra.Command{
		Use: "import-config --vhost VHOST", Short: "Write Terraform configuration for the topics that a live broker has",
		Long: `Import-config reads a vhost, recognises topics by the names and arguments that conventions give their queues, and writes Terraform
configuration with import blocks, whose plan imports everything and changes nothing. It changes nothing on the broker.

A queue that stands alone is no topic: nobody can tell. How often consumers retry no broker knows: the retry policy that is written is the
first that fits what is there, and is worth a look. What the configuration does not have is said as a comment at its end.

It is for RabbitMQ. Topics on Amazon SQS are listed by terraform query, which writes their configuration too.

The exit code is 1 where no topic was recognised.`,
		Example: `  redeliver import-config --vhost / >imported.tf
  redeliver import-config --vhost shop --convention shove`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen := topology.Conventions()
			if len(conventions) > 0 {
				chosen = nil
				for _, name := range conventions {
					c, err := topology.ParseConvention(name)
					if err != nil {
						return usagef("--convention: %w", err)
					}
					chosen = append(chosen, c)
				}
			}
			b, err := a.rabbitMQ(cmd.Context())
			if err != nil {
				return err
			}
			v, err := b.vhost(cmd.Context(), vhost)
			if err != nil {
				return err
			}
			w := &configWriter{v: v, file: hclwrite.NewEmptyFile(), labels: map[string]bool{}}
			topics := []string{}
			for _, r := range v.topics(chosen, group) {
				t, err := v.imported(cmd.Context(), r)
				if err != nil {
					return err
				}
				w.topic(t)
				topics = append(topics, r.Topic)
			}
			return a.printConfig(w, topics)
		},
	}
	cmd.Flags().StringVar(&vhost, "vhost", "", "the virtual host")
	cmd.Flags().StringSliceVar(&conventions, "convention", nil, "only topics of this convention: "+strings.Join(known, ", ")+" (default all)")
	cmd.Flags().StringVar(&group, "consumer-group", "", "the consumer group, under a convention that has groups")
	_ = cmd.MarkFlagRequired("vhost")
	_ = cmd.RegisterFlagCompletionFunc("convention", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
	return a.connectsRabbitMQ(cmd)
}

func (a *app) printConfig(w *configWriter, topics []string) error {
	config := string(hclwrite.Format(w.file.Bytes()))
	if a.json() {
		if err := a.printJSON(map[string]any{"vhost": w.v.name, "topics": topics, "config": config, "notes": append([]string{}, w.notes...)}); err != nil {
			return err
		}
	} else {
		a.printf("%s", config)
		for i, note := range w.notes {
			if i == 0 {
				a.printf("\n")
			}
			a.printf("# %s\n", shown(note))
		}
	}
	if len(topics) == 0 {
		a.say("redeliver: no topic was recognised in vhost %q", w.v.name)
		return errFindings
	}
	a.say("%s in vhost %q", counted(len(topics), "topic"), w.v.name)
	return nil
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", count(n), noun)
}
