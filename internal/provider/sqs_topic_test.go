package provider

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// TestSQSQueues makes topics of every kind: every managed attribute is on the service as it is computed, the manifest is
// what a consumer can bind to, and a second plan has nothing to do.
func TestSQSQueues(t *testing.T) {
	for name, test := range map[string]struct {
		config string
		// queues are the attributes that are not the default's, by what is behind the topic's name. ARN stands for the
		// start of every ARN.
		queues map[string]topology.SQSAttributes
		final  topology.FinalMode
	}{
		"standard": {
			config: sqsOrders(""),
			queues: map[string]topology.SQSAttributes{
				"":        {"RedrivePolicy": `{"deadLetterTargetArn":"ARN-dlq","maxReceiveCount":11}`},
				"-dlq":    {"MessageRetentionPeriod": "1209600", "RedriveAllowPolicy": `{"redrivePermission":"byQueue","sourceQueueArns":["ARN"]}`},
				"-parked": {"MessageRetentionPeriod": "1209600", "RedriveAllowPolicy": `{"redrivePermission":"denyAll"}`},
			},
			final: topology.FinalBroker,
		},
		"send": {
			config: sqsOrders("  dead_letter_via = \"send\"\n"),
			queues: map[string]topology.SQSAttributes{"": {"RedrivePolicy": `{"deadLetterTargetArn":"ARN-dlq","maxReceiveCount":50}`}},
			final:  topology.FinalPublish,
		},
		"fifo": {
			config: strings.ReplaceAll(sqsOrders(`
  content_based_deduplication = true
  deduplication_scope         = "messageGroup"
  throughput_limit            = "perMessageGroupId"
`), "delete_non_empty", "fifo = true\n  delete_non_empty"),
			queues: map[string]topology.SQSAttributes{
				".fifo": {
					"FifoQueue": "true", "ContentBasedDeduplication": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId",
					"RedrivePolicy": `{"deadLetterTargetArn":"ARN-dlq.fifo","maxReceiveCount":11}`,
				},
				"-dlq.fifo":    {"FifoQueue": "true", "MessageRetentionPeriod": "1209600", "RedriveAllowPolicy": `{"redrivePermission":"byQueue","sourceQueueArns":["ARN.fifo"]}`},
				"-parked.fifo": {"FifoQueue": "true", "MessageRetentionPeriod": "1209600", "RedriveAllowPolicy": `{"redrivePermission":"denyAll"}`},
			},
			final: topology.FinalBroker,
		},
		"every setting": {
			config: sqsOrders(`
  visibility_timeout = "2m"
  retention          = "7d"
  delay              = "10s"
  receive_wait       = "20s"
  max_message_size   = 2048
  kms_key            = "alias/orders"
  kms_data_key_reuse = "1h"
  handler_timeout    = "90s"
`),
			queues: map[string]topology.SQSAttributes{"": {
				"VisibilityTimeout": "120", "MessageRetentionPeriod": "604800", "DelaySeconds": "10", "ReceiveMessageWaitTimeSeconds": "20", "MaximumMessageSize": "2048",
				"KmsMasterKeyId": "alias/orders", "KmsDataKeyReusePeriodSeconds": "3600", "SqsManagedSseEnabled": "false",
				"RedrivePolicy": `{"deadLetterTargetArn":"ARN-dlq","maxReceiveCount":11}`,
			}},
			final: topology.FinalBroker,
		},
		"shove, without encryption": {
			config: strings.ReplaceAll(`
resource "redeliver_sqs_dead_letter_queue" "orders" {
  topic          = "TOPIC"
  SHOVE
  encryption     = "none"
}
resource "redeliver_sqs_topic" "orders" {
  name              = "TOPIC"
  SHOVE
  dead_letter_queue = redeliver_sqs_dead_letter_queue.orders.name
  retry             = { max_retries = 3, delays = ["1m"], jitter = 0, give_up_after = "1h" }
}
`, "SHOVE", "convention = \"shove\"\n  consumer_group = \"eu\"\n  delete_non_empty = true"),
			queues: map[string]topology.SQSAttributes{
				"":        {"RedrivePolicy": `{"deadLetterTargetArn":"ARN-eu-dlq","maxReceiveCount":4}`},
				"-eu-dlq": {"MessageRetentionPeriod": "1209600", "SqsManagedSseEnabled": "false", "RedriveAllowPolicy": `{"redrivePermission":"byQueue","sourceQueueArns":["ARN"]}`},
			},
			final: topology.FinalBroker,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setupSQS(t)
			config := b.config(test.config)
			b.runSQS(resource.TestStep{Config: config, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
				plancheck.ExpectKnownValue("redeliver_sqs_topic.orders", tfjsonpath.New("manifest"), knownvalue.NotNull()),
			}}, Check: resource.ComposeAggregateTestCheckFunc(b.shows(test.queues), b.manifest(test.final))}, unchanged(config))
			for suffix := range test.queues {
				if b.live(b.name(suffix)) != nil {
					t.Errorf("queue %q is left", b.name(suffix))
				}
			}
		})
	}
}

// shows checks the attributes of queues on the service.
func (b *sqsBundle) shows(queues map[string]topology.SQSAttributes) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for suffix, want := range queues {
			want = maps.Clone(want)
			for key, value := range want {
				want[key] = strings.ReplaceAll(value, "ARN", b.service.QueueARN(b.topic))
			}
			if differences := topology.DiffSQSAttributes(want, b.live(b.name(suffix))); len(differences) > 0 {
				return fmt.Errorf("queue %q: %v", b.name(suffix), differences)
			}
		}
		return nil
	}
}

// manifest checks that the topic's manifest is one, and names what is there.
func (b *sqsBundle) manifest(final topology.FinalMode) resource.TestCheckFunc {
	return func(state *terraform.State) error {
		topic := state.RootModule().Resources["redeliver_sqs_topic.orders"].Primary.Attributes
		m, err := topology.DecodeManifest([]byte(topic["manifest"]))
		if err != nil {
			return err
		}
		switch {
		case m.WorkQueue.URL != topic["url"] || m.WorkQueue.ARN != topic["arn"]:
			return fmt.Errorf("the manifest has %s and %s, the resource %s and %s", m.WorkQueue.URL, m.WorkQueue.ARN, topic["url"], topic["arn"])
		case m.WorkQueue.URL != b.service.QueueURL(m.WorkQueue.Name):
			return fmt.Errorf("the queue is at %s and not at %s", b.service.QueueURL(m.WorkQueue.Name), m.WorkQueue.URL)
		case m.Final != final:
			return fmt.Errorf("final is %q, want %q", m.Final, final)
		case topic["id"] != topic["arn"] && m.Convention == topology.Redeliver:
			return fmt.Errorf("the id is %s", topic["id"])
		}
		return nil
	}
}

// TestSQSOnFaux checks on the other emulator what it knows: the queues of a topic, and a drift.
func TestSQSOnFaux(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short")
	}
	b := sqsOn(t, sqstest.Faux(t))
	config := b.config(sqsOrders(`visibility_timeout = "45s"`))
	c := b.commandLine(config)
	c.apply()
	expect(t, c.plan(), "No changes")
	b.set(b.topic, map[string]string{"VisibilityTimeout": "50"})
	expect(t, c.plan(), `"VisibilityTimeout"`, `"50" -> "45"`)
	expect(t, c.apply(), "0 added, 1 changed, 0 destroyed")
	if got := b.live(b.topic)["VisibilityTimeout"]; got != "45" {
		t.Errorf("the timeout is %s", got)
	}
	// A message that somebody handles is in the queue.
	c.configure(strings.ReplaceAll(config, "= true", "= false"))
	c.apply()
	b.send(b.topic)
	if _, err := b.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(b.service.QueueURL(b.topic))}); err != nil {
		t.Fatal(err)
	}
	expect(t, c.applyFails("-destroy", "-target=redeliver_sqs_topic.orders"), "holds about 1 message (1 in flight), and was not deleted")
	c.configure(config)
	c.apply()
	c.apply("-destroy")
}

// TestSQSDefaultTags: default tags are under a resource's own, and tags that somebody else set are drift.
func TestSQSDefaultTags(t *testing.T) {
	b := setupSQS(t)
	b.provider = b.block(`default_tags = { team = "shop", stage = "test" }`)
	config := func(tags string) string {
		return b.config(`
resource "redeliver_sqs_parked_queue" "orders" {
  topic            = "TOPIC"
  delete_non_empty = true
  ` + tags + `
}
`)
	}
	c := b.commandLine(config(`tags = { stage = "prod", own = "1" }`))
	c.apply()
	want := func(tags map[string]string) {
		t.Helper()
		if got := b.tags(b.name("-parked")); !reflect.DeepEqual(got, tags) {
			t.Errorf("tags are %v, want %v", got, tags)
		}
	}
	want(map[string]string{"team": "shop", "stage": "prod", "own": "1"})
	expect(t, c.plan(), "No changes")
	// Without them, the default's are left.
	c.configure(config(""))
	expect(t, c.apply(), "0 added, 1 changed, 0 destroyed")
	want(map[string]string{"team": "shop", "stage": "test"})
	expect(t, c.plan(), "No changes")
	b.tag(b.name("-parked"), map[string]string{"stranger": "x", "team": "other"})
	expect(t, c.plan(), `"stranger"`, `"other" -> "shop"`)
	c.apply()
	want(map[string]string{"team": "shop", "stage": "test"})
	c.apply("-destroy")
}
