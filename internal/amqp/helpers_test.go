package amqp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// waitTimeout bounds every wait of a test; only one that fails needs it.
const waitTimeout = 60 * time.Second

var quorum = amqp091.Table{"x-queue-type": "quorum"}

func declare(t testing.TB, b *brokertest.Broker, vhost, queue string, args amqp091.Table) {
	t.Helper()
	if _, err := brokertest.Channel(t, b, vhost).QueueDeclare(queue, true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
}

// dialer dials a vhost as the administrator.
func dialer(t testing.TB, b *brokertest.Broker, vhost string) func(context.Context) (*Conn, error) {
	t.Helper()
	return dialerTo(t, b.AMQPURL(vhost))
}

func dialerTo(t testing.TB, url string) func(context.Context) (*Conn, error) {
	t.Helper()
	broker, err := NewBroker(Config{URL: url, Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context) (*Conn, error) { return broker.Dial(ctx, " (publisher)") }
}

// fates is what became of the messages that a test published, by their ids.
type fates struct {
	t  *testing.T
	p  *Publisher
	mu sync.Mutex
	// told counts how often each was told.
	told map[string]int
	errs map[string]error
	more chan struct{} // closed and replaced with every one
}

// publish makes a publisher that ends with the test.
func publish(t *testing.T, o Options, change ...func(*Publisher)) *fates {
	t.Helper()
	f := &fates{t: t, p: NewPublisher(o), told: make(map[string]int), errs: make(map[string]error), more: make(chan struct{})}
	for _, c := range change {
		c(f.p)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := f.p.Close(ctx); err != nil {
			t.Logf("closing the publisher: %v", err)
		}
	})
	return f
}

func (f *fates) send(exchange, key string, ids ...string) {
	for _, id := range ids {
		f.sendMessage(exchange, key, id, amqp091.Publishing{MessageId: id, Body: []byte(id)})
	}
}

func (f *fates) sendMessage(exchange, key, id string, msg amqp091.Publishing) {
	f.p.Publish(exchange, key, msg, func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.told[id]++
		f.errs[id] = err
		close(f.more)
		f.more = make(chan struct{})
	})
}

// await waits until n messages have been told of, each once, and returns what
// was said.
func (f *fates) await(n int) map[string]error {
	f.t.Helper()
	timeout := time.After(waitTimeout)
	for {
		f.mu.Lock()
		more, told := f.more, len(f.told)
		f.mu.Unlock()
		if told >= n {
			break
		}
		select {
		case <-more:
		case <-timeout:
			f.t.Fatalf("%d messages were told of, want %d", told, n)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	errs := make(map[string]error, len(f.errs))
	for id, err := range f.errs {
		errs[id] = err
		if f.told[id] != 1 {
			f.t.Errorf("message %s was told of %d times", id, f.told[id])
		}
	}
	return errs
}

// want checks that the messages with these ids had one of these fates.
func (f *fates) want(ids []string, kinds ...error) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	wrong := 0
	for _, id := range ids {
		err, told := f.errs[id], f.told[id]
		if told == 1 && slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) }) {
			continue
		}
		if wrong++; wrong <= 5 {
			f.t.Errorf("message %s was told of %d times: %v, want %v", id, told, err, kinds)
		}
	}
	if wrong > 5 {
		f.t.Errorf("and %d more", wrong-5)
	}
}

// ids are n message ids.
func ids(prefix string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return list
}

// holds checks that a queue has exactly the messages with these ids.
func holds(t *testing.T, b *brokertest.Broker, vhost, queue string, want ...string) {
	t.Helper()
	brokertest.WaitDepth(t, b, vhost, queue, len(want))
	got := drained(t, b, vhost, queue)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("queue %q has %d messages, want %d: %.200q", queue, len(got), len(want), got)
	}
}

// drained takes all messages of a queue and returns their ids, sorted.
func drained(t *testing.T, b *brokertest.Broker, vhost, queue string) []string {
	t.Helper()
	var got []string
	for _, d := range brokertest.Drain(t, b, vhost, queue) {
		got = append(got, d.MessageId)
	}
	slices.Sort(got)
	return got
}

// eval has a dedicated node evaluate an Erlang expression.
func eval(t *testing.T, b *brokertest.Broker, expression string) {
	t.Helper()
	pid, err := os.ReadFile(filepath.Join(b.Dir(), "pid"))
	if err != nil {
		t.Skip("this node is not a process of this machine: its internals cannot be reached")
	}
	process := strings.TrimSpace(string(pid))
	env, err := os.ReadFile("/proc/" + process + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	// In the node's own mount namespace and root, where there are such.
	cmd := exec.CommandContext(t.Context(), "nsenter", "--target", process, "--mount", "--root", "--wd",
		"/usr/lib/rabbitmq/bin/rabbitmqctl", "--node", "n1@localhost", "eval", expression)
	for e := range strings.SplitSeq(string(env), "\x00") {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "PATH", "HOME", "LANG", "ERL_EPMD_PORT", "ERL_EPMD_ADDRESS", "RABBITMQ_CONF_ENV_FILE":
			cmd.Env = append(cmd.Env, e)
		}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("evaluating %s: %v\n%s", expression, err, out)
	}
}

// suspend makes a quorum queue answer nobody, like one without a leader, and
// returns what ends that.
func suspend(t *testing.T, b *brokertest.Broker, queue string) (resume func()) {
	t.Helper()
	each := func(do string) {
		eval(t, b, fmt.Sprintf(`[%s(N) || N <- registered(), lists:suffix("_%s", atom_to_list(N))].`, do, queue))
	}
	each("sys:suspend")
	return func() { each("sys:resume") }
}

// filling is a message with a header of every type whose header frame has so many bytes.
func filling(t *testing.T, size int) amqp091.Publishing {
	t.Helper()
	msg := amqp091.Publishing{
		ContentType: "a", ContentEncoding: "b", Priority: 1, CorrelationId: "c", ReplyTo: "d", MessageId: "e", Timestamp: time.Unix(1, 0), Type: "f", AppId: "g",
		DeliveryMode: amqp091.Persistent,
		Headers: amqp091.Table{
			"fill": "", "nil": nil, "bool": true, "byte": byte(1), "int8": int8(1), "int16": int16(1), "uint16": uint16(1), "int": 1, "int32": int32(1), "uint32": uint32(1),
			"float32": float32(1), "float64": 1.0, "int64": int64(1), "decimal": amqp091.Decimal{}, "time": time.Now(), "bytes": []byte("x"),
			"table": amqp091.Table{"in": "side"}, "list": []any{"a", int64(1), amqp091.Table{}},
		},
	}
	n, err := headerSize("", "orders", &msg)
	if err != nil {
		t.Fatal(err)
	}
	msg.Headers["fill"] = strings.Repeat("x", size-n)
	return msg
}
