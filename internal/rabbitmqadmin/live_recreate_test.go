package rabbitmqadmin

import (
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// TestLiveRecreateTellsConsumers: a consumer whose queue is deleted and made again at once learns of it, and does not wait for
// ever at a queue that is not the one it subscribed to.
func TestLiveRecreateTellsConsumers(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	for _, kind := range bothTypes {
		name := string(kind)
		makeQueue(t, c, vhost, name, kind, nil)
		deliveries, err := brokertest.Channel(t, b, vhost).Consume(name, "", true, false, false, false, nil)
		must(t, err)
		brokertest.Publish(t, b, vhost, "", name, amqp091.Publishing{})
		<-deliveries // it consumes
		must(t, c.DeleteQueue(t.Context(), vhost, name))
		makeQueue(t, c, vhost, name, kind, topology.Arguments{topology.ArgMessageTTL: int64(3_600_000)})
		brokertest.WaitFor(t, func() (bool, string) {
			select {
			case _, more := <-deliveries:
				return !more, name + ": it was sent a message"
			default:
				return false, name + ": the consumer was told nothing"
			}
		})
	}
}
