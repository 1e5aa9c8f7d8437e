package rabbitmq_test

import (
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// TestConsumerKilled: kill -9 for a consumer, five times, while another one goes on.
func TestConsumerKilled(t *testing.T) {
	t.Parallel()
	underStrategies(t, func(t *testing.T, change func(*topology.Spec)) {
		tr := begin(newWorld(t, change), false)
		last := tr.child()
		for range 5 {
			tr.goOn(150)
			next := tr.child()
			last()
			tr.spare += tr.prefetch()
			last = next
		}
		tr.goOn(150)
		last()
		tr.spare += tr.prefetch()
		tr.consume()
		tr.end()
	})
}

// deadLetterWindow is how many dead letters a queue may have on their way, unconfirmed, when its broker dies.
const deadLetterWindow = 32

// TestBrokerKilled: kill -9 for the broker, twice.
func TestBrokerKilled(t *testing.T) {
	t.Parallel()
	b := brokertest.Dedicated(t, brokertest.Options{})
	var trials []*trial
	for _, change := range strategies {
		w := newWorldOn(t, b, change)
		trials = append(trials, begin(w, false))
	}
	// Killed within minutes of a quorum queue's creation, a broker may come back without its contents: the entry that says
	// where they are is written lazily (3.10 and 4.3). An orderly restart writes it.
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tr := range trials {
		tr.consume()
	}
	for crash := range 2 {
		for _, tr := range trials {
			tr.goOn(200)
		}
		if err := b.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, tr := range trials {
			tr.spare += deadLetterWindow
			tr.live.await(redeliver.EventDisconnected, crash+1)
			tr.awaitHealth(redeliver.HealthDown, "connects again")
		}
		if err := b.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, tr := range trials {
			tr.live.await(redeliver.EventConnected, crash+2)
			tr.awaitUp()
		}
	}
	endAll(trials)
}

// endAll ends trials that share a fault.
func endAll(trials []*trial) {
	for _, tr := range trials {
		tr.Helper()
		tr.goOn(200)
	}
	for _, tr := range trials {
		tr.stop()
	}
	for _, tr := range trials {
		tr.end()
	}
}

// TestNodeLost: one of three nodes is killed, and another one is stopped in good order. They lead the work queue, or
// are the node that the consumer is connected to, or both.
func TestNodeLost(t *testing.T) {
	t.Parallel()
	nodes := brokertest.Cluster(t, 3, brokertest.Options{})
	for _, b := range nodes {
		hurryDeadLetters(t, b)
	}
	var trials []*trial
	for strategy, change := range strategies {
		declared, connected := nodes[0], nodes[0]
		switch strategy {
		case topology.Republish:
			declared, connected = nodes[1], nodes[1]
		case topology.Hybrid: // loses the leader and keeps its connection, then the other way round
			declared, connected = nodes[0], nodes[1]
		}
		w := newWorldOn(t, declared, change)
		if leader := nodes.Leader(t, w.vhost, "orders"); leader != declared {
			t.Fatalf("the queue is led by %s and was declared at %s", leader.Address(), declared.Address())
		}
		w.cluster, w.via = nodes, connected.AMQPURLAs(w.vhost, w.user, w.pass)
		trials = append(trials, begin(w, true))
	}
	goOn := func(n int) {
		t.Helper()
		for _, tr := range trials {
			tr.goOn(n)
		}
	}
	for i, lose := range []func() error{nodes[0].Kill, nodes[1].Halt} {
		goOn(200)
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		goOn(200)
		if err := nodes[i].Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		hurryDeadLetters(t, nodes[i])
		for _, tr := range trials {
			tr.spare += deadLetterWindow
			tr.awaitUp()
		}
	}
	endAll(trials)
	for _, tr := range trials {
		if s := tr.live.Stats(); s.SessionsLost == 0 {
			t.Errorf("a consumer lost nothing: %+v", s)
		}
	}
}

// TestConnectionsClosed: an operator closes all connections, again and again.
func TestConnectionsClosed(t *testing.T) {
	t.Parallel()
	underStrategies(t, func(t *testing.T, change func(*topology.Spec)) {
		tr := begin(newWorld(t, change), true)
		for n := range 3 {
			tr.goOn(100)
			tr.w.closeConnections()
			tr.live.await(redeliver.EventConnected, n+2)
		}
		tr.goOn(100)
		tr.end()
		if s := tr.live.Stats(); s.SessionsLost != 3 || s.Reconnects != 3 {
			t.Errorf("%+v", s)
		}
	})
}
