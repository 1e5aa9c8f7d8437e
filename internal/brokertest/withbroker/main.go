// Command withbroker starts a private RabbitMQ node, runs a command with the node's addresses in its
// environment, stops the node whatever happens, and exits with the command's status.
//
//	withbroker [-version 4.3] [-log FILE] [-plugin NAME]... -- COMMAND [ARG]...
//
// Without -version it uses the installed rabbitmq-server, or Docker, or installs rabbitmq-server with
// apt-get (without starting its service), whichever it finds first. With -version it runs that series: the
// installed server if it is of that series, or Docker's image, or a cached directory tree that it builds
// from Debian's packages, which needs root.
//
// INT and TERM are passed on to the command and all its children; they run in a process group of their own,
// so that a Ctrl-C reaches them once. When withbroker's own parent goes away it stops as if by TERM: "go
// run" does not pass TERM on. The node dies with withbroker, even when that is killed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

const (
	exitUsage = 64
	// exitNoBroker says that the command was not run.
	exitNoBroker = 69
	// exitSignal is added to the number of the signal that ended the command, as shells do.
	exitSignal = 128
	// parentInterval is how often the parent is looked for.
	parentInterval = time.Second
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

type stringList []string

func (l *stringList) String() string     { return strings.Join(*l, ",") }
func (l *stringList) Set(s string) error { *l = append(*l, s); return nil }

func run(args []string, messages io.Writer) int {
	flags := flag.NewFlagSet("withbroker", flag.ContinueOnError)
	version := flags.String("version", "", "the RabbitMQ `series` to run, such as 4.3 (default: the installed one)")
	logName := flags.String("log", "", "write the node's log to this `file`")
	var plugins stringList
	flags.Var(&plugins, "plugin", "enable a `plugin` besides rabbitmq_management; may be repeated")
	flags.SetOutput(messages)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: withbroker [flags] -- COMMAND [ARG]...")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return exitUsage
	}

	opts := brokertest.Options{Version: *version, Plugins: plugins, Progress: messages, Install: true}
	if *logName != "" {
		log, err := os.Create(*logName)
		if err != nil {
			fmt.Fprintln(messages, "withbroker: opening the log:", err)
			return exitNoBroker
		}
		defer log.Close()
		opts.Log = log
	}
	return withBroker(opts, flags.Args(), messages)
}

// withBroker starts a node, runs the command line and stops the node.
func withBroker(opts brokertest.Options, line []string, messages io.Writer) (code int) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	stopWatch := watchParent(signals)
	defer stopWatch()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b, err := startUnlessSignalled(ctx, cancel, signals, opts)
	if err != nil {
		fmt.Fprintln(messages, "withbroker:", err)
		return exitNoBroker
	}
	defer func() {
		if err := b.Stop(); err != nil {
			fmt.Fprintln(messages, "withbroker: stopping the node:", err)
			code = max(code, 1)
		}
	}()
	fmt.Fprintf(messages, "withbroker: RabbitMQ %s, management at %s\n", b.Version(), b.ManagementURL())
	return runCommand(line, environment(b), signals, messages)
}

// startUnlessSignalled starts the node and gives up when a signal arrives meanwhile.
func startUnlessSignalled(ctx context.Context, cancel func(), signals <-chan os.Signal, opts brokertest.Options) (*brokertest.Broker, error) {
	type result struct {
		b   *brokertest.Broker
		err error
	}
	started := make(chan result, 1)
	go func() {
		b, err := brokertest.Start(ctx, opts)
		started <- result{b, err}
	}()
	select {
	case r := <-started:
		return r.b, r.err
	case sig := <-signals:
		cancel()
		r := <-started
		if r.b != nil {
			r.err = errors.Join(r.err, r.b.Stop())
		}
		return nil, errors.Join(fmt.Errorf("stopped by %v before the node was ready", sig), r.err)
	}
}

// runCommand runs the command line and returns its exit status.
func runCommand(line, env []string, signals <-chan os.Signal, messages io.Writer) int {
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(messages, "withbroker: running the command:", err)
		return exitNoBroker
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			// The group, as a terminal would: go test, say, passes nothing on.
			if err := syscall.Kill(-cmd.Process.Pid, sig.(syscall.Signal)); err != nil {
				fmt.Fprintf(messages, "withbroker: passing %v on: %v\n", sig, err)
			}
		case err := <-done:
			return status(err, messages)
		}
	}
}

// status turns the result of a command into an exit status.
func status(err error, messages io.Writer) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		fmt.Fprintln(messages, "withbroker: waiting for the command:", err)
		return 1
	case exit.Exited():
		return exit.ExitCode()
	default:
		return exitSignal + int(exit.Sys().(syscall.WaitStatus).Signal())
	}
}

// environment announces the node: to this module's tests, to the provider, and to the demo.
func environment(b *brokertest.Broker) []string {
	amqp := b.AMQPURL("/")
	management := strings.Replace(b.ManagementURL(), "http://", "http://"+b.Username()+":"+b.Password()+"@", 1)
	return []string{
		brokertest.EnvAMQPURL + "=" + amqp,
		brokertest.EnvManagementURL + "=" + management,
		brokertest.EnvVersion + "=" + brokertest.Series(b),
		"REDELIVER_RABBITMQ_ENDPOINTS=" + b.ManagementURL(),
		"REDELIVER_RABBITMQ_USERNAME=" + b.Username(),
		"REDELIVER_RABBITMQ_PASSWORD=" + b.Password(),
		"REDELIVER_DEMO_AMQP_URL=" + amqp,
	}
}

// watchParent sends TERM to the channel when our parent goes away. The returned function ends the watch.
func watchParent(signals chan<- os.Signal) (stop func()) {
	parent := os.Getppid()
	ticker := time.NewTicker(parentInterval)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer ticker.Stop()
		for {
			select {
			case <-end:
				return
			case <-ticker.C:
				if os.Getppid() != parent {
					signals <- syscall.SIGTERM
					return
				}
			}
		}
	}()
	return func() { close(end); <-ended }
}
