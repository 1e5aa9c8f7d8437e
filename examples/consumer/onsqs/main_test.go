package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redelivertest"
)

// TestOnSQS plays the handler on an Amazon SQS in memory, whose clock the test moves.
func TestOnSQS(t *testing.T) {
	t.Parallel()
	delays := []time.Duration{5 * time.Second, time.Minute}
	b := redelivertest.New(t, redelivertest.Manifest(t, redelivertest.Topic{Broker: "sqs", MaxRetries: 2, Delays: delays}))
	consumer := b.Consume(redeliver.Config{}, redeliver.JSON(handle))
	for _, body := range []string{`{"id": "1", "address": "here"}`, `{"id": "2"}`, `{"id": "sunday", "address": "here"}`} {
		b.Publish(redeliver.Message{Body: []byte(body)})
	}
	b.Finish()
	if s := consumer.Stats(); s.Acked != 1 || s.Retried != 2 || s.Exhausted != 1 {
		t.Errorf("%+v", s)
	}
	dead := b.Dead()
	if len(dead) != 2 {
		t.Fatalf("%+v", dead)
	}
	for _, m := range dead {
		if err := tell(t.Context(), &m); err != nil {
			t.Error(err)
		}
	}
}

// TestLinks: the program links the AWS SDK and no client of RabbitMQ.
func TestLinks(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list -deps: %v", err)
	}
	for pkg := range strings.FieldsSeq(string(out)) {
		if strings.Contains(pkg, "amqp") || strings.Contains(pkg, "hashicorp") {
			t.Errorf("the program links %s", pkg)
		}
	}
}

func TestWithoutManifest(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), filepath.Join(t.TempDir(), "absent.json")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
