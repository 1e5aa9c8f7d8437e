package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// source is a place that a node's program comes from, and knows how to run it. There are two: native (the
// installed server, or one in a directory tree of its own) and docker.
type source interface {
	// String names the source in messages.
	String() string
	// listeners returns what the node itself listens on, as host:port: for AMQP, for management, and for TLS.
	listeners(p ports) (amqp, management, secure string)
	// seen is the node's directory as the node itself sees it.
	seen(dir *workDir) string
	// epmdCommand returns the command that runs the node's epmd, or nil when the source brings its own.
	epmdCommand(n *node) *exec.Cmd
	// serverCommand returns the command that runs the node in the foreground.
	serverCommand(n *node) (*exec.Cmd, error)
	// controlCommand returns the command that runs rabbitmqctl on a running node.
	controlCommand(n *node, args ...string) (*exec.Cmd, error)
	// tied tells whether the server command is to be killed by the kernel when we end.
	tied() bool
	// stopServer stops a running node and waits for it; killServer kills it. Data stays.
	stopServer(n *node) error
	killServer(n *node) error
	// clean removes what the node left outside its directory.
	clean(n *node) error
}

// findSource decides where the program for opts comes from, and installs or builds it where that is asked
// for. The installed server comes first: it starts fastest and needs no privileges.
func findSource(ctx context.Context, opts Options) (source, error) {
	installed := installedVersion()
	if installed != "" && (opts.Version == "" || inSeries(installed, opts.Version)) {
		return native{version: installed}, nil
	}
	if opts.Version != "" {
		if err := checkSeries(opts.Version); err != nil {
			return nil, err
		}
	}
	if dockerRuns(ctx) {
		return newDocker(ctx, opts.Version, opts.Progress)
	}
	if opts.Version != "" {
		root, err := ensureRoot(ctx, opts.Version, opts.Progress)
		if err != nil {
			return nil, fmt.Errorf("getting RabbitMQ %s: %w", opts.Version, err)
		}
		return native{root: root, version: opts.Version}, nil
	}
	if !opts.Install {
		return nil, errNoServer
	}
	if err := aptInstall(ctx, opts.Progress, "rabbitmq-server"); err != nil {
		return nil, errors.Join(errNoServer, err)
	}
	if installed = installedVersion(); installed == "" {
		return nil, fmt.Errorf("apt-get installed rabbitmq-server, but there is no %s", serverProgram)
	}
	return native{version: installed}, nil
}

var errNoServer = errors.New("there is no RabbitMQ to start: install the Debian package rabbitmq-server " +
	"(its service need not run), or start a Docker engine")

// installedVersion returns the version of the installed server, or "" without one. Debian's package puts
// it into the name of a directory.
func installedVersion() string { return serverVersionIn("/") }

// serverVersionIn returns the version of the server that is installed in the directory tree root.
func serverVersionIn(root string) string {
	if _, err := exec.LookPath(filepath.Join(root, serverProgram)); err != nil {
		return ""
	}
	matches, err := filepath.Glob(filepath.Join(root, "usr/lib/rabbitmq/lib/rabbitmq_server-*"))
	if err != nil || len(matches) == 0 {
		return ""
	}
	return strings.TrimPrefix(filepath.Base(matches[len(matches)-1]), "rabbitmq_server-")
}

// dockerRuns tells whether a Docker engine answers.
func dockerRuns(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, "docker", "info").Run() == nil
}

// atHand tells whether a node of a series can be started without anything being built or downloaded.
func atHand(ctx context.Context, series string) bool {
	if inSeries(installedVersion(), series) {
		return true
	}
	if dockerRuns(ctx) {
		return hasImage(ctx, imageOf(series))
	}
	cache, err := os.UserCacheDir()
	return err == nil && os.Geteuid() == 0 && complete(rootOf(cache, series))
}
