package sqs_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer/conformance"
	transport "github.com/redeliver/terraform-provider-redeliver/internal/consumer/sqs"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/sqs"
)

// TestConformance runs the suite that the broker in memory passes, on fauxqs, and
// compares both: what a handler gets and what is set aside is the same, attribute
// by attribute.
func TestConformance(t *testing.T) {
	t.Parallel()
	service := sqstest.Faux(t)
	open := func(t *testing.T, spec topology.SQSSpec) conformance.Broker {
		t.Helper()
		spec.Region, spec.Account, spec.Endpoint = service.Region(), service.Account(), service.Endpoint()
		return newConforming(t, service, spec)
	}
	conformance.RunSQS(t, open, conformance.SQSInMemory)
}

// conforming is a topic on an emulator as the suite sees it.
type conforming struct {
	t       *testing.T
	service *sqstest.Service
	client  *awssqs.Client
	doc     topology.Manifest
	// taken are the messages that were taken out of queues to look at them.
	taken map[string][]redeliver.Message
}

func newConforming(t *testing.T, service *sqstest.Service, spec topology.SQSSpec) *conforming {
	t.Helper()
	doc, err := spec.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	c := &conforming{t: t, service: service, client: service.Client(t), doc: doc, taken: make(map[string][]redeliver.Message)}
	for _, target := range []*topology.ManifestTarget{doc.DeadLetter, doc.Parked} {
		if target != nil {
			c.create(target.Name, spec.FIFO, nil)
		}
	}
	c.create(doc.WorkQueue.Name, spec.FIFO, doc.WorkQueue.Attributes)
	return c
}

func (c *conforming) create(name string, fifo bool, attributes map[string]string) {
	c.t.Helper()
	if attributes == nil && fifo {
		attributes = map[string]string{topology.AttrFIFO: "true", topology.AttrContentBasedDedup: "true"}
	}
	if _, err := c.client.CreateQueue(c.t.Context(), &awssqs.CreateQueueInput{QueueName: &name, Attributes: attributes}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *conforming) Now() time.Time { return time.Now() }
func (c *conforming) Exact() bool    { return false }

func (c *conforming) Consume(cfg redeliver.Config, handler redeliver.Handler) conformance.Consumer {
	c.t.Helper()
	m, err := redeliver.ParseManifest(c.doc.Encode())
	if err != nil {
		c.t.Fatal(err)
	}
	settings, log := c.service.Config(), &bytes.Buffer{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	consumer, err := sqs.Open(c.t.Context(), sqs.Config{AWS: &settings, Manifest: m, Handler: handler, Consumer: cfg})
	if err != nil {
		c.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = consumer.Run(c.t.Context()) // as Close, which the suite looks at
	}()
	c.t.Cleanup(func() {
		_ = consumer.Close()
		<-ended
		if c.t.Failed() {
			c.t.Logf("--- the consumer's log ---\n%s", log)
		}
	})
	return consumer
}

func (c *conforming) Publish(msgs ...redeliver.Message) {
	c.t.Helper()
	for _, m := range msgs {
		in := &awssqs.SendMessageInput{QueueUrl: &c.doc.WorkQueue.URL, MessageBody: aws.String(string(m.Body)), MessageAttributes: make(map[string]types.MessageAttributeValue)}
		if m.RoutingKey != "" {
			in.MessageGroupId = &m.RoutingKey
		}
		for name, value := range m.Headers {
			in.MessageAttributes[name] = c.attribute(value)
		}
		if _, err := c.client.SendMessage(c.t.Context(), in); err != nil {
			c.t.Fatal(err)
		}
	}
}

// attribute is the attribute of a header, as a publisher would write it.
func (c *conforming) attribute(value any) types.MessageAttributeValue {
	c.t.Helper()
	switch v := value.(type) {
	case string:
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &v}
	case int64:
		return types.MessageAttributeValue{DataType: aws.String("Number"), StringValue: aws.String(strconv.FormatInt(v, 10))}
	case float64:
		return types.MessageAttributeValue{DataType: aws.String("Number"), StringValue: aws.String(strconv.FormatFloat(v, 'f', -1, 64))}
	case []byte:
		return types.MessageAttributeValue{DataType: aws.String("Binary"), BinaryValue: v}
	case redeliver.Attribute:
		return types.MessageAttributeValue{DataType: &v.Type, StringValue: &v.Text}
	default:
		c.t.Fatalf("no attribute for the %T %v", value, value)
		return types.MessageAttributeValue{}
	}
}

// No scene on SQS has use for these.

func (c *conforming) Disconnect()    { c.t.Fatal("there are no connections") }
func (c *conforming) Remove(string)  { c.t.Fatal("no queue is removed") }
func (c *conforming) Restore(string) { c.t.Fatal("no queue is restored") }

func (c *conforming) Until(condition func() (bool, string)) {
	c.t.Helper()
	timeout := time.After(90 * time.Second)
	for {
		ok, state := condition()
		if ok {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-timeout:
			c.t.Fatal(state)
		}
	}
}

func (c *conforming) url(queue string) string {
	return c.doc.WorkQueue.URL[:len(c.doc.WorkQueue.URL)-len(c.doc.WorkQueue.Name)] + queue
}

func (c *conforming) Depth(queue string) int {
	c.t.Helper()
	out, err := c.client.GetQueueAttributes(c.t.Context(), &awssqs.GetQueueAttributesInput{
		QueueUrl: aws.String(c.url(queue)), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	visible, inFlight, delayed := topology.SQSAttributes(out.Attributes).Messages()
	return visible + inFlight + delayed
}

// take reads a message. Where the emulator does not say that a message was redriven, and from where, this does.
func (c *conforming) take(queue string, from *types.Message) redeliver.Message {
	if c.service.Deviates(sqstest.DeadLetterSource) && c.doc.Final == topology.FinalBroker && queue == c.doc.DeadLetter.Name {
		from.Attributes[string(types.MessageSystemAttributeNameDeadLetterQueueSourceArn)] = c.doc.WorkQueue.ARN
	}
	return transport.MessageOf(from)
}

func (c *conforming) Messages(queue string) []redeliver.Message {
	c.t.Helper()
	url := c.url(queue)
	out, err := c.client.ReceiveMessage(c.t.Context(), &awssqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: transport.SystemAttributes(),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	for i, m := range out.Messages {
		c.taken[queue] = append(c.taken[queue], c.take(queue, &out.Messages[i]))
		if _, err := c.client.DeleteMessage(c.t.Context(), &awssqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
			c.t.Fatal(fmt.Errorf("deleting a message that was looked at: %w", err))
		}
	}
	return c.taken[queue]
}
