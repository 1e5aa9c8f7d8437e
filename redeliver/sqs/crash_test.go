package sqs_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/sqs"
)

// envChild makes the test binary play a consumer in a process of its own. It holds a childConfig.
const envChild = "REDELIVER_TEST_SQS_CHILD"

type childConfig struct {
	Endpoint string
	Manifest json.RawMessage
}

func TestMain(m *testing.M) {
	text := os.Getenv(envChild)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := runChild(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runChild consumes until it is killed, or until standard input ends because the
// test did. Before a handler returns it prints what it is going to say.
func runChild(text string) error {
	var cfg childConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	manifest, err := redeliver.ParseManifest(cfg.Manifest)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	var mu sync.Mutex
	c, err := sqs.Open(ctx, sqs.Config{
		AWS: &aws.Config{Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}, Endpoint: cfg.Endpoint,
		Manifest: manifest, Consumer: redeliver.Config{Logger: slog.New(slog.DiscardHandler)},
		Handler: redeliver.HandlerFunc(func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			o := redeliver.Ack()
			switch k := rand.IntN(20); {
			case k < 4:
				o = redeliver.Retry(errBoom)
			case k < 5:
				o = redeliver.Reject(errBoom)
			}
			mu.Lock()
			defer mu.Unlock()
			if _, err := fmt.Printf("%s %s\n", m.Body, o.Kind()); err != nil {
				panic(err) // the test has ended
			}
			return o
		}),
	})
	if err != nil {
		return err
	}
	return c.Run(ctx)
}

// TestConsumerKilled: kill -9 for a consumer, five times. Every message is
// acknowledged by a handler or is in the dead-letter queue.
func TestConsumerKilled(t *testing.T) {
	t.Parallel()
	w := onFaux(t, func(s *topology.SQSSpec) { s.VisibilityTimeout, s.DeadLetterVia = minVisibility, topology.ViaSend })
	const n = 2000
	all := ids(n)
	w.publish(all...)
	acked := make(map[string]bool)
	for kill := range 5 {
		w.child(func(body, outcome string) (enough bool) {
			if outcome == redeliver.OutcomeAck.String() {
				acked[body] = true
			}
			return len(acked) >= n*(kill+1)/8
		})
	}
	var mu sync.Mutex
	l := w.consume(redeliver.Config{Workers: 32}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		mu.Lock()
		defer mu.Unlock()
		acked[string(m.Body)] = true
		return redeliver.Ack()
	})
	// What the killed ones had comes when its visibility is over.
	l.until(func() bool {
		mu.Lock()
		defer mu.Unlock()
		s := l.Stats()
		return s.InFlight == 0 && len(acked)+n/10 >= n && w.depth(w.doc.WorkQueue) == 0
	}, "the work queue is empty")
	l.mustStop()
	ended := maps.Clone(acked)
	dead := bodies(w.drained(w.doc.DeadLetter.ManifestQueue))
	for _, body := range dead {
		ended[body] = true
	}
	t.Logf("%d acknowledged, %d dead", len(acked), len(dead))
	if got := slices.Sorted(maps.Keys(ended)); !slices.Equal(got, all) {
		t.Errorf("%d messages ended, want %d", len(got), n)
	}
}

// child runs a consumer in a process of its own, until enough says so; then it is killed.
func (w *world) child(enough func(body, outcome string) bool) {
	w.t.Helper()
	text, err := json.Marshal(childConfig{Endpoint: w.spec.Endpoint, Manifest: w.doc.Encode()})
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+string(text))
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	killed := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		body, outcome, _ := strings.Cut(lines.Text(), " ")
		if enough(body, outcome) && !killed {
			killed = true
			_ = cmd.Process.Kill() // it reads on, to the last word
		}
	}
	_ = stdin.Close()
	_ = cmd.Wait()
	if said.Len() > 0 || !killed {
		w.t.Errorf("a consumer's process said: %s", said.String())
	}
}

// minVisibility is a short visibility timeout, so that what a killed consumer had comes back soon.
const minVisibility = 5 * time.Second

// depth is how many messages a queue has, in whatever state.
func (w *world) depth(queue topology.ManifestQueue) int {
	w.t.Helper()
	out, err := w.client.GetQueueAttributes(w.t.Context(), &awssqs.GetQueueAttributesInput{QueueUrl: &queue.URL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		w.t.Fatal(err)
	}
	visible, inFlight, delayed := topology.SQSAttributes(out.Attributes).Messages()
	return visible + inFlight + delayed
}
