package redelivertest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/redeliver"
	"github.com/redeliver/terraform-provider-redeliver/redeliver/redelivertest"
)

// TestRestIsRest: once Wait has returned nothing moves any more, whatever
// happened before: what is seen then is seen a thousand turns of the scheduler
// later.
func TestRestIsRest(t *testing.T) {
	t.Parallel()
	for _, topic := range []redelivertest.Topic{
		{Strategy: "in_place", ParkedQueue: true},
		{Strategy: "in_place", Convention: "rabbitkit", QueueType: "classic"},
		{Strategy: "broker_delayed"},
		{Strategy: "republish"},
		{Strategy: "hybrid"},
		{Sequenced: true},
		{Sequenced: true, Convention: "shove", Shards: 3},
	} {
		t.Run(fmt.Sprintf("%s%s%v", topic.Strategy, topic.QueueType, topic.Sequenced), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(5) {
				shake(t, topic, rand.New(rand.NewPCG(seed, seed)))
			}
		})
	}
}

// shake lets everything happen to messages, in an order that random picks.
func shake(t *testing.T, topic redelivertest.Topic, random *rand.Rand) {
	t.Helper()
	b := redelivertest.New(t, redelivertest.Manifest(t, topic))
	var mu sync.Mutex
	chance := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
	cfg := redeliver.Config{Workers: 1 + chance(4), MaxHeld: 1 + chance(6)}
	if topic.Sequenced {
		cfg.Sequence = &redeliver.Sequence{Key: redeliver.KeyFromRoutingKey}
	}
	errors := b.HandleDead(func(context.Context, *redeliver.DeadMessage) error {
		if chance(2) == 0 {
			return errBoom
		}
		return nil
	})
	c := b.Consume(cfg, redeliver.HandlerFunc(func(context.Context, *redeliver.Message) redeliver.Outcome {
		switch chance(10) {
		case 0, 1, 2:
			return redeliver.Retry(errBoom)
		case 3:
			return redeliver.Defer()
		case 4:
			return redeliver.RetryAfter(time.Duration(chance(200))*time.Second, errBoom)
		case 5:
			return redeliver.Reject(errBoom)
		case 6:
			panic("at the disco")
		default:
			return redeliver.Ack()
		}
	}))
	look := func() []any {
		return []any{c.Stats(), errors.Stats(), c.Health(), b.Held(), b.Dead()}
	}
	for n := range 40 {
		for range chance(8) {
			b.Publish(redeliver.Message{ID: fmt.Sprint(n), RoutingKey: fmt.Sprint("key", chance(5))})
		}
		switch chance(3) {
		case 0:
			b.Advance(time.Duration(chance(60)) * time.Second)
		case 1:
			b.Disconnect()
		}
		b.Wait()
		before := look()
		for range 300 {
			runtime.Gosched()
		}
		if after := look(); !reflect.DeepEqual(before, after) {
			t.Fatalf("it moved after Wait\nbefore %+v\nafter  %+v", before, after)
		}
	}
	b.Finish()
	if held := b.Held(); len(held) > 0 {
		t.Errorf("%d messages are held after Finish", len(held))
	}
}
