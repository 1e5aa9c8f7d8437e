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
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// imports has the command line plan what import-config wrote: it imports n resources and changes nothing.
func (b *onSQS) imports(n int, config string) {
	b.t.Helper()
	out := b.planAt(fmt.Sprintf("{\n  sqs = { region = %q, account_id = %q }\n}", b.service.Region(), b.service.Account()), config)
	if want := fmt.Sprintf("Plan: %d to import, 0 to add, 0 to change, 0 to destroy", n); !strings.Contains(out, want) {
		b.t.Errorf("%q is not in:\n%s\n%s", want, out, config)
	}
}

// found runs import-config for the queues of the test.
func (b *onSQS) found(args ...string) result {
	b.t.Helper()
	return b.run(append([]string{"import-config", "--sqs", "--region", b.service.Region(), "--name-prefix", b.spec.Topic}, args...)...)
}

func (b *onSQS) tag(url string, tags map[string]string) {
	b.t.Helper()
	must(b.client.TagQueue(b.t.Context(), &sqs.TagQueueInput{QueueUrl: &url, Tags: tags}))(b.t)
}

func TestImportConfigSQS(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*topology.SQSSpec)
		says   []string
	}{
		"standard": {says: []string{`delays = ["30s"]`}},
		"standard with settings": {func(s *topology.SQSSpec) {
			s.VisibilityTimeout, s.Retention, s.Delay, s.ReceiveWait, s.MaxMessageSize, s.SSE = 2*time.Minute, 10*topology.Day, 3*time.Second, 20*time.Second, 2048, topology.SSENone
			s.Policy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sqs:SendMessage","Resource":"*","Condition":{"StringEquals":{"aws:username":"${aws:username}"}}}]}`
		}, []string{`visibility_timeout = "2m"`, `retention = "10d"`, `receive_wait = "20s"`, `max_message_size = 2048`, `encryption = "none"`, `policy = jsonencode({`, `$${aws:username}`}},
		"FIFO": {func(s *topology.SQSSpec) { s.FIFO = true }, []string{`fifo = true`}},
		"FIFO with settings": {func(s *topology.SQSSpec) {
			s.FIFO, s.ContentBasedDeduplication, s.DeduplicationScope, s.ThroughputLimit = true, true, topology.ScopeMessageGroup, topology.LimitPerGroupID
			s.KMSKey, s.KMSDataKeyReuse, s.Retry.MaxRetries = "alias/orders", time.Hour, 20
		}, []string{`content_based_deduplication = true`, `deduplication_scope = "messageGroup"`, `kms_key = "alias/orders"`, `kms_data_key_reuse = "1h"`, `max_retries = 20`}},
	} {
		t.Run(name, func(t *testing.T) {
			b := setupSQS(t, sqstest.Local(t), func(s *topology.SQSSpec) {
				if test.change != nil {
					test.change(s)
				}
			})
			b.tag(b.m.WorkQueue.URL, map[string]string{"team": "shop", "cost centre": "7"})
			r := b.found().exits(0).says("1 topic in region").lacks("#")
			words := strings.Join(strings.Fields(r.out), " ")
			for _, want := range test.says {
				if !strings.Contains(words, want) {
					t.Errorf("%q is not in:\n%s", want, r.out)
				}
			}
			b.imports(3, r.out)
		})
	}
}

// TestImportConfigSQSOfAnAccount: topics beside each other, with dead-letter queues of their own names, shared ones and none.
func TestImportConfigSQSOfAnAccount(t *testing.T) {
	b := setupSQS(t, sqstest.Local(t))
	id := b.spec.SQSIdentity
	put := func(name string, attributes topology.SQSAttributes) { b.makeQueue(b.spec.Topic+name, attributes) }
	redrive := func(name string) topology.SQSAttributes {
		return topology.SQSAttributes{topology.AttrRedrivePolicy: fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"1"}`, id.ARN(name))}
	}
	takes := func(name string) topology.SQSAttributes {
		return topology.SQSAttributes{topology.AttrRedriveAllowPolicy: fmt.Sprintf(`{"redrivePermission":"byQueue","sourceQueueArns":[%q]}`, id.ARN(b.spec.Topic+name))}
	}
	put("-alone", nil)
	// A dead-letter queue whose name does not begin as the others' do.
	failed := "failed-" + b.spec.Topic
	b.makeQueue(failed, takes("-mails"))
	put("-mails", redrive(failed))
	// A consumer group, and the FIFO topic of the same name.
	put("-bills-eu-dlq", takes("-bills"))
	put("-bills", redrive(b.spec.Topic+"-bills-eu-dlq"))
	fifo := topology.SQSSpec{SQSIdentity: id}
	fifo.FIFO = true
	fifo.DeadLetterQueue = fifo.DeadLetterQueueName()
	b.makeQueue(fifo.DeadLetterQueue, must(topology.SQSDeadEnd{SQSIdentity: fifo.SQSIdentity, Role: topology.RoleDeadLetter}.Attributes())(t))
	b.makeQueue(fifo.WorkQueueName(), must(fifo.Attributes())(t))
	// A dead-letter queue without its topic.
	gone := topology.SQSDeadEnd{SQSIdentity: id, Role: topology.RoleDeadLetter}
	gone.Topic += "-gone"
	b.makeQueue(gone.QueueName(), must(gone.Attributes())(t))
	// One that redrives elsewhere than to the queue that is named after it.
	twin := topology.SQSDeadEnd{SQSIdentity: id, Role: topology.RoleDeadLetter}
	twin.Topic += "-twin"
	b.makeQueue(twin.QueueName(), must(twin.Attributes())(t))
	put("-twin-failed", takes("-twin"))
	put("-twin", redrive(b.spec.Topic+"-twin-failed"))
	// One that takes the messages of a queue that is not the topic's after which it is named.
	put("-lent-dlq", takes("-mails"))
	r := b.found().exits(0).says("7 topics in region", "?topic=", fmt.Sprintf("source_queue = %q", b.spec.Topic+"-mails"), `"eu"`, b.spec.Topic+"_2").lacks("#", "-alone")
	b.imports(14, r.out)

	// Two topics share one that takes everything: it cannot be imported without a change, and they can.
	put("-both", topology.SQSAttributes{topology.AttrRetention: "1209600"})
	put("-one", redrive(b.spec.Topic+"-both"))
	put("-two", redrive(b.spec.Topic+"-both"))
	// One whose dead letters die before they can be looked at cannot be imported at all.
	put("-short-dlq", topology.SQSAttributes{topology.AttrRetention: "60"})
	put("-short", redrive(b.spec.Topic+"-short-dlq"))
	r = b.found().exits(0).says("10 topics in region")
	for _, want := range []string{`-both" is left out: as a redeliver_sqs_dead_letter_queue`, "RedriveAllowPolicy", `-short" is left out`, "retention"} {
		if !strings.Contains(r.err, want) || !strings.Contains(r.out, want) {
			t.Errorf("%q is not said twice:\n%s\n%s", want, r.out, r.err)
		}
	}
	b.imports(16, r.out)

	r = b.found("--convention", "shove", "-o", "json").exits(0)
	var said struct {
		Region, Account, Config string
		Topics, Notes           []string
	}
	if err := json.Unmarshal([]byte(r.out), &said); err != nil || said.Region != b.service.Region() || said.Account != b.service.Account() || len(said.Notes) == 0 || len(said.Topics) < 5 {
		t.Errorf("%v: %+v", err, said)
	}
}

// TestImportConfigSQSDenied: what the credentials do not reach is left out and said; the rest is imported.
func TestImportConfigSQSDenied(t *testing.T) {
	b := setupSQS(t, sqstest.Local(t))
	denying := func(action, of string) string { return "--endpoint=" + denied(t, b.service.Endpoint(), action, of) }
	r := b.found(denying("GetQueueAttributes", "-parked")).exits(0).says("# cannot read", b.m.Parked.Name, "sqs:GetQueueAttributes", "1 topic in").lacks("redeliver_sqs_parked_queue")
	b.imports(2, r.out)
	r = b.found(denying("ListQueueTags", "-dlq")).exits(0).says("tags cannot be read", b.m.DeadLetter.Name, "sqs:ListQueueTags").lacks("redeliver_sqs_dead_letter_queue")
	b.imports(2, r.out)
	b.found(denying("ListQueues", "")).exits(2).says("listing the queues of region us-east-1", "AccessDenied", "the credentials lack sqs:ListQueues").lacks("Terraform")
}

// denied is the address of a service that denies an action on queues whose names contain something.
func denied(t *testing.T, service, action, of string) string {
	t.Helper()
	back := must(url.Parse(service))(t)
	proxy := httputil.NewSingleHostReverseProxy(back)
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil && strings.HasSuffix(r.Header.Get("X-Amz-Target"), "."+action) && bytes.Contains(body, []byte(of)) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"no"}`)
			return
		}
		r.Body, r.Host = io.NopCloser(bytes.NewReader(body)), back.Host
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(gate.Close)
	return gate.URL
}

func TestImportConfigSQSOfNothing(t *testing.T) {
	b := setupSQS(t, sqstest.Local(t))
	b.run("import-config", "--sqs", "--region", "us-east-1", "--name-prefix", "nobody-").exits(1).says("no topic was recognised in region us-east-1")
	b.run("import-config", "--sqs").exits(2).says("--region", "AWS_REGION")
	b.run("import-config", "--sqs", "--vhost", "/").exits(2).says("--vhost", "--sqs", "--help")
	b.run("import-config", "--vhost", "/", "--name-prefix", "x").exits(2).says("--name-prefix")
	b.found("--convention", "acemq").exits(2).says("no dots")
	b.found("--endpoint", "http://127.0.0.1:1").exits(2).says("listing the queues", "connection refused", "--endpoint")
}
