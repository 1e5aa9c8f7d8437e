package command_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// provider is the provider's binary, built once for the tests that plan.
var provider struct {
	once sync.Once
	err  error
}

// plan has the real command line plan a configuration.
func (b *bundle) plan(config string) string {
	b.t.Helper()
	return b.planAt("{}", config)
}

// planAt does with a provider that is configured.
func (b *bundle) planAt(block, config string) string {
	b.t.Helper()
	terraform := os.Getenv("TF_ACC_TERRAFORM_PATH")
	for _, name := range []string{"terraform", "tofu"} {
		if terraform == "" {
			terraform, _ = exec.LookPath(name)
		}
	}
	if terraform == "" || os.Getenv("TF_ACC") == "" {
		b.t.Skip("no terraform on PATH, or TF_ACC is not set: run make test")
	}
	provider.once.Do(func() {
		out, err := exec.CommandContext(b.t.Context(), "go", "build", "-o", filepath.Join(filepath.Dir(binary), "terraform-provider-redeliver"), "../..").CombinedOutput()
		if err != nil {
			provider.err = fmt.Errorf("building the provider: %w\n%s", err, out)
		}
	})
	if provider.err != nil {
		b.t.Fatal(provider.err)
	}
	b.write("cli.tfrc", []byte(fmt.Sprintf("provider_installation {\n  dev_overrides { \"redeliver/redeliver\" = %q }\n  direct {}\n}\n", filepath.Dir(binary))))
	b.write("main.tf", []byte("terraform {\n  required_providers {\n    redeliver = { source = \"redeliver/redeliver\" }\n  }\n}\nprovider \"redeliver\" "+block+"\n"))
	b.write("imported.tf", []byte(config))
	cmd := exec.CommandContext(b.t.Context(), terraform, "plan", "-no-color", "-input=false")
	cmd.Dir = b.dir
	for _, variable := range b.env {
		if !strings.HasPrefix(variable, "TF_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "TF_CLI_CONFIG_FILE="+filepath.Join(b.dir, "cli.tfrc"), "CHECKPOINT_DISABLE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("terraform plan: %v\n%s\n%s", err, out, config)
	}
	return string(out)
}

func TestImportConfig(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*topology.Spec)
		imports int
		says    []string
	}{
		"redeliver": {func(s *topology.Spec) {
			s.Bindings = []topology.Binding{{Source: "amq.topic", RoutingKey: "order.*"}}
			s.Extra = map[topology.Role]topology.Arguments{topology.RoleWork: {"x-max-length": int64(10000)}}
		}, 4, []string{`x-max-length = 10000`, `routing_key = "order.*"`}},
		"redeliver with a limit of its own": {func(s *topology.Spec) { s.DeliveryLimit, s.HoldDelays, s.Retry = 77, nil, topology.RetryPolicy{} }, 3, []string{"delivery_limit"}},
		"redeliver split":                   {func(s *topology.Spec) { s.JitterShards, s.JitterFactor = 2, 0.2 }, 4, []string{"jitter_shards"}},
		"redeliver sequenced": {func(s *topology.Spec) {
			s.Sequenced, s.Retry = true, topology.RetryPolicy{MaxRetries: 2, Delays: []time.Duration{time.Second}}
			s.HoldDelays = nil
		}, 3, []string{"sequenced"}},
		"shove": {func(s *topology.Spec) {
			s.Convention, s.ParkedQueue, s.Retry.Strategy = topology.Shove, "", topology.Republish
		}, 3, nil},
		"shove with a consumer group": {func(s *topology.Spec) {
			s.Convention, s.ConsumerGroup, s.DeadLetterQueue, s.ParkedQueue, s.Retry.Strategy = topology.Shove, "eu", "orders-eu-dlq", "", topology.Republish
		}, 3, []string{`consumer_group = "eu"`}},
		"acemq": {func(s *topology.Spec) {
			s.Convention, s.DeadLetterQueue, s.ParkedQueue, s.Retry.Strategy = topology.AceMQ, "orders.dlq", "orders.parked", topology.Republish
		}, 4, nil},
		"rabbitkit": {func(s *topology.Spec) {
			s.Convention, s.QueueType, s.DeadLetterQueue, s.ParkedQueue = topology.RabbitKit, topology.Classic, "orders.dlq", ""
			s.Retry.Strategy, s.Retry.MaxRetries = topology.Republish, 3
		}, 3, []string{`queue_type`}},
		"queuey": {func(s *topology.Spec) {
			s.Convention, s.DeadLetterQueue, s.ParkedQueue, s.HoldDelays = topology.Queuey, "orders.dead", "", nil
			s.Retry = topology.RetryPolicy{MaxRetries: 1, Delays: []time.Duration{time.Second}}
		}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.provision(b.spec(test.change))
			r := b.run("import-config", "--vhost", b.vhost).exits(0).says(test.says...).says("1 topic in vhost").lacks("#")
			out := b.plan(r.out)
			if want := fmt.Sprintf("Plan: %d to import, 0 to add, 0 to change, 0 to destroy", test.imports); !strings.Contains(out, want) {
				t.Errorf("%q is not in:\n%s\n%s", want, out, r.out)
			}
		})
	}
}

// TestImportConfigOfAVHost: topics of several conventions beside each other are told apart.
func TestImportConfigOfAVHost(t *testing.T) {
	b := setup(t)
	named := func(topic string, convention topology.Convention) func(*topology.Spec) {
		return func(s *topology.Spec) {
			s.Topic, s.Convention, s.Retry.Strategy = topic, convention, topology.Republish
			s.DeadLetterQueue, s.ParkedQueue = s.DeadLetterQueueName(), s.ParkedQueueName()
		}
	}
	b.provision(b.spec())
	b.provision(b.spec(named("mails", topology.Shove)))
	b.provision(b.spec(named("bills", topology.AceMQ)))
	b.provision(b.spec(named("1.odd name", topology.Redeliver)))
	r := b.run("import-config", "--vhost", b.vhost).exits(0).says("4 topics in vhost", "topic_1_odd_name").lacks("#")
	if out := b.plan(r.out); !strings.Contains(out, "Plan: 15 to import, 0 to add, 0 to change, 0 to destroy") {
		t.Errorf("%s\n%s", out, r.out)
	}
	b.run("import-config", "--vhost", b.vhost, "--convention", "acemq").exits(0).says("1 topic in vhost").lacks("mails")
}

// TestImportConfigOfPolicies: settings that are in a policy of the queue's own stay there.
func TestImportConfigOfPolicies(t *testing.T) {
	b := setup(t)
	objects, err := b.spec(func(s *topology.Spec) { s.HoldDelays, s.Retry = nil, topology.RetryPolicy{} }).Build()
	if err != nil {
		t.Fatal(err)
	}
	objects = objects.ViaPolicy()
	for _, q := range objects.Queues {
		p := q.Policy
		b.request("PUT", "policies", url.PathEscape(p.Name), map[string]any{"pattern": p.Pattern, "apply-to": p.ApplyTo, "priority": p.Priority, "definition": p.Definition})
	}
	b.declare(objects)
	r := b.run("import-config", "--vhost", b.vhost).exits(0).lacks("#")
	if out := b.plan(r.out); !strings.Contains(out, "Plan: 3 to import, 0 to add, 0 to change, 0 to destroy") || !strings.Contains(out, `settings_via       = "policy"`) {
		t.Errorf("%s\n%s", out, r.out)
	}
}

// TestImportConfigOfDrift: what is left out of a ladder is named, with which of its arguments is not the convention's.
func TestImportConfigOfDrift(t *testing.T) {
	b := setup(t)
	hold := func(kind string, arguments amqp091.Table) amqp091.Table {
		table := amqp091.Table{"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders"}
		if kind == "quorum" {
			table["x-dead-letter-strategy"], table["x-overflow"] = "at-least-once", "reject-publish"
		}
		for key, value := range arguments {
			table[key] = value
		}
		return table
	}
	b.provision(b.spec(func(s *topology.Spec) { s.HoldDelays = []time.Duration{5 * time.Second, 2 * time.Minute} }))
	b.provision(b.spec(func(s *topology.Spec) {
		s.Topic, s.Convention, s.QueueType, s.DeadLetterQueue, s.ParkedQueue = "mails", topology.RabbitKit, topology.Classic, "mails.dlq", ""
		s.HoldDelays, s.Retry = []time.Duration{time.Second}, topology.RetryPolicy{Strategy: topology.Republish, MaxRetries: 1, Jitter: topology.DefaultJitter}
	}))
	ch := brokertest.Channel(t, b.broker, b.vhost)
	for name, arguments := range map[string]amqp091.Table{
		"orders-hold-30s": hold("quorum", amqp091.Table{"x-message-ttl": int32(45000)}),
		"orders-hold-60s": hold("quorum", amqp091.Table{"x-message-ttl": int32(60000), "x-dead-letter-routing-key": "elsewhere", "x-max-length": int32(9)}),
		"orders-hold-90s": hold("quorum", nil),
		"mails.retry.2":   hold("classic", nil),
		"mails.retry.3":   hold("classic", amqp091.Table{"x-message-ttl": int32(9000), "x-dead-letter-routing-key": "mails"}),
	} {
		if _, err := ch.QueueDeclare(name, true, false, false, false, arguments); err != nil {
			t.Fatal(err)
		}
	}
	r := b.run("import-config", "--vhost", b.vhost).exits(0).says("2 topics in vhost").lacks("x-max-length")
	for _, want := range []string{
		`topic "orders": hold queue "orders-hold-30s" is left out, because it is not as the convention has it: x-message-ttl: want 30000, live 45000`,
		`hold queue "orders-hold-60s" is left out, because it is not as the convention has it: x-dead-letter-routing-key: want "orders", live "elsewhere"`,
		`hold queue "orders-hold-90s" is left out, because it is not as the convention has it: x-message-ttl: want 90000, live absent`,
		`hold queue "mails.retry.2" is left out, because it is not as the convention has it: x-dead-letter-routing-key: want "mails", live "orders"`,
		`x-message-ttl: want the delay in milliseconds, live absent`,
		`topic "mails": hold queues that a gap in the ladder leaves out: mails.retry.3`,
	} {
		if !strings.Contains(r.out, "# ") || !strings.Contains(r.out, want) || !strings.Contains(r.err, want) {
			t.Errorf("%q is not said twice:\n%s\n%s", want, r.out, r.err)
		}
	}
	if out := b.plan(r.out); !strings.Contains(out, "Plan: 7 to import, 0 to add, 0 to change, 0 to destroy") {
		t.Errorf("%s\n%s", out, r.out)
	}
}

func TestImportConfigOfNothing(t *testing.T) {
	b := setup(t)
	ch := brokertest.Channel(t, b.broker, b.vhost)
	if _, err := ch.QueueDeclare("alone", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	b.run("import-config", "--vhost", b.vhost).exits(1).says("no topic was recognised")
	b.run("import-config", "--vhost", "no-such-vhost").exits(2)
	b.run("import-config").exits(2).says("vhost")
	b.run("import-config", "--vhost", b.vhost, "--convention", "none").exits(2)
}
