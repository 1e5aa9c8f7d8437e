package rabbitmq_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
)

func acking(context.Context, *redeliver.Message) redeliver.Outcome { return redeliver.Ack() }

// TestLeastPrivilege: in place, a consumer whose user may read the queue and
// nothing else carries out every outcome, on both types of queue.
func TestLeastPrivilege(t *testing.T) {
	t.Parallel()
	onBothQueues(t, func(t *testing.T, change func(*topology.Spec)) {
		w := newWorld(t, standard, change)
		w.user, w.pass = brokertest.User(t, w.broker, w.vhost, "^$", "^$", "^orders$")
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			switch {
			case m.ID == "reject":
				return redeliver.Reject(errBoom)
			case m.ID == "park":
				return redeliver.Park(errBoom)
			case m.ID == "defer" && !m.Timestamp.After(time.Now()):
				return redeliver.Defer()
			case m.ID == "retry":
				return redeliver.Retry(errBoom)
			default:
				return redeliver.Ack()
			}
		})
		w.publish("ack", "reject", "park", "retry")
		w.send(amqp091.Publishing{MessageId: "defer", Timestamp: time.Now()}) // for ever: given back at the end
		w.drained(w.spec.DeadLetterQueue, "reject", "park", "retry")
		l.await(redeliver.EventDeferred, 3)
		l.mustStop()
		w.drained("orders", "defer")
		if s := l.Stats(); s.SessionsLost != 0 || s.Dropped != 0 {
			t.Errorf("a permission was missed: %+v", s)
		}
	})
}

// TestBindErrors: whatever is missing is one error that names it and says what
// to do, and holds no password.
func TestBindErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	parks := newWorld(t, parking)
	nobody, nobodyPass := brokertest.User(t, w.broker, w.vhost, "^$", "^$", "^$")
	other, otherPass := brokertest.User(t, w.broker, w.vhost, ".*", ".*", "^other$")
	early, earlyPass := brokertest.User(t, w.broker, w.vhost, "^$", "^$", "^absent$") // its permissions came before the queue
	readOnly, readOnlyPass := brokertest.User(t, parks.broker, parks.vhost, "^$", "^$", "^orders$")
	elsewhere := brokertest.VHost(t, w.broker)

	_, unused, err := net.SplitHostPort(listenAndClose(t))
	if err != nil {
		t.Fatal(err)
	}
	silent := silentServer(t)
	plain, err := url.Parse(w.url())
	if err != nil {
		t.Fatal(err)
	}
	withHost := func(scheme, host string) string {
		u := *plain
		u.Scheme, u.Host = scheme, host
		return u.String()
	}
	wrongPassword := w.broker.AMQPURLAs(w.vhost, w.user, "hunter2-wrong")
	noVHostURL := *plain
	noVHostURL.Path, noVHostURL.RawPath = "", ""

	change := func(f func(*rabbitmq.Config)) rabbitmq.Config {
		cfg := w.config(redeliver.HandlerFunc(acking), redeliver.Config{})
		f(&cfg)
		return cfg
	}
	tests := map[string]struct {
		cfg  rabbitmq.Config
		is   error
		says []string
	}{
		"queue missing": {change(func(c *rabbitmq.Config) {
			c.URL = w.broker.AMQPURLAs(w.vhost, early, earlyPass)
			c.Manifest = manifestOf(t, topology.Spec{Identity: topology.Identity{Topic: "absent", VHost: w.vhost}, AllowMessageLoss: true})
		}), redeliver.ErrQueueNotFound, []string{`"absent"`, w.vhost, early, "404 NOT_FOUND", "Terraform"}},
		"no permission at all": {
			change(func(c *rabbitmq.Config) { c.URL = w.broker.AMQPURLAs(w.vhost, nobody, nobodyPass) }),
			redeliver.ErrPermission,
			[]string{`"orders"`, w.vhost, nobody, "403 ACCESS_REFUSED", "read permission"},
		},
		"permission on another queue": {
			change(func(c *rabbitmq.Config) { c.URL = w.broker.AMQPURLAs(w.vhost, other, otherPass) }),
			redeliver.ErrPermission,
			[]string{`"orders"`, other, "403 ACCESS_REFUSED", "read permission"},
		},
		"no permission to publish": {func() rabbitmq.Config {
			cfg := parks.config(redeliver.HandlerFunc(acking), redeliver.Config{})
			cfg.URL = parks.broker.AMQPURLAs(parks.vhost, readOnly, readOnlyPass)
			return cfg
		}(), redeliver.ErrPermission, []string{`exchange "orders-retry"`, readOnly, "403 ACCESS_REFUSED", "write permission", `"orders-parked"`}},
		"exchange missing": {func() rabbitmq.Config {
			gone := newWorld(t, parking)
			gone.pass, gone.user = gone.broker.Password(), gone.broker.Username()
			if status, answer := brokertest.Request(t, gone.broker, http.MethodDelete, "/api/exchanges/"+gone.vhost+"/orders-retry", nil); status >= 300 {
				t.Fatalf("deleting the exchange: %d %s", status, answer)
			}
			return gone.config(redeliver.HandlerFunc(acking), redeliver.Config{})
		}(), redeliver.ErrExchangeNotFound, []string{`exchange "orders-retry"`, "404 NOT_FOUND", "Terraform"}},
		"vhost not accessible": {change(func(c *rabbitmq.Config) {
			c.URL = noVHostURL.String()
			c.Manifest = manifestOf(t, topology.Spec{Identity: topology.Identity{Topic: "orders", VHost: elsewhere}, AllowMessageLoss: true})
		}), redeliver.ErrVHost, []string{elsewhere, w.user, "manifest"}},
		"vhost missing": {change(func(c *rabbitmq.Config) {
			c.URL = noVHostURL.String()
			c.Manifest = manifestOf(t, topology.Spec{Identity: topology.Identity{Topic: "orders", VHost: "no-such-vhost"}, AllowMessageLoss: true})
		}), redeliver.ErrVHost, []string{"no-such-vhost", w.user, "manifest"}},
		"another vhost in the URL": {
			change(func(c *rabbitmq.Config) { c.URL = w.broker.AMQPURLAs(elsewhere, w.user, w.pass) }),
			redeliver.ErrVHost,
			[]string{elsewhere, w.vhost, "manifest"},
		},
		"wrong password": {
			change(func(c *rabbitmq.Config) { c.URL = wrongPassword }),
			redeliver.ErrCredentials,
			[]string{w.user, "check the user and the password"},
		},
		"nobody listens": {change(func(c *rabbitmq.Config) {
			c.URL, c.Addresses = withHost("amqp", "127.0.0.1:"+unused), []string{"localhost:" + unused}
		}), redeliver.ErrUnreachable, []string{"127.0.0.1:" + unused, "localhost:" + unused, "refused", "check the address"}},
		"no such host": {
			change(func(c *rabbitmq.Config) { c.URL = withHost("amqp", "no-such-host.invalid:5672") }),
			redeliver.ErrUnreachable,
			[]string{"no-such-host.invalid", "does not resolve"},
		},
		"TLS to a plain port": {
			change(func(c *rabbitmq.Config) {
				c.URL, c.TLS = withHost("amqps", plain.Host), &tls.Config{MinVersion: tls.VersionTLS12}
			}),
			redeliver.ErrUnreachable,
			[]string{"does not speak TLS"},
		},
		"TLS with an amqp URL": {change(func(c *rabbitmq.Config) { c.TLS = &tls.Config{MinVersion: tls.VersionTLS12} }), nil, []string{"amqps://"}},
		"silent server":        {change(func(c *rabbitmq.Config) { c.URL = withHost("amqp", silent) }), redeliver.ErrUnreachable, []string{silent}},
		"no URL":               {change(func(c *rabbitmq.Config) { c.URL = "" }), nil, []string{"URL is empty"}},
		"unescaped password":   {change(func(c *rabbitmq.Config) { c.URL = "amqp://user:hunter2/wrong@host" }), nil, []string{"percent-encoded"}},
		"other scheme":         {change(func(c *rabbitmq.Config) { c.URL = "http://user:hunter2@host" }), nil, []string{"not an AMQP URL"}},
		"no manifest":          {change(func(c *rabbitmq.Config) { c.Manifest = redeliver.Manifest{} }), redeliver.ErrNoManifest, nil},
		"no handler":           {change(func(c *rabbitmq.Config) { c.Handler = nil }), nil, []string{"no handler"}},
		"prefetch too small":   {change(func(c *rabbitmq.Config) { c.Consumer = redeliver.Config{Workers: 8, MaxHeld: 8, Prefetch: 10} }), nil, []string{"Prefetch is 10"}},
		"a strategy that publishes, without write permission": {change(func(c *rabbitmq.Config) {
			c.Manifest = manifestOf(t, topology.Spec{
				Identity: topology.Identity{Topic: "orders", VHost: w.vhost}, AllowMessageLoss: true,
				HoldDelays: []time.Duration{time.Second}, Retry: topology.RetryPolicy{Strategy: topology.Republish, MaxRetries: 1, Delays: []time.Duration{time.Second}},
			})
		}), redeliver.ErrPermission, []string{`exchange "orders-retry"`, `"orders-hold-1s"`, "build_permissions"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if name == "silent server" {
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
				defer cancel()
			}
			c, err := rabbitmq.Open(ctx, tt.cfg)
			if err == nil {
				_ = c.Close()
				t.Fatal("opened")
			}
			t.Log(err)
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("is not %q", tt.is)
			}
			for _, part := range tt.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("does not say %q", part)
				}
			}
			for _, secret := range []string{w.pass, nobodyPass, otherPass, earlyPass, readOnlyPass, w.broker.Password(), "hunter2"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("holds a password, %q", secret)
				}
			}
			var bind *redeliver.BindError
			if bound := errors.As(err, &bind); bound && (bind.Topic == "" || bind.Queue == "" || bind.VHost == "" || bind.User == "" || bind.Address == "") {
				t.Errorf("a field is empty: %+v", bind)
			}
		})
	}
}

func manifestOf(t *testing.T, spec topology.Spec) redeliver.Manifest {
	t.Helper()
	doc, err := spec.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	m, err := redeliver.ParseManifest(doc.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// listenAndClose returns an address where nobody listens.
func listenAndClose(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// silentServer accepts connections and says nothing.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return l.Addr().String()
}

// TestFailsOverBetweenAddresses: the first node that answers is used.
func TestFailsOverBetweenAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u, err := url.Parse(w.url())
	if err != nil {
		t.Fatal(err)
	}
	alive := u.Host
	u.Host = listenAndClose(t)
	cfg := w.config(redeliver.HandlerFunc(acking), redeliver.Config{})
	cfg.URL, cfg.Addresses = u.String(), []string{listenAndClose(t), alive}
	c, err := rabbitmq.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestOpenHandsNothingOut: until Run, messages wait; Close without Run gives
// them back.
func TestOpenHandsNothingOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish("a", "b")
	handled := make(chan string, 2)
	handler := func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		handled <- m.ID
		return redeliver.Ack()
	}
	first := w.open(redeliver.Config{}, redeliver.HandlerFunc(handler))
	w.waitDepth("orders", 0) // the broker has sent them
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	w.waitDepth("orders", 2)
	if len(handled) != 0 {
		t.Errorf("handled before Run: %s", <-handled)
	}
	second := w.consume(redeliver.Config{}, handler)
	second.await(redeliver.EventAcked, 2)
	second.mustStop()
}
