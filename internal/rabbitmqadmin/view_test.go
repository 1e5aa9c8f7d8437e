package rabbitmqadmin

import (
	"context"
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
	for _, from := range []string{"e", "f"} {
		byName["/api/exchanges/v/"+from+"/bindings/source"] = "[]"
		byName["/api/exchanges/v/"+from+"/bindings/destination"] = "[]"
	}
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

// TestViewReadsAgainWhatWasWritten counts the requests; TestLiveViewAfterWrites compares the answers.
func TestViewReadsAgainWhatWasWritten(t *testing.T) {
	t.Parallel()
	f, c := viewed(t, 20)
	ctx := t.Context()
	from := func(exchange string) error { _, _, err := c.View().ExchangeBindings(ctx, "v", exchange); return err }
	bound := func(queue string) error { _, err := c.View().QueueBindings(ctx, "v", queue); return err }
	queue := func(name string) error { _, err := c.View().Queue(ctx, "v", name); return err }
	list := func(string) error { _, err := c.View().Queues(ctx, "v"); return err }
	must(t, list(""))
	for i := range bindingsAlone + 1 {
		must(t, bound(fmt.Sprintf("q%03d", i)))
	}
	must(t, from("e"))
	_, err := c.DeclareQueue(ctx, "v", topology.Queue{Name: "q000", Type: topology.Classic})
	must(t, err)
	must(t, c.Bind(ctx, "v", topology.Binding{Source: "f", Destination: "q001", RoutingKey: "more"}))
	must(t, c.DeleteQueue(ctx, "v", "q002"))
	for _, tc := range []struct {
		what string
		ask  func(string) error
		name string
		want []string
	}{
		{"declared", queue, "q000", []string{"queues/v/q000"}},
		{"declared and asked for again", queue, "q000", nil},
		{"untouched", queue, "q001", nil},
		{"bound", bound, "q001", []string{"queues/v/q001/bindings"}},
		{"bound, its source", from, "f", []string{"exchanges/v/f/bindings/source"}},
		{"deleted, its bindings", bound, "q002", []string{"queues/v/q002/bindings"}},
		{"deleted, where they came from", from, "e", []string{"exchanges/v/e/bindings/source"}},
		{"nothing to do with it", bound, "q003", nil},
		{"deleted, in the list", list, "", []string{"queues/v/q002"}},
	} {
		before := f.count()
		must(t, tc.ask(tc.name))
		var got []string
		for _, r := range f.requests()[before:] {
			path, _, _ := strings.Cut(strings.TrimPrefix(r, "GET /api/"), "?")
			got = append(got, path)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: asked for %v, want %v", tc.what, got, tc.want)
		}
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

// TestViewKeepsFailures: what failed took its retries, and fails at once for everybody else; a list that failed has its
// objects read by themselves, side by side.
func TestViewKeepsFailures(t *testing.T) {
	t.Parallel()
	f := fake(t, func(w http.ResponseWriter, r *http.Request) {
		switch name, single := strings.CutPrefix(r.URL.Path, "/api/queues/v/"); {
		case single && name != "broken":
			reply(w, http.StatusOK, fmt.Sprintf(`{"name":%q,"vhost":"v"}`, name))
		default:
			reply(w, http.StatusInternalServerError, `{"error":"internal_server_error","reason":"oops"}`)
		}
	})
	var mu sync.Mutex
	var logged []string
	c, _ := newClient(t, func(cfg *Config) {
		cfg.MaxRetries = 2
		cfg.Logf = func(_ context.Context, message string, fields map[string]any) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, fmt.Sprint(message, fields))
		}
	}, f.URL)
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			if _, err := c.View().Queue(t.Context(), "v", fmt.Sprint(i)); err != nil {
				t.Errorf("queue %d: %v", i, err)
			}
			for what, err := range map[string]error{
				"a queue":       errOf(c.View().Queue(t.Context(), "v", "broken")),
				"the queues":    errOf(c.View().Queues(t.Context(), "v")),
				"the policies":  errOf(c.View().Policies(t.Context(), "v")),
				"the consumers": errOf(c.View().Consumers(t.Context(), "v", "q")),
			} {
				if err == nil || !strings.Contains(err.Error(), "oops") {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
	wg.Wait()
	seen := map[string]int{}
	for _, r := range f.requests() {
		path, _, _ := strings.Cut(r, "?")
		seen[path]++
	}
	for path, want := range map[string]int{
		"GET /api/queues/v": 3, "GET /api/queues/v/broken": 3, "GET /api/policies/v": 3, "GET /api/whoami": 3, "GET /api/queues/v/7": 1,
	} {
		if seen[path] != want {
			t.Errorf("%s was asked %d times, want %d", path, seen[path], want)
		}
	}
	if !slices.ContainsFunc(logged, func(line string) bool { return strings.Contains(line, "one by one") && strings.Contains(line, "oops") }) {
		t.Error("nothing in the log says why there is no list")
	}
}

// errOf is the error of two results.
func errOf[T any](_ T, err error) error { return err }

// TestViewReadsAgainWhatEndedWithItsCaller: who was cancelled says nothing about the broker.
func TestViewReadsAgainWhatEndedWithItsCaller(t *testing.T) {
	t.Parallel()
	f, c := viewed(t, 20)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.View().Queue(cancelled, "v", "q000"); !errors.Is(err, context.Canceled) {
		t.Errorf("the queue: %v", err)
	}
	if _, err := c.View().Queues(cancelled, "v"); !errors.Is(err, context.Canceled) {
		t.Errorf("the list: %v", err)
	}
	if all, err := c.View().Queues(t.Context(), "v"); err != nil || len(all) != 20 {
		t.Errorf("%d queues, %v, want 20", len(all), err)
	}
	if q, err := c.View().Queue(t.Context(), "v", "q000"); err != nil || q.Name != "q000" {
		t.Errorf("the queue: %+v, %v; asked: %v", q, err, f.requests())
	}
}

// TestViewAsksARefusedListOnce: where the vhost cannot be read, single reads are told the same.
func TestViewAsksARefusedListOnce(t *testing.T) {
	t.Parallel()
	f := fake(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusNotFound, objectNotFound) })
	c, _ := newClient(t, nil, f.URL)
	for i := range 50 {
		if _, err := c.View().Queue(t.Context(), "v", fmt.Sprint(i)); !errors.Is(err, ErrVHostUnreadable) {
			t.Errorf("queue %d: %v", i, err)
		}
	}
	if got, want := f.count(), 2*queuesAlone+1; got > want { // each asks whether the vhost is readable
		t.Errorf("%d requests, want at most %d: %v", got, want, f.requests())
	}
}

// TestViewBelievesTheListWhileASingleReadFails: an exchange whose read is on its way when the list comes, and then fails,
// is not gone.
func TestViewBelievesTheListWhileASingleReadFails(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	ask := sync.OnceFunc(func() { close(asked) }) // the read is retried
	f := fake(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/exchanges/v/held":
			ask()
			<-answer
			reply(w, http.StatusInternalServerError, `{"error":"internal_server_error","reason":"oops"}`)
		case "/api/exchanges/v":
			reply(w, http.StatusOK, `{"items":[{"name":"held","vhost":"v","type":"topic"},{"name":"other","vhost":"v","type":"direct"}],"page":1,"page_count":1,"total_count":2}`)
		default:
			reply(w, http.StatusOK, `{"name":"amq.topic","vhost":"v","type":"topic"}`)
		}
	})
	c, _ := newClient(t, nil, f.URL)
	held := make(chan error, 1)
	go func() {
		e, err := c.View().Exchange(t.Context(), "v", "held")
		if err == nil && e.Type != "topic" {
			err = fmt.Errorf("it is %+v", e)
		}
		held <- err
	}()
	<-asked
	for _, name := range []string{"amq.topic", "other"} { // the second one reads the list
		_, err := c.View().Exchange(t.Context(), "v", name)
		must(t, err)
	}
	e, err := c.View().Exchange(t.Context(), "v", "held")
	if err != nil || e.Type != "topic" {
		t.Errorf("while it is read: %+v, %v", e, err)
	}
	close(answer)
	if err := <-held; err != nil {
		t.Errorf("who read it: %v", err)
	}
	if e, err := c.View().Exchange(t.Context(), "v", "held"); err != nil || e.Type != "topic" {
		t.Errorf("after its read failed: %+v, %v", e, err)
	}
}
