package rabbitmqadmin

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// viewed is a broker with so many queues in vhost "v", each bound to exchange "e" by its name.
func viewed(t *testing.T, queues int) (*fakeBroker, *Client) {
	t.Helper()
	var list, bindings []string
	byName := map[string]string{}
	for i := range queues {
		name := fmt.Sprintf("q%03d", i)
		byName["/api/queues/v/"+name] = fmt.Sprintf(`{"name":%q,"vhost":"v","type":"quorum","durable":true,"arguments":{"x-queue-type":"quorum"},"consumers":1}`, name)
		list = append(list, byName["/api/queues/v/"+name])
		binding := fmt.Sprintf(`{"source":"e","vhost":"v","destination":%q,"destination_type":"queue","routing_key":%q,"arguments":{},"properties_key":%q}`, name, name, name)
		byName["/api/queues/v/"+name+"/bindings"] = "[" + binding + "]"
		bindings = append(bindings, binding)
	}
	byName["/api/queues/v"] = "[" + strings.Join(list, ",") + "]"
	byName["/api/bindings/v"] = "[" + strings.Join(bindings, ",") + "]"
	byName["/api/overview"] = fmt.Sprintf(`{"rabbitmq_version":"4.0.5","object_totals":{"queues":%d}}`, queues)
	f := fake(t, func(w http.ResponseWriter, r *http.Request) {
		switch body, ok := byName[r.URL.Path]; {
		case readableVHost(w, r):
		case r.Method != http.MethodGet:
			w.WriteHeader(http.StatusCreated)
		case ok:
			reply(w, http.StatusOK, body)
		default:
			reply(w, http.StatusNotFound, objectNotFound)
		}
	})
	c, _ := newClient(t, nil, f.URL)
	if _, err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f, c
}

func TestViewReadsAFewByThemselvesAndThenTheList(t *testing.T) {
	t.Parallel()
	f, c := viewed(t, 300)
	var wg sync.WaitGroup
	for range 2 { // everybody asks twice
		for i := range 300 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				name := fmt.Sprintf("q%03d", i)
				q, err := c.View().Queue(t.Context(), "v", name)
				if err != nil || q.Name != name || q.Type != topology.Quorum {
					t.Errorf("queue %s: %+v, %v", name, q, err)
				}
				bindings, err := c.View().QueueBindings(t.Context(), "v", name)
				if err != nil || len(bindings) != 1 || bindings[0].RoutingKey != name {
					t.Errorf("bindings of %s: %+v, %v", name, bindings, err)
				}
			}()
		}
	}
	wg.Wait()
	if got, want := f.count(), 1+queuesAlone+1+bindingsAlone+1; got > want {
		t.Errorf("%d requests for 300 queues and their bindings, want at most %d:\n%s", got, want, strings.Join(f.requests(), "\n"))
	}
	source, _, err := c.View().ExchangeBindings(t.Context(), "v", "e")
	if err != nil || len(source) != 300 {
		t.Errorf("%d bindings from the exchange, %v, want 300", len(source), err)
	}
	if int64(f.count()) != c.Requests() {
		t.Errorf("the client counted %d requests, the broker saw %d", c.Requests(), f.count())
	}
}

func TestViewOfAFewDoesNotList(t *testing.T) {
	t.Parallel()
	f, c := viewed(t, 300)
	for i := range queuesAlone {
		if _, err := c.View().Queue(t.Context(), "v", fmt.Sprintf("q%03d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if slices.ContainsFunc(f.requests(), func(r string) bool { return strings.HasPrefix(r, "GET /api/queues/v?") }) {
		t.Errorf("the list was read for %d queues:\n%s", queuesAlone, strings.Join(f.requests(), "\n"))
	}
}

func TestViewProvesThatAQueueIsGone(t *testing.T) {
	t.Parallel()
	f, c := viewed(t, 20)
	if _, err := c.View().Queues(t.Context(), "v"); err != nil {
		t.Fatal(err)
	}
	// The list does not prove it: it leaves out what was led by a node that is down.
	if _, found, err := c.View().FindQueue(t.Context(), "v", "other"); found || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
	before := f.count()
	for range 2 {
		if _, err := c.View().Queue(t.Context(), "v", "other"); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v, want not found", err)
		}
	}
	if got := f.count() - before; got != 2 { // the queue, and once whether the vhost can be read
		t.Errorf("%d requests to prove it, want 2: %v", got, f.requests()[before:])
	}
}

func TestViewFollowsTheClientsWrites(t *testing.T) {
	t.Parallel()
	f, c := viewed(t, 20)
	ctx := t.Context()
	if _, err := c.View().Queues(ctx, "v"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.View().QueueBindings(ctx, "v", "q000"); err != nil {
		t.Fatal(err)
	}
	made := topology.Queue{Name: "made", Type: topology.Classic, Arguments: topology.Arguments{"x-queue-type": "classic"}}
	if _, err := c.DeclareQueue(ctx, "v", made); err != nil {
		t.Fatal(err)
	}
	bound := topology.Binding{Source: "e", Destination: "q000", RoutingKey: "more"}
	if err := c.Bind(ctx, "v", bound); err != nil {
		t.Fatal(err)
	}
	before := f.count()
	if q, err := c.View().Queue(ctx, "v", "made"); err != nil || q.Type != topology.Classic {
		t.Errorf("the new queue is %+v, %v", q, err)
	}
	if bindings, err := c.View().QueueBindings(ctx, "v", "q000"); err != nil || len(bindings) != 2 {
		t.Errorf("bindings %+v, %v, want the new one among two", bindings, err)
	}
	if got := f.count() - before; got != 0 {
		t.Errorf("%d requests after the writes, want none: %v", got, f.requests()[before:])
	}
	if err := c.DeleteQueue(ctx, "v", "q001"); err != nil {
		t.Fatal(err)
	}
	all, err := c.View().Queues(ctx, "v")
	if err != nil || len(all) != 20 || slices.ContainsFunc(all, func(q LiveQueue) bool { return q.Name == "q001" }) {
		t.Errorf("%d queues, %v, want 20 without the deleted one", len(all), err)
	}
}

// TestViewWhereBindingsCannotBeListed is about a vhost in which somebody made a binding that the broker cannot list.
func TestViewWhereBindingsCannotBeListed(t *testing.T) {
	t.Parallel()
	f := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/bindings/v" {
			reply(w, http.StatusInternalServerError, `{"error":"internal_server_error","reason":"oops"}`)
			return
		}
		reply(w, http.StatusOK, "[]")
	})
	c, _ := newClient(t, nil, f.URL)
	for i := range 3 * bindingsAlone {
		if _, err := c.View().QueueBindings(t.Context(), "v", fmt.Sprint(i)); err != nil {
			t.Errorf("queue %d: %v", i, err)
		}
	}
}

func TestViewForgetsFailures(t *testing.T) {
	t.Parallel()
	broken := true
	f := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		if broken {
			reply(w, http.StatusBadRequest, `{"error":"bad_request","reason":"not now"}`)
			return
		}
		reply(w, http.StatusOK, "[]")
	})
	c, _ := newClient(t, nil, f.URL)
	if _, err := c.View().Policies(t.Context(), "v"); err == nil {
		t.Error("no error")
	}
	broken = false
	for range 3 {
		if _, err := c.View().Policies(t.Context(), "v"); err != nil {
			t.Error(err)
		}
	}
	if f.count() != 3 { // the failure, then both lists once
		t.Errorf("requests: %v", f.requests())
	}
}
