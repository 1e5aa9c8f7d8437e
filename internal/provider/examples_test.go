package provider

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest"
)

const examplesDir = "../../examples"

var (
	// needsBroker is how an example says which RabbitMQ it needs.
	needsBroker = regexp.MustCompile(`(?m)^# Needs RabbitMQ ([\d.]+)`)
	actionBlock = regexp.MustCompile(`(?m)^action "`)
	importLine  = regexp.MustCompile(`(?m)^terraform import (\S+) (?:'%2F/(.*)'|([\w-]+))$`)
	onSQS       = regexp.MustCompile(`(?m)^resource "redeliver_sqs_`)
)

// TestExamplesAreApplied applies every example of the documentation just as it is written, with the real command line:
// it is applied, planned again without a change, and destroyed. Endpoints, credentials and the vhost come from the
// environment.
func TestExamplesAreApplied(t *testing.T) {
	t.Parallel()
	var files []string
	err := filepath.WalkDir(examplesDir, func(path string, entry fs.DirEntry, err error) error {
		// import*.tf imports what is there already: import.sh does so below, and the tests of imports do.
		if err == nil && filepath.Ext(path) == ".tf" && !strings.HasPrefix(entry.Name(), "import") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range files {
		t.Run(strings.TrimPrefix(path, examplesDir+"/"), func(t *testing.T) {
			c := exampleLine(t, path)
			c.apply()
			c.must("plan", "-no-color", "-input=false", "-detailed-exitcode")
			c.apply("-destroy")
		})
	}
}

// TestExamplesAreImported runs every import.sh against what resource.tf beside it made.
func TestExamplesAreImported(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob(filepath.Join(examplesDir, "resources", "*", "import.sh"))
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no import.sh: %v", err)
	}
	for _, path := range scripts {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			script, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			command := importLine.FindSubmatch(script)
			if command == nil {
				t.Fatalf("there is no line like terraform import ADDRESS '%%2F/...', or ADDRESS QUEUE, in\n%s", script)
			}
			c := exampleLine(t, filepath.Join(filepath.Dir(path), "resource.tf"))
			c.apply()
			c.must("state", "rm", string(command[1]))
			id := encodeSegment(c.b.vhost) + "/" + string(command[2])
			if len(command[3]) > 0 {
				id = string(command[3])
			}
			c.must("import", "-no-color", "-input=false", string(command[1]), id)
			// A topic's retry policy is in no queue: it is filled in, and nothing is changed on the broker.
			expect(t, c.apply(), "0 added,", "0 destroyed")
			c.must("plan", "-no-color", "-input=false", "-detailed-exitcode")
			c.apply("-destroy")
		})
	}
}

// exampleLine is a working directory with an example in it, and a broker that it can be applied to.
func exampleLine(t *testing.T, path string) *commandLine {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(content)
	if onSQS.MatchString(text) {
		return sqsExampleLine(t, text)
	}
	b := setup(t)
	if needs := needsBroker.FindStringSubmatch(text); needs != nil {
		b.broker = brokertest.AtLeast(t, needs[1])
		b.vhost = brokertest.VHost(t, b.broker)
	}
	c := b.commandLine("")
	if actionBlock.MatchString(text) && !c.hasActions() {
		t.Skip("this command line knows no actions, which are from terraform 1.14 on")
	}
	// The addresses of the example's broker are the only thing that is not taken as it is written.
	text = strings.NewReplacer(
		`"https://rabbit.example.com:15671"`, `"`+b.broker.ManagementURL()+`"`, `"amqps://rabbit.example.com:5671"`, `"`+b.amqpEndpoint()+`"`,
		`= "terraform"`, `= "`+b.broker.Username()+`"`, `vhost          = "shop"`, `vhost = "`+b.vhost+`"`,
	).Replace(text)
	if strings.Contains(text, "required_providers") {
		c.write("main.tf", text)
	} else {
		c.configure(text)
	}
	if !strings.Contains(text, "\nresource ") && strings.Contains(text, "\nprovider ") {
		c.write("used.tf", shop) // a provider that nothing uses is not configured
	}
	for name, value := range map[string]string{
		"endpoints": b.broker.ManagementURL(), "amqp_endpoints": b.amqpEndpoint(), "username": b.broker.Username(), "password": b.broker.Password(), "vhost": b.vhost,
	} {
		c.env = append(c.env, rabbitmqadmin.EnvName(name)+"="+value)
	}
	c.env = append(c.env, "TF_VAR_vhost="+b.vhost, "TF_VAR_rabbitmq_password="+b.broker.Password())
	return c
}

// sqsExampleLine is a working directory with an example for SQS in it, and an emulator of its own: examples share names.
func sqsExampleLine(t *testing.T, text string) *commandLine {
	t.Helper()
	t.Parallel()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("no TF_ACC: run make test")
	}
	if err := sqstest.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	service, err := sqstest.Start(t.Context(), sqstest.LocalAWSSQS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Stop() })
	c := (&bundle{t: t}).commandLine(text)
	if strings.Contains(text, "required_providers") {
		c.write("main.tf", text)
	}
	key, secret := service.Credentials()
	c.env = append(c.env, "AWS_REGION="+service.Region(), "AWS_ENDPOINT_URL_SQS="+service.Endpoint(), "AWS_ACCESS_KEY_ID="+key, "AWS_SECRET_ACCESS_KEY="+secret, "AWS_ACCOUNT_ID="+service.Account())
	return c
}

// hasActions reports whether the command line knows actions.
func (c *commandLine) hasActions() bool {
	c.b.t.Helper()
	var version struct {
		Terraform string `json:"terraform_version"`
	}
	if err := json.Unmarshal([]byte(c.must("version", "-json")), &version); err != nil {
		c.b.t.Fatal(err)
	}
	parts := strings.SplitN(version.Terraform, ".", 3)
	return len(parts) == 3 && (parts[0] != "1" || len(parts[1]) > 1 && parts[1] >= "14")
}
