package amqp

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"testing"
	"time"
)

// slowSocket is a connection whose writes wait for the test.
type slowSocket struct {
	net.Conn
	begun chan struct{} // a write has begun
	goOn  chan error    // how it ends

	mu     sync.Mutex
	writes [][]byte
	closed bool
}

func newSlowSocket() *slowSocket {
	return &slowSocket{begun: make(chan struct{}, 100), goOn: make(chan error, 100)}
}

func (s *slowSocket) Write(p []byte) (int, error) {
	s.begun <- struct{}{}
	if err := <-s.goOn; err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, bytes.Clone(p))
	return len(p), nil
}

func (s *slowSocket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *slowSocket) SetWriteDeadline(time.Time) error { return nil }

// TestBatch: what is written while a write goes on is written by the next one,
// in order, and before the connection is closed.
func TestBatch(t *testing.T) {
	t.Parallel()
	socket := newSlowSocket()
	b := newBatch(socket)
	var want []byte
	write := func(text string) {
		if n, err := b.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(text), err)
		}
		want = append(want, text...)
	}
	write("first")
	<-socket.begun
	for _, text := range []string{"a", "bc", "", "def"} {
		write(text)
	}
	socket.goOn <- nil
	<-socket.begun
	write("while the second write goes on")
	socket.goOn <- nil
	socket.goOn <- nil
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got := bytes.Join(socket.writes, nil); !bytes.Equal(got, want) || len(socket.writes) != 3 || !socket.closed {
		t.Errorf("wrote %q in %d writes (closed: %t), want %q in 3", got, len(socket.writes), socket.closed, want)
	}
}

// TestBatchIsBounded: a network that takes nothing stops who writes, and a
// write that failed is told of, to those who wait too.
func TestBatchIsBounded(t *testing.T) {
	t.Parallel()
	socket, broken := newSlowSocket(), errors.New("broken pipe")
	b := newBatch(socket)
	ended := make(chan error)
	written := 0
	go func() {
		chunk := make([]byte, 1000)
		for {
			if _, err := b.Write(chunk); err != nil {
				ended <- err
				return
			}
			written += len(chunk)
		}
	}()
	<-socket.begun
	select {
	case err := <-ended:
		t.Fatalf("ended before the write did: %v", err)
	case socket.goOn <- broken:
	}
	if err := <-ended; !errors.Is(err, broken) {
		t.Errorf("got %v, want what the socket said", err)
	}
	if written > 2*batchMax {
		t.Errorf("%d bytes were taken that nobody wrote", written)
	}
	if _, err := b.Write([]byte("more")); !errors.Is(err, broken) {
		t.Errorf("got %v, want what the socket said", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
