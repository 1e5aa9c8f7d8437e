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
			a := newAcks(ch, prefetch, &written)
			tags := make(chan uint64)
			var workers sync.WaitGroup
			for range 8 {
				workers.Go(func() {
					for tag := range tags {
						var err error
						if rand.IntN(10) == 0 {
							err = a.settle(tag, func() error { return ch.reject(tag) })
						} else {
							ch.finish(tag)
							err = a.ack(tag)
						}
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			window := make([]uint64, 0, prefetch) // handed out in random order within the prefetch
			for tag := uint64(1); tag <= n || len(window) > 0; {
				for len(window) < prefetch && tag <= n {
					window = append(window, tag)
					tag++
				}
				i := rand.IntN(len(window))
				tags <- window[i]
				window[i] = window[len(window)-1]
				window = window[:len(window)-1]
			}
			close(tags)
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

// TestAcksBehindAHeldDelivery: one delivery that stays unsettled holds up the
// others for two flushes, not for as long as it is held.
func TestAcksBehindAHeldDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ch := newFakeChannel(20)
		var written atomic.Int64
		a := newAcks(ch, 100, &written)
		for tag := uint64(1); tag <= 20; tag++ {
			if tag != 5 {
				ch.finish(tag)
				if err := a.ack(tag); err != nil {
					t.Fatal(err)
				}
			}
		}
		time.Sleep(flushAfter)
		synctest.Wait()
		if frames, _ := ch.written(); ch.left() != 16 || frames != 1 {
			t.Errorf("after one flush %d are outstanding in %d frames, want 16 in 1", ch.left(), frames)
		}
		time.Sleep(flushAfter)
		synctest.Wait()
		if ch.left() != 1 {
			t.Errorf("after two flushes %d are outstanding, want the held one", ch.left())
		}
		ch.finish(5)
		if err := a.ack(5); err != nil {
			t.Fatal(err)
		}
		time.Sleep(flushAfter)
		synctest.Wait()
		if _, wrong := ch.written(); ch.left() != 0 || len(wrong) > 0 || a.close(true) != 0 {
			t.Errorf("%d are outstanding; %v", ch.left(), wrong)
		}
	})
}

// TestAcksOfALostChannel are counted as not sent, and the next one says why.
func TestAcksOfALostChannel(t *testing.T) {
	t.Parallel()
	ch := newFakeChannel(10)
	var written atomic.Int64
	a := newAcks(ch, 100, &written)
	for tag := uint64(1); tag <= 3; tag++ {
		ch.finish(tag)
		if err := a.ack(tag); err != nil {
			t.Fatal(err)
		}
	}
	if lost := a.close(false); lost != 3 {
		t.Errorf("%d acknowledgements were not sent, want 3", lost)
	}
	ch.fail = errors.New("closed")
	a = newAcks(ch, 1, &written)
	if err := a.ack(1); err != nil {
		t.Fatal(err) // it is this one that finds out
	}
	if err := a.ack(2); !errors.Is(err, ch.fail) {
		t.Errorf("after a flush that failed: %v", err)
	}
}
