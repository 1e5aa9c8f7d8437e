package rabbitmq

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/consumer"
)

// fakeChannel is a channel as the broker sees it: it knows what it has
// delivered, and what the consumer has said is done.
type fakeChannel struct {
	mu          sync.Mutex
	outstanding map[uint64]bool // delivered and not settled
	done        map[uint64]bool // handled by the application
	wrong       []string
	frames      int
	fail        error
}

func newFakeChannel(n uint64) *fakeChannel {
	c := &fakeChannel{outstanding: make(map[uint64]bool), done: make(map[uint64]bool)}
	for tag := uint64(1); tag <= n; tag++ {
		c.outstanding[tag] = true
	}
	return c
}

// Ack does what RabbitMQ does: a tag that is not outstanding is an error that
// closes the channel, and multiple covers everything up to the tag.
func (c *fakeChannel) Ack(tag uint64, multiple bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail != nil {
		return c.fail
	}
	c.frames++
	if !c.outstanding[tag] {
		c.wrong = append(c.wrong, fmt.Sprintf("ack of %d, which is not outstanding", tag))
		return nil
	}
	for t := range c.outstanding {
		if t == tag || multiple && t < tag {
			if !c.done[t] {
				c.wrong = append(c.wrong, fmt.Sprintf("ack of %d (multiple %t) covers %d, which is not done", tag, multiple, t))
			}
			delete(c.outstanding, t)
		}
	}
	return nil
}

func (c *fakeChannel) finish(tag uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done[tag] = true
}

func (c *fakeChannel) reject(tag uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.outstanding[tag] {
		c.wrong = append(c.wrong, fmt.Sprintf("reject of %d, which is not outstanding", tag))
	}
	delete(c.outstanding, tag)
	return nil
}

func (c *fakeChannel) written() (frames int, wrong []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frames, c.wrong
}

func (c *fakeChannel) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.outstanding)
}

// delivered is a delivery that acks knows of.
func delivered(a *acks, tag uint64) *consumer.Delivery {
	d := &consumer.Delivery{Tag: tag}
	a.deliver(d)
	return d
}

// TestAcksInAnyOrder settles deliveries from many goroutines in random order,
// with rejections among them.
func TestAcksInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, prefetch := range []int{1, 7, 100, 1000} {
		t.Run(fmt.Sprint(prefetch), func(t *testing.T) {
			t.Parallel()
			const n = 2000
			ch := newFakeChannel(n)
			var written atomic.Int64
			a := newAcks(ch, func() {}, prefetch, &written)
			deliveries := make(chan *consumer.Delivery)
			var workers sync.WaitGroup
			for range 8 {
				workers.Go(func() {
					for d := range deliveries {
						var err error
						switch rand.IntN(10) {
						case 0:
							err = a.settle(d, func() error { return ch.reject(d.Tag) })
						case 1:
							a.hold(d)
							fallthrough
						default:
							ch.finish(d.Tag)
							err = a.ack(d)
						}
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			window := make([]*consumer.Delivery, 0, prefetch) // handed out in random order within the prefetch
			for tag := uint64(1); tag <= n || len(window) > 0; {
				for len(window) < prefetch && tag <= n {
					window = append(window, delivered(a, tag))
					tag++
				}
				i := rand.IntN(len(window))
				deliveries <- window[i]
				window[i] = window[len(window)-1]
				window = window[:len(window)-1]
			}
			close(deliveries)
			workers.Wait()
			if lost := a.close(true); lost != 0 || ch.left() != 0 {
				t.Errorf("%d acknowledgements left, %d deliveries outstanding", lost, ch.left())
			}
			frames, wrong := ch.written()
			for _, what := range wrong {
				t.Error(what)
			}
			t.Logf("%d frames for %d messages", frames, n)
		})
	}
}

// TestAcksAboveAnUnsettledDelivery: one whose handler runs holds up the others
// for two flushes, and one that is held for one; neither for as long as it lasts.
func TestAcksAboveAnUnsettledDelivery(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ch := newFakeChannel(20)
			var written atomic.Int64
			a := newAcks(ch, func() {}, 100, &written)
			var fifth *consumer.Delivery
			for tag := uint64(1); tag <= 20; tag++ {
				d := delivered(a, tag)
				if tag == 5 {
					if fifth = d; held {
						a.hold(d)
					}
					continue
				}
				ch.finish(tag)
				if err := a.ack(d); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(flushAfter)
			synctest.Wait()
			left, frames := 16, 1
			if held {
				left, frames = 1, 16
			}
			if got, _ := ch.written(); ch.left() != left || got != frames {
				t.Errorf("held %t: after one flush %d are outstanding in %d frames, want %d in %d", held, ch.left(), got, left, frames)
			}
			time.Sleep(flushAfter)
			synctest.Wait()
			if ch.left() != 1 {
				t.Errorf("held %t: after two flushes %d are outstanding, want the one", held, ch.left())
			}
			ch.finish(5)
			if err := a.ack(fifth); err != nil {
				t.Fatal(err)
			}
			time.Sleep(flushAfter)
			synctest.Wait()
			if _, wrong := ch.written(); ch.left() != 0 || len(wrong) > 0 || a.close(true) != 0 {
				t.Errorf("held %t: %d are outstanding; %v", held, ch.left(), wrong)
			}
		})
	}
}

// TestAcksWhileMostIsHeld: where few slots of the window are free, a few
// acknowledgements are enough to be sent.
func TestAcksWhileMostIsHeld(t *testing.T) {
	t.Parallel()
	ch := newFakeChannel(72)
	var written atomic.Int64
	a := newAcks(ch, func() {}, 72, &written)
	for tag := uint64(1); tag <= 64; tag++ {
		a.hold(delivered(a, tag))
	}
	const free = 8
	for tag := uint64(65); tag <= 64+free/flushPart; tag++ {
		d := delivered(a, tag)
		ch.finish(tag)
		if err := a.ack(d); err != nil {
			t.Fatal(err)
		}
	}
	if want := 64 + free - free/flushPart; ch.left() != want {
		t.Errorf("%d are outstanding, want %d", ch.left(), want)
	}
	if a.close(true) != 0 {
		t.Error("acknowledgements are left")
	}
}

// TestAcksOfALostChannel are counted as not sent, and the next one says why.
func TestAcksOfALostChannel(t *testing.T) {
	t.Parallel()
	ch := newFakeChannel(10)
	var written atomic.Int64
	a := newAcks(ch, func() {}, 100, &written)
	for tag := uint64(1); tag <= 3; tag++ {
		ch.finish(tag)
		if err := a.ack(delivered(a, tag)); err != nil {
			t.Fatal(err)
		}
	}
	if unsent := a.close(false); unsent != 3 {
		t.Errorf("%d acknowledgements were not sent, want 3", unsent)
	}
	if err := a.ack(delivered(a, 4)); !errors.Is(err, errAcksClosed) || a.close(true) != 3 {
		t.Errorf("after the end: %v", err)
	}
	ch.fail = errors.New("closed")
	a = newAcks(ch, func() {}, 2*flushPart, &written)
	for tag := uint64(1); tag <= 2; tag++ {
		if err := a.ack(delivered(a, tag)); err != nil {
			t.Fatal(err) // it is the second that finds out
		}
	}
	if err := a.ack(delivered(a, 3)); !errors.Is(err, ch.fail) || a.close(true) != 2 {
		t.Errorf("after a flush that failed: %v, %d not sent", err, a.close(true))
	}
}
