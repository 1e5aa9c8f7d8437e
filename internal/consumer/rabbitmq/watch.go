package rabbitmq

import (
	"time"

	"github.com/rabbitmq/amqp091-go"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
)

// lookEvery is how often a session to which nothing comes looks at its queue, and doubts how many looks in a row must find
// messages there that wait for nobody: one may come at the moment of a look.
const (
	lookEvery = 10 * time.Second
	doubts    = 2
)

// watch ends a session that is subscribed to nothing. RabbitMQ 3.10 and 4.0 do that to the consumers of a quorum queue that
// is deleted and there again within some 20 ms (measured; 4.3 closes the connection): they are never sent a message again,
// nor a basic.cancel, and the new queue counts them as its consumers and takes the first messages, up to their prefetch, as
// sent to them. What tells is that further ones are ready and none is sent to who has settled everything, who loses nothing
// by subscribing again: a wrong guess is harmless, and the broker sends the first ones again.
func (s *session) watch() {
	closed := s.conn.NotifyClose(make(chan *amqp091.Error, 1))
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for before, doubted := uint64(0), 0; ; {
		select {
		case <-closed: //nolint:errcheck // Receive says why
			return
		case <-ticker.C:
		}
		last := s.delivered.Load()
		idle := last == before && last == s.settled.Load()
		before = last
		if !idle {
			doubted = 0
			continue
		}
		queue, err := s.conn.FindQueue(s.queue)
		switch {
		case s.stopped.Load(), s.over.Load(), amqp.ReplyCode(err) == amqp091.AccessRefused:
			return
		case err != nil, queue.Messages == 0, s.delivered.Load() != last: // an error says nothing of who is sent messages
			doubted = 0
			continue
		}
		if doubted++; doubted == doubts {
			s.detached.Store(true)
			s.conn.Abandon()
			return
		}
	}
}
