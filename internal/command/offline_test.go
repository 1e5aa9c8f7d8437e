package command_test

import (
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/redeliver/terraform-provider-redeliver/internal/command"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func TestManifest(t *testing.T) {
	b := offline(t)
	m := b.manifest(b.spec())
	b.golden("manifest_show", b.run("manifest", "show", "orders.json").exits(0))
	var again topology.Manifest
	if err := json.Unmarshal([]byte(b.run("manifest", "show", "-o", "json", "orders.json").exits(0).out), &again); err != nil || again.Fingerprint != m.Fingerprint {
		t.Errorf("as JSON: %v, fingerprint %q", err, again.Fingerprint)
	}
	b.runWith(string(m.Encode()), "manifest", "show", "-").exits(0).says("topic orders")

	b.write("edited.json", []byte(strings.Replace(string(m.Encode()), "orders-dlq", "orders-dlx", 1)))
	b.write("newer.json", []byte(strings.Replace(string(m.Encode()), `"version": 1`, `"version": 9`, 1)))
	b.run("manifest", "validate", "orders.json").exits(0).says("orders.json: valid, topic orders")
	b.golden("manifest_validate", b.run("manifest", "validate", "orders.json", "edited.json", "newer.json").exits(1))
	b.run("manifest", "validate", "none.json").exits(2).says("none.json")
	b.run("manifest", "show", "edited.json").exits(2).says("edited.json")

	other := b.spec(func(s *topology.Spec) {
		s.HoldDelays[2] = 3 * time.Minute
		s.Retry.MaxRetries, s.ParkedQueue = 60, ""
		s.Bindings = []topology.Binding{{Source: "shop.events", RoutingKey: "order.*"}}
	})
	after, err := other.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	b.write("after.json", after.Encode())
	b.run("manifest", "diff", "orders.json", "orders.json").exits(0).says("the manifests say the same")
	b.golden("manifest_diff", b.run("manifest", "diff", "orders.json", "after.json").exits(1))
}

func TestPermissions(t *testing.T) {
	b := offline(t)
	b.manifest(b.spec())
	b.golden("permissions", b.run("permissions", "--role", "operator", "--user", "on call", "orders.json").exits(0))
	b.run("permissions", "--role", "consumer", "--output", "json", "orders.json").exits(0).says(`"read": "^orders$"`)
	b.run("permissions", "--role", "king", "orders.json").exits(2).says("consumer, publisher, operator")
}

func TestPlanSchedule(t *testing.T) {
	b := offline(t)
	b.manifest(b.spec(func(s *topology.Spec) { s.Retry.GiveUpAfter = 3 * time.Minute }))
	b.golden("schedule_manifest", b.run("plan-schedule", "orders.json", "--handler", "1s").exits(0))
	b.golden("schedule_exponential", b.run("plan-schedule", "--exponential", "1s,1m", "--max-retries", "8").exits(0))
	b.golden("schedule_broker_delayed", b.run("plan-schedule", "--strategy", "broker_delayed", "--delay-min", "5s", "--delay-max", "12s", "--max-retries", "4").exits(0))
	b.run("plan-schedule", "--max-retries", "0").exits(0).says("no retries")
	b.run("plan-schedule", "orders.json", "--delays", "5s").exits(2).says("--delays and a manifest both say the policy")
	b.run("plan-schedule", "--delays", "often").exits(2).says(`"often"`)
	b.run("plan-schedule", "--delays", "5h").exits(2).says("the policy:")
}

func TestGraph(t *testing.T) {
	b := offline(t)
	b.manifest(b.spec())
	b.golden("graph_dot", b.run("graph", "--format", "dot", "orders.json").exits(0))
	b.golden("graph_mermaid", b.run("graph", "orders.json").exits(0))
	r := b.run("graph", "--format", "svg", "orders.json").exits(0)
	r.out = html.UnescapeString(r.out)
	r.says("<svg", "orders-hold-120s", "x-delivery-limit = 50", "may read ^orders$")
	b.run("graph", "--format", "png", "orders.json").exits(2).says("mermaid, dot, svg")
	b.manifest(b.spec(func(s *topology.Spec) {
		s.Topic, s.DeadLetterQueue, s.ParkedQueue = "mails", "mails-dlq", "mails-parked"
	}))
	b.run("graph", "orders.json", "mails.json").exits(0).says("of orders", "of mails", "mails-dlq")
}

func TestCommandLine(t *testing.T) {
	b := offline(t)
	b.manifest(b.spec())
	b.run("version").exits(0).says("redeliver dev (go")
	b.run().exits(0).says("Usage:", "import-config")
	b.run("verify").exits(2).says("no manifest is named", "See: redeliver verify --help")
	b.run("dlq", "look").exits(2).says(`"look"`)
	b.run("nonsense").exits(2).says(`"nonsense"`)
	b.run("verify", "--no-such-flag").exits(2).says("--no-such-flag")
	b.run("verify", "-o", "xml", "orders.json").exits(2).says("table, json")
	for shell, want := range map[string]string{"bash": "__start_redeliver", "zsh": "#compdef redeliver", "fish": "complete -c redeliver", "powershell": "Register-ArgumentCompleter"} {
		b.run("completion", shell).exits(0).says(want)
	}
	b.run("__complete", "graph", "--format", "").exits(0).says("mermaid", "svg")
	b.run("verify", "none.json").exits(2).says("none.json")
	b.run("dlq", "move", "orders.json").exits(2).says("--to QUEUE")
	b.run("dlq", "replay", "orders.json", "--to", "orders-dlq").exits(2)
	b.run("permissions", "orders.json").exits(2).says(`"role"`, "See: redeliver permissions --help")
	b.run("nonsense").exits(2).says("See: redeliver --help")
	text := string(must(os.ReadFile(filepath.Join(b.dir, "orders.json")))(t))
	b.runWith(text, "verify", "-", "-").exits(2).says("standard input", "given twice", "See: redeliver verify --help")
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe"} {
		b.write("marked.json", []byte(mark+text))
		b.run("manifest", "validate", "marked.json").exits(2).says("marked.json", "byte order mark", "UTF-8", "PowerShell")
	}
	for _, address := range []string{"localhost:5672", "127.0.0.1:5672", "http://localhost:15672"} {
		b.run("dlq", "inspect", "orders.json", "--amqp-url", address).exits(2).says("--amqp-url", address, "amqp://HOST:PORT").lacks("credentials")
	}
	b.run("verify", "orders.json", "--management-url", "localhost:15672").exits(2).says("http://HOST:PORT")
	// What was refused before anything was counted says nothing of counts.
	args := []string{"dlq", "replay", "orders.json", "--dry-run", "--amqp-url", "amqp://127.0.0.1:1", "--username", "me", "--password-file", "orders.json"}
	b.run(args...).exits(2).says("127.0.0.1:1").lacks("found", "left")
}

// TestHelp: every command has help, with an example of it.
func TestHelp(t *testing.T) {
	b := offline(t)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		b.run(append(strings.Fields(cmd.CommandPath())[1:], "--help")...).exits(0).says("Usage:", "Examples:\n")
		if !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s has no example of itself: %q", cmd.CommandPath(), cmd.Example)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(command.Root())
}

// TestInterruptedInput: who waits for standard input ends at the first Ctrl-C.
func TestInterruptedInput(t *testing.T) {
	b := offline(t)
	in, typed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer typed.Close()
	var out lockedBuffer
	cmd := b.command("verify", "-")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := typed.Write(make([]byte, 1<<20)); err != nil { // more than a pipe takes while nobody reads
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code says it
	if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(out.String(), "reading standard input: Ctrl-C") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

// TestErrorsAsJSON: with --output json the last line of standard error is an object, whatever is wrong.
func TestErrorsAsJSON(t *testing.T) {
	b := offline(t)
	b.manifest(b.spec())
	for args, want := range map[string]struct{ part, help string }{
		"verify none.json -o json":                  {"none.json", ""},
		"dlq inspect orders.json --output=json":     {"--amqp-url", ""},
		"dlq list orders.json -o json":              {"--management-url", ""},
		"dlq purge orders.json -ojson":              {"--amqp-url", ""},
		"status orders.json -o json":                {"--management-url", ""},
		"dlq replay orders.json --limit x -o json":  {"--limit", "redeliver dlq replay --help"},
		"verify orders.json --no-such-flag -o json": {"--no-such-flag", "redeliver verify --help"},
		"-o json nonsense":                          {"nonsense", "redeliver --help"},
		"permissions orders.json -o json":           {`"role"`, "redeliver permissions --help"},
		"verify -o json":                            {"no manifest", "redeliver verify --help"},
		"dlq replay orders.json -o json --rate -1":  {"--rate", "redeliver dlq replay --help"},
	} {
		r := b.run(strings.Fields(args)...).exits(2)
		lines := strings.Split(strings.TrimSpace(r.err), "\n")
		var got struct {
			Error    string `json:"error"`
			ExitCode int    `json:"exit_code"`
			Help     string `json:"help"`
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil || got.ExitCode != 2 || !strings.Contains(got.Error, want.part) || got.Help != want.help || r.out != "" {
			t.Errorf("%s: %v\n%s\n%s", args, err, r.err, r.out)
		}
	}
}

// TestSecrets: none is taken from the command line, and none is printed.
func TestSecrets(t *testing.T) {
	b := offline(t)
	b.manifest(b.spec())
	const secret = "hunter2"
	for _, flag := range []string{"--management-url=http://me:" + secret + "@localhost:1", "--amqp-url=amqp://me:" + secret + "@localhost:1"} {
		b.run("verify", flag, "orders.json").exits(2).says("every user of the machine can see", rabbitmqadmin.EnvName("password")).lacks(secret)
	}
	b.run("verify", "--management-url=http://localhost:1", "--username=me", "orders.json").exits(2).says(`no password for user "me"`, "--password-file")
	b.run("dlq", "inspect", "orders.json").exits(2).says("--amqp-url")
	b.write("password", []byte(secret+"\n"))
	b.setenv("max_retries", "0")
	b.run("verify", "--username=me", "--password-file=password", "orders.json").exits(2).says("--management-url")
	b.run("verify", "--management-url=http://127.0.0.1:1", "--username=me", "--password-file=password", "orders.json").exits(2).says("127.0.0.1:1").lacks(secret)
	b.env = append(b.env, "AMQP_URL=amqp://me:"+secret+"@127.0.0.1:1")
	b.run("dlq", "inspect", "orders.json").exits(2).says("127.0.0.1:1").lacks(secret)
	b.run("verify", "--management-url=http://127.0.0.1:1", "orders.json").exits(2).lacks(secret)
}

// TestOtherBrokers: what needs no broker works for a topic on SQS, and of a broker that is not known every command says so.
func TestOtherBrokers(t *testing.T) {
	b := offline(t)
	spec := topology.SQSSpec{
		SQSIdentity:     topology.SQSIdentity{Topic: "orders", Region: "eu-central-1", Account: "123456789012"},
		DeadLetterQueue: "orders-dlq", Retry: topology.RetryPolicy{MaxRetries: 3, Delays: []time.Duration{5 * time.Second, time.Minute}},
	}
	m, err := spec.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	b.write("sqs.json", m.Encode())
	b.run("manifest", "show", "sqs.json").exits(0).says("on Amazon SQS", "arn:aws:sqs:eu-central-1:123456789012:orders-dlq", "VisibilityTimeout=")
	b.run("manifest", "validate", "sqs.json").exits(0).says("valid")
	b.run("permissions", "--role", "consumer", "sqs.json").exits(0).says("sqs:ReceiveMessage")
	b.run("plan-schedule", "sqs.json").exits(0).says("the queue", "1m")
	b.run("graph", "sqs.json").exits(0).says("flowchart LR", "orders-dlq")
	b.manifest(b.spec())
	b.run("manifest", "diff", "orders.json", "sqs.json").exits(1).says(`broker: "rabbitmq" -> "sqs"`)
	b.write("kafka.json", []byte(strings.Replace(string(m.Encode()), `"sqs"`, `"kafka"`, 1)))
	b.run("verify", "kafka.json").exits(2).says("kafka")
}

// TestPictureInABrowser looks at the picture as a browser draws it: it is not empty, and holds what it should.
func TestPictureInABrowser(t *testing.T) {
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: apt-get install chromium")
	}
	b := offline(t)
	b.manifest(b.spec())
	b.write("orders.svg", []byte(b.run("graph", "--format", "svg", "orders.json").exits(0).out))
	b.look(chromium, "orders.svg")
	checkBoxes(t, b.measured(chromium, "orders.svg"))
}
