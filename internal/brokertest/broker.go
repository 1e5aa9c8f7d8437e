package brokertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// startTimeout bounds one start of a node, where the caller's context does not end earlier. A node
	// needs 4 to 12 s on an idle machine; the rest is for machines that run a test suite meanwhile.
	startTimeout = 3 * time.Minute
	// stopTimeout is how long a node may take to stop after TERM before it is killed.
	stopTimeout = 30 * time.Second
	// controlTimeout bounds a run of rabbitmqctl.
	controlTimeout = time.Minute
	// startAttempts is how often a start is tried when something else took one of the ports in between.
	startAttempts = 5
)

// Options says which node [Start] starts. The zero value is the installed server without extras.
type Options struct {
	// Version is the RabbitMQ series to run, such as "4.3". Empty means the server that is installed on
	// this machine, whatever its version, or the current major series where only Docker is there.
	// A series that is not installed comes from Docker, or else from Debian into a cached directory tree,
	// which takes a minute or two once and needs root.
	Version string

	// Config holds extra lines of rabbitmq.conf, such as "consumer_timeout = 5000". In them "{dir}" is the directory of
	// Files as the node sees it, and "{secure_ip}" and "{secure_port}" are where a TLS listener can be, such as
	// "listeners.ssl.1 = {secure_ip}:{secure_port}": see [Broker.SecureAddress].
	Config []string

	// Files are written beside the configuration before the node starts, by their names.
	Files map[string]string

	// Settings holds settings of the rabbit application that rabbitmq.conf has no name for, with Erlang values, such as
	// "dead_letter_worker_publisher_confirm_timeout 3000".
	Settings []string

	// Plugins names plugins to enable besides rabbitmq_management, such as
	// "rabbitmq_consistent_hash_exchange".
	Plugins []string

	// Log receives everything the node prints, its log included. Nil discards it; the tail is quoted in
	// errors either way.
	Log io.Writer

	// Progress receives a line for each slow thing Start does besides starting a node: installing
	// packages, building a directory tree. Nil discards them.
	Progress io.Writer

	// Install allows Start to install rabbitmq-server with apt-get when Version is empty and neither an
	// installed server nor Docker is there. It needs root or sudo without a password.
	Install bool
}

// erlArgs are the Erlang VM's arguments that make the settings.
func (o Options) erlArgs() string {
	args := ""
	for _, setting := range o.Settings {
		args += " -rabbit " + setting
	}
	return args
}

// Broker is one RabbitMQ node: either a private one made by [Start], or one that was announced in the
// environment and that [Shared] found. Its methods may be called from several goroutines.
type Broker struct {
	amqp       url.URL // with credentials, without a path
	management url.URL // without credentials
	user       string
	password   string
	version    string

	mu      sync.Mutex
	node    *node // nil when the broker was stopped or is not ours
	stopped bool
}

// Start starts a private node and waits until it serves both AMQP and the management API. The context
// bounds the start only: the node runs until Stop is called or this process ends, however it ends.
//
// Where starting needs something that is not on this machine, the error says what to install.
func Start(ctx context.Context, opts Options) (*Broker, error) {
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	src, err := findSource(ctx, opts)
	if err != nil {
		return nil, err
	}
	var n *node
	for attempt := 1; ; attempt++ {
		n, err = startNode(ctx, src, opts)
		if err == nil {
			break
		}
		if attempt == startAttempts || !errors.Is(err, errPortTaken) {
			return nil, fmt.Errorf("starting RabbitMQ from %s: %w", src, err)
		}
	}
	b := brokerOf(n)
	if b.version, err = b.fetchVersion(ctx); err != nil {
		return nil, errors.Join(err, b.Stop())
	}
	return b, nil
}

// brokerOf describes a node of this process.
func brokerOf(n *node) *Broker {
	b := newBroker("127.0.0.1:"+strconv.Itoa(n.ports.amqp), "127.0.0.1:"+strconv.Itoa(n.ports.management), nodeUser, n.password)
	b.node = n
	return b
}

func newBroker(amqp, management, user, password string) *Broker {
	return &Broker{
		amqp:       url.URL{Scheme: "amqp", Host: amqp, User: url.UserPassword(user, password)},
		management: url.URL{Scheme: "http", Host: management},
		user:       user,
		password:   password,
	}
}

// AMQPURL returns the AMQP URL of a vhost with the administrator's credentials in it.
func (b *Broker) AMQPURL(vhost string) string {
	return b.AMQPURLAs(vhost, b.user, b.password)
}

// AMQPURLAs returns the AMQP URL of a vhost for another user, such as one made by [User].
func (b *Broker) AMQPURLAs(vhost, user, password string) string {
	u := b.amqp
	u.User = url.UserPassword(user, password)
	u.Path = "/" + vhost
	u.RawPath = "/" + url.PathEscape(vhost)
	return u.String()
}

// Address returns the host and the port of the broker's AMQP listener.
func (b *Broker) Address() string { return b.amqp.Host }

// SecureAddress returns the host and the port of the TLS listener that Options.Config has, or "" when the broker is not
// ours.
func (b *Broker) SecureAddress() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.node == nil {
		return ""
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(b.node.ports.secure))
}

// ManagementURL returns the management API's address, such as "http://127.0.0.1:21234", without
// credentials, without "/api" and without a trailing slash.
func (b *Broker) ManagementURL() string { return b.management.String() }

// Username returns the name of the broker's administrator.
func (b *Broker) Username() string { return b.user }

// Password returns the password of the broker's administrator.
func (b *Broker) Password() string { return b.password }

// Version returns the version that the broker reports, such as "3.10.8".
func (b *Broker) Version() string { return b.version }

// Dir returns the directory that holds the node's configuration, data and log (console.log), or "" when
// the broker is not ours. Stop removes it.
func (b *Broker) Dir() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.node == nil {
		return ""
	}
	return b.node.dir.path
}

// errNotOurs is what Kill, Halt, Restart and Control answer on a broker that was stopped or was never ours.
var errNotOurs = errors.New("this broker was stopped already, or it was not started by this process: use a Dedicated one")

// Stop ends the node and its epmd, waits for them, and removes its directory. It does nothing when the node
// was stopped before, or was not started by this process. Clients see a broken connection, not an orderly
// close: see [Broker.Halt] for that.
func (b *Broker) Stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.node == nil {
		return nil
	}
	n := b.node
	b.node, b.stopped = nil, true
	return n.close()
}

// isStopped tells whether Stop has ended the node.
func (b *Broker) isStopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped
}

// Kill ends the node with SIGKILL, as a crash would. Its data stays for Restart.
func (b *Broker) Kill() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.node == nil {
		return fmt.Errorf("killing the RabbitMQ node: %w", errNotOurs)
	}
	return b.node.kill()
}

// Halt shuts the node down in good order: clients are told (320 CONNECTION_FORCED), and everything is on
// disk. Its data stays for Restart. It takes some seconds.
func (b *Broker) Halt() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.node == nil {
		return fmt.Errorf("halting the RabbitMQ node: %w", errNotOurs)
	}
	return b.node.stop()
}

// Restart halts the node if it runs, and starts it again on the same ports and data. It returns when the
// node is ready. The context bounds the start.
func (b *Broker) Restart(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.node == nil {
		return fmt.Errorf("restarting the RabbitMQ node: %w", errNotOurs)
	}
	if err := b.node.stop(); err != nil {
		return fmt.Errorf("restarting the RabbitMQ node: %w", err)
	}
	if err := b.node.boot(ctx); err != nil {
		return fmt.Errorf("restarting the RabbitMQ node: %w", err)
	}
	return nil
}

// Control runs rabbitmqctl on the node, which has to run, and returns what it prints: for what the management API
// cannot do, such as raising an alarm. It takes some seconds, most of them to start.
func (b *Broker) Control(ctx context.Context, args ...string) (string, error) {
	b.mu.Lock()
	n := b.node
	b.mu.Unlock()
	if n == nil {
		return "", fmt.Errorf("running rabbitmqctl %s: %w", strings.Join(args, " "), errNotOurs)
	}
	cmd, err := n.src.controlCommand(n, args...)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	run := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	run.Env, run.Dir, run.WaitDelay = cmd.Env, cmd.Dir, stopTimeout
	out, err := run.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running rabbitmqctl %s: %w: %s", strings.Join(args, " "), err, lastBytes(out, tailBytes))
	}
	return string(out), nil
}
