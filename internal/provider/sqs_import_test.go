package provider

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// protocol serves a provider that is configured for the test's emulator.
func (b *sqsBundle) protocol() *protocol {
	b.t.Helper()
	key, secret := b.service.Credentials()
	p := newProtocol(b.t)
	p.configure(map[string]any{"sqs": map[string]any{
		"region": b.service.Region(), "endpoint": b.service.Endpoint(), "account_id": b.service.Account(), "access_key": key, "secret_key": secret,
	}})
	return p
}

// TestSQSImport imports every resource by its name, its URL and its ARN: nothing is left to change on the service.
func TestSQSImport(t *testing.T) {
	b := setupSQS(t)
	config := b.config(sqsOrders(`
  visibility_timeout = "45s"
  tags               = { a = "b" }
`))
	c := b.commandLine(config)
	c.apply()
	for form, of := range map[string]func(string) string{
		"name": func(queue string) string { return queue },
		"url":  b.service.QueueURL,
		"arn":  b.service.QueueARN,
	} {
		other := b.commandLine(config)
		for address, suffix := range map[string]string{"redeliver_sqs_topic.orders": "", "redeliver_sqs_dead_letter_queue.orders": "-dlq", "redeliver_sqs_parked_queue.orders": "-parked"} {
			other.must("import", "-no-color", "-input=false", address, of(b.name(suffix)))
		}
		// The retry policy is in no queue, and delete_non_empty neither.
		before := b.live(b.topic).Managed()
		expect(t, other.apply(), "0 added, 3 changed, 0 destroyed")
		if after := b.live(b.topic).Managed(); !reflect.DeepEqual(before, after) {
			t.Errorf("by %s: the queue was changed from %v to %v", form, before, after)
		}
		expect(t, other.plan(), "No changes")
	}
	for id, want := range map[string]string{
		b.name("-dlq"): "is by its name the redeliver_sqs_dead_letter_queue of topic",
		"arn:aws:sqs:eu-west-1:000000000000:" + b.topic:               "names a queue that is elsewhere",
		"https://sqs.eu-west-1.amazonaws.com/000000000000/" + b.topic: "elsewhere",
		b.topic + "?nope=1":                          `parameter "nope" is not known`,
		b.topic + "?convention=acemq":                "acemq",
		"arn:aws:sns:us-east-1:000000000000:orders":  "is not the ARN of a queue",
		"https://sqs.us-east-1.amazonaws.com/orders": "does not end in an account and a queue",
		"nowhere-" + b.topic:                         "Cannot import non-existent remote object",
	} {
		expect(t, b.commandLine(config).mustNot("import", "-no-color", "-input=false", "redeliver_sqs_topic.orders", id), want)
	}
	expect(t, b.commandLine(config).mustNot("import", "-no-color", "-input=false", "redeliver_sqs_dead_letter_queue.orders", b.topic), "say whose it is", "?topic=TOPIC")
	c.apply("-destroy")
}

// TestSQSGeneratedConfiguration: what the command line writes down of queues that somebody made by hand is valid, and says
// what the queues have.
func TestSQSGeneratedConfiguration(t *testing.T) {
	b := setupSQS(t)
	b.make(b.name("-dlq"), map[string]string{"MessageRetentionPeriod": "1209600"})
	b.make(b.topic, map[string]string{"VisibilityTimeout": "60", "MaximumMessageSize": "262144", "RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"4"}`, b.service.QueueARN(b.name("-dlq")))})
	b.make(b.name("-lone.fifo"), map[string]string{"FifoQueue": "true", "KmsMasterKeyId": "alias/orders"})
	b.make(b.name("-mails-dlq"), map[string]string{
		"MessageRetentionPeriod": "1209600", "RedriveAllowPolicy": fmt.Sprintf(`{"redrivePermission":"byQueue","sourceQueueArns":[%q]}`, b.service.QueueARN(b.topic)),
	})
	c := b.commandLine(b.config(`
import {
  to = redeliver_sqs_topic.orders
  id = "TOPIC"
}
import {
  to = redeliver_sqs_topic.lone
  id = "TOPIC-lone.fifo"
}
import {
  to = redeliver_sqs_dead_letter_queue.orders
  id = "TOPIC-dlq"
}
import {
  to = redeliver_sqs_dead_letter_queue.mails
  id = "TOPIC-mails-dlq"
}
`))
	before, lone := b.live(b.topic).Managed(), b.live(b.name("-lone.fifo")).Managed()
	c.plan("-generate-config-out=generated.tf")
	generated := readFile(t, c.dir+"/generated.tf")
	expectNot(t, generated, "262144")
	for _, want := range []string{`visibility_timeout = "1m"`, `max_retries = 3`, `delays = ["1m"]`, `kms_key = "alias/orders"`, `allow_message_loss = true`, fmt.Sprintf("source_queue = %q", b.topic)} {
		expect(t, strings.Join(strings.Fields(generated), " "), want)
	}
	// The dead-letter queue gets its redrive-allow policy.
	expect(t, c.apply(), "4 imported, 0 added, 1 changed, 0 destroyed")
	if after := b.live(b.topic).Managed(); !reflect.DeepEqual(before, after) {
		t.Errorf("the queue was changed from %v to %v", before, after)
	}
	if after := b.live(b.name("-lone.fifo")).Managed(); !reflect.DeepEqual(lone, after) {
		t.Errorf("the queue was changed from %v to %v", lone, after)
	}
	expect(t, c.plan(), "No changes")
	c.apply("-destroy")
}

// make makes a queue by hand.
func (b *sqsBundle) make(queue string, attributes map[string]string) {
	b.t.Helper()
	if _, err := b.client.CreateQueue(b.t.Context(), &sqs.CreateQueueInput{QueueName: aws.String(queue), Attributes: attributes}); err != nil {
		b.t.Fatal(err)
	}
}

// TestSQSIdentity imports by identity what it imports by id, and keeps the identity over a refresh.
func TestSQSIdentity(t *testing.T) {
	b := setupSQS(t)
	c := b.commandLine(b.config(sqsOrders("") + `
resource "redeliver_sqs_dead_letter_queue" "mails" {
  topic            = "TOPIC-mails"
  convention       = "shove"
  consumer_group   = "eu"
  name             = "TOPIC-graveyard.fifo"
  fifo             = true
  delete_non_empty = true
}
`))
	c.apply()
	state := c.state()
	p := b.protocol()
	of := func(suffix string, more map[string]any) map[string]any {
		identity := map[string]any{"arn": b.service.QueueARN(b.name(suffix)), "convention": "redeliver", "consumer_group": nil}
		for key, value := range more {
			identity[key] = value
		}
		return identity
	}
	for address, want := range map[string]map[string]any{
		"redeliver_sqs_topic.orders":             of("", nil),
		"redeliver_sqs_dead_letter_queue.orders": of("-dlq", map[string]any{"topic": nil}),
		"redeliver_sqs_parked_queue.orders":      of("-parked", map[string]any{"topic": nil}),
		"redeliver_sqs_dead_letter_queue.mails":  of("-graveyard.fifo", map[string]any{"topic": b.name("-mails"), "convention": "shove", "consumer_group": "eu"}),
	} {
		name := strings.TrimSuffix(address, "."+resourceName(address))
		id, _ := state[address].Values["id"].(string)
		byID, byIdentity := p.importResource(name, id, nil), p.importResource(name, "", want)
		if !reflect.DeepEqual(byID.identity, want) {
			t.Errorf("the identity of %s is %v, want %v", address, byID.identity, want)
		}
		if a, z := p.plainJSON(byIdentity), p.plainJSON(byID); a != z {
			t.Errorf("%s by identity is\n%s, by id\n%s", address, a, z)
		}
		if byID.state["id"] != id {
			t.Errorf("%s is imported with the id %v, want %s", address, byID.state["id"], id)
		}
		if again := p.read(name, byID.raw, byID.rawIdentity, nil); !reflect.DeepEqual(again.identity, want) {
			t.Errorf("after a refresh the identity of %s is %v", address, again.identity)
		}
	}
	c.apply("-destroy")
}

// TestSQSLists finds the queues of an account by their names.
func TestSQSLists(t *testing.T) {
	b := setupSQS(t)
	c := b.commandLine(b.config(sqsOrders("") + `
resource "redeliver_sqs_dead_letter_queue" "lost" {
  topic            = "TOPIC-lost"
  fifo             = true
  delete_non_empty = true
}
`))
	c.apply()
	p := b.protocol()
	for resource, want := range map[string][]string{
		"topic": {""}, "dead_letter_queue": {"-dlq", "-lost-dlq.fifo"}, "parked_queue": {"-parked"},
	} {
		name := "redeliver_sqs_" + resource
		got, diagnostics := p.list(name, map[string]any{"name_prefix": b.topic}, 0, true)
		p.noErrors(diagnostics)
		var names, wanted []string
		for _, one := range got {
			names = append(names, fmt.Sprint(one.identity["arn"]))
			if imported := p.importResource(name, "", one.identity); !reflect.DeepEqual(one.state, imported.state) {
				t.Errorf("listed %s is\n%v, imported\n%v", one.name, one.state, imported.state)
			}
		}
		for _, suffix := range want {
			wanted = append(wanted, b.service.QueueARN(b.name(suffix)))
		}
		if !reflect.DeepEqual(names, wanted) {
			t.Errorf("%s: %q, want %q", name, names, wanted)
		}
		if got, _ := p.list(name, map[string]any{"name_prefix": b.topic}, 1, false); len(got) != 1 {
			t.Errorf("a limit of 1 gives %d", len(got))
		}
	}
	// What is gone is identified too, in a state that has no identity yet.
	topic := p.importResource("redeliver_sqs_topic", b.topic, nil)
	c.apply("-destroy")
	gone, err := b.protocol().server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: "redeliver_sqs_topic", CurrentState: topic.raw})
	if err != nil {
		t.Fatal(err)
	}
	p.noErrors(gone.Diagnostics)
}
