// Package provision stands for Terraform in the tests of the examples: it
// creates a topic's queues on a private broker and hands out what an application
// gets from the platform team: a manifest, and a user that may do what the
// manifest needs.
//
// It reaches into the provider's own packages, which applications cannot. The
// examples themselves use the public API alone.
package provision

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// VHost is a virtual host of a test's own.
type VHost struct {
	t      testing.TB
	broker *brokertest.Broker
	name   string
}

// NewVHost makes one on the shared broker. Without a broker it skips the test.
func NewVHost(t testing.TB) *VHost {
	t.Helper()
	b := brokertest.Shared(t)
	return &VHost{t, b, brokertest.VHost(t, b)}
}

// Topic provisions a topic with a dead-letter queue and a retry policy of a few
// milliseconds, and writes its manifest to a file.
func (v *VHost) Topic(name string) (manifestPath string) {
	v.t.Helper()
	spec := topology.Spec{
		Identity:        topology.Identity{Topic: name, VHost: v.name},
		DeadLetterQueue: name + "-dlq",
		Retry:           topology.RetryPolicy{MaxRetries: 2, Delays: []time.Duration{20 * time.Millisecond}},
	}
	objects, err := spec.Build()
	if err != nil {
		v.t.Fatal(err)
	}
	ch := brokertest.Channel(v.t, v.broker, v.name)
	for _, e := range objects.Exchanges {
		if err := ch.ExchangeDeclare(e.Name, e.Type, true, false, false, false, nil); err != nil {
			v.t.Fatal(err)
		}
	}
	for _, q := range objects.Queues {
		if _, err := ch.QueueDeclare(q.Name, true, false, false, false, amqp091.Table(q.Arguments)); err != nil {
			v.t.Fatal(err)
		}
	}
	for _, b := range objects.Bindings {
		if err := ch.QueueBind(b.Destination, b.RoutingKey, b.Source, false, amqp091.Table(b.Arguments)); err != nil {
			v.t.Fatal(err)
		}
	}
	manifest, err := spec.Manifest()
	if err != nil {
		v.t.Fatal(err)
	}
	path := filepath.Join(v.t.TempDir(), name+".manifest.json")
	if err := os.WriteFile(path, manifest.Encode(), 0o600); err != nil {
		v.t.Fatal(err)
	}
	return path
}

// URL is the broker's for a user that may read the queues that match and nothing
// else; the vhost is in the manifest.
func (v *VHost) URL(queues string) string {
	v.t.Helper()
	user, password := brokertest.User(v.t, v.broker, v.name, "^$", "^$", queues)
	u, err := url.Parse(v.broker.AMQPURLAs(v.name, user, password))
	if err != nil {
		v.t.Fatal(err)
	}
	u.Path, u.RawPath = "", ""
	return u.String()
}

// Publish publishes messages to a queue.
func (v *VHost) Publish(queue string, msgs ...amqp091.Publishing) {
	v.t.Helper()
	brokertest.Publish(v.t, v.broker, v.name, "", queue, msgs...)
}

// WaitDepth waits until a queue has so many messages.
func (v *VHost) WaitDepth(queue string, want int) {
	v.t.Helper()
	brokertest.WaitDepth(v.t, v.broker, v.name, queue, want)
}
