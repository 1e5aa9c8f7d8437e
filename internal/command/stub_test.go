package command_test

import (
	"bytes"
	"crypto/md5" //nolint:gosec // what SQS answers
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// stubbedSQS has the manifest of a topic on an SQS whose source has these messages, and whose answer to some requests is
// another one.
func stubbedSQS(t *testing.T, otherwise map[string]http.HandlerFunc, bodies ...string) *bundle {
	t.Helper()
	b := offline(t)
	var mu sync.Mutex
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if answer := otherwise[action]; answer != nil {
			answer(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		var messages []map[string]string
		if action == "ReceiveMessage" {
			mu.Lock()
			for _, body := range bodies {
				sum := md5.Sum([]byte(body)) //nolint:gosec // as above
				messages = append(messages, map[string]string{"MessageId": body, "ReceiptHandle": body, "Body": body, "MD5OfBody": hex.EncodeToString(sum[:])})
			}
			bodies = nil
			mu.Unlock()
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"Messages": messages, "Attributes": map[string]string{"ApproximateNumberOfMessages": "1", "QueueArn": "arn"}})
	}))
	t.Cleanup(stub.Close)
	spec := topology.SQSSpec{
		SQSIdentity:     topology.SQSIdentity{Topic: "orders", Region: "eu-central-1", Account: "123456789012"},
		DeadLetterQueue: "orders-dlq", Retry: topology.RetryPolicy{MaxRetries: 3, Delays: []time.Duration{time.Minute}}, Endpoint: stub.URL,
	}
	b.write("orders.json", must(spec.Manifest())(t).Encode())
	b.env = append(b.env, "AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=secret", "AWS_EC2_METADATA_DISABLED=true", "AWS_ENDPOINT_URL_SQS="+stub.URL)
	return b
}

// TestSQSDoubtful: nobody knows what became of a copy whose sending was not answered.
func TestSQSDoubtful(t *testing.T) {
	b := stubbedSQS(t, map[string]http.HandlerFunc{"SendMessageBatch": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}, "one")
	r := b.run("dlq", "replay", "orders.json", "--limit", "5", "-o", "json").exits(2).says(`"failed": 0`, `"doubtful": 1`, `"doubtful": true`)
	if !strings.HasPrefix(r.err, `{"error":`) {
		t.Error(r.err)
	}
}

// TestSQSDoubtfulSaid is the same for people.
func TestSQSDoubtfulSaid(t *testing.T) {
	b := stubbedSQS(t, map[string]http.HandlerFunc{"SendMessageBatch": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }}, "one")
	b.run("dlq", "replay", "orders.json", "--limit", "5").exits(2).says("1 doubtful, which may be there twice", "doubtful: 1 message stays and may have been copied too").lacks("failed and")
}

// TestSecondInterrupt: the first Ctrl-C waits for a request whose answer does not come, and says so; the second one does not.
func TestSecondInterrupt(t *testing.T) {
	asked, over := make(chan struct{}, 10), make(chan struct{})
	b := stubbedSQS(t, map[string]http.HandlerFunc{"SendMessageBatch": func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-over
	}}, "one")
	t.Cleanup(func() { close(over) }) // before the server is closed, which waits for its handlers
	var out lockedBuffer
	cmd := b.command("dlq", "replay", "orders.json", "--limit", "5")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	interrupt := func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	interrupt()
	brokertest.WaitFor(t, func() (bool, string) { return contains(out.String(), "Ctrl-C again ends at once"), out.String() })
	interrupt()
	_ = cmd.Wait() // its exit code says it
	if code := cmd.ProcessState.ExitCode(); code != 2 || contains(out.String(), "found") || contains(out.String(), "interrupted") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

// TestSQSTaskInterrupted: Ctrl-C cancels the service's task, and says how far it was, or that it may go on.
func TestSQSTaskInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer string
		want   []string
	}{
		"cancelled": {http.StatusOK, `{"ApproximateNumberOfMessagesMoved":45}`, []string{"100 found, 45 replayed", "Ctrl-C", "nothing is lost"}},
		"refused":   {http.StatusForbidden, `{"__type":"AccessDeniedException","message":"not yours"}`, []string{"100 found, 40 replayed", "Ctrl-C", "may go on"}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			started, cancels := false, 0
			listed := make(chan struct{}, 100)
			answer := func(w http.ResponseWriter, status int, text string) {
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, text) // whoever asked may be gone
			}
			b := stubbedSQS(t, map[string]http.HandlerFunc{
				"StartMessageMoveTask": func(w http.ResponseWriter, _ *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					started = true
					answer(w, http.StatusOK, `{"TaskHandle":"h"}`)
				},
				"ListMessageMoveTasks": func(w http.ResponseWriter, _ *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					if !started {
						answer(w, http.StatusOK, `{"Results":[]}`)
						return
					}
					answer(w, http.StatusOK, `{"Results":[{"TaskHandle":"h","Status":"RUNNING","StartedTimestamp":1,"ApproximateNumberOfMessagesMoved":40,"ApproximateNumberOfMessagesToMove":100}]}`)
					listed <- struct{}{}
				},
				"CancelMessageMoveTask": func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					if body, err := io.ReadAll(r.Body); err == nil && bytes.Contains(body, []byte(`"TaskHandle":"h"`)) {
						cancels++
					}
					answer(w, c.status, c.answer)
				},
			})
			var out lockedBuffer
			cmd := b.command("dlq", "replay", "orders.json")
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-listed
			<-listed // what the first one said has been read
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // its exit code says it
			result{t, out.String(), "", cmd.ProcessState.ExitCode()}.exits(2).says(c.want...).lacks("context canceled")
			mu.Lock()
			defer mu.Unlock()
			if cancels != 1 {
				t.Errorf("the task was cancelled %d times", cancels)
			}
		})
	}
}

// lockedBuffer is written by a process and read meanwhile.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestRefusedByTheMachine: what the metadata service of a machine answers is not called an answer of SQS.
func TestRefusedByTheMachine(t *testing.T) {
	b := stubbedSQS(t, nil)
	machine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(machine.Close)
	b.env = slices.DeleteFunc(b.env, func(variable string) bool {
		return strings.HasPrefix(variable, "AWS_") && !strings.HasPrefix(variable, "AWS_ENDPOINT")
	})
	b.env = append(b.env, "AWS_EC2_METADATA_SERVICE_ENDPOINT="+machine.URL, "HOME="+b.dir)
	b.run("verify", "orders.json").exits(2).says("403", "are there credentials").lacks("not one of SQS")
}
