package provider

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// sqsBundle is what one acceptance test on SQS works with: an emulator, a name that no other test has, and the provider
// block that reaches it.
type sqsBundle struct {
	*bundle
	service  *sqstest.Service
	client   *sqs.Client
	topic    string
	provider string
}

// setupSQS lets the test run beside others on local-aws-sqs, which is for the control plane.
func setupSQS(t *testing.T) *sqsBundle {
	t.Helper()
	t.Parallel()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("no TF_ACC: run make test")
	}
	return sqsOn(t, sqstest.Local(t))
}

func sqsOn(t *testing.T, service *sqstest.Service) *sqsBundle {
	t.Helper()
	b := &sqsBundle{bundle: &bundle{t: t}, service: service, client: service.Client(t), topic: sqstest.UniqueName(t)}
	b.provider = b.block("")
	return b
}

// block writes the provider block, with further attributes inside sqs.
func (b *sqsBundle) block(more string) string {
	return b.blockAt(b.service.Endpoint(), more)
}

func (b *sqsBundle) blockAt(endpoint, more string) string {
	key, secret := b.service.Credentials()
	return fmt.Sprintf(`
provider "redeliver" {
  sqs = {
    region     = %q
    endpoint   = %q
    access_key = %q
    secret_key = %q
    account_id = %q
    %s
  }
}
`, b.service.Region(), endpoint, key, secret, b.service.Account(), more)
}

// config is the provider block and resources in which TOPIC is the test's own name.
func (b *sqsBundle) config(resources string) string {
	return b.provider + strings.ReplaceAll(resources, "TOPIC", b.topic)
}

// sqsOrders is a topic with everything that belongs to it; more goes into the topic.
func sqsOrders(more string) string {
	return `
resource "redeliver_sqs_dead_letter_queue" "orders" {
  topic            = "TOPIC"
  delete_non_empty = true
}
resource "redeliver_sqs_parked_queue" "orders" {
  topic            = "TOPIC"
  delete_non_empty = true
}
resource "redeliver_sqs_topic" "orders" {
  name              = "TOPIC"
  dead_letter_queue = redeliver_sqs_dead_letter_queue.orders.name
  parked_queue      = redeliver_sqs_parked_queue.orders.name
  retry             = { delays = ["5s", "30s", "2m"] }
  delete_non_empty  = true
` + more + `
}
`
}

// runSQS applies steps to a working directory of their own, and destroys everything at the end.
func (b *sqsBundle) runSQS(steps ...resource.TestStep) {
	b.t.Helper()
	resource.Test(b.t, resource.TestCase{ProtoV6ProviderFactories: factories(), Steps: steps})
}

// name is a queue's: suffix goes behind the topic's name.
func (b *sqsBundle) name(suffix string) string { return b.topic + suffix }

// live are the attributes of a queue; nil where there is none.
func (b *sqsBundle) live(queue string) topology.SQSAttributes {
	b.t.Helper()
	answer, err := b.client.GetQueueAttributes(b.t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(b.service.QueueURL(queue)), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return nil
	}
	return answer.Attributes
}

// tags are the tags of a queue.
func (b *sqsBundle) tags(queue string) map[string]string {
	b.t.Helper()
	answer, err := b.client.ListQueueTags(b.t.Context(), &sqs.ListQueueTagsInput{QueueUrl: aws.String(b.service.QueueURL(queue))})
	if err != nil {
		b.t.Fatal(err)
	}
	return answer.Tags
}

// set changes attributes of a queue by hand.
func (b *sqsBundle) set(queue string, attributes map[string]string) {
	b.t.Helper()
	_, err := b.client.SetQueueAttributes(b.t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: aws.String(b.service.QueueURL(queue)), Attributes: attributes})
	if err != nil {
		b.t.Fatal(err)
	}
}

// drop deletes a queue by hand.
func (b *sqsBundle) drop(queue string) {
	b.t.Helper()
	if _, err := b.client.DeleteQueue(b.t.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String(b.service.QueueURL(queue))}); err != nil {
		b.t.Fatal(err)
	}
}

// send puts a message into a queue and waits until it is counted.
func (b *sqsBundle) send(queue string) {
	b.t.Helper()
	in := &sqs.SendMessageInput{QueueUrl: aws.String(b.service.QueueURL(queue)), MessageBody: aws.String("hello")}
	if _, err := b.client.SendMessage(b.t.Context(), in); err != nil {
		b.t.Fatal(err)
	}
	brokertest.WaitFor(b.t, func() (bool, string) {
		visible, _, _ := b.live(queue).Messages()
		return visible == 1, fmt.Sprintf("%d messages", visible)
	})
}
