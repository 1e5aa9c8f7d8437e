package brokertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// Nodes are the nodes of one cluster. Each is a [Broker] of its own, for Kill, Halt and Restart; Stop ends the
// cluster's epmd too, so it is for the end.
type Nodes []*Broker

// Cluster starts nodes that are one cluster and that only this test uses, and stops them when the test ends. It skips
// the test where [Shared] would, and with Docker, whose containers would need a network of their own to find one
// another. Options mean what they mean for [Dedicated].
//
// A client connects to any node. A queue is led by the node through which it was declared.
func Cluster(t testing.TB, size int, opts Options) Nodes {
	t.Helper()
	if os.Getenv(EnvAMQPURL) == "" {
		t.Skip(skipMessage)
	}
	if opts.Version == "" {
		opts.Version = os.Getenv(EnvVersion)
	}
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	src, err := findSource(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	native, ok := src.(native)
	if !ok {
		t.Skipf("a cluster is started from an installed RabbitMQ only, not from %s", src)
	}
	nodes, err := startCluster(t.Context(), native, size, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range nodes {
		stopAtEnd(t, b)
	}
	return nodes
}

// Addresses returns the host and port of every node.
func (c Nodes) Addresses() []string {
	var list []string
	for _, b := range c {
		list = append(list, b.Address())
	}
	return list
}

// Leader returns the node that leads a queue: where it is alive, or else where it was. It asks the first node that
// answers, and waits for a queue whose leader is not known yet.
func (c Nodes) Leader(t testing.TB, vhost, queue string) *Broker {
	t.Helper()
	var leader *Broker
	WaitFor(t, func() (bool, string) {
		state := "no node answers"
		for _, b := range c {
			status, answer, err := b.request(context.WithoutCancel(t.Context()), http.MethodGet, "/api/queues/"+url.PathEscape(vhost)+"/"+url.PathEscape(queue), nil)
			if err != nil {
				continue
			}
			var q struct{ Leader, Node string } // a classic queue has no leader but a node
			if status != http.StatusOK || json.Unmarshal(answer, &q) != nil {
				return false, fmt.Sprintf("asking for queue %q: status %d: %s", queue, status, answer)
			}
			state = fmt.Sprintf("queue %q is led by %q at %q", queue, q.Leader, q.Node)
			for _, one := range c {
				if name := one.node.name; name == q.Leader || q.Leader == "" && name == q.Node {
					leader = one
					return true, ""
				}
			}
		}
		return false, state
	})
	return leader
}

// startCluster starts the nodes and waits until each has joined the others. On failure it leaves nothing behind.
func startCluster(ctx context.Context, src native, size int, opts Options) (Nodes, error) {
	for attempt := 1; ; attempt++ {
		nodes, err := tryCluster(ctx, src, size, opts)
		if err == nil {
			return nodes, nil
		}
		if attempt == startAttempts || !errors.Is(err, errPortTaken) {
			return nil, fmt.Errorf("starting a cluster of %d nodes from %s: %w", size, src, err)
		}
	}
}

func tryCluster(ctx context.Context, src native, size int, opts Options) (started Nodes, err error) {
	var nodes []*node
	defer func() {
		if err == nil {
			return
		}
		for _, n := range nodes {
			err = errors.Join(err, n.close())
		}
	}()
	opts.Config = append(slices.Clone(opts.Config), "cluster_formation.peer_discovery_backend = classic_config")
	for i := range size {
		opts.Config = append(opts.Config, fmt.Sprintf("cluster_formation.classic_config.nodes.%d = %s", i+1, nodeName(i+1)))
	}
	for i := range size {
		n, err := newNode(ctx, src, opts)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
		// The nodes find one another through the epmd of the first, and are let in by its cookie.
		first := nodes[0]
		n.name, n.cookie, n.password, n.ports.epmd = nodeName(i+1), first.cookie, first.password, first.ports.epmd
		if err := n.configure(); err != nil {
			return nil, err
		}
	}
	if err := nodes[0].bootEpmd(ctx); err != nil {
		return nil, nodes[0].explain(err, 0)
	}
	failed := make([]error, size)
	var booting sync.WaitGroup
	for i, n := range nodes {
		n.epmd = nodes[0].epmd
		booting.Go(func() { failed[i] = n.boot(ctx) })
	}
	booting.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	for _, n := range nodes {
		b := brokerOf(n)
		if err := b.awaitMembers(ctx, size); err != nil {
			return nil, n.explain(err, 0)
		}
		if b.version, err = b.fetchVersion(ctx); err != nil {
			return nil, err
		}
		started = append(started, b)
	}
	return started, nil
}

// awaitMembers waits until a node sees so many running nodes in its cluster.
func (b *Broker) awaitMembers(ctx context.Context, size int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		_, answer, err := b.request(ctx, http.MethodGet, "/api/nodes?columns=name,running", nil)
		var members []struct {
			Name    string
			Running bool
		}
		running := 0
		if err == nil && json.Unmarshal(answer, &members) == nil {
			for _, m := range members {
				if m.Running {
					running++
				}
			}
		}
		if running == size {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s sees %d running nodes of %d (last answer: %s): %w", b.node.name, running, size, answer, ctx.Err())
		case <-ticker.C:
		}
	}
}
