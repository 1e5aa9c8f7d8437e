package migration

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// gate stands between a run and the broker, for HTTP and for AMQP. It counts what the run sends: each request, and of what is
// written to an AMQP connection the first piece, the second, the fourth and so on. After so many it lets nothing through
// any more, in either direction, as if the run had been killed: the broker has what was sent, and nobody learns of it.
type gate struct {
	management, amqp string

	mu     sync.Mutex
	after  int // 0 is never
	n      int
	shut   bool
	onShut func()
	conns  []net.Conn
	// answer, where it is set, may answer a request itself.
	answer func(w http.ResponseWriter, r *http.Request) bool
}

func newGate(t *testing.T, b *brokertest.Broker, after int, onShut func()) *gate {
	t.Helper()
	g := &gate{after: after, onShut: onShut}
	target, err := url.Parse(b.ManagementURL())
	if err != nil {
		t.Fatal(err)
	}
	quiet := log.New(io.Discard, "", 0)
	forward := &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorLog: quiet,
		ModifyResponse: func(*http.Response) error {
			g.pass()
			return nil
		},
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.isShut() {
			panic(http.ErrAbortHandler)
		}
		if g.answer != nil && g.answer(w, r) {
			return
		}
		recorder := httptest.NewRecorder()
		forward.ServeHTTP(recorder, r)
		if g.isShut() {
			panic(http.ErrAbortHandler)
		}
		for name, values := range recorder.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(recorder.Code)
		_, _ = recorder.Body.WriteTo(w)
	}))
	server.Config.ErrorLog = quiet
	server.Start()
	t.Cleanup(server.Close)
	g.management = server.URL

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	g.amqp = listener.Addr().String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go g.join(client, b.Address())
		}
	}()
	return g
}

// join passes on what is written to a connection, until the gate is shut.
func (g *gate) join(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	g.mu.Lock()
	g.conns = append(g.conns, client, server)
	shut := g.shut
	g.mu.Unlock()
	if shut {
		return
	}
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	piece := make([]byte, 64<<10)
	for pieces := 1; ; pieces++ {
		n, err := client.Read(piece)
		if n > 0 {
			if _, err := server.Write(piece[:n]); err != nil {
				return
			}
			if pieces&(pieces-1) == 0 {
				g.pass()
			}
		}
		if err != nil {
			return
		}
	}
}

// pass counts what was passed on.
func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n++; g.n != g.after || g.shut {
		return
	}
	g.shut = true
	for _, conn := range g.conns {
		_ = conn.Close()
	}
	g.onShut()
}

func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

func (g *gate) passed() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.n
}

// refuse answers requests that begin like this as RabbitMQ refuses arguments.
func refuse(method, path string) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || !strings.HasSuffix(r.URL.Path, path) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"bad_request","reason":"invalid arg 'x-message-ttl' for queue 'orders'"}`)
		return true
	}
}
