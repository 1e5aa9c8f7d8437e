package rabbitmq_test

import (
	"slices"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// TestConsumerKilled: kill -9 for a consumer, five times, while another one goes on.
func TestConsumerKilled(t *testing.T) {
	t.Parallel()
	underStrategies(t, func(t *testing.T, change func(*topology.Spec)) { killConsumers(begin(newWorld(t, change), false)) })
}

// TestSequencedConsumerKilled: the same where only one of them is active at a time, and the order of every key counts.
func TestSequencedConsumerKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sequenced)
	w.pace /= 4 // about as fast as can be where the messages of a key wait for one another
	tr := begin(w, false)
	tr.book.order.lasting = true
	killConsumers(tr)
}

func killConsumers(tr *trial) {
	tr.Helper()
	last := tr.child()
	for range 5 {
		next := tr.child()
		tr.goOn(150)
		last()
		last = next
	}
	tr.goOn(150)
	last()
	tr.consume()
	tr.end()
}

// deadLetterWindow is how many dead letters a queue may have on their way, unconfirmed, when its broker dies.
const deadLetterWindow = 32

// TestBrokerKilled: kill -9 for the broker, twice.
func TestBrokerKilled(t *testing.T) {
	t.Parallel()
	b := brokertest.Dedicated(t, hurried())
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

// nodesPace leaves a small machine time to start nodes: every message is written by three.
const nodesPace = 2 * feedEvery

// TestNodeLost: one of three nodes is killed, and another one is stopped in good order. They lead the work queue, or
// are the node that the consumer is connected to, or both. Where the topic is sequenced, the order of every key counts.
func TestNodeLost(t *testing.T) {
	t.Parallel()
	nodes := brokertest.Cluster(t, 3, hurried())
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
		w.cluster, w.via, w.pace = nodes, connected.AMQPURLAs(w.vhost, w.user, w.pass), nodesPace
		trials = append(trials, begin(w, true))
	}
	ordered := sequencedOnNodes(t, nodes)
	all := slices.Concat(trials, ordered)
	goOn := func(n int) {
		t.Helper()
		for _, tr := range all {
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
		for _, tr := range all {
			tr.spare += deadLetterWindow
		}
		for _, tr := range trials {
			tr.awaitUp()
		}
	}
	for _, tr := range ordered {
		tr.goOn(200)
		tr.killAll()
		tr.consume()
	}
	endAll(all)
	for _, tr := range trials {
		if s := tr.live.Stats(); s.SessionsLost == 0 {
			t.Errorf("a consumer lost nothing: %+v", s)
		}
	}
	if ordered[0].book.reconnects() == 0 {
		t.Error("an active consumer lost its node and nothing else")
	}
}

// sequencedOnNodes begins two trials of a sequenced topic whose queue is led by the first node. Each has two consumers in
// processes of their own, of which the first is active: at the leader's node, or at one that stays alive throughout. The
// other one is at the node that is lost next.
func sequencedOnNodes(t *testing.T, nodes brokertest.Nodes) (trials []*trial) {
	t.Helper()
	for _, active := range []*brokertest.Broker{nodes[0], nodes[2]} {
		w := newWorldOn(t, nodes[0], sequenced)
		w.cluster, w.pace = nodes, nodesPace
		tr := begin(w, false)
		for _, b := range []*brokertest.Broker{active, nodes[1]} {
			w.via = b.AMQPURLAs(w.vhost, w.user, w.pass)
			tr.child()
		}
		trials = append(trials, tr)
	}
	return trials
}

// TestConnectionsClosed: an operator closes all connections, again and again.
func TestConnectionsClosed(t *testing.T) {
	t.Parallel()
	underStrategies(t, func(t *testing.T, change func(*topology.Spec)) {
		tr := begin(newWorld(t, change), true)
		tr.alive = true
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
