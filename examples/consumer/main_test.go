package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/examples/consumer/internal/provision"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// TestBuilds: the program builds, and what it links is a broker client and
// nothing of Terraform or of a management API.
func TestBuilds(t *testing.T) {
	t.Parallel()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(t.TempDir(), "consumer"), ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list -deps: %v", err)
	}
	const module = "github.com/redeliver/terraform-provider-redeliver/"
	mayLink := map[string]bool{
		module + "examples/consumer": true, module + "redeliver": true, module + "redeliver/rabbitmq": true,
		module + "internal/consumer": true, module + "internal/consumer/rabbitmq": true, module + "internal/topology": true,
		module + "internal/amqp": true, module + "internal/transfer": true,
		"github.com/rabbitmq/amqp091-go": true,
	}
	for _, pkg := range strings.Fields(string(out)) {
		host, _, _ := strings.Cut(pkg, "/")
		if strings.Contains(host, ".") && !mayLink[pkg] && !strings.HasPrefix(pkg, "github.com/rabbitmq/amqp091-go/") {
			t.Errorf("the program links %s", pkg)
		}
	}
}

func TestHandle(t *testing.T) {
	t.Parallel()
	handler := redeliver.JSON(handle)
	for body, want := range map[string]redeliver.OutcomeKind{
		`{"id": "1", "version": 1, "address": "here"}`:      redeliver.OutcomeAck,
		`{"id": "unpaid", "version": 1, "address": "here"}`: redeliver.OutcomeDefer,
		`{"id": "3", "version": 1}`:                         redeliver.OutcomeReject,
		`{"id": "4", "version": 3, "address": "here"}`:      redeliver.OutcomePark,
		`not JSON`: redeliver.OutcomePark,
	} {
		if got := handler.Handle(t.Context(), &redeliver.Message{Body: []byte(body)}); got.Kind() != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// TestRun: the program takes messages from a real queue until it is told to end,
// and what it rejects is in the dead-letter queue then.
func TestRun(t *testing.T) {
	t.Parallel()
	vhost := provision.NewVHost(t)
	manifest := vhost.Topic("orders")
	vhost.Publish("orders",
		amqp091.Publishing{MessageId: "shipped", Body: []byte(`{"id": "1", "version": 1, "address": "here"}`)},
		amqp091.Publishing{MessageId: "without an address", Body: []byte(`{"id": "2", "version": 1}`)},
		amqp091.Publishing{MessageId: "too new", Body: []byte(`{"id": "3", "version": 3, "address": "here"}`)},
		amqp091.Publishing{MessageId: "unpaid", Body: []byte(`{"id": "unpaid", "version": 1, "address": "here"}`)})
	ctx, shutdown := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, vhost.URL("^orders$"), manifest, 2) }()
	vhost.WaitDepth("orders-dlq", 2)
	shutdown()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	vhost.WaitDepth("orders", 1) // what waits for its payment, for whoever consumes next
}

func TestWithoutManifest(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), "", filepath.Join(t.TempDir(), "absent.json"), 1)
	if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
