package brokertest_test

import (
	"strings"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// TestCluster kills the leader of a quorum queue: another node takes over, with the messages.
func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := brokertest.Cluster(t, 3, brokertest.Options{})
	vhost := brokertest.VHost(t, nodes[0])
	if _, err := brokertest.Channel(t, nodes[1], vhost).QueueDeclare("orders", true, false, false, false, amqp091.Table{"x-queue-type": "quorum"}); err != nil {
		t.Fatal(err)
	}
	leader := nodes.Leader(t, vhost, "orders")
	brokertest.Publish(t, leader, vhost, "", "orders", message("1"), message("2"))
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	var rest brokertest.Nodes
	for _, b := range nodes {
		if b != leader {
			rest = append(rest, b)
		}
	}
	brokertest.WaitFor(t, func() (bool, string) {
		return rest.Leader(t, vhost, "orders") != leader, "the dead node still leads the queue"
	})
	brokertest.Publish(t, rest[0], vhost, "", "orders", message("3"))
	if err := leader.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	brokertest.WaitDepth(t, leader, vhost, "orders", 3)
	if len(nodes.Addresses()) != 3 || nodes.Addresses()[1] != nodes[1].Address() {
		t.Errorf("addresses %q", nodes.Addresses())
	}
}

// TestControl runs rabbitmqctl on a node.
func TestControl(t *testing.T) {
	t.Parallel()
	b := brokertest.Dedicated(t, brokertest.Options{})
	out, err := b.Control(t.Context(), "eval", "rabbit_misc:version().")
	if err != nil || !strings.Contains(out, b.Version()) {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := b.Control(t.Context(), "no_such_command"); err == nil || !strings.Contains(err.Error(), "no_such_command") {
		t.Errorf("an unknown command: %v", err)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Control(t.Context(), "status"); err == nil {
		t.Error("Control after Stop succeeded")
	}
}
