package rabbitmq_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/consumer/conformance"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
)

// TestConformance runs the suite that the broker in memory passes, and compares
// both: what a handler gets and what is set aside is the same, header by header.
func TestConformance(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	open := func(t *testing.T, spec topology.Spec) conformance.Broker {
		t.Helper()
		w := newWorldOn(t, b, func(s *topology.Spec) {
			vhost := s.VHost
			*s = spec
			s.VHost = vhost
		})
		return &conforming{world: w, taken: make(map[string][]redeliver.Message)}
	}
	conformance.Run(t, brokertest.HasVersion(b, "4.3"), open, conformance.InMemory(b.Version()))
}

// conforming is a world as the suite sees it.
type conforming struct {
	*world
	// taken are the messages that were taken out of queues to look at them.
	taken map[string][]redeliver.Message
}

func (c *conforming) Now() time.Time { return time.Now() }
func (c *conforming) Exact() bool    { return false }

func (c *conforming) Consume(cfg redeliver.Config, handler redeliver.Handler) conformance.Consumer {
	c.t.Helper()
	log := &lockedBuffer{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	consumer, err := rabbitmq.Open(c.t.Context(), c.config(handler, cfg))
	if err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = consumer.Run(c.t.Context()) // as Close, which the suite looks at
	}()
	c.t.Cleanup(func() {
		_ = consumer.Close()
		<-ended
		if c.t.Failed() {
			c.t.Logf("--- end of the consumer's log ---\n%s", log.tail())
		}
	})
	return consumer
}

func (c *conforming) Publish(msgs ...redeliver.Message) {
	c.t.Helper()
	for _, m := range msgs {
		c.send(amqp091.Publishing{
			Headers: table(m.Headers), ContentType: m.ContentType, CorrelationId: m.CorrelationID, MessageId: m.ID, Type: m.Type,
			AppId: m.AppID, Timestamp: m.Timestamp, Priority: m.Priority, Body: m.Body, DeliveryMode: amqp091.Persistent,
		})
	}
}

// Disconnect closes the consumer's connections. By the user's name the broker
// finds them at once, which its list of connections does not.
func (c *conforming) Disconnect() {
	c.t.Helper()
	if status, answer := brokertest.Request(c.t, c.broker, http.MethodDelete, "/api/connections/username/"+c.user, nil); status != http.StatusNoContent {
		c.t.Fatalf("closing the connections of user %q: %d %s", c.user, status, answer)
	}
}

func (c *conforming) Remove(queue string) {
	c.t.Helper()
	if _, err := brokertest.Channel(c.t, c.broker, c.vhost).QueueDelete(queue, false, false, false); err != nil {
		c.t.Fatal(err)
	}
}

func (c *conforming) Depth(queue string) int {
	return brokertest.Depth(c.t, c.broker, c.vhost, queue)
}

func (c *conforming) Restore(string) { c.declare() }

func (c *conforming) Until(condition func() (bool, string)) {
	c.t.Helper()
	brokertest.WaitFor(c.t, condition)
}

func (c *conforming) Messages(queue string) []redeliver.Message {
	c.t.Helper()
	for _, d := range brokertest.Drain(c.t, c.broker, c.vhost, queue) {
		c.taken[queue] = append(c.taken[queue], redeliver.Message{
			Body: d.Body, Headers: plain(d.Headers).(map[string]any), Exchange: d.Exchange, RoutingKey: d.RoutingKey, ID: d.MessageId, Type: d.Type,
			ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, CorrelationID: d.CorrelationId, ReplyTo: d.ReplyTo, AppID: d.AppId,
			UserID: d.UserId, Expiration: d.Expiration, Timestamp: d.Timestamp, Priority: d.Priority, Redelivered: d.Redelivered,
		})
	}
	return c.taken[queue]
}

// plain replaces tables by maps, deep, and table does the opposite.
func plain(value any) any {
	switch v := value.(type) {
	case amqp091.Table:
		made := make(map[string]any, len(v))
		for key, inner := range v {
			made[key] = plain(inner)
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, inner := range v {
			made[i] = plain(inner)
		}
		return made
	default:
		return value
	}
}

func table(headers map[string]any) amqp091.Table {
	made := make(amqp091.Table, len(headers))
	for key, value := range headers {
		made[key] = tableValue(value)
	}
	return made
}

func tableValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return table(v)
	case []any:
		made := make([]any, len(v))
		for i, inner := range v {
			made[i] = tableValue(inner)
		}
		return made
	default:
		return value
	}
}
