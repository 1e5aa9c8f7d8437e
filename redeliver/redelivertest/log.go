package redelivertest

import (
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"
)

// testLog writes to the test's output while the test runs: a handler that never
// returns may want to after that.
type testLog struct {
	mu  sync.Mutex
	out io.Writer
}

// newLogger is a logger whose times are those of the broker.
func newLogger(t testing.TB, now func() time.Time) *slog.Logger {
	log := &testLog{out: t.Output()}
	t.Cleanup(log.stop)
	return slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			a.Value = slog.TimeValue(now())
		}
		return a
	}}))
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *testLog) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = io.Discard
}
