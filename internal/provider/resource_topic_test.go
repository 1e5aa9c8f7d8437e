package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

func TestTopicIsProvisionedWithItsLadderAndDeadEnds(t *testing.T) {
	b := setup(t)
	topic := "redeliver_rabbitmq_topic.orders"
	b.run(
		resource.TestStep{
			Config: b.provider + orders(`bindings = [{ exchange = "amq.topic", routing_key = "order.*" }]`),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectKnownValue(topic, tfjsonpath.New("manifest"), knownvalue.StringFunc(func(string) error { return nil })),
				plancheck.ExpectKnownValue(topic, tfjsonpath.New("arguments").AtMapKey("x-delivery-limit"), knownvalue.StringExact("50")),
				plancheck.ExpectKnownValue(topic, tfjsonpath.New("id"), knownvalue.NotNull()),
			}},
			Check: b.there("queues/%s/orders", "queues/%s/orders-dlq", "queues/%s/orders-parked", "queues/%s/orders-hold-5s",
				"queues/%s/orders-hold-30s", "queues/%s/orders-hold-120s", "exchanges/%s/orders-retry", "bindings/%s/e/amq.topic/q/orders"),
		},
		resource.TestStep{
			Config:           b.provider + orders(`bindings = [{ exchange = "amq.topic", routing_key = "order.*" }]`),
			ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
		},
		resource.TestStep{ResourceName: topic, ImportState: true, ImportStateVerify: true},
		resource.TestStep{ResourceName: "redeliver_rabbitmq_hold_ladder.orders", ImportState: true, ImportStateVerify: true},
		resource.TestStep{ResourceName: "redeliver_rabbitmq_dead_letter_queue.orders", ImportState: true, ImportStateVerify: true},
		resource.TestStep{ResourceName: "redeliver_rabbitmq_parked_queue.orders", ImportState: true, ImportStateVerify: true},
	)
	for _, format := range []string{"queues/%s/orders", "queues/%s/orders-dlq", "queues/%s/orders-hold-5s", "exchanges/%s/orders-retry"} {
		if b.exists(format) {
			t.Errorf(format+" is still there after destroy", b.vhost)
		}
	}
}
