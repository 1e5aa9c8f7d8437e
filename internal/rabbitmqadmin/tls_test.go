package rabbitmqadmin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.key = a.sign(template, nil)
	return a
}

func (a *authority) sign(template *x509.Certificate, parent *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	signer, signerKey := template, key
	if parent != nil {
		signer, signerKey = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, &key.PublicKey, signerKey)
	must(a.t, err)
	cert, err := x509.ParseCertificate(der)
	must(a.t, err)
	return cert, key
}

// issue makes a certificate for a host, or for a client where that is "".
func (a *authority) issue(host string, until time.Time) tls.Certificate {
	a.t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else if host != "" {
		template.DNSNames = []string{host}
	}
	cert, key := a.sign(template, a)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	tomorrow := time.Now().Add(24 * time.Hour)
	client := ca.issue("", tomorrow)
	for name, tc := range map[string]struct {
		server *tls.Config
		client *tls.Config
		scheme string
		says   string // "" succeeds
	}{
		"own CA": {
			&tls.Config{Certificates: []tls.Certificate{ca.issue("127.0.0.1", tomorrow)}},
			&tls.Config{RootCAs: ca.pool()}, "https", "",
		},
		"insecure": {
			&tls.Config{Certificates: []tls.Certificate{ca.issue("127.0.0.1", tomorrow)}},
			&tls.Config{InsecureSkipVerify: true}, "https", "", //nolint:gosec // what is tested
		},
		"client certificate": {
			&tls.Config{Certificates: []tls.Certificate{ca.issue("127.0.0.1", tomorrow)}, ClientCAs: ca.pool(), ClientAuth: tls.RequireAndVerifyClientCert},
			&tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{client}}, "https", "",
		},
		"unknown CA": {
			&tls.Config{Certificates: []tls.Certificate{other.issue("127.0.0.1", tomorrow)}},
			&tls.Config{RootCAs: ca.pool()}, "https", "give its CA certificate",
		},
		"unknown CA, system roots": {
			&tls.Config{Certificates: []tls.Certificate{ca.issue("127.0.0.1", tomorrow)}},
			nil, "https", "give its CA certificate",
		},
		"another host": {
			&tls.Config{Certificates: []tls.Certificate{ca.issue("broker.example", tomorrow)}},
			&tls.Config{RootCAs: ca.pool()}, "https", "use a name that is in it",
		},
		"expired": {
			&tls.Config{Certificates: []tls.Certificate{ca.issue("127.0.0.1", time.Now().Add(-time.Minute))}},
			&tls.Config{RootCAs: ca.pool()}, "https", "is it expired",
		},
		"no client certificate": {
			&tls.Config{Certificates: []tls.Certificate{ca.issue("127.0.0.1", tomorrow)}, ClientCAs: ca.pool(), ClientAuth: tls.RequireAndVerifyClientCert},
			&tls.Config{RootCAs: ca.pool()}, "https", "client certificate",
		},
		"https to http": {&tls.Config{}, nil, "https", "does not speak TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeBroker{}
			f.Server = httptest.NewUnstartedServer(f.recorded(func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, queueJSON) }))
			f.Config.ErrorLog = discardLog()
			if len(tc.server.Certificates) > 0 {
				f.TLS = tc.server.Clone()
				f.StartTLS()
			} else {
				f.Start()
			}
			t.Cleanup(f.Close)
			c, waits := newClient(t, func(cfg *Config) { cfg.TLS = tc.client }, tc.scheme+"://"+f.Listener.Addr().String())
			_, err := c.Queue(t.Context(), "v", "q")
			if tc.says == "" {
				must(t, err)
				return
			}
			var e *UnreachableError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), tc.says) || len(*waits) != 0 {
				t.Errorf("after %d waits (a certificate does not get better): %v", len(*waits), err)
			}
		})
	}
}

func TestPlainHTTPToATLSPort(t *testing.T) {
	t.Parallel()
	f := httptest.NewUnstartedServer(nil)
	f.Config.ErrorLog = discardLog()
	f.StartTLS()
	t.Cleanup(f.Close)
	c, _ := newClient(t, nil, "http://"+f.Listener.Addr().String())
	// Go's server answers 400 in plain text; others send a TLS alert.
	if _, err := c.Queue(t.Context(), "v", "q"); err == nil || !strings.Contains(err.Error(), "HTTPS server") {
		t.Error(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = conn.Write([]byte{0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x0a})
			_ = conn.Close()
		}
	}()
	c, _ = newClient(t, func(cfg *Config) { cfg.MaxRetries = -1 }, "http://"+l.Addr().String())
	if _, err := c.Queue(t.Context(), "v", "q"); err == nil || !strings.Contains(err.Error(), "use https://") {
		t.Error(err)
	}
}

// TestLiveAMQPS puts TLS in front of the real broker.
func TestLiveAMQPS(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	makeQueue(t, c, vhost, "q", topology.Quorum, nil)
	ca := newAuthority(t)
	broker, err := url.Parse(b.AMQPURL(vhost))
	must(t, err)
	address := tlsProxy(t, broker.Host, &tls.Config{
		Certificates: []tls.Certificate{ca.issue("127.0.0.1", time.Now().Add(time.Hour))}, ClientCAs: ca.pool(), ClientAuth: tls.RequireAndVerifyClientCert,
	})
	secured := func(config *tls.Config) error {
		c := liveClient(t, b, func(cfg *Config) { cfg.AMQPEndpoints, cfg.TLS = []string{"amqps://" + address}, config })
		got, err := c.amqp.depths(t.Context(), vhost, []string{"q", "none"})
		if err == nil && (!got["q"].exists || got["none"].exists) {
			t.Errorf("depths: %+v", got)
		}
		return err
	}
	must(t, secured(&tls.Config{RootCAs: ca.pool(), Certificates: []tls.Certificate{ca.issue("", time.Now().Add(time.Hour))}}))
	if err := secured(nil); err == nil || !strings.Contains(err.Error(), "give its CA certificate") {
		t.Errorf("without the CA: %v", err)
	}
	if err := secured(&tls.Config{RootCAs: ca.pool()}); err == nil || !strings.Contains(err.Error(), "client certificate") {
		t.Errorf("without a client certificate: %v", err)
	}
}

// tlsProxy accepts TLS and passes everything on to target. It returns its address.
func tlsProxy(t *testing.T, target string, cfg *tls.Config) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	must(t, err)
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				out, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer out.Close()
				wg.Go(func() {
					_, _ = io.Copy(out, conn)
					_ = out.Close()
				})
				_, _ = io.Copy(conn, out)
			})
		}
	})
	return l.Addr().String()
}
