package command_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

var update = flag.Bool("update", false, "rewrite golden files")

// binary is the command, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "redeliver-command-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "redeliver")
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-o", binary, "../../cmd/redeliver")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the command: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// bundle is a directory that the command runs in, and where there is one, a vhost of the test's own.
type bundle struct {
	t      *testing.T
	dir    string
	env    []string
	broker *brokertest.Broker
	vhost  string
}

// offline needs no broker.
func offline(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	b := &bundle{t: t, dir: t.TempDir(), vhost: "vhost-of-shop"}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "REDELIVER_") && !strings.HasPrefix(variable, "AMQP_") && !strings.HasPrefix(variable, "NO_COLOR") {
			b.env = append(b.env, variable)
		}
	}
	b.env = append(b.env, "TERM=xterm")
	return b
}

// setup has a broker, and the environment that names it.
func setup(t *testing.T) *bundle {
	t.Helper()
	broker := brokertest.Shared(t)
	b := offline(t)
	b.broker, b.vhost = broker, brokertest.VHost(t, broker)
	b.as(broker.Username(), broker.Password())
	return b
}

// as has the command work as another user.
func (b *bundle) as(user, password string) {
	b.setenv("endpoints", b.broker.ManagementURL())
	b.setenv("amqp_endpoints", "amqp://"+b.broker.Address())
	b.setenv("username", user)
	b.setenv("password", password)
}

func (b *bundle) setenv(attribute, value string) {
	b.env = append(b.env, rabbitmqadmin.EnvName(attribute)+"="+value)
}

// result is what a run of the command printed, and its exit code.
type result struct {
	t        *testing.T
	out, err string
	code     int
}

// command is a run that has not begun.
func (b *bundle) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.t.Context(), binary, args...)
	cmd.Dir, cmd.Env = b.dir, b.env
	cmd.WaitDelay = time.Minute
	return cmd
}

func (b *bundle) run(args ...string) result {
	b.t.Helper()
	return b.runWith("", args...)
}

func (b *bundle) runWith(stdin string, args ...string) result {
	b.t.Helper()
	var out, stderr bytes.Buffer
	cmd := b.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatalf("redeliver %s: %v", strings.Join(args, " "), err)
	}
	return result{b.t, out.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// exits checks the exit code.
func (r result) exits(code int) result {
	r.t.Helper()
	if r.code != code {
		r.t.Fatalf("exit code %d, want %d\n%s\n%s", r.code, code, r.out, r.err)
	}
	return r
}

// says checks that all of these are printed.
func (r result) says(texts ...string) result {
	r.t.Helper()
	for _, text := range texts {
		if !strings.Contains(r.out+r.err, text) {
			r.t.Errorf("%q is not in:\n%s\n%s", text, r.out, r.err)
		}
	}
	return r
}

// lacks checks that none of these is printed.
func (r result) lacks(texts ...string) result {
	r.t.Helper()
	for _, text := range texts {
		if strings.Contains(r.out+r.err, text) {
			r.t.Errorf("%q is in:\n%s\n%s", text, r.out, r.err)
		}
	}
	return r
}

// What differs from run to run.
var (
	moments  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	ages     = regexp.MustCompile(`\(\w+ ago\)`)
	versions = regexp.MustCompile(`RabbitMQ \d+\.\d+\.\d+`)
)

// golden compares what was printed with a file.
func (b *bundle) golden(name string, r result) {
	b.t.Helper()
	text := strings.ReplaceAll(r.out, b.vhost, "VHOST")
	text = moments.ReplaceAllString(text, "TIME")
	text = ages.ReplaceAllString(text, "(SOME TIME ago)")
	text = versions.ReplaceAllString(text, "RabbitMQ VERSION")
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	if text != string(want) {
		b.t.Errorf("%s differs (run with -update where it should); got:\n%s\nwant:\n%s", path, text, want)
	}
}

// write writes a file where the command runs.
func (b *bundle) write(name string, content []byte) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), content, 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// spec is a topic with everything.
func (b *bundle) spec(change ...func(*topology.Spec)) topology.Spec {
	s := topology.Spec{
		Identity:        topology.Identity{Topic: "orders", VHost: b.vhost},
		DeadLetterQueue: "orders-dlq", ParkedQueue: "orders-parked",
		HoldDelays: []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute},
		Retry:      topology.RetryPolicy{Strategy: topology.Hybrid, MaxRetries: 5, Jitter: topology.DefaultJitter},
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

// manifest writes the manifest of a topic to orders.json or, where the test has several, to a file called after the topic.
func (b *bundle) manifest(s topology.Spec) topology.Manifest {
	b.t.Helper()
	m, err := s.Manifest()
	if err != nil {
		b.t.Fatal(err)
	}
	b.write(s.Topic+".json", m.Encode())
	return m
}

// provision makes on the broker what a spec computes, and writes its manifest.
func (b *bundle) provision(s topology.Spec) topology.Manifest {
	b.t.Helper()
	m := b.manifest(s)
	objects, err := s.Build()
	if err != nil {
		b.t.Fatal(err)
	}
	b.declare(objects)
	return m
}

func (b *bundle) declare(objects topology.Objects) {
	b.t.Helper()
	ch := brokertest.Channel(b.t, b.broker, b.vhost)
	for _, e := range objects.Exchanges {
		if err := ch.ExchangeDeclare(e.Name, e.Type, true, false, false, false, nil); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, q := range objects.Queues {
		if _, err := ch.QueueDeclare(q.Name, true, false, false, false, amqp091.Table(q.Arguments)); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, bind := range objects.Bindings {
		if err := ch.QueueBind(bind.Destination, bind.RoutingKey, bind.Source, false, amqp091.Table(bind.Arguments)); err != nil {
			b.t.Fatal(err)
		}
	}
}

// publish publishes messages with these ids to a queue.
func (b *bundle) publish(queue string, ids ...string) {
	b.t.Helper()
	msgs := make([]amqp091.Publishing, len(ids))
	for i, id := range ids {
		msgs[i] = amqp091.Publishing{MessageId: id, Body: []byte(id), DeliveryMode: amqp091.Persistent}
	}
	b.send(queue, msgs...)
}

func (b *bundle) send(queue string, msgs ...amqp091.Publishing) {
	b.t.Helper()
	brokertest.Publish(b.t, b.broker, b.vhost, "", queue, msgs...)
}

// reject has the topic's queue dead-letter what it holds.
func (b *bundle) reject(queue, dlq string, n int) {
	b.t.Helper()
	ch := brokertest.Channel(b.t, b.broker, b.vhost)
	for range n {
		d, ok, err := ch.Get(queue, false)
		if err != nil || !ok {
			b.t.Fatalf("getting from %q: %v, %v", queue, ok, err)
		}
		if err := d.Reject(false); err != nil {
			b.t.Fatal(err)
		}
	}
	brokertest.WaitDepth(b.t, b.broker, b.vhost, dlq, n)
}

func (b *bundle) waitDepth(queue string, want int) {
	b.t.Helper()
	brokertest.WaitDepth(b.t, b.broker, b.vhost, queue, want)
}

// ids are those of all messages of a queue, in order, which it then has no more.
func (b *bundle) drained(queue string) []string {
	b.t.Helper()
	var ids []string
	for _, d := range brokertest.Drain(b.t, b.broker, b.vhost, queue) {
		ids = append(ids, d.MessageId)
	}
	return ids
}

// numbered are n ids.
func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return ids
}
