package rabbitmqadmin

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

const (
	testUser     = "terraform"
	testPassword = "pa55-word-that-must-not-show"
)

// fakeBroker is a management API that answers what a test says, and records what it was asked.
type fakeBroker struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

// fake starts a server. The handler sees one request at a time.
func fake(t *testing.T, handle http.HandlerFunc) *fakeBroker {
	t.Helper()
	f := &fakeBroker{}
	f.Server = httptest.NewServer(f.recorded(handle))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeBroker) recorded(handle http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.seen = append(f.seen, r.Method+" "+r.RequestURI)
		f.mu.Unlock()
		handle(w, r)
	})
}

func (f *fakeBroker) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.seen...)
}

// count is how many requests were seen.
func (f *fakeBroker) count() int { return len(f.requests()) }

// reply writes a JSON answer.
func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprint(w, body)
}

const objectNotFound = `{"error":"Object Not Found","reason":"Not Found"}`

// readableVHost answers the question whether vhost "v" is readable, and reports whether it was that.
func readableVHost(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet || r.URL.Path != "/api/exchanges/v/amq.direct" {
		return false
	}
	reply(w, http.StatusOK, `{"name":"amq.direct","vhost":"v","type":"direct"}`)
	return true
}

const queueJSON = `{"name":"q","vhost":"v","type":"quorum","durable":true,"auto_delete":false,"exclusive":false,"arguments":{"x-queue-type":"quorum","x-message-ttl":9007199254740993}}`

// newClient makes a client of servers that never waits between tries, and counts how often it would have.
func newClient(t *testing.T, change func(*Config), endpoints ...string) (*Client, *[]time.Duration) {
	t.Helper()
	cfg := Config{Endpoints: endpoints, Username: testUser, Password: testPassword, RequestTimeout: 5 * time.Second}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var mu sync.Mutex
	waits := &[]time.Duration{}
	c.pause = func(ctx context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		*waits = append(*waits, d)
		return ctx.Err()
	}
	return c, waits
}

// live is a client of the real broker and a vhost of its own.
func live(t *testing.T, change func(*Config)) (*Client, *brokertest.Broker, string) {
	t.Helper()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	return liveClient(t, b, change), b, vhost
}

func liveClient(t *testing.T, b *brokertest.Broker, change func(*Config)) *Client {
	t.Helper()
	cfg := Config{Endpoints: []string{b.ManagementURL()}, Username: b.Username(), Password: b.Password()}
	if change != nil {
		change(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// makeQueue creates a queue with the arguments and what its type needs.
func makeQueue(t *testing.T, c *Client, vhost, name string, kind topology.QueueType, args topology.Arguments) {
	t.Helper()
	all := topology.Arguments{topology.ArgQueueType: string(kind)}
	for key, value := range args {
		all[key] = value
	}
	must(t, c.CreateQueue(t.Context(), vhost, topology.Queue{Name: name, Type: kind, Arguments: all}))
}

func makeExchange(t *testing.T, c *Client, vhost, name, kind string) {
	t.Helper()
	must(t, c.CreateExchange(t.Context(), vhost, LiveExchange{Name: name, Type: kind, Durable: true}))
}

func bindingTo(source, queue, key string) topology.Binding {
	return topology.Binding{Source: source, Destination: queue, DestinationType: toQueue, RoutingKey: key}
}

func bind(t *testing.T, c *Client, vhost string, bindings ...topology.Binding) {
	t.Helper()
	for _, b := range bindings {
		must(t, c.Bind(t.Context(), vhost, b))
	}
}

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }
