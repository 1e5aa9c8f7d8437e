package amqp

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// TestOutgrownHeaders: what a broker adds makes a message's headers larger than
// the frame size that was agreed on. A bare client loses its connection then.
func TestOutgrownHeaders(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	for kind, again := range map[string]bool{"quorum": true, "classic": false} { // a classic queue adds nothing to a message that comes again
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			vhost := brokertest.VHost(t, b)
			declare(t, b, vhost, "dead", quorum)
			declare(t, b, vhost, "orders", amqp091.Table{"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
			f := publish(t, Options{Dial: dialer(t, b, vhost)})
			f.sendMessage("", "orders", "large", filling(t, 128<<10))
			f.await(1)
			f.want([]string{"large"}, nil)

			bare := func() (*amqp091.Connection, error) { return amqp091.Dial(b.AMQPURL(vhost)) }
			ours := func() (*amqp091.Connection, error) {
				conn, err := dialer(t, b, vhost)(t.Context())
				if err != nil {
					return nil, err
				}
				return conn.Connection, nil
			}
			refused := func(queue string) {
				t.Helper()
				if err := take(t, bare, queue, nil); !errors.Is(Said(err), errFrame) {
					t.Errorf("queue %q: a bare client says %v, want it to lose its connection", queue, err)
				}
			}
			taken := func(dial func() (*amqp091.Connection, error), queue string, do func(d *amqp091.Delivery) error) {
				t.Helper()
				if err := take(t, dial, queue, do); err != nil {
					t.Errorf("queue %q: %v", queue, err)
				}
			}
			taken(ours, "orders", func(d *amqp091.Delivery) error { return d.Reject(true) })
			if again {
				refused("orders")
			}
			taken(ours, "orders", func(d *amqp091.Delivery) error { return d.Reject(false) })
			refused("dead")
			taken(ours, "dead", func(d *amqp091.Delivery) error {
				if fill, _ := d.Headers["fill"].(string); d.Headers["x-death"] == nil || len(fill) < 100<<10 {
					t.Errorf("headers are missing: %.200v", d.Headers)
				}
				f.sendMessage("", "orders", "copy", Copy(d, nil, nil))
				f.await(2)
				f.want([]string{"copy"}, nil) // without what the broker added it fits
				return d.Ack(false)
			})
		})
	}
}

// take takes the one message of a queue, on a connection of its own.
func take(t *testing.T, dial func() (*amqp091.Connection, error), queue string, do func(*amqp091.Delivery) error) error {
	t.Helper()
	conn, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	var d amqp091.Delivery
	var ok bool
	for begun := time.Now(); !ok && err == nil && time.Since(begun) < waitTimeout; { // settled messages take their time
		d, ok, err = ch.Get(queue, false)
	}
	if err != nil {
		return err
	}
	if !ok {
		t.Fatalf("queue %q has no message", queue)
	}
	if err := do(&d); err != nil {
		return err
	}
	return ch.Close()
}

// TestFrameSizeOfTheBroker: messages are sent in frames that the broker takes, however many it has said it takes.
func TestFrameSizeOfTheBroker(t *testing.T) {
	t.Parallel()
	for _, frameMax := range []int{0, 512 << 10} {
		b := brokertest.Dedicated(t, brokertest.Options{Config: []string{fmt.Sprintf("frame_max = %d", frameMax)}})
		vhost := brokertest.VHost(t, b)
		declare(t, b, vhost, "orders", quorum)
		conn, err := dialer(t, b, vhost)(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.Config.FrameSize; got != frameMax {
			t.Errorf("frame_max is %d, and frames of %d are sent", frameMax, got)
		}
		f := publish(t, Options{Dial: dialer(t, b, vhost)})
		f.sendMessage("", "orders", "large", amqp091.Publishing{MessageId: "large", Body: make([]byte, 2<<20)})
		f.await(1)
		f.want([]string{"large"}, nil)
	}
}

func TestWirePassesOnWhatIsNoHandshake(t *testing.T) {
	t.Parallel()
	tune := []byte{1, 0, 0, 0, 0, 0, 12, 0, 10, 0, 30, 7, 255, 0, 2, 0, 0, 0, 60, 0xce}
	start := []byte{1, 0, 0, 0, 0, 0, 4, 0, 10, 0, 10, 0xce}
	raised := bytes.Clone(tune)
	raised[tuneFrameMax+1] = 2 + headerRoom>>16
	unlimited := bytes.Clone(tune)
	unlimited[tuneFrameMax+1] = 0
	for name, tt := range map[string]struct{ in, want []byte }{
		"handshake":       {slicesOf(start, tune, tune), slicesOf(start, raised, tune)},
		"no limit":        {slicesOf(start, unlimited), slicesOf(start, unlimited)},
		"another version": {[]byte("AMQP\x00\x00\x09\x01"), []byte("AMQP\x00\x00\x09\x01")},
		"HTTP":            {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), []byte("HTTP/1.1 400 Bad Request\r\n\r\n")},
		"a few bytes":     {[]byte("x"), []byte("x")},
		"nothing":         {nil, nil},
		"a huge frame":    {[]byte{1, 0, 0, 255, 255, 255, 255, 0, 10}, []byte{1, 0, 0, 255, 255, 255, 255, 0, 10}},
	} {
		client, server := net.Pipe()
		go func() {
			_, _ = server.Write(tt.in)
			_ = server.Close()
		}()
		if got, err := io.ReadAll(newWire(client)); err != nil || !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tt.want)
		}
	}
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// TestTLS: with a configuration, and with the URL's parameters.
func TestTLS(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	certified := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(certified.Close)
	proxy, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	go func() {
		for {
			in, err := proxy.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", b.Address())
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	pool := x509.NewCertPool()
	pool.AddCert(certified.Certificate())
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certified.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	for name, tt := range map[string]struct {
		query string
		tls   *tls.Config
		want  any // what the error is as; nil: none
	}{
		"configuration":    {"", &tls.Config{RootCAs: pool}, nil},
		"parameters":       {"cacertfile=" + url.QueryEscape(file), nil, nil},
		"the server name":  {"cacertfile=" + url.QueryEscape(file) + "&server_name_indication=other.test", nil, &host},
		"no authority":     {"", nil, &unknown},
		"not such a file":  {"cacertfile=/nowhere", nil, new(*os.PathError)},
		"a file with none": {"cacertfile=/dev/null", nil, new(error)},
	} {
		u, _ := url.Parse(b.AMQPURL(vhost))
		u.Scheme, u.Host, u.RawQuery = "amqps", proxy.Addr().String(), tt.query
		broker, err := NewBroker(Config{URL: u.String(), TLS: tt.tls, Name: t.Name()})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := broker.Dial(t.Context(), "")
		if conn != nil {
			_ = conn.Close(context.Background())
		}
		if (err == nil) != (tt.want == nil) || err != nil && !errors.As(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
