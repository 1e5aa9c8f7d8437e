package migration

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// published is how many messages are published at least, from before a run until after it: 100,000 to each type of queue, to the
// classic ones in two runs.
var published = map[topology.QueueType]int{topology.Classic: 50_000, topology.Quorum: 100_000}

// patience is for all of them, on a machine that has other things to do.
const patience = 15 * time.Minute

// TestNothingIsLostWhileMessagesArePublished counts at both ends: every message that was confirmed is there, once.
func TestNothingIsLostWhileMessagesArePublished(t *testing.T) {
	for _, kind := range []topology.QueueType{topology.Classic, topology.Quorum} {
		for _, consumed := range []bool{false, true} {
			name := string(kind)
			if consumed {
				name += ", consumed"
			}
			t.Run(name, func(t *testing.T) { // one after another: they are about load
				y := newYard(t, brokertest.Shared(t), kind, 0)
				p := y.publishing()
				var c *consuming
				if consumed {
					c = y.consuming()
				}
				p.await(published[kind] / 10)
				began := time.Now()
				o := y.options()
				r := y.runWithin(o, patience)
				took := time.Since(began)
				p.await(published[kind])
				p.stop()
				y.settled(y.after())
				seen := map[string]int{}
				if c != nil {
					c.await(p.count())
					seen = c.stop()
				}
				for _, d := range y.deliveries() {
					seen[d.MessageId]++
				}
				t.Logf("%d published, %d of them meanwhile; moved out %d and back %d in %s", p.count(), p.before(began.Add(took))-p.before(began), r.Out, r.Back, took.Round(time.Millisecond))
				lost, doubled := 0, 0
				for i := range p.count() {
					switch n := seen[strconv.Itoa(i)]; {
					case n == 0:
						lost++
					case n > 1:
						doubled++
					}
				}
				if lost+doubled+r.Doubtful > 0 || len(seen) != p.count() {
					t.Errorf("of %d messages %d were lost and %d are there twice (%d different ones, %+v)", p.count(), lost, doubled, len(seen), r)
				}
			})
		}
	}
}

// publishing is a publisher that goes on until it is stopped.
type publishing struct {
	t     *testing.T
	end   chan struct{}
	ended chan struct{}

	mu        sync.Mutex
	confirmed int
	times     []time.Time // of every thousandth
}

const (
	// inFlight is how many messages are unconfirmed at most, and atOnce how many are published every pace: some less than a busy
	// machine moves in that time, so that it is over before long.
	inFlight = 200
	atOnce   = 20
	pace     = 10 * time.Millisecond
)

func (y *yard) publishing() *publishing {
	y.t.Helper()
	nodes, err := amqp.NewBroker(amqp.Config{URL: y.b.AMQPURL(y.vhost), Name: y.t.Name()})
	must(y.t, err)
	publisher := amqp.NewPublisher(amqp.Options{Dial: func(ctx context.Context) (*amqp.Conn, error) { return nodes.Dial(ctx, " (publisher)") }})
	p := &publishing{t: y.t, end: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		slots := make(chan struct{}, inFlight)
		ticker := time.NewTicker(pace)
		defer ticker.Stop()
		for i := 0; ; i++ {
			if i%atOnce == 0 {
				<-ticker.C
			}
			select {
			case slots <- struct{}{}:
			case <-p.end:
				for range inFlight {
					slots <- struct{}{}
				}
				return
			}
			publisher.Publish("topic", "order.made", amqp091.Publishing{MessageId: strconv.Itoa(i), Body: []byte("x")}, func(err error) {
				if err != nil {
					p.t.Errorf("message %d: %v", i, err)
				}
				p.note()
				<-slots
			})
		}
	}()
	y.t.Cleanup(func() {
		p.stop()
		_ = publisher.Close(context.Background())
	})
	return p
}

func (p *publishing) note() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.confirmed%1000 == 0 {
		p.times = append(p.times, time.Now())
	}
	p.confirmed++
}

func (p *publishing) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.confirmed
}

// before is about how many had been confirmed.
func (p *publishing) before(when time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, at := range p.times {
		if at.Before(when) {
			n++
		}
	}
	return n * 1000
}

func (p *publishing) await(n int) {
	p.t.Helper()
	await(p.t, func() bool { return p.count() >= n })
}

func (p *publishing) stop() {
	select {
	case <-p.end:
	default:
		close(p.end)
	}
	<-p.ended
}

// consuming is a consumer that subscribes again when the broker cancels it, connects again when that closes its connection,
// and acknowledges what it gets.
type consuming struct {
	t     *testing.T
	end   chan struct{}
	ended chan struct{}

	mu   sync.Mutex
	seen map[string]int
}

// consuming starts one. A broker closes the connection of who subscribes to a queue in the moment of its deletion (541; 3.10
// and 4.3).
func (y *yard) consuming() *consuming {
	y.t.Helper()
	c := &consuming{t: y.t, end: make(chan struct{}), ended: make(chan struct{}), seen: map[string]int{}}
	nodes, err := amqp.NewBroker(amqp.Config{URL: y.b.AMQPURL(y.vhost), Name: y.t.Name()})
	must(y.t, err)
	go func() {
		defer close(c.ended)
		for again := true; again; {
			conn, err := nodes.Dial(context.Background(), " (consumer)")
			if err != nil {
				c.t.Errorf("connecting the consumer: %v", err)
				return
			}
			for again && !conn.IsClosed() {
				again = c.subscribe(conn)
			}
			_ = conn.Close(context.Background())
		}
	}()
	return c
}

// subscribe consumes until the broker cancels the consumer, closes the connection or has no such queue. It returns false at the
// end.
func (c *consuming) subscribe(conn *amqp.Conn) bool {
	ch, err := conn.Channel()
	if err != nil {
		return true // the connection was closed
	}
	defer ch.Close()
	if err := ch.Qos(50, 0, false); err != nil {
		return true
	}
	deliveries, err := ch.Consume("orders", "", false, false, false, false, nil)
	if err != nil { // the queue is away for a moment
		select {
		case <-c.end:
			return false
		case <-time.After(10 * time.Millisecond):
			return true
		}
	}
	for {
		select {
		case <-c.end:
			return false
		case d, ok := <-deliveries:
			if !ok {
				return true
			}
			c.mu.Lock()
			c.seen[d.MessageId]++
			c.mu.Unlock()
			if err := d.Ack(false); err != nil {
				return true // it comes again
			}
		}
	}
}

func (c *consuming) await(n int) {
	c.t.Helper()
	await(c.t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.seen) >= n
	})
}

// await waits for what takes as long as it takes.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(patience); !condition(); <-ticker.C {
		if time.Now().After(end) {
			t.Fatal("it takes too long")
		}
	}
}

func (c *consuming) stop() map[string]int {
	close(c.end)
	<-c.ended
	return c.seen
}
