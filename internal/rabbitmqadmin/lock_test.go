package rabbitmqadmin

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestExchangeLocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var locks exchangeLocks
		var writers, binders [3]atomic.Int64
		names := []string{"a", "b", "c"}
		var wg sync.WaitGroup
		for range 300 {
			wg.Go(func() {
				time.Sleep(rand.N(50 * time.Millisecond))
				i, j := rand.IntN(3), rand.IntN(3)
				if rand.IntN(3) == 0 {
					unlock, err := locks.write(t.Context(), "v", names[i])
					must(t, err)
					defer unlock()
					if writers[i].Add(1) != 1 || binders[i].Load() != 0 {
						t.Error("a writer is not alone")
					}
					time.Sleep(time.Millisecond)
					writers[i].Add(-1)
					return
				}
				// Either direction, and an exchange bound to itself.
				unlock, err := locks.bind(t.Context(), "v", names[i], names[j])
				must(t, err)
				defer unlock()
				binders[i].Add(1)
				if writers[i].Load()+writers[j].Load() != 0 {
					t.Error("a binding beside a writer")
				}
				time.Sleep(time.Millisecond)
				binders[i].Add(-1)
			})
		}
		wg.Wait()
	})
}

func TestExchangeLocksEndWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var locks exchangeLocks
		unlock, err := locks.bind(t.Context(), "v", "a")
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := locks.write(ctx, "v", "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		unlock()
		// Nothing is left behind by the one who gave up.
		unlock, err = locks.write(t.Context(), "v", "a")
		must(t, err)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := locks.bind(ctx, "v", "b", "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		unlock()
		for _, name := range []string{"a", "b"} {
			unlock, err := locks.write(t.Context(), "v", name)
			must(t, err)
			unlock()
		}
		other, err := locks.write(t.Context(), "another vhost", "a")
		must(t, err)
		other()
	})
}
