package command

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func (a *app) permissionsCommand() *cobra.Command {
	var role, user string
	roles := make([]string, len(topology.AccessRoles()))
	for i, r := range topology.AccessRoles() {
		roles[i] = string(r)
	}
	cmd := &cobra.Command{
		Use: "permissions --role ROLE MANIFEST...", Short: "Say the least permissions that a role needs on topics",
		Long: `Permissions computes the three regular expressions of RabbitMQ's permissions, anchored and escaped, for who consumes a topic, publishes
to it, or operates it, and the command that grants them; of a topic on Amazon SQS, the IAM policy. It asks no broker.`,
		Example: `  redeliver permissions --role consumer orders.json
  redeliver permissions --role operator --user oncall orders.json`,
		Args: manifestArgs(1, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(roles, role) {
				return usagef("--role %q is none of %s", role, strings.Join(roles, ", "))
			}
			manifests, err := a.manifests(cmd.Context(), args)
			if err != nil {
				return err
			}
			views := make([]permissionView, len(manifests))
			for i, m := range manifests {
				if views[i], err = permissionsOf(m, role); err != nil {
					return err
				}
			}
			if a.json() {
				return a.printJSON(views)
			}
			for i, v := range views {
				if i > 0 {
					a.printf("\n")
				}
				a.printPermissions(v, user)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&role, "role", "", strings.Join(roles, ", "))
	cmd.Flags().StringVar(&user, "user", "USER", "the user's name in the command that is printed")
	_ = cmd.MarkFlagRequired("role")
	_ = cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(roles, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// permissionView has the patterns of RabbitMQ, or the IAM policy of Amazon SQS.
type permissionView struct {
	VHost     string          `json:"vhost,omitempty"`
	Topic     string          `json:"topic"`
	Role      string          `json:"role"`
	Configure string          `json:"configure,omitempty"`
	Write     string          `json:"write,omitempty"`
	Read      string          `json:"read,omitempty"`
	Policy    json.RawMessage `json:"policy,omitempty"`
	Notes     []string        `json:"notes"`
}

func permissionsOf(m topology.Manifest, role string) (permissionView, error) {
	v := permissionView{VHost: m.VHost, Topic: m.Topic, Role: role, Notes: []string{}}
	if m.Broker == topology.BrokerSQS {
		policy, notes, err := topology.IAMPolicy(m, topology.AccessRole(role))
		v.Policy, v.Notes = json.RawMessage(policy), append(v.Notes, notes...)
		return v, err
	}
	set, err := topology.Permissions(m, topology.AccessRole(role))
	v.Configure, v.Write, v.Read, v.Notes = set.Configure, set.Write, set.Read, append(v.Notes, set.Notes...)
	return v, err
}

func (a *app) printPermissions(v permissionView, user string) {
	if v.Policy != nil {
		a.printf("%s\n", v.Policy)
		for _, note := range v.Notes { // what is printed is a policy, which has no place for them
			a.say("note: %s", note)
		}
		return
	}
	a.printf("%s of topic %s %s\n", v.Role, a.styled(bold, shown(v.Topic)), place(v.VHost))
	t := table{indent: "  "}
	for _, may := range [][2]string{{"configure", v.Configure}, {"write", v.Write}, {"read", v.Read}} {
		t.add(cell{may[0], dim}, cell{text: may[1]})
	}
	a.printf("%s\n  rabbitmqctl set_permissions -p %s %s %s %s %s\n", t.render(a), shellQuote(v.VHost), shellQuote(user), shellQuote(v.Configure), shellQuote(v.Write), shellQuote(v.Read))
	for _, note := range v.Notes {
		a.printf("  %s %s\n", a.styled(warned, "note:"), shown(note))
	}
}

// shellQuote writes a word so that a shell reads it as it is.
func shellQuote(text string) string {
	special := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-/", r)
	}
	if text != "" && strings.IndexFunc(text, special) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
