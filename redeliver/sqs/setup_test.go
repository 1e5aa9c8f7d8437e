package sqs_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest/fake"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/sqs"
)

// waitTimeout bounds every wait for an event. Only a failing test needs it.
const waitTimeout = 2 * time.Minute

// worldRetries is how often a message of a world is retried, unless the test says otherwise.
const worldRetries = 10

// world is a topic on an emulator, or on the double.
type world struct {
	t        *testing.T
	client   *awssqs.Client
	fake     *fake.Service // nil on an emulator
	between  interceptor   // nil where requests reach the double as they are
	spec     topology.SQSSpec
	doc      topology.Manifest
	manifest redeliver.Manifest
}

// place is where queues are made.
type place struct {
	client            *awssqs.Client
	account, endpoint string
	region, topic     string
}

// inFake plays a test on the double, in a bubble where time moves by waiting.
func inFake(t *testing.T, play func(w *world), change ...func(*topology.SQSSpec)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := fake.New()
		var w *world
		client := service.Client(func(o *awssqs.Options) {
			o.HTTPClient = interceptor(func(r *http.Request, _ send) (*http.Response, error) {
				if w != nil && w.between != nil {
					return w.between(r, service.Do)
				}
				return service.Do(r)
			})
		})
		w = newWorld(t, place{client, fake.Account, "http://sqs.test", fake.Region, "orders"}, change...)
		w.fake = service
		play(w)
	})
}

// send carries out a request, and an interceptor is what is between a client and that.
type (
	send        func(*http.Request) (*http.Response, error)
	interceptor func(*http.Request, send) (*http.Response, error)
)

// Do implements the SDK's HTTP client.
func (i interceptor) Do(r *http.Request) (*http.Response, error) { return i(r, nil) }

// asks says whether a request is for an action.
func asks(r *http.Request, action string) bool {
	return r.Header.Get("X-Amz-Target") == "AmazonSQS."+action
}

// says is an answer.
func says(status int, body string) (*http.Response, error) {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// pass lets time pass, in a bubble, until everything waits again.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// onFaux is a world on fauxqs.
func onFaux(t *testing.T, change ...func(*topology.SQSSpec)) *world {
	t.Helper()
	s := sqstest.Faux(t)
	return newWorld(t, place{s.Client(t), s.Account(), s.Endpoint(), s.Region(), sqstest.UniqueName(t)}, change...)
}

func fifo(s *topology.SQSSpec)    { s.FIFO = true }
func sending(s *topology.SQSSpec) { s.DeadLetterVia = topology.ViaSend }
func parking(s *topology.SQSSpec) {
	s.ParkedQueue, s.Park, s.DeadLetterVia = s.ParkedQueueName(), topology.ParkPublish, topology.ViaSend
}

func newWorld(t *testing.T, p place, change ...func(*topology.SQSSpec)) *world {
	t.Helper()
	w := &world{t: t, client: p.client}
	w.spec = topology.SQSSpec{
		SQSIdentity: topology.SQSIdentity{Topic: p.topic, Region: p.region, Account: p.account}, Endpoint: p.endpoint,
		Retry: topology.RetryPolicy{MaxRetries: worldRetries, Delays: []time.Duration{time.Second}, Jitter: topology.DefaultJitter},
	}
	for _, f := range change {
		f(&w.spec)
	}
	if !w.spec.AllowMessageLoss {
		w.spec.DeadLetterQueue = w.spec.DeadLetterQueueName()
	}
	var err error
	if w.doc, err = w.spec.Manifest(); err != nil {
		t.Fatal(err)
	}
	if w.manifest, err = redeliver.ParseManifest(w.doc.Encode()); err != nil {
		t.Fatal(err)
	}
	for _, end := range []struct {
		role topology.Role
		name string
	}{{topology.RoleDeadLetter, w.spec.DeadLetterQueue}, {topology.RoleParked, w.spec.ParkedQueue}} {
		if end.name != "" {
			attributes, err := topology.SQSDeadEnd{SQSIdentity: w.spec.SQSIdentity, Role: end.role}.Attributes()
			w.create(end.name, attributes, err)
		}
	}
	attributes, err := w.spec.Attributes()
	w.create(w.spec.WorkQueueName(), attributes, err)
	return w
}

// create makes a queue, as the provider does.
func (w *world) create(name string, attributes topology.SQSAttributes, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	set := maps.Clone(attributes)
	maps.DeleteFunc(set, func(_, value string) bool { return value == "" })
	if _, err := w.client.CreateQueue(w.t.Context(), &awssqs.CreateQueueInput{QueueName: &name, Attributes: set}); err != nil {
		w.t.Fatal(err)
	}
}

// publish sends messages with these bodies to the work queue; in a FIFO queue, the part before the first "/" is the group.
func (w *world) publish(bodies ...string) {
	w.t.Helper()
	for batch := range slices.Chunk(bodies, 10) {
		entries := make([]types.SendMessageBatchRequestEntry, len(batch))
		for i, body := range batch {
			entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(body)}
			if w.spec.FIFO {
				group, _, _ := bytes.Cut([]byte(body), []byte("/"))
				entries[i].MessageGroupId, entries[i].MessageDeduplicationId = aws.String(string(group)), aws.String(body)
			}
		}
		w.send(w.doc.WorkQueue.URL, entries...)
	}
}

func (w *world) send(url string, entries ...types.SendMessageBatchRequestEntry) {
	w.t.Helper()
	out, err := w.client.SendMessageBatch(w.t.Context(), &awssqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(out.Failed) > 0 {
		w.t.Fatal(*out.Failed[0].Message)
	}
}

// drained takes all messages out of a queue, and waits for those that somebody has: a poll that was cancelled, say.
func (w *world) drained(queue topology.ManifestQueue) (all []types.Message) {
	w.t.Helper()
	for deadline := time.Now().Add(waitTimeout); w.depth(queue) > 0 && time.Now().Before(deadline); {
		out, err := w.client.ReceiveMessage(w.t.Context(), &awssqs.ReceiveMessageInput{
			QueueUrl: &queue.URL, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageAttributeNames: []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			w.t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			continue
		}
		var entries []types.DeleteMessageBatchRequestEntry
		for i, m := range out.Messages {
			entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
		}
		all = append(all, out.Messages...)
		if _, err := w.client.DeleteMessageBatch(w.t.Context(), &awssqs.DeleteMessageBatchInput{QueueUrl: &queue.URL, Entries: entries}); err != nil {
			w.t.Fatal(err)
		}
	}
	return all
}

func bodies(messages []types.Message) []string {
	var list []string
	for _, m := range messages {
		list = append(list, *m.Body)
	}
	slices.Sort(list)
	return list
}

// config is how a consumer is opened.
func (w *world) config(handler redeliver.Handler, cfg redeliver.Config) sqs.Config {
	return sqs.Config{Client: w.client, Manifest: w.manifest, Handler: handler, Consumer: cfg}
}

// live is a consumer that runs, with what it told.
type live struct {
	*sqs.Consumer
	t    *testing.T
	stop context.CancelFunc
	done chan error

	mu     sync.Mutex
	events []redeliver.Event
	more   chan struct{} // closed and replaced with every event
}

// consume opens a consumer and runs it until the test ends, or until stopped.
func (w *world) consume(cfg redeliver.Config, handler redeliver.HandlerFunc) *live {
	w.t.Helper()
	return w.run(cfg, func(cfg redeliver.Config) (*sqs.Consumer, error) {
		return sqs.Open(w.t.Context(), w.config(handler, cfg))
	})
}

func (w *world) run(cfg redeliver.Config, open func(redeliver.Config) (*sqs.Consumer, error)) *live {
	w.t.Helper()
	l := &live{t: w.t, done: make(chan error, 1), more: make(chan struct{})}
	told := cfg.OnEvent
	cfg.OnEvent = func(e redeliver.Event) {
		l.record(e)
		if told != nil {
			told(e)
		}
	}
	log := &lockedBuffer{}
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	var err error
	if l.Consumer, err = open(cfg); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = l.Close() // a test that cares has stopped it
		if w.t.Failed() {
			w.t.Logf("--- end of a consumer's log ---\n%s", log.tail())
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	go func() { l.done <- l.Run(ctx) }()
	return l
}

// mustStop ends the consumer, which must be clean.
func (l *live) mustStop() {
	l.t.Helper()
	l.stop()
	select {
	case err := <-l.done:
		if err != nil {
			l.t.Errorf("the consumer did not stop cleanly: %v", err)
		}
	case <-time.After(waitTimeout):
		l.t.Fatal("Run does not return")
	}
}

func (l *live) record(e redeliver.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	close(l.more)
	l.more = make(chan struct{})
}

func (l *live) of(kind redeliver.EventKind) []redeliver.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []redeliver.Event
	for _, e := range l.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// until waits until something is so; events, and time, are the occasions to look.
func (l *live) until(so func() bool, what string) {
	l.t.Helper()
	timeout := time.After(waitTimeout)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		l.mu.Lock()
		more := l.more
		l.mu.Unlock()
		if so() {
			return
		}
		select {
		case <-more:
		case <-again.C:
		case <-timeout:
			l.t.Fatalf("after %s not: %s; stats %+v", waitTimeout, what, l.Stats())
		}
	}
}

// lockedBuffer is a log that a test may read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) tail() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.buf.String()
	return s[max(0, len(s)-4000):]
}

// ids are n bodies.
func ids(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("m%05d", i)
	}
	return list
}
