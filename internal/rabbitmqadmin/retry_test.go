package rabbitmqadmin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func TestRetries(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		statuses   []int // one after the other, then 200
		maxRetries int
		requests   int
		succeeds   bool
	}{
		"at once":               {nil, 0, 1, true},
		"500":                   {[]int{500}, 0, 2, true},
		"502, 503, 504, 429":    {[]int{502, 503, 504, 429}, 0, 5, true},
		"one more than allowed": {[]int{500, 500, 500, 500, 500}, 0, 5, false},
		"none allowed":          {[]int{500}, -1, 1, false},
		"two allowed":           {[]int{503, 503, 503}, 2, 3, false},
		"400":                   {[]int{400}, 0, 1, false},
		"401":                   {[]int{401}, 0, 1, false},
		"403":                   {[]int{403}, 0, 1, false},
		"405":                   {[]int{405}, 0, 1, false},
		"408":                   {[]int{408}, 0, 1, false},
		"409":                   {[]int{409}, 0, 1, false},
		"412":                   {[]int{412}, 0, 1, false},
		"302":                   {[]int{302}, 0, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			f := fake(t, func(w http.ResponseWriter, _ *http.Request) {
				if i := int(n.Add(1)); i <= len(tc.statuses) {
					reply(w, tc.statuses[i-1], `{"error":"some_error","reason":"some reason"}`)
					return
				}
				reply(w, http.StatusOK, queueJSON)
			})
			c, waits := newClient(t, func(cfg *Config) { cfg.MaxRetries = tc.maxRetries }, f.URL)
			_, err := c.Queue(t.Context(), "v", "q")
			if (err == nil) != tc.succeeds || f.count() != tc.requests || len(*waits) != tc.requests-1 {
				t.Fatalf("after %d requests and %d waits: %v", f.count(), len(*waits), err)
			}
			var e *Error
			if err != nil && (!errors.As(err, &e) || e.Status != tc.statuses[len(tc.statuses)-1]) {
				t.Errorf("error: %#v", err)
			}
			for i, wait := range *waits {
				if limit := min(maxBackoff, firstBackoff<<i); wait < limit/2 || wait > limit {
					t.Errorf("wait %d is %s, want %s to %s", i, wait, limit/2, limit)
				}
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]struct {
		atLeast, atMost time.Duration
		givesUp         bool
	}{
		"7":     {7 * time.Second, 7 * time.Second, false},
		"30":    {30 * time.Second, 30 * time.Second, false},
		"31":    {0, 0, true},
		"0":     {firstBackoff / 2, firstBackoff, false},
		"-5":    {firstBackoff / 2, firstBackoff, false},
		"later": {firstBackoff / 2, firstBackoff, false},
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): {firstBackoff / 2, firstBackoff, false},
		time.Now().Add(time.Hour).UTC().Format(http.TimeFormat):  {0, 0, true},
	} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			first := true
			f := fake(t, func(w http.ResponseWriter, _ *http.Request) {
				if first {
					first = false
					w.Header().Set("Retry-After", header)
					reply(w, http.StatusTooManyRequests, "{}")
					return
				}
				reply(w, http.StatusOK, queueJSON)
			})
			c, waits := newClient(t, nil, f.URL)
			_, err := c.Queue(t.Context(), "v", "q")
			if want.givesUp {
				if err == nil || len(*waits) != 0 || !strings.Contains(err.Error(), "asks to be left alone") {
					t.Fatalf("waits %v, error %v", *waits, err)
				}
				return
			}
			if err != nil || len(*waits) != 1 || (*waits)[0] < want.atLeast || (*waits)[0] > want.atMost {
				t.Fatalf("waits %v, error %v", *waits, err)
			}
		})
	}
}

func TestRetryAfterAsADate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	header := http.Header{"Retry-After": {"Mon, 04 May 2026 12:00:20 GMT"}}
	if got := retryAfter(header, now); got != 20*time.Second {
		t.Error(got)
	}
	if got := retryAfter(header, now.Add(time.Minute)); got != 0 {
		t.Error(got)
	}
}

func TestFailover(t *testing.T) {
	t.Parallel()
	dead := httptest.NewServer(nil)
	dead.Close()
	broken := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusServiceUnavailable, "<html>no backend</html>")
	})
	good := fake(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, queueJSON) })
	c, waits := newClient(t, nil, dead.URL, broken.URL, good.URL)
	for range 3 {
		if _, err := c.Queue(t.Context(), "v", "q"); err != nil {
			t.Fatal(err)
		}
	}
	if len(*waits) != 0 {
		t.Errorf("waited before trying another endpoint: %v", *waits)
	}
	if broken.count() != 1 || good.count() != 3 {
		t.Errorf("requests to the broken one: %d (want 1), to the good one: %d (want 3, it is remembered)", broken.count(), good.count())
	}
}

func TestFailoverEndsWithTheFirstRealAnswer(t *testing.T) {
	t.Parallel()
	refusing := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusUnauthorized, `{"error":"not_authorized","reason":"Login failed"}`)
	})
	other := fake(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, queueJSON) })
	c, _ := newClient(t, nil, refusing.URL, other.URL)
	if _, err := c.Queue(t.Context(), "v", "q"); !errors.Is(err, ErrCredentials) || other.count() != 0 {
		t.Errorf("other endpoint asked %d times, error %v", other.count(), err)
	}
}

func TestTooManyRequestsDoesNotMoveOn(t *testing.T) {
	t.Parallel()
	limited := fake(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusTooManyRequests, "") })
	other := fake(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, queueJSON) })
	c, waits := newClient(t, func(cfg *Config) { cfg.MaxRetries = 2 }, limited.URL, other.URL)
	if _, err := c.Queue(t.Context(), "v", "q"); err == nil || limited.count() != 3 || other.count() != 0 || len(*waits) != 2 {
		t.Errorf("limited %d, other %d, waits %v, error %v", limited.count(), other.count(), *waits, err)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	dead := httptest.NewServer(nil)
	dead.Close()
	c, waits := newClient(t, nil, dead.URL, "http://host.invalid:15672/prefix/")
	_, err := c.Queue(t.Context(), "v", "q")
	var e *UnreachableError
	if !errors.As(err, &e) || len(e.Causes) != 2 || e.Tries != 1+DefaultMaxRetries || len(*waits) != DefaultMaxRetries {
		t.Fatalf("error %#v, waits %v", err, *waits)
	}
	for _, want := range []string{dead.URL, "http://host.invalid:15672/prefix", "nothing listens there", `read queue "q" in vhost "v"`, "5 tries"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error: %v", want, err)
		}
	}
}

func TestRequestTimeout(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	stuck := fake(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	good := fake(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, queueJSON) })
	quick := func(cfg *Config) { cfg.RequestTimeout, cfg.MaxRetries = 200*time.Millisecond, 1 }
	c, _ := newClient(t, quick, stuck.URL)
	_, err := c.Queue(t.Context(), "v", "q")
	var e *UnreachableError
	if !errors.As(err, &e) || e.Tries != 2 || !strings.Contains(err.Error(), "no answer within 200ms") {
		t.Errorf("error: %v", err)
	}
	c, _ = newClient(t, func(cfg *Config) { cfg.RequestTimeout = 200 * time.Millisecond }, stuck.URL, good.URL)
	if _, err := c.Queue(t.Context(), "v", "q"); err != nil {
		t.Errorf("with another endpoint: %v", err)
	}
}

// TestTimeoutIncludesTheBody: a server that sends headers and then hangs.
func TestTimeoutIncludesTheBody(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	stuck := fake(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	c, _ := newClient(t, func(cfg *Config) { cfg.RequestTimeout, cfg.MaxRetries = 50*time.Millisecond, -1 }, stuck.URL)
	if _, err := c.Queue(t.Context(), "v", "q"); err == nil || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Error(err)
	}
}

func TestCancellationIsPrompt(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}, 100), make(chan struct{})
	defer close(release)
	f := fake(t, func(_ http.ResponseWriter, r *http.Request) {
		started <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	failing := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		started <- struct{}{}
		reply(w, http.StatusInternalServerError, "")
	})
	for name, server := range map[string]*fakeBroker{"while a request runs": f, "between tries": failing} {
		c, _ := newClient(t, nil, server.URL, server.URL)
		c.pause = pause
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := c.Queue(ctx, "v", "q")
			done <- err
		}()
		<-started
		begin := time.Now()
		cancel()
		err := <-done
		if !errors.Is(err, context.Canceled) || time.Since(begin) > 4*time.Second {
			t.Errorf("%s: after %s: %v", name, time.Since(begin), err)
		}
		var e *Error
		if !errors.As(err, &e) || e.Object != `queue "q"` {
			t.Errorf("%s: %#v", name, err)
		}
	}
}

func TestDeadlineIsNotSpentOnWaiting(t *testing.T) {
	t.Parallel()
	f := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		reply(w, http.StatusServiceUnavailable, "")
	})
	c, waits := newClient(t, nil, f.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := c.Queue(ctx, "v", "q")
	var e *Error
	if !errors.As(err, &e) || e.Status != http.StatusServiceUnavailable || len(*waits) != 0 {
		t.Errorf("waits %v, error %v", *waits, err)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	addresses := make(chan string, 100)
	f := fake(t, func(w http.ResponseWriter, r *http.Request) {
		addresses <- r.RemoteAddr
		if r.Close {
			t.Error("the client asks to close the connection")
		}
		reply(w, http.StatusOK, queueJSON)
	})
	c, _ := newClient(t, nil, f.URL)
	for range 20 {
		must(t, second(c.Queue(t.Context(), "v", "q")))
	}
	first := <-addresses
	for range 19 {
		if got := <-addresses; got != first {
			t.Fatalf("a second connection: %s, %s", first, got)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestLostAnswers: what a declaration says when the answer to its first try was lost.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first   string
		answers []int
		want    Outcome
	}{
		"nothing lost, made":           {"", []int{201}, Created},
		"nothing lost, there before":   {"", []int{204}, Existed},
		"connection broken, then 204":  {"hangup", []int{204}, Unknown},
		"connection broken, then 201":  {"hangup", []int{201}, Created},
		"gateway timeout, then 204":    {"504", []int{204}, Unknown},
		"too many requests, then 204":  {"429", []int{204}, Existed},
		"connection refused, then 204": {"refused", []int{204}, Existed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := true
			f := fake(t, func(w http.ResponseWriter, _ *http.Request) {
				switch {
				case first && tc.first == "hangup":
					first = false
					panic(http.ErrAbortHandler)
				case first && tc.first != "" && tc.first != "refused":
					first = false
					status, _ := strconv.Atoi(tc.first)
					w.WriteHeader(status)
				default:
					w.WriteHeader(tc.answers[0])
				}
			})
			endpoints := []string{f.URL}
			if tc.first == "refused" {
				dead := httptest.NewServer(nil)
				dead.Close()
				endpoints = []string{dead.URL, f.URL}
			}
			c, _ := newClient(t, nil, endpoints...)
			got, err := c.DeclareQueue(t.Context(), "v", topology.Queue{Name: "q"})
			if err != nil || got != tc.want {
				t.Errorf("got %s, %v; want %s", got, err, tc.want)
			}
		})
	}
}

// TestRetriedDeleteIsSuccess: the first try deleted, its answer was lost, and the second finds nothing.
func TestRetriedDeleteIsSuccess(t *testing.T) {
	t.Parallel()
	first := true
	f := fake(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case readableVHost(w, r):
		case first:
			first = false
			panic(http.ErrAbortHandler)
		default:
			reply(w, http.StatusNotFound, objectNotFound)
		}
	})
	c, _ := newClient(t, nil, f.URL)
	must(t, c.DeleteQueue(t.Context(), "v", "q"))
	if want := []string{"DELETE /api/queues/v/q", "DELETE /api/queues/v/q", "GET /api/exchanges/v/amq.direct"}; !slices.Equal(f.requests(), want) {
		t.Errorf("requests: %q", f.requests())
	}
}
