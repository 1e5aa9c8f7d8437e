package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/examples/consumer/internal/provision"
	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// TestArchive takes dead letters out of a real queue.
func TestArchive(t *testing.T) {
	t.Parallel()
	vhost := provision.NewVHost(t)
	manifest, out := vhost.Topic("orders"), filepath.Join(t.TempDir(), "dead.jsonl")
	vhost.Publish("orders-dlq",
		amqp091.Publishing{MessageId: "m1", Body: []byte("one"), Headers: amqp091.Table{"x-redeliver-error": "rejected: boom"}},
		amqp091.Publishing{MessageId: "m2", Body: []byte("two")})
	ctx, shutdown := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, vhost.URL("^orders-dlq$"), manifest, out) }()
	brokertest.WaitFor(t, func() (bool, string) {
		text, err := os.ReadFile(out)
		return strings.Count(string(text), "\n") == 2, fmt.Sprintf("the file has %q (%v)", text, err)
	})
	shutdown()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	vhost.WaitDepth("orders-dlq", 0)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	bodies := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		var l letter
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		bodies[l.ID] = string(l.Body) + " " + l.Reason
	}
	if len(bodies) != 2 || bodies["m1"] != "one rejected: boom" || bodies["m2"] != "two " {
		t.Errorf("%q", bodies)
	}
}

// A letter that was not written is an error, and so stays in the queue.
func TestArchiveFails(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "closed"))
	if err != nil {
		t.Fatal(err)
	}
	file.Close()
	if err := (&archive{file: file}).handle(t.Context(), &redeliver.DeadMessage{}); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}
