package provider

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
)

// proxy stands between the provider and the broker. While intercept is set and
// answers a request (returns true), the broker does not see it.
type proxy struct {
	*httptest.Server
	intercept atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]
}

// newProxy starts a proxy that serves the broker below a path prefix.
func newProxy(t *testing.T, b *brokertest.Broker, prefix string, adjust ...func(*httptest.Server)) *proxy {
	t.Helper()
	target, err := url.Parse(b.ManagementURL())
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	p := &proxy{}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if intercept := p.intercept.Load(); intercept != nil && (*intercept)(w, r) {
			return
		}
		if prefix != "" && !strings.HasPrefix(r.URL.Path, prefix+"/api/") {
			notHere(w, r)
			return
		}
		http.StripPrefix(prefix, forward).ServeHTTP(w, r)
	}))
	secure := false
	for _, f := range adjust {
		f(p.Server)
		secure = secure || p.TLS != nil
	}
	if secure {
		p.StartTLS()
	} else {
		p.Start()
	}
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) answer(f func(w http.ResponseWriter, r *http.Request) bool) { p.intercept.Store(&f) }

func (p *proxy) answerNoMore() { p.intercept.Store(nil) }

// notHere is what a proxy says that has no route.
func notHere(w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte("<html><body><h1>404 Not Found</h1></body></html>"))
	return true
}

// configured is a runtime whose RabbitMQ comes from these environment variables, and what was said about them.
func configuredFrom(t *testing.T, env map[string]string) (*runtime, diag.Diagnostics) {
	t.Helper()
	rt := newRuntime(types.StringNull(), types.StringNull())
	diags := rt.configureRabbitMQ(t.Context(), types.ObjectNull(nil), func(name string) string { return env[strings.TrimPrefix(name, rabbitmqadmin.EnvName(""))] }, "test")
	return rt, diags
}

// quietLog is for servers whose clients are meant to fail.
func quietLog() *log.Logger { return log.New(io.Discard, "", 0) }
