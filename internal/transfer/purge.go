package transfer

import (
	"context"
	"fmt"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
)

// Dial opens a connection, as Options.Dial.
type Dial func(ctx context.Context, purpose string) (*amqp.Conn, error)

// Ready is how many messages of a queue are ready: those that a run would look at, and Purge discard. consumers is how many
// consumers it has at that moment.
func Ready(ctx context.Context, dial Dial, queue string) (n, consumers int, err error) {
	err = withSource(ctx, dial, queue, func(s *source) error {
		q, err := s.inspect()
		n, consumers = q.Messages, q.Consumers
		return err
	})
	return n, consumers, err
}

// Purge discards all messages of a queue that are ready, and says how many they were. Messages that somebody holds
// unacknowledged stay.
func Purge(ctx context.Context, dial Dial, queue string) (n int, err error) {
	err = withSource(ctx, dial, queue, func(s *source) error {
		err := s.ask(func() error {
			n, err = s.ch.QueuePurge(queue, false)
			return err
		})
		if err != nil {
			return fmt.Errorf("purging queue %q: %w", queue, err)
		}
		return nil
	})
	return n, err
}

func withSource(ctx context.Context, dial Dial, queue string, do func(*source) error) error {
	s, err := openSource(ctx, Options{Dial: dial, Source: queue})
	if err != nil {
		return err
	}
	defer s.conn.Close(ctx)
	return do(s)
}
