package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// ledger accounts for every message of a test by its id: how often it was published, what handlers said about it, and
// where it ended. Its handler's outcomes are random.
type ledger struct {
	mu   sync.Mutex
	rand *rand.Rand
	// published counts, for every message that the broker confirmed, how often it was published: more than once where a
	// confirm was lost.
	published map[string]int
	// acked counts handlers that acknowledged a message; dead and parked count what was found in those queues.
	acked, dead, parked map[string]int
	// calls counts handler calls, and again those for a message that had ended before.
	calls, again int
	// with are the messages that handlers have now; overlapped counts those that two had at a time.
	with       map[string]int
	overlapped int
	// subscribed counts the subscriptions of consumers in processes of their own, and gone are those that say nothing more.
	subscribed map[string]int
	gone       map[string]bool
	// order watches the order of the keys; nil where there is none.
	order *keyOrder
	// closing: every message is acknowledged from now on.
	closing bool
}

func newLedger(seed uint64, sequenced bool) *ledger {
	b := &ledger{
		rand: rand.New(rand.NewPCG(seed, seed)), published: make(map[string]int), //nolint:gosec // a test's choices
		acked: make(map[string]int), dead: make(map[string]int), parked: make(map[string]int), with: make(map[string]int),
		subscribed: make(map[string]int), gone: make(map[string]bool),
	}
	if sequenced {
		b.order = newKeyOrder()
	}
	return b
}

// place is a message's place in the order of its key: in every batch that is published there is one of each.
func place(id string) (key string, number int) {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, "m"))
	return fmt.Sprintf("k%d", n%feedBatch), n / feedBatch
}

// sequence is how a consumer keeps the order; nil where there is none.
func (b *ledger) sequence() *redeliver.Sequence {
	if b.order == nil {
		return nil
	}
	return &redeliver.Sequence{Key: func(m *redeliver.Message) string {
		key, _ := place(m.ID)
		return key
	}}
}

// handle is a handler of random outcomes.
func (b *ledger) handle(_ context.Context, m *redeliver.Message) redeliver.Outcome {
	o, boom := b.decide(m)
	b.begin("", m.ID, o.Kind())
	defer b.end(m.ID)
	if boom {
		panic("boom")
	}
	return o
}

// told notes the events of the consumer in this process.
func (b *ledger) told(e redeliver.Event) {
	switch e.Kind {
	case redeliver.EventConnected:
		b.connected("")
	case redeliver.EventAcked, redeliver.EventDeadLettered:
		b.settled(e.Message.ID)
	}
}

// decide makes an outcome up; boom says that the handler panics instead, which is a Retry. Where there is an order, the
// handler's word is the last one: no message runs out of retries.
func (b *ledger) decide(m *redeliver.Message) (o redeliver.Outcome, boom bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closing || b.order != nil && m.RetryCount >= worldRetries {
		return redeliver.Ack(), false
	}
	switch b.rand.IntN(40) {
	case 0:
		return redeliver.Outcome{}, true
	case 1:
		return redeliver.Outcome{}, false
	case 2, 3, 4, 5, 6:
		return redeliver.Retry(errBoom), false
	case 7:
		return redeliver.RetryAfter(time.Duration(b.rand.IntN(700))*time.Millisecond, errBoom), false
	case 8:
		return redeliver.Defer(), false
	case 9:
		return redeliver.DeferFor(time.Duration(1+b.rand.IntN(200)) * time.Millisecond), false
	case 10, 11:
		return redeliver.Reject(errBoom), false
	case 12:
		return redeliver.Park(errBoom), false
	default:
		return redeliver.Ack(), false
	}
}

// begin notes that a consumer's handler was called and what it is about to say.
func (b *ledger) begin(by, id string, says redeliver.OutcomeKind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if b.order != nil {
		key, n := place(id)
		b.order.begin(by, key, n)
		switch says {
		case redeliver.OutcomeAck, redeliver.OutcomeReject, redeliver.OutcomePark:
			b.order.end(by, key, n)
		}
	}
	if b.acked[id]+b.dead[id]+b.parked[id] > 0 {
		b.again++
	}
	if says == redeliver.OutcomeAck {
		b.acked[id]++
	}
	if b.with[id]++; b.with[id] > 1 {
		b.overlapped++
	}
}

func (b *ledger) end(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.with[id]--
}

// settled notes that a message is done with, as far as its consumer is concerned.
func (b *ledger) settled(id string) {
	if b.order != nil {
		b.order.settle(place(id))
	}
}

// connected notes that a consumer has subscribed, for the first time or again.
func (b *ledger) connected(by string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if by != "" {
		b.subscribed[by]++
	}
	if b.order != nil {
		b.order.connect(by)
	}
}

func (b *ledger) sessions(by string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.subscribed[by]
}

// dies notes that a consumer's process is about to be killed, and ends that it says nothing more.
func (b *ledger) dies(by string) {
	if b.order != nil {
		b.order.vanish(by)
	}
}

func (b *ledger) ends(by string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone[by] = true
}

// heard says whether everything was read that a consumer's process wrote before it was killed.
func (b *ledger) heard(by string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gone[by]
}

// reconnects counts how often consumers in processes of their own lost a subscription and got another one.
func (b *ledger) reconnects() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, times := range b.subscribed {
		n += times - 1
	}
	return n
}

func (b *ledger) handled() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

// found notes messages that were found in a dead-letter or parked queue.
func (b *ledger) found(in map[string]int, messages []amqp091.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range messages {
		in[d.MessageId]++
	}
}

// missing counts the messages that ended nowhere, and names one.
func (b *ledger) missing() (n int, such string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.published {
		if b.acked[id]+b.dead[id]+b.parked[id] == 0 {
			n, such = n+1, id
		}
	}
	return n, such
}

// duplicates counts the endings beyond the first of each message, and those that are its publisher's: a message whose
// confirm was lost was published again.
func (b *ledger) duplicates() (all, publishers int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, times := range b.published {
		all += b.acked[id] + b.dead[id] + b.parked[id] - 1
		publishers += times - 1
	}
	return all, publishers
}

// wrapUp acknowledges every message from now on.
func (b *ledger) wrapUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closing = true
}

const (
	feedEvery = 80 * time.Millisecond
	feedBatch = 10
	// feedConfirm is how long a publisher waits for confirms before it connects again.
	feedConfirm = 20 * time.Second
)

// feed publishes messages to a queue, ten every so often, until the returned function is called, which returns when all
// are confirmed. It goes on through every fault: what was not confirmed is published again.
func (b *ledger) feed(t *testing.T, every time.Duration, queue string, urls ...string) (stop func()) {
	t.Helper()
	quit, done := make(chan struct{}), make(chan struct{})
	f := &feeder{ledger: b, urls: urls, queue: queue, pace: time.NewTicker(every)}
	go func() {
		defer close(done)
		defer f.pace.Stop()
		for !f.caughtUp || !stopped(quit) {
			if err := f.publish(quit); err != nil {
				f.urls = append(f.urls[1:], f.urls[0])
				<-f.pace.C
			}
		}
	}()
	var once sync.Once
	stop = func() {
		t.Helper()
		once.Do(func() { close(quit) })
		select {
		case <-done:
		case <-time.After(waitTimeout):
			t.Fatal("the broker confirms nothing")
		}
	}
	t.Cleanup(func() { once.Do(func() { close(quit) }) })
	return stop
}

// feeder is a publisher that runs through faults.
type feeder struct {
	*ledger
	urls  []string
	queue string
	pace  *time.Ticker
	// batch is what is being published, and tries how often each of it was.
	batch []string
	tries int
	// caughtUp: nothing is unconfirmed.
	caughtUp bool
}

// publish publishes on one connection until quit is closed or the connection fails.
func (f *feeder) publish(quit <-chan struct{}) error {
	conn, err := amqp091.Dial(f.urls[0])
	if err != nil {
		return err
	}
	defer conn.CloseDeadline(time.Now().Add(time.Second)) //nolint:errcheck // it may be dead
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	for {
		if f.caughtUp = len(f.batch) == 0; f.caughtUp {
			if stopped(quit) {
				return nil
			}
			f.batch, f.tries = f.next(), 0
			f.caughtUp = false
		}
		f.tries++
		if err := f.publishBatch(ch); err != nil {
			return err
		}
		f.confirmed()
		<-f.pace.C
	}
}

// publishBatch publishes what is unconfirmed and waits for all confirms.
func (f *feeder) publishBatch(ch *amqp091.Channel) error {
	ctx, cancel := context.WithTimeout(context.Background(), feedConfirm)
	defer cancel()
	var confirms []*amqp091.DeferredConfirmation
	for _, id := range f.batch {
		c, err := ch.PublishWithDeferredConfirm("", f.queue, true, false, amqp091.Publishing{MessageId: id, Body: []byte(id), DeliveryMode: amqp091.Persistent})
		if err != nil {
			return err
		}
		confirms = append(confirms, c)
	}
	for _, c := range confirms {
		if acked, err := c.WaitContext(ctx); err != nil || !acked {
			return errors.Join(err, errors.New("not confirmed"))
		}
	}
	return nil
}

// next makes up the ids of a batch.
func (f *feeder) next() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	batch := make([]string, feedBatch)
	for i := range batch {
		batch[i] = fmt.Sprintf("m%06d", len(f.published)+i)
	}
	return batch
}

func (f *feeder) confirmed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range f.batch {
		f.published[id] = f.tries
	}
	f.batch = nil
}

func stopped(quit <-chan struct{}) bool {
	select {
	case <-quit:
		return true
	default:
		return false
	}
}
