package brokertest

import (
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
)

// serverProgram is the server itself. The rabbitmq-server in /usr/sbin is a wrapper that changes the user.
const serverProgram = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// controlProgram is the one that talks to a node; the rabbitmqctl in /usr/sbin is a wrapper too.
const controlProgram = "/usr/lib/rabbitmq/bin/rabbitmqctl"

// rootWorkDir is where a node in a directory tree of its own sees its directory.
const rootWorkDir = "/mnt"

// native runs Debian's rabbitmq-server: the installed one, or one in a directory tree built by ensureRoot.
type native struct {
	root    string // "" for the installed one
	version string
}

func (s native) String() string {
	if s.root == "" {
		return serverProgram + " " + s.version
	}
	return s.root
}

func (native) listeners(p ports) (amqp, management, secure string) {
	at := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	return at(p.amqp), at(p.management), at(p.secure)
}

func (s native) seen(dir *workDir) string {
	if s.root != "" {
		return rootWorkDir
	}
	return dir.path
}

func (native) tied() bool { return true }

func (s native) epmdCommand(n *node) *exec.Cmd {
	port := strconv.Itoa(n.ports.epmd)
	return s.command(n, "/usr/bin/epmd", "-address", "127.0.0.1", "-port", port)
}

func (s native) serverCommand(n *node) (*exec.Cmd, error) {
	return s.command(n, serverProgram), nil
}

func (s native) controlCommand(n *node, args ...string) (*exec.Cmd, error) {
	return s.command(n, controlProgram, append([]string{"--node", n.name}, args...)...), nil
}

// enterRoot runs a program in the tree $1 with the node's directory $2 as $3. The mounts are made in a
// mount namespace that ends with the program, so that none is left behind. The management plugin does not
// boot without /proc.
const enterRoot = `root=$1 && mount --rbind /proc "$root/proc" && mount --bind "$2" "$root$3" && shift 3 && exec chroot "$root" "$@"`

// command returns a command that ends up being the program itself: everything on the way execs, which
// process relies on.
func (s native) command(n *node, program string, args ...string) *exec.Cmd {
	work := s.seen(n.dir)
	line := append([]string{program}, args...)
	if s.root != "" {
		line = append([]string{"/usr/bin/unshare", "--mount", "/bin/sh", "-c", enterRoot, "sh", s.root, n.dir.path, work}, line...)
	}
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Dir = "/"
	cmd.Env = nodeEnv(work, n.name, n.ports, n.opts)
	return cmd
}

// nodeEnv returns the whole environment of a node whose directory is work.
func nodeEnv(work, name string, p ports, opts Options) []string {
	return []string{
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + work,
		"LANG=C.UTF-8",
		"ERL_CRASH_DUMP=" + filepath.Join(work, "erl_crash.dump"),
		"ERL_EPMD_PORT=" + strconv.Itoa(p.epmd),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=" + name,
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1",
		"RABBITMQ_NODE_PORT=" + strconv.Itoa(p.amqp),
		"RABBITMQ_DIST_PORT=" + strconv.Itoa(p.distribution),
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(work, "mnesia"),
		"RABBITMQ_LOG_BASE=" + filepath.Join(work, "log"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(work, "enabled_plugins"),
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(work, "rabbitmq.conf"),
		"RABBITMQ_CONF_ENV_FILE=" + filepath.Join(work, "env.conf"),
		"RABBITMQ_PID_FILE=" + filepath.Join(work, "pid"),
		// Makes the script exec the Erlang VM, instead of waiting for it as a second process.
		"RUNNING_UNDER_SYSTEMD=true",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none" + opts.erlArgs(),
	}
}

func (native) stopServer(n *node) error { return n.server.stop(stopTimeout) }
func (native) killServer(n *node) error { return n.server.kill() }
func (native) clean(*node) error        { return nil }
