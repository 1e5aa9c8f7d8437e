package command_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// onSQS is a topic of the test's own on an emulator of Amazon SQS.
type onSQS struct {
	*bundle
	service *sqstest.Service
	client  *sqs.Client
	spec    topology.SQSSpec
	m       topology.Manifest
}

// setupSQS has the topic's manifest in orders.json, and makes its queues.
func setupSQS(t *testing.T, service *sqstest.Service, change ...func(*topology.SQSSpec)) *onSQS {
	t.Helper()
	b := &onSQS{bundle: offline(t), service: service, client: service.Client(t)}
	b.env = slices.DeleteFunc(b.env, func(variable string) bool { return strings.HasPrefix(variable, "AWS_") })
	key, secret := service.Credentials()
	b.env = append(b.env, "AWS_ACCESS_KEY_ID="+key, "AWS_SECRET_ACCESS_KEY="+secret, "AWS_EC2_METADATA_DISABLED=true")
	b.reach(service.Endpoint())
	name := sqstest.UniqueName(t)
	b.spec = topology.SQSSpec{
		SQSIdentity: topology.SQSIdentity{Topic: "orders-" + name[len(name)-10:], Region: service.Region(), Account: service.Account()},
		Retry:       topology.RetryPolicy{Strategy: topology.InPlace, MaxRetries: 3, Delays: []time.Duration{5 * time.Second, time.Minute}},
		Endpoint:    service.Endpoint(),
	}
	for _, f := range change {
		f(&b.spec)
	}
	b.spec.DeadLetterQueue, b.spec.ParkedQueue = b.spec.DeadLetterQueueName(), b.spec.ParkedQueueName()
	b.m = must(b.spec.Manifest())(t)
	b.write("orders.json", b.m.Encode())
	for _, role := range []topology.Role{topology.RoleDeadLetter, topology.RoleParked} {
		end := topology.SQSDeadEnd{SQSIdentity: b.spec.SQSIdentity, Role: role}
		b.makeQueue(end.QueueName(), must(end.Attributes())(t))
	}
	b.makeQueue(b.m.WorkQueue.Name, must(b.spec.Attributes())(t))
	return b
}

// must fails a test where there is an error.
func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// reach has the command reach SQS at an address.
func (b *onSQS) reach(endpoint string) {
	b.env = append(b.env, "AWS_ENDPOINT_URL_SQS="+endpoint)
}

func (b *onSQS) makeQueue(name string, attributes topology.SQSAttributes) {
	b.t.Helper()
	must(b.client.CreateQueue(b.t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes.Set()}))(b.t)
}

// set changes attributes of a queue.
func (b *onSQS) set(url string, attributes topology.SQSAttributes) {
	b.t.Helper()
	must(b.client.SetQueueAttributes(b.t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: attributes}))(b.t)
}

func (b *onSQS) drop(url string) {
	b.t.Helper()
	must(b.client.DeleteQueue(b.t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}))(b.t)
}

// put sends messages of these bodies to a queue.
func (b *onSQS) put(url string, bodies ...string) {
	b.t.Helper()
	for batch := range slices.Chunk(bodies, 10) {
		entries := make([]types.SendMessageBatchRequestEntry, len(batch))
		for i, body := range batch {
			entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: aws.String(body)}
			if b.spec.FIFO {
				entries[i].MessageGroupId, entries[i].MessageDeduplicationId = aws.String("g"), aws.String(body)
			}
		}
		out := must(b.client.SendMessageBatch(b.t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries}))(b.t)
		if len(out.Failed) > 0 {
			b.t.Fatalf("not taken: %v", out.Failed)
		}
	}
}

// putOne sends a message with headers.
func (b *onSQS) putOne(url, body string, headers map[string]string) {
	b.t.Helper()
	attributes := map[string]types.MessageAttributeValue{}
	for name, value := range headers {
		attributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	must(b.client.SendMessage(b.t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageAttributes: attributes}))(b.t)
}

// taken are the bodies of all messages of a queue that can be received now, which it then has no more.
func (b *onSQS) taken(url string) []string {
	b.t.Helper()
	var bodies []string
	for {
		out := must(b.client.ReceiveMessage(b.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10}))(b.t)
		if len(out.Messages) == 0 {
			return bodies
		}
		for _, m := range out.Messages {
			bodies = append(bodies, aws.ToString(m.Body))
			must(b.client.DeleteMessage(b.t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}))(b.t)
		}
	}
}

// visible is how many messages of a queue can be received now.
func (b *onSQS) visible(url string) int {
	b.t.Helper()
	const name = types.QueueAttributeNameApproximateNumberOfMessages
	out := must(b.client.GetQueueAttributes(b.t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{name}}))(b.t)
	n := 0
	_, _ = fmt.Sscan(out.Attributes[string(name)], &n) // 0 is what is not there
	return n
}

// golden compares with a file, in which the topic has a name that is always the same and as long.
func (b *onSQS) golden(name string, r result) {
	b.t.Helper()
	r.out = strings.ReplaceAll(r.out, b.spec.Topic, "orders-xxxxxxxxxx")
	b.bundle.golden(name, r)
}

func TestSQSVerify(t *testing.T) {
	b := setupSQS(t, sqstest.Local(t))
	b.golden("sqs_verify_in_order", b.run("verify", "orders.json").exits(0))
	b.set(b.m.WorkQueue.URL, topology.SQSAttributes{topology.AttrVisibilityTimeout: "7"})
	b.set(b.m.DeadLetter.URL, topology.SQSAttributes{
		topology.AttrRetention: "3600", topology.AttrRedriveAllowPolicy: `{"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:us-east-1:000000000000:other"]}`,
	})
	b.drop(b.m.Parked.URL)
	b.golden("sqs_verify_findings", b.run("verify", "orders.json").exits(1))
	var reports []struct {
		VHost   *string
		InOrder bool `json:"in_order"`
		Notes   []string
		Objects []struct {
			Name, Status string
			Messages     *int64
			Differences  []struct{ Key string }
		}
	}
	if err := json.Unmarshal([]byte(b.run("verify", "-o", "json", "orders.json").exits(1).out), &reports); err != nil {
		t.Fatal(err)
	}
	if r := reports[0]; r.VHost != nil || r.InOrder || len(r.Notes) != 1 || len(r.Objects) != 3 || r.Objects[0].Messages == nil || r.Objects[2].Status != "missing" {
		t.Errorf("%+v", r)
	}
	b.drop(b.m.DeadLetter.URL)
	b.run("verify", "orders.json").exits(1).says("redrive_target", "the dead-letter queue is not there", "retention of 4d ends")
	b.drop(b.m.WorkQueue.URL)
	b.run("verify", "orders.json").exits(1).says("3 missing").lacks("redrive_target")
}

// TestSQSDenied: what the caller may not see is unknown, and never missing.
func TestSQSDenied(t *testing.T) {
	b := setupSQS(t, sqstest.Local(t))
	back := must(url.Parse(b.service.Endpoint()))(t)
	proxy := httputil.NewSingleHostReverseProxy(back)
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetQueueAttributes") && bytes.Contains(body, []byte("-parked")) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"User: arn:aws:iam::000000000000:user/oncall is not authorized"}`)
			return
		}
		r.Body, r.Host = io.NopCloser(bytes.NewReader(body)), back.Host
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(gate.Close)
	args := []string{"orders.json", "--endpoint", gate.URL}
	b.run(append([]string{"verify"}, args...)...).exits(1).says("unknown", "not seen:", b.m.Parked.Name, "sqs:GetQueueAttributes", "--role operator").lacks("missing", "Terraform")
	b.run(append([]string{"status"}, args...)...).exits(1).says("not seen:", "sqs:GetQueueAttributes").lacks("missing")
	b.run("verify", "orders.json", "--endpoint", "http://127.0.0.1:1").exits(2).says("connection refused", "--endpoint")
	b.run("verify", "orders.json", "--profile", "nobody").exits(2).says("nobody")
}

// TestRabbitMQNeedsNoAWS: a configuration of the AWS SDK that cannot be read is nobody's business there.
func TestRabbitMQNeedsNoAWS(t *testing.T) {
	b := offline(t)
	b.manifest(b.spec())
	b.env = append(b.env, "AWS_PROFILE=nobody", "AWS_CONFIG_FILE=/nowhere")
	b.run("verify", "orders.json").exits(2).says("--management-url").lacks("AWS", "nobody")
}

func TestSQSStatus(t *testing.T) {
	b := setupSQS(t, sqstest.Faux(t))
	b.run("status", "orders.json").exits(0).says("nothing needs a human")
	b.put(b.m.WorkQueue.URL, "a", "b", "c")
	must(b.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &b.m.WorkQueue.URL, VisibilityTimeout: 600}))(t)
	must(b.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &b.m.WorkQueue.URL, MessageBody: aws.String("late"), DelaySeconds: 900}))(t)
	b.put(b.m.DeadLetter.URL, "dead")
	b.golden("sqs_status", b.run("status", "orders.json").exits(1))
	b.golden("sqs_list", b.run("dlq", "list", "orders.json", "orders.json").exits(0))
	b.run("status", "-o", "json", "orders.json").exits(1).says(`"delayed": 1`, `"unacknowledged": 1`, `"messages": 4`)
	b.drop(b.m.Parked.URL)
	b.run("status", "orders.json").exits(1).says("missing")
}

func TestSQSInspect(t *testing.T) {
	b := setupSQS(t, sqstest.Faux(t))
	b.run("dlq", "inspect", "orders.json").exits(0).says("0 messages")
	b.putOne(b.m.DeadLetter.URL, `{"region":"eu","amount":120}`, map[string]string{"tenant": "acme", "x-redeliver-error": "card declined"})
	b.putOne(b.m.DeadLetter.URL, "hello", map[string]string{"tenant": "other"})
	r := b.run("dlq", "inspect", "orders.json").exits(0)
	r.out = strings.Join(slices.DeleteFunc(strings.SplitAfter(r.out, "\n"), func(line string) bool { return strings.HasPrefix(line, "#") }), "") // ids
	b.golden("sqs_inspect", r)
	for filter, want := range map[string]string{
		"--filter tenant=acme":                              "1 shown",
		"--where headers.tenant==\"acme\"&&body.amount>100": "1 shown", "--reason declined": "1 shown", "--newer-than 1h": "2 shown", "--older-than 1h": "0 shown", "--limit 1": "1 looked at, 1 shown",
	} {
		b.run(append([]string{"dlq", "inspect", "orders.json"}, strings.Split(filter, " ")...)...).exits(0).says("2 messages", want)
	}
	if n := b.visible(b.m.DeadLetter.URL); n != 2 {
		t.Errorf("after all these looks %d messages can be received", n)
	}
	// Where a look can move a message away it is refused.
	b.makeQueue(b.spec.Topic+"-next", topology.SQSAttributes{})
	b.set(b.m.DeadLetter.URL, topology.SQSAttributes{topology.AttrRedrivePolicy: fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":100}`, b.spec.ARN(b.spec.Topic+"-next"))})
	b.run("dlq", "inspect", "orders.json").exits(2).says("after 100 receives", "--accept-loss")
	b.run("dlq", "replay", "orders.json", "--dry-run").exits(2).says("--accept-loss")
	b.run("dlq", "inspect", "orders.json", "--accept-loss").exits(0).says("2 shown")
}

// TestSQSInspectInOrder: messages of a group are there in their order after a look, and the group is said to have waited.
func TestSQSInspectInOrder(t *testing.T) {
	b := setupSQS(t, sqstest.Faux(t), func(s *topology.SQSSpec) { s.FIFO = true })
	ids := numbered("m", 8)
	b.put(b.m.DeadLetter.URL, ids...)
	b.run("dlq", "inspect", "orders.json", "--limit", "5").exits(0).says("group  ", "8 messages", "nobody received others of its group")
	b.run("dlq", "replay", "orders.json", "--limit", "8").exits(0).says("8 replayed")
	if got := b.taken(b.m.WorkQueue.URL); !slices.Equal(got, ids) {
		t.Errorf("%q", got)
	}
}

// TestSQSReplayByTask: the service moves a whole dead-letter queue itself, and cannot move a parked one.
func TestSQSReplayByTask(t *testing.T) {
	b := setupSQS(t, sqstest.Local(t))
	b.put(b.m.DeadLetter.URL, numbered("d", 25)...)
	b.put(b.m.Parked.URL, numbered("p", 12)...)
	b.run("dlq", "replay", "orders.json").exits(0).says("25 replayed")
	b.run("parked", "replay", "orders.json").exits(0).says("12 replayed")
	if got := slices.Sorted(slices.Values(b.taken(b.m.WorkQueue.URL))); !slices.Equal(got, slices.Concat(numbered("d", 25), numbered("p", 12))) {
		t.Errorf("%d are there: %q", len(got), got)
	}
}

func TestSQSReplaySome(t *testing.T) {
	b := setupSQS(t, sqstest.Faux(t))
	for i, tenant := range []string{"acme", "other", "acme", "other", "acme"} {
		b.putOne(b.m.DeadLetter.URL, fmt.Sprint(i), map[string]string{"tenant": tenant, "x-redeliver-retry-count": "3"})
	}
	b.run("dlq", "replay", "orders.json", "--keep-count").exits(2).says("--keep-count", "--help").lacks("found")
	b.run("dlq", "move", "orders.json", "--to-exchange", "x").exits(2).says("no exchanges")
	b.run("dlq", "replay", "orders.json", "--dry-run", "--filter", "tenant=acme").exits(0).says("3 would be replayed", "2 not wanted")
	b.run("dlq", "replay", "orders.json", "--to", "nobody", "--limit", "1").exits(2).says("nobody", "NonExistentQueue").lacks("1 failed")
	if n := b.visible(b.m.DeadLetter.URL); n != 5 {
		t.Fatalf("%d messages can be received", n)
	}
	b.run("dlq", "replay", "orders.json", "--filter", "tenant=acme", "--limit", "2").exits(0).says("2 replayed")
	out := must(b.client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &b.m.WorkQueue.URL, MessageAttributeNames: []string{"All"}}))(t)
	if len(out.Messages) != 1 || out.Messages[0].MessageAttributes["tenant"].StringValue == nil || len(out.Messages[0].MessageAttributes) != 1 {
		t.Errorf("%+v", out.Messages)
	}
	b.run("dlq", "move", "orders.json", "--to", b.m.Parked.Name, "--where", "headers.tenant == 'other'").exits(0).says("2 moved", "1 left")
	b.run("dlq", "replay", "orders.json", "--rate", "100").exits(0).says("1 replayed", "0 left")
	b.run("parked", "replay", "orders.json").exits(0).says("2 replayed")
}

func TestSQSPurge(t *testing.T) {
	b := setupSQS(t, sqstest.Faux(t))
	b.put(b.m.DeadLetter.URL, numbered("d", 12)...)
	b.run("dlq", "purge", "orders.json").exits(2).says("about 12 messages", "--yes")
	b.run("dlq", "purge", "orders.json", "--yes").exits(0).says("about 12 messages discarded")
	if n := b.visible(b.m.DeadLetter.URL); n != 0 {
		t.Errorf("%d messages can be received", n)
	}
}

// TestSQSInterrupted ends looks and replays by Ctrl-C: every message is there, once, and nothing is withheld.
func TestSQSInterrupted(t *testing.T) {
	const n = 2000
	b := setupSQS(t, sqstest.Faux(t))
	ids := numbered("m", n)
	b.put(b.m.DeadLetter.URL, ids...)
	// interrupted runs a command until so, and interrupts it.
	interrupted := func(so func() bool, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		cmd := b.command(args...)
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		brokertest.WaitFor(t, func() (bool, string) { return so(), strings.Join(args, " ") })
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // its exit code says it
		if code := cmd.ProcessState.ExitCode(); code != 2 {
			t.Fatalf("exit code %d: %s", code, &out)
		}
		return out.String()
	}
	interrupted(func() bool { return b.visible(b.m.DeadLetter.URL) < n-100 }, "dlq", "inspect", "orders.json", "--limit", "0")
	if left := b.visible(b.m.DeadLetter.URL); left != n {
		t.Errorf("after a look %d messages can be received", left)
	}
	for _, least := range []int{100, 500} {
		out := interrupted(func() bool { return b.visible(b.m.WorkQueue.URL) >= least }, "dlq", "replay", "orders.json", "--rate", "400")
		if !strings.Contains(out, "nothing is lost") || strings.Contains(out, "context canceled") {
			t.Error(out)
		}
		if there := b.visible(b.m.WorkQueue.URL) + b.visible(b.m.DeadLetter.URL); there != n {
			t.Errorf("%d messages can be received", there)
		}
	}
	b.run("dlq", "replay", "orders.json", "--limit", fmt.Sprint(n)).exits(0).says("0 left")
	if got := slices.Sorted(slices.Values(b.taken(b.m.WorkQueue.URL))); !slices.Equal(got, ids) {
		t.Errorf("%d messages are there", len(got))
	}
}
