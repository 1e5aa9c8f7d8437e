package rabbitmqadmin

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// sharedFixture is a shared read of the time at which it starts, which takes a second.
func sharedFixture(reads *atomic.Int64, fail error) *sharedRead[time.Time] {
	return newSharedRead(func(ctx context.Context, _ string) (time.Time, error) {
		reads.Add(1)
		started := time.Now()
		if err := pause(ctx, time.Second); err != nil {
			return time.Time{}, err
		}
		return started, fail
	})
}

func TestSharedReadIsNeverTooOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		s := sharedFixture(&reads, nil)
		var wg sync.WaitGroup
		const callers = 200
		for i := range callers {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				called := time.Now()
				due := called
				if i%2 == 0 {
					due = called.Add(6 * time.Second)
				}
				started, err := s.notBefore(t.Context(), "v", due)
				if err != nil || started.Before(due) {
					t.Errorf("caller %d wants %s, got %s, %v", i, due, started, err)
				}
				if wait := time.Since(later(due, called)); wait > 4*time.Second {
					t.Errorf("caller %d waited %s", i, wait)
				}
			})
		}
		wg.Wait()
		if n := reads.Load(); n > 12 {
			t.Errorf("%d callers made %d reads", callers, n)
		}
	})
}

func TestSharedReadAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		s := sharedFixture(&reads, nil)
		start := time.Now()
		for range 3 {
			must(t, second(s.notBefore(t.Context(), "v", time.Now())))
		}
		if reads.Load() != 3 || time.Since(start) != 3*time.Second {
			t.Errorf("%d reads in %s", reads.Load(), time.Since(start))
		}
		must(t, second(s.notBefore(t.Context(), "v", time.Now().Add(6*time.Second))))
		if took := time.Since(start); took > 11*time.Second {
			t.Errorf("took %s", took)
		}
	})
}

// TestSharedReadSurvivesItsReader: the one who reads for all gives up.
func TestSharedReadSurvivesItsReader(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]time.Duration{"before reading": time.Second, "while reading": 7 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var reads atomic.Int64
				s := sharedFixture(&reads, nil)
				due := time.Now().Add(6 * time.Second)
				ctx, cancel := context.WithTimeout(t.Context(), when)
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := s.notBefore(ctx, "v", due); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("the reader: %v", err)
					}
				})
				synctest.Wait()
				for range 5 {
					wg.Go(func() {
						if started, err := s.notBefore(t.Context(), "v", due); err != nil || started.Before(due) {
							t.Errorf("another: %s, %v", started, err)
						}
					})
				}
				wg.Wait()
				if n := reads.Load(); n > 2 {
					t.Errorf("%d reads", n)
				}
			})
		})
	}
}

func TestSharedReadFailsForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		broken := errors.New("broken")
		s := sharedFixture(&reads, broken)
		due := time.Now().Add(6 * time.Second)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := s.notBefore(t.Context(), "v", due); !errors.Is(err, broken) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if reads.Load() != 1 {
			t.Errorf("%d reads", reads.Load())
		}
	})
}

func TestSharedReadWaitersStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		s := sharedFixture(&reads, nil)
		var wg sync.WaitGroup
		wg.Go(func() { must(t, second(s.notBefore(t.Context(), "v", time.Now().Add(6*time.Second)))) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := s.notBefore(ctx, "v", time.Now().Add(6*time.Second)); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		wg.Wait()
	})
}

func TestSharedReadOfAMomentAgo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		s := sharedFixture(&reads, nil) // a read takes a second, so that its value is good for five
		want := func(wantAged bool, wantReads int64) {
			t.Helper()
			if _, aged, err := s.recent(t.Context(), "v"); err != nil || aged != wantAged || reads.Load() != wantReads {
				t.Errorf("aged %t after %d reads (%v), want %t after %d", aged, reads.Load(), err, wantAged, wantReads)
			}
		}
		want(false, 1)
		want(true, 1)
		time.Sleep(3 * time.Second)
		want(true, 1)
		time.Sleep(time.Second)
		want(false, 2)
		s.outdated("v")
		want(false, 3)
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(500 * time.Millisecond)
			s.outdated("v") // while the read goes on: who asked for it gets it, and nobody after that
		}()
		if _, err := s.notBefore(t.Context(), "v", time.Now()); err != nil {
			t.Error(err)
		}
		<-done
		want(false, 5)
	})
}

func TestSharedReadThatIsQuickIsNotKept(t *testing.T) {
	t.Parallel()
	reads := 0
	s := newSharedRead(func(context.Context, string) (int, error) { reads++; return reads, nil })
	for i := range 3 {
		if value, aged, err := s.recent(t.Context(), "v"); value != i+1 || aged || err != nil {
			t.Errorf("%d, %t, %v", value, aged, err)
		}
	}
}
