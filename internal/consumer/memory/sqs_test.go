package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// newSQS makes a broker with the queues of a topic "orders" on Amazon SQS, and a client.
func newSQS(t *testing.T, change func(*topology.SQSSpec)) (*Broker, *transport) {
	t.Helper()
	spec := topology.SQSSpec{
		SQSIdentity:     topology.SQSIdentity{Topic: "orders", Region: "us-east-1", Account: "000000000000"},
		DeadLetterQueue: "orders-dlq",
		Retry:           topology.RetryPolicy{MaxRetries: 2, Delays: []time.Duration{time.Second}},
	}
	if change != nil {
		change(&spec)
	}
	m, err := spec.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(DefaultVersion, time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Provision(m); err != nil {
		t.Fatal(err)
	}
	return b, &transport{client: b.Client(), queue: m.WorkQueue.Name}
}

func fifo(s *topology.SQSSpec) { s.FIFO, s.DeadLetterQueue = true, "orders-dlq.fifo" }

// advance moves the clock.
func advance(b *Broker, d time.Duration) {
	for limit := b.Now().Add(d); b.Step(limit); {
	}
}

// seen are the messages of a queue with their receive counts.
func seen(t *testing.T, b *Broker, queue string) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	q, err := b.find(queue)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range q.all() {
		list = append(list, fmt.Sprintf("%s:%d", m.ID, m.count))
	}
	return strings.Join(list, " ")
}

func settle(t *testing.T, s consumer.Session, d *consumer.Delivery, verb consumer.Verb, after time.Duration) {
	t.Helper()
	if err := s.Settle(d, verb, after); err != nil {
		t.Fatal(err)
	}
}

// TestSQSCounts: every receive counts, and a message is moved on the receive after the last.
func TestSQSCounts(t *testing.T) {
	t.Parallel()
	b, tr := newSQS(t, nil)
	s := subscribe(t, tr, 1)
	publish(t, b, "a")
	for i := range 3 {
		d := receive(t, s)
		if d.Count != int64(i) || d.Message.Redelivered != (i > 0) {
			t.Errorf("receive %d: %+v", i, d)
		}
		settle(t, s, d, consumer.VerbRequeue, time.Minute)
		advance(b, time.Minute-time.Second)
		if got := seen(t, b, "orders"); got != fmt.Sprintf("a:%d", i+1) {
			t.Errorf("while it waits: %s", got)
		}
		advance(b, time.Second)
	}
	if got := seen(t, b, "orders") + "|" + seen(t, b, "orders-dlq"); got != "|a:3" {
		t.Errorf("the queues hold %s", got)
	}
	tr.queue = "orders-dlq"
	dead := receive(t, subscribe(t, tr, 1))
	if dead.Count != 3 || dead.Message.Headers[consumer.HeaderDeadLetterSource] != "arn:aws:sqs:us-east-1:000000000000:orders" {
		t.Errorf("%+v", dead)
	}
}

// TestSQSGivenUp: a message that was given up is moved without the consumer seeing it again; another one may.
func TestSQSGivenUp(t *testing.T) {
	t.Parallel()
	b, tr := newSQS(t, nil)
	s := subscribe(t, tr, 1)
	publish(t, b, "a")
	settle(t, s, receive(t, s), consumer.VerbDeadLetter, 0)
	if got := seen(t, b, "orders") + "|" + seen(t, b, "orders-dlq"); got != "|a:3" {
		t.Errorf("the queues hold %s", got)
	}
	publish(t, b, "b")
	d := receive(t, s)
	other := subscribe(t, &transport{client: b.Client(), queue: "orders"}, 1)
	settle(t, s, d, consumer.VerbDeadLetter, 0)
	if d := receive(t, other); d.Count == 0 {
		t.Errorf("the other consumer received %+v", d)
	}
}

// TestSQSNowhereToMove: while the dead-letter queue is missing, a message stays, and time passes.
func TestSQSNowhereToMove(t *testing.T) {
	t.Parallel()
	b, tr := newSQS(t, nil)
	s := subscribe(t, tr, 1)
	if err := b.Remove("orders-dlq"); err != nil {
		t.Fatal(err)
	}
	publish(t, b, "a")
	settle(t, s, receive(t, s), consumer.VerbDeadLetter, 0)
	advance(b, 3*topology.DefaultVisibilityTimeout)
	if err := b.Restore("orders-dlq"); err != nil {
		t.Fatal(err)
	}
	advance(b, topology.DefaultVisibilityTimeout)
	if got := seen(t, b, "orders-dlq"); got != "a:5" {
		t.Errorf("the dead-letter queue holds %q", got)
	}
}

// TestSQSGroups: nothing of a group is received while a message of it is in flight, or waits.
func TestSQSGroups(t *testing.T) {
	t.Parallel()
	b, tr := newSQS(t, fifo)
	for _, id := range []string{"a1", "a2", "b1"} {
		if err := b.Publish("orders.fifo", redeliver.Message{ID: id, RoutingKey: id[:1]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Publish("orders.fifo", redeliver.Message{ID: "c"}); err == nil {
		t.Error("a message without a group was taken")
	}
	s := subscribe(t, tr, 1)
	a1 := receive(t, s)
	other := subscribe(t, tr, 10)
	if d := receive(t, other); d.Message.ID != "b1" || d.Message.RoutingKey != "b" {
		t.Errorf("%+v", d)
	}
	settle(t, s, a1, consumer.VerbRequeue, time.Minute)
	if got := seen(t, b, "orders.fifo"); got != "a1:1 a2:0 b1:1" {
		t.Errorf("while the head waits: %s", got)
	}
	advance(b, time.Minute)
	var got []string
	for _, m := range []*consumer.Delivery{receive(t, other), receive(t, other)} {
		got = append(got, m.Message.ID)
	}
	if strings.Join(got, " ") != "a1 a2" { // both in one receive
		t.Errorf("received %q", got)
	}
}

// TestSQSSuccessors: what is behind a message that was given up is not received with it again and again.
func TestSQSSuccessors(t *testing.T) {
	t.Parallel()
	b, tr := newSQS(t, fifo)
	s := subscribe(t, tr, 1)
	for _, id := range []string{"a1", "a2", "a3"} {
		if err := b.Publish("orders.fifo", redeliver.Message{ID: id, RoutingKey: "a"}); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, s, receive(t, s), consumer.VerbDeadLetter, 0)
	if d := receive(t, s); d.Message.ID != "a2" || d.Count != 0 {
		t.Errorf("%+v", d)
	}
	if got := seen(t, b, "orders.fifo") + "|" + seen(t, b, "orders-dlq.fifo"); got != "a2:1 a3:0|a1:3" {
		t.Errorf("the queues hold %s", got)
	}
}

// TestSQSGone: what a consumer had that is gone comes back when the visibility timeout is over.
func TestSQSGone(t *testing.T) {
	t.Parallel()
	b, tr := newSQS(t, nil)
	s := subscribe(t, tr, 1)
	publish(t, b, "a")
	receive(t, s)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = subscribe(t, tr, 1)
	begun := b.Now()
	advance(b, topology.DefaultVisibilityTimeout)
	if d := receive(t, s); d.Count != 1 || d.Received.Sub(begun) != topology.DefaultVisibilityTimeout {
		t.Errorf("%+v", d)
	}
}

// TestSQSRetention: messages are forgotten, and one of a standard queue is not younger for having been moved.
func TestSQSRetention(t *testing.T) {
	t.Parallel()
	b, tr := newSQS(t, nil)
	s := subscribe(t, tr, 1)
	publish(t, b, "a")
	settle(t, s, receive(t, s), consumer.VerbDeadLetter, 0)
	advance(b, topology.MaxRetention-time.Second)
	if got := seen(t, b, "orders-dlq"); got != "a:3" {
		t.Errorf("the dead-letter queue holds %q", got)
	}
	advance(b, time.Second)
	if got := seen(t, b, "orders-dlq"); got != "" {
		t.Errorf("the dead-letter queue holds %q", got)
	}
}

// TestSQSAttributes: what headers become.
func TestSQSAttributes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sent, want any }{
		{"x", "x"},
		{1, int64(1)},
		{int32(2), int64(2)},
		{2.5, 2.5},
		{3.0, int64(3)},
		{true, "true"},
		{redeliver.Attribute{Type: "Number", Text: "1e400"}, redeliver.Attribute{Type: "Number", Text: "1e400"}},
		{"", nil},
		{nil, nil},
		{[]any{1}, nil},
		{time.Now(), nil},
	} {
		if got, ok := attribute(c.sent); ok != (c.want != nil) || ok && got != c.want {
			t.Errorf("%#v becomes %#v, %v", c.sent, got, ok)
		}
	}
	b, _ := newSQS(t, nil)
	headers := make(map[string]any)
	for i := range 11 {
		headers[fmt.Sprint("h", i)] = i
	}
	if err := b.Publish("orders", redeliver.Message{Headers: headers}); err == nil {
		t.Error("a message with eleven attributes was taken")
	}
}
