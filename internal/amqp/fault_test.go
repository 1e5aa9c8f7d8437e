package amqp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// hurried shortens the confirm timeout.
func hurried(p *Publisher) { p.timeout = time.Second }

// keep publishes messages with these ids, some at a time, until the test calls
// stop, which returns how many.
func (f *fates) keep(exchange, key, prefix string, limit int) (stop func() int) {
	ended, sent := make(chan struct{}), make(chan int)
	go func() {
		all := ids(prefix, limit)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		n := 0
		for n < limit {
			select {
			case <-ended:
				sent <- n
				return
			case <-ticker.C:
				next := min(limit, n+10)
				f.send(exchange, key, all[n:next]...)
				n = next
			}
		}
		<-ended
		sent <- n
	}()
	return func() int { close(ended); return <-sent }
}

// TestStuckQueue: a queue that confirms nothing holds up no other one, its own messages fail in time, and are not sent over
// and over.
func TestStuckQueue(t *testing.T) {
	t.Parallel()
	b := brokertest.Dedicated(t, brokertest.Options{})
	t.Run("with channels of their own", func(t *testing.T) {
		t.Parallel()
		vhost := brokertest.VHost(t, b)
		declare(t, b, vhost, "stuck-a", quorum)
		declare(t, b, vhost, "free", quorum)
		f := publish(t, Options{Dial: dialer(t, b, vhost), PerKey: true}, hurried)
		f.send("", "stuck-a", "first")
		f.send("", "free", "also first")
		f.await(2)
		resume := suspend(t, b, "stuck-a")
		f.send("", "stuck-a", ids("stuck", 1000)...)
		for i := range 20 {
			some := ids("free"+strconv.Itoa(i), 100)
			f.send("", "free", some...)
			for {
				if left := f.untold(some); len(left) == 0 {
					break
				}
			}
			f.want(some, nil)
		}
		f.await(2 + 2000 + 1000)
		f.want(ids("stuck", 1000), ErrUnconfirmed)
		f.send("", "stuck-a", ids("again", 20)...)
		f.await(2 + 2000 + 1020)
		f.want(ids("again", 20), ErrUnconfirmed)
		resume()
		for n := 0; ; n++ {
			id := "last" + strconv.Itoa(n)
			f.send("", "stuck-a", id)
			if f.await(2 + 2000 + 1021 + n)[id] == nil {
				break
			}
		}
		there := drained(t, b, vhost, "stuck-a")
		f.kept(there, there)
		t.Logf("%d messages were taken", len(there))
		if len(there) > DefaultWindow+50 { // one by one after the first window
			t.Error("the queue was sent copy after copy")
		}
	})
	t.Run("on one channel", func(t *testing.T) {
		t.Parallel()
		vhost := brokertest.VHost(t, b)
		declare(t, b, vhost, "stuck-b", quorum)
		declare(t, b, vhost, "free", nil)
		f := publish(t, Options{Dial: dialer(t, b, vhost)})
		f.send("", "stuck-b", "first")
		f.await(1)
		resume := suspend(t, b, "stuck-b")
		late := ids("late", 20)
		f.send("", "stuck-b", late...)
		f.send("", "free", ids("", 100)...) // confirmed before older ones, none of which is waited for
		f.await(101)
		f.want(ids("", 100), nil)
		if left := f.unknown(late); len(left) != len(late) {
			t.Errorf("%d of %d messages are unconfirmed while their queue confirms nothing", len(left), len(late))
		}
		resume()
		f.await(101 + len(late))
		f.want(late, nil)
		holds(t, b, vhost, "stuck-b", append(late, "first")...)
	})
}

// unknown returns those ids whose fate is not known.
func (f *fates) unknown(of []string) (left []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range of {
		if f.told[id] == 0 {
			left = append(left, id)
		}
	}
	return left
}

// untold is unknown. Where there are such ids, it waits until the next fate is known.
func (f *fates) untold(of []string) []string {
	f.mu.Lock()
	more := f.more
	f.mu.Unlock()
	left := f.unknown(of)
	if len(left) > 0 {
		select {
		case <-more:
		case <-time.After(waitTimeout):
			f.t.Fatalf("%d messages are not told of: %.100q", len(left), left)
		}
	}
	return left
}

// TestQueueDeleted: messages come back from the moment on that their queue is deleted; others do not, and the publisher goes on.
func TestQueueDeleted(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	declare(t, b, vhost, "orders", quorum)
	declare(t, b, vhost, "other", quorum)
	f := publish(t, Options{Dial: dialer(t, b, vhost), PerKey: true}, hurried)
	stopOrders, stopOther := f.keep("", "orders", "orders", 100000), f.keep("", "other", "other", 100000)
	f.await(500)
	if _, err := brokertest.Channel(t, b, vhost).QueueDelete("orders", false, false, false); err != nil {
		t.Fatal(err)
	}
	brokertest.WaitFor(t, func() (bool, string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		returned := 0
		for _, err := range f.errs {
			if errors.Is(err, ErrUnroutable) {
				returned++
			}
		}
		kinds := map[string]int{}
		for _, err := range f.errs {
			kinds[fmt.Sprint(err)]++
		}
		return returned > 100, fmt.Sprint(kinds)
	})
	declare(t, b, vhost, "orders", quorum)
	nOrders, nOther := stopOrders(), stopOther()
	f.await(nOrders + nOther)
	f.send("", "orders", "last")
	f.await(nOrders + nOther + 1)
	// The channel that publishes to a quorum queue while that is deleted may refuse, confirm nothing more, or crash, and then the
	// connection ends (3.10).
	f.want(ids("other", nOther), nil, ErrUnconfirmed)
	f.want(ids("orders", nOrders), nil, ErrUnconfirmed, ErrUnroutable, ErrNacked)
	f.want([]string{"last"}, nil)
	f.kept(drained(t, b, vhost, "other"), ids("other", nOther))
}

// kept checks that a queue has all of these messages that were confirmed, and
// none that surely did not get there.
func (f *fates) kept(there, all []string) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range all {
		_, found := slices.BinarySearch(there, id)
		switch err := f.errs[id]; {
		case err == nil && !found:
			f.t.Errorf("message %s was confirmed and is not there", id)
		case found && (errors.Is(err, ErrUnroutable) || errors.Is(err, ErrNotConnected)):
			f.t.Errorf("message %s is there: %v", id, err)
		}
	}
}

// TestPermissionRevoked: the broker remembers what a busy channel may do, and looks again for the next one.
func TestPermissionRevoked(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	declare(t, b, vhost, "orders", quorum)
	declare(t, b, vhost, "other", quorum)
	ch := brokertest.Channel(t, b, vhost)
	if err := ch.QueueBind("other", "other", "amq.direct", false, nil); err != nil {
		t.Fatal(err)
	}
	user, pass := brokertest.User(t, b, vhost, "", "amq.default|amq.direct", "")
	permit := func(write string) {
		t.Helper()
		path := "/api/permissions/" + url.PathEscape(vhost) + "/" + url.PathEscape(user)
		body := map[string]string{"configure": "", "write": write, "read": ""}
		if status, answer := brokertest.Request(t, b, http.MethodPut, path, body); status >= http.StatusMultipleChoices {
			t.Fatalf("%d %s", status, answer)
		}
	}
	f := publish(t, Options{Dial: dialerTo(t, b.AMQPURLAs(vhost, user, pass))})
	stopOrders, stopOther := f.keep("", "orders", "orders", 50000), f.keep("amq.direct", "other", "other", 50000)
	f.await(500)
	permit("amq.direct")
	closeConnections(t, b, user)
	brokertest.WaitFor(t, func() (bool, string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, err := range f.errs {
			if errors.Is(err, ErrForbidden) {
				return true, ""
			}
		}
		return false, "nothing was refused"
	})
	permit("amq.default|amq.direct")
	nOrders, nOther := stopOrders(), stopOther()
	f.await(nOrders + nOther)
	f.send("", "orders", "last")
	f.await(nOrders + nOther + 1)
	f.want(ids("other", nOther), nil, ErrUnconfirmed)
	f.want([]string{"last"}, nil)
	f.kept(drained(t, b, vhost, "other"), ids("other", nOther))
	f.kept(drained(t, b, vhost, "orders"), ids("orders", nOrders))
}

// TestConnectionLost: what was in flight fails at once, everything else goes over the next connection. Nothing that was
// confirmed is missing.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	b := brokertest.Dedicated(t, brokertest.Options{})
	vhost := brokertest.VHost(t, b)
	declare(t, b, vhost, "orders", quorum)
	if err := b.Restart(t.Context()); err != nil { // a quorum queue that was never restarted may come back empty from a crash
		t.Fatal(err)
	}
	user, pass := brokertest.User(t, b, vhost, "", ".*", "")
	f := publish(t, Options{Dial: dialerTo(t, b.AMQPURLAs(vhost, user, pass))})
	stop := f.keep("", "orders", "", 100000)
	f.await(500)
	brokertest.WaitFor(t, func() (bool, string) { // a connection may be closed between two messages
		closeConnections(t, b, user)
		return f.failed() > 0, "no message failed"
	})
	if err := b.Kill(); err != nil {
		t.Fatal(err)
	}
	failed := f.awaitErrors(500)
	if err := b.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.send("", "orders", "probe0")
	for i := 1; f.await(0)["probe"+strconv.Itoa(i-1)] != nil || len(f.untold([]string{"probe" + strconv.Itoa(i-1)})) > 0; i++ {
		f.send("", "orders", "probe"+strconv.Itoa(i))
	}
	n := stop()
	f.await(n)
	f.want(ids("", n), nil, ErrUnconfirmed, ErrNotConnected)
	f.kept(drained(t, b, vhost, "orders"), ids("", n))
	t.Logf("%d published, %d failed until the broker came back", n, failed)
}

// awaitErrors waits until n messages failed.
func (f *fates) awaitErrors(n int) int {
	f.t.Helper()
	failed := 0
	brokertest.WaitFor(f.t, func() (bool, string) {
		failed = f.failed()
		return failed >= n, strconv.Itoa(failed) + " messages failed"
	})
	return failed
}

// failed is how many messages failed.
func (f *fates) failed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	failed := 0
	for _, err := range f.errs {
		if err != nil {
			failed++
		}
	}
	return failed
}

// closeConnections closes a user's connections at once.
func closeConnections(t *testing.T, b *brokertest.Broker, user string) {
	t.Helper()
	status, answer := brokertest.Request(t, b, http.MethodDelete, "/api/connections/username/"+url.PathEscape(user), nil)
	if status >= http.StatusMultipleChoices {
		t.Fatalf("closing the connections of user %q: %d %s", user, status, answer)
	}
}

// TestBlocked: while an alarm blocks publishers, that is said, nothing more is sent, and what waits fails in time.
func TestBlocked(t *testing.T) {
	t.Parallel()
	b := brokertest.Dedicated(t, brokertest.Options{})
	vhost := brokertest.VHost(t, b)
	declare(t, b, vhost, "orders", quorum)
	changes := make(chan bool, 10)
	f := publish(t, Options{Dial: dialer(t, b, vhost), OnBlocked: func(reason string, blocked bool) {
		if blocked == (reason == "") {
			t.Errorf("blocked %v because of %q", blocked, reason)
		}
		changes <- blocked
	}}, hurried)
	f.send("", "orders", "before")
	f.await(1)
	eval(t, b, "vm_memory_monitor:set_vm_memory_high_watermark({absolute, 1000000}).")
	f.send("", "orders", "during") // a connection is blocked when it publishes
	if !<-changes {
		t.Error("not blocked")
	}
	if reason, blocked := f.p.Blocked(); !blocked || reason == "" {
		t.Errorf("blocked %v because of %q", blocked, reason)
	}
	f.send("", "orders", ids("", 1000)...)
	errs := f.await(1002)
	f.want([]string{"during"}, ErrUnconfirmed)
	f.want(ids("", 1000), ErrNotConnected)
	if text := errs["00000"].Error(); !strings.Contains(text, "an alarm blocks publishers") {
		t.Error(text)
	}
	eval(t, b, "vm_memory_monitor:set_vm_memory_high_watermark(0.9).")
	if <-changes {
		t.Error("blocked again")
	}
	f.send("", "orders", "after")
	f.await(1003)
	f.want([]string{"after"}, nil)
	got := drained(t, b, vhost, "orders")
	// What was in the socket when its channel was given up may be in the queue or not: so it was reported.
	if i := slices.Index(got, "during"); i >= 0 {
		got = slices.Delete(got, i, i+1)
	}
	if !slices.Equal(got, []string{"after", "before"}) {
		t.Errorf("queue %q has %q, want what was confirmed", "orders", got)
	}
}

// TestBlackHole: a network that takes bytes and gives none ends nothing for ever, even when a write blocks.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	declare(t, b, vhost, "orders", quorum)
	hole := newProxy(t, b)
	f := publish(t, Options{Dial: dialerTo(t, hole.url(b, vhost))}, hurried)
	f.send("", "orders", "before")
	f.await(1)
	hole.swallow()
	large := amqp091.Publishing{Body: make([]byte, 90<<10)}
	for _, id := range ids("", 300) {
		f.sendMessage("", "orders", id, large)
	}
	f.await(301)
	for id, err := range f.errs {
		if id != "before" && !errors.Is(err, ErrUnconfirmed) && !errors.Is(err, ErrNotConnected) {
			t.Errorf("%s: %v", id, err)
		}
	}
	hole.open()
	for i := 0; ; i++ {
		id := "after" + strconv.Itoa(i)
		f.send("", "orders", id)
		f.untold([]string{id})
		if f.await(302 + i)[id] == nil {
			break
		}
	}
}

// proxy forwards connections to a broker until it swallows what they send.
type proxy struct {
	listener net.Listener
	mu       sync.Mutex
	gate     chan struct{} // closed while bytes pass
}

func newProxy(t *testing.T, b *brokertest.Broker) *proxy {
	t.Helper()
	broker, err := url.Parse(b.AMQPURL("/"))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{gate: make(chan struct{})}
	close(p.gate)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.listener.Close() })
	go func() {
		for {
			client, err := p.listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", broker.Host)
			if err != nil {
				client.Close()
				return
			}
			go p.pass(server, client)
			go p.pass(client, server)
		}
	}()
	return p
}

func (p *proxy) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		gate := p.gate
		p.mu.Unlock()
		<-gate
		if _, err := to.Write(buf[:n]); err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}

func (p *proxy) swallow() { p.mu.Lock(); p.gate = make(chan struct{}); p.mu.Unlock() }
func (p *proxy) open()    { p.mu.Lock(); close(p.gate); p.mu.Unlock() }

func (p *proxy) url(b *brokertest.Broker, vhost string) string {
	u, _ := url.Parse(b.AMQPURL(vhost))
	u.Host = p.listener.Addr().String()
	return u.String()
}
