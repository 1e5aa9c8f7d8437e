package brokertest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// nodeUser is the administrator of every private node. Not guest, which a broker in a container admits
	// from inside the container only.
	nodeUser = "redeliver"
	// consoleLog holds everything the node prints. The node logs to its console.
	consoleLog = "console.log"
	// tailBytes is how much of it is quoted in an error.
	tailBytes = 4 << 10
	// pollInterval is the pause between two looks at a condition that is waited for.
	pollInterval = 50 * time.Millisecond
	// pollTimeout bounds one look: who took the node's port may accept and never answer.
	pollTimeout = 3 * time.Second
)

// node is one private RabbitMQ node with its directory, its ports and its processes. It is used under the
// lock of its Broker.
type node struct {
	name     string
	src      source
	dir      *workDir
	ports    ports
	password string
	cookie   string
	opts     Options

	server *process // nil before boot
	epmd   *process // nil where the source brings its own; the nodes of a cluster have one together
}

// startNode makes a directory, picks ports and boots a node. On failure it leaves nothing behind.
func startNode(ctx context.Context, src source, opts Options) (*node, error) {
	n, err := newNode(ctx, src, opts)
	if err != nil {
		return nil, err
	}
	if err = n.configure(); err == nil {
		err = n.boot(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// newNode makes a node's directory and picks its ports. It starts nothing.
func newNode(ctx context.Context, src source, opts Options) (*node, error) {
	dir, err := newWorkDir(ctx)
	if err != nil {
		return nil, err
	}
	n := &node{name: nodeName(1), src: src, dir: dir, password: rand.Text(), cookie: rand.Text(), opts: opts}
	if n.ports, err = pickPorts(); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// nodeName is the name of the i-th node of a cluster, from 1, or of the only one.
func nodeName(i int) string { return fmt.Sprintf("n%d@localhost", i) }

// configure writes the files that the node reads.
func (n *node) configure() error {
	amqp, management, secure := n.src.listeners(n.ports)
	lines := append([]string{
		"listeners.tcp.1 = " + amqp,
		"management.tcp.ip = " + hostOf(management),
		"management.tcp.port = " + portOf(management),
		"default_user = " + nodeUser,
		"default_pass = " + n.password,
		"log.console = true",
		"log.console.use_colors = off",
		"log.file = false",
	}, n.opts.Config...)
	plugins := append([]string{"rabbitmq_management"}, n.opts.Plugins...)
	for name, content := range n.opts.Files {
		if err := n.dir.write(name, content, 0o644); err != nil {
			return err
		}
	}
	here := strings.NewReplacer("{dir}", n.src.seen(n.dir), "{secure_ip}", hostOf(secure), "{secure_port}", portOf(secure))
	return errors.Join(
		n.dir.write("rabbitmq.conf", here.Replace(strings.Join(lines, "\n"))+"\n", 0o644),
		n.dir.write("enabled_plugins", "["+strings.Join(plugins, ",")+"].\n", 0o644),
		n.dir.write("env.conf", "", 0o644),
		n.dir.write(".erlang.cookie", n.cookie, 0o400),
	)
}

func hostOf(address string) string { return address[:strings.LastIndex(address, ":")] }
func portOf(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// boot starts the node's processes and waits until it is ready. On failure the server is not running.
func (n *node) boot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	var mark int64 // where this start's part of the log begins
	if info, err := os.Stat(n.dir.file(consoleLog)); err == nil {
		mark = info.Size()
	}
	if err := n.bootEpmd(ctx); err != nil {
		return n.explain(err, mark)
	}
	cmd, err := n.src.serverCommand(n)
	if err != nil {
		return err
	}
	if n.server, err = startProcess(cmd, n.src.tied(), n.dir.file(consoleLog), n.opts.Log); err != nil {
		return err
	}
	if err := n.awaitReady(ctx); err != nil {
		return errors.Join(n.explain(err, mark), n.kill())
	}
	return nil
}

// bootEpmd starts the node's epmd, unless it runs or the source brings its own, and waits until it listens.
// Left to itself the node would start one as a daemon and leave it behind.
func (n *node) bootEpmd(ctx context.Context) error {
	cmd := n.src.epmdCommand(n)
	if cmd == nil || (n.epmd != nil && !n.epmd.exited()) {
		return nil
	}
	var err error
	if n.epmd, err = startProcess(cmd, true, n.dir.file(consoleLog), nil); err != nil {
		return err
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if askEpmd(ctx, n.ports.epmd) {
			return nil
		}
		select {
		case <-n.epmd.done:
			return fmt.Errorf("%w: epmd ended: %w", errPortTaken, exitError(n.epmd))
		case <-ctx.Done():
			return fmt.Errorf("epmd does not listen on port %d: %w", n.ports.epmd, ctx.Err())
		case <-ticker.C:
		}
	}
}

// askEpmd tells whether an epmd answers on the port. The request (its length, and n for names) and the first
// four bytes of the answer (the port itself) are part of Erlang's distribution protocol.
func askEpmd(ctx context.Context, port int) bool {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if _, err := conn.Write([]byte{0, 1, 'n'}); err != nil {
		return false
	}
	var answer [4]byte
	_, err = io.ReadFull(conn, answer[:])
	return err == nil && int(binary.BigEndian.Uint32(answer[:])) == port
}

// awaitReady polls the health check of the AMQP listener until it answers, the node ends, or ctx does.
func (n *node) awaitReady(ctx context.Context) error {
	amqp, _, _ := n.src.listeners(n.ports)
	url := fmt.Sprintf("http://127.0.0.1:%d/api/health/checks/port-listener/%s", n.ports.management, portOf(amqp))
	var epmdDone <-chan struct{} // nil, which never delivers, where the source brings its own
	if n.epmd != nil {
		epmdDone = n.epmd.done
	}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	client := newHTTPClient()
	client.Timeout = pollTimeout
	defer client.CloseIdleConnections()
	for {
		status, _, err := doRequest(ctx, client, http.MethodGet, url, nodeUser, n.password, nil)
		if err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-n.server.done:
			return fmt.Errorf("the node ended before it was ready: %w", exitError(n.server))
		case <-epmdDone:
			return fmt.Errorf("%w: epmd ended: %w", errPortTaken, exitError(n.epmd))
		case <-ctx.Done():
			last := fmt.Sprintf("status %d", status)
			if err != nil {
				last = err.Error()
			}
			return fmt.Errorf("the node was not ready in time (last answer of %s: %s): %w", url, last, ctx.Err())
		case <-ticker.C:
		}
	}
}

func exitError(p *process) error {
	if p.err != nil {
		return p.err
	}
	return errors.New("exit status 0")
}

// explain adds the end of the log to a failed start, and tells a taken port from other reasons. mark is
// where this start's part of the log begins.
func (n *node) explain(err error, mark int64) error {
	if errors.Is(err, context.Canceled) {
		return err // the node did nothing wrong
	}
	text, readErr := os.ReadFile(n.dir.file(consoleLog))
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	text = text[min(mark, int64(len(text))):]
	for _, sign := range []string{"eaddrinuse", "dist_port_already_used", "address already in use", "port is already allocated"} {
		if bytes.Contains(text, []byte(sign)) && !errors.Is(err, errPortTaken) {
			err = fmt.Errorf("%w: %w", errPortTaken, err)
		}
	}
	return fmt.Errorf("%w\n--- end of the node's log ---\n%s", err, lastBytes(text, tailBytes))
}

// logTail returns the end of the node's log.
func (n *node) logTail() string {
	text, err := os.ReadFile(n.dir.file(consoleLog))
	if err != nil {
		return err.Error()
	}
	return string(lastBytes(text, tailBytes))
}

func lastBytes(text []byte, n int) []byte { return text[max(0, len(text)-n):] }

// stop stops the server, if it runs, and keeps its data and epmd.
func (n *node) stop() error {
	if n.server == nil || n.server.exited() {
		return nil
	}
	return n.src.stopServer(n)
}

// kill ends the server at once.
func (n *node) kill() error {
	if n.server == nil || n.server.exited() {
		return nil
	}
	return n.src.killServer(n)
}

// close ends everything and removes the directory. It does not ask the server to shut down first: its data
// goes with it, and asking takes six seconds.
func (n *node) close() error {
	err := n.kill()
	if n.epmd != nil {
		err = errors.Join(err, n.epmd.stop(stopTimeout))
	}
	return errors.Join(err, n.src.clean(n), n.dir.remove())
}
