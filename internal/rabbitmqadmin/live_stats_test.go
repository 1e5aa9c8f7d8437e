package rabbitmqadmin

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func TestLiveStats(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	makeQueue(t, c, vhost, "classic", topology.Classic, nil)
	makeQueue(t, c, vhost, "quorum", topology.Quorum, nil)
	made := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, queue := range []string{"classic", "quorum"} {
		brokertest.Publish(t, b, vhost, "", queue, amqp091.Publishing{Timestamp: made}, amqp091.Publishing{})
	}
	ch := brokertest.Channel(t, b, vhost)
	must(t, ch.Qos(1, 0, false))
	if _, err := ch.Consume("quorum", "", false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	brokertest.WaitFor(t, func() (bool, string) {
		classic, err := c.Stats(t.Context(), vhost, "classic")
		must(t, err)
		quorum, err := c.Stats(t.Context(), vhost, "quorum")
		must(t, err)
		known := func(s Stats) bool {
			return s.State == "running" && s.Messages != nil && *s.Messages == 2 && s.Ready != nil && s.Unacknowledged != nil && s.Consumers != nil && s.In != nil
		}
		return known(classic) && *classic.Ready == 2 && classic.Oldest.Equal(made) &&
			known(quorum) && *quorum.Unacknowledged == 1 && *quorum.Consumers == 1 && quorum.Out != nil && quorum.Oldest.IsZero(), fmt.Sprintf("%+v, %+v", classic, quorum)
	})
	if _, err := c.Stats(t.Context(), vhost, "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("of a queue that is not there: %v", err)
	}
}
