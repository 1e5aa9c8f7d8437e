package rabbitmqadmin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func TestLivePing(t *testing.T) {
	t.Parallel()
	c, b, _ := live(t, nil)
	got, err := c.Ping(t.Context())
	must(t, err)
	if got.Version != b.Version() || got.ClusterName == "" || got.Node == "" || got.StatisticsDisabled || !slices.Contains(got.ExchangeTypes, "direct") {
		t.Errorf("%+v", got)
	}
}

func TestLiveQueue(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	for _, kind := range bothTypes {
		makeQueue(t, c, vhost, string(kind), kind, topology.Arguments{topology.ArgMessageTTL: int64(3_600_000)})
		q, err := c.Queue(t.Context(), vhost, string(kind))
		must(t, err)
		if q.Type != kind || !q.Durable || q.AutoDelete || q.Exclusive || q.Arguments[topology.ArgMessageTTL] != int64(3_600_000) {
			t.Errorf("%+v", q)
		}
		brokertest.Publish(t, b, vhost, "", string(kind), amqp091.Publishing{}, amqp091.Publishing{})
		_, err = brokertest.Channel(t, b, vhost).Consume(string(kind), "", true, false, false, false, nil)
		must(t, err)
		brokertest.WaitFor(t, func() (bool, string) {
			q, err := c.Queue(t.Context(), vhost, string(kind))
			must(t, err)
			return q.Messages != nil && *q.Messages == 0 && q.Ready != nil && q.Unacknowledged != nil && q.Consumers == 1, fmt.Sprintf("%+v", q)
		})
	}
	_, err := brokertest.Channel(t, b, vhost).QueueDeclare("exclusive", false, true, true, false, nil)
	must(t, err)
	q, err := c.Queue(t.Context(), vhost, "exclusive")
	if err != nil || !q.Exclusive || !q.AutoDelete {
		t.Errorf("%+v, %v", q, err)
	}
	var e *InequivalentError
	_, err = c.DeclareQueue(t.Context(), vhost, topology.Queue{Name: "quorum", Arguments: topology.Arguments{topology.ArgQueueType: "quorum", topology.ArgMessageTTL: int64(1)}})
	if !errors.As(err, &e) || !strings.Contains(e.Reason, "x-message-ttl") {
		t.Errorf("another TTL: %v", err)
	}
	makeExchange(t, c, vhost, "e", "direct")
	makeExchange(t, c, vhost, "e", "direct")
	if err := c.CreateExchange(t.Context(), vhost, LiveExchange{Name: "e", Type: "fanout", Durable: true}); !errors.As(err, &e) || e.Exchange != "e" {
		t.Errorf("another type: %v", err)
	}
}

// TestLiveListsThatAreNotPaged: the reason why a [listing] is of queues and exchanges alone.
func TestLiveListsThatAreNotPaged(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	makeQueue(t, c, vhost, "q", topology.Classic, nil)
	for i := range 3 {
		bind(t, c, vhost, bindingTo("amq.direct", "q", fmt.Sprint(i)))
	}
	for kind, paged := range map[string]bool{"queues": true, "exchanges": true, "bindings": false, "consumers": false, "policies": false} {
		status, answer := brokertest.Request(t, b, http.MethodGet, "/api/"+kind+"/"+url.PathEscape(vhost)+"?page=1&page_size=1", nil)
		var page page[json.RawMessage]
		if err := json.Unmarshal(answer, &page); status != http.StatusOK || (err == nil) != paged {
			t.Errorf("%s: %d %s, paged %v", kind, status, answer, paged)
		}
	}
}

// TestLiveManyExchanges: one request for few exchanges, two for many, pages for very many.
func TestLiveManyExchanges(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	const n = 503
	var group errgroup.Group
	group.SetLimit(8)
	for i := range n {
		group.Go(func() error {
			return c.CreateExchange(t.Context(), vhost, LiveExchange{Name: fmt.Sprintf("e-%04d", i), Type: "topic", Durable: true})
		})
	}
	must(t, group.Wait())
	check := func(what string, c *Client, want int64) {
		t.Helper()
		before := c.Requests()
		got, err := c.listExchanges(t.Context(), vhost)
		must(t, err)
		seen := map[string]LiveExchange{}
		for _, e := range got {
			seen[e.Name] = e
		}
		const builtIn = 7
		if made := c.Requests() - before; len(got) != n+builtIn || len(seen) != n+builtIn || made != want {
			t.Errorf("%s: %d exchanges, %d names, %d requests (want %d)", what, len(got), len(seen), made, want)
		}
		if e := seen["e-0500"]; e.Type != "topic" || !e.Durable || e.VHost != vhost {
			t.Errorf("%s: %+v", what, e)
		}
	}
	check("the first time", c, 2)
	check("again", c, 1)
	paged := liveClient(t, b, nil)
	paged.pageAbove = 400
	check("by page", paged, 2)
	told := liveClient(t, b, nil)
	_, err := told.Ping(t.Context())
	must(t, err)
	check("told how many there are", told, 1)
}

// TestPagesThatChangeAreReadAgain: what was deleted meanwhile takes others from their page, or the last page away.
func TestPagesThatChangeAreReadAgain(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]http.HandlerFunc{
		"another total": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusOK, `{"items":[{"name":"c","vhost":"v"}],"page":2,"page_count":2,"total_count":2}`)
		},
		"no such page": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusBadRequest, `{"error":"page_out_of_range","reason":"Page out of range, page: 2 page size: 500, len: 1"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := false
			f := fake(t, func(w http.ResponseWriter, r *http.Request) {
				switch page := r.URL.Query().Get("page"); {
				case page == "2" && !changed:
					changed = true
					second(w, r)
				case page == "2":
					reply(w, http.StatusOK, `{"items":[{"name":"c","vhost":"v"}],"page":2,"page_count":2,"total_count":2}`)
				case changed:
					reply(w, http.StatusOK, `{"items":[{"name":"a","vhost":"v"}],"page":1,"page_count":2,"total_count":2}`)
				default:
					reply(w, http.StatusOK, `{"items":[{"name":"a","vhost":"v"},{"name":"b","vhost":"v"}],"page":1,"page_count":2,"total_count":3}`)
				}
			})
			c, _ := newClient(t, nil, f.URL)
			c.pageAbove = 1
			got, err := c.listExchanges(t.Context(), "v")
			if err != nil || len(got) != 2 || got[0].Name != "a" || got[1].Name != "c" {
				t.Errorf("%+v, %v, after\n%s", got, err, strings.Join(f.requests(), "\n"))
			}
		})
	}
}

// TestLiveManyQueues: one request for few queues, two for many, pages for very many.
func TestLiveManyQueues(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	c, b, vhost := live(t, func(cfg *Config) {
		cfg.Logf = func(context.Context, string, map[string]any) { requests.Add(1) }
	})
	const n = 1103
	var wg sync.WaitGroup
	names := make(chan string)
	for range 8 {
		wg.Go(func() {
			for name := range names {
				if err := c.CreateQueue(t.Context(), vhost, topology.Queue{Name: name, Arguments: topology.Arguments{topology.ArgQueueType: "classic"}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range n {
		names <- fmt.Sprintf("q-%04d", i)
	}
	close(names)
	wg.Wait()

	// Policies show in lists at once.
	putPolicy(t, b, vhost, "some", `{"pattern":"^q-0000$","apply-to":"queues","definition":{"max-length":5}}`)
	check := func(what string, c *Client, want int64) {
		t.Helper()
		requests.Store(0)
		got, err := c.Queues(t.Context(), vhost)
		must(t, err)
		seen := map[string]LiveQueue{}
		for _, q := range got {
			seen[q.Name] = q
		}
		if len(got) != n || len(seen) != n || requests.Load() != want {
			t.Errorf("%s: %d queues, %d names, %d requests (want %d)", what, len(got), len(seen), requests.Load(), want)
		}
		if q := seen["q-0000"]; q.Policy != "some" || q.Arguments[topology.ArgQueueType] != "classic" || q.Messages != nil || q.VHost != vhost {
			t.Errorf("%s: %+v", what, q)
		}
	}
	check("the first time", c, 2)
	check("again", c, 1)
	paged := liveClient(t, b, func(cfg *Config) { cfg.Logf = c.cfg.Logf })
	paged.pageAbove = 1000
	check("by page", paged, 3)
	depths, err := paged.DepthsNow(t.Context(), vhost, []string{"q-0000", "q-1102", "q-9999"})
	must(t, err)
	if !depths[0].Exists || !depths[0].Known || !depths[1].Exists || depths[2].Exists {
		t.Errorf("depths by page: %+v", depths)
	}
}

// TestLiveDelayedRetries: a message that waits to be redelivered is in the total alone.
func TestLiveDelayedRetries(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	if !brokertest.HasVersion(b, "4.3") {
		t.Skip("delayed retries came with 4.3")
	}
	makeQueue(t, c, vhost, "q", topology.Quorum, topology.Arguments{"x-delayed-retry-type": "all", "x-delayed-retry-min": int64(600_000), "x-delayed-retry-max": int64(600_000)})
	brokertest.Publish(t, b, vhost, "", "q", amqp091.Publishing{})
	d, ok, err := brokertest.Channel(t, b, vhost).Get("q", false)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	must(t, d.Reject(true))
	brokertest.WaitFor(t, func() (bool, string) {
		depths, err := c.DepthsNow(t.Context(), vhost, []string{"q"})
		must(t, err)
		d := depths[0]
		return d.Total == 1 && d.Ready == 0, fmt.Sprintf("%+v", d)
	})
	result, err := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"q"}})
	_ = wantRefused(t, result, err, "q")
}

// TestLiveCountsAreRecent measures what SafeDelete relies on: how long after a publish the counts of queues that
// reported before know of it. 5.1 s was the most that was seen.
func TestLiveCountsAreRecent(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	queues := make([]string, 6)
	for i := range queues {
		queues[i] = fmt.Sprint("q", i)
		makeQueue(t, c, vhost, queues[i], topology.Quorum, nil)
	}
	for _, queue := range queues {
		waitKnown(t, c, vhost, queue)
	}
	published := map[string]time.Time{}
	for _, queue := range queues {
		brokertest.Publish(t, b, vhost, "", queue, amqp091.Publishing{})
		published[queue] = time.Now()
	}
	brokertest.WaitFor(t, func() (bool, string) {
		asked := time.Now()
		list, err := c.readCounts(t.Context(), vhost)
		must(t, err)
		for queue, at := range published {
			age := asked.Sub(at)
			switch {
			case list[queue].total == 1:
				delete(published, queue)
			case age > c.settling():
				t.Fatalf("%s after a publish the counts of %q do not know it", age, queue)
			}
		}
		return len(published) == 0, "not all are known"
	})
}
