package rabbitmq_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// library is what a convention's own library does with a message whose handler fails, as its sources say.
type library struct {
	// retries reads how often a message was retried. A library reads whatever integer it finds.
	retries func(headers amqp091.Table) int
	// givesUp says whether a message is dead-lettered before its handler is called, because of its count. The others give up
	// after the call.
	givesUp bool
	// copyOf is the copy that is published after so many retries.
	copyOf func(d amqp091.Delivery, retries int) amqp091.Publishing
	// dies sets a message aside that is not retried any more; nil where it is rejected.
	dies func(d amqp091.Delivery) amqp091.Publishing
}

// libraries are the conventions that have libraries in other languages and hold queues.
var libraries = map[topology.Convention]library{
	// Rust. It keeps the body and few headers, and looks at the count before it calls the handler.
	topology.Shove: {
		retries: func(h amqp091.Table) int { return max(0, wholeNumber(h["x-retry-count"])) },
		givesUp: true,
		copyOf: func(d amqp091.Delivery, retries int) amqp091.Publishing {
			kept := amqp091.Table{}
			for name, value := range d.Headers {
				if name == "x-message-id" || strings.HasPrefix(name, "x-trace-") || strings.HasPrefix(name, "x-request-") {
					kept[name] = value
				}
			}
			maps.Copy(kept, foreign[topology.Shove](retries))
			return amqp091.Publishing{Headers: kept, ContentType: "application/json", DeliveryMode: amqp091.Persistent, Body: d.Body}
		},
	},
	// Java, Go, .NET, Python and Ruby. It counts attempts from 1, and sets dead messages aside itself.
	topology.AceMQ: {
		retries: func(h amqp091.Table) int { return max(1, wholeNumber(h["x-acemq-attempt"])) - 1 },
		copyOf:  acemqCopy,
		dies: func(d amqp091.Delivery) amqp091.Publishing {
			dead := acemqCopy(d, max(1, wholeNumber(d.Headers["x-acemq-attempt"]))-1)
			dead.Headers["x-acemq-error"] = "boom"
			return dead
		},
	},
	// Python. It keeps everything.
	topology.RabbitKit: {
		retries: func(h amqp091.Table) int { return wholeNumber(h["x-rabbitkit-retry-count"]) },
		copyOf: func(d amqp091.Delivery, retries int) amqp091.Publishing {
			headers := maps.Clone(d.Headers)
			if headers == nil {
				headers = amqp091.Table{}
			}
			maps.Copy(headers, foreign[topology.RabbitKit](retries))
			headers["x-rabbitkit-original-queue"] = "orders"
			return amqp091.Publishing{
				Headers: headers, MessageId: d.MessageId, CorrelationId: d.CorrelationId, ContentType: d.ContentType, DeliveryMode: amqp091.Persistent, Body: d.Body,
			}
		},
	},
}

func acemqCopy(d amqp091.Delivery, retries int) amqp091.Publishing {
	headers := maps.Clone(d.Headers)
	if headers == nil {
		headers = amqp091.Table{}
	}
	if headers["x-acemq-first-seen"] == nil {
		headers["x-acemq-first-seen"] = time.Now().UnixMilli()
	}
	headers["x-acemq-id"] = string(d.Body)
	maps.Copy(headers, foreign[topology.AceMQ](retries))
	return amqp091.Publishing{Headers: headers, MessageId: string(d.Body), ContentType: d.ContentType, DeliveryMode: amqp091.Persistent, Body: d.Body}
}

// wholeNumber reads an integer of any width; anything else is 0.
func wholeNumber(value any) (n int) {
	switch value.(type) {
	case int8, int16, int32, int64, byte, uint16, uint32:
		_, _ = fmt.Sscan(fmt.Sprint(value), &n)
	}
	return n
}

// shared accounts for the messages that our consumer and a library's have between them.
type shared struct {
	mu sync.Mutex
	// by are who received a message, in turn, and counts are its retry counts then; tries counts the handlers' calls for it.
	by     map[string][]string
	counts map[string][]int
	tries  map[string]int
}

func (s *shared) received(by, id string, retries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by[id], s.counts[id] = append(s.by[id], by), append(s.counts[id], retries)
}

func (s *shared) tried(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries[id]++
}

// serve consumes the work queue as the library does, with a handler that always fails, until the test ends.
func (lib library) serve(w *world, s *shared) {
	w.t.Helper()
	conn := brokertest.Dial(w.t, w.broker, w.vhost)
	in, err := conn.Channel()
	if err != nil {
		w.t.Fatal(err)
	}
	out := brokertest.Channel(w.t, w.broker, w.vhost)
	if err := out.Confirm(false); err != nil {
		w.t.Fatal(err)
	}
	if err := in.Qos(5, 0, false); err != nil {
		w.t.Fatal(err)
	}
	deliveries, err := in.Consume("orders", "", false, false, false, false, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for d := range deliveries {
			if err := lib.fail(w, s, out, d); err != nil {
				w.t.Errorf("the library's consumer: %v", err)
			}
		}
	}()
	w.t.Cleanup(func() {
		_ = in.Close()
		<-ended
	})
}

// fail handles one message.
func (lib library) fail(w *world, s *shared, out *amqp091.Channel, d amqp091.Delivery) error {
	publish := func(queue string, msg amqp091.Publishing) error {
		c, err := out.PublishWithDeferredConfirm("", queue, true, false, msg)
		if err != nil {
			return err
		}
		if !c.Wait() {
			return fmt.Errorf("queue %q refused a copy", queue)
		}
		return d.Ack(false)
	}
	id, n := string(d.Body), lib.retries(d.Headers)
	s.received("the library", id, n)
	spent := n >= w.spec.Retry.MaxRetries
	if spent && lib.givesUp {
		return d.Nack(false, false)
	}
	s.tried(id)
	switch {
	case spent && lib.dies != nil:
		return publish(w.spec.DeadLetterQueue, lib.dies(d))
	case spent:
		return d.Nack(false, false)
	default:
		return publish(w.doc.HoldQueues[min(n, len(w.doc.HoldQueues)-1)].Name, lib.copyOf(d, n+1))
	}
}

// TestSharedWithAnotherLibrary: a queue that a convention's own library consumes too. Every message fails always; each is
// received max_retries + 1 times with a count that goes up by one, whoever of the two has it, and is then dead-lettered.
func TestSharedWithAnotherLibrary(t *testing.T) {
	t.Parallel()
	for convention, lib := range libraries {
		t.Run(string(convention), func(t *testing.T) {
			t.Parallel()
			const maxRetries = 3
			w := newWorld(t, func(s *topology.Spec) {
				s.Convention, s.HoldDelays = convention, []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond}
				if convention == topology.Shove {
					s.HoldDelays = []time.Duration{time.Second} // its shortest
				}
				s.Retry = topology.RetryPolicy{Strategy: topology.Republish, MaxRetries: maxRetries, Delays: s.HoldDelays}
			})
			s := &shared{by: make(map[string][]string), counts: make(map[string][]int), tries: make(map[string]int)}
			lib.serve(w, s)
			l := w.consume(redeliver.Config{Workers: 2, MaxHeld: 3}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
				s.received("this one", string(m.Body), m.RetryCount)
				s.tried(string(m.Body))
				return redeliver.Retry(errBoom)
			})
			all := ids(60)
			w.publish(all...)
			w.waitDepth(w.spec.DeadLetterQueue, len(all))
			l.mustStop()
			var dead []string
			for _, d := range brokertest.Drain(t, w.broker, w.vhost, w.spec.DeadLetterQueue) {
				dead = append(dead, string(d.Body))
			}
			if slices.Sort(dead); !slices.Equal(dead, all) {
				t.Errorf("dead-lettered: %q", dead)
			}
			mixed, untried := 0, 0
			for _, id := range all {
				if counts := s.counts[id]; !slices.Equal(counts, []int{0, 1, 2, 3}) {
					t.Errorf("%s was received with the retry counts %v", id, counts)
					continue
				}
				by, want := s.by[id], maxRetries+1
				if lib.givesUp && by[maxRetries] == "the library" {
					want--
					untried++
				}
				if s.tries[id] != want {
					t.Errorf("%s was tried %d times, want %d: it was received by %q", id, s.tries[id], want, by)
				}
				if slices.Contains(by, "this one") && slices.Contains(by, "the library") {
					mixed++
				}
			}
			t.Logf("%d of %d messages were received by both; of %d the library's own rule spared the last try; %+v", mixed, len(all), untried, l.Stats())
			if mixed == 0 {
				t.Error("they did not share")
			}
		})
	}
}
