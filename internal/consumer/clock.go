package consumer

import "time"

// Clock tells the time and waits. Tests and in-memory brokers have their own.
type Clock interface {
	Now() time.Time
	// NewTimer starts a timer that sends once on its channel after d.
	NewTimer(d time.Duration) Timer
}

// Timer is a running timer.
type Timer interface {
	C() <-chan time.Time
	Stop()
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now is time.Now.
func (SystemClock) Now() time.Time { return time.Now() }

// NewTimer is time.NewTimer.
func (SystemClock) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

type systemTimer struct{ t *time.Timer }

func (t systemTimer) C() <-chan time.Time { return t.t.C }
func (t systemTimer) Stop()               { t.t.Stop() }
