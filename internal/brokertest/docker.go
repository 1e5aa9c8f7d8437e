package brokertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	containerAMQP       = 5672
	containerManagement = 15672
	containerSecure     = 5671
	// containerDir is where the node sees its directory.
	containerDir = "/mnt"
	// volumeName is the file in a node's directory that names its volume.
	volumeName = "volume"
	// idName is the file in a node's directory that Docker writes the container's id to.
	idName = "container"
)

// docker runs the official image. Each boot is a container of its own; the data lives in a volume.
type docker struct{ image string }

// newDocker gets the image if it is not there yet.
func newDocker(ctx context.Context, series string, progress io.Writer) (docker, error) {
	if series == "" {
		series = "4"
	}
	s := docker{image: imageOf(series)}
	if hasImage(ctx, s.image) {
		return s, nil
	}
	fmt.Fprintf(progress, "pulling %s (once)\n", s)
	if err := runScript(ctx, progress, []string{"docker", "pull", s.image}); err != nil {
		return s, fmt.Errorf("pulling %s: %w", s, err)
	}
	return s, nil
}

func imageOf(series string) string { return "rabbitmq:" + series + "-management" }

func hasImage(ctx context.Context, image string) bool {
	return exec.CommandContext(ctx, "docker", "image", "inspect", image).Run() == nil
}

func (s docker) String() string { return "the Docker image " + s.image }

func (docker) listeners(ports) (amqp, management, secure string) {
	at := func(port int) string { return net.JoinHostPort("0.0.0.0", strconv.Itoa(port)) }
	return at(containerAMQP), at(containerManagement), at(containerSecure)
}

func (docker) seen(*workDir) string { return containerDir }

func (docker) epmdCommand(*node) *exec.Cmd { return nil }

// tied is false: the client has to outlive us long enough to close the container's standard input.
func (docker) tied() bool { return false }

// containerScript runs the broker until it ends, is told to by TERM, or standard input ends: the client
// closes that when we are gone, so that a container does not outlive us.
const containerScript = `exec 3<&0
docker-entrypoint.sh rabbitmq-server &
server=$!
trap 'kill -TERM $server' TERM
(cat <&3 >/dev/null; kill -TERM $server) 2>/dev/null &
wait $server
code=$?
while kill -0 $server 2>/dev/null; do
	wait $server
	code=$?
done
exit $code`

func (s docker) serverCommand(n *node) (*exec.Cmd, error) {
	// docker run refuses to overwrite the file of the container before.
	if err := os.Remove(n.dir.file(idName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("starting a RabbitMQ container: %w", err)
	}
	volume := filepath.Base(n.dir.path)
	if err := n.dir.write(volumeName, volume, 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command("docker", s.runArgs(n.dir, volume, n.ports, n.opts)...)
	// A pipe that is never written to: its end is the sign that we are gone.
	if _, err := cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting a RabbitMQ container: %w", err)
	}
	return cmd, nil
}

func (s docker) runArgs(dir *workDir, volume string, p ports, opts Options) []string {
	publish := func(host, container int) string { return fmt.Sprintf("127.0.0.1:%d:%d", host, container) }
	return []string{
		"run", "--rm", "--interactive",
		"--cidfile", dir.file(idName),
		"--hostname", "localhost",
		"--env", "RABBITMQ_NODENAME=" + nodeName(1),
		"--env", "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=" + opts.erlArgs(),
		"--publish", publish(p.amqp, containerAMQP),
		"--publish", publish(p.management, containerManagement),
		"--publish", publish(p.secure, containerSecure),
		"--volume", volume + ":/var/lib/rabbitmq",
		"--volume", dir.file("rabbitmq.conf") + ":/etc/rabbitmq/conf.d/90-redeliver.conf:ro",
		"--volume", dir.file("enabled_plugins") + ":/etc/rabbitmq/enabled_plugins:ro",
		"--volume", dir.path + ":" + containerDir + ":ro",
		"--entrypoint", "sh",
		s.image,
		"-c", containerScript,
	}
}

func (s docker) stopServer(n *node) error {
	seconds := strconv.Itoa(int(stopTimeout / time.Second))
	return s.end(n, "stop", "-t", seconds)
}

func (s docker) killServer(n *node) error { return s.end(n, "kill") }

func (docker) controlCommand(n *node, args ...string) (*exec.Cmd, error) {
	id, err := containerID(n.dir)
	if err != nil {
		return nil, err
	}
	return exec.Command("docker", append([]string{"exec", id, "rabbitmqctl"}, args...)...), nil
}

// containerID returns the id of the node's container, or "" before the client has made one.
func containerID(dir *workDir) (string, error) {
	text, err := os.ReadFile(dir.file(idName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("finding a RabbitMQ container: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// end stops or kills the node's container by its id and waits for the client that ran it.
func (docker) end(n *node, verb ...string) error {
	id, err := containerID(n.dir)
	if err != nil {
		return err
	}
	if id == "" {
		return n.server.stop(stopTimeout) // the client has not made the container yet
	}
	cmdErr := runDocker(context.Background(), append(verb, id)...)
	if n.server.wait(stopTimeout) {
		return nil // gone, whether by our doing or just before
	}
	return errors.Join(cmdErr, n.server.kill())
}

func (docker) clean(n *node) error { return removeVolume(context.Background(), n.dir.path) }

// removeVolume removes the volume of the node whose directory is dir, if it has one.
func removeVolume(ctx context.Context, dir string) error {
	name, err := os.ReadFile(filepath.Join(dir, volumeName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing a RabbitMQ container's volume: %w", err)
	}
	return runDocker(ctx, "volume", "rm", "--force", string(name))
}

func runDocker(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*stopTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(out.String()))
	}
	return nil
}
