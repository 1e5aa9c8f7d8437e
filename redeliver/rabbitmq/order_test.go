package rabbitmq_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// keyOrder watches that the messages of every key are handled in order, by whichever consumers take turns. The messages
// of a key have numbers from 0.
type keyOrder struct {
	mu sync.Mutex
	// next is the number of a key's first message that has not ended: no handler has said Ack or Reject.
	next map[string]int
	// ender is who ended a message last, and settled are those whose consumer then had done with them.
	ender   map[turn]string
	settled map[turn]bool
	// at is where a consumer is with each key in its present subscription.
	at map[string]map[string]int
	// gone are consumers that were killed, perhaps before they could tell that a message was settled.
	gone map[string]bool
	// lasting: no subscription ends but with its consumer, and no message is published twice.
	lasting bool
	// ended counts the messages that have ended, and again the calls for those.
	ended, again int
	wrong        []string
}

// turn is a message by its key and number.
type turn struct {
	key    string
	number int
}

func newKeyOrder() *keyOrder {
	return &keyOrder{
		next: make(map[string]int), ender: make(map[turn]string), settled: make(map[turn]bool), at: make(map[string]map[string]int), gone: make(map[string]bool),
	}
}

// begin notes that a consumer's handler is called for a message. For the first time that may be only when the one before
// it is settled, and within one subscription there is no way back.
func (o *keyOrder) begin(by, key string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := turn{key, n - 1}
	switch next := o.next[key]; {
	case n > next:
		o.wrong = append(o.wrong, fmt.Sprintf("%s/%d came before %s/%d had ended", key, n, key, next))
	case n < next:
		o.again++
		if ender := o.ender[turn{key, n}]; o.lasting && !o.gone[ender] {
			o.wrong = append(o.wrong, fmt.Sprintf("%s/%d came to %q again although %q, which ended it, is alive", key, n, by, ender))
		}
	case n > 0 && !o.settled[before] && !o.gone[o.ender[before]]:
		o.wrong = append(o.wrong, fmt.Sprintf("%s/%d came to %q before %s/%d was settled, which %q ended", key, n, by, key, n-1, o.ender[before]))
	}
	if o.at[by] == nil {
		o.at[by] = make(map[string]int)
	}
	if at := o.at[by][key]; at > n {
		o.wrong = append(o.wrong, fmt.Sprintf("%s/%d came to %q after %s/%d", key, n, by, key, at))
	}
	o.at[by][key] = n
}

// end notes that a handler has said its last word about a message, or is about to.
func (o *keyOrder) end(by, key string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ender[turn{key, n}] = by
	if n == o.next[key] {
		o.next[key], o.ended = n+1, o.ended+1
	}
}

func (o *keyOrder) settle(key string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.settled[turn{key, n}] = true
}

// connect notes that a consumer has a new subscription: what was not settled comes again.
func (o *keyOrder) connect(by string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.at, by)
}

func (o *keyOrder) vanish(by string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone[by] = true
}

func (o *keyOrder) report(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, wrong := range o.wrong {
		t.Error(wrong)
	}
	t.Logf("%d messages of %d keys ended in order, %d calls for messages that had ended", o.ended, len(o.next), o.again)
}

// placeOf is the place of a message whose id is its key and its number.
func placeOf(m *redeliver.Message) (key string, number int) {
	key, text, _ := strings.Cut(m.ID, "/")
	number, _ = strconv.Atoi(text)
	return key, number
}

// told notes the events of a consumer whose messages have such ids.
func (o *keyOrder) told(by string) func(redeliver.Event) {
	return func(e redeliver.Event) {
		switch e.Kind {
		case redeliver.EventConnected:
			o.connect(by)
		case redeliver.EventAcked, redeliver.EventDeadLettered:
			o.settle(placeOf(e.Message))
		}
	}
}

// handler is that of a consumer whose messages have such ids. It fails at random.
func (o *keyOrder) handler(by string) redeliver.HandlerFunc {
	return func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		key, n := placeOf(m)
		o.begin(by, key, n)
		die := rand.IntN(20) //nolint:gosec // a test's choices
		if die < 5 && m.RetryCount < worldRetries {
			return redeliver.Retry(errBoom)
		}
		o.end(by, key, n)
		if die == 5 {
			return redeliver.Reject(errBoom)
		}
		return redeliver.Ack()
	}
}

// awaitEnded waits until n messages have ended.
func (o *keyOrder) awaitEnded(t *testing.T, n int) {
	t.Helper()
	brokertest.WaitFor(t, func() (bool, string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.ended >= n, fmt.Sprintf("%d messages have ended, want %d", o.ended, n)
	})
}
