package rabbitmqadmin

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// TestNotFoundIsBelievedOnlyFromRabbitMQ: a 404 that is taken for the broker's empties the state.
func TestNotFoundIsBelievedOnlyFromRabbitMQ(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { reply(w, status, body) }
	}
	vhostThen := func(rest http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !readableVHost(w, r) {
				rest(w, r)
			}
		}
	}
	for name, tc := range map[string]struct {
		handle           http.HandlerFunc
		gone, unreadable bool
	}{
		"RabbitMQ's, readable vhost":         {vhostThen(answer(404, objectNotFound)), true, false},
		"RabbitMQ's, everything is 404":      {answer(404, objectNotFound), false, true},
		"4.3's for a hidden vhost":           {answer(404, `{"error":"not_found","reason":"Not Found"}`), false, true},
		"4.3's, other things readable":       {vhostThen(answer(404, `{"error":"not_found","reason":"Not Found"}`)), false, true},
		"a vhost that is not there":          {answer(404, `{"error":"not_found","reason":"vhost_not_found"}`), false, true},
		"HTML, readable vhost":               {vhostThen(answer(404, "<html><body>404 page not found</body></html>")), false, false},
		"empty, readable vhost":              {vhostThen(answer(404, "")), false, false},
		"JSON of something else":             {vhostThen(answer(404, `{"error":"Not Found"}`)), false, false},
		"JSON of something else, two fields": {vhostThen(answer(404, `{"error":"Not Found","reason":"no route"}`)), false, false},
		"JSON list":                          {vhostThen(answer(404, `["Object Not Found"]`)), false, false},
		"the vhost question fails": {func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "amq.direct") {
				reply(w, http.StatusBadRequest, "")
				return
			}
			reply(w, http.StatusNotFound, objectNotFound)
		}, false, false},
		"the vhost question is answered by another": {func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "amq.direct") {
				reply(w, http.StatusOK, `{"status":"ok"}`)
				return
			}
			reply(w, http.StatusNotFound, objectNotFound)
		}, false, false},
		"the vhost is refused": {func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "amq.direct") {
				reply(w, http.StatusUnauthorized, `{"error":"not_authorised","reason":"User not authorised to access virtual host"}`)
				return
			}
			reply(w, http.StatusNotFound, objectNotFound)
		}, false, true},
		"410": {vhostThen(answer(410, objectNotFound)), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fake(t, tc.handle)
			c, _ := newClient(t, nil, f.URL)
			errs := map[string]error{
				"queue":           second(c.Queue(t.Context(), "v", "q")),
				"exchange":        second(c.Exchange(t.Context(), "v", "e")),
				"delete queue":    c.DeleteQueue(t.Context(), "v", "q"),
				"delete exchange": c.DeleteExchange(t.Context(), "v", "e"),
				"list":            second(c.Queues(t.Context(), "v")),
				"bindings":        second(c.QueueBindings(t.Context(), "v", "q")),
			}
			for what, err := range errs {
				isDelete := strings.HasPrefix(what, "delete")
				switch {
				case isDelete && tc.gone:
					if err != nil {
						t.Errorf("%s: %v", what, err)
					}
				case what == "list" || !tc.gone:
					if err == nil || errors.Is(err, ErrNotFound) {
						t.Errorf("%s: it is believed to be gone: %v", what, err)
					}
				case !errors.Is(err, ErrNotFound):
					t.Errorf("%s: %v", what, err)
				}
				if tc.unreadable && !errors.Is(err, ErrVHostUnreadable) {
					t.Errorf("%s: not known as an unreadable vhost: %v", what, err)
				}
			}
		})
	}
}

// TestWrongPrefixOnOneOfTwoEndpoints: what one endpoint showed says nothing about the other.
func TestWrongPrefixOnOneOfTwoEndpoints(t *testing.T) {
	t.Parallel()
	down := false
	good := fake(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case down:
			panic(http.ErrAbortHandler)
		case readableVHost(w, r):
		default:
			reply(w, http.StatusOK, queueJSON)
		}
	})
	wrong := fake(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusNotFound, objectNotFound) })
	c, _ := newClient(t, nil, good.URL, wrong.URL+"/wrong")
	must(t, second(c.Queue(t.Context(), "v", "q")))
	down = true
	if _, err := c.Queue(t.Context(), "v", "q"); !errors.Is(err, ErrVHostUnreadable) || errors.Is(err, ErrNotFound) {
		t.Errorf("the wrong endpoint is believed: %v", err)
	}
}

func TestVHostIsAskedForOnce(t *testing.T) {
	t.Parallel()
	f := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if !readableVHost(w, r) {
			reply(w, http.StatusNotFound, objectNotFound)
		}
	})
	c, _ := newClient(t, nil, f.URL)
	for range 3 {
		if _, err := c.Queue(t.Context(), "v", "q"); !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	}
	if f.count() != 4 {
		t.Errorf("requests: %q", f.requests())
	}
}

func TestBindTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	reason := "no exchange 'e' in vhost 'v'"
	f := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if !readableVHost(w, r) {
			reply(w, http.StatusNotFound, `{"error":"not_found","reason":"`+reason+`"}`)
		}
	})
	c, _ := newClient(t, nil, f.URL)
	var e *Error
	err := c.Bind(t.Context(), "v", topology.Binding{Source: "e", Destination: "q", RoutingKey: "k"})
	if !errors.Is(err, ErrNotFound) || !errors.As(err, &e) || !e.MissingExchange() {
		t.Errorf("missing exchange: %v", err)
	}
	reason = "no queue 'q' in vhost 'v'"
	err = c.Bind(t.Context(), "v", topology.Binding{Source: "e", Destination: "q", RoutingKey: "k"})
	if !errors.Is(err, ErrNotFound) || !errors.As(err, &e) || e.MissingExchange() {
		t.Errorf("missing queue: %v", err)
	}
}

func TestStrangeSuccess(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
	}{
		"a login page":  {200, "<html><title>Sign in</title></html>"},
		"another queue": {200, `{"name":"other","vhost":"v"}`},
		"another vhost": {200, `{"name":"q","vhost":"w"}`},
		"other JSON":    {200, `{"status":"ok"}`},
		"nothing":       {200, ""},
		"no content":    {204, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fake(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, tc.status, tc.body) })
			c, _ := newClient(t, nil, f.URL)
			var e *Error
			if _, err := c.Queue(t.Context(), "v", "q"); !errors.As(err, &e) || e.Advice == "" {
				t.Errorf("reading: %v", err)
			}
			if _, err := c.Ping(t.Context()); !errors.As(err, &e) {
				t.Errorf("ping: %v", err)
			}
			if tc.status == 200 {
				if err := c.DeleteQueue(t.Context(), "v", "q"); !errors.As(err, &e) {
					t.Errorf("deleting: %v", err)
				}
				if _, err := c.DeclareQueue(t.Context(), "v", topology.Queue{Name: "q"}); !errors.As(err, &e) {
					t.Errorf("creating: %v", err)
				}
			}
		})
	}
}
