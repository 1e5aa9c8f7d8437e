package rabbitmqadmin

import (
	"context"
	"sync"
	"time"
)

// recreateAfter is how long after its deletion a queue is made again at the earliest. RabbitMQ 3.10 and 4.0 do not tell the
// consumers of a quorum queue that is there again by the time that their channel learns of the deletion: it attaches
// them to the new one in a way in which they are never sent a message (measured with up to 20 ms in between; from 50 ms
// on they are cancelled, and 4.3 closes their connection). The rest is for brokers that are busy.
const recreateAfter = time.Second

// deletions are when this client has deleted which queues.
type deletions struct {
	mu sync.Mutex
	at map[queueAt]time.Time
}

type queueAt struct{ vhost, name string }

func (d *deletions) note(vhost, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at == nil {
		d.at = map[queueAt]time.Time{}
	}
	d.at[queueAt{vhost, name}] = time.Now()
}

// due is how long a queue is not to be made yet.
func (d *deletions) due(vhost, name string) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.at[queueAt{vhost, name}]
	if !ok {
		return 0
	}
	return max(0, recreateAfter-time.Since(at))
}

// awaitConsumersGone waits until the consumers of a queue that this client has deleted were told so.
func (c *Client) awaitConsumersGone(ctx context.Context, vhost, name string) error {
	if due := c.deleted.due(vhost, name); due > 0 {
		return c.pause(ctx, due)
	}
	return nil
}
