package migration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// TestTwoAtOnce: of two runs that begin together one refuses, while messages are published, and says who the other is. Every
// message is there, once.
func TestTwoAtOnce(t *testing.T) {
	for _, kind := range []topology.QueueType{topology.Classic, topology.Quorum} {
		t.Run(string(kind), func(t *testing.T) { // one after another, and before others: they are about load
			y := newYard(t, brokertest.Shared(t), kind, 0)
			p := y.publishing()
			p.await(1000)
			var runs sync.WaitGroup
			var reports [2]Report
			var errs [2]error
			refused := make(chan struct{}) // closed when one of them has ended
			var once, first sync.Once
			for i := range errs {
				o := y.options()
				o.Queue.Arguments[topology.ArgMessageTTL] = int64(3600000 + i)
				o.Progress = func(p Progress) {
					if p.Step == StepEmpty {
						first.Do(func() { <-refused })
					}
				}
				runs.Go(func() {
					reports[i], errs[i] = Run(t.Context(), o)
					once.Do(func() { close(refused) })
				})
			}
			runs.Wait()
			p.stop()
			done := 0
			if errs[0] != nil {
				done = 1
			}
			must(t, errs[done])
			var locked *LockedError
			if !errors.As(errs[1-done], &locked) || !strings.Contains(locked.Holder, strconv.Itoa(os.Getpid())) || !strings.Contains(locked.From, "127.0.0.1:") {
				t.Errorf("the other one said: %v", errs[1-done])
			}
			if r := reports[1-done]; r.Out+r.Back > 0 {
				t.Errorf("it moved messages: %+v", r)
			}
			want := y.after()
			want.Arguments[topology.ArgMessageTTL] = int64(3600000 + done)
			y.settled(want)
			y.counted(p)
		})
	}
}

// counted checks that every message that was confirmed is in the queue, once.
func (y *yard) counted(p *publishing) {
	y.t.Helper()
	seen := map[string]int{}
	for _, d := range y.deliveries() {
		seen[d.MessageId]++
	}
	lost, doubled := 0, 0
	for i := range p.count() {
		switch n := seen[strconv.Itoa(i)]; {
		case n == 0:
			lost++
		case n > 1:
			doubled++
		}
	}
	y.t.Logf("%d published", p.count())
	if lost+doubled > 0 || len(seen) != p.count() {
		y.t.Errorf("of %d messages %d were lost and %d are there twice (%d different ones)", p.count(), lost, doubled, len(seen))
	}
}

// TestLockLost: a run whose lock is lost stops at once, and the next one goes on. The run after it waits while it is there.
func TestLockLost(t *testing.T) {
	t.Parallel()
	for _, step := range []Step{StepDivert, StepEmpty, StepReplace, StepReturn, StepRestore} {
		t.Run(string(step), func(t *testing.T) {
			t.Parallel()
			y := newYard(t, brokertest.Shared(t), topology.Classic, 0)
			ids := y.fill(2000)
			o := y.options()
			lost := false
			var after atomic.Int32 // steps that were begun later
			o.Progress = func(p Progress) {
				switch {
				case lost:
					if p.Step != step {
						after.Add(1)
					}
				case p.Step == step:
					lost = true
					y.closeHolder(o)
				}
			}
			_, err := Run(t.Context(), o)
			var gone *LockLostError
			if !errors.As(err, &gone) || !strings.Contains(err.Error(), "apply again") || after.Load() > 0 {
				t.Errorf("%v, and %d steps after it", err, after.Load())
			}
			y.runTo(y.options())
			y.settled(y.after())
			y.exactly(y.deliveries(), ids, 0)
		})
	}
}

// closeHolder closes the connection that holds the lock, and waits until there is none.
func (y *yard) closeHolder(o Options) {
	y.t.Helper()
	names := o.Queue.Migrating()
	var live rabbitmqadmin.LiveQueue
	brokertest.WaitFor(y.t, func() (held bool, state string) { // whose a queue is, the broker tells some seconds late
		var err error
		live, err = o.Client.Queue(y.t.Context(), y.vhost, names.Lock)
		return err == nil && live.Owner != "", fmt.Sprintf("nobody holds the lock: %+v, %v", live, err)
	})
	brokertest.WaitFor(y.t, func() (bool, string) {
		closed, answer := brokertest.Request(y.t, y.b, http.MethodDelete, "/api/connections/"+url.PathEscape(live.Owner), nil)
		status, _ := y.request(http.MethodGet, "queues/%s/"+names.Lock, nil)
		return status == http.StatusNotFound, fmt.Sprintf("the lock is there; closing its connection: %d %s", closed, answer)
	})
}

// TestLockOfADeadPeer: a run whose machine has gone without a word has its lock as long as the broker believes in its
// connection, and the next run waits for that.
func TestLockOfADeadPeer(t *testing.T) {
	t.Parallel()
	y := newYard(t, brokertest.Shared(t), topology.Classic, 0)
	ids := y.fill(10)
	r := newRelay(t, y.b.Address())
	o := y.options()
	o.Client = y.client(y.b.ManagementURL(), r.address)
	ctx, crash := context.WithCancel(t.Context())
	t.Cleanup(crash)
	m := &run{Options: o, names: o.Queue.Migrating()}
	var err error
	m.broker, err = Broker(o.Client, o.VHost)
	must(t, err)
	held, release, err := m.lock(ctx)
	must(t, err)
	t.Cleanup(release)
	began := time.Now()
	learned := make(chan time.Duration, 1)
	go func() {
		<-held.Done()
		learned <- time.Since(began)
	}()
	r.silence()
	next := y.options()
	var waited time.Duration
	next.Progress = func(p Progress) {
		if p.Step == StepLock {
			waited = time.Since(began)
		}
	}
	y.runTo(next)
	t.Logf("the broker gave the connection up after about %s", waited)
	if waited == 0 || waited > lockPatience+heartbeat {
		t.Errorf("the next run waited %s", waited)
	}
	y.settled(y.after())
	y.exactly(y.deliveries(), ids, 0)
	t.Logf("the run learned of it after %s", <-learned)
	var gone *LockLostError
	if !errors.As(context.Cause(held), &gone) {
		t.Errorf("%v", context.Cause(held))
	}
}

// relay passes on what goes to the broker and comes from there, until it is silenced: its connections stay open.
type relay struct {
	address string
	silent  atomic.Bool
}

func (r *relay) silence() { r.silent.Store(true) }

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	r := &relay{address: listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			t.Cleanup(func() { _, _ = client.Close(), server.Close() })
			go r.pass(client, server)
			go r.pass(server, client)
		}
	}()
	return r
}

func (r *relay) pass(to io.Writer, from io.Reader) {
	piece := make([]byte, 64<<10)
	for {
		n, err := from.Read(piece)
		if err != nil {
			return
		}
		if r.silent.Load() {
			continue
		}
		if _, err := to.Write(piece[:n]); err != nil {
			return
		}
	}
}
