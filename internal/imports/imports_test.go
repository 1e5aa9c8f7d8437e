package imports_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/redeliver/terraform-provider-redeliver/"

// Modules that only some packages may link, by the beginning of their packages' paths.
const (
	terraform  = "github.com/hashicorp/terraform-plugin"
	rabbitHole = "github.com/michaelklishin/rabbit-hole"
	amqp       = "github.com/rabbitmq/amqp091-go"
	aws        = "github.com/aws/"
	otel       = "go.opentelemetry.io/"
)

// rule forbids the packages in dirs, and those below them, to link what begins with one of deny.
type rule struct {
	why    string
	dirs   []string
	except []string // last path elements of packages that the rule does not bind
	deny   []string
}

var rules = []rule{
	{
		why:  "topology is pure: it knows no broker client and nothing else of this module",
		dirs: []string{"internal/topology"},
		deny: []string{terraform, rabbitHole, amqp, aws, module},
	},
	{
		why:  "brokertest is what the others are tested with",
		dirs: []string{"internal/brokertest"},
		deny: []string{terraform, rabbitHole, aws, module},
	},
	{
		why:  "the administration of a broker knows neither Terraform nor its own users",
		dirs: []string{"internal/rabbitmqadmin", "internal/sqsadmin"},
		deny: []string{terraform, module + "internal/provider", module + "internal/migration", module + "internal/transfer", module + "internal/consumer", module + "redeliver"},
	},
	{
		why:  "what is shared over AMQP knows none of those who share it",
		dirs: []string{"internal/amqp"},
		deny: []string{
			terraform, rabbitHole, aws, module + "internal/provider", module + "internal/consumer", module + "internal/transfer",
			module + "internal/rabbitmqadmin", module + "internal/sqsadmin", module + "internal/brokertest", module + "redeliver",
		},
	},
	{
		why:  "moving messages knows neither Terraform nor consumers",
		dirs: []string{"internal/transfer"},
		deny: []string{terraform, module + "internal/provider", module + "internal/consumer", module + "redeliver"},
	},
	{
		why:  "a migration knows neither Terraform nor consumers",
		dirs: []string{"internal/migration"},
		deny: []string{terraform, module + "internal/provider", module + "internal/consumer", module + "redeliver"},
	},
	{
		why:  "the comparison with a broker is for every program that asks",
		dirs: []string{"internal/verify"},
		deny: []string{terraform, module + "internal/provider", module + "internal/transfer", module + "internal/consumer", module + "redeliver"},
	},
	{
		why:  "the operator's command works without Terraform",
		dirs: []string{"internal/command", "cmd"},
		deny: []string{terraform, module + "internal/provider", module + "internal/migration"},
	},
	{
		why:  "the provider does not consume",
		dirs: []string{"internal/provider"},
		deny: []string{module + "internal/consumer"},
	},
	{
		why:  "a consumer declares nothing: it links neither Terraform nor a management client",
		dirs: []string{"redeliver", "internal/consumer"},
		deny: []string{
			terraform, rabbitHole, module + "internal/provider",
			module + "internal/rabbitmqadmin", module + "internal/sqsadmin", module + "internal/brokertest",
		},
	},
	{
		why:  "the engine and its transports leave messages in their queues: replay is none of theirs",
		dirs: []string{"internal/consumer"},
		deny: []string{module + "internal/transfer"},
	},
	{
		why:    "only the packages that open consumers replay",
		dirs:   []string{"redeliver"},
		except: []string{"rabbitmq", "sqs"},
		deny:   []string{module + "internal/transfer"},
	},
	{
		why:    "an application that does not want OpenTelemetry does not link it",
		dirs:   []string{"redeliver", "internal", "cmd"},
		except: []string{"redeliverotel"},
		deny:   []string{otel},
	},
	{
		why:    "an application that does not use SQS does not link its SDK",
		dirs:   []string{"redeliver", "internal/consumer", "internal/transfer"},
		except: []string{"sqs"},
		deny:   []string{aws},
	},
	{
		why:    "an application that does not use RabbitMQ does not link its client",
		dirs:   []string{"redeliver", "internal/consumer"},
		except: []string{"rabbitmq"},
		deny:   []string{amqp},
	},
	{
		why:  "what replays on SQS does not link the client of RabbitMQ",
		dirs: []string{"internal/transfer/sqs"},
		deny: []string{amqp},
	},
	{
		why:  "what is shared over SQS knows none of those who share it",
		dirs: []string{"internal/sqsapi"},
		deny: []string{terraform, amqp, module},
	},
	{
		why:  "tests bring brokertest along, programs do not",
		dirs: []string{"cmd"},
		deny: []string{module + "internal/brokertest"},
	},
}

func TestImports(t *testing.T) {
	t.Parallel()
	for _, pkg := range listPackages(t) {
		for _, r := range rules {
			if !r.binds(pkg.ImportPath) {
				continue
			}
			for _, dep := range pkg.Deps {
				if r.denies(dep) {
					t.Errorf("%s links %s: %s", pkg.ImportPath, dep, r.why)
				}
			}
		}
	}
}

// TestRedeliverIsALeaf is stricter than a rule: the packages below redeliver/ may import the engine.
func TestRedeliverIsALeaf(t *testing.T) {
	t.Parallel()
	for _, pkg := range listPackages(t) {
		if pkg.ImportPath != module+"redeliver" {
			continue
		}
		for _, dep := range pkg.Deps {
			if strings.HasPrefix(dep, module) && dep != module+"internal/topology" {
				t.Errorf("%s links %s: it is a leaf of types, which the engine imports", pkg.ImportPath, dep)
			}
		}
	}
}

func (r rule) binds(path string) bool {
	if slices.ContainsFunc(r.except, func(last string) bool { return strings.HasSuffix(path, "/"+last) }) {
		return false
	}
	return slices.ContainsFunc(r.dirs, func(dir string) bool { return isBelow(path, module+dir) })
}

func (r rule) denies(dep string) bool {
	if slices.ContainsFunc(r.dirs, func(dir string) bool { return isBelow(dep, module+dir) }) {
		return false // its own kin
	}
	return slices.ContainsFunc(r.deny, func(prefix string) bool { return strings.HasPrefix(dep, prefix) })
}

func isBelow(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

type listed struct {
	ImportPath string
	Deps       []string // all, without those of tests
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	noteSources(t)
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Deps", module+"...")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var all []listed
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var pkg listed
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, pkg)
	}
}

// noteSources looks at every source file, so that go test does not answer from its cache after one changed:
// it sees what a test itself opens, and not what go list reads.
func noteSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && !strings.HasPrefix(entry.Name(), "..") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	if len(listPackages(t)) < 2 {
		t.Error("go list finds no packages: the rules check nothing")
	}
	sdk := rule{dirs: []string{"redeliver"}, except: []string{"sqs"}, deny: []string{aws}}
	for path, want := range map[string]bool{
		module + "redeliver":          true,
		module + "redeliver/rabbitmq": true,
		module + "redeliver/sqs":      false,
		module + "redelivery":         false,
		module + "internal/sqsadmin":  false,
	} {
		if got := sdk.binds(path); got != want {
			t.Errorf("the rule binds %s: %v, want %v", path, got, want)
		}
	}
	if !sdk.denies(aws+"aws-sdk-go-v2/service/sqs") || sdk.denies("net/http") {
		t.Error("the rule denies the wrong packages")
	}
}
