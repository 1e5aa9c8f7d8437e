package rabbitmq_test

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// TestBrokerFull: another application's messages fill the broker's memory until it blocks publishers. Acknowledgements
// pass then and copies wait, until those messages are consumed: the alarm ends by itself.
func TestBrokerFull(t *testing.T) {
	t.Parallel()
	// A broker soon closes a connection that is not read, unless it is told to be patient.
	b := brokertest.Dedicated(t, brokertest.Options{Config: []string{fmt.Sprintf("tcp_listen_options.send_timeout = %d", time.Hour.Milliseconds())}})
	var trials []*trial
	for _, strategy := range []topology.Strategy{topology.Republish, topology.Hybrid} {
		trials = append(trials, begin(newWorldOn(t, b, strategies[strategy]), false))
	}
	for _, tr := range trials {
		tr.wait(func() (bool, string) {
			n, _ := tr.book.missing()
			return n >= 300, fmt.Sprintf("%d messages are published", n)
		})
		tr.stop()
	}
	bulk := fill(t, b)
	for _, tr := range trials {
		tr.consume()
		tr.live.await(redeliver.EventAcked, 150)
		tr.awaitHealth(redeliver.HealthDegraded, "takes no copies", "memory")
		if s := tr.live.Stats(); s.Republished != 0 {
			t.Errorf("copies were taken: %+v", s)
		}
	}
	bulk.drain()
	for _, tr := range trials {
		tr.end()
		if s := tr.live.Stats(); s.SessionsLost != 0 || s.Republished == 0 {
			t.Errorf("%+v", s)
		}
	}
}

const (
	// bulkRoom is how much memory a broker gets beyond what it has before it is filled.
	bulkRoom = 96 << 20
	// A message of bulkSize is published every bulkPace. Brokers since 4.0 keep no messages in memory but those on their way
	// to a consumer, and of these at most 200 for each. They look at their memory every few seconds.
	bulkSize, bulkPace = 1 << 20, 20 * time.Millisecond
)

// bulk fills a broker's memory with messages for a consumer that does not read from its connection.
type bulk struct {
	*testing.T
	broker *brokertest.Broker
	// blocked tells when the broker blocks the publisher, and when it does no more.
	blocked <-chan amqp091.Blocking
	// stop ends the publishing, and published is what it was then.
	stop      func()
	published chan bulkPublished
	// read makes the consumer read, and consumed is what it gets then.
	read     func()
	consumed <-chan amqp091.Delivery
}

type bulkPublished struct {
	ids []string
	err error
}

// fill returns when the broker blocks publishers.
func fill(t *testing.T, b *brokertest.Broker) *bulk {
	t.Helper()
	vhost, quit := brokertest.VHost(t, b), make(chan struct{})
	publisher := brokertest.Dial(t, b, vhost)
	f := &bulk{
		T: t, broker: b, blocked: publisher.NotifyBlocked(make(chan amqp091.Blocking, 16)),
		published: make(chan bulkPublished, 1), stop: sync.OnceFunc(func() { close(quit) }),
	}
	out, err := publisher.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.QueueDeclare("bulk", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	f.dontRead(b.AMQPURL(vhost))
	var used int64
	if _, err := fmt.Sscan(f.control("eval", "vm_memory_monitor:get_process_memory()."), &used); err != nil {
		t.Fatal(err)
	}
	f.limit("absolute", fmt.Sprint(used+bulkRoom))
	go func() {
		ids, err := publishBulk(out, quit)
		f.published <- bulkPublished{ids, err}
	}()
	t.Cleanup(f.stop)
	for timeout := time.After(waitTimeout); ; {
		select {
		case b := <-f.blocked:
			if b.Active {
				f.limit("absolute", fmt.Sprint(used+bulkRoom*3/4)) // no collected garbage ends it now
				return f
			}
		case <-timeout:
			t.Fatalf("the broker did not block its publishers within %s", waitTimeout)
		}
	}
}

// control runs rabbitmqctl.
func (f *bulk) control(args ...string) string {
	f.Helper()
	answer, err := f.broker.Control(f.Context(), args...)
	if err != nil {
		f.Fatal(err)
	}
	return answer
}

// limit sets how much memory the broker may take before it blocks publishers.
func (f *bulk) limit(args ...string) {
	f.Helper()
	f.control(append([]string{"set_vm_memory_high_watermark"}, args...)...)
}

// dontRead makes the consumer.
func (f *bulk) dontRead(broker string) {
	f.Helper()
	var held *heldConn
	conn, err := amqp091.DialConfig(broker, amqp091.Config{Heartbeat: time.Hour, Dial: func(network, address string) (net.Conn, error) {
		conn, err := net.Dial(network, address)
		held = &heldConn{Conn: conn}
		return held, err
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		f.Fatal(err)
	}
	if f.consumed, err = ch.Consume("bulk", "", false, false, false, false, nil); err != nil {
		f.Fatal(err)
	}
	held.gate.Lock()
	f.read = sync.OnceFunc(held.gate.Unlock)
	f.Cleanup(f.read) // or the connection could not be closed
}

// publishBulk publishes one message after the other. While it is blocked it waits.
func publishBulk(ch *amqp091.Channel, quit <-chan struct{}) (ids []string, err error) {
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	pace := time.NewTicker(bulkPace)
	defer pace.Stop()
	body := make([]byte, bulkSize)
	for !stopped(quit) {
		id := fmt.Sprintf("bulk%05d", len(ids))
		c, err := ch.PublishWithDeferredConfirm("", "bulk", true, false, amqp091.Publishing{MessageId: id, Body: body, DeliveryMode: amqp091.Persistent})
		if err != nil {
			return ids, err
		}
		if !c.Wait() {
			return ids, fmt.Errorf("message %s was refused", id)
		}
		ids = append(ids, id)
		<-pace.C
	}
	return ids, nil
}

// drain consumes all messages. It returns when publishers are not blocked any more and each message was there once.
func (f *bulk) drain() {
	f.Helper()
	f.read()
	f.stop()
	var got []string
	var published bulkPublished
	blocked, publishing, begun := true, true, time.Now()
	for timeout := time.After(waitTimeout); blocked || publishing || len(got) < len(published.ids); {
		select {
		case d := <-f.consumed:
			got = append(got, d.MessageId)
			if err := d.Ack(false); err != nil {
				f.Fatal(err)
			}
		case b := <-f.blocked:
			blocked = b.Active
		case published = <-f.published:
			publishing = false
		case <-timeout:
			f.Fatalf("after %s: blocked %t, publishing %t, %d of %d messages were consumed", waitTimeout, blocked, publishing, len(got), len(published.ids))
		}
	}
	f.limit("0.6") // what garbage there is does not begin it again
	if published.err != nil {
		f.Errorf("filling the broker: %v", published.err)
	}
	if !slices.Equal(got, published.ids) {
		f.Errorf("%d messages were published and %d consumed: %q", len(published.ids), len(got), got)
	}
	f.Logf("%d messages of %d bytes filled the broker, and were consumed until it was not blocked any more in %s", len(got), bulkSize, time.Since(begun))
}

// heldConn is a connection that is not read while its gate is locked.
type heldConn struct {
	net.Conn
	gate sync.RWMutex
}

func (c *heldConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.gate.RLock()
	defer c.gate.RUnlock()
	return n, err
}
