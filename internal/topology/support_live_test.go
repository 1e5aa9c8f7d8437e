package topology

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// TestLiveArgumentRules holds every rule against the broker: what it is said to refuse it refuses, and what it is said to
// ignore or to carry out it takes, and keeps. What messages do with an argument that is taken no answer shows.
func TestLiveArgumentRules(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	values := map[string][]any{
		ArgDelayedRetryType: {"all"}, ArgDelayedRetryMin: {int64(1000)}, ArgDelayedRetryMax: {int64(1000)},
		ArgDeliveryLimit: {int64(5), int64(-1)}, ArgConsumerTimeout: {int64(7_200_000)}, ArgMaxPriority: {int64(0), int64(5), int64(31)},
		ArgDeadLetterStrategy: {"at-most-once", "at-least-once"}, "x-queue-mode": {"lazy"}, "x-queue-version": {int64(2)},
		"x-queue-master-locator": {"client-local"}, "x-max-in-memory-length": {int64(10)}, "x-max-in-memory-bytes": {int64(10)},
		ArgQuorumGroupSize: {int64(1)}, ArgQuorumTargetSize: {int64(1)}, "x-max-age": {"1h"},
		ArgOverflow: {"drop-head", "reject-publish", "reject-publish-dlx"},
		// Without a rule: every queue is to take them.
		ArgMessageTTL: {int64(1000)}, ArgMaxLength: {int64(10)}, ArgMaxLengthBytes: {int64(10)}, ArgSingleActiveConsumer: {true},
		ArgDeadLetterExchange: {"dlx"}, ArgExpires: {int64(1_000_000)},
	}
	for key := range supported {
		if len(values[key]) == 0 {
			t.Errorf("no value of %s to try", key)
		}
	}
	for key, tried := range values {
		for _, value := range tried {
			for _, kind := range []QueueType{Classic, Quorum} {
				q := Queue{Name: fmt.Sprintf("%s %s %v", kind, key, value), Type: kind, Arguments: Arguments{ArgQueueType: string(kind), key: value}}
				if key == "x-queue-master-locator" && kind == Classic && atLeast(b.Version(), "4.3") {
					continue // a broker may be configured to permit it all the same, so that there is no rule
				}
				failed := q.CheckArguments(b.Version())
				refuses := failed != nil && strings.Contains(failed.Error(), brokerRefuses)
				at := "/api/queues/" + url.PathEscape(vhost) + "/" + url.PathEscape(q.Name)
				status, answer := brokertest.Request(t, b, http.MethodPut, at, map[string]any{"durable": true, "arguments": q.Arguments})
				if refused := status == http.StatusBadRequest; refused != refuses || !refused && status != http.StatusCreated {
					t.Errorf("%s on %s: %d %s; the rules say %v", q.Name, b.Version(), status, answer, failed)
				}
				if status != http.StatusCreated {
					continue
				}
				var live struct{ Arguments Arguments }
				_, answer = brokertest.Request(t, b, http.MethodGet, at, nil)
				if err := json.Unmarshal(answer, &live); err != nil || CanonicalJSON(live.Arguments[key]) != CanonicalJSON(value) {
					t.Errorf("%s on %s is %s, %v", q.Name, b.Version(), answer, err)
				}
			}
		}
	}
}
