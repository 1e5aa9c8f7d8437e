package memory

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// newBroker makes a broker with the queues of a topic "orders" and a client.
func newBroker(t *testing.T, version string, change func(*topology.Spec)) (*Broker, *transport) {
	t.Helper()
	spec := topology.Spec{
		Identity: topology.Identity{Topic: "orders"}, DeadLetterQueue: "orders-dlq",
		Retry: topology.RetryPolicy{MaxRetries: 10, Delays: []time.Duration{time.Second}},
	}
	if change != nil {
		change(&spec)
	}
	m, err := spec.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(version, time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Provision(m); err != nil {
		t.Fatal(err)
	}
	return b, &transport{client: b.Client(), queue: "orders"}
}

func subscribe(t *testing.T, tr *transport, prefetch int) consumer.Session {
	t.Helper()
	s, err := tr.Subscribe(t.Context(), prefetch)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func receive(t *testing.T, s consumer.Session) *consumer.Delivery {
	t.Helper()
	var d consumer.Delivery
	if err := s.Receive(&d); err != nil {
		t.Fatal(err)
	}
	return &d
}

func publish(t *testing.T, b *Broker, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := b.Publish("orders", redeliver.Message{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
}

func order(t *testing.T, b *Broker, tr *transport, queue string) string {
	t.Helper()
	reader := *tr
	reader.queue = queue
	all, err := b.Messages(queue)
	if err != nil {
		t.Fatal(err)
	}
	s := subscribe(t, &reader, len(all)+1)
	var got []string
	for range all {
		got = append(got, receive(t, s).Message.ID)
	}
	return strings.Join(got, " ")
}

// TestCounts: what was measured on 3.10.8, 4.0.5 and 4.3.6: messages that came
// back by basic.reject (r), basic.nack (n) and a closed channel (c), with the
// count of the last delivery, and that of the dead letter before and after it was
// given back once.
func TestCounts(t *testing.T) {
	t.Parallel()
	for version, scripts := range map[string]map[string]string{
		"3.10": {"": "0 0 1", "r": "1 0 1", "n": "1 0 1", "c": "1 0 1", "rnc": "3 0 1"},
		"4.0":  {"": "0 1 1", "r": "1 1 1", "rr": "2 1 1", "n": "1 1 1", "c": "1 2 1", "ccc": "3 4 1", "rc": "2 2 1", "cr": "2 2 1", "rnc": "3 2 1", "crr": "3 2 1"},
		"4.3":  {"": "0 1 2", "r": "1 2 3", "rr": "2 3 4", "n": "0 1 2", "nnn": "0 1 2", "c": "1 2 3", "rc": "2 3 4", "rn": "1 2 3", "rnc": "2 3 4", "cn": "1 2 3"},
	} {
		for script, want := range scripts {
			t.Run(version+"/"+script, func(t *testing.T) {
				t.Parallel()
				b, tr := newBroker(t, version, nil)
				s := subscribe(t, tr, 10)
				publish(t, b, "a")
				d := receive(t, s)
				settle := func(verb consumer.Verb) {
					t.Helper()
					if err := s.Settle(d, verb, 0); err != nil {
						t.Fatal(err)
					}
				}
				for _, how := range script {
					switch how {
					case 'r':
						settle(consumer.VerbRequeue)
					case 'n':
						settle(consumer.VerbHandBack)
					case 'c':
						if err := s.Close(t.Context()); err != nil {
							t.Fatal(err)
						}
						s = subscribe(t, tr, 10)
					}
					d = receive(t, s)
				}
				last := d.Count
				settle(consumer.VerbDeadLetter)
				tr.queue = "orders-dlq"
				s = subscribe(t, tr, 10)
				d = receive(t, s)
				dead := d.Count
				settle(consumer.VerbRequeue)
				d = receive(t, s)
				if got := fmt.Sprint(last, dead, d.Count); got != want {
					t.Errorf("counts %s, want %s", got, want)
				}
			})
		}
	}
}

// TestOrderOfWhatComesBack as it was measured: a quorum queue delivers what came
// back first, in the order in which it came back; a classic queue keeps its own.
func TestOrderOfWhatComesBack(t *testing.T) {
	t.Parallel()
	classic := func(s *topology.Spec) {
		s.Convention, s.QueueType, s.DeadLetterQueue = topology.RabbitKit, topology.Classic, "orders.dlq"
	}
	unlimited := func(s *topology.Spec) { s.Convention, s.DeadLetterQueue = topology.RabbitKit, "orders.dlq" }
	for _, c := range []struct {
		name, version string
		change        func(*topology.Spec)
		want          string
	}{
		{"quorum", "4.3", nil, "4 1 3 2 5 9"},
		{"classic", "4.3", classic, "1 2 3 4 5 9"},
		{"without a limit on 3.10", "3.10", unlimited, "4 1 3 2 5 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, tr := newBroker(t, c.version, c.change)
			s := subscribe(t, tr, 10)
			publish(t, b, "0", "1", "2", "3", "4", "5")
			got := map[string]*consumer.Delivery{}
			for range 6 {
				d := receive(t, s)
				got[d.Message.ID] = d
			}
			if err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"4", "1", "3"} {
				if err := s.Settle(got[id], consumer.VerbRequeue, 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Settle(got["0"], consumer.VerbAck, 0); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			publish(t, b, "9")
			if got := order(t, b, tr, "orders"); got != c.want {
				t.Errorf("they come back in the order %s, want %s", got, c.want)
			}
		})
	}
}

// TestDeliveryLimit: a limit of N means N + 1 deliveries.
func TestDeliveryLimit(t *testing.T) {
	t.Parallel()
	b, tr := newBroker(t, "4.3", func(s *topology.Spec) { s.DeliveryLimit = 10 })
	s := subscribe(t, tr, 1)
	publish(t, b, "a")
	for range 11 {
		if err := s.Settle(receive(t, s), consumer.VerbRequeue, 0); err != nil {
			t.Fatal(err)
		}
	}
	dead, err := b.Messages("orders-dlq")
	if err != nil || len(dead) != 1 {
		t.Fatalf("%v, %v", dead, err)
	}
	if d := consumer.ParseDead(dead[0], topology.Headers{}); d.Reason != "delivery_limit" || d.DeathCount != 1 {
		t.Errorf("%+v", d)
	}
}

// TestPriorities: a classic queue with priorities delivers the higher ones first.
func TestPriorities(t *testing.T) {
	t.Parallel()
	b, tr := newBroker(t, "4.3", func(s *topology.Spec) {
		top := 5
		s.Convention, s.QueueType, s.DeadLetterQueue, s.MaxPriority = topology.RabbitKit, topology.Classic, "orders.dlq", &top
	})
	for i, priority := range []uint8{0, 3, 9, 5, 3} { // above the highest is the highest
		if err := b.Publish("orders", redeliver.Message{ID: fmt.Sprint(i), Priority: priority}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := order(t, b, tr, "orders"), "2 3 1 4 0"; got != want {
		t.Errorf("delivered in the order %s, want %s", got, want)
	}
}

// TestSingleActiveConsumer: the next consumer is sent messages when the first has
// gone, what came back first.
func TestSingleActiveConsumer(t *testing.T) {
	t.Parallel()
	b, tr := newBroker(t, "4.3", func(s *topology.Spec) { s.Sequenced = true })
	first, second := subscribe(t, tr, 2), subscribe(t, tr, 10)
	publish(t, b, "1", "2", "3")
	receive(t, first)
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1", "2", "3"} {
		if d := receive(t, second); d.Message.ID != want {
			t.Errorf("received %s, want %s", d.Message.ID, want)
		}
	}
}

// TestUnknownTag: settling twice ends the session, as a real broker does.
func TestUnknownTag(t *testing.T) {
	t.Parallel()
	b, tr := newBroker(t, "4.3", nil)
	s := subscribe(t, tr, 1)
	publish(t, b, "a")
	d := receive(t, s)
	if err := s.Settle(d, consumer.VerbAck, 0); err != nil {
		t.Fatal(err)
	}
	var lost *consumer.LostError
	if err := s.Settle(d, consumer.VerbAck, 0); !errors.As(err, &lost) || lost.Reason != consumer.LostChannel {
		t.Errorf("settling twice: %v", err)
	}
}

// TestQueueDeleted: its consumers are told, and cannot subscribe again.
func TestQueueDeleted(t *testing.T) {
	t.Parallel()
	b, tr := newBroker(t, "4.3", nil)
	s := subscribe(t, tr, 1)
	if err := b.Remove("orders"); err != nil {
		t.Fatal(err)
	}
	var lost *consumer.LostError
	if err := s.Receive(new(consumer.Delivery)); !errors.As(err, &lost) || lost.Reason != consumer.LostQueueDeleted {
		t.Errorf("receiving: %v", err)
	}
	if _, err := tr.Subscribe(t.Context(), 1); !errors.Is(err, redeliver.ErrQueueNotFound) {
		t.Errorf("subscribing: %v", err)
	}
}
