package amqp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// TestPublish: what is confirmed is there, in order, persistent, and nothing else is.
func TestPublish(t *testing.T) {
	t.Parallel()
	for name, perKey := range map[string]bool{"a channel for each exchange": false, "a channel for each key": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.Shared(t)
			vhost := brokertest.VHost(t, b)
			declare(t, b, vhost, "one", quorum)
			declare(t, b, vhost, "two", nil)
			f := publish(t, Options{Dial: dialer(t, b, vhost), PerKey: perKey, Window: 10})
			ones, twos := ids("one", 500), ids("two", 500)
			for i := range ones {
				f.send("", "one", ones[i])
				f.send("amq.direct", "nobody", "lost"+ones[i])
				f.send("", "two", twos[i])
				f.send("", "three", "lost"+twos[i])
			}
			f.await(2000)
			f.want(ones, nil)
			f.want(twos, nil)
			for i := range ones {
				f.want([]string{"lost" + ones[i], "lost" + twos[i]}, ErrUnroutable)
			}
			brokertest.WaitDepth(t, b, vhost, "one", len(ones))
			for i, d := range brokertest.Drain(t, b, vhost, "one") {
				if d.MessageId != ones[i] || d.DeliveryMode != amqp091.Persistent {
					t.Fatalf("message %d is %q with delivery mode %d", i, d.MessageId, d.DeliveryMode)
				}
			}
			holds(t, b, vhost, "two", twos...)
		})
	}
}

// TestReturns: a return does not say which publish it answers.
func TestReturns(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	declare(t, b, vhost, "there", nil)
	f := publish(t, Options{Dial: dialer(t, b, vhost)})
	for i, id := range ids("", 300) {
		f.sendMessage("", "gone", "a"+id, amqp091.Publishing{MessageId: "same"})
		f.sendMessage("", "gone", "b"+id, amqp091.Publishing{})
		f.sendMessage("", "there", "c"+id, amqp091.Publishing{MessageId: "same", Priority: uint8(i % 10)}) //nolint:gosec // it fits
		f.sendMessage("", "there", "d"+id, amqp091.Publishing{})
	}
	f.await(1200)
	for _, id := range ids("", 300) {
		f.want([]string{"a" + id, "b" + id}, ErrUnroutable)
		f.want([]string{"c" + id, "d" + id}, nil)
	}
	brokertest.WaitDepth(t, b, vhost, "there", 600)
}

// TestRefusals: an exchange that is not there or may not be written to fails its own messages and no others.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	declare(t, b, vhost, "orders", quorum)
	declare(t, b, vhost, "full", amqp091.Table{"x-queue-type": "quorum", "x-max-length": 2, "x-overflow": "reject-publish"})
	user, pass := brokertest.User(t, b, vhost, "", "amq.default|missing", "")
	f := publish(t, Options{Dial: dialerTo(t, b.AMQPURLAs(vhost, user, pass)), PerKey: true})
	const n = 200
	for i := range n {
		f.send("", "orders", ids("ok", n)[i])
		f.send("missing", "orders", ids("missing", n)[i])
		f.send("amq.topic", "orders", ids("forbidden", n)[i])
		f.send("", "full", ids("full", n)[i])
	}
	errs := f.await(4 * n)
	f.want(ids("ok", n), nil)
	f.want(ids("missing", n), ErrNoExchange)
	f.want(ids("forbidden", n), ErrForbidden)
	nacked := 0
	for _, id := range ids("full", n) {
		if errors.Is(errs[id], ErrNacked) {
			nacked++
		} else if errs[id] != nil {
			t.Error(errs[id])
		}
	}
	if nacked < n/2 {
		t.Errorf("%d messages were refused by a queue that holds two", nacked)
	}
	if text := errs["missing00000"].Error(); !strings.Contains(text, "the broker said: 404 NOT_FOUND - no exchange 'missing'") {
		t.Error(text)
	}
	holds(t, b, vhost, "orders", ids("ok", n)...)
}

func TestProbe(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	user, pass := brokertest.User(t, b, vhost, "", "amq.default|missing", "")
	f := publish(t, Options{Dial: dialerTo(t, b.AMQPURLAs(vhost, user, pass))})
	for exchange, want := range map[string]error{"": nil, "missing": ErrNoExchange, "amq.topic": ErrForbidden} {
		if err := f.p.Probe(t.Context(), exchange); !errors.Is(err, want) {
			t.Errorf("exchange %q: %v, want %v", exchange, err, want)
		}
		if err := f.p.ProbeAny(t.Context(), exchange); !errors.Is(err, want) {
			t.Errorf("exchange %q, any: %v, want %v", exchange, err, want)
		}
	}
	declare(t, b, vhost, "all", quorum)
	if err := brokertest.Channel(t, b, vhost).QueueBind("all", "", "amq.fanout", false, nil); err != nil {
		t.Fatal(err)
	}
	f = publish(t, Options{Dial: dialer(t, b, vhost)})
	if err := f.p.ProbeAny(t.Context(), "amq.fanout"); err != nil {
		t.Error(err)
	}
	f.send("amq.fanout", "", "m") // behind a probe that reached the queue
	f.await(1)
	holds(t, b, vhost, "all", "m")
}

// TestTooLarge: a header frame of exactly frame_max is published; one that is a byte larger is not, and hurts nobody.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	declare(t, b, vhost, "orders", quorum)
	f := publish(t, Options{Dial: dialer(t, b, vhost)})
	const frameMax = 128 << 10
	f.send("", "orders", "before")
	f.sendMessage("", "orders", "fits", filling(t, frameMax))
	f.sendMessage("", "orders", "does not", filling(t, frameMax+1))
	f.sendMessage("", "orders", "long type", amqp091.Publishing{Type: strings.Repeat("x", 256)})
	f.sendMessage("", "orders", "long header", amqp091.Publishing{Headers: amqp091.Table{strings.Repeat("x", 256): 1}})
	f.sendMessage("", "orders", "no such type", amqp091.Publishing{Headers: amqp091.Table{"x": []any{struct{}{}}}})
	f.send("", strings.Repeat("x", 256), "long key")
	f.send("", "orders", "after")
	errs := f.await(8)
	f.want([]string{"before", "fits", "after"}, nil)
	var large *TooLargeError
	if !errors.Is(errs["does not"], ErrUnsendable) || !errors.As(errs["does not"], &large) || large.Size != frameMax+1 || large.Max != frameMax {
		t.Errorf("too large: %v", errs["does not"])
	}
	for _, id := range []string{"long type", "long header", "no such type", "long key"} {
		if !errors.Is(errs[id], ErrUnsendable) {
			t.Errorf("%s: %v", id, errs[id])
		}
	}
	brokertest.WaitDepth(t, b, vhost, "orders", 3)
}

// TestClose: what is not confirmed is told of once, and nothing can be published any more.
func TestClose(t *testing.T) {
	t.Parallel()
	b := brokertest.Shared(t)
	vhost := brokertest.VHost(t, b)
	declare(t, b, vhost, "orders", quorum)
	f := publish(t, Options{Dial: dialer(t, b, vhost)})
	f.send("", "orders", ids("", 2000)...)
	f.await(1)
	if err := f.p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	confirmed := 0
	for id, err := range f.await(2000) {
		switch {
		case err == nil:
			confirmed++
		case !errors.Is(err, ErrClosed):
			t.Errorf("message %s: %v", id, err)
		}
	}
	if depth := brokertest.Depth(t, b, vhost, "orders"); depth < confirmed {
		t.Errorf("the queue has %d messages and %d were confirmed", depth, confirmed)
	}
	f.send("", "orders", "late")
	f.await(2001)
	f.want([]string{"late"}, ErrClosed)
	if err := f.p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestNotConnected: without a broker messages fail at once, and connecting is not tried for each.
func TestNotConnected(t *testing.T) {
	t.Parallel()
	dials := make(chan struct{}, 1000)
	f := publish(t, Options{Dial: func(context.Context) (*Conn, error) {
		dials <- struct{}{}
		return nil, &DialError{Address: "nowhere", Err: errors.New("refused")}
	}})
	for i, id := range ids("", 200) {
		f.send("", "orders", id)
		f.await(i + 1)
	}
	f.want(ids("", 200), ErrNotConnected)
	if n := len(dials); n > 20 {
		t.Errorf("%d attempts to connect for 200 messages", n)
	}
}

// TestRestsAfterFailures: the time after an attempt to connect in which there is
// no other grows from a tenth of a second to five and no further, and is not the
// same for all publishers.
func TestRestsAfterFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		var tried []time.Time
		p := NewPublisher(Options{Dial: func(context.Context) (*Conn, error) {
			tried = append(tried, time.Now())
			return nil, refused
		}})
		for len(tried) < 41 {
			if _, err := p.connection(t.Context()); !errors.Is(err, ErrNotConnected) || !errors.Is(err, refused) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		distinct := make(map[time.Duration]bool)
		for i, at := range tried[1:] {
			most := 5 * time.Second
			if i < 6 {
				most = min(most, 100*time.Millisecond<<i)
			}
			rest := at.Sub(tried[i])
			if rest < most/2 || rest > most+time.Millisecond {
				t.Errorf("rest %d is %s, want %s to %s", i+1, rest, most/2, most)
			}
			distinct[rest] = true
		}
		if len(distinct) < 30 {
			t.Errorf("of 40 rests only %d are distinct: publishers would come back at the same time", len(distinct))
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
