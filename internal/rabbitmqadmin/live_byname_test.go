package rabbitmqadmin

import (
	"slices"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func TestLiveDeadLetteringByName(t *testing.T) {
	t.Parallel()
	c, _, vhost := live(t, nil)
	makeQueue(t, c, vhost, "orders", topology.Classic, nil)
	makeExchange(t, c, vhost, "direct", "direct")
	bind(t, c, vhost, bindingTo("direct", "orders", "orders"))
	makeQueue(t, c, vhost, "by-name", topology.Classic, deadLettersTo("", "orders"))
	makeQueue(t, c, vhost, "to-another", topology.Classic, deadLettersTo("", "other"))
	makeQueue(t, c, vhost, "by-exchange", topology.Classic, deadLettersTo("direct", "orders"))
	keeps := deadLettersTo("", "orders")
	keeps[topology.ArgDeadLetterStrategy], keeps[topology.ArgOverflow] = "at-least-once", "reject-publish"
	makeQueue(t, c, vhost, "keeps", topology.Quorum, keeps)

	if got, err := c.DeadLetteringByName(t.Context(), vhost, "orders"); err != nil || !slices.Equal(got, []string{"by-name"}) {
		t.Errorf("%q, %v, want by-name", got, err)
	}
	if got, err := c.DeadLetteringByName(t.Context(), vhost, "none"); err != nil || len(got) != 0 {
		t.Errorf("a queue that does not exist: %q, %v", got, err)
	}
}
