package transfer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
)

const (
	// answerTimeout bounds the wait for the broker's answer. A queue without a leader gives none.
	answerTimeout = 15 * time.Second
	// A quorum queue keeps the order of up to 32 messages that are given back together, and of no more (measured on 3.10). A
	// channel makes one of all that it is asked while the queue has 32 commands to answer. So after the first message, which
	// comes behind the last acknowledgements, and then after every 16 commands, the queue is looked at until it has them,
	// for backPatience at most.
	together     = 32
	commands     = 16
	backPatience = 5 * time.Second
	backPause    = 5 * time.Millisecond
	// lingerLooks bounds how often a queue is looked at whose number of messages changes all the time.
	lingerLooks = 10
)

// source is the queue that messages are taken from. All of them come over one
// channel, so that they can be given back in one go; but one consumer follows on
// another, because messages that are held take the places of its prefetch.
type source struct {
	queue string
	conn  *amqp.Conn
	ch    *amqp091.Channel
	// asks is another channel, for questions: their answers may close it.
	asks    *amqp091.Channel
	closes  <-chan *amqp091.Error
	cancels <-chan string

	// deliveries are the consumer's; nil where there is none.
	deliveries <-chan amqp091.Delivery
	name       string
	consumers  int // so far
	// ending: the consumer gets no more than it was promised, and is cancelled when it has that; cancelled: it was.
	ending, cancelled bool
	// allotted is the consumer's prefetch. It has been sent received messages, of which it acknowledged acked and holds
	// holding until the end.
	allotted, received, acked, holding int
	// before is how many messages earlier consumers were sent, and old the latest delivery tag among them.
	before int
	old    uint64
	last   uint64
	// held are the deliveries that are given back at the end.
	held []uint64
}

func openSource(ctx context.Context, o Options) (*source, error) {
	conn, err := o.Dial(ctx, " (transfer)")
	if err != nil {
		return nil, err
	}
	s := &source{queue: o.Source, conn: conn, name: "transfer-" + rand.Text()}
	err = s.ask(func() error {
		if s.ch, err = conn.Channel(); err != nil {
			return err
		}
		s.asks, err = conn.Channel()
		return err
	})
	if err != nil {
		s.close(ctx)
		return nil, fmt.Errorf("opening a channel at %s: %w", conn.Address, err)
	}
	s.closes = s.ch.NotifyClose(make(chan *amqp091.Error, 1))
	s.cancels = s.ch.NotifyCancel(make(chan string, 1))
	return s, nil
}

// ask asks the broker something. A connection that does not answer is of no use.
func (s *source) ask(question func() error) error {
	timer := time.AfterFunc(answerTimeout, s.conn.Abandon)
	defer timer.Stop()
	return amqp.Said(question())
}

// ready is how many messages are ready in the queue.
func (s *source) ready() (int, error) {
	q, err := s.inspect()
	return q.Messages, err
}

// inspect asks for the queue.
func (s *source) inspect() (q amqp091.Queue, err error) {
	err = s.ask(func() error {
		q, err = s.asks.QueueDeclarePassive(s.queue, true, false, false, false, nil)
		return err
	})
	if err != nil {
		return amqp091.Queue{}, fmt.Errorf("asking for queue %q: %w", s.queue, err)
	}
	return q, nil
}

// lacks says whether there is no such queue. A refusal to say so means nothing.
func (s *source) lacks(queue string) bool {
	err := s.ask(func() error {
		_, err := s.conn.FindQueue(queue)
		return err
	})
	return amqp.ReplyCode(err) == amqp091.NotFound
}

// consume starts the next consumer, which is sent allot messages and one for
// each that is acknowledged. The names of consumers sort in their order: that is
// the order in which a channel gives back what they hold.
func (s *source) consume(allot int) error {
	s.consumers++
	s.before, s.old = s.before+s.received, s.last
	s.allotted, s.received, s.acked, s.holding = allot, 0, 0, 0
	s.ending, s.cancelled = false, false
	err := s.ask(func() error {
		err := s.ch.Qos(allot, 0, false)
		if err == nil {
			s.deliveries, err = s.ch.Consume(s.queue, s.tag(), false, false, false, false, nil)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("consuming queue %q: %w", s.queue, err)
	}
	return nil
}

func (s *source) tag() string { return fmt.Sprintf("%s-%09d", s.name, s.consumers) }

// take notes a delivery.
func (s *source) take(d *amqp091.Delivery) {
	s.received++
	s.last = d.DeliveryTag
}

// hold keeps a delivery until the end.
func (s *source) hold(tag uint64) {
	s.held = append(s.held, tag)
	if tag > s.old {
		s.holding++
	}
}

// total is how many messages were taken.
func (s *source) total() int { return s.before + s.received }

// quiet says whether the consumer was sent all that it was promised: the
// broker gives back by itself, and in no order, what is on its way to a consumer
// that is cancelled.
func (s *source) quiet() bool { return s.received >= s.allotted+s.acked }

// cancel ends the consumer: deliveries is closed when what it was sent has been
// received.
func (s *source) cancel() error {
	s.ending, s.cancelled = true, true
	if err := s.ask(func() error { return s.ch.Cancel(s.tag(), false) }); err != nil {
		return fmt.Errorf("cancelling the consumer of queue %q: %w", s.queue, err)
	}
	return nil
}

// mayAck says whether a delivery can be acknowledged now, where no more than
// most messages are to be taken: for each, the broker sends another one.
func (s *source) mayAck(tag uint64, most int) bool {
	return s.cancelled || tag <= s.old || !s.ending && s.before+s.allotted+s.acked < most
}

func (s *source) ack(tag uint64) error {
	if tag > s.old {
		s.acked++
	}
	return s.ch.Ack(tag, false)
}

// lost is why deliveries ended that were not to end.
func (s *source) lost() error {
	select {
	case _, ok := <-s.cancels:
		if ok {
			return s.whyCancelled()
		}
	default:
	}
	reply := <-s.closes
	if reply == nil {
		return fmt.Errorf("the connection that consumes queue %q was closed", s.queue)
	}
	return fmt.Errorf("the connection that consumes queue %q was lost: %w", s.queue, amqp.Said(reply))
}

func (s *source) whyCancelled() error {
	if err := s.conn.AfterCancel(s.queue); err != nil {
		return fmt.Errorf("the broker cancelled the consumer of queue %q: %w", s.queue, err)
	}
	return fmt.Errorf("the broker cancelled the consumer of queue %q, which is still there: was a message held longer than the consumer timeout?", s.queue)
}

// giveBack gives back what is held and what was sent and not looked at, in
// order. Everything else has been acknowledged.
func (s *source) giveBack() error {
	if s.deliveries != nil {
		for d := range s.deliveries {
			s.held = append(s.held, d.DeliveryTag)
		}
	}
	slices.Sort(s.held)
	want, err := s.ready()
	for n, left := 0, s.held; len(left) > 0; n++ {
		some := left[:min(together, len(left))]
		if n == 0 {
			some = left[:1]
		}
		if nackErr := s.ch.Nack(some[len(some)-1], true, true); nackErr != nil {
			return fmt.Errorf("giving messages back to queue %q: %w", s.queue, nackErr)
		}
		want, left = want+len(some), left[len(some):]
		if err == nil && n%commands == 0 {
			err = s.await(want)
		}
	}
	return nil
}

// await waits until so many messages are ready. An error means that it is of no
// use to wait again: others take messages too.
func (s *source) await(want int) error {
	for begun := time.Now(); time.Since(begun) < backPatience; time.Sleep(backPause) {
		n, err := s.ready()
		if err != nil || n >= want {
			return err
		}
	}
	return errors.New("the messages that were given back are not there")
}

// close ends the connection, before ctx does. It returns how many messages are
// ready in the queue after that, -1 where that cannot be told.
func (s *source) close(ctx context.Context) int {
	left := -1
	if s.ch != nil && s.asks != nil {
		left = s.linger(ctx)
	}
	_ = s.conn.Close(ctx) // closed either way
	return left
}

// linger waits until the queue has taken the last settlements, as far as that
// can be seen: until no more messages come back, or for some time where others
// publish to it.
func (s *source) linger(ctx context.Context) int {
	for looks, before := 0, -1; ; looks++ {
		left, err := s.ready()
		if err != nil {
			return -1
		}
		if left == before || looks == lingerLooks {
			return left
		}
		before = left
		timer := time.NewTimer(amqp.SettleGrace)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return left
		}
	}
}

// errStarved is why a run ended whose queue has messages and delivers none.
var errStarved = errors.New("it has messages and delivers none to this consumer: has it a leader, or another consumer that is its single active one?")
