package rabbitmq

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func TestShorten(t *testing.T) {
	t.Parallel()
	names := topology.Headers{Error: "error", ErrorType: "type"}
	for name, tt := range map[string]struct {
		headers     amqp091.Table
		over        int
		fits        bool
		error, kind string
	}{
		"enough in the error": {amqp091.Table{"error": "0123456789", "type": "t"}, 4, true, "012345", "t"},
		"both are needed":     {amqp091.Table{"error": "0123", "type": "type"}, 6, true, "", "ty"},
		"not enough":          {amqp091.Table{"error": "0123", "other": "0123456789"}, 6, false, "", ""},
		"no half characters":  {amqp091.Table{"error": "äöü"}, 1, true, "äö", ""},
		"not a text":          {amqp091.Table{"error": int64(1)}, 1, false, "", ""},
	} {
		fits := shorten(tt.headers, names, tt.over)
		text, _ := tt.headers["error"].(string)
		kind, _ := tt.headers["type"].(string)
		if fits != tt.fits || text != tt.error || kind != tt.kind {
			t.Errorf("%s: %v %q", name, fits, tt.headers)
		}
	}
}

// TestPublisher: what the engine learns about a copy's fate; an error that makes a copy too large is cut.
func TestPublisher(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	if _, err := brokertest.Channel(t, b, vhost).QueueDeclare("parked", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	broker, err := NewBroker(Config{URL: b.AMQPURL(vhost), VHost: vhost, Topic: "orders", Queue: "orders", Name: t.Name(), Headers: topology.Headers{Error: "x-error"}})
	if err != nil {
		t.Fatal(err)
	}
	p := NewPublisher(broker)
	defer p.Close(context.Background())
	target := func(exchange, key string) *topology.ManifestTarget {
		return &topology.ManifestTarget{ManifestQueue: topology.ManifestQueue{Name: "parked"}, Exchange: exchange, RoutingKey: key}
	}
	if err := p.Check(t.Context(), []*topology.ManifestTarget{target("", "parked"), target("", "other")}); err != nil {
		t.Error(err)
	}
	if err := p.Check(t.Context(), []*topology.ManifestTarget{target("missing", "parked")}); !errors.Is(err, redeliver.ErrExchangeNotFound) {
		t.Errorf("missing exchange: %v", err)
	}
	filled := func(bytes int) *redeliver.Message {
		return &redeliver.Message{ID: "m", Headers: map[string]any{"fill": strings.Repeat("x", bytes)}}
	}
	long := map[string]any{"x-error": strings.Repeat("e", 4000)}
	for name, tt := range map[string]struct {
		copy   consumer.Copy
		want   error
		length int // of the error that arrives
	}{
		"taken":           {consumer.Copy{Message: filled(1), Set: long, Target: target("", "parked")}, nil, 4000},
		"cut":             {consumer.Copy{Message: filled(128<<10 - 2000), Set: long, Target: target("", "parked")}, nil, 1900},
		"too large":       {consumer.Copy{Message: filled(128 << 10), Set: long, Target: target("", "parked")}, amqp.ErrUnsendable, 0},
		"no queue":        {consumer.Copy{Message: filled(1), Target: target("", "missing")}, consumer.ErrNoQueue, 0},
		"no exchange":     {consumer.Copy{Message: filled(1), Target: target("missing", "parked")}, consumer.ErrNoQueue, 0},
		"cannot be coded": {consumer.Copy{Message: filled(1), Set: map[string]any{"x": struct{}{}}, Target: target("", "parked")}, amqp.ErrUnsendable, 0},
	} {
		told := make(chan error, 2)
		p.Publish(tt.copy, func(err error) { told <- err })
		if err := <-told; !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if tt.want != nil {
			continue
		}
		d, ok := brokertest.Get(t, b, vhost, "parked")
		if text, _ := d.Headers["x-error"].(string); !ok || len(text) < tt.length || len(text) > tt.length+100 {
			t.Errorf("%s: the error has %d bytes", name, len(text))
		}
	}
}

// TestConnectionLimit: a broker that answers is not unreachable.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	status, answer := brokertest.Request(t, b, http.MethodPut, "/api/vhost-limits/"+url.PathEscape(vhost)+"/max-connections", map[string]int{"value": 0})
	if status >= http.StatusMultipleChoices {
		t.Fatalf("%d %s", status, answer)
	}
	broker, err := NewBroker(Config{URL: b.AMQPURL(vhost), VHost: vhost, Topic: "orders", Queue: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := broker.Subscribe(ctx, 1); !errors.Is(err, redeliver.ErrRefused) || errors.Is(err, redeliver.ErrVHost) || !strings.Contains(err.Error(), "limit") {
		t.Errorf("%v", err)
	}
}
