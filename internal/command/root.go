package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes of every command.
const (
	// ExitFine: it was done, and there is nothing to see to.
	ExitFine = 0
	// ExitFindings: it was done, and something is not as it should be.
	ExitFindings = 1
	// ExitFailed: it could not be done, or not to the end.
	ExitFailed = 2
)

// ErrInterrupted is why a command ended that was told to.
var ErrInterrupted = errors.New("Ctrl-C, or a signal to end")

// errFindings ends a command that has printed what is not as it should be.
var errFindings = errors.New("findings")

// Run runs the command line and returns the exit code.
func Run(ctx context.Context, version string, args []string, std Streams) int {
	a := newApp(version, std)
	defer a.close()
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if lost := a.unwritten.err; lost != nil && (err == nil || errors.Is(err, errFindings)) {
		err = fmt.Errorf("the result cannot be written: %w", lost)
	}
	switch {
	case err == nil:
		return ExitFine
	case errors.Is(err, errFindings):
		return ExitFindings
	}
	a.sayError(cmd, err, args)
	return ExitFailed
}

// errorView is an error as JSON.
type errorView struct {
	Error    string `json:"error"`
	ExitCode int    `json:"exit_code"`
	// Help is the command that says what can be said instead.
	Help string `json:"help,omitempty"`
}

// sayError says why a command failed, as the last thing that is printed to standard error; one line where it is JSON.
func (a *app) sayError(cmd *cobra.Command, err error, args []string) {
	v := errorView{Error: err.Error(), ExitCode: ExitFailed}
	var usage *usageError
	if errors.As(err, &usage) || !a.understood {
		v.Help = cmd.CommandPath() + " --help"
	}
	if !a.understood && !a.json() { // what was read before the mistake does not say everything
		rest := &cobra.Command{FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}}
		rest.Flags().StringVarP(&a.output, "output", "o", a.output, "")
		rest.Flags().BoolP("help", "h", false, "")
		_ = rest.ParseFlags(args) // the mistake is being told of
	}
	if a.json() {
		enc := json.NewEncoder(a.err)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(v) // as the lines below
		return
	}
	a.say("redeliver: %s", v.Error)
	if v.Help != "" {
		a.say("See: %s", v.Help)
	}
}

// usageError is a command line that says nothing that can be done.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// Root is the command line, for its documentation.
func Root() *cobra.Command { return newApp("", Streams{}).root() }

const rootLong = `redeliver shows and repairs what stands behind a topic's retries: its work queue, hold queues, dead-letter
queue and parked queue. It reads the manifest that Terraform computes (terraform output -raw orders_manifest) and asks the live broker.

Exit codes: 0 fine, 1 findings (something is not as it should be), 2 it could not be done, and standard error says why. With --output json
its last line is then an object, {"error": TEXT, "exit_code": 2}, with "help": COMMAND where the command line is wrong.

Connections are configured by flags or by the provider's environment variables, REDELIVER_RABBITMQ_ENDPOINTS and so on; those for HTTP
headers, a proxy, timeouts, retries, tokens and the SASL mechanism have no flag. For Amazon SQS they are those of the AWS SDK: its
environment variables (AWS_PROFILE, AWS_ACCESS_KEY_ID and so on), its files, or the role of the machine; the region is the manifest's.
Secrets come from the environment, from files or from
a prompt, never from the command line. NO_COLOR turns colours off, which are used on terminals only.`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "redeliver", Short: "Look after topics, their retries and their dead letters", Long: rootLong,
		Example: `  terraform output -raw orders_manifest >orders.json
  redeliver verify orders.json
  redeliver status --watch orders.json
  redeliver dlq replay orders.json --dry-run`,
		SilenceErrors: true, SilenceUsage: true, DisableAutoGenTag: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(outputs, a.output) {
				return usagef("--output %q is neither of %s", a.output, strings.Join(outputs, ", "))
			}
			err := cmd.ValidateRequiredFlags()
			a.understood = err == nil
			return err
		},
	}
	root.SetIn(a.std.In)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.PersistentFlags().StringVarP(&a.output, "output", "o", outputTable, "what to print: "+strings.Join(outputs, " or "))
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(outputs, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(
		a.verifyCommand(), a.statusCommand(), a.setAsideCommand(deadLetters), a.setAsideCommand(parked), a.graphCommand(), a.manifestCommand(),
		a.permissionsCommand(), a.scheduleCommand(), a.importCommand(), a.versionCommand(),
	)
	return root
}

// manifestArgs wants manifests as arguments.
func manifestArgs(least, most int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("no manifest is named: give the file that has the topic's manifest, or - for standard input")
		case most > 0 && len(args) > most:
			return usagef("%d arguments are given and at most %d are expected", len(args), most)
		}
		return nil
	}
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which version this is", Example: "  redeliver version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.json() {
				return a.printJSON(map[string]string{"version": a.version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			a.printf("redeliver %s (%s, %s/%s)\n", a.version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
