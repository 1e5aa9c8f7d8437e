package provider

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// bundle is what one acceptance test works with: a vhost of its own on the
// shared broker and the provider block that reaches it.
type bundle struct {
	t      *testing.T
	broker *brokertest.Broker
	vhost  string
	// provider is the provider block; block writes one with further attributes inside rabbitmq.
	provider string
}

// setup gives the test a vhost of its own and lets it run beside others.
func setup(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	b := brokertest.Shared(t)
	bundle := &bundle{t: t, broker: b, vhost: brokertest.VHost(t, b)}
	bundle.provider = bundle.block("")
	return bundle
}

// block writes the provider block, with further attributes inside rabbitmq.
func (b *bundle) block(more string) string {
	return fmt.Sprintf(`
provider "redeliver" {
  rabbitmq = {
    endpoints = [%q]
    username  = %q
    password  = %q
    vhost     = %q
    %s
  }
}
`, b.broker.ManagementURL(), b.broker.Username(), b.broker.Password(), b.vhost, more)
}

// withAMQP is the provider block of a provider that can ask for exact depths.
func (b *bundle) withAMQP() string {
	u, err := url.Parse(b.broker.AMQPURL(b.vhost))
	if err != nil {
		b.t.Fatal(err)
	}
	return b.block(fmt.Sprintf("amqp_endpoints = [%q]", "amqp://"+u.Host))
}

func factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"redeliver": providerserver.NewProtocol6WithError(New("test")()),
	}
}

// run applies steps to a working directory of their own.
func (b *bundle) run(steps ...resource.TestStep) {
	b.t.Helper()
	resource.Test(b.t, resource.TestCase{
		ProtoV6ProviderFactories: factories(),
		Steps:                    steps,
	})
}

// request sends a request to the management API; format is a path below the vhost, such as "queues/%s/orders".
func (b *bundle) request(method, format string, body any) []byte {
	b.t.Helper()
	status, answer := brokertest.Request(b.t, b.broker, method, "/api/"+fmt.Sprintf(format, b.vhost), body)
	if status >= 300 {
		b.t.Fatalf("%s %s: %d %s", method, fmt.Sprintf(format, b.vhost), status, answer)
	}
	return answer
}

// exists reports whether something of the management API is there.
func (b *bundle) exists(format string) bool {
	b.t.Helper()
	status, _ := brokertest.Request(b.t, b.broker, "GET", "/api/"+fmt.Sprintf(format, b.vhost), nil)
	return status == 200
}

// gone checks that something is not there.
func (b *bundle) gone(formats ...string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for _, format := range formats {
			if b.exists(format) {
				return fmt.Errorf("%s is still there", fmt.Sprintf(format, b.vhost))
			}
		}
		return nil
	}
}

// there checks that something is there.
func (b *bundle) there(formats ...string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for _, format := range formats {
			if !b.exists(format) {
				return fmt.Errorf("%s is not there", fmt.Sprintf(format, b.vhost))
			}
		}
		return nil
	}
}

// says matches an error that has every one of the texts in it, in this order, however the CLI broke its lines.
func says(texts ...string) *regexp.Regexp {
	parts := make([]string, len(texts))
	for i, text := range texts {
		words := strings.Fields(text)
		for j, word := range words {
			words[j] = regexp.QuoteMeta(word)
		}
		parts[i] = strings.Join(words, `[\s│]+`)
	}
	return regexp.MustCompile(`(?s)` + strings.Join(parts, `.*`))
}

// orders is a topic with everything that belongs to it; retry and more go into the topic.
func orders(more string) string {
	return `
resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }
resource "redeliver_rabbitmq_parked_queue" "orders" { topic = "orders" }
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic  = "orders"
  delays = ["5s", "30s", "2m"]
}
resource "redeliver_rabbitmq_topic" "orders" {
  name              = "orders"
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  parked_queue      = redeliver_rabbitmq_parked_queue.orders.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.orders.queues
` + more + `
}
`
}
