package fake

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Region and Account are where the queues are.
const (
	Region  = "us-east-1"
	Account = "123456789012"
)

const (
	// endpoint is what the client of this process thinks it talks to.
	endpoint = "http://sqs.test"
)

// Service is the double. It is an http.Handler and, for the client of this process, a transport.
type Service struct {
	mu     sync.Mutex
	queues map[string]*queue
	script script
	tasks  []*task
	// inFlight is how many messages of a standard queue may be in flight.
	inFlight int
	// number counts what needs a name of its own.
	number uint64
	// changed is closed, and made anew, when there may be something to receive.
	changed chan struct{}
}

// mostInFlight is the limit of a standard queue.
const mostInFlight = 120_000

// New makes a service without queues.
func New() *Service {
	return &Service{
		queues: make(map[string]*queue), inFlight: mostInFlight, changed: make(chan struct{}),
		script: script{requests: make(map[string]int), handled: make(map[string]int)},
	}
}

// LimitInFlight changes how many messages of a standard queue may be in flight, which are 120,000.
func (s *Service) LimitInFlight(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight = most
}

// Config is a configuration of the AWS SDK that reaches the service without a network. The SDK does not retry.
func (s *Service) Config() aws.Config {
	return aws.Config{
		Region: Region, BaseEndpoint: aws.String(endpoint), HTTPClient: s, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

// Client is a client of the AWS SDK that reaches the service without a network.
func (s *Service) Client(options ...func(*sqs.Options)) *sqs.Client {
	return sqs.NewFromConfig(s.Config(), options...)
}

// CreateQueue makes a queue and returns its URL.
func (s *Service) CreateQueue(t testing.TB, name string, attributes map[string]string) string {
	t.Helper()
	out, err := s.Client().CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}

// QueueARN is the resource name of a queue.
func QueueARN(name string) string { return "arn:aws:sqs:" + Region + ":" + Account + ":" + name }

// Do carries out a request of a client of this process.
func (s *Service) Do(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	if lost := s.serve(answer, r); lost {
		return nil, ErrLost
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	if lost := s.serve(answer, r); lost {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// call is one request.
type call struct {
	ctx    context.Context
	host   string
	action string
	body   []byte
}

// read reads the parameters.
func (c *call) read(into any) *Error {
	if err := json.Unmarshal(c.body, into); err != nil {
		return &Error{Shape: "com.amazon.coral.service#SerializationException", Query: "SerializationException", Message: err.Error()}
	}
	return nil
}

// action carries out a request. s.mu is held.
type action func(s *Service, c *call) (answer any, err *Error)

func actions() map[string]action {
	return map[string]action{
		"CreateQueue": (*Service).createQueue, "DeleteQueue": (*Service).deleteQueue, "GetQueueUrl": (*Service).getQueueURL,
		"GetQueueAttributes": (*Service).getAttributes, "SetQueueAttributes": (*Service).setAttributes,
		"SendMessage": (*Service).send, "SendMessageBatch": (*Service).sendBatch,
		"ReceiveMessage": (*Service).receive,
		"DeleteMessage":  (*Service).deleteOne, "DeleteMessageBatch": (*Service).deleteBatch,
		"ChangeMessageVisibility": (*Service).changeOne, "ChangeMessageVisibilityBatch": (*Service).changeBatch,
		"StartMessageMoveTask": (*Service).startMove, "ListMessageMoveTasks": (*Service).listMoves, "CancelMessageMoveTask": (*Service).cancelMove,
	}
}

// serve answers a request. It returns true where the answer is lost.
func (s *Service) serve(w http.ResponseWriter, r *http.Request) (lost bool) {
	var body bytes.Buffer
	if r.Body != nil {
		_, _ = io.Copy(&body, r.Body)
	}
	c := &call{ctx: r.Context(), host: "http://" + cmp.Or(r.Host, r.URL.Host), body: body.Bytes()}
	c.action = strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.begin(c.action)
	var answer any
	if do, ok := actions()[c.action]; err == nil && ok {
		answer, err = do(s, c)
	} else if !ok {
		err = modelled("UnsupportedOperation", "UnsupportedOperation", "the fake does not know "+c.action)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if err != nil {
		err.write(w)
		return false
	}
	if answer == nil {
		answer = struct{}{}
	}
	_ = json.NewEncoder(w).Encode(answer)
	return s.isLost(c.action)
}

// notify wakes who waits for messages. s.mu is held.
func (s *Service) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// find is the queue that a URL or an ARN names. s.mu is held.
func (s *Service) find(reference string) (*queue, *Error) {
	name := reference[strings.LastIndexAny(reference, "/:")+1:]
	if q := s.queues[name]; q != nil {
		return q, nil
	}
	return nil, noQueue()
}

// Queues are the names of all queues.
func (s *Service) Queues() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.queues))
}
