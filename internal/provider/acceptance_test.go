package provider

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

func TestMain(m *testing.M) {
	brokertest.AtOnce(6) // most of their time they wait for the broker's statistics
	code := m.Run()
	removeBuilt()
	os.Exit(code)
}

// bundle is what one acceptance test works with: a vhost of its own on the
// shared broker and the provider block that reaches it.
type bundle struct {
	t      *testing.T
	broker *brokertest.Broker
	vhost  string
	// provider is the provider block of a provider that can ask for exact depths; block writes other ones.
	provider string
}

// setup gives the test a vhost of its own and lets it run beside others.
func setup(t *testing.T) *bundle {
	t.Helper()
	t.Parallel()
	b := brokertest.Shared(t)
	if os.Getenv("TF_ACC") == "" {
		t.Skip("no TF_ACC: run make test")
	}
	bundle := &bundle{t: t, broker: b, vhost: brokertest.VHost(t, b)}
	bundle.provider = bundle.block("amqp_endpoints = [" + fmt.Sprintf("%q", bundle.amqpEndpoint()) + "]")
	return bundle
}

func (b *bundle) amqpEndpoint() string {
	u, err := url.Parse(b.broker.AMQPURL(b.vhost))
	if err != nil {
		b.t.Fatal(err)
	}
	return "amqp://" + u.Host
}

// block writes the provider block, with further attributes inside rabbitmq.
func (b *bundle) block(more string) string {
	return b.blockAt(b.broker.ManagementURL(), b.broker.Username(), b.broker.Password(), more)
}

// blockAt writes the provider block for an endpoint and a user, with further attributes inside rabbitmq.
func (b *bundle) blockAt(endpoint, user, password, more string) string {
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
`, endpoint, user, password, b.vhost, more)
}

// factories serve the provider in this process. It does not see the environment: what a test's provider is configured
// with is in the test.
func factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return factoriesWith(nil)
}

func factoriesWith(env map[string]string) map[string]func() (tfprotov6.ProviderServer, error) {
	served := &redeliverProvider{version: "test", getenv: func(name string) string { return env[name] }}
	return map[string]func() (tfprotov6.ProviderServer, error){"redeliver": providerserver.NewProtocol6WithError(served)}
}

// run applies steps to a working directory of their own, and destroys everything at the end.
func (b *bundle) run(steps ...resource.TestStep) {
	b.t.Helper()
	b.runWith(nil, steps...)
}

func (b *bundle) runWith(env map[string]string, steps ...resource.TestStep) {
	b.t.Helper()
	resource.Test(b.t, resource.TestCase{ProtoV6ProviderFactories: factoriesWith(env), Steps: steps})
}

// unchanged is a step in which the same configuration plans nothing.
func unchanged(config string) resource.TestStep {
	return resource.TestStep{
		Config:           config,
		ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectEmptyPlan()}},
	}
}

// path fills the vhost into a path below /api: "queues/%s/orders".
func (b *bundle) path(format string) string {
	return "/api/" + fmt.Sprintf(format, url.PathEscape(b.vhost))
}

// request sends a request to the management API; format is a path with the vhost left out, such as "queues/%s/orders".
func (b *bundle) request(method, format string, body any) []byte {
	b.t.Helper()
	status, answer := brokertest.Request(b.t, b.broker, method, b.path(format), body)
	if status >= 300 {
		b.t.Fatalf("%s %s: %d %s", method, b.path(format), status, answer)
	}
	return answer
}

// remake deletes a queue by hand and makes it again with other arguments.
func (b *bundle) remake(queue string, arguments map[string]any) {
	b.t.Helper()
	b.request("DELETE", "queues/%s/"+queue, nil)
	b.request("PUT", "queues/%s/"+queue, map[string]any{"durable": true, "arguments": arguments})
}

// argumentsOf are the live arguments of a queue.
func (b *bundle) argumentsOf(queue string) map[string]any {
	b.t.Helper()
	var live struct {
		Arguments map[string]any `json:"arguments"`
	}
	if err := json.Unmarshal(b.request("GET", "queues/%s/"+queue, nil), &live); err != nil {
		b.t.Fatal(err)
	}
	return live.Arguments
}

// exists reports whether something of the management API is there. A binding's path lists; an empty list is nothing.
func (b *bundle) exists(format string) bool {
	b.t.Helper()
	status, answer := brokertest.Request(b.t, b.broker, "GET", b.path(format), nil)
	return status == 200 && string(answer) != "[]"
}

// mustExist and mustBeGone check on the broker.
func (b *bundle) mustExist(formats ...string) {
	b.t.Helper()
	if err := b.there(formats...)(nil); err != nil {
		b.t.Error(err)
	}
}

func (b *bundle) mustBeGone(formats ...string) {
	b.t.Helper()
	if err := b.gone(formats...)(nil); err != nil {
		b.t.Error(err)
	}
}

// gone checks that something is not there.
func (b *bundle) gone(formats ...string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for _, format := range formats {
			if b.exists(format) {
				return fmt.Errorf("%s is still there", b.path(format))
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
				return fmt.Errorf("%s is not there", b.path(format))
			}
		}
		return nil
	}
}

// publish puts n messages into a queue.
func (b *bundle) publish(queue string, n int) {
	b.t.Helper()
	messages := make([]amqp091.Publishing, n)
	for i := range messages {
		messages[i] = amqp091.Publishing{DeliveryMode: amqp091.Persistent, Body: []byte(fmt.Sprint(i))}
	}
	brokertest.Publish(b.t, b.broker, b.vhost, "", queue, messages...)
}

// waitCounted waits until the broker's own statistics show n messages in a queue: a plan can know no more.
func (b *bundle) waitCounted(queue string, n int) {
	b.t.Helper()
	brokertest.WaitFor(b.t, func() (bool, string) {
		var live struct {
			Messages *int `json:"messages"`
		}
		if err := json.Unmarshal(b.request("GET", "queues/%s/"+queue, nil), &live); err != nil {
			return false, err.Error()
		}
		if live.Messages == nil {
			return false, "no count yet"
		}
		return *live.Messages == n, fmt.Sprintf("%d messages, want %d", *live.Messages, n)
	})
}

// says matches a text that has every one of the texts in it, in this order, however the CLI broke its lines.
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

// orders is a topic with everything that belongs to it; more goes into the topic.
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

var (
	oneLine  = regexp.MustCompile(`(?m)^(resource "\w+" "\w+" \{) (.*) \}$`)
	deletion = regexp.MustCompile(`(?m)^(resource "redeliver_rabbitmq_(?:topic|hold_ladder|dead_letter_queue|parked_queue)" "\w+" \{)$`)
)

// losing makes resources that are deleted whatever they hold, for tests that are about something else.
func losing(config string) string {
	config = oneLine.ReplaceAllString(config, "$1\n  $2\n}")
	return deletion.ReplaceAllString(config, "$1\n  delete_non_empty = true")
}

// jsonPath reads "a.b.c" as the path of nested fields.
func jsonPath(text string) tfjsonpath.Path {
	first, rest, _ := strings.Cut(text, ".")
	path := tfjsonpath.New(first)
	for rest != "" {
		first, rest, _ = strings.Cut(rest, ".")
		path = path.AtMapKey(first)
	}
	return path
}

// contains is an error unless a text has all of the parts in it.
func contains(text string, parts ...string) error {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return fmt.Errorf("%q is not in %s", part, text)
		}
	}
	return nil
}
