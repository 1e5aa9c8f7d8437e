package rabbitmqadmin

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// TestLiveSafeDeletesShareReads: many deletions of one run wait once, and read once.
func TestLiveSafeDeletesShareReads(t *testing.T) {
	t.Parallel()
	var lists atomic.Int64
	c, _, vhost := live(t, func(cfg *Config) {
		cfg.Logf = func(_ context.Context, _ string, fields map[string]any) {
			if address, ok := fields["url"].(string); ok && strings.Contains(address, "enable_queue_totals") {
				lists.Add(1)
			}
		}
	})
	makeExchange(t, c, vhost, "e", "direct")
	const n = 12
	for i := range n {
		queue := fmt.Sprint("q", i)
		makeQueue(t, c, vhost, queue, topology.Quorum, nil)
		bind(t, c, vhost, bindingTo("e", queue, queue))
	}
	waitKnown(t, c, vhost, fmt.Sprint("q", n-1))
	start := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			queue := fmt.Sprint("q", i)
			result, err := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{queue}, OwnBindings: []topology.Binding{bindingTo("e", queue, queue)}})
			if err != nil || len(result.Deleted) != 1 {
				t.Errorf("%s: %+v, %v", queue, result, err)
			}
		})
	}
	wg.Wait()
	if got := lists.Load(); got > 6 {
		t.Errorf("%d deletions read %d lists", n, got)
	}
	if took := time.Since(start); took > 15*time.Second {
		t.Errorf("they took %s: they did not wait together", took)
	}
}

// TestLiveSafeDeleteWithAMQPIsQuick: without consumers nothing has to settle.
func TestLiveSafeDeleteWithAMQPIsQuick(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	c, b, vhost := live(t, withAMQP(t, b))
	makeQueue(t, c, vhost, "idle", topology.Quorum, nil)
	makeQueue(t, c, vhost, "consumed", topology.Quorum, nil)
	waitKnown(t, c, vhost, "idle")
	waitKnown(t, c, vhost, "consumed")
	_, err := brokertest.Channel(t, b, vhost).Consume("consumed", "", false, false, false, false, nil)
	must(t, err)
	start := time.Now()
	must(t, second(c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"idle"}})))
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("an idle queue took %s", took)
	}
	start = time.Now()
	must(t, second(c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"consumed"}})))
	if took := time.Since(start); took < c.settling() {
		t.Errorf("a queue with a consumer took only %s", took)
	}
}
