package rabbitmqadmin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func TestUnauthorized(t *testing.T) {
	t.Parallel()
	for body, tc := range map[string]struct {
		credentials, permission bool
		says                    string
	}{
		`{"error":"not_authorized","reason":"Login failed"}`:                               {true, false, "does not accept user"},
		`{"error":"not_authorized","reason":"Not_Authorized"}`:                             {true, false, "does not accept user"},
		`{"error":"not_authorised","reason":"Not management user"}`:                        {false, true, `tag "management"`},
		`{"error":"not_authorised","reason":"Not administrator user"}`:                     {false, true, "tag that the reason names"},
		`{"error":"not_authorised","reason":"User not authorised to access virtual host"}`: {false, true, "no permissions in vhost"},
		`{"error":"not_authorised","reason":"Access refused."}`:                            {false, true, "takes configure on it"},
		`<html>401 Authorization Required</html>`:                                          {false, false, "did not come from RabbitMQ"},
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			f := fake(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusUnauthorized, body) })
			c, _ := newClient(t, nil, f.URL)
			_, err := c.DeclareQueue(t.Context(), "v", topology.Queue{Name: "q"})
			if !errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrCredentials) != tc.credentials || errors.Is(err, ErrPermission) != tc.permission {
				t.Errorf("kinds of %v", err)
			}
			for _, want := range []string{tc.says, `create queue "q" in vhost "v"`, "401", "PUT " + f.URL + "/api/queues/v/q"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

func TestInequivalent(t *testing.T) {
	t.Parallel()
	const reason = "inequivalent arg 'x-message-ttl' for queue 'q' in vhost 'v': received '1' but current is '2'"
	f := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusBadRequest, `{"error":"bad_request","reason":"`+reason+`"}`)
	})
	c, _ := newClient(t, nil, f.URL)
	var e *InequivalentError
	if _, err := c.DeclareQueue(t.Context(), "v", topology.Queue{Name: "q"}); !errors.As(err, &e) || e.Queue != "q" || e.Reason != reason {
		t.Errorf("queue: %v", err)
	}
	if err := c.CreateExchange(t.Context(), "v", LiveExchange{Name: "e", Type: "direct"}); !errors.As(err, &e) || e.Exchange != "e" {
		t.Errorf("exchange: %v", err)
	}
}

func TestProxyPagesAreCut(t *testing.T) {
	t.Parallel()
	f := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, "<html>\n<body>\n  502 Bad\tGateway"+strings.Repeat(" lorem ipsum", 1000))
	})
	c, _ := newClient(t, nil, f.URL)
	_, err := c.Queue(t.Context(), "v", "q")
	if text := err.Error(); !strings.Contains(text, `"<html> <body> 502 Bad Gateway lorem`) || len(text) > 600 || strings.Contains(text, "\n") {
		t.Errorf("%d bytes: %v", len(text), err)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := fake(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, queueJSON) })
	f := fake(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusPermanentRedirect)
	})
	c, _ := newClient(t, nil, f.URL)
	if _, err := c.Queue(t.Context(), "v", "q"); err == nil || elsewhere.count() != 0 || !strings.Contains(err.Error(), elsewhere.URL) {
		t.Errorf("requests elsewhere: %d, error %v", elsewhere.count(), err)
	}
}

// TestSecretsAreNowhere collects every error and every log line that failures give.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	const headerSecret = "bearer-that-must-not-show"
	var mu sync.Mutex
	var said []string
	say := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, text)
	}
	for _, status := range []int{0, 200, 204, 302, 400, 401, 403, 404, 405, 429, 500, 503} {
		f := fake(t, func(w http.ResponseWriter, r *http.Request) {
			if user, password, ok := r.BasicAuth(); !ok || user != testUser || password != testPassword {
				t.Errorf("credentials are not sent: %q", r.Header.Get("Authorization"))
			}
			if r.Header.Get("X-Token") != headerSecret {
				t.Errorf("the header is not sent: %q", r.Header)
			}
			if status == 0 {
				panic(http.ErrAbortHandler)
			}
			reply(w, status, `{"error":"e","reason":"r"}`)
		})
		c, _ := newClient(t, func(cfg *Config) {
			cfg.Headers = http.Header{"x-token": {headerSecret}}
			cfg.MaxRetries = 1
			cfg.AMQPEndpoints = []string{"amqp://127.0.0.1:1"}
			cfg.Logf = func(_ context.Context, msg string, fields map[string]any) { say(fmt.Sprint(msg, fields)) }
		}, f.URL)
		_, ping := c.Ping(t.Context())
		_, declared := c.DeclareQueue(t.Context(), "v", topology.Queue{Name: "q"})
		_, deleted := c.SafeDelete(t.Context(), SafeDelete{VHost: "v", Queues: []string{"q"}})
		for _, err := range []error{ping, declared, deleted, second(c.Queue(t.Context(), "v", "q"))} {
			if err != nil {
				say(fmt.Sprintf("%v %+v", err, err))
			}
		}
	}
	for _, endpoint := range []string{
		"http://u:" + testPassword + "@h:1", "http://u:" + testPassword + "@h:port", "ftp://u:" + testPassword + "@h", "http://u:" + testPassword + "%zz@h", "u:" + testPassword + "@h",
	} {
		_, err := New(Config{Endpoints: []string{endpoint}})
		say(fmt.Sprint(err))
		_, err = New(Config{Endpoints: []string{"http://h"}, AMQPEndpoints: []string{endpoint}})
		say(fmt.Sprint(err))
	}
	_, err := New(Config{Endpoints: []string{"http://h"}, Headers: http.Header{"X-Token": {headerSecret + "\r\nX-Other: 1"}}})
	say(fmt.Sprint(err))
	if len(said) < 60 {
		t.Errorf("only %d texts", len(said))
	}
	for _, text := range said {
		for _, secret := range []string{testPassword, headerSecret, "dGVycmFmb3Jt"} {
			if strings.Contains(text, secret) {
				t.Errorf("a secret shows: %s", text)
			}
		}
	}
}
