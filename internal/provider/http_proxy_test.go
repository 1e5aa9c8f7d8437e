package provider

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

// forwardProxy is an HTTP proxy as companies have them: it takes absolute URLs and CONNECT, and leads to one address
// whatever host it is asked for, so that tests can use names that only the proxy knows.
type forwardProxy struct {
	*httptest.Server
	requests, refused atomic.Int64
}

// newForwardProxy starts a proxy to target. With a user it wants that user's password.
func newForwardProxy(t *testing.T, target, user, password string) *forwardProxy {
	t.Helper()
	p := &forwardProxy{}
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", target
		r.Out.Header.Del("Proxy-Authorization")
	}, Transport: &http.Transport{}}
	t.Cleanup(forward.Transport.(*http.Transport).CloseIdleConnections)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		if user != "" && r.Header.Get("Proxy-Authorization") != want {
			p.refused.Add(1)
			w.Header().Set("Proxy-Authenticate", "Basic")
			http.Error(w, "who are you?", http.StatusProxyAuthRequired)
			return
		}
		if r.Method != http.MethodConnect {
			forward.ServeHTTP(w, r)
			return
		}
		tunnel(w, target)
	}))
	t.Cleanup(p.Close)
	return p
}

// tunnel leads what a CONNECT's connection carries to target until either end closes.
func tunnel(w http.ResponseWriter, target string) {
	out, err := net.Dial("tcp", target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer out.Close()
	w.WriteHeader(http.StatusOK)
	in, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer in.Close()
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
}

// url is the proxy's, with credentials.
func (p *forwardProxy) url(user, password string) string {
	u := url.URL{Scheme: "http", Host: p.Listener.Addr().String()}
	if user != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// managementAddress is the host and the port of the broker's management API.
func (b *bundle) managementAddress() string {
	u, err := url.Parse(b.broker.ManagementURL())
	if err != nil {
		b.t.Fatal(err)
	}
	return u.Host
}

func TestHTTPProxy(t *testing.T) {
	b := setup(t)
	forward := newForwardProxy(t, b.managementAddress(), "user", "t0p secret")
	config := func(password string) string {
		return b.blockAt("http://rabbit.invalid:15672", b.broker.Username(), b.broker.Password(), fmt.Sprintf("http_proxy = %q", forward.url("user", password))) + shop
	}
	b.run(
		resource.TestStep{Config: config("t0p secret"), Check: b.there("exchanges/%s/shop")},
		resource.TestStep{Config: config("wrong"), ExpectError: regexp.MustCompile(`(?s)HTTP\s+proxy\s+wants\s+credentials`)},
		resource.TestStep{Config: config("t0p secret")},
	)
	if forward.requests.Load() < 5 || forward.refused.Load() == 0 {
		t.Errorf("%d requests came through the proxy, %d of them refused", forward.requests.Load(), forward.refused.Load())
	}
}

func TestHTTPProxyToTLS(t *testing.T) {
	b := setup(t)
	ca := newAuthority(t)
	secure := newProxy(t, b.broker, "", func(s *httptest.Server) { s.TLS = serverTLS(ca) })
	forward := newForwardProxy(t, secure.Listener.Addr().String(), "user", "t0p secret")
	// The certificate is for 127.0.0.1, which the proxy is asked for on a port where nobody is.
	env := func(password string) map[string]string {
		return map[string]string{
			"ENDPOINTS": "https://127.0.0.1:1", "USERNAME": b.broker.Username(), "PASSWORD": b.broker.Password(), "CA_CERT": ca.pem, "MAX_RETRIES": "0",
			"HTTP_PROXY": forward.url("user", password),
		}
	}
	rt, diags := configuredFrom(t, env("t0p secret"))
	if _, ok := rt.reader(&diags); !ok || len(diags) > 0 || forward.requests.Load() == 0 {
		t.Errorf("%d requests, %v", forward.requests.Load(), diags)
	}
	rt, diags = configuredFrom(t, env("wr0ng-secret"))
	if _, ok := rt.reader(&diags); ok || len(diags) != 1 {
		t.Fatalf("with a wrong password: %v", diags)
	}
	expect(t, diags[0].Detail(), "the HTTP proxy wants credentials")
	expectNot(t, diags[0].Detail(), "wr0ng-secret")
	forward.Close()
	rt, diags = configuredFrom(t, env("wr0ng-secret"))
	if _, ok := rt.reader(&diags); ok || len(diags) != 1 {
		t.Fatalf("without the proxy: %v", diags)
	}
	expect(t, diags[0].Detail(), "that is the HTTP proxy")
	expectNot(t, diags[0].Detail(), "wr0ng-secret")
}

// TestHTTPProxyOfTheEnvironment runs the command line, because a process reads these variables once.
func TestHTTPProxyOfTheEnvironment(t *testing.T) {
	b := setup(t)
	forward := newForwardProxy(t, b.managementAddress(), "", "")
	c := b.commandLine(b.blockAt("http://rabbit.invalid:15672", b.broker.Username(), b.broker.Password(), "max_retries = 0") + shop)
	c.env = append(c.env, "HTTP_PROXY="+forward.url("", ""))
	c.apply()
	b.mustExist("exchanges/%s/shop")
	through := forward.requests.Load()
	if through == 0 {
		t.Error("no request came through the proxy")
	}
	c.env = append(c.env, "NO_PROXY=.invalid")
	expect(t, c.planFails(), "RabbitMQ does not answer", "there is no host of this name")
	if again := forward.requests.Load(); again != through {
		t.Errorf("%d requests came through the proxy that were not to", again-through)
	}
}
