package brokertest_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

func TestDedicatedNode(t *testing.T) {
	t.Parallel()
	var log brokertest.SyncWriter
	b := brokertest.Dedicated(t, brokertest.Options{
		Config:  []string{"consumer_timeout = 123456"},
		Plugins: []string{"rabbitmq_consistent_hash_exchange"},
		Log:     &log,
	})
	vhost := brokertest.VHost(t, b)
	declare(t, b, vhost, "orders")
	brokertest.Publish(t, b, vhost, "", "orders",
		amqp091.Publishing{Body: []byte("first"), DeliveryMode: amqp091.Persistent},
		amqp091.Publishing{Body: []byte("second"), DeliveryMode: amqp091.Persistent})
	brokertest.WaitDepth(t, b, vhost, "orders", 2)

	status, body := brokertest.Request(t, b, http.MethodGet, "/api/exchanges/"+vhost, nil)
	if status != http.StatusOK {
		t.Fatalf("listing exchanges: status %d: %s", status, body)
	}
	channel := brokertest.Channel(t, b, vhost)
	if err := channel.ExchangeDeclare("hash", "x-consistent-hash", true, false, false, false, nil); err != nil {
		t.Errorf("the extra plugin is not enabled: %v", err)
	}

	address := strings.TrimPrefix(b.ManagementURL(), "http://")
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Errorf("after Kill something still listens on %s", address)
	}
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimPrefix(b.ManagementURL(), "http://"); got != address {
		t.Errorf("after Restart the management API is at %s, before at %s", got, address)
	}
	if err := b.Restart(t.Context()); err != nil { // this time it runs
		t.Fatal(err)
	}
	if depth := brokertest.Depth(t, b, vhost, "orders"); depth != 2 {
		t.Errorf("after a kill and a restart there are %d messages, want 2", depth)
	}

	dir := b.Dir()
	for range 2 {
		if err := b.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Stop %s is still there: %v", dir, err)
	}
	if err := b.Kill(); err == nil {
		t.Error("Kill after Stop succeeded")
	}
	if err := b.Restart(t.Context()); err == nil {
		t.Error("Restart after Stop succeeded")
	}
	if !strings.Contains(log.String(), "Starting RabbitMQ "+b.Version()) {
		t.Errorf("the log writer got %d bytes, but not the log", len(log.String()))
	}
}

func TestStartSaysWhyTheNodeEnded(t *testing.T) {
	t.Parallel()
	brokertest.Shared(t) // skips without brokers
	_, err := brokertest.Start(t.Context(), brokertest.Options{Config: []string{"no_such_setting = 1"}})
	if err == nil {
		t.Fatal("a node with a bad configuration started")
	}
	for _, want := range []string{"ended before it was ready", "no_such_setting"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestVHostAndUserAreSeparate(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	one, two := brokertest.VHost(t, b), brokertest.VHost(t, b)
	if one == two {
		t.Fatalf("two vhosts have the same name %q", one)
	}
	declare(t, b, one, "orders")
	if status, _ := brokertest.Request(t, b, http.MethodGet, "/api/queues/"+one+"/orders", nil); status != http.StatusOK {
		t.Errorf("the queue is not in its vhost: status %d", status)
	}
	if status, _ := brokertest.Request(t, b, http.MethodGet, "/api/queues/"+two+"/orders", nil); status != http.StatusNotFound {
		t.Errorf("the queue is in another vhost too: status %d", status)
	}

	user, password := brokertest.User(t, b, one, "^$", "^$", "^orders$")
	conn, err := amqp091.Dial(b.AMQPURLAs(one, user, password))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	var refused *amqp091.Error
	if _, err := channel.QueueDeclare("mine", true, false, false, false, nil); !errors.As(err, &refused) || refused.Code != amqp091.AccessRefused {
		t.Errorf("a user without the configure permission declared a queue: %v", err)
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	declare(t, b, vhost, "orders")
	if _, ok := brokertest.Get(t, b, vhost, "orders"); ok {
		t.Error("Get found a message in an empty queue")
	}
	brokertest.Publish(t, b, vhost, "", "orders", message("1"), message("2"), message("3"))
	if d, ok := brokertest.Get(t, b, vhost, "orders"); !ok || string(d.Body) != "1" {
		t.Errorf("Get returned %q, %v, want the first message", d.Body, ok)
	}
	brokertest.WaitDepth(t, b, vhost, "orders", 2)
	got := brokertest.Drain(t, b, vhost, "orders")
	if len(got) != 2 || string(got[0].Body) != "2" || string(got[1].Body) != "3" {
		t.Errorf("Drain returned %d messages, want 2 and 3", len(got))
	}
	if depth := brokertest.Depth(t, b, vhost, "orders"); depth != 0 {
		t.Errorf("after Drain there are %d messages", depth)
	}
}

func TestHasVersionOfABroker(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	if !brokertest.HasVersion(b, "3.0") || brokertest.HasVersion(b, "100.0") {
		t.Errorf("the broker says that it is version %q", b.Version())
	}
	if series := os.Getenv(brokertest.EnvVersion); series != "" && !strings.HasPrefix(b.Version(), series) {
		t.Errorf("the broker says that it is version %q, %s says %q", b.Version(), brokertest.EnvVersion, series)
	}
}

func message(body string) amqp091.Publishing {
	return amqp091.Publishing{Body: []byte(body), DeliveryMode: amqp091.Persistent}
}

func declare(t *testing.T, b *brokertest.Broker, vhost, queue string) {
	t.Helper()
	if _, err := brokertest.Channel(t, b, vhost).QueueDeclare(queue, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
}
