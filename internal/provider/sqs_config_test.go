package provider

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
)

// nobody is a server that nobody may call.
func nobody(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s %s", r.Method, r.Host, r.URL) }))
	t.Cleanup(server.Close)
	return server
}

// awsAt has everything that the AWS SDK would ask AWS asked there, and nothing of this machine read.
func (c *commandLine) awsAt(url string) {
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": url, "AWS_EC2_METADATA_SERVICE_ENDPOINT": url, "AWS_CONTAINER_CREDENTIALS_FULL_URI": url, "HTTP_PROXY": url, "HTTPS_PROXY": url, "NO_PROXY": "127.0.0.1,localhost",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_REGION": "eu-west-1",
	} {
		c.env = append(c.env, name+"="+value)
	}
}

// TestRabbitMQAlone: a configuration without SQS resources touches AWS in no way, even where the provider is configured for it.
func TestRabbitMQAlone(t *testing.T) {
	b := setup(t)
	server := nobody(t)
	for _, sqs := range []string{"", `sqs = { profile = "nowhere", default_tags = { a = "b" }, assume_role = { role_arn = "arn:aws:iam::111122223333:role/x" } }`} {
		c := b.commandLine(strings.Replace(b.provider, "rabbitmq = {", sqs+"\n  rabbitmq = {", 1) + losing(orders("")))
		c.awsAt(server.URL)
		c.apply()
		expect(t, c.plan(), "No changes")
		c.apply("-destroy")
	}
}

// TestSQSAlone: a configuration without RabbitMQ says nothing about it.
func TestSQSAlone(t *testing.T) {
	b := setupSQS(t)
	server := nobody(t)
	c := b.commandLine(b.config(sqsOrders("")))
	c.env = append(c.env, "AWS_EC2_METADATA_SERVICE_ENDPOINT="+server.URL)
	out := c.apply() + c.plan() + c.apply("-destroy")
	expectNot(t, out, "RabbitMQ")
}

// TestSQSNotConfigured: what lacks is said once, and what to do.
func TestSQSNotConfigured(t *testing.T) {
	b := setupSQS(t)
	for want, config := range map[string]string{
		"No region is configured":                "provider \"redeliver\" {}\n",
		"access_key is given without secret_key": "provider \"redeliver\" {\n  sqs = { access_key = \"x\" }\n}\n",
		"is not an AWS account's id":             "provider \"redeliver\" {\n  sqs = { account_id = \"1\" }\n}\n",
		"is no endpoint of AWS":                  strings.Replace(b.provider, "account_id", "#", 1),
	} {
		c := b.commandLine(config + strings.ReplaceAll(sqsOrders(""), "TOPIC", b.topic))
		c.env = append(c.env, "AWS_REGION=", "AWS_DEFAULT_REGION=", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_PROFILE=")
		out := c.planFails()
		expect(t, out, want)
		if n := strings.Count(out, "Error: "); n != 1 {
			t.Errorf("%d errors in\n%s", n, out)
		}
	}
}

// TestSQSUnknownConfiguration: a provider whose endpoint another resource makes plans, and does not replace what it has.
func TestSQSUnknownConfiguration(t *testing.T) {
	b := setupSQS(t)
	config := func(input string) string {
		return "resource \"terraform_data\" \"endpoint\" { input = " + input + " }\n" +
			strings.Replace(b.config(sqsOrders("")), `"`+b.service.Endpoint()+`"`, "terraform_data.endpoint.output", 1)
	}
	c := b.commandLine(config(`"` + b.service.Endpoint() + `"`))
	expect(t, c.plan(), "(known after apply)", "4 to add")
	c.apply()
	expect(t, c.plan(), "No changes")
	c.configure(config(`trimspace(" ` + b.service.Endpoint() + ` ")`))
	expect(t, c.plan(), "No changes")
	// The endpoint is not known while the other resource is to be replaced.
	out := c.plan("-replace=terraform_data.endpoint")
	expect(t, out, "1 to add, 0 to change, 1 to destroy", "Not compared with SQS")
	c.apply("-destroy")
}

// TestSQSUnknownPolicy: a policy or a tag that another resource makes leaves the manifest known, which has neither.
func TestSQSUnknownPolicy(t *testing.T) {
	b := setupSQS(t)
	const policy = `policy = jsonencode({ Version = "2012-10-17", Statement = [{ Sid = "sns", Effect = "Allow", Principal = { Service = "sns.amazonaws.com" }, Action = "sqs:SendMessage", ` +
		`Resource = "arn:aws:sqs:us-east-1:000000000000:TOPIC", Condition = { ArnEquals = { "aws:SourceArn" = terraform_data.other.output } } }] })`
	for more, unknown := range map[string]string{policy: "attributes", `tags = { team = "shop", other = terraform_data.other.id }`: "tags_all"} {
		config := b.config("resource \"terraform_data\" \"other\" { input = \"arn:aws:sns:us-east-1:000000000000:orders\" }\n" + strings.ReplaceAll(sqsOrders(more), "TOPIC", "TOPIC-"+unknown))
		checks := []plancheck.PlanCheck{
			plancheck.ExpectKnownValue("redeliver_sqs_topic.orders", tfjsonpath.New("manifest"), knownvalue.NotNull()),
			plancheck.ExpectUnknownValue("redeliver_sqs_topic.orders", tfjsonpath.New(unknown)),
		}
		b.runSQS(resource.TestStep{Config: config, ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: checks}}, unchanged(config))
	}
}

// TestSQSElsewhere: a queue that the state has in another region is not looked for here.
func TestSQSElsewhere(t *testing.T) {
	b := setupSQS(t)
	c := b.commandLine(b.config(sqsDeadLetters("delete_non_empty = true")))
	c.apply()
	here := b.provider
	b.provider = strings.Replace(here, b.service.Region(), "eu-central-1", 1)
	c.configure(b.config(sqsDeadLetters("delete_non_empty = true")))
	for _, out := range []string{c.planFails(), c.planFails("-refresh=false"), c.applyFails("-destroy", "-refresh=false")} {
		expect(t, out, "The state has queue", b.name("-dlq"), "in region "+b.service.Region(), "eu-central-1", "redeliver.ALIAS")
	}
	b.provider = here
	c.configure(b.config(sqsDeadLetters("delete_non_empty = true")))
	expect(t, c.plan(), "No changes")
	c.apply("-destroy")
}

// TestSQSSecrets: no secret is in the state, in a log at any level, or in what is printed.
func TestSQSSecrets(t *testing.T) {
	b := setupSQS(t)
	secrets := map[string]string{"access_key": "AKIAVERYSECRETKEYID", "secret_key": "v3ry/s3cr3t", "session_token": "t0k3n-of-tomorrow"}
	config := strings.NewReplacer(`access_key = "test"`, "access_key = var.access_key\n    session_token = var.session_token", `secret_key = "test"`, "secret_key = var.secret_key").Replace(b.config(sqsDeadLetters("delete_non_empty = true")))
	c := b.commandLine("")
	for name, value := range secrets {
		config += "variable \"" + name + "\" { type = string }\n"
		c.env = append(c.env, "TF_VAR_"+name+"="+value)
	}
	c.configure(config)
	log := filepath.Join(c.dir, "log")
	c.env = append(c.env, "TF_LOG=TRACE", "TF_LOG_PATH="+log)
	out := c.apply() + c.plan()
	written := readFile(t, log)
	expect(t, written, "SQS request")
	state := readFile(t, filepath.Join(c.dir, "terraform.tfstate"))
	c.configure(strings.Replace(config, b.service.Endpoint(), "http://127.0.0.1:1", 1))
	out += c.planFails()
	for name, secret := range secrets {
		for where, text := range map[string]string{"the output": out, "the log": written, "the state": state} {
			if strings.Contains(text, secret) {
				t.Errorf("%s is in %s", name, where)
			}
		}
	}
	c.configure(config)
	c.apply("-destroy")
}

// TestSQSErrorsTeach: a refusal of SQS says which permission is missing, of a plan and of an apply.
func TestSQSErrorsTeach(t *testing.T) {
	b := setupSQS(t)
	var mu sync.Mutex
	refused := ""
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); operation == refused {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"__type":"com.amazon.coral.service#AccessDeniedException","message":"User: arn:aws:iam::000000000000:user/x is not authorized to perform: ` + refused + `"}`))
			return
		}
		forwardTo(t, b.service.Endpoint()).ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	b.provider = b.blockAt(front.URL, "")
	c := b.commandLine(b.config(sqsDeadLetters("delete_non_empty = true")))
	refuse := func(operation string) {
		mu.Lock()
		defer mu.Unlock()
		refused = operation
	}
	refuse("GetQueueAttributes")
	expect(t, c.plan(), "The plan was not checked against SQS", "sqs:GetQueueAttributes", b.name("-dlq"))
	refuse("CreateQueue")
	expect(t, c.applyFails(), "Could not create the dead-letter queue", "Cannot create queue", "AccessDeniedException", "lacks the IAM action sqs:CreateQueue", b.service.QueueARN(b.name("-dlq")))
	refuse("")
	c.apply()
	b.set(b.name("-dlq"), map[string]string{"DelaySeconds": "5"})
	refuse("SetQueueAttributes")
	expect(t, c.applyFails(), "Could not update the dead-letter queue", "Cannot set DelaySeconds of queue", "lacks the IAM action sqs:SetQueueAttributes")
	refuse("ListQueueTags")
	expect(t, c.planFails(), "Cannot read the tags of queue", "lacks the IAM action sqs:ListQueueTags")
	refuse("DeleteQueue")
	expect(t, c.applyFails("-destroy"), "Could not delete the dead-letter queue", "lacks the IAM action sqs:DeleteQueue")
	refuse("")
	c.apply("-destroy")
}

// forwardTo passes requests on to a server.
func forwardTo(t *testing.T, endpoint string) http.Handler {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Error(err)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
}
