package provider

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestSideBySide: as many at a time as atOnce says, no fewer and no more, and each of them whatever came of the others.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const items = 3*atOnce + 1
		var running, done atomic.Int64
		goOn := make(chan struct{})
		failed := errors.New("the first")
		result := make(chan error)
		go func() {
			result <- sideBySide(make([]struct{}, items), func(i int, _ struct{}) error {
				running.Add(1)
				<-goOn
				running.Add(-1)
				done.Add(1)
				if i == 0 {
					return failed
				}
				return nil
			})
		}()
		for left := items; left > 0; left-- {
			synctest.Wait() // until nobody can go on by themselves
			if want := int64(min(left, atOnce)); running.Load() != want {
				t.Errorf("%d run at a time while %d are left, want %d", running.Load(), left, want)
			}
			goOn <- struct{}{}
		}
		if err := <-result; !errors.Is(err, failed) || done.Load() != items {
			t.Errorf("%d of %d were done, and the error is %v", done.Load(), items, err)
		}
	})
}
