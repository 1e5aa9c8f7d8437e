package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// vhostPrefix starts the names of the vhosts that are made and deleted again.
const vhostPrefix = "bench-provider-"

// broker is the management API that everything is measured on.
type broker struct {
	url      *url.URL // without credentials
	user     *url.Userinfo
	amqp     string
	version  string
	requests http.Client
}

func openBroker() (*broker, error) {
	management, err := url.Parse(os.Getenv(brokertest.EnvManagementURL))
	if err != nil || management.User == nil {
		return nil, fmt.Errorf("no broker: run it with bin/withbroker, which sets %s", brokertest.EnvManagementURL)
	}
	amqp, err := url.Parse(os.Getenv(brokertest.EnvAMQPURL))
	if err != nil {
		return nil, errors.New("the broker's AMQP URL cannot be read") // without the text, which has a password
	}
	b := &broker{
		url: &url.URL{Scheme: management.Scheme, Host: management.Host}, user: management.User, amqp: amqp.Scheme + "://" + amqp.Host,
		requests: http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 100}},
	}
	var overview struct {
		Version string `json:"rabbitmq_version"`
	}
	answer, err := b.send(context.Background(), request{method: http.MethodGet, path: "/api/overview"})
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer, &overview); err != nil {
		return nil, fmt.Errorf("reading what the broker says about itself: %w", err)
	}
	b.version = overview.Version
	return b, nil
}

// request is one request to the management API.
type request struct {
	method string
	path   string // escaped, with the query
	body   []byte
}

func (r request) writes() bool { return r.method != http.MethodGet }

// send sends a request and returns what was answered.
func (b *broker) send(ctx context.Context, r request) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, b.url.String()+r.path, bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	password, _ := b.user.Password()
	req.SetBasicAuth(b.user.Username(), password)
	req.Header.Set("Content-Type", "application/json")
	resp, err := b.requests.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusBadRequest && resp.StatusCode != http.StatusNotFound {
		err = fmt.Errorf("%s %s: %s: %.200s", r.method, r.path, resp.Status, answer)
	}
	return answer, err
}

// makeVHost makes a vhost that the user may do everything in.
func (b *broker) makeVHost(ctx context.Context, name string) error {
	full := []byte(`{"configure":".*","write":".*","read":".*"}`)
	for _, r := range []request{
		{http.MethodPut, "/api/vhosts/" + name, []byte("{}")},
		{http.MethodPut, "/api/permissions/" + name + "/" + url.PathEscape(b.user.Username()), full},
	} {
		if _, err := b.send(ctx, r); err != nil {
			return fmt.Errorf("making vhost %q: %w", name, err)
		}
	}
	return nil
}

// deleteVHost deletes it, whatever happened to ctx.
func (b *broker) deleteVHost(ctx context.Context, name string) error {
	_, err := b.send(context.WithoutCancel(ctx), request{method: http.MethodDelete, path: "/api/vhosts/" + name})
	return err
}

// proxy is in front of the management API.
type proxy struct {
	server *http.Server
	url    *url.URL

	mu   sync.Mutex
	seen []request
}

func (b *broker) openProxy(ctx context.Context) (*proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	p := &proxy{url: &url.URL{Scheme: "http", Host: listener.Addr().String()}}
	forward := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(b.url) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 100},
	}
	p.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.note(request{r.Method, r.URL.RequestURI(), body})
		forward.ServeHTTP(w, r)
	})}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

func (p *proxy) note(r request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, r)
}

// take returns the requests since it was called last.
func (p *proxy) take() []request {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = nil
	return seen
}

func (p *proxy) close() { _ = p.server.Close() }

// bareTimes are how long the same requests take that the provider sent.
type bareTimes struct{ writes, reads time.Duration }

// behind is the broker behind a proxy.
func (b *broker) behind(p *proxy) *broker {
	return &broker{url: p.url, user: b.user, amqp: b.amqp, version: b.version, requests: http.Client{Timeout: b.requests.Timeout, Transport: b.requests.Transport}}
}

// replay sends what an apply wrote, to another vhost, and what a plan without changes read.
func replay(ctx context.Context, b *broker, senders int, of *measured, vhost string) (times bareTimes, err error) {
	var writes []request
	for _, r := range of.apply.requests {
		if r.writes() {
			writes = append(writes, r)
		}
	}
	// Exchanges, then queues, then bindings: sent by several at a time, one must not come before what it needs.
	for _, kind := range []string{"/api/exchanges/", "/api/queues/", "/api/bindings/", "/api/policies/"} {
		took, err := b.sendAll(ctx, senders, of.vhost, vhost, writes, kind)
		if err != nil {
			return times, err
		}
		times.writes += took
	}
	times.reads, err = b.sendAll(ctx, senders, of.vhost, vhost, of.plan.requests, "")
	return times, err
}

// sendAll sends those requests whose path begins so, to another vhost.
func (b *broker) sendAll(ctx context.Context, senders int, from, to string, requests []request, prefix string) (time.Duration, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(senders)
	begun := time.Now()
	for _, r := range requests {
		if !strings.HasPrefix(r.path, prefix) {
			continue
		}
		r.path = strings.Replace(r.path, "/"+from+"/", "/"+to+"/", 1)
		group.Go(func() error {
			_, err := b.send(ctx, r)
			return err
		})
	}
	err := group.Wait()
	return time.Since(begun), err
}
