package rabbitmqadmin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func TestLiveExactDepths(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	c, b, vhost := live(t, withAMQP(t, b))
	for _, kind := range bothTypes {
		makeQueue(t, c, vhost, string(kind), kind, nil)
		brokertest.Publish(t, b, vhost, "", string(kind), amqp091.Publishing{}, amqp091.Publishing{})
	}
	// A queue that is missing closes the channel; the next question gets another.
	got, err := c.amqp.depths(t.Context(), vhost, []string{"none", "classic", "none either", "quorum"})
	must(t, err)
	for name, want := range map[string]amqpDepth{"none": {}, "none either": {}, "classic": {exists: true, messages: 2}, "quorum": {exists: true, messages: 2}} {
		if got[name] != want {
			t.Errorf("%s: %+v, want %+v", name, got[name], want)
		}
	}
}

// TestLiveAMQPConnectionIsReplaced: the broker closed the connection that was kept.
func TestLiveAMQPConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	agent := "agent of " + t.Name() + time.Now().String()
	c, b, vhost := live(t, func(cfg *Config) {
		withAMQP(t, b)(cfg)
		cfg.UserAgent = agent
		cfg.MaxRetries = -1
	})
	makeQueue(t, c, vhost, "q", topology.Classic, nil)
	must(t, second(c.amqp.depths(t.Context(), vhost, []string{"q"})))
	name := ""
	brokertest.WaitFor(t, func() (bool, string) {
		_, answer := brokertest.Request(t, b, http.MethodGet, "/api/vhosts/"+url.PathEscape(vhost)+"/connections", nil)
		var connections []struct {
			Name   string `json:"name"`
			Client struct {
				Name string `json:"connection_name"`
			} `json:"client_properties"`
		}
		must(t, json.Unmarshal(answer, &connections))
		for _, connection := range connections {
			if connection.Client.Name == agent {
				name = connection.Name
			}
		}
		return name != "", "the connection does not show"
	})
	if status, answer := brokertest.Request(t, b, http.MethodDelete, "/api/connections/"+url.PathEscape(name), nil); status >= 300 {
		t.Fatalf("closing the connection: %d %s", status, answer)
	}
	must(t, second(c.amqp.depths(t.Context(), vhost, []string{"q"})))
	c.Close()
	must(t, second(c.amqp.depths(t.Context(), vhost, []string{"q"}))) // closing is not the end
}

func TestLiveAMQPFailover(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	c, _, vhost := live(t, func(cfg *Config) {
		withAMQP(t, b)(cfg)
		cfg.AMQPEndpoints = append([]string{"amqp://127.0.0.1:1"}, cfg.AMQPEndpoints...)
	})
	must(t, second(c.amqp.depths(t.Context(), vhost, []string{"q"})))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.amqp.depths(ctx, vhost, []string{"q"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	must(t, second(c.amqp.depths(t.Context(), vhost, []string{"q"})))
}

// TestLiveSafeDeleteFailsHalfway: the second queue cannot be deleted.
func TestLiveSafeDeleteFailsHalfway(t *testing.T) {
	t.Parallel()
	c, b, vhost := live(t, nil)
	makeExchange(t, c, vhost, "e", "direct")
	makeQueue(t, c, vhost, "first", topology.Quorum, nil)
	makeQueue(t, c, vhost, "third", topology.Quorum, nil)
	_, err := brokertest.Channel(t, b, vhost).QueueDeclare("exclusive", false, false, true, false, nil)
	must(t, err)
	own := []topology.Binding{bindingTo("e", "first", "k"), bindingTo("e", "third", "k")}
	bind(t, c, vhost, own...)
	result, err := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"first", "exclusive", "third"}, OwnBindings: own})
	var e *Error
	if !errors.As(err, &e) || e.Object != `queue "exclusive"` || !slices.Equal(result.Deleted, []string{"first"}) ||
		!slices.EqualFunc(result.Bindings, own[:1], sameBinding) {
		t.Errorf("%+v, %v", result, err)
	}
	wantBindings(t, c, vhost, "third", own[1])
}
