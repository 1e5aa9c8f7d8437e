package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tiers is how many hold queues a topic has, and queuesPerTopic how many queues with them: the work queue, the dead-letter
// queue and the parked queue too. resourcesPerTopic are what the configuration has.
const (
	tiers             = 3
	queuesPerTopic    = 3 + tiers
	resourcesPerTopic = 4
)

// configuration is the estate: a module for each topic, in which large ones are written. With for_each on the resources
// themselves Terraform (1.11) evaluates all instances of one for every reference to it, which takes it minutes here.
const configuration = `
terraform {
  required_providers {
    redeliver = { source = "redeliver/redeliver" }
  }
}

provider "redeliver" {
  rabbitmq = { vhost = %[2]q }
}

module "topic" {
  source   = "./topic"
  for_each = toset([for i in range(%[1]d) : format("topic-%%04d", i)])
  name     = each.key
}
`

// module is one topic of it.
const module = `
terraform {
  required_providers {
    redeliver = { source = "redeliver/redeliver" }
  }
}

variable "name" {
  type = string
}

resource "redeliver_rabbitmq_dead_letter_queue" "this" {
  topic = var.name
}

resource "redeliver_rabbitmq_parked_queue" "this" {
  topic = var.name
}

resource "redeliver_rabbitmq_hold_ladder" "this" {
  topic  = var.name
  delays = ["5s", "30s", "2m"]
}

resource "redeliver_rabbitmq_topic" "this" {
  name              = var.name
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.this.name
  parked_queue      = redeliver_rabbitmq_parked_queue.this.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.this.queues
  park              = "publish"
  retry             = { strategy = "republish" }
}
`

// measured is what an estate's life took.
type measured struct {
	vhost                string
	apply, plan, destroy phase
	memory               int64 // the most that one process of the provider had resident, in bytes
}

// phase is one run of terraform.
type phase struct {
	took, cpu time.Duration // cpu is that of terraform and its providers
	requests  []request
}

// kinds lists how many requests of each kind there were.
func (p phase) kinds() string {
	counts := map[string]int{}
	for _, r := range p.requests {
		path, _, _ := strings.Cut(r.path, "?")
		parts := strings.Split(strings.TrimPrefix(path, "/api/"), "/")
		kind := r.method + " " + parts[0]
		if len(parts) > 2 { // below a vhost: what follows the object's name tells bindings from the object itself
			kind += "/VHOST/NAME"
			for _, part := range parts[3:] {
				if part == "bindings" || part == "source" || part == "destination" {
					kind += "/" + part
				}
			}
		}
		counts[kind]++
	}
	var text strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&text, "\n  %6d %s", counts[kind], kind)
	}
	return text.String()
}

// measure applies the estate, plans it again and destroys it, with a provider that is this program. Through no proxy
// there is no broker either, and the provider does nothing: then states is a file that an earlier measurement wrote.
func measure(ctx context.Context, o options, messages io.Writer, b *broker, dir, program, states string, through *proxy) (_ *measured, err error) {
	m := &measured{vhost: vhostPrefix + filepath.Base(dir)}
	t, err := newTerraform(o, b, dir, program, m.vhost, through)
	if err != nil {
		return nil, err
	}
	if through != nil {
		if err := b.makeVHost(ctx, m.vhost); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.deleteVHost(ctx, m.vhost)) }()
	} else {
		t.env = append(t.env, envStates+"="+states)
	}
	var ignored phase
	for _, p := range []struct {
		into *phase
		args []string
	}{
		{&ignored, []string{"get"}}, // for the module
		{&m.apply, []string{"apply", "-auto-approve"}},
		{&m.plan, []string{"plan", "-detailed-exitcode"}}, // a change is an error
		{&m.destroy, []string{"destroy", "-auto-approve"}},
	} {
		if p.into == &m.destroy && o.keep {
			continue
		}
		if *p.into, err = t.run(ctx, p.args...); err != nil {
			return nil, err
		}
		fmt.Fprintf(messages, "bench-provider: %s: %.1f s (%.1f s of CPU), %d requests%s\n", p.args[0], p.into.took.Seconds(), p.into.cpu.Seconds(), len(p.into.requests), p.into.kinds())
		if p.into == &m.apply && through != nil {
			if err := copyFile(states, filepath.Join(dir, "terraform.tfstate")); err != nil {
				return nil, err
			}
		}
	}
	m.memory = t.memory
	return m, nil
}

func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	return err
}

// terraform is the command line in a directory of its own.
type terraform struct {
	program, dir, plugin string
	parallelism          int
	env                  []string
	through              *proxy
	memory               int64
}

func newTerraform(o options, b *broker, dir, program, vhost string, through *proxy) (*terraform, error) {
	t := &terraform{program: o.terraform, dir: dir, plugin: filepath.Join(dir, "plugins", "terraform-provider-redeliver"), parallelism: o.parallelism, through: through}
	topic := filepath.Join(dir, "topic")
	for _, made := range []string{filepath.Dir(t.plugin), topic} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			return nil, fmt.Errorf("making a directory to work in: %w", err)
		}
	}
	if err := os.Symlink(program, t.plugin); err != nil {
		return nil, fmt.Errorf("making the provider known: %w", err)
	}
	rc := filepath.Join(dir, "cli.tfrc")
	overrides := fmt.Sprintf("provider_installation {\n  dev_overrides { \"redeliver/redeliver\" = %q }\n  direct {}\n}\n", filepath.Dir(t.plugin))
	for path, text := range map[string]string{
		rc: overrides, filepath.Join(dir, "main.tf"): fmt.Sprintf(configuration, o.topics, vhost), filepath.Join(topic, "main.tf"): module,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("writing the configuration: %w", err)
		}
	}
	password, _ := b.user.Password()
	t.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+rc, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1",
		"REDELIVER_RABBITMQ_USERNAME="+b.user.Username(), "REDELIVER_RABBITMQ_PASSWORD="+password, "REDELIVER_RABBITMQ_AMQP_ENDPOINTS="+b.amqp)
	if through != nil {
		t.env = append(t.env, "REDELIVER_RABBITMQ_ENDPOINTS="+through.url.String())
	}
	return t, nil
}

func (t *terraform) run(ctx context.Context, args ...string) (phase, error) {
	t.through.take()
	args = append(args, "-no-color")
	if args[0] != "get" {
		args = append(args, "-input=false", "-compact-warnings", "-parallelism="+strconv.Itoa(t.parallelism))
	}
	cmd := exec.CommandContext(ctx, t.program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Dir, cmd.Env = t.dir, t.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		t.watchMemory(ended)
	}()
	begun := time.Now()
	err := cmd.Run()
	p := phase{took: time.Since(begun), requests: t.through.take()}
	if used := cmd.ProcessState; used != nil {
		p.cpu = used.UserTime() + used.SystemTime()
	}
	close(ended)
	<-watched
	if err != nil {
		text := out.String()
		err = fmt.Errorf("%s %s: %w\n%s", t.program, args[0], err, text[max(0, len(text)-2000):])
	}
	return p, err
}

// watchMemory notes the largest resident memory of the provider's processes, which terraform starts and ends.
func (t *terraform) watchMemory(ended <-chan struct{}) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
			t.memory = max(t.memory, residentMemory(t.plugin))
		}
	}
}

// residentMemory is the largest high-water mark of the processes that run this program, in bytes.
func residentMemory(program string) (most int64) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		line, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(line), program+"\x00") && string(line) != program {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(path), "status"))
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(status), "VmHWM:")
		if fields := strings.Fields(after); len(fields) > 0 {
			kib, _ := strconv.ParseInt(fields[0], 10, 64)
			most = max(most, kib<<10)
		}
	}
	return most
}
