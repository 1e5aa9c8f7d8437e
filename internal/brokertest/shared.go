package brokertest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"testing"
)

// The environment that announces a broker to tests. The withbroker command sets all three.
const (
	// EnvAMQPURL is the shared broker's AMQP URL, with an administrator's credentials.
	EnvAMQPURL = "REDELIVER_TEST_AMQP_URL"
	// EnvManagementURL is the address of its management API, with the same credentials.
	EnvManagementURL = "REDELIVER_TEST_MANAGEMENT_URL"
	// EnvVersion is the series that Dedicated starts, such as "4.3": the shared broker's.
	EnvVersion = "REDELIVER_TEST_BROKER_VERSION"
)

const skipMessage = "no broker: run make test"

// Shared returns the broker that the environment announces, and skips the test without one. All tests use
// it at once: call [VHost] for a place of one's own, and use [Dedicated] for anything that others would
// notice.
func Shared(t testing.TB) *Broker {
	t.Helper()
	amqp, management := os.Getenv(EnvAMQPURL), os.Getenv(EnvManagementURL)
	if amqp == "" || management == "" {
		t.Skip(skipMessage)
	}
	b, err := external(amqp, management)
	if err != nil {
		t.Fatal(err)
	}
	if b.version, err = b.fetchVersion(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// external describes a broker by its two URLs.
func external(amqpURL, managementURL string) (*Broker, error) {
	amqp, err := parseBrokerURL(EnvAMQPURL, amqpURL, "amqp")
	if err != nil {
		return nil, err
	}
	management, err := parseBrokerURL(EnvManagementURL, managementURL, "http")
	if err != nil {
		return nil, err
	}
	password, _ := management.User.Password()
	b := newBroker(amqp.Host, management.Host, management.User.Username(), password)
	b.amqp.User = amqp.User
	return b, nil
}

func parseBrokerURL(name, raw, scheme string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if u.Scheme != scheme || u.Host == "" || u.User == nil {
		return nil, fmt.Errorf("reading %s: want %s://USER:PASSWORD@HOST:PORT, got %s", name, scheme, u.Redacted())
	}
	return u, nil
}

// Dedicated starts a node that only this test uses, and stops it when the test ends. It skips the test
// where [Shared] would. Unless opts.Version says otherwise the node is of the shared broker's series, so
// that a run on one version is about that version alone.
func Dedicated(t testing.TB, opts Options) *Broker {
	t.Helper()
	if os.Getenv(EnvAMQPURL) == "" {
		t.Skip(skipMessage)
	}
	if opts.Version == "" {
		opts.Version = os.Getenv(EnvVersion)
	}
	b, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, b)
	return b
}

// AtLeast returns a broker of a series, such as "4.3", or of a newer one: the shared broker where it is, or else a
// dedicated node where one can be started without anything being built or downloaded. Elsewhere it skips the test,
// which the run on that series covers.
func AtLeast(t testing.TB, series string) *Broker {
	t.Helper()
	if b := Shared(t); HasVersion(b, series) {
		return b
	}
	if !atHand(t.Context(), series) {
		t.Skipf("no RabbitMQ %s on this machine: make test-matrix gets one and runs this", series)
	}
	return Dedicated(t, Options{Version: series})
}

// stopAtEnd stops a node when the test ends, and shows the end of its log where the test failed.
func stopAtEnd(t testing.TB, b *Broker) {
	t.Helper()
	n := b.node
	t.Cleanup(func() {
		if t.Failed() && !b.isStopped() {
			t.Logf("--- end of the log of %s ---\n%s", n.name, n.logTail())
		}
		if err := b.Stop(); err != nil {
			t.Errorf("stopping %s: %v", n.name, err)
		}
	})
}

// Request does one request to the broker's management API as the administrator, with a JSON body unless
// that is nil. The path begins with "/api/" and is sent as it is, so that names in it have to be
// percent-encoded. Any status is an answer; only a broken connection fails the test.
func Request(t testing.TB, b *Broker, method, path string, body any) (status int, answer []byte) {
	t.Helper()
	// Not cancelled: this is for clean-ups too, which run after the test's context has ended.
	status, answer, err := b.request(context.WithoutCancel(t.Context()), method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, answer
}

// mustRequest is Request for a test's preparations, which have to succeed.
func mustRequest(t testing.TB, b *Broker, method, path string, body any) {
	t.Helper()
	if status, answer := Request(t, b, method, path, body); status >= http.StatusMultipleChoices {
		t.Fatalf("%s %s: status %d: %s", method, path, status, answer)
	}
}
