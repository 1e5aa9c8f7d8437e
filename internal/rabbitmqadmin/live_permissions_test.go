package rabbitmqadmin

import (
	"errors"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func as(t *testing.T, b *brokertest.Broker, user, password string) *Client {
	t.Helper()
	return liveClient(t, b, func(cfg *Config) { cfg.Username, cfg.Password = user, password })
}

func TestLivePermissions(t *testing.T) {
	t.Parallel()
	admin, b, vhost := live(t, nil)
	other := brokertest.VHost(t, b)
	makeQueue(t, admin, vhost, "q", topology.Quorum, nil)
	makeExchange(t, admin, vhost, "e", "direct")

	t.Run("wrong password", func(t *testing.T) {
		c := as(t, b, b.Username(), "wrong")
		if _, err := c.Ping(t.Context()); !errors.Is(err, ErrCredentials) || errors.Is(err, ErrPermission) {
			t.Error(err)
		}
	})
	t.Run("no tag", func(t *testing.T) {
		user, password := brokertest.User(t, b, vhost, ".*", ".*", ".*")
		if _, err := as(t, b, user, password).Ping(t.Context()); !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), `"management"`) {
			t.Error(err)
		}
	})
	t.Run("another vhost", func(t *testing.T) {
		user, password := brokertest.User(t, b, other, ".*", ".*", ".*", "management")
		c := as(t, b, user, password)
		_, queue := c.Queue(t.Context(), vhost, "q")
		_, missing := c.Queue(t.Context(), vhost, "missing")
		_, list := c.Queues(t.Context(), vhost)
		_, bindings := c.QueueBindings(t.Context(), vhost, "q")
		_, deletion := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"q", "missing"}})
		for what, err := range map[string]error{
			"queue": queue, "missing": missing, "list": list, "bindings": bindings, "safe delete": deletion,
			"create": c.CreateQueue(t.Context(), vhost, topology.Queue{Name: "q"}), "delete": c.DeleteQueue(t.Context(), vhost, "missing"),
			"bind": c.Bind(t.Context(), vhost, bindingTo("e", "q", "k")), "unbind": c.Unbind(t.Context(), vhost, bindingTo("e", "q", "k")),
		} {
			if !errors.Is(err, ErrVHostUnreadable) || errors.Is(err, ErrNotFound) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	t.Run("no such vhost", func(t *testing.T) {
		if _, err := admin.Queue(t.Context(), "no such vhost", "q"); !errors.Is(err, ErrVHostUnreadable) || errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		if err := admin.CreateQueue(t.Context(), "no such vhost", topology.Queue{Name: "q"}); !errors.Is(err, ErrVHostUnreadable) {
			t.Error(err)
		}
	})
	t.Run("no permission on the object", func(t *testing.T) {
		user, password := brokertest.User(t, b, vhost, "^mine", "^mine", "^mine", "management")
		c := as(t, b, user, password)
		if q, err := c.Queue(t.Context(), vhost, "q"); err != nil || q.Type != topology.Quorum {
			t.Errorf("reading takes no permission on the queue: %v", err)
		}
		if _, err := c.Queue(t.Context(), vhost, "missing"); !errors.Is(err, ErrNotFound) {
			t.Errorf("reading what is missing: %v", err)
		}
		must(t, c.CreateQueue(t.Context(), vhost, topology.Queue{Name: "mine"}))
		for what, err := range map[string]error{
			"create":             c.CreateQueue(t.Context(), vhost, topology.Queue{Name: "theirs"}),
			"create with target": c.CreateQueue(t.Context(), vhost, topology.Queue{Name: "mine2", Arguments: deadLettersTo("theirs")}),
			"declare exchange":   c.CreateExchange(t.Context(), vhost, LiveExchange{Name: "theirs", Type: "direct", Durable: true}),
			"bind":               c.Bind(t.Context(), vhost, bindingTo("e", "q", "k")),
			"delete":             c.DeleteQueue(t.Context(), vhost, "q"),
			"delete exchange":    c.DeleteExchange(t.Context(), vhost, "e"),
		} {
			if !errors.Is(err, ErrPermission) || !errors.Is(err, ErrUnauthorized) || !strings.Contains(err.Error(), "takes ") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
	t.Run("AMQP without permission", func(t *testing.T) {
		user, password := brokertest.User(t, b, vhost, "^$", "^$", "^$", "management")
		c := liveClient(t, b, func(cfg *Config) {
			withAMQP(t, b)(cfg)
			cfg.Username, cfg.Password = user, password
		})
		_, err := c.SafeDelete(t.Context(), SafeDelete{VHost: vhost, Queues: []string{"q"}})
		// 4.3 refuses the question (it wants a permission on the queue), 3.10 the deletion.
		if err == nil || !exists(t, admin, vhost, "q") {
			t.Error("deleted")
		}
	})
	t.Run("AMQP with a wrong password", func(t *testing.T) {
		c := liveClient(t, b, func(cfg *Config) {
			withAMQP(t, b)(cfg)
			cfg.Password = "wrong"
		})
		_, err := c.amqp.depths(t.Context(), vhost, []string{"q"})
		var e *UnreachableError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "403") {
			t.Error(err)
		}
	})
}

func TestLiveWrongPrefix(t *testing.T) {
	t.Parallel()
	_, b, vhost := live(t, nil)
	for _, prefix := range []string{"/wrong", "/api"} {
		c := liveClient(t, b, func(cfg *Config) { cfg.Endpoints = []string{b.ManagementURL() + prefix} })
		for what, err := range map[string]error{
			"ping": second(c.Ping(t.Context())), "queue": second(c.Queue(t.Context(), vhost, "q")), "delete": c.DeleteQueue(t.Context(), vhost, "q"),
			"list": second(c.Queues(t.Context(), vhost)), "create": c.CreateQueue(t.Context(), vhost, topology.Queue{Name: "q"}),
		} {
			if err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "path") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}
