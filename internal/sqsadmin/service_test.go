package sqsadmin

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// answer is what the scripted service says to a request.
type answer struct {
	// code is that of an error; "" is success.
	code, message string
	body          any
}

// service is SQS as a script: for what no emulator does. The last answer of an operation repeats.
type service struct {
	*httptest.Server
	t       *testing.T
	mu      sync.Mutex
	scripts map[string][]answer
	calls   []string
	inputs  map[string][]map[string]any
}

func newService(t *testing.T, scripts map[string][]answer) *service {
	t.Helper()
	s := &service{t: t, scripts: scripts, inputs: map[string][]map[string]any{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	var input map[string]any
	if err := json.NewDecoder(r.Body).Decode(&input); err != nil {
		s.t.Errorf("%s: %v", operation, err)
	}
	s.mu.Lock()
	s.calls = append(s.calls, operation)
	s.inputs[operation] = append(s.inputs[operation], input)
	next := answer{body: map[string]any{}}
	if script := s.scripts[operation]; len(script) > 0 {
		if next = script[0]; len(script) > 1 {
			s.scripts[operation] = script[1:]
		}
	}
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if next.code != "" {
		if next.code == "QueueDoesNotExist" {
			w.Header().Set("X-Amzn-Query-Error", "AWS.SimpleQueueService.NonExistentQueue;Sender")
		}
		w.WriteHeader(http.StatusBadRequest)
		next.body = map[string]any{"__type": "com.amazonaws.sqs#" + next.code, "message": next.message}
	}
	if err := json.NewEncoder(w).Encode(next.body); err != nil {
		s.t.Error(err)
	}
}

// count is how often an operation was called.
func (s *service) count(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, call := range s.calls {
		if call == operation {
			n++
		}
	}
	return n
}

// client reaches the scripted service, and waits for next to nothing.
func (s *service) client(log *lines) *Client {
	s.t.Helper()
	once := 0
	c, err := New(s.t.Context(), Config{Region: "eu-west-1", Endpoint: s.URL, AccessKey: "key", SecretKey: "secret", Account: "123456789012", MaxRetries: &once, Progressf: log.add})
	if err != nil {
		s.t.Fatal(err)
	}
	c.pace = pace{first: time.Millisecond, longest: time.Millisecond, recreate: time.Millisecond, count: time.Millisecond}
	return c
}

// orders is a queue at the scripted service.
func (s *service) orders() Address {
	id := topology.SQSIdentity{Topic: "orders", Region: "eu-west-1", Account: "123456789012"}
	return Address{Name: "orders", URL: id.URL("orders", s.URL), ARN: id.ARN("orders")}
}

// lines are a log.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) add(_ context.Context, msg string, fields map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, fmt.Sprint(msg, fields))
}

// has reports whether a line has all of the texts in it.
func (l *lines) has(texts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.text, func(line string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) })
	})
}

// attributes is the answer to GetQueueAttributes.
func attributes(pairs ...string) answer {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return answer{body: map[string]any{"Attributes": values}}
}

// missing is the answer to whatever asks for a queue that is not there.
func missing() answer {
	return answer{code: "QueueDoesNotExist", message: "The specified queue does not exist."}
}

// mentions fails the test unless an error has all of the texts in it.
func mentions(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not in: %v", text, err)
		}
	}
}
