// Command deadletters takes the dead letters of a topic out of its dead-letter
// queue into a file, one JSON document per line, for people to look into. To look
// without taking, and to have them back on the topic, there is the command
// redeliver (redeliver dlq inspect, redeliver dlq replay).
//
//	AMQP_URL=amqp://user:password@localhost:5672 go run ./deadletters -manifest orders.manifest.json -out orders.dead.jsonl
//
// Its user needs read permission on the dead-letter queue. It runs until SIGINT
// or SIGTERM.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/rabbitmq"
)

func main() {
	manifest := flag.String("manifest", "orders.manifest.json", "file with the topic resource's manifest attribute")
	out := flag.String("out", "orders.dead.jsonl", "file that dead letters are appended to")
	flag.Parse()

	ctx, stop := redeliver.ShutdownSignals(context.Background())
	err := run(ctx, os.Getenv("AMQP_URL"), *manifest, *out)
	stop()
	if err != nil {
		slog.Error("the consumer of dead letters ended", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, manifestPath, outPath string) error {
	manifest, err := redeliver.LoadManifest(manifestPath)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(outPath, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	a := &archive{file: file}
	consumer, err := rabbitmq.HandleDead(ctx, rabbitmq.Config{URL: url, Manifest: manifest}, a.handle)
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}

// archive keeps dead letters in a file.
type archive struct {
	mu   sync.Mutex
	file *os.File
}

// letter is a line of the file.
type letter struct {
	ID     string    `json:"id"`
	Queue  string    `json:"queue"`
	Reason string    `json:"reason"`
	Deaths int64     `json:"deaths"`
	Time   time.Time `json:"time"`
	Body   []byte    `json:"body"` // base64: it may be anything
}

// handle returns nil when the letter is safe, and it is gone from the queue
// then. An error, such as a full disk, makes it wait and come again.
func (a *archive) handle(_ context.Context, msg *redeliver.DeadMessage) error {
	line, err := json.Marshal(letter{
		ID: msg.ID, Queue: msg.OriginalQueue, Reason: msg.Reason, Deaths: msg.DeathCount, Time: time.Now(), Body: msg.Body,
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.file.Write(append(line, '\n')); err != nil {
		return err
	}
	return a.file.Sync()
}
