package rabbitmqadmin

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// allScopes are those of a token that may do what the provider does.
var allScopes = []string{"tag:management", "configure:*/*", "write:*/*", "read:*/*"}

func TestLiveToken(t *testing.T) {
	t.Parallel()
	issuer := brokertest.NewIssuer(t)
	b := brokertest.Dedicated(t, issuer.Options())
	vhost := brokertest.VHost(t, b)
	amqpEndpoint := "amqp://" + b.Address()
	soon, before := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	as := func(token string) *Client {
		return liveClient(t, b, func(cfg *Config) {
			cfg.Username, cfg.Password, cfg.AMQPEndpoints = "", "", []string{amqpEndpoint}
			cfg.Token = func() (string, error) { return token, nil }
		})
	}

	c := as(issuer.Token("terraform", soon, allScopes...))
	makeQueue(t, c, vhost, "q", topology.Quorum, nil)
	got, err := c.amqp.depths(t.Context(), vhost, []string{"q"})
	if err != nil || !got["q"].exists {
		t.Fatalf("%+v %v", got, err)
	}
	_, err = c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"q"}})
	must(t, err)

	for name, tc := range map[string]struct {
		token string
		is    error
		says  string
	}{
		"expired":        {issuer.Token("terraform", before, allScopes...), ErrCredentials, "the access token expired at " + before.UTC().Format(time.RFC3339)},
		"another issuer": {brokertest.NewIssuer(t).Token("terraform", soon, allScopes...), ErrCredentials, "is it signed by an issuer"},
		"no token":       {"opaque-token", ErrCredentials, "is it signed by an issuer"},
		"no tag":         {issuer.Token("terraform", soon, allScopes[1:]...), ErrPermission, "tag:management"},
		"another vhost":  {issuer.Token("terraform", soon, "tag:management", "read:elsewhere/*"), ErrVHostUnreadable, "the access token's user"},
		"read only":      {issuer.Token("terraform", soon, "tag:management", "read:*/*"), ErrPermission, "a scope like rabbitmq.configure:VHOST/NAME"},
	} {
		err := as(tc.token).CreateQueue(t.Context(), vhost, topology.Queue{Name: "other", Type: topology.Classic, Arguments: topology.Arguments{topology.ArgQueueType: "classic"}})
		if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), tc.token) {
			t.Errorf("%s: the token is in %v", name, err)
		}
	}
	_, err = as(issuer.Token("terraform", before, allScopes...)).amqp.depths(t.Context(), vhost, []string{"q"})
	if err == nil || !strings.Contains(err.Error(), "the access token expired at ") {
		t.Errorf("expired, over AMQP: %v", err)
	}
}

// TestLiveTokenIsRenewed has a token expire and another one take its place, in requests and on a connection that is open.
func TestLiveTokenIsRenewed(t *testing.T) {
	t.Parallel()
	issuer := brokertest.NewIssuer(t)
	b := brokertest.Dedicated(t, issuer.Options())
	vhost := brokertest.VHost(t, b)
	file := filepath.Join(t.TempDir(), "token")
	expires := time.Now().Add(4 * time.Second)
	write := func(token string) { must(t, os.WriteFile(file, []byte(token+"\n"), 0o600)) }
	write(issuer.Token("terraform", expires, allScopes...))
	c := liveClient(t, b, func(cfg *Config) {
		cfg.Username, cfg.Password, cfg.AMQPEndpoints = "", "", []string{"amqp://" + b.Address()}
		cfg.Token = func() (string, error) {
			text, err := os.ReadFile(file)
			return string(text), err
		}
	})
	makeQueue(t, c, vhost, "q", topology.Classic, nil)
	_, err := c.amqp.depths(t.Context(), vhost, []string{"q"})
	must(t, err)
	brokertest.WaitFor(t, func() (bool, string) {
		_, err := c.Queue(t.Context(), vhost, "q")
		return errors.Is(err, ErrCredentials), "the token is still accepted"
	})
	write(issuer.Token("terraform", time.Now().Add(time.Hour), allScopes...))
	must(t, second(c.Queue(t.Context(), vhost, "q")))
	must(t, second(c.amqp.depths(t.Context(), vhost, []string{"q"})))
	must(t, os.Remove(file))
	if _, err := c.Queue(t.Context(), vhost, "q"); !errors.Is(err, ErrToken) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

// secured is a node with a TLS listener that wants a client certificate, and the authority that both sides trust. The
// listener's own settings begin with prefix.
func secured(t *testing.T, prefix string, more ...string) (*brokertest.Broker, *authority) {
	t.Helper()
	ca := newAuthority(t)
	server := ca.issue("127.0.0.1", time.Now().Add(time.Hour))
	key, err := x509.MarshalPKCS8PrivateKey(server.PrivateKey)
	must(t, err)
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return brokertest.Dedicated(t, brokertest.Options{
		Plugins: []string{"rabbitmq_auth_mechanism_ssl"},
		Files: map[string]string{
			"ca.pem": text("CERTIFICATE", ca.cert.Raw), "cert.pem": text("CERTIFICATE", server.Certificate[0]), "key.pem": text("PRIVATE KEY", key),
		},
		Config: append([]string{
			prefix + ".cacertfile = {dir}/ca.pem", prefix + ".certfile = {dir}/cert.pem", prefix + ".keyfile = {dir}/key.pem",
			prefix + ".verify = verify_peer", prefix + ".fail_if_no_peer_cert = true", "ssl_cert_login_from = common_name",
			"auth_mechanisms.1 = EXTERNAL", "auth_mechanisms.2 = PLAIN",
		}, more...),
	}), ca
}

func TestLiveExternal(t *testing.T) {
	t.Parallel()
	b, ca := secured(t, "ssl_options", "listeners.ssl.1 = {secure_ip}:{secure_port}")
	vhost := brokertest.VHost(t, b)
	c := liveClient(t, b, nil)
	makeQueue(t, c, vhost, "q", topology.Quorum, nil)
	as := func(config *tls.Config, endpoint string) error {
		c := liveClient(t, b, func(cfg *Config) {
			cfg.AMQPEndpoints, cfg.TLS, cfg.External = []string{"amqps://" + endpoint}, config, true
			cfg.MaxRetries = -1
		})
		return second(c.amqp.depths(t.Context(), vhost, []string{"q"}))
	}
	mine := &tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{ca.issue("", time.Now().Add(time.Hour))}}
	// The certificate's CN is "test": its user is not there yet, then without permissions, and then may read.
	if err := as(mine, b.SecureAddress()); err == nil || !strings.Contains(err.Error(), "no user of the name that it reads from the client certificate") {
		t.Errorf("a user that is not there: %v", err)
	}
	request := func(path string, body any) {
		if status, answer := brokertest.Request(t, b, http.MethodPut, path, body); status >= http.StatusMultipleChoices {
			t.Fatalf("%s: %d %s", path, status, answer)
		}
	}
	request("/api/users/test", map[string]string{"password_hash": "", "tags": ""})
	request("/api/permissions/"+vhost+"/test", map[string]string{"configure": "^q$", "write": "^$", "read": "^q$"})
	must(t, as(mine, b.SecureAddress()))

	// A broker that offers no EXTERNAL.
	shared := brokertest.Shared(t)
	plain := tlsProxy(t, shared.Address(), &tls.Config{Certificates: []tls.Certificate{ca.issue("127.0.0.1", time.Now().Add(time.Hour))}})
	if err := as(mine, plain); err == nil || !strings.Contains(err.Error(), "does not offer EXTERNAL") {
		t.Errorf("a broker without the mechanism: %v", err)
	}
}

// TestLiveManagementKnowsNoCertificates is what the documentation says of auth_mechanism: the management API checks a
// client's certificate and takes nobody's name from it, on every version.
func TestLiveManagementKnowsNoCertificates(t *testing.T) {
	t.Parallel()
	b, ca := secured(t, "management.ssl", "management.ssl.ip = {secure_ip}", "management.ssl.port = {secure_port}")
	user := map[string]string{"password": "p", "tags": "administrator"}
	if status, answer := brokertest.Request(t, b, http.MethodPut, "/api/users/test", user); status >= http.StatusMultipleChoices {
		t.Fatalf("%d %s", status, answer)
	}
	ask := func(change func(*Config)) error {
		c, _ := newClient(t, func(cfg *Config) {
			cfg.TLS = &tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{ca.issue("", time.Now().Add(time.Hour))}}
			change(cfg)
		}, "https://"+b.SecureAddress())
		return second(c.Ping(t.Context()))
	}
	must(t, ask(func(cfg *Config) { cfg.Username, cfg.Password = b.Username(), b.Password() }))
	err := ask(func(cfg *Config) { cfg.Username, cfg.Password, cfg.External = "", "", true })
	if !errors.Is(err, ErrCredentials) || !strings.Contains(err.Error(), "and no client certificate") {
		t.Errorf("as user test, by the certificate alone: %v", err)
	}
	if err := ask(func(cfg *Config) { cfg.Username, cfg.Password, cfg.TLS.Certificates = b.Username(), b.Password(), nil }); err == nil {
		t.Error("without a certificate the listener let a client in")
	}
}
