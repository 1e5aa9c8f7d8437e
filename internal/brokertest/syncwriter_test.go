package brokertest

import (
	"bytes"
	"sync"
)

// syncWriter is a buffer that a process's output is copied to while a test reads it.
type syncWriter struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *syncWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *syncWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// SyncWriter is for the tests in package brokertest_test.
type SyncWriter = syncWriter
