package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

// consumerTimeout is short enough for a test. Before 4.3 the broker looks for
// consumers that exceeded it once a minute only.
const consumerTimeout = 4 * time.Second

func shortTimeout(s *topology.Spec) {
	s.Extra = map[topology.Role]topology.Arguments{topology.RoleWork: {topology.ArgConsumerTimeout: consumerTimeout.Milliseconds()}}
}

// TestConsumerTimeout: held messages go back before the broker takes them
// away; a handler that is too slow loses its message, and the log says why.
// Before 4.3 either spends a retry.
func TestConsumerTimeout(t *testing.T) {
	t.Parallel()
	b := brokertest.Dedicated(t, brokertest.Options{Config: []string{
		fmt.Sprintf("consumer_timeout = %d", consumerTimeout.Milliseconds()),
	}})
	spent := 1
	if brokertest.HasVersion(b, "4.3") {
		spent = 0
	}
	t.Run("held messages are handed back", func(t *testing.T) {
		t.Parallel()
		w := newWorldOn(t, b, shortTimeout, func(s *topology.Spec) {
			s.Retry.Delays, s.Retry.Jitter = []time.Duration{2 * time.Second}, 0
		})
		var c calls
		l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
			switch n := c.note(m); {
			case m.ID == "too long":
				return redeliver.RetryAfter(3500*time.Millisecond, errBoom)
			case n < 4:
				return redeliver.Defer()
			default:
				return redeliver.Ack()
			}
		})
		w.publish("deferred")
		l.await(redeliver.EventAcked, 1)
		w.publish("too long")
		l.await(redeliver.EventDeadLettered, 1)
		l.mustStop()
		w.drained("orders-dlq", "too long")
		// Deferred for 2 s and for another, of which 1 s is left, twice over.
		if want := []int{0, 0, spent, spent, 2 * spent, 0}; !slices.Equal(c.counts, want) {
			t.Errorf("handled with the retry counts %v, want %v", c.counts, want)
		}
		s := l.Stats()
		if s.SessionsLost != 0 || s.HandedBack != 2 || s.DelayTooLong != 1 {
			t.Errorf("%+v", s)
		}
		if !strings.Contains(l.log.String(), "handed back before its wait was over") {
			t.Error("the log does not say so")
		}
	})
	t.Run("a slow handler is told apart", func(t *testing.T) {
		t.Parallel()
		w := newWorldOn(t, b, shortTimeout)
		g := newGate()
		l := w.consume(redeliver.Config{Workers: 2}, g.handle)
		w.publish("slow")
		slow := g.next(t)
		lost := l.await(redeliver.EventDisconnected, 1)
		if !strings.Contains(lost[0].Err.Error(), "consumer timeout") {
			t.Errorf("disconnected because %v", lost[0].Err)
		}
		again := g.next(t)
		if again.msg.RetryCount != spent {
			t.Errorf("handed out again with the retry count %d, want %d", again.msg.RetryCount, spent)
		}
		slow.answer <- redeliver.Ack()
		l.await(redeliver.EventDropped, 1)
		again.answer <- redeliver.Reject(errBoom)
		l.await(redeliver.EventDeadLettered, 1)
		l.mustStop()
		w.drained("orders-dlq", "slow")
	})
}

// TestBrokerGoneForGood: with a bound on attempts, Run ends with the reason.
func TestBrokerGoneForGood(t *testing.T) {
	t.Parallel()
	b := brokertest.Dedicated(t, brokertest.Options{})
	w := newWorldOn(t, b)
	l := w.consume(redeliver.Config{MaxReconnectAttempts: 3}, acking)
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	err := l.ended()
	if err == nil || !strings.Contains(err.Error(), "gave up connecting after 3 attempts") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("Run returned %v", err)
	}
}

// TestBlockedPublisher: while an alarm blocks publishers, a consumer starts and
// acknowledges, and what cannot be parked is kept until it can.
func TestBlockedPublisher(t *testing.T) {
	t.Parallel()
	b := brokertest.Dedicated(t, brokertest.Options{})
	w := newWorldOn(t, b, parking)
	w.publish("a", "unreadable", "b")
	conf := filepath.Join(b.Dir(), "rabbitmq.conf")
	calm, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	restartWith := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(conf, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	restartWith(append(slices.Clone(calm), "vm_memory_high_watermark.absolute = 1MB\n"...))
	l := w.consume(redeliver.Config{}, func(_ context.Context, m *redeliver.Message) redeliver.Outcome {
		if m.ID == "unreadable" {
			return redeliver.Park(errBoom)
		}
		return redeliver.Ack()
	})
	l.await(redeliver.EventAcked, 2)
	failed := l.await(redeliver.EventSetAsideFailed, 1)
	if text := failed[0].Err.Error(); !strings.Contains(text, "alarm") {
		t.Errorf("the failure reads %q", text)
	}
	if s := l.Stats(); s.SessionsLost != 0 {
		t.Errorf("%+v", s)
	}
	restartWith(calm)
	l.await(redeliver.EventParked, 1)
	l.mustStop()
	w.waitDepth("orders", 0)
	for _, d := range brokertest.Drain(t, b, w.vhost, "orders-parked") { // an unconfirmed copy may have been taken after all
		if d.MessageId != "unreadable" {
			t.Errorf("parked: %q", d.MessageId)
		}
	}
}

// TestDrainOfAHungConnection: a connection that takes nothing any more does not
// keep the consumer from closing on time, and nothing is lost.
func TestDrainOfAHungConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := newProxy(t, w.url())
	g := newGate()
	cfg := redeliver.Config{DrainTimeout: 2 * time.Second, Workers: 2}
	w.via = p.url
	l := w.consume(cfg, g.handle)
	w.publish(ids(20)...)
	first, second := g.next(t), g.next(t)
	brokertest.WaitFor(t, func() (bool, string) {
		got := l.Stats().Delivered
		return got == 20, fmt.Sprintf("%d messages received", got)
	})
	p.hang()
	begun := time.Now()
	l.stop()
	first.answer <- redeliver.Ack()
	second.answer <- redeliver.Retry(errBoom)
	err := l.ended()
	if took := time.Since(begun); took > 2500*time.Millisecond {
		t.Errorf("closed after %s", took)
	}
	var left *redeliver.DrainError
	if !errors.As(err, &left) || len(left.Stranded) < 16 {
		t.Errorf("error %v, want one that names the messages that could not be given back", err)
	}
	p.close()
	w.drained("orders", ids(20)...)
}

// TestPacketsDropped: a network that drops everything for longer than the heartbeat, and then works again.
func TestPacketsDropped(t *testing.T) {
	t.Parallel()
	underStrategies(t, func(t *testing.T, change func(*topology.Spec)) {
		w := newWorld(t, change)
		p := newProxy(t, w.url()+"?heartbeat=1")
		w.via = p.url
		tr := begin(w, true)
		for n := range 2 {
			tr.goOn(100)
			p.hang()
			tr.live.await(redeliver.EventDisconnected, n+1)
			tr.awaitHealth(redeliver.HealthDown, "connects again")
			p.recover()
			tr.awaitUp()
		}
		tr.goOn(100)
		tr.end()
	})
}

// proxy is a TCP proxy in front of a broker that can stop passing bytes on.
type proxy struct {
	url    string
	listen net.Listener
	mu     sync.Mutex
	hung   chan struct{}
	conns  []net.Conn
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listen: l, hung: make(chan struct{})}
	broker := u.Host
	u.Host = l.Addr().String()
	p.url = u.String()
	t.Cleanup(p.close)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", broker)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			hung := p.hung
			p.mu.Unlock()
			go pass(in, out, hung)
			go pass(out, in, hung)
		}
	}()
	return p
}

// pass copies bytes until it hangs; then it reads nothing more.
func pass(to, from net.Conn, hung <-chan struct{}) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		select {
		case <-hung:
			return
		default:
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				_ = to.Close()
			}
			return
		}
	}
}

// hang passes nothing on any more, on connections that come later neither.
func (p *proxy) hang() { close(p.hung) }

// recover passes bytes on again, on new connections.
func (p *proxy) recover() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hung = make(chan struct{})
}

func (p *proxy) close() {
	_ = p.listen.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}
