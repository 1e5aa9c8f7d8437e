package provider

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// TestTheGuidesPermissionsAreEnough takes the permissions of the provider's user from the guide, and works with them.
func TestTheGuidesPermissionsAreEnough(t *testing.T) {
	guide, err := os.ReadFile("../../templates/guides/least_privilege.md")
	if err != nil {
		t.Fatal(err)
	}
	expression := func(permission string) string {
		found := regexp.MustCompile(`(?m)^\| ` + permission + " \\| `(.*)` \\|$").FindSubmatch(guide)
		if found == nil {
			t.Fatalf("the guide has no row for %s", permission)
		}
		return strings.ReplaceAll(string(found[1]), `\|`, `|`)
	}
	b := setup(t)
	user, password := brokertest.User(t, b.broker, b.vhost, expression("configure"), expression("write"), expression("read"), expression("tag"))
	provider := b.blockAt(b.broker.ManagementURL(), user, password, fmt.Sprintf("amqp_endpoints = [%q]", b.amqpEndpoint()))
	config := provider + strings.ReplaceAll(shop, `"shop"`+"\n", `"shop.events"`+"\n") + orders(`bindings = [
    { exchange = redeliver_rabbitmq_exchange.shop.name, routing_key = "order.*" },
    { exchange = "amq.topic", routing_key = "order.*" },
  ]`)
	b.run(resource.TestStep{Config: config, Check: b.there("queues/%s/orders", "exchanges/%s/shop.events")}, unchanged(config))
	b.mustBeGone("queues/%s/orders", "queues/%s/orders-dlq", "exchanges/%s/shop.events")
}
